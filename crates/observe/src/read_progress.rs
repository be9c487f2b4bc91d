//! How much of a file a process has read, if it reads it from the beginning to the end: by the position of the descriptor
//! (proc_pid_fdinfo(5)) and the file's size. Nothing is reported if the file is mapped (mmap(2)), is read in another order (pread(2), lseek(2)) or
//! grows, or if several files are read at the same time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use process::proc::{descriptors, field_value};
use rustix::fs::{FileType, OFlags};

use crate::open_file::{Identity, found_at};

/// Time without a read after which a file is not reported.
const UNREAD_MAX: Duration = Duration::from_secs(10);
/// Time before the rate is measured: the first bytes only fill the buffers of the pipeline.
const FILL_TIME: Duration = Duration::from_secs(1);
/// Most descriptors of a process, and most files of its command line, that are read.
const DESCRIPTORS_MAX: usize = 64;
const LISTED_MAX: usize = 256;
/// Most bytes of /proc/PID/maps that are read.
const MAPS_BYTES_MAX: u64 = 256 << 10;
/// Programs that read the files of their command line one after the other, each to its end. (The values of their options are not files.)
const READ_IN_TURN: [&str; 11] =
    ["cat", "zcat", "bzcat", "xzcat", "lzcat", "zstdcat", "gzip", "gunzip", "bzip2", "xz", "unxz"];

/// How much a process has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadProgress {
    /// Its input: the file's name, or "3 files".
    pub what: String,
    /// Bytes of it that were read.
    pub read_bytes: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// How long the rest takes at this rate; `None` if unknown.
    pub left: Option<Duration>,
}

/// Follows readers from sample to sample.
#[derive(Debug, Default)]
pub struct ReadProgressTracker(HashMap<Input, FileHistory>);

/// An input: a file, or all files of the command line of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Input {
    File(Identity),
    ListedFiles(i32),
}

/// The position of a reader.
#[derive(Debug)]
struct Position {
    what: String,
    read_bytes: u64,
    size_bytes: u64,
}

/// The samples of an input.
#[derive(Debug)]
struct FileHistory {
    position: Position,
    first: Instant,
    /// The number of samples in which the position had increased, and the time of the last of them.
    steps: u32,
    moved: Instant,
    /// The time and the position from which its rate is measured.
    since: Option<(Instant, u64)>,
    /// The position has decreased, or the size has changed.
    is_irregular: bool,
}

impl ReadProgressTracker {
    /// Samples processes; `None` unless they read exactly one input.
    pub fn sample(&mut self, pids: &[i32]) -> Option<ReadProgress> {
        let mut positions: HashMap<Input, Position> = HashMap::new();
        for (input, position) in pids.iter().flat_map(|pid| positions_of(*pid)) {
            // Several processes may have inherited one descriptor.
            if positions.get(&input).is_none_or(|known| known.read_bytes < position.read_bytes) {
                positions.insert(input, position);
            }
        }
        self.add(positions, Instant::now())
    }

    fn add(&mut self, positions: HashMap<Input, Position>, now: Instant) -> Option<ReadProgress> {
        self.0.retain(|input, _| positions.contains_key(input));
        for (input, position) in positions {
            match self.0.get_mut(&input) {
                Some(seen) => seen.add(position, now),
                None => {
                    let (steps, since, is_irregular) = Default::default();
                    let seen = FileHistory { position, first: now, steps, moved: now, since, is_irregular };
                    self.0.insert(input, seen);
                }
            }
        }
        let mut read_on = self.0.values().filter(|seen| seen.is_read_on(now));
        let only = read_on.next()?;
        read_on.next().is_none().then(|| only.progress(now))
    }
}

impl FileHistory {
    fn add(&mut self, position: Position, now: Instant) {
        self.is_irregular |=
            position.read_bytes < self.position.read_bytes || position.size_bytes != self.position.size_bytes;
        if position.read_bytes > self.position.read_bytes {
            self.steps += 1;
            self.moved = now;
        }
        if now - self.first >= FILL_TIME {
            self.since.get_or_insert((now, position.read_bytes));
        }
        self.position = position;
    }

