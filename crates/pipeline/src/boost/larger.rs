//! The pipes that were enlarged: how much of the quota they take, and how they are made small again.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use model::{BoostedPipe, PipeQuota};
use observe::brief_pipe::BriefPipe;
use observe::endpoint::endpoints;
use observe::open_file::Identity;
use observe::quota::{ChargedPipes, PipeLimits, new_pipes_are_whole};
use observe::topology::Held;
use process::proc::other_processes;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

/// The factor by which a pipe grows at once, and its largest size.
const GROWTH: u64 = 4;
const PIPE_BYTES_MAX: u64 = 1 << 20;
/// The most pipes that are enlarged.
const PIPES_MAX: usize = 10_000;
/// How long is waited, at the end, until a pipe holds no more than it could at the beginning, and the pause between two attempts.
const SHRINK_WAIT: Duration = Duration::from_millis(100);
const SHRINK_PAUSE: Duration = Duration::from_millis(2);

/// The result of an attempt to enlarge a pipe.
pub(super) enum Growth {
    /// It has grown; its index in the list.
    To(usize),
    /// Not now.
    NoRoom,
    /// Not at all.
    Never,
}

/// A pipe that is larger than it was.
struct Larger {
    pipe: Identity,
    /// Opened with O_PATH, so that it counts neither as a reader nor as a writer (open(2)). Through this the pipe can be opened whichever process
    /// has it later; if none has it, a new pipe of the usual size is opened.
    handle: OwnedFd,
    /// Its index in `enlarged`.
    at: usize,
}

impl Larger {
    /// Opens it, if it is still this pipe.
    fn open(&self) -> Result<BriefPipe, Errno> {
        BriefPipe::open(std::process::id().cast_signed(), self.handle.as_raw_fd(), Some(self.pipe))
    }

    /// Gives it another size if it still has the size `from`. Returns the one that it has then.
    fn resize(&self, from: u64, to: u64) -> Result<u64, Errno> {
        let open = self.open()?;
        if open.size()? == from { open.resize(to) } else { Ok(from) }
    }
}

/// All pipes that were enlarged.
pub(super) struct LargerPipes {
    now: Vec<Larger>,
    pub(super) enlarged: Vec<BoostedPipe>,
    limits: PipeLimits,
    /// New pipes of this user had their whole size at the beginning.
    were_whole: bool,
    new_pipes_are_whole: fn() -> bool,
    /// Why the first one was not made larger, and how much of the quota was spent then.
    pub(super) refused: Option<String>,
    pub(super) pipe_quota: Option<PipeQuota>,
}

impl LargerPipes {
    pub(super) fn new() -> Self {
        let (now, enlarged, refused, pipe_quota) = Default::default();
        let (limits, were_whole) = (PipeLimits::read(), new_pipes_are_whole());
        Self { now, enlarged, limits, were_whole, new_pipes_are_whole, refused, pipe_quota }
    }

    /// The size to which a pipe of this size is to grow; `None` if it is the largest.
    pub(super) fn next_size(&self, bytes: u64) -> Option<u64> {
        let most = PIPE_BYTES_MAX.min(self.limits.pipe_bytes_max);
        Some(bytes.saturating_mul(GROWTH).min(most)).filter(|next| *next > bytes)
    }

