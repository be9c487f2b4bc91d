//! The folder of a spread: its plan, the output of each partition that has succeeded, and for each task a file with a line for each partition
//! that it ran.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use model::{RunRecord, describe_errno};
use process::{make_own_folder, open_own, write_anew};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::spread::partition::{InputFile, Range, shown};

/// Suffix of the output of a partition while it runs.
const UNFINISHED: &str = ".unfinished";
/// Suffix of the file with a task's results.
pub const RESULTS: &str = ".results";

/// The plan of a spread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpreadPlan {
    /// The version of hosepipe that made it; no other version continues it.
    pub version: String,
    /// The text that is run for each partition.
    pub map: String,
    /// The text that is run over the outputs.
    pub reduce: String,
    /// Whether the reduce reads the names of the outputs, each followed by a NUL; else it reads one output after the other.
    #[serde(default)]
    pub reduce_reads_names: bool,
    /// The link between the stages.
    pub via: String,
    /// The shell.
    pub shell: String,
    /// Whether a text fails with any of its stages.
    pub pipefail: bool,
    /// Whether partitions are the blocks of a standard input, each in a file in the folder, made while others are run.
    #[serde(default)]
    pub is_stdin: bool,
    /// The input of each run of the map, one range after the other; of a standard input, one empty entry for all blocks.
    pub partitions: Vec<Vec<Range>>,
}

/// How a partition ended: a line in the file of its task.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartResult {
    /// Its number, from 0.
    pub partition: usize,
    /// The length of its output.
    #[serde(default)]
    pub bytes: u64,
    /// The rest of a sentence that begins with the partition; absent if it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The record of its stages, if wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RunRecord>,
}

impl PartResult {
    /// Adds its line to a file of results, or sends it to the program that started this one.
    ///
    /// # Errors
    /// An error of write(2): a full disk, for example.
    pub fn note(&self, mut results: impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        results.write_all(&line)
    }
}

/// The folder of a spread.
#[derive(Debug)]
pub struct Work {
    folder: PathBuf,
    /// The lock of the process that runs the work.
    _lock: Option<OwnedFd>,
}

