//! The folder of a spread: its plan, what came out of each partition once it has succeeded, and a file for each task with a line for each
//! partition that it ran.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use model::{RunRecord, describe_errno};
use process::{make_own_folder, open_own, write_anew};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::spread::partition::{InputFile, Range, shown};

/// How the name of a file ends into which a partition writes while it is run.
const UNFINISHED: &str = ".unfinished";
/// How the name of a task's file ends.
pub const RESULTS: &str = ".results";

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpreadPlan {
    /// Which hosepipe made it: no other goes on with it.
    pub version: String,
    /// The text that is run for each partition.
    pub map: String,
    /// The text that is run over what came out.
    pub reduce: String,
    /// Whether the reduce reads the names of what came out, each followed by a NUL; else it reads one output after the other.
    #[serde(default)]
    pub reduce_reads_names: bool,
    /// The link between the stages.
    pub via: String,
    /// The shell.
    pub shell: String,
    /// Whether a text fails with any of its stages.
    pub pipefail: bool,
    /// Whether partitions are the blocks of a standard input, each in a file of its own in the folder, and made while others are run.
    #[serde(default)]
    pub is_stdin: bool,
    /// What each run of the map reads, one range after the other; one of nothing for all blocks of a standard input.
    pub partitions: Vec<Vec<Range>>,
}

/// How a partition ended: a line of the file of the task that ran it.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartResult {
    /// Its number, from 0.
    pub partition: usize,
    /// The length of what came out.
    #[serde(default)]
    pub bytes: u64,
    /// The rest of a sentence that begins with the partition; absent where it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What its stages did, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RunRecord>,
}

impl PartResult {
    /// Adds its line to a file of results, or sends it to the program that started this one.
    ///
    /// # Errors
    /// What the system answered: a full disk, for example.
    pub fn note(&self, mut results: impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        results.write_all(&line)
    }
}

/// The folder.
#[derive(Debug)]
pub struct Work {
    folder: PathBuf,
    /// The lock of the process that drives the work.
    _lock: Option<OwnedFd>,
}

