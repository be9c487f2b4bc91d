//! A job: the partitions of the input, and how to run them.

use std::io;
use std::path::Path;
use std::process::ExitStatus;

use process::describe_ending;

use crate::launcher::Launcher;
use crate::spread::blocks::Blocks;
use crate::spread::partition::shown;
use crate::spread::work::{SpreadPlan, Work};

/// The exit status of `hosepipe __part` if the pipeline could not be run.
pub const NOT_RUN: u8 = 125;

/// The partitions of a work, and how they are run.
pub struct SpreadJob<'a> {
    /// This machine, ssh, Slurm or Spark.
    pub launcher: Launcher,
    /// The destinations of ssh.
    pub hosts: &'a [String],
    /// The file of the program that submits them to Slurm or Spark.
    pub submitter: Option<&'a Path>,
    /// Options for that program.
    pub options: &'a [String],
    /// The folder of the work.
    pub work: &'a Work,
    /// The plan of the work.
    pub plan: &'a SpreadPlan,
    /// The file of this program, under the same path on every host.
    pub hosepipe: &'a Path,
    /// Most tasks at a time, on each host; for Slurm and Spark the number of tasks. `None`: with ssh the number of CPUs of each host, else the
    /// launcher decides.
    pub jobs: Option<usize>,
    /// How often a failed partition is run again; `None`: the launcher decides.
    pub retries: Option<u32>,
    /// Whether other partitions are begun after one has failed.
    pub keep_going: bool,
    /// Whether the stages are recorded.
    pub records: bool,
}

impl SpreadJob<'_> {
    /// Runs the partitions that have not succeeded yet, and those that are read from `blocks`; Slurm and Spark also run the reduce step. Returns a
    /// sentence for each partition that failed. `progress` is called often, with the numbers of partitions that have succeeded and that run; once it
    /// returns true, the running partitions are ended, and do not count as failed. `remark` is called with messages for the user.
    ///
    /// # Errors
    /// A program could not be started or waited for; none runs any more.
    pub fn map(
        &self,
        blocks: Option<Blocks<'_>>,
        progress: &mut dyn FnMut(usize, usize) -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> io::Result<Vec<String>> {
        let failures = if self.launcher.starts_each() {
            self.map_each(blocks, progress, remark)
        } else {
            self.map_submitted(progress)
        };
        self.work.tidy();
        failures
    }

    /// The number of partitions. If the input is standard input, the number is 0 until that has ended.
    pub fn count(&self) -> usize {
        if self.plan.is_stdin { self.work.blocks().unwrap_or(0) } else { self.plan.partitions.len() }
    }

    /// The partitions that have not succeeded yet.
    pub fn left(&self) -> Vec<usize> {
        let results = self.work.results();
        let is_left = |number: &usize| results.get(number).is_none_or(|result| result.failure.is_some());
        (0..self.count()).filter(is_left).collect()
    }

    /// A sentence about a failed partition; `how` is its end.
    pub(crate) fn failed(&self, number: usize, how: &str) -> String {
        if self.plan.is_stdin {
            return format!("block {} of standard input {how}", number + 1);
        }
        let what = match self.plan.partitions[number].as_slice() {
            [range] if range.offset == 0 => shown(&range.file.path),
            [range] => format!("{} from byte {} on", shown(&range.file.path), range.offset),
            ranges => format!("{} ranges", ranges.len()),
        };
        format!("partition {} of {} ({what}) {how}", number + 1, self.plan.partitions.len())
    }
}

/// How the program of a partition ended, as the end of a sentence.
pub fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) if code == i32::from(NOT_RUN) => "could not be run".to_owned(),
        _ => describe_ending(status),
    }
}
