//! Rings between processes of Linux: files, locks that tell of a death, futexes, eventfds, and memory passed over a Unix socket.

use super::{Error, HEAD_BYTES, Head, MAGIC, Port, Receiver, Sender, Sleeper, VERSION};
use core::ffi::{c_char, c_int, c_long, c_short, c_void};
use core::mem::offset_of;
use core::ptr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What an end does that must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Looks again and again.
    Spin,
    /// Sleeps in futex(2).
    Futex,
    /// Sleeps in poll(2), with the eventfds of [`offer_sender`] and [`accept_receiver`] and their like.
    Eventfd,
    /// Returns [`Error::Again`].
    Never,
}

/// Looks before a sleep: some microseconds.
const POLLS: u32 = 100;
/// Looks before a spinning end asks whether the other one is there: some milliseconds.
const SPIN_POLLS: u32 = 1 << 16;
/// A sleeping end asks as often.
const SLEEP_MS: u32 = 250;

#[cfg(target_env = "musl")]
type Offset = i64;
#[cfg(not(target_env = "musl"))]
type Offset = c_long;

// The rest of a program may declare fcntl(2) for another command.
#[allow(clashing_extern_declarations)]
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn fcntl(file: c_int, command: c_int, ...) -> c_int;
    fn fallocate(file: c_int, mode: c_int, from: Offset, bytes: Offset) -> c_int;
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        from: Offset,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    fn poll(files: *mut Polled, count: usize, limit_ms: c_int) -> c_int;
    fn eventfd(count: u32, flags: c_int) -> c_int;
    fn memfd_create(name: *const c_char, flags: u32) -> c_int;
    fn sendmsg(socket: c_int, message: *const Message, flags: c_int) -> isize;
    fn recvmsg(socket: c_int, message: *mut Message, flags: c_int) -> isize;
}

/// The numbers of futex(2) and membarrier(2).
const SYSTEM_CALLS: (c_long, c_long) = match () {
    () if cfg!(target_arch = "x86_64") => (202, 324),
    () if cfg!(target_arch = "x86") => (240, 375),
    () if cfg!(target_arch = "arm") => (240, 389),
    () if cfg!(target_arch = "powerpc64") => (221, 365),
    () if cfg!(target_arch = "s390x") => (238, 356),
    () => (98, 283),
};

#[repr(C)]
struct Polled {
    file: c_int,
    events: c_short,
    found: c_short,
}

/// `struct flock`.
#[repr(C)]
struct Lock {
    kind: c_short,
    whence: c_short,
    start: Offset,
    len: Offset,
    process: c_int,
}

const F_OFD_GETLK: c_int = 36;
const F_OFD_SETLK: c_int = 37;
const F_OFD_SETLKW: c_int = 38;
const F_WRLCK: c_short = 1;
const F_UNLCK: c_short = 2;
/// The bytes that the locks are on: an end's own is that of its role.
const SENDER: u8 = 0;
const RECEIVER: u8 = 1;
const SETUP: u8 = 2;

/// A lock of the file's description; returns the kind that is there.
fn lock(file: &File, command: c_int, byte: u8, kind: c_short) -> io::Result<c_short> {
    let mut lock = Lock { kind, whence: 0, start: Offset::from(byte), len: 1, process: 0 };
    loop {
        // SAFETY: the struct is that of the command.
        match unsafe { fcntl(file.as_raw_fd(), command, &raw mut lock) } {
            -1 if io::Error::last_os_error().kind() == ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => return Ok(lock.kind),
        }
    }
}

