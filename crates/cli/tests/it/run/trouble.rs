//! No room, no permission: the writer hears of it as it would elsewhere, and hosepipe says what happened where.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use super::place::{as_nobody, recorded};
use crate::common::{Done, Lab, full, is_root, namespaces::unshare, sandbox, signal, skip, soon, until};

/// A command with a file system of 1 MiB, `small`, which goes with it; `None` where it cannot be mounted.
fn on_small_disk() -> Option<Vec<&'static str>> {
    unshare(&["--mount"], "mkdir small && mount -t tmpfs -o size=1m none small && exec \"$0\" \"$@\"")
}

/// Runs a text over a link whose files are on the small disk.
fn run_on(lab: &Lab, small: &[&str], options: &[&str], text: &str) -> Done {
    let mut command = lab.wrapped(small, &[&["run"], options, &[text]].concat());
    command.env("TMPDIR", lab.here("small"));
    lab.finish(command)
}

const STORED: [&str; 5] =
    ["tmpfile", "file", "file:sync", "tmpfile:order=sequential", "file:order=sequential"];

/// Whether programs have the file of such a link themselves.
fn is_sequential(via: &str) -> bool {
    via.contains("sequential")
}

/// Happened: a sentence, and status 0: a script went on with the number of lines that had fitted.
#[test]
fn a_full_disk_ends_the_writer_and_is_no_success() {
    let Some(small) = on_small_disk() else { return };
    for via in STORED {
        for text in ["seq 1000000 | wc -c; echo ${PIPESTATUS[*]}", "(seq 1000000; true) | wc -c; echo"] {
            let lab = Lab::new();
            let done = run_on(&lab, &small, &["--via", via], text).expect_code(1);
            let statuses = match is_sequential(via) {
                _ if !text.contains("PIPESTATUS") => "",
                true => "1 0",
                false => "141 0",
            };
            assert_eq!(done.stdout, format!("1048576\n{statuses}\n"), "{via}");
            let own_words = done.stderr.contains("No space left on device");
            assert_eq!(own_words, is_sequential(via), "the writer's own words: {}", done.stderr);
            let ours: Vec<&str> = done.stderr.lines().filter(|line| line.starts_with("hosepipe:")).collect();
            assert_eq!(ours.len(), 1, "one sentence: {}", done.stderr);
            for word in [via, "1MiB", "ENOSPC", "small"] {
                assert!(ours[0].contains(word), "no `{word}` in: {}", ours[0]);
            }
        }
    }
}

/// Expected: only lost bytes count: not those that a reader which left did not want, nor a file that just fits.
#[test]
fn a_disk_that_is_full_without_a_loss_changes_no_status() {
    let Some(small) = on_small_disk() else { return };
    for via in STORED {
        for (text, output) in [
            ("yes | head -n1", "y\n"),
            ("head -c 1048570 /dev/zero | wc -c", "1048570\n"),
            ("head -c 1000000 /dev/zero | wc -c", "1000000\n"),
            ("seq 9 | grep -c x; (seq 5; false) | tail -n1", "0\n5\n"),
        ] {
            let lab = Lab::new();
            let done = run_on(&lab, &small, &["--via", via], text).expect_code(0);
            assert_eq!(done.stdout, output, "{via}: {text}");
            let says = done.stderr.contains("hosepipe: ");
            assert!(!says || text.starts_with("yes"), "{via}: {text}: {}", done.stderr);
        }
    }
}

/// Expected: a stage whose output did not fit is found although the file before it has freed its space by then.
#[test]
fn a_disk_that_two_links_fill_is_no_success() {
    let Some(small) = on_small_disk() else { return };
    for via in STORED {
        for text in ["yes | grep y | wc -l", "seq 1000000 | cat | wc -l"] {
            let lab = Lab::new();
            let done = run_on(&lab, &small, &["--via", via], text).expect_code(1);
            assert!(done.stderr.contains("ENOSPC"), "{via}: {text}: {}", done.stderr);
        }
    }
}

