//! What a thread needs in order to go on, and who can give it.

use std::collections::HashMap;

use super::locks::Locks;
use super::memory::Memory;
use super::queues::{Queues, semaphore};
use super::scene::{Holder, Scene, absolute};
use super::sockets::Socket;
use super::wait::{Address, Wait};
use crate::endpoint::{Endpoint, IpcFile, nameless, path_of};
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
    /// The other end of a FIFO; for what it is opened is `None` where that may not be read.
    Fifo {
        writes: Option<bool>,
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
    /// A mutex of the C library that this thread holds.
    Mutex {
        owner: i32,
    },
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
    /// Something else can: the network, a device, a person.
    pub(super) outside: bool,
    /// It ends after a time.
    pub(super) timed: bool,
    /// What is needed of each descriptor where several are watched.
    pub(super) parts: Vec<Need>,
}

impl Need {
    pub(super) fn new(resource: Resource) -> Self {
        let (what, detail, wakers, parts) = Default::default();
        Self { resource, what, detail, wakers, outside: false, timed: false, parts }
    }

    /// Itself, or what is needed of each descriptor.
    pub(super) fn each(&self) -> impl Iterator<Item = &Self> {
        let itself = self.parts.is_empty().then_some(self);
        itself.into_iter().chain(&self.parts)
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

/// Finds what threads need at one moment.
pub(super) struct Needs<'a> {
    scene: &'a Scene,
    sockets: &'a HashMap<u64, Socket>,
    locks: Locks,
    queues: Queues,
    memory: Memory,
}

impl<'a> Needs<'a> {
    pub(super) fn new(scene: &'a Scene, sockets: &'a HashMap<u64, Socket>) -> Self {
        let (locks, queues, memory) = Default::default();
        Self { scene, sockets, locks, queues, memory }
    }

