//! A job in the hands of an engine: started, followed, ended.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use process::{Capture, Captured, Child, Cleaner, attend};
use rustix::process::{Pid, Signal, kill_process};

use crate::board::serve;
use crate::node::{RECORD, why};

/// Of what an engine says so much is told.
const SAID_MAX: usize = 2000;
/// How often Slurm is asked about a job.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How long a job may take to end once its record is there.
const GRACE: Duration = Duration::from_secs(5);

/// A job that was started.
pub enum Started<'c> {
    /// Slurm's number of it.
    Slurm(String),
    /// Kubernetes' name of it.
    Kubernetes(String),
    /// Programs here: an mpirun, or an ssh for each node.
    Here(Vec<Child<'c>>),
}

impl<'c> Started<'c> {
    /// Hands a batch script to Slurm.
    ///
    /// # Errors
    /// A sentence: sbatch is not installed, or refuses.
    pub fn by_slurm(script: &str, folder: &Path) -> Result<Self, String> {
        let path = folder.join("job.sh");
        fs::write(&path, script)
            .map_err(|error| format!("cannot write {}: {}", path.display(), model::describe_errno(&error)))?;
        let said = said("sbatch", &["--parsable".as_ref(), path.as_os_str()])?;
        Ok(Self::Slurm(said.trim().split(';').next().unwrap_or_default().to_owned()))
    }

    /// Hands a manifest to Kubernetes, and the secret of the nodes, which is in no manifest. What the first pod prints is the record.
    ///
    /// # Errors
    /// As [`Self::by_slurm`], of kubectl.
    pub fn by_kubernetes(name: &str, manifest: &str, token: &Path, folder: &Path) -> Result<Self, String> {
        let path = folder.join("job.yaml");
        fs::write(&path, manifest)
            .map_err(|error| format!("cannot write {}: {}", path.display(), model::describe_errno(&error)))?;
        let mut file = OsString::from("--from-file=token=");
        file.push(token);
        said("kubectl", &["create".as_ref(), "secret".as_ref(), "generic".as_ref(), name.as_ref(), &file])?;
        let job = Self::Kubernetes(name.to_owned());
        said("kubectl", &["apply".as_ref(), "-f".as_ref(), path.as_os_str()]).map(|_| job)
    }

    /// Fetches the record where it was only printed.
    ///
    /// # Errors
    /// A sentence: what kubectl or the system answered.
    pub fn fetch(&self, folder: &Path) -> Result<(), String> {
        let Self::Kubernetes(name) = self else { return Ok(()) };
        let first = format!("--selector=job-name={name},batch.kubernetes.io/job-completion-index=0");
        let text = said("kubectl", &["logs".as_ref(), "--tail=-1".as_ref(), first.as_ref()])?;
        // What it had to say stands around it.
        let record: String =
            text.lines().skip_while(|line| *line != "{").take_while(|line| *line != "}").collect();
        if record.is_empty() {
            return Ok(());
        }
        fs::write(folder.join(RECORD), record + "}").map_err(|error| model::describe_errno(&error))
    }

    /// Starts programs here. Where a folder is given they reach the board in it through their standard streams.
    ///
    /// # Errors
    /// A sentence: one is not installed, or the system refuses.
    pub fn here(lines: &[Vec<String>], board: Option<&Path>, cleaner: &'c Cleaner) -> Result<Self, String> {
        let start = |words: &Vec<String>| -> io::Result<Child<'c>> {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(Stdio::null());
            let mut capture = Capture::Both;
            if let Some(folder) = board.map(Path::to_owned) {
                capture = Capture::Errors;
                let ((questions, asks), (hears, mut answers)) = (io::pipe()?, io::pipe()?);
                command.stdin(hears).stdout(asks);
                let _held = process::signals::NoSignals::hold();
                // It ends with the program.
                thread::spawn(move || serve(&folder, &mut BufReader::new(questions), &mut answers));
            }
            Child::spawn(command, capture, Captured::keeping(0, SAID_MAX), cleaner, &cleaner.mark())
        };
        let started = lines.iter().map(|words| start(words).map_err(|error| not_run(&words[0], &error)));
        started.collect::<Result<_, _>>().map(Self::Here)
    }

    /// Waits for a moment; says whether the job goes on.
    ///
    /// # Errors
    /// The system refused to wait.
    pub fn goes_on(&mut self) -> io::Result<bool> {
        match self {
            Self::Slurm(number) => {
                thread::sleep(ASK_AGAIN);
                // Slurm forgets a job some time after its end.
                let states =
                    said("squeue", &["-h".as_ref(), "-o%T".as_ref(), "-j".as_ref(), number.as_ref()]);
                let ends = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"];
                Ok(match states {
                    Ok(state) => !state.trim().is_empty() && !ends.contains(&state.trim()),
                    // It may be a moment in which nobody answers.
                    Err(why) => !why.contains("Invalid job id"),
                })
            }
            Self::Kubernetes(name) => {
                thread::sleep(ASK_AGAIN);
                let path = "--output=jsonpath={.status.conditions[*].type}";
                let states = said("kubectl", &["get".as_ref(), "job".as_ref(), name.as_ref(), path.as_ref()]);
                Ok(match states {
                    Ok(states) => !states.contains("Complete") && !states.contains("Failed"),
                    Err(why) => !why.contains("NotFound"),
                })
            }
            Self::Here(children) => {
                attend(children)?;
                Ok(children.iter().any(|child| child.ended().is_none()))
            }
        }
    }

    /// Lets it come to its end, which is near.
    ///
    /// # Errors
    /// As [`Self::goes_on`].
    pub fn settle(&mut self) -> io::Result<()> {
        let began = Instant::now();
        while self.goes_on()? && began.elapsed() < GRACE {}
        Ok(())
    }

    /// Of programs here: which of them have failed, and why.
    pub fn failed(&self) -> Vec<(usize, String)> {
        let Self::Here(children) = self else { return Vec::new() };
        let failed = |child: &Child| child.ended().is_some_and(|ended| !ended.status.success());
        let failed = children.iter().enumerate().filter(|(_, child)| failed(child));
        failed.map(|(at, child)| (at, why(child))).collect()
    }
}

impl Drop for Started<'_> {
    /// What is not over is ended.
    fn drop(&mut self) {
        let _ = match self {
            Self::Slurm(number) => said("scancel", &[number.as_ref()]),
            Self::Kubernetes(name) => {
                let what = format!("job/{name} service/{name} secret/{name}");
                let words =
                    ["delete", "--ignore-not-found", "--wait=false"].into_iter().chain(what.split(' '));
                said("kubectl", &words.map(OsStr::new).collect::<Vec<_>>())
            }
            Self::Here(children) => {
                // An mpirun that is killed leaves its ranks to themselves; one that is asked ends them.
                let running = children.iter().filter(|child| child.ended().is_none());
                running.filter_map(|child| Pid::from_raw(child.pid())).for_each(|pid| {
                    let _ = kill_process(pid, Signal::TERM);
                });
                self.settle().map(|()| String::new()).map_err(|error| error.to_string())
            }
        };
    }
}

/// What a command says, or a sentence.
fn said(program: &str, words: &[&OsStr]) -> Result<String, String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| not_run(program, &error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn not_run(program: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!(
            "{program} is not installed here, or not on the PATH: this is to be run where jobs are submitted from; without --submit \
             the job is printed"
        ),
        _ => format!("cannot run {program}: {}", model::describe_errno(error)),
    }
}
