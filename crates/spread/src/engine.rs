//! Slurm and Spark as engines: the program that hands them the partitions, and what came of it.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use model::{describe_errno, file_on_path, shell_quoted};
use process::{LOOK_UP, Reach, Supervisor, spawn};
use thiserror::Error;

use crate::local::{Failure, Progress};
use crate::work::{SpreadPlan, Work};

/// How often Slurm is asked: its controller serves many.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Tasks that are cancelled may take KillWait to end, 30 s by default (slurm.conf(5)).
const CANCELLED_WITHIN: Duration = Duration::from_secs(40);

/// Who runs the partitions, on machines that all see the folder of the work and this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// An array job, and a job for the reduce that depends on it.
    Slurm,
    /// A program in Python.
    Spark,
}

/// What an engine is to do.
pub struct Job<'a> {
    /// The engine.
    pub engine: Engine,
    /// The folder.
    pub work: &'a Work,
    /// What is to be done there.
    pub plan: &'a SpreadPlan,
    /// This program's own file, under the same path everywhere.
    pub hosepipe: &'a Path,
    /// How many at a time, where the engine shall not decide that: so many tasks, each of which may run several.
    pub jobs: Option<u16>,
    /// How often one that failed is tried again, where the engine shall not decide that.
    pub retries: Option<u32>,
    /// Whether others are begun after one has failed for good.
    pub keep_going: bool,
    /// For `sbatch` or `spark-submit`, as they are.
    pub options: &'a [String],
}

/// What came of it.
#[derive(Debug)]
pub struct JobEnd {
    /// Partitions that failed.
    pub failures: Vec<Failure>,
    /// The status of the reduce.
    pub status: Option<i32>,
    /// The signal by which this process was asked to end meanwhile, where nobody else saw it.
    pub asked: Option<i32>,
}

/// Why an engine cannot be used.
#[derive(Debug, Error)]
pub enum EngineProblem {
    /// A program of it is missing.
    #[error("{0}. Without --submit the program is only printed")]
    Missing(&'static str),
    /// It did not take the work.
    #[error("Slurm did not take the work: {0}")]
    Refused(String),
    /// The partitions are done, but not the reduce.
    #[error(
        "all partitions are finished, but their reduce did not come to its end{0}. With --resume it is run here"
    )]
    NotReduced(String),
    /// The system refused.
    #[error("cannot run the engine's program: {}", describe_errno(.0))]
    System(#[from] io::Error),
}

impl Engine {
    /// Finds what takes the program.
    ///
    /// # Errors
    /// It is not installed.
    pub fn submitter(self) -> Result<PathBuf, EngineProblem> {
        if self == Self::Slurm {
            let missing = "sbatch is not on PATH: --submit needs the client programs of a Slurm cluster (Debian: slurm-client)";
            return file_on_path("sbatch").and(file_on_path("bash")).ok_or(EngineProblem::Missing(missing));
        }
        let missing = "spark-submit is not on PATH, not in $SPARK_HOME/bin, and python3 has no pyspark: --submit needs Spark, or \
                       pip install pyspark, and Java 17";
        let of_python = || {
            let ask = ["-c", "import pyspark; print(pyspark.__path__[0], end='')"];
            let said = Command::new("python3").args(ask).output().ok().filter(|said| said.status.success());
            said.and_then(|said| String::from_utf8(said.stdout).ok()).map(PathBuf::from)
        };
        let in_home = |home: PathBuf| Some(home.join("bin/spark-submit")).filter(|file| file.is_file());
        let found = file_on_path("spark-submit")
            .or_else(|| std::env::var_os("SPARK_HOME").map(PathBuf::from).and_then(in_home));
        found.or_else(|| of_python().and_then(in_home)).ok_or(EngineProblem::Missing(missing))
    }
}