/// Mapped memory of a ring: head and bytes.
struct Memory {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: it stays where it is until it is dropped.
unsafe impl Send for Memory {}
// SAFETY: as above; what is in it is shared by atomics.
unsafe impl Sync for Memory {}

impl Memory {
    fn map(capacity: u32, file: Option<&File>) -> io::Result<Self> {
        const READ_WRITE: c_int = 1 | 2;
        const SHARED_POPULATE: c_int = 1 | 0x8000;
        const ANONYMOUS: c_int = 0x20;
        let bytes = HEAD_BYTES + capacity as usize;
        let (file, flags) = file.map_or((-1, ANONYMOUS), |file| (file.as_raw_fd(), 0));
        // SAFETY: a new mapping.
        let start = unsafe { mmap(ptr::null_mut(), bytes, READ_WRITE, SHARED_POPULATE | flags, file, 0) };
        if start as isize == -1 { Err(io::Error::last_os_error()) } else { Ok(Self { start, bytes }) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: its ends are gone: they own it.
        unsafe { munmap(self.start, self.bytes) };
    }
}

/// What an end has of the system: the memory, the lock of its role, and how it waits.
pub struct Link {
    memory: Arc<Memory>,
    capacity: u32,
    role: u8,
    /// Holds the lock; none between threads.
    file: Option<File>,
    /// This end's, and the other one's.
    events: Option<[File; 2]>,
    pub wait: Wait,
    has_membarrier: bool,
}

impl Link {
    fn new(memory: Arc<Memory>, capacity: u32, role: u8, file: Option<File>, wait: Wait) -> Self {
        const REGISTER_GLOBAL_EXPEDITED: c_int = 1 << 2;
        // SAFETY: it takes no pointer.
        let has_membarrier = unsafe { syscall(SYSTEM_CALLS.1, REGISTER_GLOBAL_EXPEDITED, 0, 0) } == 0;
        Self { memory, capacity, role, file, events: None, wait, has_membarrier }
    }

    fn parts(&self) -> (*const Head, *mut u8, u32) {
        // SAFETY: the memory has the bytes after its head.
        let bytes = unsafe { self.memory.start.cast::<u8>().add(HEAD_BYTES) };
        (self.memory.start.cast(), bytes, self.capacity)
    }

    fn sender(self) -> io::Result<Sender<Self>> {
        let (head, bytes, capacity) = self.parts();
        // SAFETY: the memory is the link's, which the end owns; the lock of the role is its alone.
        Ok(unsafe { Sender::new(head, bytes, capacity, self) }?)
    }

    fn receiver(self) -> io::Result<Receiver<Self>> {
        let (head, bytes, capacity) = self.parts();
        // SAFETY: as above.
        Ok(unsafe { Receiver::new(head, bytes, capacity, self) }?)
    }

    /// Whether there is another end. The kernel releases the lock of an end that dies, whatever the cause, and in any container.
    pub fn peer_is_there(&self) -> bool {
        let Some(file) = &self.file else { return true };
        lock(file, F_OFD_GETLK, 1 - self.role, F_WRLCK).map_or(true, |found| found != F_UNLCK)
    }

    /// What to poll after `arm`; each wake-up needs one read of 8 bytes.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.events.as_ref().map(|[own, _]| own.as_fd())
    }
}

impl Port for Link {
    fn polls(&self) -> u32 {
        match self.wait {
            Wait::Spin => SPIN_POLLS,
            Wait::Never => 1,
            Wait::Futex | Wait::Eventfd => POLLS,
        }
    }

    fn has_membarrier(&self) -> bool {
        self.has_membarrier
    }

    fn barrier(&self) {
        const GLOBAL_EXPEDITED: c_int = 1 << 1;
        if self.has_membarrier {
            // SAFETY: it takes no pointer.
            unsafe { syscall(SYSTEM_CALLS.1, GLOBAL_EXPEDITED, 0, 0) };
        }
    }

