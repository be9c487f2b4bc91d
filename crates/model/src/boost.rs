//! The record of `hosepipe boost` (docs/RECORD.md).

use serde::{Deserialize, Serialize};

use crate::{PipeQuota, RecordHead};

/// The record of `hosepipe boost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The process whose pipes, and those of whatever it started, were watched.
    pub pid: i32,
    /// For how long.
    pub wall_ns: u64,
    /// The command's status as a shell shows it; `null` with `--pid`.
    pub status: Option<i32>,
    /// How often processes and pipes were looked at.
    pub looks: u64,
    /// CPU time that watching took.
    pub cpu_ns: u64,
    /// Every pipe that was enlarged.
    pub boosted: Vec<BoostedPipe>,
    /// Why other pipes that were full were not enlarged; `null` where none was left as it was.
    pub refused: Option<String>,
    /// When the first of these was refused; absent in earlier records.
    #[serde(default)]
    pub pipe_quota: Option<PipeQuota>,
    /// Processes that could not be looked at: set-user-ID programs, and others of other users.
    pub unseen: u64,
}

/// A pipe that was enlarged.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoostedPipe {
    /// Its inode, as /proc shows it: `pipe:[INODE]`.
    pub inode: u64,
    /// Who wrote to it when it was enlarged; `null` where that was not one of the processes watched.
    pub writer: Option<NamedProcess>,
    /// Who had it as standard input; `null` as for `writer`.
    pub reader: Option<NamedProcess>,
    /// Its size before.
    pub before_bytes: u64,
    /// Its size since.
    pub after_bytes: u64,
    /// For how long it was watched: while its writer ran, or waited for its output.
    pub watched_ns: u64,
    /// Of that: it was full. Once it cannot grow any more it is so only where its writer sleeps for that reason.
    pub full_ns: u64,
    /// Bytes a second that its writer wrote, to whatever file (proc_pid_io(5), `wchar`), or else its first reader read: while it was full
    /// before it was enlarged, and since; `null` where that was too short, or is not shown.
    #[serde(default)]
    pub before_bytes_per_s: Option<u64>,
    /// As above.
    #[serde(default)]
    pub after_bytes_per_s: Option<u64>,
    /// True where it lived on and could not be made small again, because it held too much.
    pub left: bool,
}

/// A process, by its number and its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedProcess {
    /// Its number.
    pub pid: i32,
    /// Its name, as proc_pid_comm(5) has it.
    pub command: String,
}
