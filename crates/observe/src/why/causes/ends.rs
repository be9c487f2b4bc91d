//! Ends of pipes that the wrong process holds, that no process holds, or that no process uses.

use std::path::Path;
use std::time::Duration;

use model::{WhyCause, WhyEdge, descriptor_name};
use process::proc::{command_line, descriptors, field_value};
use rustix::fs::FileType;

use super::{Case, Finding};
use crate::brief_pipe::is_unread;
use crate::endpoint::{Endpoint, IpcFile, nameless, path_of};
use crate::flow::Calls;
use crate::line_buffering;
use crate::open_file::{Identity, found_at};
use crate::quota::largest_holder;
use crate::why::graph::Watched;
use crate::why::needs::{Need, Resource};
use crate::why::wait::{Thread, Wait, threads};

/// SIGPIPE in a mask of signals (proc_pid_status(5)).
const SIGPIPE_BIT: u64 = 1 << (libc::SIGPIPE - 1);
/// Smallest share of a CPU, and smallest number of calls within the time of watching, of a program that tries again and again.
const SPIN_CPU_MIN: f64 = 0.05;
const SPIN_CALLS_MIN: u64 = 500;
/// A buffer that is full within this time is written soon.
const FULL_SOON_NS: u64 = 3_000_000_000;
/// Shortest life of a reader that got nothing, and the time after its start in which it is loaded.
const OLD_MIN_NS: u64 = 3_000_000_000;
const BEGIN_NS: u64 = 1_500_000_000;
const BEGIN_PARTS: u64 = 8;
/// A pipe of at most this size has one or two pages.
const SMALL_BYTES: u64 = 8192;
/// Longest time for which a program sleeps between two reads that takes its input slowly, or between two writes.
const PAUSE_MAX_NS: u64 = 10_000_000_000;
/// Longest sleep, so far, of a reader that waits with a time limit, and is about to read.
const TURN_MAX_NS: u64 = 3_000_000_000;

/// How often a reader is looked at, and the time between.
const LOOKS: u32 = 4;
const LOOKS_PAUSE: Duration = Duration::from_millis(5);

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
        // A server that has forked itself from its client talks to it over another descriptor of a pair.
        let is_standard = |holder: i32| {
            graph.scene.ends(written).iter().any(|(other, end)| *other == holder && end.fd <= 2)
        };
        let is_left = |holder: i32| {
            graph.scene.is_left_behind(holder, pid, file) && (file == written || is_standard(holder))
        };
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
        let is_log =
            cause == WhyCause::DaemonHolds && is_appended(pid, 1) && by.iter().all(|by| serves(case, *by));
        if by.is_empty() || !is_all || is_log {
            continue;
        }
        let fds = need.wakers.iter().filter(|holder| by.contains(&holder.pid)).filter_map(|holder| holder.fd);
        let mut fds: Vec<String> = fds.map(descriptor_name).collect();
        fds.dedup();
        let detail = fds.join(", ");
        return Some(Finding { by, detail, ..case.of_need(cause, pid, need) });
    }
    None
}

