//! Which chains `hosepipe top` shows.

use model::{Chain, TopSnapshot, to_see_other_users};
use observe::end::are_hidden;
use process::proc::{Stat, has_ended};

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
            return usage(format!("there is no process {pid}"));
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
            Self::Of(pid) => format!(
                "Process {pid} is in no chain: no pipe, FIFO, socket or pseudoterminal joins it, or what it has started, to another process."
            ),
            Self::Named(text) => format!("No chain has `{text}` in the name of a program."),
        };
        let foreign = match snapshot.foreign_processes {
            0 => "",
            _ => " Those of other users are seen with root's capabilities only.",
        };
        Some(reason + foreign)
    }
}

/// Whether a process is `ancestor` or one of its descendants.
fn is_descendant(pid: i32, ancestor: i32) -> bool {
    const DEPTH_MAX: usize = 64;
    let parent = |pid: &i32| Stat::of(*pid).map(|stat| stat.parent);
    std::iter::successors(Some(pid), parent).take(DEPTH_MAX).any(|pid| pid == ancestor)
}
