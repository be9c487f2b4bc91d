//! The job that starts the same program on all nodes: printed for a launcher, or started.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::{describe_errno, script_word, shell_line, shell_quoted};
use process::{Capture, Cleaner, Wire, command, spawn_thread, ssh_words, write_anew};

use crate::fleet::rendezvous::serve;
use crate::launcher::{Launched, Launcher};

/// The name of a batch job.
const NAME: &str = "hosepipe-fleet";

/// The nodes of a fleet, and how to start them.
pub struct FleetJob {
    /// ssh, Slurm or mpirun.
    pub launcher: Launcher,
    /// Their number.
    pub nodes: usize,
    /// The hosts: for ssh one for each node, for mpirun optional.
    pub hosts: Vec<String>,
    /// The program on the nodes.
    pub hosepipe: String,
    /// The folder that all nodes see; ssh needs none.
    pub folder: Option<String>,
    /// Options of `hosepipe fleet` on the nodes.
    pub options: Vec<String>,
    /// The arguments of the bench.
    pub bench: Vec<String>,
}

impl FleetJob {
    /// The command line of a node, with more options.
    pub fn words(&self, more: &[&str]) -> Vec<String> {
        let mut words = vec![self.hosepipe.clone(), "fleet".to_owned()];
        words.extend(more.iter().map(|&word| word.to_owned()));
        words.extend(self.folder.iter().map(|folder| format!("--folder={folder}")));
        words.extend(self.options.iter().cloned());
        words.push("--".to_owned());
        words.extend(self.bench.iter().cloned());
        words
    }

    /// The command lines that start the nodes from here: an ssh for each host, or one mpirun. If a node fails, the others go on.
    pub fn lines(&self) -> Vec<Vec<String>> {
        if self.launcher == Launcher::Ssh {
            return self.hosts.iter().enumerate().map(|(rank, host)| self.ssh(rank, host)).collect();
        }
        let nodes = self.nodes.to_string();
        let options = "--map-by node --bind-to none --mca orte_abort_on_non_zero_status 0 --enable-recovery";
        let mpirun = ["mpirun", "-n", &nodes].into_iter().chain(options.split(' '));
        let mut words: Vec<String> = mpirun.map(str::to_owned).collect();
        if !self.hosts.is_empty() {
            words.extend(["--host".to_owned(), self.hosts.join(",")]);
        }
        words.extend(self.words(&[]));
        vec![words]
    }

    /// Without a folder, a node exchanges values with the others through the standard streams of its ssh.
    fn ssh(&self, rank: usize, host: &str) -> Vec<String> {
        let [rank, nodes] = [rank, self.hosts.len()].map(|number| number.to_string());
        let mut more = vec!["--rank", &rank, "--nodes", &nodes, "--name", host];
        more.extend(self.folder.is_none().then_some("--stdio"));
        ssh_words(host, &shell_line(&self.words(&more)))
    }

    /// The text for running the nodes by hand: a batch script for sbatch(1), or a line for each program.
    pub fn text(&self) -> String {
        let (nodes, lines) = (self.nodes, self.lines());
        match self.launcher {
            Launcher::Slurm => format!(
                "#!/bin/sh\n#SBATCH --job-name={NAME}\n#SBATCH --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1\n\
                 #SBATCH --exclusive --no-kill\n#SBATCH --output={}\n\
                 # If a node fails, the others go on.\n\
                 exec srun --no-kill --kill-on-bad-exit=0 --wait=0 {}\n",
                shell_quoted(self.log().as_os_str().as_encoded_bytes()),
                shell_line(&self.words(&[])),
            ),
            Launcher::Ssh => {
                lines.iter().map(|words| shell_line(words) + " &\n").collect::<String>() + "wait\n"
            }
            _ => lines.iter().map(|words| shell_line(words) + "\n").collect(),
        }
    }

    /// The file for the output of a batch job.
    fn log(&self) -> PathBuf {
        Path::new(self.folder.as_deref().unwrap_or(".")).join("slurm.log")
    }

    /// Starts the nodes. Those started by ssh meet in `folder` through their standard streams; a batch script is written into `temporary`.
    ///
    /// # Errors
    /// A sentence: the launcher is not installed, or what the system answered.
    pub fn start<'c>(
        &self,
        folder: &Path,
        temporary: &Path,
        cleaner: &'c Cleaner,
    ) -> Result<Launched<'c>, String> {
        self.launcher.program()?;
        let lines = match self.launcher {
            Launcher::Slurm => vec![self.slurm(temporary)?],
            _ => self.lines(),
        };
        let mut programs: Vec<Command> = lines.iter().map(|words| command(words)).collect();
        if self.launcher != Launcher::Ssh {
            for program in &mut programs {
                program.stdin(Stdio::null());
            }
            return Launched::start(programs, Capture::Both, cleaner);
        }
        let served = programs.iter_mut().try_for_each(|program| serve_through(program, folder));
        served.map_err(|error| format!("cannot start ssh: {}", describe_errno(&error)))?;
        Launched::start(programs, Capture::Errors, cleaner)
    }

    /// The command line that submits the batch script to Slurm and waits for the job.
    fn slurm(&self, folder: &Path) -> Result<Vec<String>, String> {
        let path = folder.join("job.sh");
        let cannot = |error| format!("cannot write {}: {}", path.display(), describe_errno(&error));
        write_anew(&path, 0o600, self.text().as_bytes()).map_err(cannot)?;
        let log = self.log();
        let words = ["sh", "-c", include_str!("../slurm.sh"), "sh", script_word(&log)?, script_word(&path)?];
        Ok(words.map(str::to_owned).to_vec())
    }
}

/// Serves a rendezvous in the folder through standard input and output of a program, until it ends.
fn serve_through(program: &mut Command, folder: &Path) -> io::Result<()> {
    let (folder, wire) = (folder.to_owned(), Wire::to_program(program, "ssh")?);
    spawn_thread("hosepipe-meet", move || serve(&folder, wire)).map(drop)
}