    fn sleep(&self, own: &Sleeper, word: &AtomicU32, seen: u32) -> Result<bool, Error> {
        const FUTEX_WAIT: c_int = 0;
        const POLLIN: c_short = 1;
        let barrier = || self.barrier();
        match (self.wait, &self.events) {
            (Wait::Never, _) => return Err(Error::Again),
            (Wait::Spin, _) => {}
            (Wait::Eventfd, Some([event, _])) => {
                let mut polled = Polled { file: event.as_raw_fd(), events: POLLIN, found: 0 };
                // SAFETY: one struct.
                let mut wait = || unsafe { poll(&mut polled, 1, SLEEP_MS as c_int) } > 0;
                if own.announce(2, barrier, word, seen) && wait() {
                    _ = (&*event).read(&mut [0; 8]); // never blocks
                }
            }
            (Wait::Futex | Wait::Eventfd, _) => {
                let limit: [c_long; 2] = [0, SLEEP_MS as c_long * 1_000_000];
                if own.announce(1, barrier, word, seen) {
                    // SAFETY: the word and the limit live as long as the call.
                    unsafe {
                        syscall(SYSTEM_CALLS.0, own.how.as_ptr(), FUTEX_WAIT, 1 as c_int, limit.as_ptr())
                    };
                }
            }
        }
        own.how.store(0, Ordering::Relaxed);
        let is_absent = word.load(Ordering::Relaxed) == seen && !self.peer_is_there();
        if is_absent && self.wait == Wait::Spin {
            // None is there whose answer could be late.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(is_absent)
    }

    fn wake(&self, word: &AtomicU32, how: u32) {
        const FUTEX_WAKE: c_int = 1;
        match (how, &self.events) {
            (1, _) => {
                // SAFETY: the word lives as long as the call; it wakes one.
                unsafe { syscall(SYSTEM_CALLS.0, word.as_ptr(), FUTEX_WAKE, 1 as c_int) };
            }
            (2, Some([_, event])) => _ = (&*event).write(&1u64.to_ne_bytes()), // full: it is awake
            _ => {}
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

/// The sender of the ring in a file, which is made if there is none; the capacity (a power of two, 4096 to 2^30) counts only then.
///
/// # Errors
/// [`ErrorKind::ResourceBusy`]: a sender is alive; [`ErrorKind::InvalidData`]: the file is no ring; or what the system says.
pub fn open_sender(path: &Path, capacity: u32, wait: Wait) -> io::Result<Sender<Link>> {
    open(path, capacity, SENDER, wait)?.sender()
}

/// The receiver of the ring in a file.
///
/// # Errors
/// As [`open_sender`].
pub fn open_receiver(path: &Path, capacity: u32, wait: Wait) -> io::Result<Receiver<Link>> {
    open(path, capacity, RECEIVER, wait)?.receiver()
}

/// A ring between two threads of this program.
///
/// # Errors
/// There is no memory, or there is no such capacity.
pub fn pair(capacity: u32, wait: Wait) -> io::Result<(Sender<Link>, Receiver<Link>)> {
    let memory = Arc::new(Memory::map(capacity, None)?);
    let [sender, receiver] =
        [SENDER, RECEIVER].map(|role| Link::new(memory.clone(), capacity, role, None, wait));
    Ok((sender.sender()?, receiver.receiver()?))
}

fn open(path: &Path, capacity: u32, role: u8, wait: Wait) -> io::Result<Link> {
    const NONBLOCK_NOFOLLOW: c_int =
        if cfg!(any(target_arch = "aarch64", target_arch = "arm", target_arch = "powerpc64")) {
            0o4000 | 0o100_000
        } else {
            0o4000 | 0o400_000
        };
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(NONBLOCK_NOFOLLOW);
    loop {
        let file = match options.open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => options.clone().create(true).open(path),
            opened => opened,
        };
        let link = open_file(file?, capacity, role, wait)?;
        // Else it was removed before this end had its lock.
        if link.file.as_ref().map_or(Ok(1), |file| file.metadata().map(|found| found.nlink()))? > 0 {
            return Ok(link);
        }
    }
}

fn open_file(file: File, mut capacity: u32, role: u8, wait: Wait) -> io::Result<Link> {
    let no_ring = || io::Error::new(ErrorKind::InvalidData, "it is no ring of this version");
    let is_capacity = |capacity: u32| capacity.is_power_of_two() && (4096..=1 << 30).contains(&capacity);
    lock(&file, F_OFD_SETLK, role, F_WRLCK).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::PermissionDenied => ErrorKind::ResourceBusy.into(),
        _ => error,
    })?;
    // The setup is repeated by the next end if this one dies in it.
    lock(&file, F_OFD_SETLKW, SETUP, F_WRLCK)?;
    let found = file.metadata()?;
    let mut words = [[0; 4]; 4];
    if !found.is_file() {
        return Err(no_ring());
    }
    _ = file.read_at(words.as_flattened_mut(), 0)?;
    let [magic, version, head_bytes, in_file] = words.map(u32::from_ne_bytes);
    let is_new = magic == 0;
    if is_new && !is_capacity(capacity) {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "a ring holds a power of two of bytes, 4096 to 2^30",
        ));
    }
    capacity = if is_new { capacity } else { in_file };
    let whole = HEAD_BYTES as u64 + u64::from(capacity);
    let head_words = (MAGIC, VERSION, HEAD_BYTES as u32);
    let makes_sense = match is_new {
        true => found.len() <= whole && version <= VERSION && head_bytes <= HEAD_BYTES as u32,
        false => (magic, version, head_bytes) == head_words && is_capacity(capacity) && found.len() >= whole,
    };
    if !makes_sense {
        return Err(no_ring());
    }
    // SAFETY: it takes no pointer. All of it now: a full file system is an error here, and a signal later.
    if is_new && unsafe { fallocate(file.as_raw_fd(), 0, 0, whole as Offset) } != 0 {
        match io::Error::last_os_error() {
            error if error.kind() == ErrorKind::Unsupported => file.set_len(whole)?,
            error => return Err(error),
        }
    }
    let memory = Arc::new(Memory::map(capacity, Some(&file))?);
    if is_new {
        let head = memory.start.cast::<Head>();
        // SAFETY: the memory has a head, and this end the lock of the setup.
        unsafe {
            ((*head).version, (*head).head_bytes, (*head).capacity) = (VERSION, HEAD_BYTES as u32, capacity);
            (*head).magic.store(MAGIC, Ordering::SeqCst);
        }
    }
    lock(&file, F_OFD_SETLK, SETUP, F_UNLCK)?;
    Ok(Link::new(memory, capacity, role, Some(file), wait))
}

