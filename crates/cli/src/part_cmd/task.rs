//! A task: runs partitions one after the other, each in a child of its own, and reports the result of each.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use process::{Child, attend_and_read, create_at, finish_all};
use remote::spread::{BEGUN, PartResult, RESULTS, Work, attempt_name, describe, last_words};
use rustix::fs::CWD;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stderr, dup2_stdin, stdin, stdout};

use super::{PartArgs, failed, map};
use crate::signals::StopRequest;

/// How long a partition may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

struct Task<'a> {
    args: &'a PartArgs,
    work: &'a Work,
    stop: StopRequest,
    attempt: String,
    results: File,
    /// The file of standard error, if it is one.
    log: Option<&'static Path>,
}

/// Runs the partitions that standard input names until it ends, or unfinished ones of a Slurm job until none is left.
pub(super) fn run(args: &PartArgs, work: &Work) -> anyhow::Result<ExitCode> {
    process::finish_with_parent()?;
    let results = match args.take {
        Some(_) => work.task_file(RESULTS).context("a file of results")?,
        None => fcntl_dupfd_cloexec(stdout(), 3)?.into(),
    };
    let log = (args.log || args.take.is_some()).then_some(Path::new("/proc/self/fd/2"));
    if log.is_some() {
        dup2_stderr(work.task_file(".log").context("a file for standard error")?)?;
    }
    let attempt = args.take.clone().unwrap_or_else(attempt_name);
    let task = Task { args, work, stop: StopRequest::listen()?, attempt, results, log };
    if args.take.is_none() { task.run_named() } else { task.run_unfinished() }
}

/// Runs one partition, whose bytes may come from standard input; its result is a line of standard output.
pub(super) fn run_one(args: &PartArgs, work: &Work, number: usize) -> anyhow::Result<ExitCode> {
    process::finish_with_parent()?;
    let results = fcntl_dupfd_cloexec(stdout(), 3)?;
    let (result, status) = map(args, work, number, &attempt_name())?;
    result.note(File::from(results))?;
    Ok(ExitCode::from((status & 0xff) as u8))
}

impl Task<'_> {
    fn run_named(&self) -> anyhow::Result<ExitCode> {
        writeln!(&self.results, "{BEGUN}{}", host::cpus().len())?;
        let mut numbers = io::stdin().lines();
        while let Some(number) = numbers.next().transpose()? {
            let number = number.parse().context("the number of a partition")?;
            let Some(result) = self.run(number)? else { break };
            result.note(&self.results)?;
        }
        Ok(self.stop.exit_code(false))
    }

    /// Runs unfinished partitions of the list: it begins at this task's share of the list, and continues with the shares of the others.
    fn run_unfinished(&self) -> anyhow::Result<ExitCode> {
        let list = self.work.folder().join("left");
        let text = fs::read_to_string(&list).context("the list of partitions")?;
        let mut left = text
            .lines()
            .map(str::parse)
            .collect::<Result<Vec<usize>, _>>()
            .context("the list of partitions")?;
        let of_slurm = |name| std::env::var(name).ok()?.parse::<usize>().ok();
        let (rank, tasks) =
            (of_slurm("SLURM_PROCID").unwrap_or(0), of_slurm("SLURM_NTASKS").unwrap_or(1).max(1));
        let first = left.len() * rank.min(tasks) / tasks;
        left.rotate_left(first);
        let mut has_failed = false;
        for number in left {
            // A failure of another task removes the list.
            if self.stop.is_set() || !list.exists() {
                break;
            }
            if !self.claim(number)? {
                continue;
            }
            for attempt in 0..=self.args.retries {
                let Some(result) = self.run(number)? else { return Ok(self.stop.exit_code(true)) };
                result.note(&self.results)?;
                if result.failure.is_none() {
                    break;
                }
                has_failed |= attempt == self.args.retries;
            }
            if has_failed && !self.args.keep_going {
                drop(fs::remove_file(&list));
            }
        }
        Ok(self.stop.exit_code(has_failed))
    }

    /// Takes a partition by making its output file. False if another task of the job has taken or finished it.
    fn claim(&self, number: usize) -> anyhow::Result<bool> {
        let (unfinished, output) =
            (self.work.unfinished(number, &self.attempt), self.work.file(Some(number), "out"));
        // The name has the number of the job: files of earlier jobs do not count.
        match create_at(CWD, &unfinished, 0o666, false) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            made => made.context("a file for the output")?,
        };
        if output.exists() {
            fs::remove_file(&unfinished)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Runs a partition in a child. `None` if this task was asked to end, or standard input has ended: the child is ended, too.
    fn run(&self, number: usize) -> anyhow::Result<Option<PartResult>> {
        let log_bytes = self.log.map(|log| fs::metadata(log).map_or(0, |log| log.len()));
        let child = Child::fork(c"hosepipe-part", |report| {
            let prepared = File::open("/dev/null").and_then(|null| Ok(dup2_stdin(null)?));
            let prepared = prepared.context("standard input");
            let result = prepared.and_then(|()| map(self.args, self.work, number, &self.attempt));
            let result = result.map(|(result, _)| result).unwrap_or_else(|error| {
                failed(number, format!("could not be run: {}", model::one_line(&format!("{error:#}"))))
            });
            let _ = result.note(report);
        });
        let mut child = [child.context("a process for the partition")?];
        let input = stdin();
        let inputs: &[_] = if self.args.take.is_none() { &[input.as_fd()] } else { &[] };
        while child[0].ended().is_none() {
            // The next number comes only after this result: if standard input is readable, it has ended.
            let is_over = attend_and_read(&mut child, inputs)?.contains(&true);
            if self.stop.is_set() || is_over {
                let kept = process::adopt_orphans()?;
                finish_all(&mut child, GRACE)?;
                process::kill_children_except(&kept);
                return Ok(None);
            }
        }
        let result = model::from_json(child[0].captured_output()).ok();
        let status = child[0].ended().map_or(ExitStatus::default(), |ended| ended.status);
        let mut result = result.unwrap_or_else(|| failed(number, describe(status)));
        if let (Some(failure), Some((log, log_bytes))) = (&mut result.failure, self.log.zip(log_bytes)) {
            *failure += &last_words(log, log_bytes);
        }
        Ok(Some(result))
    }
}
