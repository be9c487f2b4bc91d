//! What a thread needs in order to go on, and who can give it.

use std::collections::HashMap;
use std::fs;

use super::locks;
use super::queues;
use super::scene::{Holder, Scene};
use super::sockets::Socket;
use super::wait::Wait;
use crate::endpoint::{Endpoint, IpcFile, path_of};
use crate::open_file::Identity;
use crate::waits::WatchedFd;

/// What is missing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Resource {
    /// Bytes in a pipe or a FIFO, or room in it.
    Pipe {
        pipe: Identity,
        fd: i32,
        writes: bool,
    },
    /// The same of a socket with a peer.
    Socket {
        inode: u64,
        fd: i32,
        writes: bool,
    },
    /// The same of a pseudoterminal's end.
    Terminal {
        fd: i32,
        writes: bool,
        is_master: bool,
    },
    /// Several descriptors are watched.
    Several,
    /// The other end of a FIFO.
    Fifo {
        writes: bool,
    },
    Lock,
    /// A place in the queue of a listening socket, or of datagrams.
    ListenQueue,
    Datagrams,
    Connections,
    MessageQueue {
        sends: bool,
    },
    Semaphore,
    /// An address in memory that other processes share, or that is the process's own.
    Memory {
        is_shared: bool,
    },
    Child,
    /// Nothing that a process gives.
    Nothing,
}

/// What a thread needs.
#[derive(Debug, Clone)]
pub(super) struct Need {
    pub(super) resource: Resource,
    /// Its name: the pipe, the path, the addresses.
    pub(super) what: String,
    /// Numbers of it.
    pub(super) detail: String,
    /// Those who can end the wait.
    pub(super) wakers: Vec<Holder>,
    /// Something else can: time, the network, a device, a person.
    pub(super) outside: bool,
}

impl Need {
    fn new(resource: Resource) -> Self {
        let (what, detail, wakers) = Default::default();
        Self { resource, what, detail, wakers, outside: false }
    }

    fn nothing() -> Self {
        Self { outside: true, ..Self::new(Resource::Nothing) }
    }

    /// Whether bytes of a pipe are needed, or room in it.
    pub(super) fn pipe(&self) -> Option<(Identity, i32, bool)> {
        match self.resource {
            Resource::Pipe { pipe, fd, writes } => Some((pipe, fd, writes)),
            _ => None,
        }
    }
}

/// Finds what threads need.
pub(super) struct Needs<'a> {
    pub(super) scene: &'a Scene,
    pub(super) sockets: &'a HashMap<u64, Socket>,
}

