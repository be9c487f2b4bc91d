//! `hosepipe spread --on ssh`, by an sshd of the test's own: two names of this machine are two hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::sshd::Sshd;
use crate::common::{Done, HANGS_AFTER, Lab, signal, soon, until};
use crate::spread::{by_bash, lab};

fn on_ssh(path: &str, lab: &Lab, args: &[&str]) -> Command {
    let mut command = lab.command(&[&["spread", "--work", "w"], args].concat());
    command.env("PATH", path);
    command
}

fn contains(done: &Done, words: &[&str]) {
    for word in words {
        assert!(done.stderr.contains(word), "no `{word}` in {}", done.stderr);
    }
}

/// Waits until a partition has written the number of its shell.
fn shell_of(lab: &Lab, name: &str) -> u32 {
    until("a partition", HANGS_AFTER, || fs::read_to_string(lab.here(name)).ok()?.trim().parse().ok())
}

fn assert_ends(pid: u32) {
    until("the end of the far program", soon(), || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}

#[test]
fn hosts_give_what_bash_gives() {
    let Some(sshd) = Sshd::start(&["a", "b"], "") else { return };
    let lab = lab();
    let text = "sort -n | uniq -c";
    let args = ["--hosts", "a,b", "--map", text, "--split", "20k", "--stats", "--json", "r.json"];
    let inputs = ["in1", "in2", "in3", "in4", "in5"];
    let done = lab.finish(on_ssh(&sshd.path(), &lab, &[&args[..], &inputs].concat())).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, &format!("cat in1 in2 in3 in4 in5 | {text}")));
    contains(&done, &["partitions together", "sort -n"]);
    let record = fs::read_to_string(lab.here("r.json")).expect("a record");
    assert!(record.contains("\"partitions\""), "{record}");

    // The folder and the locale are ours; at most one at a time runs on each host.
    let map = "cat >/dev/null; touch run.$$; ls run.* | wc -l >>counts; sleep 0.5; rm run.$$; echo \"$PWD $LC_ALL\"";
    let args = ["--on", "ssh", "--hosts", "a,b", "-j", "1", "--map", map, "--reduce", "sort -u; exit 7"];
    let args = [&["spread", "--work", "v"], &args[..], &inputs].concat();
    let mut command = lab.command(&args);
    command.env("PATH", sshd.path()).env("LC_ALL", "C");
    let done = lab.finish(command).expect_code(7);
    let here = fs::canonicalize(lab.here("")).expect("a folder");
    assert_eq!(done.stdout, format!("{} C\n", here.display()));
    let counts = fs::read_to_string(lab.here("counts")).expect("counts");
    assert_eq!(counts.lines().max(), Some("2"), "{counts}");
}

#[test]
fn a_failure_on_a_host_costs_its_partition() {
    let Some(sshd) = Sshd::start(&["a", "b"], "") else { return };
    let lab = lab();
    let map = "read -r n; echo >>tried-${n%% *}; [ -e mended ] || [ \"$n\" != 'x' ] || { echo boo >&2; exit 255; }; echo \"$n\"";
    fs::write(lab.here("x"), "x\n").expect("written");
    let args = ["--hosts", "a,b", "--map", map, "--reduce", "cat", "--keep-going", "--retries", "1"];
    let args = [&args[..], &["in1", "x", "in2"]].concat();
    let done = lab.finish(on_ssh(&sshd.path(), &lab, &args)).expect_code(1);
    assert_eq!(done.stdout, "");
    contains(
        &done,
        &["partition 2 of 3 (", "x) on ", " exited with 255: boo", "2 of 3 partitions are finished"],
    );
    assert!(!done.stderr.contains("left out"), "the host was reached: {}", done.stderr);
    assert_eq!(fs::read_to_string(lab.here("tried-x")).expect("tries").lines().count(), 2);
    fs::write(lab.here("mended"), "").expect("written");
    let done = lab.finish(on_ssh(&sshd.path(), &lab, &[&args[..], &["--resume"]].concat())).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "head -qn 1 in1 x in2"));
}