impl Work {
    /// Begins in a folder without work, or with `resume` continues the work of the same plan.
    ///
    /// # Errors
    /// A sentence: the folder has work, or none, or of another plan; another process works there; it cannot be written.
    pub fn begin(folder: &Path, plan: &SpreadPlan, resume: bool) -> Result<Self, String> {
        let name = shown(folder);
        folder
            .to_str()
            .ok_or_else(|| format!("cannot use {name} for the work: its name is not text in UTF-8"))?;
        let refused = |error| format!("cannot use {name} for the work: {}", describe_errno(&error));
        if resume {
            // A missing folder is an error here.
            fs::metadata(folder).map_err(refused)?;
        }
        make_own_folder(folder).map_err(refused)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = open(folder, flags, Mode::empty()).map_err(|error| refused(error.into()))?;
        // A file system without such locks does not detect a second process.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(format!("another hosepipe works in {name} right now"));
        }
        let work = Self { folder: folder.to_owned(), _lock: Some(lock) };
        if !resume && work.entries().any(|name| is_of_a_partition(&name) || name.ends_with(RESULTS)) {
            return Err(format!(
                "{name} holds work already: --resume goes on with it, and another --work begins anew"
            ));
        }
        if resume {
            let nothing = |_| format!("{name} holds no work to go on with: leave --resume out");
            let found = work.plan().map_err(nothing)?;
            // The reduce may differ.
            let files = |plan: &SpreadPlan| plan.partitions.concat().into_iter().map(|range| range.file);
            let changed =
                files(&found).zip(files(plan)).find(|(old, new)| old.path == new.path && old != new);
            let changed = changed.map(|(old, _)| format!("content of {}", shown(&old.path)));
            let (reduce, reduce_reads_names) = (plan.reduce.clone(), plan.reduce_reads_names);
            let what = match (SpreadPlan { reduce, reduce_reads_names, ..found }) {
                found if found == *plan => None,
                found if found.version != plan.version => Some("version of hosepipe".to_owned()),
                found if found.partitions == plan.partitions => Some("MAP, link or shell".to_owned()),
                _ => changed.or(Some("list of inputs, or another --split".to_owned())),
            };
            if let Some(what) = what {
                return Err(format!(
                    "{name} holds work with another {what}: finish that, or name another --work"
                ));
            }
            if plan.is_stdin && work.blocks().is_none() {
                return Err(format!(
                    "the standard input of the work in {name} was not read to its end: start again, with another --work"
                ));
            }
            work.keep_successes().map_err(refused)?;
        }
        work.write(plan).map_err(refused)?;
        Ok(work)
    }

    /// Writes the successes of earlier tasks into one file and removes theirs; failed partitions are run again.
    fn keep_successes(&self) -> io::Result<()> {
        let mut lines = Vec::new();
        let successes = self.results().into_values().filter(|result| result.failure.is_none());
        successes.into_iter().try_for_each(|result| result.note(&mut lines))?;
        let old: Vec<String> = self.entries().filter(|name| name.ends_with(RESULTS)).collect();
        let kept = format!("finished{RESULTS}");
        write_anew(&self.folder.join("finished.new"), 0o666, &lines)?;
        fs::rename(self.folder.join("finished.new"), self.folder.join(&kept))?;
        old.iter().filter(|name| **name != kept).try_for_each(|name| fs::remove_file(self.folder.join(name)))
    }

    /// A folder in which another process runs the work.
    pub fn open(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _lock: None }
    }

    /// Its path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn plan_file(&self) -> PathBuf {
        self.folder.join("plan.jsonl")
    }

    /// Writes a plan for each partition as a line, padded to one length: a program for one of many thousands reads only its line, found by its
    /// number.
    fn write(&self, plan: &SpreadPlan) -> io::Result<()> {
        let texts = SpreadPlan { partitions: Vec::new(), ..plan.clone() };
        let alone = |ranges: &Vec<Range>| SpreadPlan { partitions: vec![ranges.clone()], ..texts.clone() };
        let lines = plan.partitions.iter().map(|ranges| serde_json::to_string(&alone(ranges)));
        let lines = lines.collect::<Result<Vec<String>, _>>()?;
        let longest = lines.iter().map(String::len).max().unwrap_or(0);
        let padded = lines.iter().map(|line| [line, &" ".repeat(longest - line.len()), "\n"].concat());
        // A program that Slurm or Spark still runs may be reading the old one.
        let new = self.folder.join("plan.new");
        write_anew(&new, 0o666, padded.collect::<String>().as_bytes())?;
        fs::rename(new, self.plan_file())
    }

    /// The plan with one partition only, and the number of partitions.
    ///
    /// # Errors
    /// There is no plan, or no such partition.
    pub fn plan_of(&self, number: usize) -> io::Result<(SpreadPlan, usize)> {
        let file = open_own(&self.plan_file())?;
        let bytes = file.metadata()?.len();
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        let line_bytes = lines.read_until(b'\n', &mut line)? as u64;
        let count = bytes.checked_div(line_bytes).unwrap_or(0) as usize;
        // The blocks of a standard input share the only line.
        if number > 0 && count > 1 {
            lines.seek(SeekFrom::Start(line_bytes * number as u64))?;
            line.clear();
            lines.read_until(b'\n', &mut line)?;
        }
        Ok((model::from_json(&line)?, count))
    }

    /// The whole plan.
    fn plan(&self) -> io::Result<SpreadPlan> {
        let (mut plan, _) = self.plan_of(0)?;
        plan.partitions.clear();
        for line in BufReader::new(open_own(&self.plan_file())?).lines() {
            plan.partitions.extend(model::from_json::<SpreadPlan>(line?)?.partitions);
        }
        Ok(plan)
    }

    fn entries(&self) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    }

    /// The numbers of partitions that have an output and that run, by one read of the folder, which may be on a file server.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let names: Vec<String> = self.entries().collect();
        let count = |end| names.iter().filter(|name| name.ends_with(end)).count();
        (count(".out"), count(UNFINISHED))
    }

    /// Removes the unfinished outputs of programs that were ended. None may still run.
    pub(crate) fn tidy(&self) {
        let left = self.entries().filter(|name| is_of_a_partition(name) && name.ends_with(UNFINISHED));
        left.for_each(|name| drop(fs::remove_file(self.folder.join(name))));
    }

    /// A file of a partition, counted from 0, or of the reduce: `out`, `in` (a block of standard input), of the reduce `json` (its record) and
    /// with Slurm and Spark `log`.
    pub fn file(&self, number: Option<usize>, what: &str) -> PathBuf {
        let name = number.map_or("reduce".to_owned(), |number| format!("{:06}", number + 1));
        self.folder.join(format!("{name}.{what}"))
    }

    /// The output of a partition while an attempt runs it. An engine may start a second attempt before the first one has ended, so each has a
    /// name.
    pub fn unfinished(&self, number: usize, attempt: &str) -> PathBuf {
        self.file(Some(number), &format!("{attempt}{UNFINISHED}"))
    }

    /// Gives the output of an attempt that has succeeded its final name. Returns its length.
    ///
    /// # Errors
    /// An error of rename(2).
    pub fn finish(&self, number: usize, attempt: &str) -> io::Result<u64> {
        let unfinished = self.unfinished(number, attempt);
        let bytes = fs::metadata(&unfinished)?.len();
        fs::rename(unfinished, self.file(Some(number), "out"))?;
        Ok(bytes)
    }

    /// A file of this process, a task, opened for appending: [`RESULTS`], or `.log` for its standard error.
    ///
    /// # Errors
    /// What the system answered.
    pub fn task_file(&self, what: &str) -> io::Result<File> {
        let path = self.folder.join(attempt_name() + what);
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open(&path, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// The results of partitions: successes whose outputs still have the same length, and failures of the partitions that have not
    /// succeeded.
    pub fn results(&self) -> BTreeMap<usize, PartResult> {
        let mut results = BTreeMap::<usize, PartResult>::new();
        let files = self.entries().filter(|name| name.ends_with(RESULTS));
        let files = files.filter_map(|name| open_own(&self.folder.join(name)).ok());
        // A task that was killed may leave part of a line.
        for line in files.flat_map(|file| BufReader::new(file).split(b'\n').map_while(Result::ok)) {
            let Ok(result) = model::from_json::<PartResult>(line) else { continue };
            let output = || fs::metadata(self.file(Some(result.partition), "out"));
            let is_finished = result.failure.is_none();
            if is_finished && !output().is_ok_and(|output| output.len() == result.bytes) {
                continue;
            }
            if is_finished || results.get(&result.partition).is_none_or(|known| known.failure.is_some()) {
                results.insert(result.partition, result);
            }
        }
        results
    }

    /// The number of blocks of a standard input, once it has ended.
    pub fn blocks(&self) -> Option<usize> {
        fs::read_to_string(self.folder.join("blocks")).ok()?.parse().ok()
    }

    /// The record of the reduce, if there is one.
    pub fn record(&self) -> Option<RunRecord> {
        model::from_json(fs::read(self.file(None, "json")).ok()?).ok()
    }

    /// The outputs of the first `count` partitions, in order.
    ///
    /// # Errors
    /// A sentence: one is missing.
    pub fn outputs(&self, count: usize) -> Result<Vec<Range>, String> {
        let look = |number| InputFile::from_path(&self.file(Some(number), "out"));
        (0..count).map(|number| look(number).map(InputFile::whole)).collect()
    }
}

/// A name for this process that no other process has. Containers may have the same host name and the same PIDs, so that a random number is in it.
pub fn attempt_name() -> String {
    static RANDOM: OnceLock<u32> = OnceLock::new();
    let (system, process) = (rustix::system::uname(), std::process::id());
    let random = RANDOM.get_or_init(|| fastrand::u32(..));
    format!("{}.{process}.{random:08x}", system.nodename().to_string_lossy())
}

fn is_of_a_partition(name: &str) -> bool {
    let number = name.split('.').next().unwrap_or_default();
    number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
}