/// Expected: a quota is named as the reason.
#[test]
fn a_quota_that_is_spent_is_no_success() {
    for via in STORED {
        let lab = Lab::new();
        let mut command = lab.command(&["run", "--via", via, "head -c 65536 /dev/zero | wc -c"]);
        // What asks whether there is room for a file of others, and what writes into our own.
        let call = if is_sequential(via) { libc::SYS_fallocate } else { libc::SYS_splice };
        sandbox::forbid(&mut command, call, libc::EDQUOT);
        let done = lab.finish(command).expect_code(1);
        assert!(done.stderr.contains("(EDQUOT)"), "{via}: {}", done.stderr);
    }
}

/// Expected: a limit for file sizes, which a pipe does not have, is no success of what read the beginning, and is explained.
/// Happened: the writer was ended, its reader took what there was for everything, status 0, and not a word.
#[test]
fn a_limit_for_file_sizes_is_no_success() {
    // `wc -c` need not read a file.
    let limited_below = "(ulimit -f 10; seq 100000; true) | cat | wc -c";
    let limited_elsewhere = "sh -c 'ulimit -f 20; seq 100000; exit $?' | cat | wc -c";
    let limited_itself = "(ulimit -f 10; for i in {1..9999}; do echo $i; done) | cat | wc -c";
    let through_stages = "seq 100000 | cat | cat | wc -c";
    for via in ["tmpfile", "file", "tmpfile:order=sequential"] {
        for (wrapper, text, bytes) in [
            (&["prlimit", "--fsize=102400", "--core=0"][..], "seq 100000 | wc -c", 102_400),
            (&["prlimit", "--fsize=102400", "--core=0"], through_stages, 102_400),
            (&["prlimit", "--core=0"], limited_below, 10_240),
            (&["prlimit", "--core=0"], limited_itself, 10_240),
            (&["prlimit", "--core=0"], limited_elsewhere, 10_240),
        ] {
            let lab = Lab::new();
            let done = lab.finish(lab.wrapped(wrapper, &["run", "--via", via, text]));
            if !is_sequential(via) && wrapper.len() == 2 {
                // The limit of a program is none of its pipe.
                let all = if text == limited_itself { "48888\n" } else { "588895\n" };
                assert_eq!(done.expect_code(0).stdout, all, "{via}: {text}");
                continue;
            }
            let done = done.expect_code(1);
            assert_eq!(done.stdout, format!("{bytes}\n"), "{via}: {text}");
            for word in [via, "ulimit -f", &format!("{}KiB", bytes >> 10), "cut short"] {
                assert!(done.stderr.contains(word), "no `{word}` in: {}", done.stderr);
            }
        }
    }
    // In sequential order the limit ends a writer without end: a reader wants the beginning only, or nothing.
    for via in ["tmpfile", "tmpfile:order=sequential"] {
        // In parallel order a middle stage may reach the limit before the last one has left.
        let longer = if via == "tmpfile" { "yes | true; echo y" } else { "yes | cat | cat | head -n1" };
        for text in ["yes | head -n1", "yes | true; echo y", longer] {
            let lab = Lab::new();
            let wrapper = ["prlimit", "--fsize=102400", "--core=0"];
            let done = lab.finish(lab.wrapped(&wrapper, &["run", "--via", via, text]));
            assert_eq!(done.expect_code(0).stdout, "y\n", "{via}: {text}");
        }
    }
    let lab = Lab::new();
    let wrapper = ["prlimit", "--fsize=102400"];
    let done = lab.finish(lab.wrapped(&wrapper, &["run", "--via", "tmpfile", "seq 100 | wc -c"]));
    assert_eq!(done.expect_code(0).stderr, "", "what fits is whole");
}

