//! No room, no permission: the writer hears of it as it would elsewhere, and hosepipe says what happened where.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::place::as_nobody;
use crate::common::{Lab, is_root, sandbox, skip};

/// A file system of 1 MiB, which goes with the run.
const SMALL: [&str; 7] = [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    "mkdir small && mount -t tmpfs -o size=1m none small && exec \"$0\" \"$@\"",
];

fn may_mount() -> bool {
    let tried =
        Command::new(SMALL[0]).args(&SMALL[1..4]).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
    let may = tried.is_ok_and(|output| output.status.success());
    if !may {
        skip("a small file system cannot be mounted here");
    }
    may
}

#[test]
fn a_full_disk_is_the_writers_error_and_is_explained() {
    if !may_mount() {
        return;
    }
    for via in ["tmpfile", "file", "tmpfile:order=sequential", "file:order=sequential"] {
        let lab = Lab::new();
        let text = "seq 1000000 | wc -c; echo ${PIPESTATUS[*]}";
        let mut command = lab.wrapped(&SMALL, &["run", "--via", via, text]);
        command.env("TMPDIR", lab.here("small"));
        let done = lab.finish(command).expect_code(0);
        assert_eq!(done.stdout, "1048576\n1 0\n", "{via}");
        assert!(done.stderr.contains("No space left on device"), "the writer's own words: {}", done.stderr);
        let ours: Vec<&str> = done.stderr.lines().filter(|line| line.starts_with("hosepipe:")).collect();
        assert_eq!(ours.len(), 1, "one sentence: {}", done.stderr);
        for word in [via, "1MiB", "ENOSPC", "small"] {
            assert!(ours[0].contains(word), "no `{word}` in: {}", ours[0]);
        }
    }
}

#[test]
fn a_writer_that_fails_for_want_of_room_counts_under_pipefail() {
    if !may_mount() {
        return;
    }
    let lab = Lab::new();
    // As any writer's error.
    for (more, status) in [(&["--pipefail"][..], 1), (&[], 0)] {
        let args = [&["run", "--via", "tmpfile"], more, &["seq 1000000 | tail -c 1"]].concat();
        let mut command = lab.wrapped(&SMALL, &args);
        command.env("TMPDIR", lab.here("small"));
        lab.finish(command).expect_code(status);
        fs::remove_dir(lab.here("small")).expect("where it was mounted");
    }
}

#[test]
fn what_cannot_all_be_kept_does_not_spoil_the_pipeline() {
    if !may_mount() {
        return;
    }
    for via in ["pipe", "socketpair", "tmpfile"] {
        let lab = Lab::new();
        let args = ["run", "--via", via, "--keep", "small/kept", "seq 1000000 | wc -c"];
        let done = lab.finish(lab.wrapped(&SMALL, &args)).expect_code(0);
        assert_eq!(done.stdout, "6888896\n", "{via}: {}", done.stderr);
        assert!(done.stderr.contains("ENOSPC") && done.stderr.contains("kept"), "{via}: {}", done.stderr);
    }
}

/// Expected: data that a relay cuts short never looks like a normal end: who reads it, or what is made of it, is killed first, and the
/// shell acts on that; and a sentence.
/// Happened: a sentence, status 0, and `&&` went on.
#[test]
fn what_a_relay_cuts_short_is_no_success() {
    for (text, status) in [
        ("seq 1000 | wc -l", 137),
        ("! seq 1000 | cat", 1),
        ("seq 1000 | cat && echo all", 137),
        ("seq 1000 | (cat > part; echo all) | cat && echo all", 137),
        ("shopt -s lastpipe; seq 1000 | while read line; do :; done; echo all", 137),
    ] {
        for how in [&["--via", "tmpfile"][..], &["--via", "file"], &["--meter"]] {
            let lab = Lab::new();
            let mut command = lab.command(&[&["run"], how, &[text]].concat());
            sandbox::forbid(&mut command, libc::SYS_splice, None, libc::EIO);
            let done = lab.finish(command).expect_code(status);
            assert_eq!(done.stdout, "", "{text} with {how:?}");
            for word in ["hosepipe: ", "cut short", "EIO"] {
                assert!(done.stderr.contains(word), "no `{word}` in: {}", done.stderr);
            }
        }
    }
}

/// Expected: a file system that grants no leases makes nothing wait for ever, and what a later writer has to say is not lost.
/// Happened: on NFS without delegations every lease is refused as if somebody wrote (EAGAIN), and nothing ever ended.
#[test]
fn where_every_lease_is_refused_the_end_is_seen() {
    const F_SETLEASE: i32 = 1024;
    let text = "sh -c 'echo a > /dev/stdout; sleep 0.3; echo b' | cat; seq 3 | tail -1";
    let late = "cat; (sleep 0.3; echo late) &";
    for (args, expected) in [
        (&["run", "--via", "file", text][..], "a\nb\n3\n"),
        (&["run", "--via", "tmpfile", text], "a\nb\n3\n"),
        (&["run", "--via", "file:order=sequential", text], "a\nb\n3\n"),
        (&["spread", "--work", "w", "--map", late, "--reduce", "cat", "in"], "in\nlate\n"),
    ] {
        let lab = Lab::new();
        fs::write(lab.here("in"), "in\n").expect("written");
        let mut command = lab.command(args);
        sandbox::forbid_with(&mut command, libc::SYS_fcntl, Some((1, F_SETLEASE)), libc::EAGAIN);
        let done = lab.finish(command).expect_code(0);
        assert_eq!(done.stdout, expected, "{args:?}: {}", done.stderr);
    }
}