    /// Enlarges a pipe of this size, which a process holds.
    pub(super) fn grow(&mut self, pipe: Identity, held: Held, size: u64) -> Growth {
        let Some(next) = self.next_size(size) else { return Growth::Never };
        let place = self.now.iter().position(|larger| larger.pipe == pipe);
        if place.is_none() && self.enlarged.len() >= PIPES_MAX {
            self.refuse(format!("{PIPES_MAX} pipes were enlarged already"));
            return Growth::Never;
        }
        if !self.has_room(next - size) {
            let mib = self.limits.quarter_bytes() >> 20;
            self.refuse(format!("those enlarged had a quarter of the quota of pipe pages, {mib} MiB"));
            return Growth::NoRoom;
        }
        // `has_room` may have moved or removed it.
        let mut larger = match self.now.iter().position(|larger| larger.pipe == pipe) {
            Some(place) => self.now.swap_remove(place),
            None => {
                let path = format!("/proc/{}/fd/{}", held.pid, held.fd);
                let handle = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
                let Ok(handle) = handle else { return Growth::Never };
                Larger { pipe, handle, at: usize::MAX }
            }
        };
        let mut grown = larger.resize(size, next);
        // The quota is spent if new pipes of this user have only two pages.
        let is_too_much = grown.is_ok() && self.were_whole && !(self.new_pipes_are_whole)();
        // A pipe that holds too much already stays larger, and is listed.
        if is_too_much && larger.resize(next, size).is_ok() {
            grown = Ok(size);
        }
        if is_too_much {
            self.refuse("the quota of pipe pages was spent otherwise".to_owned());
        }
        let growth = match grown {
            Ok(after) if after > size => {
                if larger.at == usize::MAX {
                    larger.at = self.enlarged.len();
                    let (inode, before_bytes) = (pipe.1, size);
                    self.enlarged.push(BoostedPipe { inode, before_bytes, ..BoostedPipe::default() });
                }
                self.enlarged[larger.at].after_bytes = after;
                Growth::To(larger.at)
            }
            Ok(_) if is_too_much => Growth::NoRoom,
            Err(Errno::PERM) => {
                self.refuse("the system allows no larger ones: the quota of pipe pages is spent".to_owned());
                Growth::NoRoom
            }
            // It has been closed, or another process has set its size meanwhile.
            _ => Growth::Never,
        };
        if larger.at != usize::MAX {
            self.now.push(larger);
        }
        growth
    }

    /// Whether a quarter of the quota has room for this many more bytes. Pipes that have been closed are removed first if it has not.
    fn has_room(&mut self, bytes: u64) -> bool {
        let most = self.limits.quarter_bytes();
        let taken = |pipes: &Self| -> u64 {
            pipes.now.iter().map(|larger| pipes.enlarged[larger.at].after_bytes).sum()
        };
        if taken(self) + bytes > most {
            let enlarged = &self.enlarged;
            let is_there = |larger: &Larger| {
                let size = larger.open().and_then(|pipe| pipe.size());
                size == Ok(enlarged[larger.at].after_bytes)
            };
            self.now.retain(is_there);
        }
        taken(self) + bytes <= most
    }

    fn refuse(&mut self, why: String) {
        if self.refused.is_none() {
            self.refused = Some(why);
            let ends = other_processes().filter_map(|pid| Some((pid, endpoints(pid).ok()?)));
            let ends = ends.flat_map(|(pid, ends)| ends.map(move |end| (pid, end)));
            self.pipe_quota = ChargedPipes::default().most_charged(ends);
        }
    }

    /// Makes the remaining pipes as small as they were. One that holds too much (EBUSY) is tried again for a short time, and then marked as
    /// left.
    pub(super) fn give_back(&mut self) {
        let began = Instant::now();
        loop {
            let enlarged = &self.enlarged;
            self.now.retain(|larger| {
                let pipe = &enlarged[larger.at];
                larger.resize(pipe.after_bytes, pipe.before_bytes) == Err(Errno::BUSY)
            });
            if self.now.is_empty() || began.elapsed() > SHRINK_WAIT {
                break;
            }
            std::thread::sleep(SHRINK_PAUSE);
        }
        for larger in self.now.drain(..) {
            self.enlarged[larger.at].left = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use observe::endpoint::{IpcFile, endpoint};
    use rustix::pipe::fcntl_getpipe_size;

    use super::*;

    /// A pipe of this process: its ends, its identity and where it is found.
    fn pipe() -> (File, File, Identity, Held) {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let (reader, writer) = (File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer)));
        let at = Held { pid: std::process::id() as i32, fd: writer.as_raw_fd(), writes: true };
        let Some(IpcFile::Pipe(identity)) = endpoint(at.pid, at.fd).map(|end| end.ipc_file) else {
            panic!("a pipe")
        };
        (reader, writer, identity, at)
    }

