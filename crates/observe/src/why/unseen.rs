//! What a thread waits for where its system call may not be read, as where Yama lets only parents do so (kernel documentation, admin-guide/LSM/Yama.rst):
//! by the kernel's function in which it sleeps (proc_pid_wchan(5)), and by what its process has open. Where several files fit, it is one of them.

use process::proc::descriptors;

use super::wait::{Queue, Wait};
use crate::endpoint::{Endpoint, IpcFile, ProcessFiles, nameless, path_of, process_files};
use crate::fullness::Gauge;
use crate::line_buffering::is_filter;
use crate::waits::{WatchedFd, watched};

/// How an epoll descriptor is shown.
const EPOLL: &str = "anon_inode:[eventpoll]";

/// What a thread of a process waits for.
pub(super) fn by_function(pid: i32, function: &str) -> Wait {
    let is_in = |parts: &[&str]| parts.iter().any(|part| function.contains(part));
    let open = Open { pid, files: process_files(pid).unwrap_or_default() };
    match function {
        "" | "0" => Wait::Other,
        _ if is_in(&["pipe_read", "pipe_wait_readable"]) => stream(open.pipes(false)),
        _ if is_in(&["pipe_write", "pipe_wait_writable"]) => stream(open.pipes(true)),
        _ if is_in(&["unix_stream_read", "wait_for_more_packets"]) => stream(open.sockets(false)),
        _ if is_in(&["sock_alloc_send", "unix_stream_sendmsg"]) => stream(open.sockets(true)),
        // Terminals, and connections of TCP.
        _ if is_in(&["wait_woken", "n_tty_read", "tty_read", "n_tty_write", "tty_write"]) => {
            stream([open.sockets(false), open.terminal()].concat())
        }
        _ if is_in(&["csk_accept"]) => Wait::Accept { fd: -1 },
        _ if is_in(&["flock", "posix_lock", "locks_lock_inode", "fcntl_setlk"]) => Wait::Lock { fd: -1 },
        _ if is_in(&["unix_wait_for_peer"]) => Wait::Connect { fd: -1, to: None },
        _ if is_in(&["msgsnd", "msgrcv"]) => {
            Wait::Queue { queue: Queue::SystemV(-1), sends: function.contains("snd") }
        }
        _ if is_in(&["semtimedop"]) => Wait::Semaphore { id: -1, operations: Vec::new(), timed: false },
        // It may end after a time.
        _ if is_in(&["futex"]) => Wait::Futex { address: 0, is_private: true, timed: true },
        _ if is_in(&["sigsuspend", "sigtimedwait", "pause"]) => Wait::Signal,
        _ if is_in(&["ep_poll", "epoll_wait"]) => Wait::Poll { fds: open.epolled(), timed: true },
        _ if is_in(&["poll", "select"]) => Wait::Poll { fds: open.polled(), timed: true },
        _ => Wait::Other,
    }
}

fn stream(fds: Vec<WatchedFd>) -> Wait {
    if fds.is_empty() { Wait::Other } else { Wait::Stream(fds) }
}

fn watch(fd: i32, writes: bool) -> WatchedFd {
    WatchedFd { fd, reads: !writes, writes }
}

/// What a process has open.
struct Open {
    pid: i32,
    files: ProcessFiles,
}

impl Open {
    fn ends(&self, writes: bool) -> impl Iterator<Item = &Endpoint> {
        self.files.endpoints.iter().filter(move |end| end.is_for(writes))
    }

    /// The pipes that may be read: who sleeps in read(2) has an empty one, and who sleeps in write(2) one that is not empty. A filter uses its standard stream.
    fn pipes(&self, writes: bool) -> Vec<WatchedFd> {
        let mut gauge = Gauge::default();
        let mut fits = |end: &&Endpoint| {
            let Some(pipe) = end.ipc_file.pipe() else { return false };
            // A FIFO without a reader is not opened: that would wake one who waits for a reader.
            let may_open = end.reads || Some(pipe.0) == nameless();
            let fill = may_open.then(|| gauge.pipe(self.pid, end.fd, Some(pipe))).flatten();
            fill.is_none_or(|fill| fill.holds == writes)
        };
        let mut ends: Vec<&Endpoint> = self.ends(writes).filter(|end| fits(end)).collect();
        model::sort_by_key(&mut ends, |end| end.fd);
        let mut seen: Vec<IpcFile> = Vec::new();
        ends.retain(|end| {
            let is_new = !seen.contains(&end.ipc_file);
            seen.push(end.ipc_file);
            is_new
        });
        let name = process::proc::named(self.pid).map(|process| process.command).unwrap_or_default();
        let usual = ends.iter().find(|end| end.fd == i32::from(writes)).filter(|_| is_filter(&name));
        usual.map_or_else(
            || ends.iter().map(|end| watch(end.fd, writes)).collect(),
            |end| vec![watch(end.fd, writes)],
        )
    }

    fn sockets(&self, writes: bool) -> Vec<WatchedFd> {
        let is_socket = |end: &&Endpoint| matches!(end.ipc_file, IpcFile::Socket(_));
        self.ends(writes).filter(is_socket).map(|end| watch(end.fd, writes)).collect()
    }

    /// Its terminal. Whether it is read or written is not seen.
    fn terminal(&self) -> Vec<WatchedFd> {
        let terminals = &self.files.terminals;
        let read = terminals.iter().find(|end| end.fd == 0).or(terminals.iter().find(|end| end.reads));
        let is_slave = |end: &Endpoint| matches!(end.ipc_file, IpcFile::Terminal { is_master: false, .. });
        let writes = terminals.iter().any(|end| end.fd > 0 && end.writes && is_slave(end));
        let both = |end: &Endpoint| WatchedFd { fd: end.fd, reads: true, writes: writes && is_slave(end) };
        read.or(terminals.first()).map(both).into_iter().collect()
    }

    /// What its epoll descriptors watch.
    fn epolled(&self) -> Vec<WatchedFd> {
        let is_epoll = |fd: &i32| path_of(self.pid, *fd).is_some_and(|path| path == EPOLL);
        descriptors(self.pid).filter(is_epoll).filter_map(|fd| watched(self.pid, fd)).flatten().collect()
    }

    /// What poll(2) or select(2) may watch. Where that may be a socket or a terminal, its pipes are not taken for what it waits for.
    fn polled(&self) -> Vec<WatchedFd> {
        let terminals = self.files.terminals.iter().filter(|end| end.reads).map(|end| watch(end.fd, false));
        let others: Vec<WatchedFd> = self.sockets(false).into_iter().chain(terminals).collect();
        if others.is_empty() { self.pipes(false) } else { others }
    }
}
