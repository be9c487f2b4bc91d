//! Partitions handed to Slurm or Spark: the program that does it, and what came of it.

use std::fs::{self, File};
use std::io::{self, stderr, stdout};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::shell_quoted;
use process::{run, write_anew};

use crate::launcher::{Launcher, last_words, logged};
use crate::spread::job::SpreadJob;

/// How often the folder of the work is looked at, which may be on another machine.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Slurm's tasks that are cancelled may take KillWait to end, 30 s by default (slurm.conf(5)).
const CANCELLED_WITHIN: Duration = Duration::from_secs(40);
/// What the engine's program says goes there.
const LOG: &str = "engine.log";

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

impl SpreadJob<'_> {
    /// Writes into the folder which partitions are left and the engine's program that runs them, and reduces them. Gives its text,
    /// and the words that run it by hand.
    ///
    /// # Errors
    /// What the system answered.
    pub fn program(&self) -> io::Result<(String, Vec<String>)> {
        let left = self.left();
        // What is there of them is of no use: it is not as long as it was.
        left.iter().for_each(|number| drop(fs::remove_file(self.work.file(Some(*number), "out"))));
        let left: Vec<String> = left.iter().map(|number| format!("{number}\n")).collect();
        write_anew(&self.work.folder().join("left"), 0o666, left.concat().as_bytes())?;
        // A string of JSON is one of Python.
        let in_python = |text: &str| serde_json::Value::from(text).to_string();
        let (name, template, quoted): (_, _, fn(&str) -> String) = match self.launcher {
            Launcher::Spark => ("spark.py", include_str!("spark.py"), in_python),
            _ => {
                let program = concat!(include_str!("slurm.sh"), include_str!("../slurm.sh"));
                ("slurm.sh", program, |text| shell_quoted(text.as_bytes()))
            }
        };
        let options: Vec<String> = self.options.iter().map(|option| quoted(option)).collect();
        let retries = self.retries.map(|retries| format!("--retries={retries} "));
        let flags = [(self.keep_going, "--keep-going "), (self.records, "--records")];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| *flag).collect();
        let text = [
            ("{take}", retries.unwrap_or_default() + &flags),
            ("{count}", left.len().to_string()),
            ("{retries}", self.retries.map_or(String::new(), |retries| retries.to_string())),
            ("{keep_going}", self.keep_going.to_string()),
            ("{records}", if self.records { "--records" } else { "" }.to_owned()),
            ("{jobs}", self.jobs.map_or(String::new(), |jobs| jobs.to_string())),
            ("{options}", options.join(" ")),
            ("{hosepipe}", quoted(&self.hosepipe.to_string_lossy())),
            ("{work}", quoted(&self.work.folder().to_string_lossy())),
        ];
        let text = filled(template, &text);
        let path = self.work.folder().join(name);
        write_anew(&path, 0o666, text.as_bytes())?;
        let submitted = match self.launcher {
            Launcher::Spark => {
                let program = self.submitter.map_or("spark-submit".into(), |file| file.to_string_lossy());
                [&[program.into_owned()], self.options].concat()
            }
            _ => vec!["bash".to_owned()],
        };
        Ok((text, [submitted, vec![path.to_string_lossy().into_owned()]].concat()))
    }

    /// As [`SpreadJob::map`], by the program that is submitted.
    pub(crate) fn map_submitted(
        &self,
        look: &mut dyn FnMut(usize, usize) -> bool,
    ) -> io::Result<Vec<String>> {
        let (_, words) = self.program()?;
        drop(fs::remove_file(self.work.file(None, "json")));
        let log = self.work.folder().join(LOG);
        // Signals of the terminal would end the executors one by one, and Spark begins others.
        let command = logged(&words, &log)?;
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
        let results = self.work.results();
        let failed = results.values().filter_map(|result| Some((result.partition, result.failure.as_ref()?)));
        let mut failures: Vec<String> =
            failed.map(|(number, failure)| self.failed(number, failure)).collect();
        let not_run = (0..self.count()).find(|number| !results.contains_key(number));
        failures.extend(not_run.filter(|_| failures.is_empty()).map(|number| {
            let (hosepipe, log, said) = (self.hosepipe.display(), log.display(), last_words(&log, 0));
            let how = format!(
                "was not run to its end: it was cancelled, or a node does not see the folder of the work, or {hosepipe}. What the engine said is in {log}{said}"
            );
            self.failed(number, &how)
        }));
        if failures.is_empty() && self.work.record().is_none() {
            let said = last_words(&self.work.file(None, "log"), 0);
            let how = format!("but their reduce did not come to its end{said}");
            failures.push(format!("all partitions are finished, {how}. With --resume it is run here"));
        }
        Ok(failures)
    }

    /// Passes on what the reduce has written where the engine ran it; gives its status.
    ///
    /// # Errors
    /// It is not there, or standard output takes nothing.
    pub fn fetch(&self) -> io::Result<i32> {
        let copy = |from: PathBuf, to: &dyn AsFd| {
            let mut to = File::from(to.as_fd().try_clone_to_owned()?);
            io::copy(&mut File::open(from)?, &mut to)
        };
        copy(self.work.file(None, "log"), &stderr())?;
        copy(self.work.folder().join("reduced"), &stdout())?;
        Ok(self.work.record().map_or(0, |record| record.status))
    }
}