    fn size(pipe: &File) -> u64 {
        fcntl_getpipe_size(pipe).expect("its size") as u64
    }

    #[test]
    fn a_pipe_grows_by_four_to_a_mebibyte_and_is_given_back() {
        let (reader, writer, identity, at) = pipe();
        let mut pipes = LargerPipes::new();
        let usual = size(&writer);
        for expected in [4 * usual, 16 * usual] {
            assert!(matches!(pipes.grow(identity, at, size(&writer)), Growth::To(0)));
            assert_eq!(size(&reader), expected);
        }
        assert!(matches!(pipes.grow(identity, at, size(&writer)), Growth::Never));
        pipes.give_back();
        assert_eq!((size(&reader), pipes.enlarged.len(), pipes.enlarged[0].left), (usual, 1, false));
    }

    #[test]
    fn a_pipe_that_holds_too_much_is_left_and_listed() {
        let (reader, mut writer, identity, at) = pipe();
        let mut pipes = LargerPipes::new();
        let usual = size(&writer);
        assert!(matches!(pipes.grow(identity, at, usual), Growth::To(..)));
        writer.write_all(&vec![1; 2 * usual as usize]).expect("room");
        pipes.give_back();
        assert_eq!((size(&reader), pipes.enlarged[0].left), (4 * usual, true));
    }

    /// Expected: a pipe whose second growth spends the quota is made as small as it was after the first, and given back at the end.
    /// Happened: it was forgotten, stayed larger, and was listed twice when it grew again.
    #[test]
    fn a_pipe_whose_second_growth_spends_the_quota_is_still_given_back() {
        let (reader, writer, identity, at) = pipe();
        let mut pipes = LargerPipes::new();
        let usual = size(&writer);
        assert!(matches!(pipes.grow(identity, at, usual), Growth::To(0)));
        (pipes.were_whole, pipes.new_pipes_are_whole) = (true, || false);
        assert!(matches!(pipes.grow(identity, at, 4 * usual), Growth::NoRoom));
        assert_eq!(size(&reader), 4 * usual);
        assert!(pipes.refused.take().is_some_and(|why| why.contains("spent otherwise")));
        pipes.new_pipes_are_whole = || true;
        assert!(matches!(pipes.grow(identity, at, 4 * usual), Growth::To(0)), "it is the same pipe");
        assert_eq!((pipes.enlarged.len(), pipes.enlarged[0].before_bytes), (1, usual));
        pipes.give_back();
        assert_eq!(size(&reader), usual);
    }

    #[test]
    fn a_quarter_of_the_quota_is_all_until_pipes_have_gone() {
        let mut pipes = LargerPipes::new();
        pipes.limits.soft_pages = 4 * 3 * 48;
        let made: Vec<_> = (0..4).map(|_| pipe()).collect();
        let grow = |pipes: &mut LargerPipes, at: usize| pipes.grow(made[at].2, made[at].3, size(&made[at].0));
        // Three times 64 pages are too many; twice leaves room for no more.
        assert!(matches!(grow(&mut pipes, 0), Growth::To(..)));
        assert!(matches!(grow(&mut pipes, 1), Growth::To(..)));
        assert!(matches!(grow(&mut pipes, 2), Growth::NoRoom));
        assert!(pipes.refused.as_ref().is_some_and(|why| why.contains("quarter")), "{:?}", pipes.refused);
        drop(made.into_iter().next());
        let (_reader, _writer, identity, at) = pipe();
        // A child of another test that has not executed its program yet has the pipes open, too.
        crate::testing::until(|| matches!(pipes.grow(identity, at, 65536), Growth::To(2)));
    }
}
