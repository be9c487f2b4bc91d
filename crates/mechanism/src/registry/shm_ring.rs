//! `shm-ring`: a ring of bytes in shared memory, one sender, one receiver, no system call while both keep up.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, fence};

use model::{ByteSize, Role, Tasks, Wait};
use rustix::thread::futex;

use crate::channel::{Channel, Granted, Mechanism, OpenError, Request};
use crate::descriptor::{
    ANY_DATA, ANY_TASKS, ANY_WORKLOAD, Capabilities, Descriptor, OptionKind, OptionSpec,
};
use crate::halves::{Line, one_way};
use crate::{Options, RecvEnd, SendEnd, SharedMemory};

/// Bytes in a ring when `size=` is not given.
const DEFAULT_BYTES: u64 = 1 << 20;

/// The largest ring: more than any cache, and half a gigabyte is no buffer any more.
const BYTES_MAX: u64 = 128 << 20;

/// The most one end copies before it tells the other, in bytes: the copy of one piece then overlaps that of
/// the next. A quarter of a small ring, so that neither end waits for the other's whole copy.
const PIECE_BYTES_MAX: usize = 64 << 10;

static DESCRIPTOR: Descriptor = Descriptor {
    name: "shm-ring",
    summary: "a ring in shared memory, copied in and out; no system call while both ends keep up",
    role: Role::Ranked,
    capabilities: Capabilities {
        link: false,
        keeps_boundaries: false,
        stores_data: false,
        crosses_hosts: false,
        needs_cleanup: false,
    },
    workloads: ANY_WORKLOAD,
    tasks: ANY_TASKS,
    waits: &[Wait::Block, Wait::Spin],
    data: ANY_DATA,
    options: &[
        OptionSpec {
            name: "size",
            kind: OptionKind::Size,
            default: "1MiB",
            help: "bytes the ring holds (rounded up to a power of two)",
        },
        OptionSpec {
            name: "wait",
            kind: OptionKind::Choice(&["spin", "futex"]),
            default: "futex, or what --wait says",
            help: "how an end waits: looking again at once, or asleep in futex(2)",
        },
    ],
    limits: "size: 128 MiB",
    man_pages: &["mmap(2)", "futex(2)"],
    default_specs: &["shm-ring:wait=spin", "shm-ring:wait=futex"],
    more_specs: &[],
};

pub(crate) struct ShmRing;

impl Mechanism for ShmRing {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn wait(&self, options: &Options) -> Wait {
        if options.word("wait") == Some("spin") { Wait::Spin } else { Wait::Block }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let bytes = request.options.size("size").unwrap_or(DEFAULT_BYTES);
        if bytes > BYTES_MAX {
            return Err(OpenError::Limit {
                message: format!("a ring of {} (limit {})", ByteSize(bytes), ByteSize(BYTES_MAX)),
                remedy: "a smaller size=".to_owned(),
            });
        }
        let wait = match (request.tasks, request.options.word("wait"), request.wait) {
            (Tasks::Single, ..) => RingWait::Never,
            (_, Some("spin"), _) | (_, None, Wait::Spin) => RingWait::Spin,
            _ => RingWait::Futex,
        };
        one_way(request, || {
            let ring = Arc::new(Ring::new(bytes.next_power_of_two() as usize)?);
            let granted = Granted::from([("ring_bytes".to_owned(), ring.bytes as u64)]);
            let sender = RingSender { ring: ring.clone(), head: 0, tail: 0, wait, syscalls: 0 };
            let receiver = RingReceiver { ring, head: 0, tail: 0, wait, syscalls: 0 };
            Ok(Line { sender, receiver, granted })
        })
    }
}

/// How an end waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingWait {
    Spin,
    Futex,
    Never,
}

/// Bytes that travel on the head's own cache line: a short message then costs one line transfer, not two.
const INLINE_BYTES: usize = 40;

