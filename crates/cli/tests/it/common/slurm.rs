//! A real Slurm of two nodes, each with one CPU, on this machine: children of the test, with ports, keys and folders of their own, gone
//! when it is. Needs root, and Debian's slurmctld, slurmd, slurm-client and munge.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{is_root, skip, until};

/// Nodes announce themselves within seconds, on a machine that is busy, too.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// The nodes, by name.
pub(crate) const NODES: [&str; 2] = ["n1", "n2"];

/// The cluster.
pub(crate) struct Slurm {
    folder: tempfile::TempDir,
    daemons: Vec<(String, Child)>,
}

impl Slurm {
    /// Starts one, with these lines more in its configuration; `None`, said on standard error, where that cannot be. Under `CI=true`
    /// a program that is missing is a failure.
    pub(crate) fn start(more: &str) -> Option<Self> {
        let missing: Vec<&str> = ["munged", "slurmctld", "slurmd", "sbatch"]
            .into_iter()
            .filter(|name| program(name).is_none())
            .collect();
        if !is_root() || !missing.is_empty() {
            let why = format!("no Slurm of our own: root {}, missing {missing:?}", is_root());
            let may_lack = !is_root() || std::env::var_os("CI").is_none_or(|value| value != "true");
            assert!(may_lack, "{why}");
            skip(&why);
            return None;
        }
        let folder = tempfile::Builder::new().prefix("slurm-").tempdir().expect("a folder for Slurm");
        let mut slurm = Self { folder, daemons: Vec::new() };
        fs::create_dir(slurm.path("state")).expect("made");
        fs::write(slurm.path("munge.key"), [7; 128]).expect("written");
        fs::set_permissions(slurm.path("munge.key"), fs::Permissions::from_mode(0o600)).expect("chmod");
        fs::write(slurm.configuration(), slurm.configured(more)).expect("written");
        let file = |option: &str, name: &str| format!("--{option}={}", slurm.path(name).display());
        let munge = [
            file("socket", "munge.socket"),
            file("key-file", "munge.key"),
            file("pid-file", "munge.pid"),
            file("seed-file", "munge.seed"),
        ];
        let words: Vec<&str> =
            ["--foreground", "--force"].into_iter().chain(munge.iter().map(String::as_str)).collect();
        slurm.daemon("munged", "munged", &words);
        until("munged", STARTS_WITHIN, || slurm.path("munge.socket").exists().then_some(()));
        let configuration = slurm.configuration().display().to_string();
        slurm.daemon("slurmctld", "slurmctld", &["-D", "-f", &configuration]);
        NODES.iter().for_each(|node| slurm.daemon(node, "slurmd", &["-D", "-N", node, "-f", &configuration]));
        until("two idle nodes", STARTS_WITHIN, || {
            slurm.check_daemons();
            let said = slurm.client("sinfo").args(["-h", "-N", "-t", "idle"]).output().expect("sinfo");
            (said.stdout.iter().filter(|byte| **byte == b'\n').count() == NODES.len()).then_some(())
        });
        Some(slurm)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What SLURM_CONF has to be for the programs that use it.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    /// A program that asks it.
    pub(crate) fn client(&self, name: &str) -> Command {
        let mut command = Command::new(program(name).expect("the clients are there"));
        command.env("SLURM_CONF", self.configuration());
        command
    }

    fn configured(&self, more: &str) -> String {
        let free: Vec<TcpListener> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
        let port = |at: usize| free[at].local_addr().expect("bound").port();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let folder = self.folder.path().display();
        let nodes: String = NODES
            .iter()
            .enumerate()
            .map(|(at, node)| {
                let port = port(at + 1);
                format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=500\n")
            })
            .collect();
        format!(
            "ClusterName=two\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={folder}/munge.socket\nCredType=cred/munge\n\
             StateSaveLocation={folder}/state\nSlurmctldPidFile={folder}/slurmctld.pid\n\
             SlurmdPidFile={folder}/%n.pid\nSlurmdSpoolDir={folder}/%n.spool\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\n\
             JobAcctGatherType=jobacct_gather/none\nMpiDefault=none\nSchedulerParameters=sched_interval=1\nKillWait=5\n\
             {nodes}PartitionName=all Nodes=ALL Default=YES State=UP\n{more}\n",
            port(0)
        )
    }

    fn daemon(&mut self, name: &str, file: &str, words: &[&str]) {
        let log = File::create(self.path(&format!("{name}.log"))).expect("a log");
        let mut command = Command::new(program(file).expect("looked for before"));
        command.args(words).env("SLURM_CONF", self.configuration()).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        self.daemons.push((name.to_owned(), command.spawn().expect("a daemon starts")));
    }

    /// Panics where one has ended, with its last words.
    fn check_daemons(&mut self) {
        for (name, daemon) in &mut self.daemons {
            let ended = daemon.try_wait().expect("wait");
            let log = self.folder.path().join(format!("{name}.log"));
            assert!(ended.is_none(), "{name} has ended: {}", fs::read_to_string(log).unwrap_or_default());
        }
    }
}

/// Debian's daemons are in /usr/sbin, which is not on everybody's PATH.
fn program(name: &str) -> Option<PathBuf> {
    let sbin = || Some(PathBuf::from("/usr/sbin").join(name)).filter(|path| path.is_file());
    model::file_on_path(name).or_else(sbin)
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.client("scancel").args(["--full", "--user=root"]).output();
        for (_, daemon) in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