impl Needs<'_> {
    pub(super) fn of(&self, pid: i32, wait: &Wait) -> Need {
        let named = |resource, what: String| Need { what, ..Need::new(resource) };
        match wait {
            Wait::Stream(fds) => self.of_fds(pid, fds),
            Wait::Poll { fds, timed } => {
                let need = self.of_fds(pid, fds);
                Need { outside: need.outside || *timed, ..need }
            }
            Wait::OpenFifo { path, writes } => {
                named(Resource::Fifo { writes: *writes }, path.clone().unwrap_or_default())
            }
            Wait::Lock { fd } => locks::need(self.scene, pid, *fd),
            Wait::Connect { fd, path } => self.of_connect(pid, *fd, path.as_deref()),
            Wait::Accept { fd } => {
                let what = self.socket(pid, *fd).map_or_else(String::new, |socket| socket.name.clone());
                Need { outside: true, ..named(Resource::Connections, what) }
            }
            Wait::Queue { queue, sends } => queues::need(self.scene, pid, queue, *sends),
            Wait::Semaphore { id } => queues::semaphore(*id),
            Wait::Futex { address, is_private, timed } => self.of_futex(pid, *address, *is_private, *timed),
            Wait::Child(child) => self.of_child(pid, *child),
            Wait::Vfork => self.of_child(pid, None),
            Wait::Runs | Wait::Disk | Wait::Stopped | Wait::Time(_) | Wait::Signal | Wait::Other => {
                Need::nothing()
            }
        }
    }

    fn of_child(&self, pid: i32, child: Option<i32>) -> Need {
        let children = self.scene.processes.get(&pid).map_or(&[][..], |process| &process.children);
        let meant = children.iter().filter(|one| child.is_none_or(|child| child == **one));
        let wakers: Vec<Holder> = meant.map(|pid| Holder { pid: *pid, fd: None }).collect();
        Need { outside: wakers.is_empty(), wakers, ..Need::new(Resource::Child) }
    }

    fn of_fds(&self, pid: i32, fds: &[WatchedFd]) -> Need {
        let mut needs: Vec<Need> = Vec::new();
        for watched in fds.iter() {
            for writes in [false, true] {
                let is_asked = if writes { watched.writes } else { watched.reads };
                if is_asked {
                    needs.push(self.of_fd(pid, watched.fd, writes));
                }
            }
        }
        // Of one pipe that is held by several descriptors there is one.
        needs.dedup_by(|one, other| {
            one.pipe().is_some() && one.what == other.what && one.wakers == other.wakers
        });
        match needs.len() {
            0 => Need::nothing(),
            1 => needs.remove(0),
            _ => {
                let mut wakers: Vec<Holder> =
                    needs.iter().flat_map(|need| need.wakers.iter().copied()).collect();
                wakers.sort();
                wakers.dedup();
                let outside = needs.iter().any(|need| need.outside);
                // A file that only wakes the program up, such as an eventfd, beside one stream.
                let mut streams = needs.iter().filter(|need| need.resource != Resource::Nothing);
                let only = streams.next().filter(|_| streams.next().is_none());
                match only {
                    Some(only) => Need { outside, ..only.clone() },
                    None => Need { wakers, outside, ..Need::new(Resource::Several) },
                }
            }
        }
    }

    fn of_fd(&self, pid: i32, fd: i32, writes: bool) -> Need {
        let Some(end) = self.scene.end(pid, fd) else { return Need::nothing() };
        match end.ipc_file {
            IpcFile::Pipe(pipe) => {
                let wakers = self.scene.holders(end.ipc_file, !writes);
                let what = path_of(pid, fd).unwrap_or_else(|| format!("pipe:[{}]", pipe.1));
                let outside = wakers.is_empty();
                Need { what, wakers, outside, ..Need::new(Resource::Pipe { pipe, fd, writes }) }
            }
            IpcFile::Socket(inode) => self.of_socket(inode, fd, writes),
            IpcFile::Terminal { .. } => self.of_terminal(&end, writes),
        }
    }

    fn of_socket(&self, inode: u64, fd: i32, writes: bool) -> Need {
        let Some(socket) = self.sockets.get(&inode) else { return Need::nothing() };
        if socket.listens {
            return Need { what: socket.name.clone(), outside: true, ..Need::new(Resource::Connections) };
        }
        let wakers =
            socket.peer.map_or_else(Vec::new, |peer| self.scene.holders(IpcFile::Socket(peer), !writes));
        let what = if socket.name.is_empty() { format!("socket:[{inode}]") } else { socket.name.clone() };
        // Datagrams may come from any socket.
        let outside = wakers.is_empty() || (socket.is_datagram && !writes);
        let resource = match socket.is_datagram && writes {
            true => Resource::Datagrams,
            false => Resource::Socket { inode, fd, writes },
        };
        Need { what, wakers, outside, ..Need::new(resource) }
    }

    fn of_terminal(&self, end: &Endpoint, writes: bool) -> Need {
        let IpcFile::Terminal { number, namespace, is_master } = end.ipc_file else { return Need::nothing() };
        let other = IpcFile::Terminal { number, namespace, is_master: !is_master };
        let wakers = self.scene.holders(other, !writes);
        // A person types what a program reads.
        let outside = wakers.is_empty() || (!is_master && !writes);
        let resource = Resource::Terminal { fd: end.fd, writes, is_master };
        Need { what: format!("/dev/pts/{number}"), wakers, outside, ..Need::new(resource) }
    }

    fn socket(&self, pid: i32, fd: i32) -> Option<&Socket> {
        match self.scene.end(pid, fd)?.ipc_file {
            IpcFile::Socket(inode) => self.sockets.get(&inode),
            _ => None,
        }
    }

    /// Of connect(2), or of a datagram that has no room: without the arguments it is the only full queue.
    fn of_connect(&self, pid: i32, fd: i32, path: Option<&str>) -> Need {
        if let Some(socket) = self.socket(pid, fd).filter(|socket| socket.is_datagram) {
            let peer =
                socket.peer.map_or_else(Vec::new, |peer| self.scene.holders(IpcFile::Socket(peer), false));
            let outside = peer.is_empty();
            return Need {
                what: socket.name.clone(),
                wakers: peer,
                outside,
                ..Need::new(Resource::Datagrams)
            };
        }
        let is_full = |socket: &Socket| socket.listens && socket.waiting >= socket.waiting_max.max(1);
        let is_it = |socket: &&(&u64, &Socket)| match path {
            Some(path) => socket.1.listens && socket.1.name == self.absolute(pid, path),
            None => is_full(socket.1) && !socket.1.is_tcp,
        };
        let mut found: Vec<(&u64, &Socket)> = self.sockets.iter().collect();
        found.retain(|socket| is_it(&socket));
        let [(inode, socket)] = found[..] else { return Need::nothing() };
        Need {
            what: socket.name.clone(),
            detail: format!(
                "{} of {} connections wait to be accepted",
                socket.waiting,
                socket.waiting_max + 1
            ),
            wakers: self.owner(*inode),
            ..Need::new(Resource::ListenQueue)
        }
    }

    /// Who accepts: of a process and those that it has forked the first.
    fn owner(&self, inode: u64) -> Vec<Holder> {
        let mut holders = self.scene.holders(IpcFile::Socket(inode), false);
        let is_below = |holder: &Holder, all: &[Holder]| {
            self.scene.ancestors(holder.pid).any(|ancestor| all.iter().any(|other| other.pid == ancestor))
        };
        let all = holders.clone();
        holders.retain(|holder| !is_below(holder, &all));
        holders
    }

    /// The name of a socket as its owner bound it: sock_diag(7) shows it as it was given.
    fn absolute(&self, pid: i32, path: &str) -> String {
        let is_known = self.sockets.values().any(|socket| socket.listens && socket.name == path);
        if is_known || path.starts_with(['/', '@']) {
            return path.to_owned();
        }
        let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        folder.join(path).to_string_lossy().into_owned()
    }

    /// Who has the same memory: the process itself, or those that have mapped the same file.
    fn of_futex(&self, pid: i32, address: u64, is_private: bool, timed: bool) -> Need {
        let shared = (!is_private).then(|| shared_mapping(pid, address)).flatten();
        let Some((file, name)) = shared else {
            let wakers = vec![Holder { pid, fd: None }];
            return Need { wakers, outside: timed, ..Need::new(Resource::Memory { is_shared: false }) };
        };
        let others = self.scene.processes.keys().filter(|other| **other != pid && maps(**other, &file));
        let wakers = others.map(|pid| Holder { pid: *pid, fd: None }).collect();
        Need { what: name, wakers, outside: timed, ..Need::new(Resource::Memory { is_shared: true }) }
    }
}

/// The device and inode of the file that is mapped at an address and shared (proc_pid_maps(5)), and its name.
fn shared_mapping(pid: i32, address: u64) -> Option<(String, String)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [range, access, _, device, inode, ref name @ ..] = words[..] else { return None };
        let (from, to) = range.split_once('-')?;
        let at = |text: &str| u64::from_str_radix(text, 16).ok();
        let holds = (at(from)?..at(to)?).contains(&address) && access.ends_with('s') && inode != "0";
        holds.then(|| (format!(" {device} {inode} "), name.join(" ")))
    })
}

fn maps(pid: i32, file: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains(file))
}
