//! Over ssh: an sshd of the test's own, with keys, configuration and port of its own, and an `ssh` that knows them.

use std::fs;

use super::TOLD_WITHIN;
use crate::common::sshd::Sshd;
use crate::common::{CACHES, Done, Lab, files_in, programs::script, soon, until};

/// A host `far`, where only the folder `there` of the lab has programs of ours.
struct Far<'a> {
    lab: &'a Lab,
    sshd: Sshd,
}

impl<'a> Far<'a> {
    /// One on which `hosepipe` is this script, or nothing.
    fn new(lab: &'a Lab, hosepipe: Option<&str>) -> Option<Self> {
        let there = lab.here("there");
        fs::create_dir(&there).expect("a folder");
        if let Some(text) = hosepipe {
            script(lab, "there/hosepipe", text);
        }
        let environment = format!(
            "SetEnv PATH={}:/usr/bin:/bin TMPDIR={} XDG_RUNTIME_DIR={CACHES}\n",
            there.display(),
            lab.tmp().display()
        );
        Some(Self { lab, sshd: Sshd::start(&["far"], &environment)? })
    }

    fn bench(&self, args: &[&str]) -> Done {
        let base = ["bench", "tcp", "--peer", "far", "--json", "-", "--count", "50", "--trials", "2"];
        self.run(&[&base[..], args].concat())
    }

    fn run(&self, args: &[&str]) -> Done {
        let mut command = self.lab.command(args);
        command.env("PATH", self.sshd.path());
        self.lab.start(command).wait_within(3 * TOLD_WITHIN)
    }

    /// From now on ssh writes all messages that it has, and has some for each new key.
    fn be_verbose(&self) {
        let config = fs::read_to_string(self.sshd.file("config")).expect("written");
        fs::write(
            self.sshd.file("config"),
            config.replace("LogLevel ERROR", "RekeyLimit 1M\nLogLevel DEBUG3"),
        )
        .expect("written");
    }

    /// From now on no key is taken.
    fn refuse(&self) {
        fs::write(self.sshd.file("authorized"), "").expect("written");
    }
}

#[test]
fn a_hosepipe_there_is_started_and_ended() {
    let lab = Lab::new();
    let own = format!("#!/bin/sh\nexec {} \"$@\"", env!("CARGO_BIN_EXE_hosepipe"));
    let Some(far) = Far::new(&lab, Some(&own)) else { return };
    let record = far.bench(&[]).expect_code(0).record();
    assert!(record.cases.len() == 3 && record.cases.iter().all(|case| case.samples.len() == 2));
    let peer = record.peer.expect("who");
    assert!(peer.name == "far" && peer.address.starts_with("127.0.0.1:"), "{} {}", peer.name, peer.address);
    let record = far.bench(&["--peer-address", "127.0.0.3"]).expect_code(0).record();
    assert!(record.peer.expect("who").address.starts_with("127.0.0.3:"));
}

/// Expected: what ssh says beside the bytes is read. Happened: after 64 KiB of messages ssh waited for a reader of them for ever.
#[test]
fn an_ssh_with_much_to_say_does_not_stop() {
    let lab = Lab::new();
    let Some(far) = Far::new(&lab, None) else { return };
    far.be_verbose();
    let text = "head -c 40000000 /dev/zero | wc -c";
    assert_eq!(far.run(&["run", "--via", "ssh:far", text]).expect_code(0).stdout, "40000000\n");
}

#[test]
fn a_copy_of_ours_is_sent_and_removed() {
    let lab = Lab::new();
    let Some(far) = Far::new(&lab, None) else { return };
    let done = far.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("far has no hosepipe on its PATH"), "{}", done.stderr);
    far.bench(&["--send-binary"]).expect_code(0);
    until("the copy is removed", soon(), || files_in(&lab.tmp()).is_empty().then_some(()));
    // Another machine, as far as it says.
    script(&lab, "there/uname", "#!/bin/sh\necho Linux vax\n");
    let done = far.bench(&["--send-binary"]).expect_code(1);
    assert!(done.stderr.contains("far is `Linux vax`, and this program is for Linux "), "{}", done.stderr);
    until("nothing was copied", soon(), || files_in(&lab.tmp()).is_empty().then_some(()));
}

#[test]
fn what_ssh_or_the_other_side_says_is_told() {
    let lab = Lab::new();
    let Some(far) = Far::new(&lab, Some("#!/bin/sh\necho Welcome; cat\n")) else { return };
    let done = far.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("it sent `Welcome`"), "{}", done.stderr);
    script(&lab, "there/hosepipe", "#!/bin/sh\necho broken >&2; exit 3\n");
    let done = far.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("hosepipe on far ended with status 3: broken"), "{}", done.stderr);
    far.refuse();
    let done = far.bench(&[]).expect_code(1);
    assert!(
        done.stderr.contains("ssh far: ") && done.stderr.contains("Permission denied"),
        "{}",
        done.stderr
    );
    let config = fs::read_to_string(far.sshd.file("config")).expect("written");
    fs::write(far.sshd.file("config"), config.replace("Port ", "Port 9\n #")).expect("written");
    let done = far.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("Connection refused"), "{}", done.stderr);
}

#[test]
fn a_pipeline_goes_through_another_host() {
    let lab = Lab::new();
    let Some(far) = Far::new(&lab, None) else { return };
    let done =
        far.run(&["run", "--via", "ssh:far", "--lines", "--json", "run.json", "seq 100000 | tail -n 1"]);
    assert_eq!(done.expect_code(0).stdout, "100000\n");
    let record: model::RunRecord =
        serde_json::from_str(&fs::read_to_string(lab.here("run.json")).expect("written")).expect("a record");
    assert_eq!((record.links[0].lines, record.links[0].bytes), (Some(100_000), Some(588_895)));
    assert_eq!(far.run(&["run", "--via", "ssh:far", "yes | head -n 2"]).expect_code(0).stdout, "y\ny\n");
    let compare = ["compare", "--via", "pipe,ssh:far", "--trials", "1", "--warmup", "0", "--json", "-"];
    let done = far.run(&[&compare[..], &["seq 200000 | sort -rn | md5sum"]].concat()).expect_code(0);
    let record: model::CompareRecord = serde_json::from_str(&done.stdout).expect("a record");
    assert_eq!(record.results[1].equal, Some(true), "{}", done.stdout);
    // Cut short, and never taken for the end.
    far.refuse();
    let done = far.run(&["run", "--via", "ssh:far", "seq 10 | { wc -l; echo $? >&2; }"]);
    assert_ne!(done.code(), 0, "{}", done.stdout);
    assert!(
        done.stderr.contains("ssh far exited with 255") && done.stderr.contains("Permission denied"),
        "{}",
        done.stderr
    );
    let done = far.run(&["run", "--via", "ssh:-oProxyCommand=x", "a | b"]).expect_code(2);
    assert!(done.stderr.contains("names no host"), "{}", done.stderr);
}
