//! How much of a file a process has read, if it reads it from the beginning to the end: by the position of the descriptor
//! (proc_pid_fdinfo(5)) and the file's size. Nothing is reported of a file in memory (mmap(2)), one that is read in another order
//! (pread(2), lseek(2)), one that grows, and of several files at once.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use process::proc::{descriptors, value};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, StatxFlags, makedev, statx};

use crate::open_file::Identity;

/// Time without a read after which a file is not reported.
const UNREAD_MAX: Duration = Duration::from_secs(10);
/// Time before the rate is measured: the first bytes only fill the buffers behind a reader.
const FILLING: Duration = Duration::from_secs(1);
/// Most descriptors of a process, and most files of its command line, that are read.
const DESCRIPTORS_MAX: usize = 64;
const GIVEN_MAX: usize = 256;
/// Most bytes of /proc/PID/maps that are read.
const MAPS_BYTES_MAX: u64 = 256 << 10;
/// Programs that read the files of their command line one after the other, each to its end. (A value behind an option is no file.)
const READ_IN_TURN: [&str; 11] =
    ["cat", "zcat", "bzcat", "xzcat", "lzcat", "zstdcat", "gzip", "gunzip", "bzip2", "xz", "unxz"];

/// How much a process has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadProgress {
    /// What it reads: the file's name, or "3 files".
    pub what: String,
    /// Bytes of it that were read.
    pub read_bytes: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// How long the rest takes at this rate, where that is known.
    pub left: Option<Duration>,
}

/// Follows readers from sample to sample.
#[derive(Debug, Default)]
pub struct ReadProgressTracker(HashMap<Input, FileHistory>);

/// What is read: a file, or all files of a process's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Input {
    File(Identity),
    Given(i32),
}

/// The position of a reader.
#[derive(Debug)]
struct Position {
    what: String,
    read_bytes: u64,
    size_bytes: u64,
}

/// What was seen of an input.
#[derive(Debug)]
struct FileHistory {
    place: Position,
    first: Instant,
    /// The number of samples at which the position had grown, and when it was the last one.
    steps: u32,
    moved: Instant,
    /// When its rate began to count, and at which byte.
    since: Option<(Instant, u64)>,
    /// The position has decreased, or the size has changed.
    is_odd: bool,
}

impl ReadProgressTracker {
    /// Samples processes; `None` unless they read exactly one input.
    pub fn sample(&mut self, pids: &[i32]) -> Option<ReadProgress> {
        let mut places: HashMap<Input, Position> = HashMap::new();
        for (whole, place) in pids.iter().flat_map(|pid| places_of(*pid)) {
            // Several processes may have inherited one descriptor.
            if places.get(&whole).is_none_or(|known| known.read_bytes < place.read_bytes) {
                places.insert(whole, place);
            }
        }
        self.note(places, Instant::now())
    }

    fn note(&mut self, places: HashMap<Input, Position>, now: Instant) -> Option<ReadProgress> {
        self.0.retain(|whole, _| places.contains_key(whole));
        for (whole, place) in places {
            match self.0.get_mut(&whole) {
                Some(seen) => seen.note(place, now),
                None => {
                    let seen =
                        FileHistory { place, first: now, steps: 0, moved: now, since: None, is_odd: false };
                    self.0.insert(whole, seen);
                }
            }
        }
        let mut read_on = self.0.values().filter(|seen| seen.is_read_on(now));
        let only = read_on.next()?;
        read_on.next().is_none().then(|| only.progress(now))
    }
}

impl FileHistory {
    fn note(&mut self, place: Position, now: Instant) {
        self.is_odd |= place.read_bytes < self.place.read_bytes || place.size_bytes != self.place.size_bytes;
        if place.read_bytes > self.place.read_bytes {
            self.steps += 1;
            self.moved = now;
        }
        if now - self.first >= FILLING {
            self.since.get_or_insert((now, place.read_bytes));
        }
        self.place = place;
    }

    /// After only one step, a header may have been read, and the rest mapped.
    fn is_read_on(&self, now: Instant) -> bool {
        !self.is_odd && self.steps >= 2 && now - self.moved < UNREAD_MAX
    }

    fn progress(&self, now: Instant) -> ReadProgress {
        let Position { what, read_bytes, size_bytes } = &self.place;
        let left = self.since.and_then(|(since, from)| {
            let (time, read) = (now - since, read_bytes.saturating_sub(from));
            let rest = size_bytes.saturating_sub(*read_bytes);
            let known = time >= FILLING && read > 0 && rest > 0;
            known.then(|| Duration::try_from_secs_f64(time.as_secs_f64() * rest as f64 / read as f64).ok())?
        });
        ReadProgress { what: what.clone(), read_bytes: *read_bytes, size_bytes: *size_bytes, left }
    }
}