// ---- A ring without a name, over a Unix socket: a memfd and two eventfds. The socket's end of file also tells of a death. ----

/// `struct msghdr`, of one byte and three descriptors.
#[repr(C)]
struct Message {
    name: *const c_void,
    name_bytes: u32,
    text: *mut [usize; 2],
    texts: usize,
    control: *mut Control,
    control_bytes: usize,
    flags: c_int,
}

/// `struct cmsghdr` and what follows it.
#[repr(C)]
struct Control {
    bytes: usize,
    level: c_int,
    kind: c_int,
    files: [c_int; 3],
}

const CONTROL_BYTES: usize = offset_of!(Control, files) + size_of::<[c_int; 3]>();
const SOL_SOCKET: c_int =
    if cfg!(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64")) { 0xffff } else { 1 };
const SCM_RIGHTS: c_int = 1;

/// Calls sendmsg(2) or recvmsg(2) for a byte and three descriptors.
fn pass(byte: &mut u8, control: &mut Control, call: impl FnOnce(*mut Message) -> isize) -> io::Result<usize> {
    let mut text = [ptr::from_mut(byte) as usize, 1];
    let mut message = Message {
        name: ptr::null(),
        name_bytes: 0,
        text: &raw mut text,
        texts: 1,
        control,
        control_bytes: size_of::<Control>(),
        flags: 0,
    };
    usize::try_from(call(&raw mut message)).map_err(|_| io::Error::last_os_error())
}

/// A descriptor that a call made.
fn made(file: c_int) -> io::Result<File> {
    // SAFETY: it is new, and none else has it.
    if file < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { File::from_raw_fd(file) }) }
}

/// Makes a ring, opens its sender and sends the other end over the socket.
///
/// # Errors
/// What the system says.
pub fn offer_sender(socket: &UnixStream, capacity: u32, wait: Wait) -> io::Result<Sender<Link>> {
    offer(socket, capacity, SENDER, wait)?.sender()
}