/// Expected: without tee(2) nothing can be kept of a pipe, and that is said before anything runs.
/// Happened: the reader got nothing, with status 0.
#[test]
fn where_there_is_no_tee_a_pipe_is_not_kept() {
    for (via, status) in [("pipe", 1), ("socketpair", 1), ("tmpfile", 0)] {
        let lab = Lab::new();
        let mut command = lab.command(&["run", "--via", via, "--keep", "kept", "echo x > ran | cat"]);
        sandbox::forbid(&mut command, libc::SYS_tee, None, libc::ENOSYS);
        let done = lab.finish(command).expect_code(status);
        assert_eq!(lab.here("ran").exists(), status == 0, "{via}");
        assert_eq!(done.stderr.contains("tee(2)") && done.stderr.contains("ENOSYS"), status == 1, "{via}");
    }
}

/// Expected: a tmpfs that was mounted without a limit has room.
/// Happened: it says that it has no blocks at all, so that trials were refused and links "full".
#[test]
fn a_file_system_without_a_limit_has_room() {
    if !may_mount() {
        return;
    }
    let script = "mkdir small && mount -t tmpfs -o size=0 none small && exec \"$0\" \"$@\"";
    let endless = [&SMALL[..6], &[script]].concat();
    for args in [
        &["run", "--via", "tmpfile", "seq 100000 | tail -1"][..],
        &["bench", "tmpfile", "file", "--count", "4", "--trials", "1"],
    ] {
        let lab = Lab::new();
        let mut command = lab.wrapped(&endless, args);
        command.env("TMPDIR", lab.here("small"));
        let done = lab.finish(command).expect_code(0);
        assert!(!done.stdout.contains("ENOSPC") && done.stderr.is_empty(), "{}{}", done.stdout, done.stderr);
    }
}

#[test]
fn a_folder_that_may_not_be_written_costs_a_sentence() {
    if !is_root() {
        return skip("only root can run as another user");
    }
    for (via, refused) in [
        ("tmpfile", true),
        ("file", true),
        ("fifo", true),
        ("unix-stream", true),
        ("pipe", false),
        ("tcp", false),
    ] {
        let lab = Lab::new();
        let closed = lab.here("closed");
        fs::create_dir(&closed).expect("mkdir");
        fs::set_permissions(&closed, Permissions::from_mode(0o755)).expect("chmod");
        let mut command = as_nobody(&lab, &["run", "--via", via, "echo a | cat"]);
        command.env("TMPDIR", &closed);
        let done = lab.finish(command);
        if !refused {
            assert_eq!((done.code(), done.stdout.as_str()), (0, "a\n"), "{via}: {}", done.stderr);
            continue;
        }
        let done = done.expect_code(1);
        assert_eq!(done.stdout, "", "{via}");
        assert_eq!(done.stderr.lines().count(), 1, "{via}: {}", done.stderr);
        assert_eq!(done.stderr.matches("EACCES").count(), 1, "said once ({via}): {}", done.stderr);
        for word in ["hosepipe: ", via, "closed", "TMPDIR"] {
            assert!(done.stderr.contains(word), "no `{word}` in: {}", done.stderr);
        }
    }
}

/// Expected: nobody else enters the folder of a run, whatever the umask is.
/// Happened: with umask 0 it was 0777, and another user connected to the socket in it.
#[test]
fn the_folder_of_a_run_is_closed_to_others() {
    let lab = Lab::new();
    let text = "stat -c %a \"$TMPDIR\"/hosepipe-* | cat";
    let args = ["run", "--via", "file", text];
    let done = lab.finish(lab.wrapped(&["sh", "-c", "umask 0; exec \"$0\" \"$@\""], &args)).expect_code(0);
    assert_eq!(done.stdout, "700\n", "{}", done.stderr);
}

#[test]
fn files_that_may_not_be_read_are_the_stages_matter() {
    if !is_root() {
        return skip("only root can run as another user");
    }
    let lab = Lab::new();
    fs::write(lab.here("secret"), "x").expect("a file");
    fs::set_permissions(lab.here("secret"), Permissions::from_mode(0o600)).expect("chmod");
    let text = "cat secret | wc -c; cat < secret; echo $?; ./secret; echo $?";
    let done = lab.finish(as_nobody(&lab, &["run", text])).expect_code(0);
    assert_eq!(done.stdout, "0\n1\n126\n");
    assert_eq!(done.stderr.matches("Permission denied").count(), 3, "{}", done.stderr);
}
