//! The folder of a spread: its plan, and for each partition what came out once it has succeeded.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use model::{RunRecord, describe_errno};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::partition::{InputFile, Partition, Range};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpreadPlan {
    /// Which hosepipe made it: no other goes on with it.
    pub version: String,
    /// The text that is run for each partition.
    pub map: String,
    /// The text that is run over what came out.
    pub reduce: String,
    /// What stands between the stages.
    pub via: String,
    /// The shell.
    pub shell: String,
    /// Whether a text fails with any of its stages.
    pub pipefail: bool,
    /// The files, as they were.
    pub inputs: Vec<InputFile>,
    /// What each run of the map reads.
    pub partitions: Vec<Partition>,
}

/// The folder.
#[derive(Debug)]
pub struct Work {
    folder: PathBuf,
    /// Held for as long as somebody drives the work.
    _lock: Option<OwnedFd>,
}

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub enum WorkProblem {
    /// The system refused.
    #[error("cannot use {} for the work: {}", .0.display(), describe_errno(.1))]
    Folder(PathBuf, io::Error),
    /// Somebody works there.
    #[error("another hosepipe works in {} right now", .0.display())]
    Busy(PathBuf),
    /// Something is there already.
    #[error("{} holds work already: --resume goes on with it, and another --work begins anew", .0.display())]
    Begun(PathBuf),
    /// It is of something else.
    #[error("{} holds work with another {what}: finish it as it was begun, or name another --work", folder.display())]
    Other {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// There is nothing to go on with.
    #[error("{} holds no work to go on with: leave --resume out", .0.display())]
    Nothing(PathBuf),
}

impl Work {
    /// Begins in a folder in which no partition was begun yet.
    ///
    /// # Errors
    /// One was, or it cannot be written.
    pub fn begin(folder: &Path, plan: &SpreadPlan) -> Result<Self, WorkProblem> {
        fs::create_dir_all(folder).map_err(|error| WorkProblem::Folder(folder.to_owned(), error))?;
        let work = Self::lock(folder)?;
        let of_a_partition = |name: &str| name.starts_with(|first: char| first.is_ascii_digit());
        if work.plan_file().exists() && work.entries().any(|name| of_a_partition(&name)) {
            return Err(WorkProblem::Begun(folder.to_owned()));
        }
        let written = work.write(plan);
        written.map_err(|error| WorkProblem::Folder(folder.to_owned(), error))?;
        Ok(work)
    }

    /// Writes the plan, and what each partition needs of it as a line of its own: a program for one of many thousands must not read
    /// about all of them. The lines are padded to one length, so that each is found by its number.
    fn write(&self, plan: &SpreadPlan) -> io::Result<()> {
        let inputs: HashMap<&Path, &InputFile> =
            plan.inputs.iter().map(|input| (input.path.as_path(), input)).collect();
        let texts = SpreadPlan { inputs: Vec::new(), partitions: Vec::new(), ..plan.clone() };
        let line = |partition: &Partition| {
            let inputs = partition.ranges.iter().filter_map(|range| inputs.get(range.path.as_path()));
            let inputs = inputs.map(|input| (*input).clone()).collect();
            serde_json::to_string(&SpreadPlan {
                inputs,
                partitions: vec![partition.clone()],
                ..texts.clone()
            })
        };
        let lines = plan.partitions.iter().map(line).collect::<Result<Vec<String>, _>>()?;
        let longest = lines.iter().map(String::len).max().unwrap_or(0);
        let padded = lines.iter().map(|line| line.clone() + &" ".repeat(longest - line.len()) + "\n");
        fs::write(self.parts_file(), padded.collect::<String>())?;
        fs::write(self.plan_file(), serde_json::to_vec(plan)?)
    }

    /// Goes on with what was begun by the same plan.
    ///
    /// # Errors
    /// Another plan, or none.
    pub fn resume(folder: &Path, plan: &SpreadPlan) -> Result<Self, WorkProblem> {
        let work = Self::lock(folder)?;
        let found = work.plan().map_err(|_| WorkProblem::Nothing(folder.to_owned()))?;
        let what = match &found {
            found if found.version != plan.version => Some("version of hosepipe"),
            found if found.inputs != plan.inputs => Some("list of inputs, or other contents of them"),
            found if found.partitions != plan.partitions => Some("--split"),
            found if found != plan => Some("text, link or shell"),
            _ => None,
        };
        what.map_or(Ok(work), |what| Err(WorkProblem::Other { folder: folder.to_owned(), what }))
    }

    /// A folder in which somebody else drives the work.
    pub fn of(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _lock: None }
    }

    fn lock(folder: &Path) -> Result<Self, WorkProblem> {
        let refused = |error: Errno| WorkProblem::Folder(folder.to_owned(), error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(folder, flags, Mode::empty()).map_err(refused)?;
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(WorkProblem::Busy(folder.to_owned())),
            // Where a file system has no such locks, two at the same moment are not seen.
            _ => Ok(Self { folder: folder.to_owned(), _lock: Some(opened) }),
        }
    }

    fn entries(&self) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    }

    /// How many partitions have an output: one look at the folder, which may be on another machine.
    pub fn count_outputs(&self) -> usize {
        self.entries().filter(|name| name.ends_with(".out")).count()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn plan_file(&self) -> PathBuf {
        self.folder.join("plan.json")
    }

    fn parts_file(&self) -> PathBuf {
        self.folder.join("parts.jsonl")
    }

    /// What is to be done for one partition: the plan as if it were the only one.
    ///
    /// # Errors
    /// There is no plan, or no such partition in it.
    pub fn plan_of(&self, number: usize) -> io::Result<SpreadPlan> {
        let mut lines = BufReader::new(File::open(self.parts_file())?);
        let mut line = Vec::new();
        let line_bytes = lines.read_until(b'\n', &mut line)?;
        lines.seek(SeekFrom::Start(line_bytes as u64 * number as u64))?;
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Err(io::Error::other("there is no such partition"));
        }
        Ok(serde_json::from_slice(&line)?)
    }

    /// What is to be done here.
    ///
    /// # Errors
    /// There is no plan, or none that can be read.
    pub fn plan(&self) -> io::Result<SpreadPlan> {
        Ok(serde_json::from_slice(&fs::read(self.plan_file())?)?)
    }

    fn file(&self, number: usize, what: &str) -> PathBuf {
        self.folder.join(format!("{:06}.{what}", number + 1))
    }

    /// What came out of a partition, counted from 0.
    pub fn output(&self, number: usize) -> PathBuf {
        self.file(number, "out")
    }

    /// The record of its run.
    pub fn record_file(&self, number: usize) -> PathBuf {
        self.file(number, "json")
    }

    /// The record of the reduce.
    pub fn reduce_record_file(&self) -> PathBuf {
        self.folder.join("reduce.json")
    }

    /// Whether it has succeeded, and what came out is as long as it was then.
    pub fn is_finished(&self, number: usize) -> bool {
        let size = fs::metadata(self.output(number)).map(|output| output.len().to_string());
        size.is_ok_and(|size| fs::read_to_string(self.file(number, "size")).is_ok_and(|noted| noted == size))
    }

    /// Where an engine's program notes with which status it failed.
    pub fn status_file(&self, number: usize) -> PathBuf {
        self.file(number, "status")
    }

    /// The last words of a log, as the end of a sentence.
    pub fn end_of(&self, log: &str) -> String {
        const LINES: usize = 5;
        let said = fs::read(self.folder.join(log)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
        if last.is_empty() { last } else { format!(": {last}") }
    }

    /// What comes out of it while this process runs it: an engine may begin it a second time elsewhere, before the first has ended.
    pub fn unfinished(&self, number: usize) -> PathBuf {
        let node = rustix::system::uname();
        self.file(number, &format!("{}.{}.unfinished", node.nodename().to_string_lossy(), std::process::id()))
    }

    /// An empty file for that.
    ///
    /// # Errors
    /// What the system answered.
    pub fn start_output(&self, number: usize) -> io::Result<File> {
        File::create(self.unfinished(number))
    }

    /// It has succeeded: what came out gets its name.
    ///
    /// # Errors
    /// What the system answered: a full disk, for example.
    pub fn finish_output(&self, number: usize) -> io::Result<()> {
        let bytes = fs::metadata(self.unfinished(number))?.len();
        fs::write(self.file(number, "size"), bytes.to_string())?;
        fs::rename(self.unfinished(number), self.output(number))
    }

    /// The records that there are: of the partitions that were run, and of the reduce.
    pub fn records(&self, partitions: usize) -> (Vec<RunRecord>, Option<RunRecord>) {
        let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        let maps = (0..partitions).filter_map(|number| read(self.record_file(number)));
        (maps.collect(), read(self.reduce_record_file()))
    }

    /// What came out of all partitions, in their order.
    ///
    /// # Errors
    /// One is not there.
    pub fn outputs(&self, partitions: usize) -> io::Result<Vec<Range>> {
        let whole = |number| {
            let path = self.output(number);
            Ok(Range { bytes: fs::metadata(&path)?.len(), offset: 0, path })
        };
        (0..partitions).map(whole).collect()
    }

    /// Writes the names of all outputs, each followed by a NUL, as `sort --files0-from` reads them.
    ///
    /// # Errors
    /// What the system answered.
    pub fn list_outputs(&self, partitions: usize) -> io::Result<PathBuf> {
        use std::os::unix::ffi::OsStrExt;
        let names = (0..partitions).map(|number| self.output(number));
        let list: Vec<u8> = names.flat_map(|name| [name.as_os_str().as_bytes(), b"\0"].concat()).collect();
        let path = self.folder.join("outputs");
        fs::write(&path, list)?;
        Ok(path)
    }
}