/// Files that a process has open for reading only, and has begun to read.
fn places_of(pid: i32) -> Vec<(Input, Position)> {
    let opened = descriptors(pid).take(DESCRIPTORS_MAX).filter_map(|fd| {
        let info = format!("/proc/{pid}/fdinfo/{fd}");
        let read_bytes = value(&info, "pos")?.parse::<u64>().ok().filter(|at| *at > 0)?;
        let flags = u32::from_str_radix(&value(&info, "flags")?, 8).ok()?;
        let reads = flags & (OFlags::ACCMODE | OFlags::PATH).bits() == OFlags::RDONLY.bits();
        let path = format!("/proc/{pid}/fd/{fd}");
        let (identity, size_bytes) = regular(Path::new(&path)).filter(|_| reads)?;
        let name = fs::read_link(&path).ok()?;
        let what = name.file_name()?.to_string_lossy().into_owned();
        let is_there = size_bytes >= read_bytes && !is_mapped(pid, identity.1);
        is_there.then_some((identity, Position { what, read_bytes, size_bytes }))
    });
    let opened: Vec<(Identity, Position)> = opened.collect();
    match &opened[..] {
        [(identity, place)] => match given(pid, *identity, place) {
            Some(Given::At(place)) => vec![(Input::Given(pid), place)],
            Some(Given::Unclear) => Vec::new(),
            None => as_files(opened),
        },
        _ => as_files(opened),
    }
}

fn as_files(opened: Vec<(Identity, Position)>) -> Vec<(Input, Position)> {
    opened.into_iter().map(|(identity, place)| (Input::File(identity), place)).collect()
}

/// What the command line shows of a file that a process reads.
enum Given {
    /// It is one of several that are read in turn, and this is the position in all of them.
    At(Position),
    /// It is given more than once, and it is not known which time this is.
    Unclear,
}

/// For programs that read their files in turn; `None` for others.
fn given(pid: i32, open: Identity, place: &Position) -> Option<Given> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.split_terminator('\0');
    let program = words.next()?.rsplit('/').next()?;
    let files: Vec<&str> = words.filter(|word| !word.starts_with('-')).take(GIVEN_MAX + 1).collect();
    if !READ_IN_TURN.contains(&program)
        || files.len() < 2
        || files.len() > GIVEN_MAX
        || line.contains("\0-\0")
    {
        return None;
    }
    let folder = Path::new("/proc").join(pid.to_string()).join("cwd");
    let found = files.iter().map(|file| regular(&folder.join(file)));
    let found: Vec<(Identity, u64)> = found.collect::<Option<_>>()?;
    let mut at = (0..found.len()).filter(|at| found[*at].0 == open);
    let (at, None) = (at.next()?, at.next()) else { return Some(Given::Unclear) };
    let sizes = |files: &[(Identity, u64)]| files.iter().map(|(_, bytes)| bytes).sum::<u64>();
    Some(Given::At(Position {
        what: format!("{} files", found.len()),
        read_bytes: sizes(&found[..at]) + place.read_bytes,
        size_bytes: sizes(&found),
    }))
}

/// The identity and the size of a regular file. Does not wait for a dead network disk (statx(2), `AT_STATX_DONT_SYNC`).
fn regular(path: &Path) -> Option<(Identity, u64)> {
    let asked = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE;
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, asked).ok()?;
    let is_regular = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
    let identity = (makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino);
    is_regular.then_some((identity, found.stx_size))
}

/// Whether a process has mapped a file of this inode; the device is not compared, as some file systems show another one there. True if the list
/// of maps is too long.
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

    fn place(read_bytes: u64) -> HashMap<Input, Position> {
        HashMap::from([(Input::Given(1), Position { what: "f".to_owned(), read_bytes, size_bytes: 1000 })])
    }

    #[test]
    fn the_time_left_is_told_once_the_rate_is_known() {
        let began = Instant::now();
        let mut all = ReadProgressTracker::default();
        let mut note = |at_s: f64, read| all.note(place(read), began + Duration::from_secs_f64(at_s));
        assert_eq!(note(0.0, 300), None);
        assert_eq!(note(0.1, 310), None, "a header, perhaps");
        let shown = note(1.0, 400).expect("two steps");
        assert_eq!((shown.read_bytes, shown.left), (400, None));
        let shown = note(3.0, 500).expect("goes on");
        assert_eq!(shown.left, Some(Duration::from_secs(10)), "50 a second, and 500 to go");
        assert_eq!(note(12.0, 500).and_then(|shown| shown.left), Some(Duration::from_secs(55)));
        assert_eq!(note(13.0, 500), None, "no read for too long");
        assert_eq!(note(14.0, 1000).map(|shown| shown.left), Some(None), "the end");
        assert_eq!(note(15.0, 900), None, "it went back");
        assert_eq!(note(16.0, 1000), None);
    }

    #[test]
    fn of_two_files_at_once_nothing_is_said() {
        let began = Instant::now();
        let mut all = ReadProgressTracker::default();
        let both =
            |read| place(read).into_iter().chain(place(read).into_values().map(|one| (Input::Given(2), one)));
        for (at, read) in [(0, 1), (1, 2), (2, 3)] {
            assert_eq!(all.note(both(read).collect(), began + Duration::from_secs(at)), None);
        }
        assert!(all.note(place(4), began + Duration::from_secs(3)).is_some());
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