    /// Whether the input is being read. One step is not enough: a program may read a header and map the rest.
    fn is_read_on(&self, now: Instant) -> bool {
        !self.is_irregular && self.steps >= 2 && now - self.moved < UNREAD_MAX
    }

    fn progress(&self, now: Instant) -> ReadProgress {
        let Position { what, read_bytes, size_bytes } = &self.position;
        let left = self.since.and_then(|(since, from)| {
            let (time, read) = (now - since, read_bytes.saturating_sub(from));
            let rest = size_bytes.saturating_sub(*read_bytes);
            let known = time >= FILL_TIME && read > 0 && rest > 0;
            known.then(|| Duration::try_from_secs_f64(time.as_secs_f64() * rest as f64 / read as f64).ok())?
        });
        ReadProgress { what: what.clone(), read_bytes: *read_bytes, size_bytes: *size_bytes, left }
    }
}

/// Files that a process has open for reading only, and has begun to read.
fn positions_of(pid: i32) -> Vec<(Input, Position)> {
    let opened = descriptors(pid).take(DESCRIPTORS_MAX).filter_map(|fd| {
        let info = format!("/proc/{pid}/fdinfo/{fd}");
        let read_bytes = field_value(&info, "pos")?.parse::<u64>().ok().filter(|at| *at > 0)?;
        let flags = u32::from_str_radix(&field_value(&info, "flags")?, 8).ok()?;
        let reads = flags & (OFlags::ACCMODE | OFlags::PATH).bits() == OFlags::RDONLY.bits();
        let path = format!("/proc/{pid}/fd/{fd}");
        let (identity, size_bytes) = regular(Path::new(&path)).filter(|_| reads)?;
        let name = fs::read_link(&path).ok()?;
        let what = name.file_name()?.to_string_lossy().into_owned();
        let is_there = size_bytes >= read_bytes && !is_mapped(pid, identity.1);
        is_there.then_some((identity, Position { what, read_bytes, size_bytes }))
    });
    let opened: Vec<(Identity, Position)> = opened.collect();
    if let [(identity, position)] = &opened[..]
        && let Some(in_all) = position_in_listed_files(pid, *identity, position)
    {
        return in_all.map(|position| (Input::ListedFiles(pid), position)).into_iter().collect();
    }
    opened.into_iter().map(|(identity, position)| (Input::File(identity), position)).collect()
}

/// The position in all files of the command line together, of a program that reads them in turn and has this one open; `None` for other programs.
/// `Some(None)` if the file is listed more than once, so that it is not known which time it is being read.
fn position_in_listed_files(pid: i32, open: Identity, position: &Position) -> Option<Option<Position>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.split_terminator('\0');
    let program = words.next()?.rsplit('/').next()?;
    let files: Vec<&str> = words.filter(|word| !word.starts_with('-')).take(LISTED_MAX + 1).collect();
    if !READ_IN_TURN.contains(&program)
        || files.len() < 2
        || files.len() > LISTED_MAX
        || line.contains("\0-\0")
    {
        return None;
    }
    let folder = Path::new("/proc").join(pid.to_string()).join("cwd");
    let found = files.iter().map(|file| regular(&folder.join(file)));
    let found: Vec<(Identity, u64)> = found.collect::<Option<_>>()?;
    let mut at = (0..found.len()).filter(|at| found[*at].0 == open);
    let (at, None) = (at.next()?, at.next()) else { return Some(None) };
    let sizes = |files: &[(Identity, u64)]| files.iter().map(|(_, bytes)| bytes).sum::<u64>();
    Some(Some(Position {
        what: format!("{} files", found.len()),
        read_bytes: sizes(&found[..at]) + position.read_bytes,
        size_bytes: sizes(&found),
    }))
}

/// The identity and the size of a regular file.
fn regular(path: &Path) -> Option<(Identity, u64)> {
    let (kind, identity, bytes) = found_at(path)?;
    (kind == FileType::RegularFile).then_some((identity, bytes))
}

