//! Over ssh: an sshd of the test's own, with keys, configuration and port of its own, and an `ssh` that knows them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::TOLD_WITHIN;
use crate::common::{CACHES, Done, Lab, files_in, is_root, skip, soon, until};

struct Sshd<'a> {
    lab: &'a Lab,
    daemon: Child,
}

const CONFIG: &str =
    "UsePAM no\nStrictModes no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n";

fn run(words: &[&str]) {
    assert!(
        Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).status().expect(words[0]).success()
    );
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
}

impl<'a> Sshd<'a> {
    /// One whose users find `hosepipe` to be that, or not at all.
    fn start(lab: &'a Lab, hosepipe: Option<&str>) -> Option<Self> {
        let program = Path::new("/usr/sbin/sshd");
        if !program.exists() || !is_root() {
            assert!(std::env::var_os("CI").is_none(), "CI has openssh-server, and runs as root");
            skip("needs root and sshd (Debian: apt-get install openssh-server)");
            return None;
        }
        fs::create_dir_all("/run/sshd").expect("where sshd leaves its rights");
        let at = |name: &str| lab.here(name).display().to_string();
        for folder in ["there", "bin"] {
            fs::create_dir(lab.here(folder)).expect("a folder");
        }
        for key in ["host_key", "key"] {
            run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
        }
        fs::copy(lab.here("key.pub"), lab.here("authorized")).expect("copied");
        if let Some(text) = hosepipe {
            script(&lab.here("there/hosepipe"), text);
        }
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
        let path = format!(
            "SetEnv PATH={}:/usr/bin:/bin TMPDIR={} XDG_RUNTIME_DIR={CACHES}",
            at("there"),
            lab.tmp().display()
        );
        let keys = format!("HostKey {}\nAuthorizedKeysFile {}\n", at("host_key"), at("authorized"));
        let listen = format!("ListenAddress 127.0.0.1\nPort {port}\n{path}\n");
        fs::write(lab.here("sshd_config"), format!("{CONFIG}{keys}{listen}")).expect("written");
        let client = format!(
            "Host far\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {}\n IdentitiesOnly yes\n \
             StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n",
            at("key")
        );
        fs::write(lab.here("ssh_config"), client).expect("written");
        script(&lab.here("bin/ssh"), &format!("exec /usr/bin/ssh -F {} \"$@\"", at("ssh_config")));
        let config = at("sshd_config");
        let daemon = Command::new(program)
            .args(["-D", "-e", "-f", &config])
            .env_clear()
            .stdout(Stdio::null())
            .stderr(fs::File::create(lab.here("sshd.log")).expect("a file"))
            .spawn()
            .expect("sshd");
        until("sshd listens", soon(), || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        Some(Self { lab, daemon })
    }

    fn bench(&self, args: &[&str]) -> Done {
        let base = ["bench", "tcp", "--peer", "far", "--json", "-", "--count", "50", "--trials", "2"];
        self.run(&[&base[..], args].concat())
    }

    fn run(&self, args: &[&str]) -> Done {
        let mut command = self.lab.command(args);
        let path = std::env::var("PATH").expect("a path");
        command.env("PATH", format!("{}:{path}", self.lab.here("bin").display()));
        self.lab.start(command).wait_within(3 * TOLD_WITHIN)
    }
}

impl Drop for Sshd<'_> {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[test]
fn a_hosepipe_there_is_started_and_ended() {
    let lab = Lab::new();
    let own = format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_hosepipe"));
    let Some(sshd) = Sshd::start(&lab, Some(&own)) else { return };
    let record = sshd.bench(&[]).expect_code(0).record();
    assert!(record.cases.len() == 3 && record.cases.iter().all(|case| case.samples.len() == 2));
    let peer = record.peer.expect("who");
    assert!(peer.name == "far" && peer.address.starts_with("127.0.0.1:"), "{} {}", peer.name, peer.address);
    let record = sshd.bench(&["--peer-address", "127.0.0.3"]).expect_code(0).record();
    assert!(record.peer.expect("who").address.starts_with("127.0.0.3:"));
}

#[test]
fn a_copy_of_ours_is_sent_and_removed() {
    let lab = Lab::new();
    let Some(sshd) = Sshd::start(&lab, None) else { return };
    let done = sshd.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("far has no hosepipe on its PATH"), "{}", done.stderr);
    sshd.bench(&["--send-binary"]).expect_code(0);
    until("the copy is removed", soon(), || files_in(&lab.tmp()).is_empty().then_some(()));
    // Another machine, as far as it says.
    script(&lab.here("there/uname"), "echo Linux vax");
    let done = sshd.bench(&["--send-binary"]).expect_code(1);
    assert!(done.stderr.contains("far is `Linux vax`, and this program is for Linux "), "{}", done.stderr);
    until("nothing was copied", soon(), || files_in(&lab.tmp()).is_empty().then_some(()));
}

