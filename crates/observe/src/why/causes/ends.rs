//! Ends of pipes that the wrong process holds, that no process holds, or that no process uses.

use model::WhyCause;
use process::proc::field_value;

use super::{Case, Finding};
use crate::brief_pipe::is_unread;
use crate::endpoint::{Endpoint, IpcFile, nameless};
use crate::flow::Calls;
use crate::why::graph::stream;
use crate::why::needs::{Need, Resource};
use crate::why::wait::Wait;

/// SIGPIPE in a mask of signals (proc_pid_status(5)).
const SIGPIPE_BIT: u64 = 1 << (libc::SIGPIPE - 1);
/// Smallest share of a CPU, and smallest number of calls within the time of watching, of a program that tries again and again.
const SPIN_CPU_MIN: f64 = 0.05;
const SPIN_CALLS_MIN: u64 = 500;
/// A buffer that is full within this time is written soon.
const FULL_SOON_NS: u64 = 3_000_000_000;
/// A pipe of at most this size has one or two pages.
const SMALL_BYTES: u64 = 8192;
const SHELLS: [&str; 8] = ["bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "busybox"];

/// A reader waits for the end of its input, and all who have its writing end open are no part of what it belongs to: a daemon that was left behind, or a process
/// that has inherited a copy.
pub(super) fn held_by_others(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    for (pid, need) in case.waits() {
        // The reader's own end, and the one of the writers: of a pair of sockets these are two files.
        let (file, written) = match need.resource {
            Resource::Pipe { pipe, writes: false, .. } => (IpcFile::Pipe(pipe), IpcFile::Pipe(pipe)),
            Resource::Socket { inode, writes: false, .. } => {
                let pair =
                    graph.sockets.get(&inode).filter(|socket| socket.name.is_empty() && !socket.is_tcp);
                let Some(peer) = pair.and_then(|socket| socket.peer) else { continue };
                (IpcFile::Socket(inode), IpcFile::Socket(peer))
            }
            _ => continue,
        };
        let is_relative = |holder: i32| {
            let mut above = graph.scene.ancestors(pid);
            above.any(|ancestor| ancestor == holder)
                || graph.scene.ancestors(holder).any(|ancestor| ancestor == pid)
        };
        let is_left = |holder: i32| graph.scene.is_left_behind(holder, pid, file);
        let is_copy = |holder: i32| {
            let by = graph.scene.ends(written);
            let mut by = by.iter().filter(|(pid, end)| *pid == holder && end.writes);
            file == written && by.all(|(_, end)| end.fd > 2) && !is_relative(holder)
        };
        let others = || need.wakers.iter().map(|holder| holder.pid).filter(|holder| *holder != pid);
        let waits_here = |holder: i32| !graph.is_alive(holder) && graph.watched.contains_key(&holder);
        let (left, copied): (Vec<i32>, Vec<i32>) = (
            others().filter(|holder| is_left(*holder)).collect(),
            others().filter(|holder| is_copy(*holder)).collect(),
        );
        let (cause, by) =
            if left.is_empty() { (WhyCause::CopyHeld, copied) } else { (WhyCause::DaemonHolds, left) };
        let is_all = others().all(|holder| by.contains(&holder) || waits_here(holder));
        if by.is_empty() || !is_all {
            continue;
        }
        let fds = need.wakers.iter().filter(|holder| by.contains(&holder.pid)).filter_map(|holder| holder.fd);
        let mut fds: Vec<String> = fds.map(stream).collect();
        fds.dedup();
        let detail = fds.join(", ");
        return Some(Finding { by, detail, ..case.of_need(cause, pid, need) });
    }
    None
}

/// A writer whose reader has ended.
pub(super) fn reader_left(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    for (pid, one) in case.each() {
        let Some(end) = graph.scene.end(pid, 1).filter(|end| end.writes && end.ipc_file.pipe().is_some())
        else {
            continue;
        };
        if one.threads.is_empty()
            || !graph.scene.holders(end.ipc_file, false).is_empty()
            || !is_unread(pid, 1)
        {
            continue;
        }
        let ignored = field_value(&format!("/proc/{pid}/status"), "SigIgn")
            .and_then(|mask| u64::from_str_radix(&mask, 16).ok());
        let is_ignored = ignored.is_some_and(|mask| mask & SIGPIPE_BIT != 0);
        let waits = one.first().map_or_else(String::new, |(_, need)| graph.describe(pid, need));
        let by = one
            .first()
            .map_or_else(Vec::new, |(_, need)| need.wakers.iter().map(|holder| holder.pid).collect());
        let writes = one.calls.is_some_and(|calls| calls.writes > 0);
        // One that waits for others than a stage before it, as a server does, may never write.
        let rests = one.first().is_some_and(|(_, need)| need.outside);
        if (is_ignored && writes) || (one.slept && !rests) {
            let cause = if is_ignored && writes { WhyCause::SigpipeIgnored } else { WhyCause::ReaderLeft };
            let what = crate::endpoint::path_of(pid, 1).unwrap_or_default();
            return Some(Finding { by, what, detail: waits, ..Finding::new(cause, pid) });
        }
    }
    None
}

/// A program that tries the same call again and again: of a FIFO without writers, or in non-blocking mode.
pub(super) fn spins(case: &Case) -> Option<Finding> {
    for (pid, one) in case.each().filter(|(_, one)| one.cpus > SPIN_CPU_MIN) {
        let Some(Calls { reads, read_bytes, writes, written_bytes }) = one.calls else { continue };
        let files = case.graph.process(pid).and_then(|process| process.files.as_ref());
        let pipes = || {
            files.into_iter().flat_map(|files| &files.endpoints).filter(|end| end.ipc_file.pipe().is_some())
        };
        let (reads_nothing, writes_nothing) = (
            reads > SPIN_CALLS_MIN && read_bytes < reads / 8,
            writes > SPIN_CALLS_MIN && written_bytes < writes / 8,
        );
        let is_over = |end: &&Endpoint| end.reads && case.graph.scene.holders(end.ipc_file, true).is_empty();
        let found = |end: &Endpoint| Finding {
            what: crate::endpoint::path_of(pid, end.fd).unwrap_or_default(),
            detail: stream(end.fd),
            ..Finding::new(WhyCause::FifoBusy, pid)
        };
        if let Some(end) = pipes().find(is_over).filter(|_| reads_nothing) {
            return Some(found(end));
        }
        let is_meant = |end: &&Endpoint| {
            (reads_nothing && end.reads || writes_nothing && end.writes) && is_non_blocking(pid, end.fd)
        };
        if let Some(end) = pipes().find(is_meant) {
            let others = case.graph.scene.ends(end.ipc_file).iter().filter(|(other, found)| {
                *other != pid && found.writes == end.writes && is_non_blocking(*other, found.fd)
            });
            let by = others.map(|(other, _)| *other).collect();
            return Some(Finding { cause: WhyCause::NonBlocking, by, ..found(end) });
        }
    }
    None
}

/// Whether a descriptor is in non-blocking mode (proc_pid_fdinfo(5)), which all who share it have in common.
fn is_non_blocking(pid: i32, fd: i32) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & libc::O_NONBLOCK != 0)
}

