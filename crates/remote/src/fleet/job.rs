//! The same program on all nodes, as each engine wants it said.

use std::path::{Path, PathBuf};

use model::{shell_line, shell_quoted};

/// What a job is called.
const NAME: &str = "hosepipe-fleet";

/// What is to be started everywhere.
pub struct Job {
    /// On how many nodes.
    pub nodes: usize,
    /// The program on the nodes.
    pub hosepipe: String,
    /// The folder that all nodes see; ssh does without.
    pub folder: Option<String>,
    /// Options of `hosepipe fleet` on the nodes.
    pub options: Vec<String>,
    /// The arguments of the bench.
    pub bench: Vec<String>,
}

impl Job {
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

    /// A batch script for sbatch(1), which leaves what is said in a file of the folder.
    pub fn slurm(&self) -> String {
        let nodes = self.nodes;
        let line = shell_line(&self.words(&[]));
        format!(
            "#!/bin/sh\n#SBATCH --job-name={NAME}\n#SBATCH --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1\n\
             #SBATCH --exclusive --no-kill\n#SBATCH --output={}\n\
             # A node that fails costs its own figures: the others go on.\n\
             exec srun --no-kill --kill-on-bad-exit=0 --wait=0 {line}\n",
            shell_quoted(self.log().as_os_str().as_encoded_bytes()),
        )
    }

    /// Where a batch job leaves what is said.
    pub fn log(&self) -> PathBuf {
        Path::new(self.folder.as_deref().unwrap_or(".")).join("slurm.log")
    }

    /// The words of mpirun(1), of Open MPI.
    pub fn mpi(&self, hosts: &[String]) -> Vec<String> {
        let nodes = self.nodes.to_string();
        // A node that fails costs its own figures: the others go on.
        let how = "--map-by node --bind-to none --mca orte_abort_on_non_zero_status 0 --enable-recovery";
        let how = ["mpirun", "-n", &nodes].into_iter().chain(how.split(' '));
        let mut words: Vec<String> = how.map(str::to_owned).collect();
        if !hosts.is_empty() {
            words.extend(["--host".to_owned(), hosts.join(",")]);
        }
        words.extend(self.words(&[]));
        words
    }

    /// The words of ssh(1) for each host. Without a folder the nodes speak to each other through the streams of ssh.
    pub fn ssh(&self, hosts: &[String]) -> Vec<Vec<String>> {
        let one = |(rank, host): (usize, &String)| {
            let [rank, nodes] = [rank, hosts.len()].map(|number| number.to_string());
            let mut more = vec!["--rank", &rank, "--nodes", &nodes, "--name", host];
            more.extend(self.folder.is_none().then_some("--stdio"));
            // There is always a shell at the far end: it is given one line.
            let line = shell_line(&self.words(&more));
            ["ssh", "-T", "-o", "BatchMode=yes", "--", host, &line].map(str::to_owned).to_vec()
        };
        hosts.iter().enumerate().map(one).collect()
    }
}
