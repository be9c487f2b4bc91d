//! Slurm and Spark as engines: the program that hands them the partitions, and what came of it.

use std::fs::{self, File};
use std::io::{self, stderr, stdout};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::{file_on_path, shell_quoted};
use process::{run, write_anew};

use crate::spread::job::{Job, describe};
use crate::spread::work::end_of;

/// How often the folder of the work is looked at, which may be on another machine.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Slurm's tasks that are cancelled may take KillWait to end, 30 s by default (slurm.conf(5)).
const CANCELLED_WITHIN: Duration = Duration::from_secs(40);
/// What the engine's program says goes there.
const LOG: &str = "engine.log";

/// Who runs the partitions; elsewhere it is on machines that all see the folder of the work and this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// This machine.
    Here,
    /// An array job, and a job for the reduce that depends on it.
    Slurm,
    /// A program in Python.
    Spark,
}

impl Engine {
    /// Finds what takes the engine's program; nothing does for this machine.
    ///
    /// # Errors
    /// A sentence: it is not installed.
    pub fn submitter(self) -> Result<Option<PathBuf>, String> {
        let in_home = |home: PathBuf| Some(home.join("bin/spark-submit")).filter(|file| file.is_file());
        let of_python = || {
            // Without the folder that this was started in, of which -c makes the first place to look in. Not by -I: that leaves out
            // PYTHONPATH, too, which may say where pyspark is.
            let ask = "import sys; sys.path[:1] == [''] and sys.path.pop(0); import pyspark; print(pyspark.__path__[0], end='')";
            let said =
                Command::new("python3").args(["-c", ask]).output().ok().filter(|said| said.status.success());
            said.and_then(|said| String::from_utf8(said.stdout).ok()).map(PathBuf::from)
        };
        let (found, missing) = match self {
            Self::Here => return Ok(None),
            Self::Slurm => (
                file_on_path("sbatch").and(file_on_path("bash")),
                "sbatch is not on PATH: --submit needs the client programs of a Slurm cluster (Debian: slurm-client)",
            ),
            Self::Spark => (
                file_on_path("spark-submit")
                    .or_else(|| std::env::var_os("SPARK_HOME").map(PathBuf::from).and_then(in_home))
                    .or_else(|| of_python().and_then(in_home)),
                "spark-submit is not on PATH, not in $SPARK_HOME/bin, and python3 has no pyspark: --submit needs Spark, or pip install \
                 pyspark, and Java 17",
            ),
        };
        found.map(Some).ok_or(format!("{missing}. Without --submit the program is only printed"))
    }
}

/// A template with values in the place of their marks; what looks like a mark within a value is not replaced.
fn filled(template: &str, values: &[(&str, String)]) -> String {
    let (mut text, mut rest) = (String::new(), template);
    let next =
        |rest: &str| values.iter().filter_map(|(mark, value)| Some((rest.find(mark)?, *mark, value))).min();
    while let Some((at, mark, value)) = next(rest) {
        text += &rest[..at];
        text += value;
        rest = &rest[at + mark.len()..];
    }
    text + rest
}

impl Job<'_> {
    /// Writes into the folder which partitions are left and the engine's program that runs them, and reduces them. Gives its text,
    /// and the words that run it by hand.
    ///
    /// # Errors
    /// What the system answered.
    pub fn program(&self) -> io::Result<(String, Vec<String>)> {
        let left: Vec<String> = self.left().map(|number| format!("{number}\n")).collect();
        write_anew(&self.work.folder().join("left"), 0o666, left.concat().as_bytes())?;
        // A string of JSON is one of Python.
        let in_python = |text: &str| serde_json::Value::from(text).to_string();
        let (name, template, quoted): (_, _, fn(&str) -> String) = match self.engine {
            Engine::Spark => ("spark.py", include_str!("spark.py"), in_python),
            _ => ("slurm.sh", include_str!("slurm.sh"), |text| shell_quoted(text.as_bytes())),
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
        let text = filled(template, &text);
        let path = self.work.folder().join(name);
        write_anew(&path, 0o666, text.as_bytes())?;
        let submitted = match self.engine {
            Engine::Spark => [&["spark-submit".to_owned()], self.options].concat(),
            _ => vec!["bash".to_owned()],
        };
        Ok((text, [submitted, vec![path.to_string_lossy().into_owned()]].concat()))
    }

    /// As [`Job::map`], by the engine.
    pub(crate) fn map_there(&self, look: &mut dyn FnMut(usize, usize) -> bool) -> io::Result<Vec<String>> {
        let (_, words) = self.program()?;
        self.left().for_each(|number| drop(fs::remove_file(self.work.file(Some(number), "status"))));
        drop(fs::remove_file(self.work.file(None, "json")));
        let log = self.work.folder().join(LOG);
        write_anew(&log, 0o666, b"")?;
        let says = File::options().append(true).open(&log)?;
        let mut command = Command::new(self.submitter.unwrap_or(Path::new(&words[0])));
        command.args(&words[1..]).stdin(Stdio::null()).stdout(says.try_clone()?).stderr(says);
        // What a terminal sends to everybody would end the executors one by one, and Spark begins others.
        command.process_group(0);
        let (mut looked, mut seen, mut stops) = (None::<Instant>, (0, 0), false);
        run(command, CANCELLED_WITHIN, &mut || {
            if looked.is_none_or(|looked| looked.elapsed() > LOOK_EVERY) {
                (looked, seen) = (Some(Instant::now()), self.work.progress());
            }
            stops = look(seen.0, seen.1);
            stops
        })?;
        if stops {
            return Ok(Vec::new());
        }
        // Each look is at two files of a folder that may be on another machine.
        let left: Vec<usize> = self.left().collect();
        let mut failures: Vec<String> = left.iter().filter_map(|number| self.failed_there(*number)).collect();
        failures.extend(left.first().filter(|_| failures.is_empty()).map(|number| {
            let (hosepipe, log, said) = (self.hosepipe.display(), log.display(), end_of(&log));
            let how = format!(
                "was not run to its end: it was cancelled, or a node does not see the folder of the work, or {hosepipe}. What the engine said is in {log}{said}"
            );
            self.failed(*number, &how)
        }));
        if failures.is_empty() && self.work.record(None).is_none() {
            let said = end_of(&self.work.file(None, "log"));
            let how = format!("but their reduce did not come to its end{said}");
            failures.push(format!("all partitions are finished, {how}. With --resume it is run here"));
        }
        Ok(failures)
    }

    fn failed_there(&self, number: usize) -> Option<String> {
        let file = |what| self.work.file(Some(number), what);
        let status: i32 = fs::read_to_string(file("status")).ok()?.trim().parse().ok()?;
        let how = describe(ExitStatus::from_raw(status << 8));
        Some(self.failed(number, &(how + &end_of(&file("log")))))
    }

    /// Passes on what the reduce has written where the engine ran it; gives its status.
    ///
    /// # Errors
    /// It is not there, or nobody takes it.
    pub fn fetch(&self) -> io::Result<i32> {
        let copy = |from: PathBuf, to: &dyn AsFd| {
            let mut to = File::from(to.as_fd().try_clone_to_owned()?);
            io::copy(&mut File::open(from)?, &mut to)
        };
        copy(self.work.file(None, "log"), &stderr())?;
        copy(self.work.folder().join("reduced"), &stdout())?;
        Ok(self.work.record(None).map_or(0, |record| record.status))
    }
}