/// A program that keeps lines in its buffer while its reader waits for them.
pub(super) fn held_in_buffer(case: &Case) -> Option<Finding> {
    let found = case.each().find_map(|(pid, one)| {
        let held = one.held_back.as_ref()?;
        // A buffer that is full soon holds nothing back.
        if held.full_in_ns.is_some_and(|ns| ns < FULL_SOON_NS) {
            return None;
        }
        let is_empty = case.graph.fill(pid, 1).is_some_and(|fill| !fill.holds);
        is_empty.then_some((pid, held))
    });
    let (pid, held) = found?;
    let bytes = held.held_bytes.map_or_else(|| "output".to_owned(), |bytes| format!("{bytes} bytes"));
    let detail = format!("{bytes} (its buffer has {})", held.buffer_bytes);
    let what = held.cure.clone().unwrap_or_default();
    let end = case.graph.scene.end(pid, 1)?;
    let by = case.graph.scene.holders(end.ipc_file, false).iter().map(|holder| holder.pid).collect();
    Some(Finding { by, what, detail, ..Finding::new(WhyCause::HeldInBuffer, pid) })
}

/// A writer without room whose reader does something else.
pub(super) fn blocked_writer(case: &Case) -> Option<Finding> {
    let writes = |need: &Need| match need.resource {
        Resource::Pipe { writes, .. }
        | Resource::Socket { writes, .. }
        | Resource::Terminal { writes, .. } => writes,
        _ => false,
    };
    for (pid, need) in case.waits().filter(|(_, need)| writes(need)) {
        let is_busy = |holder: i32| {
            let Some(one) = case.graph.watched.get(&holder) else { return false };
            !one.slept || one.needs().any(writes)
        };
        // One that works is about to read, and one that waits for room itself is not the last.
        if need.wakers.is_empty() || need.wakers.iter().any(|holder| is_busy(holder.pid)) {
            continue;
        }
        let fill = need.pipe().and_then(|(_, fd, _)| case.graph.fill(pid, fd));
        let cause = match (&need.resource, fill) {
            (Resource::Terminal { is_master: false, .. }, _) => WhyCause::TerminalFull,
            (_, Some(fill))
                if fill.capacity_bytes <= SMALL_BYTES && fill.held_bytes < fill.capacity_bytes =>
            {
                WhyCause::SmallPipe
            }
            _ => WhyCause::ReaderSleeps,
        };
        let reader = need
            .wakers
            .first()
            .and_then(|holder| Some((holder.pid, case.graph.watched.get(&holder.pid)?.first()?)));
        let does = reader.map_or_else(String::new, |(pid, (thread, need))| match thread.wait {
            Wait::Time(_) => "sleeps now".to_owned(),
            _ => case.graph.describe(pid, need),
        });
        let detail = match (cause, fill) {
            (WhyCause::SmallPipe, Some(fill)) => {
                format!("{} of {} bytes", fill.held_bytes, fill.capacity_bytes)
            }
            _ => does,
        };
        return Some(Finding { detail, ..case.of_need(cause, pid, need) });
    }
    None
}

