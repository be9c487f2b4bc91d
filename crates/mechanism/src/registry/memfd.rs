//! `memfd`: each block is written to its own file in memory, memfd_create(2). The file is sealed, so that it cannot change any
//! more, and its descriptor is passed over a Unix socket (SCM_RIGHTS), as Wayland and D-Bus do.
#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::{pread, pwrite, retry_on_intr};
use rustix::mm::ProtFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair, sockopt,
};

use super::evidence::{but_copied, verdict};
use super::messages::receive_or_end;
use super::sockets::sndbuf_bytes;
use crate::prelude::*;

/// With these seals no byte of the file can change, and it can neither grow nor shrink while it is read.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

pub(super) static MEMFD: Mechanism = Mechanism {
    name: "memfd",
    summary: "a sealed file in memory for each block, its descriptor passed over a Unix socket",
    options: &[OptionSpec {
        name: "recv",
        kind: OptionKind::Choice(&["mmap", "read"]),
        default: "mmap",
        help: "how the receiver gets the bytes: mapped and read in place, or read(2)",
    }],
    limits: "blocks in the channel: as many as the smallest send buffer holds (a few), and RLIMIT_NOFILE",
    man_pages: &["memfd_create(2)", "fcntl(2) F_ADD_SEALS", "unix(7) SCM_RIGHTS"],
    more_specs: &["memfd", "memfd:recv=read"],
    probe,
    zero_copy,
    ..Mechanism::messages(open_channel)
};

fn probe() -> Result<(), OpenError> {
    let remedy = "Linux 3.17 or newer, and a sandbox that allows them".to_owned();
    let refused = |error| OpenError::system("memfd_create(2) and its seals", error, Some(remedy));
    sealed(b"x").map(drop).map_err(refused)
}

fn zero_copy(options: &Options) -> Option<ZeroCopy> {
    (!reads(options)).then(|| {
        let evidence = verdict(
            "a page was changed in an unsealed memfd that had been passed and mapped",
            change_is_seen(),
        );
        but_copied(evidence, 1, "write(2) copies into it")
    })
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let (wait, reads) = (FdWait::for_request(request), reads(request.options));
    one_way(request, || {
        let (near, far) = connect().in_call("socketpair(AF_UNIX, SOCK_SEQPACKET)")?;
        let sndbuf = sndbuf_bytes(&near)?;
        let receiver = MemfdReceiver { socket: FdEnd::new(far, wait)?, reads, current: None };
        Ok(Direction::new(MemfdSender(FdEnd::new(near, wait)?), receiver).granted([("sndbuf_bytes", sndbuf)]))
    })
}

/// Whether the receiver reads the files, and does not map them.
fn reads(options: &Options) -> bool {
    options.word("recv") == Some("read")
}

/// A pair of sockets with a small send buffer: it holds a few descriptors, not hundreds, since each keeps a block of memory.
fn connect() -> io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // The kernel replaces this by its minimum, a few KiB (SOCK_MIN_SNDBUF).
    sockopt::set_socket_send_buffer_size(&near, 1)?;
    Ok((near, far))
}

/// A sealed file with the bytes of `block`, and the number of system calls.
fn sealed(block: &[u8]) -> io::Result<(OwnedFd, u64)> {
    let file = memfd_create("hosepipe-block", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let (mut written, mut syscalls) = (0, 2);
    while written < block.len() {
        syscalls += 1;
        written += retry_on_intr(|| pwrite(&file, &block[written..], written as u64))?;
    }
    fcntl_add_seals(&file, SEALS)?;
    Ok((file, syscalls))
}

/// Sends a descriptor, with the number of bytes in its file.
fn pass(socket: &OwnedFd, file: &OwnedFd, len: u64) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    if !rights.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, &[IoSlice::new(&len.to_ne_bytes())], &mut rights, SendFlags::NOSIGNAL).map(|_| ())
}

/// Receives a descriptor and the number of bytes in its file; `None` at the end of the stream.
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
    // The kernel drops the descriptor if this process has reached RLIMIT_NOFILE.
    file.map(|file| Some((file, u64::from_ne_bytes(len)))).ok_or(Errno::MFILE)
}

/// Writes each block to a file and sends its descriptor.
struct MemfdSender(FdEnd);

delegate_end!(MemfdSender, 0);

