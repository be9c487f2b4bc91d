//! Who has how much of pipes: what `hosepipe doctor --pipes` tells.

use serde::Serialize;

use crate::NamedProcess;

/// The pipes of this machine that can be seen, against the quotas (pipe(7)).
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct PipeSurvey {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// fs.pipe-user-pages-soft, for each user; 0: no limit.
    pub soft_pages: u64,
    /// fs.pipe-user-pages-hard, for each user; 0: no limit.
    pub hard_pages: u64,
    /// Each user to whom pipes are charged, those with the most pages first.
    pub users: Vec<PipeUser>,
    /// Each process that has ends of pipes, those with the most pages first.
    pub processes: Vec<PipeHolder>,
    /// Pipes that are full, and those that have two pages or fewer.
    pub narrow: Vec<NarrowPipe>,
    /// FIFOs that nobody reads, whose size cannot be asked without being a reader.
    pub unknown: u64,
    /// Processes of others, whose pipes cannot be seen.
    pub unseen: u64,
}

/// What is charged to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PipeUser {
    /// The user's number.
    pub uid: u32,
    /// The name; `null` where the number has none.
    pub name: Option<String>,
    /// How many pipes.
    pub pipes: u64,
    /// Pages that they can hold, whether they are used or not.
    pub pages: u64,
}

/// What a process has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PipeHolder {
    /// Its number and name.
    #[serde(flatten)]
    pub process: NamedProcess,
    /// How many pipes it has ends of.
    pub pipes: u64,
    /// Pages that they can hold; others may have ends of the same.
    pub pages: u64,
}

/// A pipe that is full, or smaller than pipes are from the beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NarrowPipe {
    /// As /proc shows it: `pipe:[INODE]`.
    pub inode: u64,
    /// The user to whom it is charged.
    pub uid: u32,
    /// Its size.
    pub bytes: u64,
    /// What is in it now.
    pub held_bytes: u64,
    /// Whether no page more fits into it.
    pub is_full: bool,
    /// Who has its writing end.
    pub writers: Vec<NamedProcess>,
    /// Who has its reading end.
    pub readers: Vec<NamedProcess>,
}
