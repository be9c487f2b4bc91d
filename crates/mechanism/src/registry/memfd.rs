//! `memfd`: each block travels in a file of its own that lives in memory, memfd_create(2): written, sealed so that
//! nobody can change it any more, and its descriptor passed over a Unix socket (SCM_RIGHTS), as Wayland and D-Bus do.
#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use model::ZeroCopy;
use payload::Consumer;
use rustix::event::PollFlags;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::{Errno, pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair, sockopt,
};

use super::evidence::{but_copied, judge};
use super::messages::or_the_end;
use crate::descriptor::{Descriptor, OptionKind, OptionSpec};
use crate::fd::FdWait;
use crate::loops::{Direction, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request, Unsupported};
use crate::{Options, Receiver, Sender};

/// What makes a file a message: no byte of it changes, and it neither grows nor shrinks under its reader.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

pub(crate) struct Memfd;

impl Mechanism for Memfd {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "memfd",
            summary: "a sealed file in memory for each block, its descriptor passed over a Unix socket",
            options: &[OptionSpec {
                name: "recv",
                kind: OptionKind::Choice(&["mmap", "read"]),
                default: "mmap",
                help: "how the receiver comes at the bytes: mapped and looked at where they lie, or read(2)",
            }],
            limits: "blocks on their way: what the smallest send buffer holds (a handful), and RLIMIT_NOFILE",
            man_pages: &["memfd_create(2)", "fcntl(2) F_ADD_SEALS", "unix(7) SCM_RIGHTS"],
            more_specs: &["memfd", "memfd:recv=read"],
            ..Descriptor::MESSAGES
        }
    }

    fn probe(&self) -> Result<(), Unsupported> {
        sealed(b"x").map(|_| ()).map_err(|error| Unsupported {
            reason: format!("memfd_create(2) and its seals: {}", model::describe_errno(&error)),
            remedy: Some("a kernel from 3.17 on, and a sandbox that allows them".to_owned()),
        })
    }

    fn zero_copy(&self, options: &Options) -> Option<ZeroCopy> {
        (Opening::of(options) == Opening::Mmap).then(|| {
            let evidence =
                judge("a page changed in an unsealed memfd that was passed and mapped", change_is_seen());
            but_copied(evidence, 1, "write(2) copies into it")
        })
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let (wait, opening) = (FdWait::of(request), Opening::of(request.options));
        one_way(request, || {
            let (near, far) = connect().map_err(OpenError::system("socketpair(AF_UNIX, SOCK_SEQPACKET)"))?;
            let sndbuf = sockopt::socket_send_buffer_size(&near)
                .map_err(OpenError::system("getsockopt(SO_SNDBUF)"))?;
            wait.apply(&near)?;
            wait.apply(&far)?;
            Ok(Direction {
                sender: Passer { socket: Some(near), wait, syscalls: 0 },
                receiver: Taker { socket: far, wait, opening, current: None, syscalls: 0 },
                granted: Granted::from([("sndbuf_bytes".to_owned(), sndbuf as u64)]),
            })
        })
    }
}

/// How the receiver comes at the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Mmap,
    Read,
}

impl Opening {
    fn of(options: &Options) -> Self {
        if options.word("recv") == Some("read") { Self::Read } else { Self::Mmap }
    }
}

/// A pair of sockets that holds a few descriptors, not hundreds: each stands for a block of memory.
fn connect() -> io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // The kernel makes its smallest of this, a few KiB (SOCK_MIN_SNDBUF).
    sockopt::set_socket_send_buffer_size(&near, 1)?;
    Ok((near, far))
}

