//! What is to be run, and by which launcher.

use std::io;
use std::path::Path;
use std::process::ExitStatus;

use process::describe_ending;

use crate::launcher::Launcher;
use crate::spread::blocks::Blocks;
use crate::spread::partition::shown;
use crate::spread::work::{SpreadPlan, Work};

/// The exit status of `hosepipe __part` where it could not run the text, or not as was asked.
pub const NOT_RUN: u8 = 125;

/// The partitions of a work, and how they are run.
pub struct SpreadJob<'a> {
    /// What starts them: this machine, ssh, Slurm or Spark.
    pub launcher: Launcher,
    /// Where ssh runs them, as it takes destinations.
    pub hosts: &'a [String],
    /// The file of the program that takes them, where they are handed to Slurm or Spark.
    pub submitter: Option<&'a Path>,
    /// For that program, as they are.
    pub options: &'a [String],
    /// The folder.
    pub work: &'a Work,
    /// What is to be done there.
    pub plan: &'a SpreadPlan,
    /// This program's own file, under the same path everywhere.
    pub hosepipe: &'a Path,
    /// How many at a time, on each host; for Slurm and Spark the number of tasks, each of which may run several. `None`: by ssh the number
    /// of CPUs of each host, else as the launcher decides.
    pub jobs: Option<usize>,
    /// How often one that failed is tried again, where the engine shall not decide that.
    pub retries: Option<u32>,
    /// Whether others are begun after one has failed for good.
    pub keep_going: bool,
    /// Whether it is recorded what stages did.
    pub records: bool,
}

impl SpreadJob<'_> {
    /// Runs the partitions that have not succeeded yet, and those that come from `blocks`; Slurm and Spark run their reduce, too. Gives
    /// sentences that say which failed. `look` is called again and again with the numbers of those that have succeeded and that run, and says
    /// when to stop: what runs is ended then, and has not failed. `remark` is called with what the user should know meanwhile.
    ///
    /// # Errors
    /// A program could not be started or waited for; none runs here any more then.
    pub fn map(
        &self,
        blocks: Option<Blocks<'_>>,
        look: &mut dyn FnMut(usize, usize) -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> io::Result<Vec<String>> {
        let failures = match self.launcher {
            Launcher::Local | Launcher::Ssh => self.map_each(blocks, look, remark),
            _ => self.map_submitted(look),
        };
        self.work.tidy();
        failures
    }

    /// How many partitions there are: of a standard input, once it has ended.
    pub fn count(&self) -> usize {
        if self.plan.is_stdin { self.work.blocks().unwrap_or(0) } else { self.plan.partitions.len() }
    }

    /// The partitions that have not succeeded yet.
    pub fn left(&self) -> Vec<usize> {
        let results = self.work.results();
        let is_left = |number: &usize| results.get(number).is_none_or(|result| result.failure.is_some());
        (0..self.count()).filter(is_left).collect()
    }

    /// A sentence about a partition.
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

/// How the program for a partition ended, as the rest of a sentence.
pub fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) if code == i32::from(NOT_RUN) => "could not be run".to_owned(),
        _ => describe_ending(status),
    }
}
