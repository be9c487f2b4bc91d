//! An sshd for one test, and an `ssh` that reaches it under names of the test's choice: all of it lies in a folder, listens on loopback
//! only, and ends with the test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{is_root, programs::has, until};

/// An sshd, and an `ssh` that reaches it under any name of a few.
pub(crate) struct Sshd {
    folder: tempfile::TempDir,
    daemon: Child,
}

impl Sshd {
    /// Starts it; `hosts` are names for it, and `more` lines of its configuration. `None` where it is not installed.
    pub(crate) fn start(hosts: &[&str], more: &str) -> Option<Self> {
        if !["/usr/sbin/sshd", "ssh", "ssh-keygen"].iter().all(|program| has(program)) {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("sshd-").tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        for name in ["host", "user"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            let made = Command::new("ssh-keygen").args(words).arg(at(name)).status().expect("ssh-keygen");
            assert!(made.success(), "a key");
        }
        fs::copy(at("user.pub"), at("authorized")).expect("copied");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\n{more}",
            at("host"),
            at("authorized"),
        );
        fs::write(at("sshd_config"), config).expect("written");
        let config = format!(
            "Host {}\nHostName 127.0.0.1\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n\
             LogLevel ERROR\nHost *\nConnectTimeout 5\n",
            hosts.join(" "),
            at("user"),
        );
        fs::write(at("config"), config).expect("written");
        // ssh takes no other home than the one of the password file: it is told where its configuration lies.
        fs::create_dir(at("bin")).expect("a folder");
        fs::write(at("bin/ssh"), format!("#!/bin/sh\nexec /usr/bin/ssh -F '{}' \"$@\"\n", at("config")))
            .expect("written");
        fs::set_permissions(at("bin/ssh"), fs::Permissions::from_mode(0o755)).expect("chmod");
        if is_root() {
            // Where the unprivileged part of it lives (sshd(8)).
            fs::create_dir_all("/run/sshd").expect("a folder");
        }
        let mut command = Command::new("/usr/sbin/sshd");
        command
            .args(["-D", "-f", &at("sshd_config")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let sshd = Self { daemon: command.spawn().expect("sshd"), folder };
        until("sshd", Duration::from_secs(20), || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(sshd)
    }

    /// A file of it: `authorized`, the keys it takes, or `config`, of those who reach it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A PATH on which its `ssh` is found first.
    pub(crate) fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.folder.path().join("bin").display())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