impl Job<'_> {
    /// Writes into the folder which partitions are left and the program that runs them; gives its path and text. It can be run by hand.
    ///
    /// # Errors
    /// What the system answered.
    pub fn program(&self) -> io::Result<(PathBuf, String)> {
        let left: Vec<String> = self.left().map(|number| format!("{number}\n")).collect();
        fs::write(self.work.folder().join("left"), left.concat())?;
        let (name, template, quoted): (_, _, fn(&str) -> String) = match self.engine {
            Engine::Slurm => ("slurm.sh", include_str!("slurm.sh"), |text| shell_quoted(text.as_bytes())),
            // A string of JSON is one of Python.
            Engine::Spark => {
                ("spark.py", include_str!("spark.py"), |text| serde_json::Value::from(text).to_string())
            }
        };
        let options: Vec<String> = self.options.iter().map(|option| quoted(option)).collect();
        let text = [
            ("{count}", left.len().to_string()),
            ("{retries}", self.retries.map_or(String::new(), |retries| retries.to_string())),
            ("{keep_going}", self.keep_going.to_string()),
            ("{jobs}", self.jobs.map_or(String::new(), |jobs| jobs.to_string())),
            ("{options}", options.join(" ")),
            ("{hosepipe}", quoted(&self.hosepipe.to_string_lossy())),
            ("{work}", quoted(&self.work.folder().to_string_lossy())),
        ];
        let text = text.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value));
        let path = self.work.folder().join(name);
        fs::write(&path, &text)?;
        Ok((path, text))
    }

    fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.plan.partitions.len()).filter(|number| !self.work.is_finished(*number))
    }

    /// Hands the program to the engine, and waits for the end of what it does.
    ///
    /// # Errors
    /// The engine is not there, or did not take it; or there is no reduce although all partitions are finished.
    pub fn run(&self, submitter: &Path, progress: &mut dyn Progress) -> Result<JobEnd, EngineProblem> {
        let (program, _) = self.program()?;
        self.left().for_each(|number| drop(fs::remove_file(self.work.status_file(number))));
        drop(fs::remove_file(self.work.reduce_record_file()));
        let asked = match self.engine {
            Engine::Slurm => self.follow(&program, progress).map(|()| None)?,
            Engine::Spark => {
                // In a session of its own: what a terminal sends to everybody would end the executors one by one, and Spark begins others.
                let setsid = file_on_path("setsid")
                    .ok_or(EngineProblem::Missing("setsid is not on PATH (util-linux)"))?;
                let mut words = vec!["setsid".into(), submitter.into()];
                words.extend(self.options.iter().map(Into::into));
                words.push(program.into());
                let mut supervisor = Supervisor::new(Reach::Child)?;
                // It writes the errors of a program in Python to its standard output.
                let output = io::stderr().as_fd().try_clone_to_owned()?;
                supervisor.watch(spawn(&setsid, &words, &std::env::vars_os().collect(), &[(output, 1)])?)?;
                supervisor.wait(None)?.1
            }
        };
        let status = self.work.records(0).1.map(|record| record.status);
        if asked.is_some() || progress.stops() {
            // What was cancelled did not fail.
            return Ok(JobEnd { failures: Vec::new(), status, asked });
        }
        let mut failures: Vec<Failure> = self.left().filter_map(|number| self.failure(number)).collect();
        match self.left().next() {
            Some(partition) if failures.is_empty() => {
                let hosepipe = self.hosepipe.display();
                let how = format!(
                    "was not run to its end. The engine's own words may tell why; every node has to see the folder of the work, and {hosepipe}"
                );
                failures.push(Failure { partition, how, status: None });
            }
            None if status.is_none() => {
                return Err(EngineProblem::NotReduced(self.work.end_of("reduce.log")));
            }
            _ => {}
        }
        Ok(JobEnd { failures, status, asked })
    }

    fn failure(&self, partition: usize) -> Option<Failure> {
        let status: i32 = fs::read_to_string(self.work.status_file(partition)).ok()?.trim().parse().ok()?;
        let how = format!("exited with {status}{}", self.work.end_of(&format!("{:06}.log", partition + 1)));
        Some(Failure { partition, how, status: Some(status) })
    }

    /// Runs the program for Slurm, and looks until its jobs are gone.
    fn follow(&self, program: &Path, progress: &mut dyn Progress) -> Result<(), EngineProblem> {
        let submitted = Command::new("bash").arg(program).output()?;
        if !submitted.status.success() && progress.stops() {
            return Ok(());
        }
        if !submitted.status.success() {
            let said = String::from_utf8_lossy(&submitted.stderr).trim().to_owned();
            return Err(EngineProblem::Refused(said));
        }
        let jobs = String::from_utf8_lossy(&submitted.stdout).trim().replace(' ', ",");
        let mut cancelled: Option<Instant> = None;
        while cancelled.is_none_or(|cancelled| cancelled.elapsed() < CANCELLED_WITHIN) {
            let ask = ["--noheader", "--array", "--format=%T", "--jobs", &jobs];
            let said = Command::new("squeue").args(ask).output()?;
            let states = String::from_utf8_lossy(&said.stdout);
            // A controller that does not answer may do so again: its jobs go on meanwhile.
            if said.status.success() && states.is_empty() {
                break;
            }
            let running = states.lines().filter(|state| *state == "RUNNING").count();
            progress.show(self.work.count_outputs(), running);
            let asked = Instant::now();
            while asked.elapsed() < ASK_EVERY && (cancelled.is_some() || !progress.stops()) {
                std::thread::sleep(LOOK_UP);
            }
            if cancelled.is_none() && progress.stops() {
                Command::new("scancel").args(jobs.split(',')).status()?;
                cancelled = Some(Instant::now());
            }
        }
        Ok(())
    }
}