/// The same for the receiver.
///
/// # Errors
/// What the system says.
pub fn offer_receiver(socket: &UnixStream, capacity: u32, wait: Wait) -> io::Result<Receiver<Link>> {
    offer(socket, capacity, RECEIVER, wait)?.receiver()
}

/// Opens the sender of the ring that was offered.
///
/// # Errors
/// The other end was offered, or none; or what the system says.
pub fn accept_sender(socket: &UnixStream, wait: Wait) -> io::Result<Sender<Link>> {
    accept(socket, SENDER, wait)?.sender()
}

/// The same for the receiver.
///
/// # Errors
/// As [`accept_sender`].
pub fn accept_receiver(socket: &UnixStream, wait: Wait) -> io::Result<Receiver<Link>> {
    accept(socket, RECEIVER, wait)?.receiver()
}

fn offer(socket: &UnixStream, capacity: u32, role: u8, wait: Wait) -> io::Result<Link> {
    const CLOEXEC_ALLOW_SEALING: u32 = 1 | 2;
    const F_ADD_SEALS: c_int = 1033;
    const SEAL_SHRINK_GROW: c_int = 1 | 2 | 4;
    const CLOEXEC_NONBLOCK: c_int = 0o2_000_000 | 0o4000;
    const NOSIGNAL: c_int = 0x4000;
    // SAFETY: the name is a string of C.
    let file = made(unsafe { memfd_create(c"ring".as_ptr(), CLOEXEC_ALLOW_SEALING) })?;
    let mut link = open_file(file, capacity, role, wait)?;
    let file = link.file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: these calls take no pointers.
    let [own, peer] = unsafe {
        fcntl(file, F_ADD_SEALS, SEAL_SHRINK_GROW);
        [made(eventfd(0, CLOEXEC_NONBLOCK))?, made(eventfd(0, CLOEXEC_NONBLOCK))?]
    };
    let files = [file, own.as_raw_fd(), peer.as_raw_fd()];
    let mut control = Control { bytes: CONTROL_BYTES, level: SOL_SOCKET, kind: SCM_RIGHTS, files };
    // SAFETY: the message lives as long as the call.
    pass(&mut (1 - role), &mut control, |message| unsafe { sendmsg(socket.as_raw_fd(), message, NOSIGNAL) })?;
    link.events = Some([own, peer]);
    Ok(link)
}

fn accept(socket: &UnixStream, role: u8, wait: Wait) -> io::Result<Link> {
    const F_GET_SEALS: c_int = 1034;
    const SEAL_SHRINK: c_int = 2;
    const CLOEXEC: c_int = 0x4000_0000;
    let (mut byte, mut control) = (9, Control { bytes: 0, level: 0, kind: 0, files: [-1; 3] });
    // SAFETY: the message lives as long as the call.
    pass(&mut byte, &mut control, |message| unsafe { recvmsg(socket.as_raw_fd(), message, CLOEXEC) })?;
    if (control.bytes, control.kind) != (CONTROL_BYTES, SCM_RIGHTS) {
        return Err(ErrorKind::InvalidData.into());
    }
    let [shared, peer, own] = control.files.map(made);
    let shared = shared?;
    // Memory that the other process could shorten would be a signal at the next access.
    // SAFETY: it takes no pointer.
    let seals = unsafe { fcntl(shared.as_raw_fd(), F_GET_SEALS) };
    if byte != role || seals < 0 || seals & SEAL_SHRINK == 0 {
        return Err(ErrorKind::InvalidData.into());
    }
    // A file description of its own, for a lock of its own.
    let path = format!("/proc/self/fd/{}", shared.as_raw_fd());
    let file = fs::File::options().read(true).write(true).open(path)?;
    drop(shared);
    let mut link = open_file(file, 0, role, wait)?;
    link.events = Some([own?, peer?]);
    Ok(link)
}