#[test]
fn what_ssh_or_the_other_side_says_is_told() {
    let lab = Lab::new();
    let Some(sshd) = Sshd::start(&lab, Some("echo Welcome; cat")) else { return };
    let done = sshd.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("it sent `Welcome`"), "{}", done.stderr);
    script(&lab.here("there/hosepipe"), "echo broken >&2; exit 3");
    let done = sshd.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("hosepipe on far ended with status 3: broken"), "{}", done.stderr);
    fs::write(lab.here("authorized"), "").expect("written");
    let done = sshd.bench(&[]).expect_code(1);
    assert!(
        done.stderr.contains("ssh far: ") && done.stderr.contains("Permission denied"),
        "{}",
        done.stderr
    );
    let config = fs::read_to_string(lab.here("ssh_config")).expect("written");
    fs::write(lab.here("ssh_config"), config.replace("Port ", "Port 9\n #")).expect("written");
    let done = sshd.bench(&[]).expect_code(1);
    assert!(done.stderr.contains("Connection refused"), "{}", done.stderr);
}

#[test]
fn a_pipeline_goes_through_another_host() {
    let lab = Lab::new();
    let Some(sshd) = Sshd::start(&lab, None) else { return };
    let done =
        sshd.run(&["run", "--via", "ssh:far", "--lines", "--json", "run.json", "seq 100000 | tail -n 1"]);
    assert_eq!(done.expect_code(0).stdout, "100000\n");
    let record: model::RunRecord =
        serde_json::from_str(&fs::read_to_string(lab.here("run.json")).expect("written")).expect("a record");
    assert_eq!((record.links[0].lines, record.links[0].bytes), (Some(100_000), Some(588_895)));
    assert_eq!(sshd.run(&["run", "--via", "ssh:far", "yes | head -n 2"]).expect_code(0).stdout, "y\ny\n");
    let compare = ["compare", "--via", "pipe,ssh:far", "--trials", "1", "--warmup", "0", "--json", "-"];
    let done = sshd.run(&[&compare[..], &["seq 200000 | sort -rn | md5sum"]].concat()).expect_code(0);
    let record: model::CompareRecord = serde_json::from_str(&done.stdout).expect("a record");
    assert_eq!(record.results[1].equal, Some(true), "{}", done.stdout);
    // Cut short, and never taken for the end.
    fs::write(lab.here("authorized"), "").expect("written");
    let done = sshd.run(&["run", "--via", "ssh:far", "seq 10 | { wc -l; echo $? >&2; }"]);
    assert_ne!(done.code(), 0, "{}", done.stdout);
    assert!(
        done.stderr.contains("ssh far exited with 255") && done.stderr.contains("Permission denied"),
        "{}",
        done.stderr
    );
    let done = sshd.run(&["run", "--via", "ssh:-oProxyCommand=x", "a | b"]).expect_code(2);
    assert!(done.stderr.contains("names no host"), "{}", done.stderr);
}
