//! Which chains `hosepipe top` shows.

use model::{Chain, TopSnapshot, one_line, to_see_other_users};
use observe::endpoint::are_hidden;
use process::proc::{Stat, has_ended, has_ptrace_capability, named};

use crate::terminal::usage;

/// Which chains are shown.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum ChainFilter {
    #[default]
    All,
    /// Those of a process and its descendants.
    Of(i32),
    /// Those with this in the name of a program, in lower case.
    Named(String),
}

impl ChainFilter {
    /// Parses a PID or a part of a name.
    ///
    /// # Errors
    /// There is no such process, or this user may not see what it has open.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let Ok(pid) = text.parse() else { return Ok(Self::named(text)) };
        if pid <= 0 || has_ended(pid) {
            return usage(zombie(pid).unwrap_or_else(|| format!("there is no process {pid}")));
        }
        if are_hidden(pid) {
            let remedy = to_see_other_users(&format!("hosepipe top {pid}"));
            return usage(format!(
                "process {pid} belongs to another user, or has more rights, and its open files cannot be read: {remedy}"
            ));
        }
        Ok(Self::Of(pid))
    }

    /// Chains with this text in the name of a program; an empty text means all.
    pub(super) fn named(text: &str) -> Self {
        if text.is_empty() { Self::All } else { Self::Named(text.to_lowercase()) }
    }

    pub(super) fn matches(&self, chain: &Chain) -> bool {
        let mut processes = chain.stages.iter().flat_map(|stage| &stage.processes);
        match self {
            Self::All => true,
            Self::Of(pid) => processes.any(|process| is_descendant(process.pid, *pid)),
            Self::Named(text) => processes.any(|process| process.name.to_lowercase().contains(text)),
        }
    }

    /// Why no chain matches; `None` if all chains were asked for.
    pub(super) fn explain_none(&self, snapshot: &TopSnapshot) -> Option<String> {
        let reason = match self {
            Self::All => return None,
            Self::Of(pid) if has_ended(*pid) => format!("Process {pid} has ended."),
            Self::Of(pid) if observe::sockets::has_pair(*pid) => {
                format!(
                    "Process {pid} is in no chain: the direction of bytes in its pair of sockets is unknown."
                )
            }
            Self::Of(pid) if observe::endpoint::has_pipe_in_common(|holder| is_descendant(holder, *pid)) => {
                format!(
                    "Process {pid} is in no chain: it, or what it has started, has a pipe in common with other processes, but no process that \
                 writes to it and another one that reads from it are known. Some may hold ends that they do not use."
                )
            }
            Self::Of(pid) => format!(
                "Process {pid} is in no chain: no pipe, FIFO, socket or pseudoterminal is known to carry bytes between it, or what it has \
                 started, and another process."
            ),
            Self::Named(text) => format!("No chain has `{text}` in the name of a program."),
        };
        let foreign = match snapshot.foreign_processes {
            0 => "",
            _ if has_ptrace_capability() => {
                " Some processes do not show what they have open, not even to this user."
            }
            _ => " Those of other users are seen with root's capabilities only.",
        };
        Some(reason + foreign)
    }
}

/// What a process is that has ended, but whose parent has not waited for it; `None` if there is none.
fn zombie(pid: i32) -> Option<String> {
    let parent = Stat::of(pid)?.parent;
    let name = named(parent).map_or_else(String::new, |parent| format!(" ({})", one_line(&parent.command)));
    Some(format!(
        "process {pid} has ended and has nothing open: it is a zombie, because process {parent}{name}, which started it, has not waited for it"
    ))
}

/// Whether a process is `ancestor` or one of its descendants.
fn is_descendant(pid: i32, ancestor: i32) -> bool {
    const DEPTH_MAX: usize = 64;
    let parent = |pid: &i32| Stat::of(*pid).map(|stat| stat.parent);
    std::iter::successors(Some(pid), parent).take(DEPTH_MAX).any(|pid| pid == ancestor)
}