/// Whether a process has mapped a file of this inode. The device is not compared, because some file systems show another device in the list.
/// True if the list is too long to be read.
fn is_mapped(pid: i32, inode: u64) -> bool {
    let mut maps = Vec::new();
    let opened = File::open(format!("/proc/{pid}/maps"));
    let read = opened.and_then(|file| file.take(MAPS_BYTES_MAX).read_to_end(&mut maps));
    let maps = String::from_utf8_lossy(&maps);
    read.is_ok_and(|bytes| bytes as u64 == MAPS_BYTES_MAX)
        || maps
            .lines()
            .any(|line| line.split_whitespace().nth(4).is_some_and(|field| field.parse() == Ok(inode)))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    const MIB: usize = 1 << 20;

    fn position(read_bytes: u64) -> HashMap<Input, Position> {
        HashMap::from([(
            Input::ListedFiles(1),
            Position { what: "f".to_owned(), read_bytes, size_bytes: 1000 },
        )])
    }

    #[test]
    fn the_time_left_is_told_once_the_rate_is_known() {
        let began = Instant::now();
        let mut all = ReadProgressTracker::default();
        let mut add = |at_s: f64, read| all.add(position(read), began + Duration::from_secs_f64(at_s));
        assert_eq!(add(0.0, 300), None);
        assert_eq!(add(0.1, 310), None, "a header, perhaps");
        let shown = add(1.0, 400).expect("two steps");
        assert_eq!((shown.read_bytes, shown.left), (400, None));
        let shown = add(3.0, 500).expect("goes on");
        assert_eq!(shown.left, Some(Duration::from_secs(10)), "50 a second, and 500 to go");
        assert_eq!(add(12.0, 500).and_then(|shown| shown.left), Some(Duration::from_secs(55)));
        assert_eq!(add(13.0, 500), None, "no read for too long");
        assert_eq!(add(14.0, 1000).map(|shown| shown.left), Some(None), "the end");
        assert_eq!(add(15.0, 900), None, "it went back");
        assert_eq!(add(16.0, 1000), None);
    }

    #[test]
    fn of_two_files_at_once_nothing_is_said() {
        let began = Instant::now();
        let mut all = ReadProgressTracker::default();
        let both = |read| {
            position(read)
                .into_iter()
                .chain(position(read).into_values().map(|one| (Input::ListedFiles(2), one)))
        };
        for (at, read) in [(0, 1), (1, 2), (2, 3)] {
            assert_eq!(all.add(both(read).collect(), began + Duration::from_secs(at)), None);
        }
        assert!(all.add(position(4), began + Duration::from_secs(3)).is_some());
    }

    /// Reads what a program writes, a piece at a time, and gives what was seen last.
    fn follow(mut child: Child, pieces: usize) -> Option<ReadProgress> {
        let mut all = ReadProgressTracker::default();
        let mut output = child.stdout.take().expect("a pipe");
        let mut shown = None;
        for _ in 0..pieces {
            output.read_exact(&mut vec![0; MIB / 2]).expect("more");
            std::thread::sleep(Duration::from_millis(20));
            shown = all.sample(&[child.id() as i32]);
        }
        drop(output);
        child.wait().expect("ended");
        shown
    }

    #[test]
    fn a_program_that_waits_for_its_reader_is_seen_where_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "b"] {
            fs::write(folder.path().join(name), vec![0; 4 * MIB]).expect("a file");
        }
        let start = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped());
            command.spawn().expect("started")
        };
        let one = follow(start("cat", &["a"]), 4).expect("seen");
        assert_eq!((one.what.as_str(), one.size_bytes), ("a", 4 * MIB as u64));
        assert!((2 * MIB..4 * MIB).contains(&(one.read_bytes as usize)), "{one:?}");
        let both = follow(start("cat", &["-u", "a", "b"]), 12).expect("seen");
        assert_eq!((both.what.as_str(), both.size_bytes), ("2 files", 8 * MIB as u64));
        assert!((6 * MIB..8 * MIB).contains(&(both.read_bytes as usize)), "{both:?}");
        assert_eq!(follow(start("cat", &["-", "a"]), 4).expect("seen").what, "a");
        // Happened: `a: 80 % read` in the first of two rounds.
        assert_eq!(follow(start("cat", &["a", "a"]), 4), None);
        assert_eq!(follow(start("sh", &["-c", "exec cat <a"]), 4).expect("seen").what, "a");
        assert_eq!(ReadProgressTracker::default().sample(&[i32::MAX]), None);
    }
}
