//! The folder of a spread: its plan, and for each partition what came out once it has succeeded.

use std::fs;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
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
    /// What each run of the map reads, one range after the other.
    pub partitions: Vec<Vec<Range>>,
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
        if !resume && work.entries().any(|name| is_of_a_partition(&name)) {
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
        work.write(plan).map_err(refused)?;
        Ok(work)
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
        lines.seek(SeekFrom::Start(line_bytes * number as u64))?;
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Err(io::Error::other("there is no such partition"));
        }
        Ok((serde_json::from_slice(&line)?, (bytes / line_bytes) as usize))
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

    /// What belongs to a partition, counted from 0, or to the reduce: `out`, `json` (the record), with an engine `log` and `status`.
    pub fn file(&self, number: Option<usize>, what: &str) -> PathBuf {
        let name = number.map_or("reduce".to_owned(), |number| format!("{:06}", number + 1));
        self.folder.join(format!("{name}.{what}"))
    }

    /// Where a partition writes while this process runs it: an engine may begin it elsewhere, too, before this one has ended.
    pub fn unfinished(&self, number: usize) -> PathBuf {
        let (node, process) = (rustix::system::uname(), std::process::id());
        self.file(Some(number), &format!("{}.{process}{UNFINISHED}", node.nodename().to_string_lossy()))
    }

    /// It has succeeded: what came out gets its name.
    ///
    /// # Errors
    /// What the system answered: a full disk, for example.
    pub fn finish(&self, number: usize) -> io::Result<()> {
        let bytes = fs::metadata(self.unfinished(number))?.len();
        write_anew(&self.file(Some(number), "size"), 0o666, bytes.to_string().as_bytes())?;
        fs::rename(self.unfinished(number), self.file(Some(number), "out"))
    }

    /// Whether it has succeeded, and what came out is as long as it was then.
    pub fn is_finished(&self, number: usize) -> bool {
        let [output, size] = ["out", "size"].map(|what| self.file(Some(number), what));
        let bytes = fs::metadata(output).map(|output| output.len().to_string());
        bytes.is_ok_and(|bytes| fs::read_to_string(size).is_ok_and(|noted| noted == bytes))
    }

    /// The record of a partition, or of the reduce, if there is one.
    pub fn record(&self, number: Option<usize>) -> Option<RunRecord> {
        serde_json::from_slice(&fs::read(self.file(number, "json")).ok()?).ok()
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

fn is_of_a_partition(name: &str) -> bool {
    let number = name.split('.').next().unwrap_or_default();
    number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
}