impl Sender for MemfdSender {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let (file, syscalls) = sealed(block)?;
        // One more for close(2).
        self.0.syscalls += syscalls + 1;
        self.0.retry(PollFlags::OUT, |socket| pass(socket, &file, block.len() as u64))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }
}

/// Receives descriptors, and reads the blocks from their files.
struct MemfdReceiver {
    socket: FdEnd,
    /// Whether it reads the files, and does not map them.
    reads: bool,
    current: Option<CurrentBlock>,
}

/// A block that is being received.
struct CurrentBlock {
    bytes: Bytes,
    len: usize,
    /// Number of its bytes that were received so far.
    at: usize,
}

enum Bytes {
    Mapped(SharedMemory),
    InFile(OwnedFd),
}

impl MemfdReceiver {
    /// The block that is being received, or else the next one; `None` at the end of the stream.
    fn current(&mut self) -> io::Result<Option<&mut CurrentBlock>> {
        if self.current.is_none() {
            let taken = self
                .socket
                .retry(PollFlags::IN, |socket| receive_or_end(|| take(socket), Option::is_none))?;
            let Some((file, len)) = taken else { return Ok(None) };
            let len = usize::try_from(len).map_err(io::Error::other)?;
            // fcntl(F_GET_SEALS) below and close(2); for a mapping also mmap(2) and munmap(2).
            self.socket.syscalls += if self.reads { 2 } else { 4 };
            // Without seals the sender could still change the file.
            if !fcntl_get_seals(&file)?.contains(SEALS) {
                return Err(io::Error::other("the memfd is not sealed"));
            }
            let bytes = if self.reads { Bytes::InFile(file) } else { Bytes::Mapped(map(&file, len)?) };
            self.current = Some(CurrentBlock { bytes, len, at: 0 });
        }
        Ok(self.current.as_mut())
    }

    /// Records that `len` more bytes of the block were received.
    fn received(&mut self, len: usize) -> usize {
        if let Some(block) = &mut self.current {
            block.at += len;
            if block.at == block.len {
                self.current = None;
            }
        }
        len
    }
}

delegate_end!(MemfdReceiver, socket);

impl Receiver for MemfdReceiver {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(block) = self.current()? else { return Ok(0) };
        let len = room.len().min(block.len - block.at);
        let (at, room) = (block.at, &mut room[..len]);
        let len = match &block.bytes {
            Bytes::Mapped(mapping) => {
                room.copy_from_slice(&bytes_of(mapping)[at..at + len]);
                len
            }
            Bytes::InFile(file) => {
                let len = retry_on_intr(|| pread(file, &mut *room, at as u64))?;
                if len == 0 {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the memfd is too short"));
                }
                self.socket.syscalls += 1;
                len
            }
        };
        Ok(self.received(len))
    }

    /// Without a copy if the file is mapped.
    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        if let Some(CurrentBlock { bytes: Bytes::Mapped(mapping), len, at }) = self.current()? {
            let len = most.min(*len - *at);
            consumer.inspect(&bytes_of(mapping)[*at..*at + len]);
            return Ok(self.received(len));
        }
        let received = self.recv(&mut consumer.room()[..most])?;
        consumer.accept(received);
        Ok(received)
    }
}

/// Maps a file of `len` bytes for reading.
fn map(file: &OwnedFd, len: usize) -> io::Result<SharedMemory> {
    SharedMemory::of_file(file, len, ProtFlags::READ)
}

fn bytes_of(mapping: &SharedMemory) -> &[u8] {
    // SAFETY: mapped until the drop; the seals keep the file from changing or shrinking.
    unsafe { std::slice::from_raw_parts(mapping.as_ptr(), mapping.len()) }
}

/// Passes an unsealed file that begins with 1, changes that byte to 2 after the receiver has mapped the file, and returns
/// whether the mapping shows the change.
fn change_is_seen() -> io::Result<bool> {
    let (near, far) = connect()?;
    let file = memfd_create("hosepipe-canary", MemfdFlags::CLOEXEC)?;
    pwrite(&file, &[1; 4096], 0)?;
    pass(&near, &file, 4096)?;
    let (taken, len) = take(&far)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mapping = map(&taken, len as usize)?;
    // SAFETY: within the mapping; volatile, since the file is not sealed and does change.
    let first = || unsafe { mapping.as_ptr().read_volatile() };
    let before = first();
    pwrite(&file, &[2], 0)?;
    Ok((before, first()) == (1, 2))
}