/// Expected: where a shell has too few descriptors for a link, its pipeline fails.
/// Happened: it was a plain pipe, without a word, and nothing of it was recorded or kept.
#[test]
fn too_few_descriptors_for_a_link_are_an_error() {
    let mut refused = 0;
    for limit in 4..=11 {
        let lab = Lab::new();
        let (done, record) =
            recorded(&lab, &["--via", "tmpfile", &format!("ulimit -n {limit}; seq 5 | wc -l")]);
        if done.stdout == "5\n" {
            assert_eq!((done.code(), record.links.len()), (0, 1), "{limit}: {}", done.stderr);
        } else {
            assert!(done.code() != 0 && done.stderr.contains("Too many open files"), "{limit}: {done:?}");
            refused += 1;
        }
    }
    assert!((1..8).contains(&refused), "some are too few, and some enough: {refused}");
}

/// Expected: a pipeline waits for a server that is stopped, says so after 20 s, and goes on over its link.
/// Happened: after 20 s it was a plain pipe, without a word: nothing was kept, status 0.
#[test]
fn a_server_that_is_stopped_is_waited_for() {
    if !full() {
        return skip("to wait for 20 s is only asked for in full");
    }
    let lab = Lab::new();
    let text = "echo ready > ready; until [ -e go ]; do sleep 0.01; done; seq 3 | cat";
    let running = lab.start(lab.command(&["run", "--via", "tmpfile", "--keep", "kept", text]));
    until("the shell", soon(), || lab.here("ready").exists().then_some(()));
    let is_the_server = |(_, name): &(u32, String)| name == "pipe-links";
    let (server, _) = until("the server", soon(), || lab.processes().into_iter().find(is_the_server));
    signal(server, Signal::STOP);
    fs::write(lab.here("go"), "").expect("a file");
    let said = lab.here("../stderr");
    until("a sentence", soon() * 2, || {
        fs::read_to_string(&said).is_ok_and(|said| !said.is_empty()).then_some(())
    });
    signal(server, Signal::CONT);
    let done = running.wait_within(soon()).expect_code(0);
    assert_eq!(done.stdout, "1\n2\n3\n");
    assert!(done.stderr.contains("has not answered for 20 s"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(lab.here("kept/1-seq")).expect("kept"), "1\n2\n3\n");
}

/// Expected: the output is whole, and the status says that the copy is not. Happened: status 0.
#[test]
fn what_cannot_all_be_kept_does_not_spoil_the_output_and_is_no_success() {
    let Some(small) = on_small_disk() else { return };
    for via in ["pipe", "socketpair", "tmpfile"] {
        let lab = Lab::new();
        let args = ["run", "--via", via, "--keep", "small/kept", "seq 1000000 | wc -c"];
        let done = lab.finish(lab.wrapped(&small, &args)).expect_code(1);
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
            sandbox::forbid(&mut command, libc::SYS_splice, libc::EIO);
            let done = lab.finish(command).expect_code(status);
            assert_eq!(done.stdout, "", "{text} with {how:?}");
            for word in ["hosepipe: ", "cut short", "EIO"] {
                assert!(done.stderr.contains(word), "no `{word}` in: {}", done.stderr);
            }
        }
    }
}

/// Expected: a file system that grants no leases, or has no locks, makes nothing wait for ever, and what a later writer has to say is not lost.
/// Happened: on NFS without delegations every lease is refused as if there were a writer (EAGAIN), and nothing ever ended.
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
        for has_locks in [true, false] {
            let lab = Lab::new();
            fs::write(lab.here("in"), "in\n").expect("written");
            let mut command = lab.command(args);
            sandbox::forbid_with(&mut command, libc::SYS_fcntl, Some((1, F_SETLEASE)), libc::EAGAIN);
            if !has_locks {
                sandbox::forbid(&mut command, libc::SYS_flock, libc::EBADF);
            }
            let done = lab.finish(command).expect_code(0);
            assert_eq!(done.stdout, expected, "{args:?}: {}", done.stderr);
        }
    }
}