#[test]
fn a_host_that_cannot_be_used_is_left_out_and_the_last_one_is_a_failure() {
    let Some(sshd) = Sshd::start(&["a"], "") else { return };
    let lab = lab();
    let words = ["--map", "cat", "--reduce", "cat", "in2", "in4"];
    let expected = by_bash(&lab, "cat in2 in4");
    let args = [&["--hosts", "nowhere.invalid,a"], &words[..]].concat();
    let done = lab.finish(on_ssh(&sshd.path(), &lab, &args)).expect_code(0);
    assert_eq!(done.stdout, expected);
    contains(&done, &["nowhere.invalid is left out: partition ", "Could not resolve hostname"]);
    fs::remove_dir_all(lab.here("w")).expect("removed");
    let args = [&["--hosts", "nowhere.invalid"], &words[..]].concat();
    let done = lab.finish(on_ssh(&sshd.path(), &lab, &args)).expect_code(1);
    contains(&done, &["did not begin on nowhere.invalid: ssh exited with 255", "`ssh nowhere.invalid true`"]);

    // A host key that is not known.
    fs::create_dir(lab.here("bin")).expect("made");
    let real = sshd.path();
    let real = real.split(':').next().expect("a folder");
    let strict = "-o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null";
    fs::write(lab.here("bin/ssh"), format!("#!/bin/sh\nexec {real}/ssh {strict} \"$@\"\n")).expect("written");
    fs::set_permissions(lab.here("bin/ssh"), fs::Permissions::from_mode(0o755)).expect("chmod");
    let path = format!("{}:{}", lab.here("bin").display(), sshd.path());
    fs::remove_dir_all(lab.here("w")).expect("removed");
    let done = lab.finish(on_ssh(&path, &lab, &[&["--hosts", "a"], &words[..]].concat())).expect_code(1);
    contains(&done, &["partition 1 of 2 (", "Host key verification failed"]);

    // No hosepipe under the same path.
    fs::remove_dir_all(lab.here("w")).expect("removed");
    fs::copy(env!("CARGO_BIN_EXE_hosepipe"), lab.here("program")).expect("copied");
    let removed = ["sh", "-c", "shift; exec 9<program; rm program; exec /proc/self/fd/9 \"$@\"", "sh"];
    let args = [&["spread", "--work", "w", "--hosts", "a"], &words[..]].concat();
    let mut command = lab.wrapped(&removed, &args);
    command.env("PATH", sshd.path());
    let done = lab.finish(command).expect_code(1);
    contains(&done, &["partition 1 of 2 (", "No such file", "hosepipe has to be there"]);
}

#[test]
fn however_ssh_or_spread_ends_the_program_on_the_host_ends_with_it() {
    let Some(sshd) = Sshd::start(&["a"], "") else { return };
    let lab = lab();
    let map = "[ -e done ] && { echo $$ >slow; sleep 1000; }; touch done; cat";
    let args = ["--hosts", "a", "-j", "1", "--map", map, "--reduce", "cat", "in1", "in2"];
    let running = lab.start(on_ssh(&sshd.path(), &lab, &args));
    let shell = shell_of(&lab, "slow");
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(2 * soon()).expect_code(130);
    contains(&done, &["1 of 2 partitions are finished", "stopped"]);
    assert_ends(shell);

    // A killed ssh is a failure of its partition.
    fs::remove_file(lab.here("slow")).expect("removed");
    let running = lab.start(on_ssh(&sshd.path(), &lab, &[&args[..], &["--resume"]].concat()));
    let shell = shell_of(&lab, "slow");
    let ssh = lab.processes().into_iter().find(|(_, name)| name == "ssh").expect("an ssh").0;
    signal(ssh, Signal::KILL);
    let done = running.wait_within(2 * soon()).expect_code(1);
    contains(&done, &["partition 2 of 2 (", " on a was ended by SIGKILL"]);
    assert_ends(shell);

    fs::remove_file(lab.here("slow")).expect("removed");
    let running = lab.start(on_ssh(&sshd.path(), &lab, &[&args[..], &["--resume"]].concat()));
    let shell = shell_of(&lab, "slow");
    running.kill_and_look();
    assert_ends(shell);
    fs::remove_file(lab.here("done")).expect("removed");
    let done = lab.finish(on_ssh(&sshd.path(), &lab, &[&args[..], &["--resume"]].concat())).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "cat in1 in2"));
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let lab = lab();
    fs::create_dir(lab.here("bin")).expect("made");
    let bash = model::file_on_path("bash").expect("bash");
    for name in ["bin/bash", "bin/ssh"] {
        std::os::unix::fs::symlink(&bash, lab.here(name)).expect("linked");
    }
    for (args, words) in [
        (&["--on", "ssh", "--work", "w", "--map", "wc", "in1"][..], "--hosts"),
        (&["--hosts", "a", "--map", "wc", "in1"], "--work DIR"),
        (&["--hosts", "a,-oProxyCommand=x", "--work", "w", "--map", "wc", "in1"], "is not a host"),
        (&["--on", "slurm", "--hosts", "a", "--work", "w", "--map", "wc", "in1"], "goes with --on ssh"),
        (&["--hosts", "a", "--submit", "--work", "w", "--map", "wc", "in1"], "--on slurm"),
        (&["--hosts", "a", "--work", "a\nb", "--map", "wc", "in1"], "holds a control character"),
        (&["--hosts", "a", "--work", "w", "--map", "wc", "in1"], "ssh is not installed here"),
    ] {
        if words.starts_with("ssh is not") {
            fs::remove_file(lab.here("bin/ssh")).expect("removed");
        }
        let mut command = lab.command(&[&["spread"], args].concat());
        command.env("PATH", lab.here("bin"));
        let done = lab.finish(command).expect_code(2);
        assert!(done.stderr.contains(words), "{args:?}: no `{words}` in {}", done.stderr);
    }
}
