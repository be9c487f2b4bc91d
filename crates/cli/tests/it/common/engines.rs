//! Engines that start nodes, each real and for one test: a Slurm of two nodes, an sshd. Everything of them lies in a folder, listens on
//! loopback only, and ends with the test.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{is_root, signal, skip, until};
use rustix::process::Signal;

/// Whether a program is there; without it a test skips, and fails where everything has to be there.
pub(crate) fn has(program: &str) -> bool {
    let there = model::file_on_path(Path::new(program)).is_some();
    assert!(there || std::env::var_os("CI").is_none(), "{program} is not installed");
    if !there {
        skip(&format!("{program} is not installed"));
    }
    there
}

/// Programs that run until they are dropped.
struct Daemons(Vec<Child>);

impl Daemons {
    fn start(&mut self, program: &str, args: &[&str], environment: &[(&str, &Path)]) {
        let mut command = Command::new(program);
        command.args(args).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn().expect(program));
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for daemon in self.0.iter_mut().rev() {
            signal(daemon.id(), Signal::TERM);
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_secs(5)
                && daemon.try_wait().is_ok_and(|ended| ended.is_none())
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Ports that nobody listens at now.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

/// A Slurm whose two nodes, n1 and n2, are this machine.
pub(crate) struct Slurm {
    folder: tempfile::TempDir,
    _daemons: Daemons,
}

impl Slurm {
    /// Starts it and waits until both nodes are idle; `None` where it is not installed, or not for us to start.
    pub(crate) fn start() -> Option<Self> {
        if !is_root() {
            skip("only root starts a Slurm");
            return None;
        }
        if !["munged", "slurmctld", "slurmd", "sbatch"].iter().all(|program| has(program)) {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("slurm-").tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let key = at("munge.key");
        fs::write(&key, std::array::from_fn::<u8, 1024, _>(|at| (at * 31 % 251) as u8)).expect("a key");
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("chmod");
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let [controller, first, second] = free_ports();
        let node = |name: &str, port: u16| {
            format!(
                "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 State=UNKNOWN\n"
            )
        };
        let conf = format!(
            "ClusterName=two\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={controller}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={}\nStateSaveLocation={}\nSlurmctldPidFile={}\nSlurmctldLogFile={}\n\
             SlurmdPidFile={}\nSlurmdSpoolDir={}\nSlurmdLogFile={}\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\nMpiDefault=none\n\
             JobAcctGatherType=jobacct_gather/none\nSchedulerParameters=batch_sched_delay=0,sched_interval=1\n{}{}\
             PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n",
            at("munge"),
            at("state"),
            at("slurmctld.pid"),
            at("slurmctld.log"),
            at("slurmd.%n.pid"),
            at("spool.%n"),
            at("slurmd.%n.log"),
            node("n1", first),
            node("n2", second),
        );
        for name in ["state", "spool.n1", "spool.n2"] {
            fs::create_dir(at(name)).expect("a folder");
        }
        let config = folder.path().join("slurm.conf");
        fs::write(&config, conf).expect("written");
        let mut daemons = Daemons(Vec::new());
        let options = [
            ("key-file", "munge.key"),
            ("socket", "munge"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "munge.seed"),
        ];
        let options: Vec<String> =
            options.iter().map(|(option, name)| format!("--{option}={}", at(name))).collect();
        let words: Vec<&str> =
            ["-F", "--force"].into_iter().chain(options.iter().map(String::as_str)).collect();
        daemons.start("munged", &words, &[]);
        let environment = [("SLURM_CONF", config.as_path())];
        until("munge", Duration::from_secs(20), || folder.path().join("munge").exists().then_some(()));
        daemons.start("slurmctld", &["-D"], &environment);
        for name in ["n1", "n2"] {
            daemons.start("slurmd", &["-D", "-N", name], &environment);
        }
        let idle = || {
            let said = Command::new("sinfo")
                .args(["-h", "-N", "-t", "idle"])
                .envs(environment)
                .output()
                .expect("sinfo");
            (String::from_utf8_lossy(&said.stdout).lines().count() == 2).then_some(())
        };
        until("two idle nodes", Duration::from_secs(40), idle);
        Some(Self { folder, _daemons: daemons })
    }

    /// SLURM_CONF of whoever is to find it.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // What a failed test has left there.
        let _ =
            Command::new("scancel").args(["--full", "-u", "root"]).env("SLURM_CONF", self.config()).output();
    }
}

/// An sshd, and an `ssh` that reaches it under any name of a few.
pub(crate) struct Sshd {
    folder: tempfile::TempDir,
    _daemons: Daemons,
}

impl Sshd {
    /// Starts it; `hosts` are names for it. `None` where it is not installed.
    pub(crate) fn start(hosts: &[&str]) -> Option<Self> {
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
        let [port] = free_ports();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\n",
            at("host"),
            at("user.pub"),
        );
        fs::write(at("sshd_config"), config).expect("written");
        let config = format!(
            "Host {}\nHostName 127.0.0.1\nPort {port}\nIdentityFile {}\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n\
             LogLevel ERROR\nHost *\nConnectTimeout 5\n",
            hosts.join(" "),
            at("user"),
        );
        fs::write(at("config"), config).expect("written");
        // ssh takes no other home than the one of the password file: it is told where its configuration lies.
        fs::create_dir(at("bin")).expect("a folder");
        fs::write(at("bin/ssh"), format!("#!/bin/sh\nexec /usr/bin/ssh -F '{}' \"$@\"\n", at("config")))
            .expect("written");
        fs::set_permissions(at("bin/ssh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("chmod");
        if is_root() {
            // Where the unprivileged part of it lives (sshd(8)).
            fs::create_dir_all("/run/sshd").expect("a folder");
        }
        let mut daemons = Daemons(Vec::new());
        daemons.start("/usr/sbin/sshd", &["-D", "-f", &at("sshd_config")], &[]);
        let answers = || std::net::TcpStream::connect(("127.0.0.1", port)).ok();
        until("sshd", Duration::from_secs(20), answers);
        Some(Self { folder, _daemons: daemons })
    }

    /// A PATH on which its `ssh` is found first.
    pub(crate) fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.folder.path().join("bin").display())
    }
}