/// What the sender writes. A cache line of its own, and the neighbour that the prefetcher fetches with it.
#[repr(C, align(128))]
struct SenderLine {
    /// Bytes sent so far.
    head: AtomicU64,
    /// The stream offset at which the inline bytes stand.
    inline_at: AtomicU64,
    /// How many inline bytes there are.
    inline_len: AtomicU8,
    /// Written only while the ring is empty, so that the receiver is not reading them.
    inline: [AtomicU8; INLINE_BYTES],
}

/// What the receiver writes.
#[repr(C, align(128))]
struct ReceiverLine {
    /// Bytes received so far.
    tail: AtomicU64,
}

/// Who sleeps: written before a sleep, read after each publication (futex waiting only).
#[repr(C, align(128))]
struct Sleepers {
    sender: AtomicU32,
    receiver: AtomicU32,
}

#[repr(C)]
struct Control {
    sender: SenderLine,
    receiver: ReceiverLine,
    sleepers: Sleepers,
}

/// Where the data begins: the control lines have a page of their own.
const DATA_OFFSET: usize = 4096;

/// The ring as both ends see it.
struct Ring {
    memory: SharedMemory,
    bytes: usize,
    /// See [`PIECE_BYTES_MAX`].
    piece_bytes: usize,
}

impl Ring {
    /// `bytes` is a power of two.
    fn new(bytes: usize) -> Result<Self, OpenError> {
        let memory = SharedMemory::new(DATA_OFFSET + bytes).map_err(OpenError::system("mmap(MAP_SHARED)"))?;
        Ok(Self { memory, bytes, piece_bytes: (bytes / 4).clamp(1, PIECE_BYTES_MAX) })
    }

    #[inline]
    fn control(&self) -> &Control {
        // SAFETY: the mapping is page-aligned, longer than a Control, zeroed (a valid Control), and all
        // fields are atomics, so that shared references from several tasks are sound.
        unsafe { &*self.memory.as_ptr().cast::<Control>() }
    }

    /// The place of a stream offset in the ring, and how many bytes follow it before the ring wraps.
    #[inline]
    fn place(&self, offset: u64) -> (*mut u8, usize) {
        let index = offset as usize & (self.bytes - 1);
        // SAFETY: index < bytes, and the mapping has `bytes` bytes from DATA_OFFSET on.
        (unsafe { self.memory.as_ptr().add(DATA_OFFSET + index) }, self.bytes - index)
    }
}

/// Sleeps in futex(2) until the other end wakes us, unless `ready` holds after we said that we sleep.
/// Returns the system calls made. The fences pair with [`wake`]: either the other end sees our flag, or we
/// see its publication.
#[cold]
fn sleep(flag: &AtomicU32, ready: impl Fn() -> bool) -> io::Result<u64> {
    flag.store(1, Relaxed);
    fence(SeqCst);
    if ready() {
        flag.store(0, Relaxed);
        return Ok(0);
    }
    match futex::wait(flag, futex::Flags::empty(), 1, None) {
        Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(1),
        Err(error) => Err(error.into()),
    }
}

/// Wakes the other end if it sleeps. Returns the system calls made.
#[inline]
fn wake(flag: &AtomicU32) -> io::Result<u64> {
    fence(SeqCst);
    if flag.load(Relaxed) == 0 {
        return Ok(0);
    }
    flag.store(0, Relaxed);
    futex::wake(flag, futex::Flags::empty(), 1)?;
    Ok(1)
}

fn would_wait_for_itself() -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        "one task that sends and then receives would wait for itself: the block does not fit in the ring \
         (smaller --block, larger size=, or --tasks processes)",
    )
}

struct RingSender {
    ring: Arc<Ring>,
    /// Bytes sent (ours to write).
    head: u64,
    /// Bytes received, as last seen.
    tail: u64,
    wait: RingWait,
    syscalls: u64,
}