impl Work {
    /// Begins in a folder in which no partition was begun yet, or, to `resume`, goes on with what was begun there by the same plan.
    ///
    /// # Errors
    /// A sentence: it was begun, or not, or by another plan; another process works there; it cannot be written.
    pub fn begin(folder: &Path, plan: &SpreadPlan, resume: bool) -> Result<Self, String> {
        let name = shown(folder);
        folder
            .to_str()
            .ok_or_else(|| format!("cannot use {name} for the work: its name is not text in UTF-8"))?;
        let refused = |error| format!("cannot use {name} for the work: {}", describe_errno(&error));
        if resume {
            // One that is not there is not made.
            fs::metadata(folder).map_err(refused)?;
        }
        make_own_folder(folder).map_err(refused)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = open(folder, flags, Mode::empty()).map_err(|error| refused(error.into()))?;
        // Where a file system has no such locks, two at the same moment are not seen.
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
            // What is finished may be reduced in another way.
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
        }
        if resume && plan.is_stdin && work.blocks().is_none() {
            return Err(format!(
                "the standard input of the work in {name} was not read to its end: begin anew, with another --work"
            ));
        }
        if resume {
            work.keep_successes().map_err(refused)?;
        }
        work.write(plan).map_err(refused)?;
        Ok(work)
    }

    /// What earlier tasks have noted, in one file, without the failures: those are run again.
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

    /// A folder in which another process drives the work.
    pub fn open(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _lock: None }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn plan_file(&self) -> PathBuf {
        self.folder.join("plan.jsonl")
    }

    /// Writes a plan for each partition as a line of its own: a program for one of many thousands must not read about all of them. The
    /// lines are padded to one length, so that each is found by its number.
    fn write(&self, plan: &SpreadPlan) -> io::Result<()> {
        let texts = SpreadPlan { partitions: Vec::new(), ..plan.clone() };
        let alone = |ranges: &Vec<Range>| SpreadPlan { partitions: vec![ranges.clone()], ..texts.clone() };
        let lines = plan.partitions.iter().map(|ranges| serde_json::to_string(&alone(ranges)));
        let lines = lines.collect::<Result<Vec<String>, _>>()?;
        let longest = lines.iter().map(String::len).max().unwrap_or(0);
        let padded = lines.iter().map(|line| [line, &" ".repeat(longest - line.len()), "\n"].concat());
        // A program that an engine still runs may be reading it.
        let new = self.folder.join("plan.new");
        write_anew(&new, 0o666, padded.collect::<String>().as_bytes())?;
        fs::rename(new, self.plan_file())
    }

    /// What is to be done for one partition: the plan as if it were the only one; and how many there are.
    ///
    /// # Errors
    /// There is no plan, or no such partition in it.
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
        Ok((serde_json::from_slice(&line)?, count))
    }

    /// What is to be done for all of them.
    fn plan(&self) -> io::Result<SpreadPlan> {
        let (mut plan, _) = self.plan_of(0)?;
        plan.partitions.clear();
        for line in BufReader::new(open_own(&self.plan_file())?).lines() {
            plan.partitions.extend(serde_json::from_str::<SpreadPlan>(&line?)?.partitions);
        }
        Ok(plan)
    }

    fn entries(&self) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    }

    /// How many partitions have an output, and how many are being run: one look at the folder, which may be on another machine.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let names: Vec<String> = self.entries().collect();
        let count = |end| names.iter().filter(|name| name.ends_with(end)).count();
        (count(".out"), count(UNFINISHED))
    }

    /// Removes what programs that were ended left behind: to be called when none runs any more.
    pub(crate) fn tidy(&self) {
        let left = self.entries().filter(|name| is_of_a_partition(name) && name.ends_with(UNFINISHED));
        left.for_each(|name| drop(fs::remove_file(self.folder.join(name))));
    }

    /// What belongs to a partition, counted from 0, or to the reduce: `out`, `in` (a block of standard input), of the reduce `json` (its record)
    /// and with an engine `log`.
    pub fn file(&self, number: Option<usize>, what: &str) -> PathBuf {
        let name = number.map_or("reduce".to_owned(), |number| format!("{:06}", number + 1));
        self.folder.join(format!("{name}.{what}"))
    }

    /// Where a partition writes while the attempt of this name runs it: an engine may begin it elsewhere, too, before this one has ended.
    pub fn unfinished(&self, number: usize, attempt: &str) -> PathBuf {
        self.file(Some(number), &format!("{attempt}{UNFINISHED}"))
    }

    /// It has succeeded: what came out gets its name. Gives its length.
    ///
    /// # Errors
    /// What the system answered: a full disk, for example.
    pub fn finish(&self, number: usize, attempt: &str) -> io::Result<u64> {
        let unfinished = self.unfinished(number, attempt);
        let bytes = fs::metadata(&unfinished)?.len();
        fs::rename(unfinished, self.file(Some(number), "out"))?;
        Ok(bytes)
    }

    /// A file of this process, a task, to which lines are added: [`RESULTS`], or `.log`, what it writes to standard error.
    ///
    /// # Errors
    /// What the system answered.
    pub fn task_file(&self, what: &str) -> io::Result<File> {
        let path = self.folder.join(attempt_name() + what);
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open(&path, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// How partitions have ended, as far as that was noted: successes that are as long as they were then, and failures of those that have
    /// not succeeded.
    pub fn results(&self) -> BTreeMap<usize, PartResult> {
        let mut results = BTreeMap::<usize, PartResult>::new();
        let files = self.entries().filter(|name| name.ends_with(RESULTS));
        let files = files.filter_map(|name| open_own(&self.folder.join(name)).ok());
        // A line that a task was ended in is none.
        for line in files.flat_map(|file| BufReader::new(file).split(b'\n').map_while(Result::ok)) {
            let Ok(result) = serde_json::from_slice::<PartResult>(&line) else { continue };
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

    /// How many blocks a standard input had, once it has ended.
    pub fn blocks(&self) -> Option<usize> {
        fs::read_to_string(self.folder.join("blocks")).ok()?.parse().ok()
    }

    /// The record of the reduce, if there is one.
    pub fn record(&self) -> Option<RunRecord> {
        serde_json::from_slice(&fs::read(self.file(None, "json")).ok()?).ok()
    }

    /// What came out of the first `count` partitions, in their order.
    ///
    /// # Errors
    /// A sentence: one is not there.
    pub fn outputs(&self, count: usize) -> Result<Vec<Range>, String> {
        let look = |number| InputFile::look(&self.file(Some(number), "out"));
        (0..count).map(|number| look(number).map(InputFile::whole)).collect()
    }
}

/// What tells this process from those on other hosts.
pub fn attempt_name() -> String {
    format!("{}.{}", rustix::system::uname().nodename().to_string_lossy(), std::process::id())
}

fn is_of_a_partition(name: &str) -> bool {
    let number = name.split('.').next().unwrap_or_default();
    number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
}
