//! Partitions submitted to Slurm or Spark: the program that runs them there, and their results.

use std::fs::{self, File};
use std::io::{self, stderr, stdout};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::shell_quoted;
use process::{run, write_anew};
use serde_json::json;

use crate::launcher::{Launcher, last_words, logged};
use crate::spread::job::SpreadJob;

/// How often the folder of the work, which may be on a file server, is read.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Cancelled tasks of Slurm may take KillWait to end, 30 s by default (slurm.conf(5)).
const CANCELLED_WITHIN: Duration = Duration::from_secs(40);
/// The output of the engine's program.
const LOG: &str = "engine.log";

impl SpreadJob<'_> {
    /// Writes into the folder the list of the partitions that are left, and the engine's program that runs and reduces them. Gives its
    /// text, and the words that run it by hand. The program begins with its values; the rest of it is always the same.
    ///
    /// # Errors
    /// What the system answered.
    pub fn program(&self) -> io::Result<(String, Vec<String>)> {
        let left = self.left();
        // Their output files, if any, have changed since they were finished.
        left.iter().for_each(|number| drop(fs::remove_file(self.work.file(Some(*number), "out"))));
        let list: String = left.iter().map(|number| format!("{number}\n")).collect();
        write_anew(&self.work.folder().join("left"), 0o666, list.as_bytes())?;
        let values = [
            ("work", self.work.folder().to_string_lossy().into_owned()),
            ("hosepipe", self.hosepipe.to_string_lossy().into_owned()),
            ("count", left.len().to_string()),
            ("jobs", self.jobs.map_or(String::new(), |jobs| jobs.to_string())),
            ("retries", self.retries.map_or(String::new(), |retries| retries.to_string())),
            ("keep_going", if self.keep_going { "--keep-going" } else { "" }.to_owned()),
            ("records", if self.records { "--records" } else { "" }.to_owned()),
        ];
        let (name, text, program) = if self.launcher == Launcher::Spark {
            // A string of JSON is one of Python.
            let set = |(name, value): (&str, String)| format!("{} = {}\n", name.to_uppercase(), json!(value));
            let text = values.map(set).concat() + include_str!("spark.py");
            let program = self.submitter.map_or("spark-submit".into(), |file| file.to_string_lossy());
            ("spark.py", text, [&[program.into_owned()], self.options].concat())
        } else {
            let quoted = |text: &String| shell_quoted(text.as_bytes());
            let set = |(name, value): (&str, String)| format!("{name}={}\n", quoted(&value));
            let options: Vec<String> = self.options.iter().map(quoted).collect();
            let text = format!(
                "#!/usr/bin/env bash\n{}options=({})\n{}{}",
                values.map(set).concat(),
                options.join(" "),
                include_str!("slurm.sh"),
                include_str!("../slurm.sh")
            );
            ("slurm.sh", text, vec!["bash".to_owned()])
        };
        let path = self.work.folder().join(name);
        write_anew(&path, 0o666, text.as_bytes())?;
        Ok((text, [program, vec![path.to_string_lossy().into_owned()]].concat()))
    }

    /// As [`SpreadJob::map`], by the program that is submitted.
    pub(crate) fn map_submitted(
        &self,
        report: &mut dyn FnMut(usize, usize) -> bool,
    ) -> io::Result<Vec<String>> {
        let (_, words) = self.program()?;
        drop(fs::remove_file(self.work.file(None, "json")));
        let log = self.work.folder().join(LOG);
        // Signals of the terminal would end the executors one by one, and Spark begins others.
        let command = logged(&words, &log)?;
        let (mut read_at, mut progress, mut stops) = (None::<Instant>, (0, 0), false);
        run(command, CANCELLED_WITHIN, &mut || {
            if read_at.is_none_or(|read_at| read_at.elapsed() > READ_EVERY) {
                (read_at, progress) = (Some(Instant::now()), self.work.progress());
            }
            stops = report(progress.0, progress.1);
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
            let how = format!("but the reduce step did not finish{said}");
            failures.push(format!("all partitions are finished, {how}. With --resume it is run here"));
        }
        Ok(failures)
    }

    /// Copies the output of a reduce that the engine ran to standard output and standard error; gives its status.
    ///
    /// # Errors
    /// There is no output, or standard output cannot be written.
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