impl RingSender {
    /// Waits until there is room, and returns how much.
    #[inline]
    fn room(&mut self) -> io::Result<usize> {
        let control = self.ring.control();
        loop {
            let free = self.ring.bytes - (self.head - self.tail) as usize;
            if free > 0 {
                return Ok(free);
            }
            self.tail = control.receiver.tail.load(Acquire);
            if self.head - self.tail < self.ring.bytes as u64 {
                continue;
            }
            match self.wait {
                RingWait::Spin => std::hint::spin_loop(),
                RingWait::Never => return Err(would_wait_for_itself()),
                RingWait::Futex => {
                    let full = || control.receiver.tail.load(Acquire) != self.tail;
                    self.syscalls += sleep(&control.sleepers.sender, full)?;
                }
            }
        }
    }

    #[inline]
    fn publish(&mut self) -> io::Result<()> {
        let control = self.ring.control();
        control.sender.head.store(self.head, Release);
        if self.wait == RingWait::Futex {
            self.syscalls += wake(&control.sleepers.receiver)?;
        }
        Ok(())
    }

    /// Sends a short block on the head's own cache line; only into an empty ring (see [`SenderLine`]).
    #[inline]
    fn send_inline(&mut self, block: &[u8]) -> io::Result<()> {
        let line = &self.ring.control().sender;
        for (slot, byte) in line.inline.iter().zip(block) {
            slot.store(*byte, Relaxed);
        }
        line.inline_len.store(block.len() as u8, Relaxed);
        line.inline_at.store(self.head, Relaxed);
        self.head += block.len() as u64;
        self.publish()
    }
}

impl SendEnd for RingSender {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        if block.len() <= INLINE_BYTES {
            self.tail = self.ring.control().receiver.tail.load(Acquire);
            if self.tail == self.head {
                return self.send_inline(block);
            }
        }
        let mut rest = block;
        while !rest.is_empty() {
            let room = self.room()?;
            let (place, until_wrap) = self.ring.place(self.head);
            let len = rest.len().min(room).min(until_wrap).min(self.ring.piece_bytes);
            // SAFETY: `len` bytes from `place` on are free: the receiver has said so, and reads them only
            // after the publication below.
            unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), place, len) };
            self.head += len as u64;
            self.publish()?;
            rest = &rest[len..];
        }
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

struct RingReceiver {
    ring: Arc<Ring>,
    /// Bytes sent, as last seen.
    head: u64,
    /// Bytes received (ours to write).
    tail: u64,
    wait: RingWait,
    syscalls: u64,
}

impl RingReceiver {
    /// Waits until there is something, and returns how much.
    #[inline]
    fn available(&mut self) -> io::Result<usize> {
        let control = self.ring.control();
        loop {
            if self.head > self.tail {
                return Ok((self.head - self.tail) as usize);
            }
            self.head = control.sender.head.load(Acquire);
            if self.head > self.tail {
                continue;
            }
            match self.wait {
                RingWait::Spin => std::hint::spin_loop(),
                RingWait::Never => return Err(would_wait_for_itself()),
                RingWait::Futex => {
                    let empty = || control.sender.head.load(Acquire) != self.tail;
                    self.syscalls += sleep(&control.sleepers.receiver, empty)?;
                }
            }
        }
    }
}

impl RecvEnd for RingReceiver {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let available = self.available()?;
        let control = self.ring.control();
        let line = &control.sender;
        let into_inline = self.tail - line.inline_at.load(Relaxed);
        let inline_len = u64::from(line.inline_len.load(Relaxed));
        let len = if into_inline < inline_len {
            let bytes = &line.inline[into_inline as usize..inline_len as usize];
            let len = room.len().min(bytes.len());
            for (byte, slot) in room[..len].iter_mut().zip(bytes) {
                *byte = slot.load(Relaxed);
            }
            len
        } else {
            let (place, until_wrap) = self.ring.place(self.tail);
            let len = room.len().min(available).min(until_wrap).min(self.ring.piece_bytes);
            // SAFETY: `len` bytes from `place` on were published by the sender, which writes them again only
            // after the tail below has passed them.
            unsafe { std::ptr::copy_nonoverlapping(place, room.as_mut_ptr(), len) };
            len
        };
        self.tail += len as u64;
        control.receiver.tail.store(self.tail, Release);
        if self.wait == RingWait::Futex {
            self.syscalls += wake(&control.sleepers.sender)?;
        }
        Ok(len)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}