/// Whether a process waits for connections, as a server does.
fn serves(case: &Case, pid: i32) -> bool {
    let is_listening = |need: &Need| need.resource == Resource::Connections;
    case.graph
        .watched
        .get(&pid)
        .is_some_and(|one| one.slept && one.needs().flat_map(Need::each).any(is_listening))
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
            let what = path_of(pid, 1).unwrap_or_default();
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
            what: path_of(pid, end.fd).unwrap_or_default(),
            detail: descriptor_name(end.fd),
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

/// How a file was opened (proc_pid_fdinfo(5)), which all who share it have in common.
fn open_flags(pid: i32, fd: i32) -> Option<i32> {
    i32::from_str_radix(&field_value(&format!("/proc/{pid}/fdinfo/{fd}"), "flags")?, 8).ok()
}

fn is_non_blocking(pid: i32, fd: i32) -> bool {
    open_flags(pid, fd).is_some_and(|flags| flags & libc::O_NONBLOCK != 0)
}

/// Whether a descriptor is a file at whose end all is written, as a log.
fn is_appended(pid: i32, fd: i32) -> bool {
    open_flags(pid, fd).is_some_and(|flags| flags & libc::O_APPEND != 0)
}

/// A program that reads or copies again and again, and gets nothing: each call returns 0, as at the end of a file, or fails.
pub(super) fn reads_nothing(case: &Case) -> Option<Finding> {
    let is_it = |one: &Watched| {
        one.cpus > SPIN_CPU_MIN
            && one.calls.is_some_and(|calls| calls.reads > SPIN_CALLS_MIN && calls.read_bytes == 0)
    };
    let (pid, _) = case.each().find(|(_, one)| is_it(one))?;
    let mut files: Vec<(i32, String, bool)> = descriptors(pid)
        .filter(|fd| case.graph.scene.end(pid, *fd).is_none())
        .filter_map(|fd| regular_file(pid, fd).map(|(path, is_at_end)| (fd, path, is_at_end)))
        .collect();
    model::sort_by_key(&mut files, |(_, _, is_at_end)| !is_at_end);
    let (detail, what) =
        files.into_iter().next().map(|(fd, path, _)| (descriptor_name(fd), path)).unwrap_or_default();
    Some(Finding { what, detail, ..Finding::new(WhyCause::EndOfFile, pid) })
}

/// The path of a regular file that a process may read, and whether nothing is left behind its position. (Calls that have a position of their own leave this one.)
fn regular_file(pid: i32, fd: i32) -> Option<(String, bool)> {
    let path = path_of(pid, fd).filter(|path| path.starts_with('/') && !path.starts_with("/dev"))?;
    let (kind, _, size) = found_at(Path::new(&format!("/proc/{pid}/fd/{fd}")))?;
    let position: u64 = field_value(&format!("/proc/{pid}/fdinfo/{fd}"), "pos")?.parse().ok()?;
    let may_read = open_flags(pid, fd)? & libc::O_ACCMODE != libc::O_WRONLY;
    (kind == FileType::RegularFile && may_read).then_some((path, position >= size))
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

/// A script that works, has written nothing yet, and whose interpreter has a buffer for what it prints. What is in it cannot be seen.
pub(super) fn may_hold(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    let found = case.each().find_map(|(pid, one)| {
        let is_meant = graph.program(pid).is_some_and(|program| keeps_own_buffer(pid, &program));
        let end =
            graph.scene.end(pid, 1).filter(|end| is_meant && end.writes && end.ipc_file.pipe().is_some())?;
        let readers: Vec<i32> =
            graph.scene.holders(end.ipc_file, false).iter().map(|reader| reader.pid).collect();
        let is_empty = || graph.fill(pid, 1).is_some_and(|fill| !fill.holds);
        let has_written = || Calls::of(pid).is_none_or(|calls| calls.written_bytes > 0);
        let has_read =
            |reader: &i32| has_slept_since_start(case, *reader).map_or_else(has_written, |slept| !slept);
        let is_new = readers.is_empty() || readers.iter().any(has_read);
        (!is_new && is_empty() && (goes_round(one) || has_input(case, pid, one))).then_some((pid, readers))
    });
    let (pid, by) = found?;
    let what = line_buffering::advice(&graph.program(pid)?, false)?;
    Some(Finding { by, what, ..Finding::new(WhyCause::MayHold, pid) })
}

/// Whether a program has a buffer for what it prints that cannot be looked into: that of an interpreter, or any where memory may not be read.
fn keeps_own_buffer(pid: i32, name: &str) -> bool {
    let is_hidden = || std::fs::File::open(format!("/proc/{pid}/mem")).is_err();
    line_buffering::is_interpreter(name) || (line_buffering::advice(name, false).is_some() && is_hidden())
}

/// Whether a process has not run since shortly after its start, so that nothing came that it would have read; `None` if it is not known when it ran.
fn has_slept_since_start(case: &Case, pid: i32) -> Option<bool> {
    let age_ns = model::monotonic_ns().saturating_sub(case.graph.process(pid)?.stat.started_ns());
    if age_ns <= OLD_MIN_NS {
        return Some(false);
    }
    let slept_ns = threads(pid).iter().map(Thread::asleep_ns).min()??;
    // On a busy machine it is loaded slowly.
    Some(age_ns.saturating_sub(slept_ns) < BEGIN_NS.max(age_ns / BEGIN_PARTS))
}

/// Whether a program does something again and again, with pauses.
fn goes_round(one: &Watched) -> bool {
    let pauses = |thread: &Thread| matches!(thread.wait, Wait::Time { ns: Some(..=PAUSE_MAX_NS), .. });
    one.threads.iter().any(|(thread, _)| pauses(thread))
        || (!one.slept && one.turns_per_s > 1.0 && one.cpus < SPIN_CPU_MIN)
}

/// Whether a program waits for more input, and has read what was written into its input before.
fn has_input(case: &Case, pid: i32, one: &Watched) -> bool {
    let input =
        one.needs().find_map(|need| need.pipe().filter(|(_, fd, writes)| *fd == 0 && !writes).map(|_| need));
    let has_written = |writer: i32| Calls::of(writer).is_some_and(|calls| calls.written_bytes > 0);
    let is_empty = || case.graph.fill(pid, 0).is_some_and(|fill| !fill.holds);
    input.is_some_and(|need| need.wakers.iter().any(|holder| has_written(holder.pid)) && is_empty())
}

/// A writer without room whose reader does something else.
pub(super) fn blocked_writer(case: &Case) -> Option<Finding> {
    let writes = |need: &Need| match need.resource {
        Resource::Pipe { writes, .. }
        | Resource::Socket { writes, .. }
        | Resource::Terminal { writes, .. } => writes,
        _ => false,
    };
    for (pid, wait, need) in case.thread_waits().filter(|(.., need)| writes(need)) {
        let is_busy = |holder: i32| {
            let Some(one) = case.graph.watched.get(&holder) else { return false };
            !one.slept || one.needs().any(writes) || (wait.is_unclear() && !case.sleeps(holder))
        };
        // One that works is about to read, and one that waits for room itself is not the last.
        if need.wakers.is_empty()
            || need
                .wakers
                .iter()
                .any(|holder| is_busy(holder.pid) || takes_slowly(case, pid, need, holder.pid))
        {
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
            Wait::Time { .. } => "sleeps now".to_owned(),
            _ => case.graph.describe(pid, need),
        });
        let detail = match (cause, fill) {
            (WhyCause::SmallPipe, Some(fill)) => {
                format!("{} of {} bytes", fill.held_bytes, fill.capacity_bytes)
            }
            _ => does,
        };
        let edges = (cause == WhyCause::SmallPipe).then(|| {
            let mut edges = case.way_to(pid);
            edges.extend(need.pipe().and_then(|(pipe, ..)| quota_holder(case, pipe)));
            edges
        });
        return Some(Finding { detail, edges, ..case.of_need(cause, pid, need) });
    }
    None
}

/// The process that has most pages of the quota for which a pipe is small.
fn quota_holder(case: &Case, pipe: Identity) -> Option<WhyEdge> {
    let (pid, pages, quota) = largest_holder(case.graph.scene.all_ends(), pipe)?;
    let does = format!(
        "has {pages} pages of pipes, the most of its user, whose quota is {quota} (fs.pipe-user-pages-soft)"
    );
    Some(WhyEdge { from: case.graph.named(pid), does, to: Vec::new() })
}

/// Whether a reader has read a part, and sleeps for some seconds before it reads more.
fn takes_slowly(case: &Case, writer: i32, need: &Need, reader: i32) -> bool {
    let held =
        need.pipe().and_then(|(_, fd, _)| case.graph.fill(writer, fd)).map_or(0, |fill| fill.capacity_bytes);
    let has_read = || Calls::of(writer).is_some_and(|calls| calls.written_bytes > held);
    // Where the time may not be read it is at least that which has passed.
    let asleep_ns = |thread: &Thread| need.pipe().and_then(|_| thread.asleep_ns());
    let is_short = |thread: &Thread, ns: Option<u64>| {
        ns.or_else(|| asleep_ns(thread)).is_some_and(|ns| ns <= PAUSE_MAX_NS)
    };
    let pauses = |thread: &Thread| match thread.wait {
        Wait::Time { ns, .. } => is_short(thread, ns),
        // A client with a limit of its rate, such as curl --limit-rate.
        Wait::Poll { timed: true, .. } => {
            need.pipe().is_none() && thread.asleep_ns().is_some_and(|ns| ns <= TURN_MAX_NS)
        }
        _ => false,
    };
    case.graph.watched.get(&reader).is_some_and(|one| one.threads.iter().any(|(thread, _)| pauses(thread)))
        && has_read()
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
            let has_it = graph.scene.end(shell, 0).is_some_and(|end| end.ipc_file == IpcFile::Pipe(pipe));
            let calls = || Calls::of(shell).is_some_and(|calls| calls.reads > 1 && calls.are_of_bytes());
            // The counts of a shell that was started for the loop hold what was read to load it.
            let is_loop = || {
                let line = command_line(shell);
                line.contains("while ") && line.contains("read ")
            };
            has_it && graph.is_shell(shell) && (calls() || is_loop())
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
        let waits = |reader: i32| {
            threads(reader).iter().any(|thread| match &thread.wait {
                Wait::Stream(fds) => fds.iter().filter(|watched| watched.reads).any(|watched| {
                    let found = graph.scene.end(reader, watched.fd);
                    found.is_some_and(|found| found.ipc_file == end.ipc_file)
                }),
                _ => false,
            })
        };
        if readers.len() < 2 {
            continue;
        }
        // One that has just got a line waits for the next.
        let blocked = |reader: &&i32| {
            (0..LOOKS).any(|look| {
                std::thread::sleep(LOOKS_PAUSE * look.min(1));
                waits(**reader)
            })
        };
        let waiting: Vec<i32> = readers.iter().filter(blocked).copied().collect();
        // Loops of a shell that read lines of one FIFO share its orders.
        if waiting.len() > 1 && !waiting.iter().all(|pid| graph.is_shell(*pid)) {
            let what = path_of(pid, end.fd).unwrap_or_default();
            return Some(Finding {
                by: waiting[1..].to_vec(),
                what,
                ..Finding::new(WhyCause::TwoReaders, waiting[0])
            });
        }
    }
    None
}
