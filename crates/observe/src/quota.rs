//! The quota of pipe pages (pipe(7), "/proc files"), and how much of it users have used. The kernel charges a pipe to the user who made it, with
//! its capacity in pages, even if the pipe is empty.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use model::PipeQuota;
use rustix::fs::fstat;
use rustix::param::page_size;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use crate::brief_pipe::BriefPipe;
use crate::endpoint::{Endpoint, nameless};
use crate::open_file::Identity;

/// Pages of a new pipe while no quota is exceeded (the kernel's `PIPE_DEF_BUFFERS`).
const NEW_PIPE_PAGES: u64 = 16;
/// The kernel's default quota: 1024 pipes of that size.
const SOFT_PAGES: u64 = 1024 * NEW_PIPE_PAGES;

/// The limits of this machine, in pages or in bytes; 0 pages mean no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeLimits {
    /// fs.pipe-user-pages-soft: above it new pipes of a user have two pages, and no pipe can be enlarged.
    pub soft_pages: u64,
    /// fs.pipe-user-pages-hard: above it a user cannot make pipes.
    pub hard_pages: u64,
    /// fs.pipe-max-size, in bytes.
    pub pipe_bytes_max: u64,
}

impl PipeLimits {
    /// Reads the limits. If one cannot be read, it has the kernel's default.
    pub fn read() -> Self {
        let number = |name: &str, default: u64| {
            let text = fs::read_to_string(format!("/proc/sys/fs/{name}"));
            text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(default)
        };
        Self {
            soft_pages: number("pipe-user-pages-soft", SOFT_PAGES),
            hard_pages: number("pipe-user-pages-hard", 0),
            pipe_bytes_max: number("pipe-max-size", 1 << 20),
        }
    }

    /// A quarter of the quota, in bytes: one program may use this much, so that other programs still get pipes of full size. Without a quota, a
    /// quarter of the default quota.
    pub fn quarter_bytes(&self) -> u64 {
        let quotas = [self.soft_pages, self.hard_pages].into_iter().filter(|pages| *pages > 0);
        quotas.min().unwrap_or(SOFT_PAGES) * page_size() as u64 / 4
    }
}

/// The user who is charged for each pipe, and its pages. Each pipe is opened once.
#[derive(Default)]
pub struct ChargedPipes(HashMap<Identity, Option<(u32, u64)>>);

impl ChargedPipes {
    /// The user that is charged for most pages of these pipes. Each end of a pipe is given with the process that has it open.
    pub fn most_charged(&mut self, ends: impl Iterator<Item = (i32, Endpoint)>) -> Option<PipeQuota> {
        let mut seen = HashMap::new();
        for (pid, end) in ends {
            let Some(pipe) = end.ipc_file.pipe() else { continue };
            let charge = seen.get(&pipe).or_else(|| self.0.get(&pipe)).copied().flatten();
            seen.insert(pipe, charge.or_else(|| charged(pid, &end, pipe)));
        }
        self.0 = seen;
        let mut users: BTreeMap<u32, u64> = BTreeMap::new();
        for (uid, pages) in self.0.values().flatten() {
            *users.entry(*uid).or_default() += pages;
        }
        let (uid, used_pages) = users.into_iter().max_by_key(|(_, pages)| *pages)?;
        let PipeLimits { soft_pages, hard_pages, .. } = PipeLimits::read();
        Some(PipeQuota { uid, used_pages, soft_pages, hard_pages })
    }
}

/// The process that has most pages of pipes open of those for which the user of this pipe is charged, the pages, and the quota; `None` unless it is used up.
pub(crate) fn largest_holder(
    ends: impl Iterator<Item = (i32, Endpoint)>,
    pipe: Identity,
) -> Option<(i32, u64, u64)> {
    let mut charges: HashMap<Identity, Option<(u32, u64)>> = HashMap::new();
    let mut held: BTreeMap<i32, HashSet<Identity>> = BTreeMap::new();
    for (pid, end) in ends {
        let Some(pipe) = end.ipc_file.pipe() else { continue };
        let charge = charges.entry(pipe).or_default();
        *charge = charge.or_else(|| charged(pid, &end, pipe));
        held.entry(pid).or_default().insert(pipe);
    }
    let (user, _) = charges.get(&pipe).copied().flatten()?;
    let pages = |pipe: &Identity| {
        charges.get(pipe).copied().flatten().filter(|(uid, _)| *uid == user).map_or(0, |(_, pages)| pages)
    };
    let quota = PipeLimits::read().soft_pages;
    let used: u64 = charges.keys().map(pages).sum();
    let (pid, most) = held
        .iter()
        .map(|(pid, pipes)| (*pid, pipes.iter().map(pages).sum()))
        .max_by_key(|(_, pages)| *pages)?;
    // Some may have been closed since.
    (quota > 0 && used > quota / 2).then_some((pid, most, quota))
}

/// The user who is charged for a pipe, and its pages. A FIFO is opened only if it has a reader: opening it would wake a writer that waits for one.
fn charged(pid: i32, end: &Endpoint, pipe: Identity) -> Option<(u32, u64)> {
    let is_nameless = Some(pipe.0) == nameless();
    let may_open = end.reads || (is_nameless && end.writes);
    if !may_open {
        return None;
    }
    let open = BriefPipe::open(pid, end.fd, Some(pipe)).ok()?;
    let pages = fcntl_getpipe_size(&open).ok()? as u64 / page_size() as u64;
    // A FIFO is charged to the user who opened it first; its file may belong to another.
    let uid = match is_nameless {
        true => fstat(&open).ok()?.st_uid,
        false => fs::metadata(format!("/proc/{pid}")).ok()?.uid(),
    };
    Some((uid, pages))
}

/// Whether a new pipe of this user has the full default size. With CAP_SYS_RESOURCE or CAP_SYS_ADMIN it always has.
pub fn new_pipes_are_whole() -> bool {
    let made = pipe_with(PipeFlags::CLOEXEC);
    made.and_then(|(reader, _)| fcntl_getpipe_size(reader))
        .is_ok_and(|bytes| bytes as u64 >= NEW_PIPE_PAGES * page_size() as u64)
}