/// A program in the body of a loop that reads the loop's input.
pub(super) fn loop_input(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    case.waits().find_map(|(pid, need)| {
        let (pipe, fd, writes) = need.pipe()?;
        if fd != 0 || writes {
            return None;
        }
        let reads_bytes = |shell: i32| {
            let is_shell =
                graph.process(shell).is_some_and(|process| SHELLS.contains(&process.name.as_str()));
            let has_it = graph.scene.end(shell, 0).is_some_and(|end| end.ipc_file == IpcFile::Pipe(pipe));
            let calls = || Calls::of(shell).is_some_and(|calls| calls.reads > 1 && calls.are_of_bytes());
            is_shell && has_it && calls()
        };
        let shell = graph.scene.ancestors(pid).find(|ancestor| reads_bytes(*ancestor))?;
        Some(Finding { by: vec![shell], ..case.of_need(WhyCause::LoopInput, pid, need) })
    })
}

/// Two processes that wait for bytes of one FIFO: each byte goes to one of them.
pub(super) fn two_readers(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    let fifos = case.each().flat_map(|(pid, _)| {
        let files = graph.process(pid).and_then(|process| process.files.as_ref());
        let ends = files.into_iter().flat_map(|files| files.endpoints.iter());
        ends.filter(|end| end.ipc_file.pipe().is_some_and(|(device, _)| Some(device) != nameless()))
            .map(move |end| (pid, end))
    });
    for (pid, end) in fifos {
        let readers: Vec<i32> =
            graph.scene.holders(end.ipc_file, false).iter().map(|holder| holder.pid).collect();
        let blocked = |reader: &&i32| {
            super::super::wait::threads(**reader).iter().any(|thread| match &thread.wait {
                Wait::Stream(fds) => fds.iter().any(|watched| {
                    watched.reads
                        && graph
                            .scene
                            .end(**reader, watched.fd)
                            .is_some_and(|found| found.ipc_file == end.ipc_file)
                }),
                _ => false,
            })
        };
        let waiting: Vec<i32> = readers.iter().filter(blocked).copied().collect();
        // Loops of a shell that read lines of one FIFO share its orders.
        let is_shell = |pid: &i32| graph.process(*pid).is_some_and(|one| SHELLS.contains(&one.name.as_str()));
        if waiting.len() > 1 && !waiting.iter().all(is_shell) {
            let what = crate::endpoint::path_of(pid, end.fd).unwrap_or_default();
            return Some(Finding {
                by: waiting[1..].to_vec(),
                what,
                ..Finding::new(WhyCause::TwoReaders, waiting[0])
            });
        }
    }
    None
}