    pub(super) fn of(&self, pid: i32, wait: &Wait) -> Need {
        let named = |resource, what: String| Need { what, ..Need::new(resource) };
        match wait {
            Wait::Stream(fds) => self.of_fds(pid, fds, true),
            Wait::Poll { fds, timed } => {
                let need = self.of_fds(pid, fds, false);
                // A pipe of which it watches one end and holds the other: a handler of signals writes to it.
                let wakes_itself = need.each().any(|one| one.wakers.iter().any(|holder| holder.pid == pid));
                Need { outside: need.outside || wakes_itself, timed: *timed, ..need }
            }
            Wait::OpenFifo { path, writes } => {
                named(Resource::Fifo { writes: *writes }, path.clone().unwrap_or_default())
            }
            Wait::Lock { fd } => self.locks.need(self.scene, pid, *fd),
            Wait::Connect { fd, to } => self.of_connect(pid, *fd, to.as_ref()),
            Wait::Accept { fd } => {
                let what = self.socket(pid, *fd).map_or_else(String::new, |socket| socket.name.clone());
                Need { outside: true, ..named(Resource::Connections, what) }
            }
            Wait::Queue { queue, sends } => self.queues.need(self.scene, pid, queue, *sends),
            Wait::Semaphore { id, operations, timed } => {
                Need { timed: *timed, ..semaphore(pid, *id, operations) }
            }
            Wait::Futex { address, is_private, timed } => {
                Need { timed: *timed, ..self.memory.need(self.scene, pid, *address, *is_private) }
            }
            Wait::Child(child) => self.of_child(pid, *child),
            Wait::Vfork => self.of_child(pid, None),
            Wait::Time { .. } => Need { outside: false, timed: true, ..Need::nothing() },
            Wait::Runs | Wait::Disk | Wait::Stopped | Wait::Frozen | Wait::Signal | Wait::Other => {
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

    /// `is_call`: a call that reads or writes them, and does not wait for files.
    fn of_fds(&self, pid: i32, fds: &[WatchedFd], is_call: bool) -> Need {
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
        let is_stream = |need: &Need| need.resource != Resource::Nothing;
        if is_call && needs.iter().any(is_stream) {
            needs.retain(is_stream);
        }
        let outside = needs.iter().any(|need| need.outside);
        // A file that only wakes the program up, such as an eventfd, beside one stream.
        if needs.iter().filter(|need| is_stream(need)).count() == 1
            && let Some(at) = needs.iter().position(is_stream)
        {
            return Need { outside, ..needs.swap_remove(at) };
        }
        if needs.iter().all(|need| !is_stream(need)) {
            return Need::nothing();
        }
        needs.retain(is_stream);
        let mut wakers: Vec<Holder> = needs.iter().flat_map(|need| need.wakers.iter().copied()).collect();
        wakers.sort();
        wakers.dedup();
        Need { wakers, outside, parts: needs, ..Need::new(Resource::Several) }
    }

    fn of_fd(&self, pid: i32, fd: i32, writes: bool) -> Need {
        let Some(end) = self.scene.end(pid, fd) else {
            let is_tty = path_of(pid, fd).is_some_and(|path| path == "/dev/tty");
            let resource = Resource::Terminal { fd, writes, is_master: false };
            let terminal = || Need { what: "/dev/tty".to_owned(), outside: true, ..Need::new(resource) };
            return if is_tty { terminal() } else { Need::nothing() };
        };
        match end.ipc_file {
            IpcFile::Pipe(pipe) => {
                let wakers = self.scene.holders(end.ipc_file, !writes);
                let what = path_of(pid, fd).unwrap_or_else(|| format!("pipe:[{}]", pipe.1));
                // Whoever may open a FIFO by its name can write to it, also later: that is how programs get commands.
                let is_named = Some(pipe.0) != nameless();
                let takes_commands =
                    is_named && fd != 0 && !writes && wakers.iter().any(|holder| holder.pid == pid);
                let outside = wakers.is_empty() || takes_commands;
                Need { what, wakers, outside, ..Need::new(Resource::Pipe { pipe, fd, writes }) }
            }
            IpcFile::Socket(inode) => self.of_socket(pid, inode, fd, writes),
            IpcFile::Terminal { .. } => self.of_terminal(&end, writes),
        }
    }

    fn of_socket(&self, pid: i32, inode: u64, fd: i32, writes: bool) -> Need {
        let Some(socket) = self.sockets.get(&inode) else { return Need::nothing() };
        if socket.listens {
            return Need { what: socket.name.clone(), outside: true, ..Need::new(Resource::Connections) };
        }
        let mut wakers = match (socket.peer, socket.unaccepted_by) {
            (Some(peer), _) => self.scene.holders(IpcFile::Socket(peer), !writes),
            (None, Some(listener)) => self.owner(listener, pid),
            (None, None) => Vec::new(),
        };
        // One that has both ends does not wait for itself.
        if wakers.len() > 1 {
            wakers.retain(|holder| holder.pid != pid);
        }
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

    /// Of connect(2), or of a datagram that has no room. Where the arguments are hidden it is the only full queue.
    fn of_connect(&self, pid: i32, fd: i32, to: Option<&Address>) -> Need {
        let own = self.socket(pid, fd);
        if own.is_some_and(|socket| socket.is_datagram) || (own.is_none() && to.is_none() && fd >= 0) {
            return self.of_datagram(pid, own, to);
        }
        let is_full = |socket: &Socket| socket.waiting >= socket.waiting_max.max(1);
        let is_it = |inode: u64, socket: &Socket| match to {
            Some(Address::Unix(path)) => {
                !socket.is_tcp && self.bound_to(inode, socket) == absolute(pid, path)
            }
            // Of a connection of TCP that is only slow no queue is full.
            Some(Address::Inet(to)) => {
                let is_tcp = own.is_some_and(|own| own.is_tcp || !own.is_datagram);
                // A listener at any address gets no connections to other machines.
                let is_here = to.ip().is_loopback() || socket.address.is_some_and(|own| own.ip() == to.ip());
                is_tcp && socket.waiting > 0 && is_here && socket.is_at(*to)
            }
            None => fd < 0 && is_full(socket) && !socket.is_tcp,
        };
        let mut found: Vec<(&u64, &Socket)> = self.sockets.iter().collect();
        found.retain(|(inode, socket)| socket.listens && is_it(**inode, socket));
        let [(inode, socket)] = found[..] else {
            // Where the call is hidden it may be a datagram to the only socket that it is connected to.
            let files = self.scene.processes.get(&pid).and_then(|process| process.files.as_ref());
            let ends = files.into_iter().flat_map(|files| &files.endpoints).filter(|_| fd < 0);
            let own = ends.filter_map(|end| self.socket(pid, end.fd));
            let connected = own.filter(|own| own.is_datagram && own.peer.is_some());
            return connected.last().map_or_else(Need::nothing, |own| self.of_datagram(pid, Some(own), None));
        };
        let most = if socket.is_tcp { String::new() } else { format!(" of {}", socket.waiting_max + 1) };
        Need {
            what: socket.name.clone(),
            detail: format!("{}{most} connections wait to be accepted", socket.waiting),
            wakers: self.owner(*inode, pid),
            ..Need::new(Resource::ListenQueue)
        }
    }

    fn of_datagram(&self, pid: i32, own: Option<&Socket>, to: Option<&Address>) -> Need {
        let is_named = |(inode, socket): &(&u64, &Socket), path: &str| {
            socket.is_datagram && self.bound_to(**inode, socket) == absolute(pid, path)
        };
        let named = match to {
            Some(Address::Unix(path)) => {
                self.sockets.iter().find(|socket| is_named(socket, path)).map(|(inode, _)| *inode)
            }
            _ => None,
        };
        let peer = named.or_else(|| own?.peer);
        let wakers = peer.map_or_else(Vec::new, |peer| self.owner(peer, pid));
        let what =
            peer.and_then(|peer| self.sockets.get(&peer)).map_or_else(String::new, |peer| peer.name.clone());
        Need { what, outside: wakers.is_empty(), wakers, ..Need::new(Resource::Datagrams) }
    }

    /// Which process accepts: of one and those that it has forked the first. `pid` waits for it.
    fn owner(&self, inode: u64, pid: i32) -> Vec<Holder> {
        let mut holders = self.scene.holders(IpcFile::Socket(inode), false);
        let is_below = |holder: &Holder, all: &[Holder]| {
            self.scene.ancestors(holder.pid).any(|ancestor| all.iter().any(|other| other.pid == ancestor))
        };
        let all = holders.clone();
        holders.retain(|holder| holder.pid != pid && !is_below(holder, &all));
        holders
    }

    /// The path to which a socket is bound: its owner may have named it from a folder.
    fn bound_to(&self, inode: u64, socket: &Socket) -> String {
        let owner = self.scene.ends(IpcFile::Socket(inode)).first().map(|(pid, _)| *pid);
        owner.map_or_else(|| socket.name.clone(), |owner| absolute(owner, &socket.name))
    }
}