/// Expected: without tee(2) nothing can be kept of a pipe, and that is said before anything runs.
/// Happened: the reader got nothing, with status 0.
#[test]
fn where_there_is_no_tee_a_pipe_is_not_kept() {
    for (via, status) in [("pipe", 1), ("socketpair", 1), ("tmpfile", 0)] {
        let lab = Lab::new();
        let mut command = lab.command(&["run", "--via", via, "--keep", "kept", "echo x > ran | cat"]);
        sandbox::forbid(&mut command, libc::SYS_tee, libc::ENOSYS);
        let done = lab.finish(command).expect_code(status);
        assert_eq!(lab.here("ran").exists(), status == 0, "{via}");
        assert_eq!(done.stderr.contains("tee(2)") && done.stderr.contains("ENOSYS"), status == 1, "{via}");
    }
}

/// Expected: a tmpfs that was mounted without a limit has room.
/// Happened: it says that it has no blocks at all, so that trials were refused and links "full".
#[test]
fn a_file_system_without_a_limit_has_room() {
    let script = "mkdir small && mount -t tmpfs -o size=0 none small && exec \"$0\" \"$@\"";
    let Some(endless) = unshare(&["--mount"], script) else { return };
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
        // What has a name for a moment only, and stores nothing, has it elsewhere.
        ("fifo", false),
        ("unix-stream", false),
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

/// Expected: no other user enters the folder of a run, at any umask.
/// Happened: with umask 0 it was 0777, and another user connected to the socket in it.
#[test]
fn the_folder_of_a_run_is_closed_to_others() {
    let lab = Lab::new();
    let text = "stat -c %a \"$TMPDIR\"/hosepipe-* | cat";
    let args = ["run", "--via", "file", text];
    let done = lab.finish(lab.wrapped(&["sh", "-c", "umask 0; exec \"$0\" \"$@\""], &args)).expect_code(0);
    assert_eq!(done.stdout, "700\n", "{}", done.stderr);
}

/// Expected: a script that cleans its folder for temporary files goes on, and sees nothing of ours there but what a `file` stores.
/// Happened: the next pipeline could not be made, and ended the script with 129.
#[test]
fn a_script_that_cleans_its_temporary_files_goes_on() {
    let clean = "ls -A \"$TMPDIR\" | wc -l; seq 2 | cat; rm -rf \"$TMPDIR\"/*; seq 3 | cat; echo on";
    let remove = "seq 2 | cat; rm -rf \"$TMPDIR\"; seq 3 | cat; echo on";
    for via in ["fifo", "unix-stream", "tmpfile", "file"] {
        for text in [clean, remove] {
            let lab = Lab::new();
            let done = lab.run(&["run", "--via", via, text]).expect_code(0);
            let before = if text == remove {
                ""
            } else if via == "file" {
                "1\n"
            } else {
                "0\n"
            };
            assert_eq!(done.stdout, format!("{before}1\n2\n1\n2\n3\non\n"), "{via}: {}", done.stderr);
            assert_eq!((done.stderr.as_str(), lab.tmp().exists()), ("", text == clean), "{via}");
        }
    }
}

/// Expected: names that another user has made beforehand stop nothing.
/// Happened: the names of links' files could be guessed, and one that was there ended the pipeline.
#[test]
fn names_made_beforehand_stop_nothing() {
    let lab = Lab::new();
    fs::create_dir(lab.here("shared")).expect("mkdir");
    let names = "for pid in $(seq $$ $(($$ + 9))); do for n in 0 1 2; do echo other > shared/.hosepipe-$pid-$n; done; done";
    let script = format!("{names}; exec \"$0\" \"$@\"");
    let args = ["run", "--via", "file:dir=shared", "seq 3 | cat"];
    let done = lab.start(lab.wrapped(&["sh", "-c", &script], &args)).end_within(soon()).expect_code(0);
    assert_eq!(done.stdout, "1\n2\n3\n", "{}", done.stderr);
    assert_eq!(fs::read_dir(lab.here("shared")).expect("a folder").count(), 30);
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