/// A sealed file that holds a block.
fn sealed(block: &[u8]) -> io::Result<(OwnedFd, u64)> {
    let file = memfd_create("hosepipe-block", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let (mut written, mut syscalls) = (0, 2);
    while written < block.len() {
        syscalls += 1;
        match pwrite(&file, &block[written..], written as u64) {
            Ok(more) => written += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    fcntl_add_seals(&file, SEALS)?;
    Ok((file, syscalls))
}

/// Passes a descriptor, with the number of bytes in it.
fn pass(socket: &OwnedFd, file: &OwnedFd, len: u64) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    if !rights.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, &[IoSlice::new(&len.to_ne_bytes())], &mut rights, SendFlags::NOSIGNAL).map(|_| ())
}

/// Takes a descriptor and the number of bytes in it; `None` at the end.
fn take(socket: &OwnedFd) -> rustix::io::Result<Option<(OwnedFd, u64)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut len = [0; size_of::<u64>()];
    let message = recvmsg(socket, &mut [IoSliceMut::new(&mut len)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let file = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    // No descriptor in the message: this process has as many open as it may (RLIMIT_NOFILE).
    file.map(|file| Some((file, u64::from_ne_bytes(len)))).ok_or(Errno::MFILE)
}

/// Puts each block into a file and passes that.
struct Passer {
    socket: Option<OwnedFd>,
    wait: FdWait,
    syscalls: u64,
}

impl Sender for Passer {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let (file, syscalls) = sealed(block)?;
        // One more to close it.
        self.syscalls += syscalls + 1;
        loop {
            self.syscalls += 1;
            match pass(socket, &file, block.len() as u64) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += self.wait.after_would_block(socket, PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.socket = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

/// Takes files, and the blocks out of them.
struct Taker {
    socket: OwnedFd,
    wait: FdWait,
    opening: Opening,
    current: Option<Taken>,
    syscalls: u64,
}

/// A block that is being received.
struct Taken {
    bytes: Bytes,
    len: usize,
    /// Bytes of it received so far.
    at: usize,
}

enum Bytes {
    Mapped(Mapping),
    InFile(OwnedFd),
}

impl Taker {
    /// The block that is being received, or else the next one; `None` at the end.
    fn current(&mut self) -> io::Result<Option<&mut Taken>> {
        if self.current.is_none() {
            let Some((file, len)) = self.take_file()? else { return Ok(None) };
            let len = usize::try_from(len).map_err(io::Error::other)?;
            // A peer could go on writing to what is not sealed. Beside this call: mmap, close, munmap, or close.
            self.syscalls += if self.opening == Opening::Mmap { 4 } else { 2 };
            if !fcntl_get_seals(&file)?.contains(SEALS) {
                return Err(io::Error::other("the memfd is not sealed"));
            }
            let bytes = match self.opening {
                Opening::Mmap => Bytes::Mapped(Mapping::new(&file, len)?),
                Opening::Read => Bytes::InFile(file),
            };
            self.current = Some(Taken { bytes, len, at: 0 });
        }
        Ok(self.current.as_mut())
    }

    fn take_file(&mut self) -> io::Result<Option<(OwnedFd, u64)>> {
        loop {
            self.syscalls += 1;
            match or_the_end(|| take(&self.socket), Option::is_none) {
                Ok(taken) => return Ok(taken),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.syscalls += self.wait.after_would_block(&self.socket, PollFlags::IN)?
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes at most `most` bytes of the block in: where they lie, if they can be seen there and it is enough.
    fn receive(&mut self, target: Target<'_>, most: usize) -> io::Result<usize> {
        let Some(taken) = self.current()? else { return Ok(0) };
        let len = most.min(taken.len - taken.at);
        let part = taken.at..taken.at + len;
        let received = match (&taken.bytes, target) {
            (Bytes::Mapped(mapping), Target::Room(room)) => {
                room[..len].copy_from_slice(&mapping.bytes()[part]);
                len
            }
            (Bytes::Mapped(mapping), Target::Consumer(consumer)) => {
                consumer.inspect(&mapping.bytes()[part]);
                len
            }
            (Bytes::InFile(file), Target::Room(room)) => read_at(file, &mut room[..len], taken.at)?,
            (Bytes::InFile(file), Target::Consumer(consumer)) => {
                let received = read_at(file, &mut consumer.room()[..len], taken.at)?;
                consumer.accept(received);
                received
            }
        };
        taken.at += received;
        if taken.at == taken.len {
            self.current = None;
        }
        self.syscalls += u64::from(self.opening == Opening::Read);
        Ok(received)
    }
}

/// Where received bytes go.
enum Target<'a> {
    Room(&'a mut [u8]),
    Consumer(&'a mut Consumer),
}

fn read_at(file: &OwnedFd, room: &mut [u8], at: usize) -> io::Result<usize> {
    loop {
        match pread(file, &mut *room, at as u64) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the memfd is too short")),
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

impl Receiver for Taker {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let most = room.len();
        self.receive(Target::Room(room), most)
    }

    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        self.receive(Target::Consumer(consumer), most)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

/// A file in memory, mapped to be read.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: memory that is only read, and unmapped by whoever owns this value.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a file of `len` bytes; all pages at once, rather than one fault each.
    fn new(file: &OwnedFd, len: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, file, 0) }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped until the drop; the seals keep the file from changing or shrinking.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and `bytes` borrows from it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Passes an unsealed file that begins with 1, makes that a 2 behind the receiver's back, and returns what its mapping
/// showed before and after.
fn change_is_seen() -> io::Result<bool> {
    let (near, far) = connect()?;
    let file = memfd_create("hosepipe-canary", MemfdFlags::CLOEXEC)?;
    pwrite(&file, &[1; 4096], 0)?;
    pass(&near, &file, 4096)?;
    let (taken, len) = take(&far)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mapping = Mapping::new(&taken, len as usize)?;
    // SAFETY: within the mapping; volatile, since the file is not sealed and does change.
    let first = || unsafe { mapping.start.as_ptr().read_volatile() };
    let before = first();
    pwrite(&file, &[2], 0)?;
    Ok((before, first()) == (1, 2))
}
