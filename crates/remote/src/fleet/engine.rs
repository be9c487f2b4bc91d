//! A job in the hands of an engine: started, followed, ended, by programs that run here.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::peer::Wire;
use model::{describe_errno, file_on_path};
use process::{Capture, Captured, Child, Cleaner, attend, end_all, spawn_thread, write_anew};

use crate::fleet::board::serve;
use crate::fleet::node::{SAID_MAX, why};

/// How long a job may take to end once its record is there.
const GRACE: Duration = Duration::from_secs(5);

/// A job that was started: an mpirun, an ssh for each node, or a script that hands it to a batch system and follows it there.
pub struct Started<'c>(Vec<Child<'c>>);

impl<'c> Started<'c> {
    /// Hands a batch script, which writes such a log, to Slurm.
    ///
    /// # Errors
    /// A sentence: it is not installed, or the system refuses.
    pub fn by_slurm(script: &str, log: &Path, folder: &Path, cleaner: &'c Cleaner) -> Result<Self, String> {
        let path = written(folder, "job.sh", script)?;
        Self::by_script("sbatch", include_str!("slurm.sh"), &[&path, log], cleaner)
    }

    fn by_script(program: &str, script: &str, words: &[&Path], cleaner: &'c Cleaner) -> Result<Self, String> {
        file_on_path(program).ok_or_else(|| not_run(program, &ErrorKind::NotFound.into()))?;
        let words = words.iter().map(|word| model::script_word(*word));
        let line = ["sh", "-c", script, "sh"].into_iter().map(Ok).chain(words);
        let line = line.map(|word| word.map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
        Self::here(&[line], None, cleaner)
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
                let ((questions, asks), (hears, answers)) = (io::pipe()?, io::pipe()?);
                command.stdin(hears).stdout(asks);
                let wire = Wire::new(questions.into(), answers.into(), &words[0]);
                // It ends with the program.
                spawn_thread("hosepipe-board", move || serve(&folder, wire))?;
            }
            Child::spawn(command, capture, Captured::keeping(0, SAID_MAX), cleaner, &cleaner.mark())
        };
        let started = lines.iter().map(|words| start(words).map_err(|error| not_run(&words[0], &error)));
        started.collect::<Result<_, _>>().map(Self)
    }

    /// Waits for a moment; says whether the job goes on.
    ///
    /// # Errors
    /// The system refused to wait.
    pub fn goes_on(&mut self) -> io::Result<bool> {
        attend(&mut self.0)?;
        Ok(self.0.iter().any(|child| child.ended().is_none()))
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

    /// Which of its programs have failed, and why.
    pub fn failed(&self) -> Vec<(usize, String)> {
        let failed = |child: &Child| child.ended().is_some_and(|ended| !ended.status.success());
        let failed = self.0.iter().enumerate().filter(|(_, child)| failed(child));
        failed.map(|(at, child)| (at, why(child))).collect()
    }
}

impl Drop for Started<'_> {
    /// What is not over is asked to end: an mpirun that is killed leaves its ranks to themselves.
    fn drop(&mut self) {
        let _ = end_all(&mut self.0, GRACE);
    }
}

fn written(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    let cannot = |error| format!("cannot write {}: {}", path.display(), describe_errno(&error));
    write_anew(&path, 0o600, text.as_bytes()).map_err(cannot).map(|()| path.clone())
}

fn not_run(program: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!(
            "{program} is not installed here, or not on the PATH: this is to be run where jobs are submitted from; without --submit \
             the job is printed"
        ),
        _ => format!("cannot run {program}: {}", describe_errno(error)),
    }
}
