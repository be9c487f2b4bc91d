//! System calls, made without the C library, because this library replaces some of its functions.

use core::arch::asm;
use core::ffi::{c_char, c_int, c_void};

/// The numbers of system calls, on x86-64 and on aarch64.
macro_rules! numbers {
    ($($name:ident $x86_64:literal $aarch64:literal;)*) => {
        mod number {
            $(pub(crate) const $name: usize = if cfg!(target_arch = "x86_64") { $x86_64 } else { $aarch64 };)*
        }
    };
}

numbers! {
    READ 0 63;
    WRITE 1 64;
    CLOSE 3 57;
    FSTAT 5 80;
    MMAP 9 222;
    RT_SIGACTION 13 134;
    GETPID 39 172;
    SOCKET 41 198;
    CONNECT 42 203;
    SENDMSG 46 211;
    RECVMSG 47 212;
    EXECVE 59 221;
    WAIT4 61 260;
    KILL 62 129;
    FCNTL 72 25;
    GETRUSAGE 98 165;
    GETPPID 110 173;
    PRCTL 157 167;
    WAITID 247 95;
    CLOCK_GETTIME 228 113;
    EXIT_GROUP 231 94;
    OPENAT 257 56;
    FACCESSAT 269 48;
    PPOLL 271 73;
    DUP3 292 24;
    PIPE2 293 59;
    PRLIMIT64 302 261;
    STATX 332 291;
}

pub(crate) const SIGKILL: c_int = 9;
pub(crate) const SIGSTOP: c_int = 19;
const PR_SET_PDEATHSIG: usize = 1;
const AT_FDCWD: isize = -100;
const O_CLOEXEC: usize = 0o2000000;
const O_ACCMODE: u64 = 3;
const O_APPEND: u64 = 0o2000;
const EINTR: isize = -4;
const EBADF: isize = -9;
const AF_UNIX: usize = 1;
const SOCK_SEQPACKET: usize = 5;
const SOCK_CLOEXEC: usize = 0o2000000;
const MSG_NOSIGNAL: usize = 0x4000;
const F_GETFD: usize = 1;
const F_SETFD: usize = 2;
const F_GETFL: usize = 3;
const AT_EMPTY_PATH: usize = 0x1000;
const STATX_BTIME: usize = 0x800;
const RLIMIT_FSIZE: usize = 1;
const F_SETPIPE_SZ: usize = 1031;
const CLOCK_MONOTONIC: usize = 1;
const P_ALL: usize = 0;
const P_PID: usize = 1;
const P_PGID: usize = 2;

/// A system call with up to six arguments. Returns the kernel's result; an error is a negative number.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn call(number: usize, arguments: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the caller vouches for the arguments; the kernel changes rcx, r11 and rax, and no other register.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// A system call with up to six arguments. Returns the kernel's result; an error is a negative number.
#[cfg(target_arch = "aarch64")]
#[inline]
unsafe fn call(number: usize, arguments: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the caller vouches for the arguments; the kernel changes no register but x0.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] as isize => answer,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    answer
}

macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        let given = [$($argument as usize),*];
        let mut arguments = [0usize; 6];
        arguments[..given.len()].copy_from_slice(&given);
        // SAFETY: every pointer among the arguments is valid during the call: it is the caller's, or points to a local variable.
        unsafe { call($number, arguments) }
    }};
}

unsafe extern "C" {
    /// The address of the thread's errno, in glibc and musl.
    safe fn __errno_location() -> *mut c_int;
}

/// The result of a C function: a system call's result, or -1 with errno set.
pub(crate) fn answer(answer: isize) -> c_int {
    if answer >= 0 {
        return answer as c_int;
    }
    // SAFETY: the thread's own errno.
    unsafe { *__errno_location() = -answer as c_int };
    -1
}

pub(crate) fn exit(status: i32) -> ! {
    loop {
        call!(number::EXIT_GROUP, status);
    }
}

pub(crate) fn getpid() -> i32 {
    call!(number::GETPID) as i32
}

pub(crate) fn getppid() -> i32 {
    call!(number::GETPPID) as i32
}

/// Lets the kernel send this process a signal when its parent ends.
pub(crate) fn signal_at_end_of_parent(signal: c_int) {
    call!(number::PRCTL, PR_SET_PDEATHSIG, signal);
}

pub(crate) fn kill(pid: i32, signal: c_int) {
    call!(number::KILL, pid, signal);
}

/// Calls a handler, which does not return, with all other signals blocked. Returns whether the kernel agrees.
pub(crate) fn handle(signal: c_int, handler: extern "C" fn(c_int)) -> bool {
    const SA_RESTORER: usize = 0x0400_0000;
    /// The kernel's struct sigaction, the same on both architectures.
    #[repr(C)]
    struct Action {
        handler: extern "C" fn(c_int),
        flags: usize,
        /// x86-64 wants the function that a handler returns to.
        restorer: extern "C" fn(c_int),
        mask: u64,
    }
    let action = Action { handler, flags: SA_RESTORER, restorer: handler, mask: u64::MAX };
    call!(number::RT_SIGACTION, signal, &raw const action, 0usize, size_of::<u64>()) == 0
}

pub(crate) fn sleep(milliseconds: i64) {
    let time = [milliseconds / 1000, milliseconds % 1000 * 1_000_000];
    call!(number::PPOLL, 0usize, 0usize, time.as_ptr(), 0usize, 0usize);
}

pub(crate) fn close(fd: i32) {
    call!(number::CLOSE, fd);
}

pub(crate) fn write(fd: i32, bytes: &[u8]) {
    call!(number::WRITE, fd, bytes.as_ptr(), bytes.len());
}

pub(crate) unsafe fn pipe2(fds: *mut c_int, flags: c_int) -> isize {
    call!(number::PIPE2, fds, flags)
}

/// dup3(2), or dup2(2) if the flags are 0: then equal numbers are no error.
pub(crate) fn dup(old: c_int, new: c_int, flags: c_int) -> isize {
    if old == new && flags == 0 {
        let found = call!(number::FCNTL, old, F_GETFD);
        return if found < 0 { EBADF } else { new as isize };
    }
    call!(number::DUP3, old, new, flags)
}

pub(crate) fn set_descriptor_flags(fd: i32, flags: c_int) {
    call!(number::FCNTL, fd, F_SETFD, flags);
}

/// Opens a file for reading.
pub(crate) fn open(path: &core::ffi::CStr) -> Option<i32> {
    let file = call!(number::OPENAT, AT_FDCWD, path.as_ptr(), O_CLOEXEC);
    (file >= 0).then_some(file as i32)
}

/// Reads the beginning of a file; returns the number of bytes.
pub(crate) fn read_file(path: &core::ffi::CStr, room: &mut [u8]) -> usize {
    let Some(file) = open(path) else { return 0 };
    let len = call!(number::READ, file, room.as_mut_ptr(), room.len());
    close(file);
    len.max(0) as usize
}

/// Allocates zeroed memory by mmap(2); `None` if the system refuses.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    let area = call!(number::MMAP, 0usize, bytes, READ_WRITE, PRIVATE_ANONYMOUS, -1isize, 0usize);
    (!(-4095..=0).contains(&area)).then_some(area as *mut u8)
}

/// Whether the real user may execute a file: the check that a shell makes before it tries.
pub(crate) fn is_executable(path: *const c_char) -> bool {
    const X_OK: usize = 1;
    call!(number::FACCESSAT, AT_FDCWD, path, X_OK) == 0
}

/// Sets the size of a pipe; an error leaves it as it is.
pub(crate) fn set_pipe_size(fd: i32, bytes: u64) {
    if bytes > 0 {
        call!(number::FCNTL, fd, F_SETPIPE_SZ, bytes);
    }
}

pub(crate) unsafe fn execve(
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> isize {
    call!(number::EXECVE, path, argv, envp)
}

/// getrusage(2) of this process, or of the children that it has waited for.
pub(crate) fn usage(of_children: bool) -> Rusage {
    let mut usage = Rusage::default();
    let who: isize = if of_children { -1 } else { 0 };
    call!(number::GETRUSAGE, who, &raw mut usage);
    usage
}

/// struct rusage.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Rusage {
    pub(crate) user: [i64; 2],
    pub(crate) system: [i64; 2],
    pub(crate) max_rss_kib: i64,
    rest: [i64; 13],
}

pub(crate) unsafe fn wait4(pid: i32, status: *mut c_int, options: c_int, usage: *mut Rusage) -> isize {
    call!(number::WAIT4, pid, status, options, usage)
}

/// The child that wait4(2) with these arguments would return, and whether it has ended; 0 if wait4(2) would return 0. The child is not
/// reaped.
pub(crate) fn awaited_child(pid: c_int, options: c_int) -> Result<(c_int, bool), isize> {
    const WEXITED: c_int = 4;
    const WNOWAIT: c_int = 0x0100_0000;
    // CLD_EXITED, CLD_KILLED and CLD_DUMPED.
    const ENDED: core::ops::RangeInclusive<c_int> = 1..=3;
    let (id_type, id) = match pid {
        -1 => (P_ALL, 0),
        1.. => (P_PID, pid),
        _ => (P_PGID, -pid),
    };
    // siginfo_t has 128 bytes; as ints, si_code is the third and si_pid the fifth.
    let mut info = [0 as c_int; 32];
    let options = options | WEXITED | WNOWAIT;
    let answer = call!(number::WAITID, id_type, id, info.as_mut_ptr(), options, 0usize);
    if answer < 0 { Err(answer) } else { Ok((info[4], ENDED.contains(&info[2]))) }
}

pub(crate) fn monotonic_ns() -> u64 {
    let mut time = [0i64; 2];
    call!(number::CLOCK_GETTIME, CLOCK_MONOTONIC, time.as_mut_ptr());
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

pub(crate) const IDENTITY_WORDS: usize = 5;
/// Device and inode of an open file, its creation time, and its open mode.
pub(crate) type Identity = [u64; IDENTITY_WORDS];

/// Identifies an open file, even if a removed file had the same inode; `None` if the descriptor is not open.
pub(crate) fn identity(fd: i32) -> Option<Identity> {
    // struct stat of both architectures is at most 144 bytes, and begins with the device and the inode.
    let mut stat = [0u64; 18];
    if call!(number::FSTAT, fd, stat.as_mut_ptr()) < 0 {
        return None;
    }
    // struct statx has 256 bytes, with the creation time at byte 80: zeros if the file system or the kernel does not know it.
    let mut made = [0u64; 32];
    call!(number::STATX, fd, c"".as_ptr(), AT_EMPTY_PATH, STATX_BTIME, made.as_mut_ptr());
    // A file made within the same clock tick has the same time. Links are open for reading and appending, a shell's files are not.
    let mode = call!(number::FCNTL, fd, F_GETFL) as u64 & (O_ACCMODE | O_APPEND);
    Some([stat[0], stat[1], made[10], made[11], mode])
}

/// This process's file size limit in bytes; the largest number if there is no limit.
pub(crate) fn file_size_limit() -> u64 {
    let mut limit = [u64::MAX; 2];
    call!(number::PRLIMIT64, 0usize, RLIMIT_FSIZE, 0usize, limit.as_mut_ptr());
    limit[0]
}

#[repr(C)]
struct Iovec {
    base: *const c_void,
    len: usize,
}

#[repr(C)]
struct Msghdr {
    name: *const c_void,
    name_len: u32,
    iov: *const Iovec,
    iov_len: usize,
    control: *mut c_void,
    control_len: usize,
    flags: c_int,
}

/// A control message with room for two descriptors (cmsg(3)).
#[repr(C)]
#[derive(Default)]
struct Rights {
    len: usize,
    level: c_int,
    kind: c_int,
    fds: [c_int; 2],
}

const RIGHTS_HEAD_BYTES: usize = 16;
const SOL_SOCKET: c_int = 1;
const SCM_RIGHTS: c_int = 1;

#[repr(C)]
struct SocketName {
    family: u16,
    path: [u8; 108],
}

/// Connects to the socket with this path. The error is a number of errno(3).
pub(crate) fn connect(path: &[u8]) -> Result<c_int, isize> {
    let socket = call!(number::SOCKET, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0usize);
    if socket < 0 {
        return Err(-socket);
    }
    let mut name = SocketName { family: AF_UNIX as u16, path: [0; 108] };
    let len = path.len().min(name.path.len() - 1);
    name.path[..len].copy_from_slice(&path[..len]);
    match until_done(|| call!(number::CONNECT, socket, &raw const name, size_of::<SocketName>())) {
        0 => Ok(socket as c_int),
        error => {
            close(socket as c_int);
            Err(-error)
        }
    }
}

/// Sends one packet, `head` followed by `text`, and a descriptor if given. The error is a number of errno(3).
pub(crate) fn send(socket: c_int, head: &[u8], text: &[u8], with: Option<c_int>) -> Result<(), isize> {
    let parts = [
        Iovec { base: head.as_ptr().cast(), len: head.len() },
        Iovec { base: text.as_ptr().cast(), len: text.len() },
    ];
    let mut rights = Rights {
        len: RIGHTS_HEAD_BYTES + 4,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        fds: [with.unwrap_or(0), 0],
    };
    let message = Msghdr {
        name: core::ptr::null(),
        name_len: 0,
        iov: parts.as_ptr(),
        iov_len: parts.len(),
        control: if with.is_some() { (&raw mut rights).cast() } else { core::ptr::null_mut() },
        control_len: if with.is_some() { size_of::<Rights>() } else { 0 },
        flags: 0,
    };
    let sent = until_done(|| call!(number::SENDMSG, socket, &raw const message, MSG_NOSIGNAL));
    if sent < 0 { Err(-sent) } else { Ok(()) }
}

/// Makes a call again for as long as signals interrupt it.
fn until_done(mut call: impl FnMut() -> isize) -> isize {
    loop {
        match call() {
            EINTR => {}
            answer => return answer,
        }
    }
}

/// Receives an answer and up to two descriptors. Returns its length and their number; `None` if there is no answer.
pub(crate) fn receive(socket: i32, room: &mut [u8], fds: &mut [c_int; 2]) -> Option<(usize, usize)> {
    let part = Iovec { base: room.as_mut_ptr().cast::<c_void>().cast_const(), len: room.len() };
    let mut rights = Rights::default();
    let mut message = Msghdr {
        name: core::ptr::null(),
        name_len: 0,
        iov: &raw const part,
        iov_len: 1,
        control: (&raw mut rights).cast(),
        control_len: size_of::<Rights>(),
        flags: 0,
    };
    let received = until_done(|| call!(number::RECVMSG, socket, &raw mut message, 0usize));
    let passed =
        rights.level == SOL_SOCKET && rights.kind == SCM_RIGHTS && message.control_len >= RIGHTS_HEAD_BYTES;
    let count = if passed { (rights.len.saturating_sub(RIGHTS_HEAD_BYTES) / 4).min(2) } else { 0 };
    fds[..count].copy_from_slice(&rights.fds[..count]);
    (received > 0).then_some((received as usize, count))
}

/// Waits until there is something to receive or the other end is closed. Returns false after `milliseconds`, or, without a limit
/// (-1), after a signal.
pub(crate) fn readable_within(fd: i32, milliseconds: i64) -> bool {
    const POLLIN: i16 = 1;
    #[repr(C)]
    struct PollFd {
        fd: c_int,
        events: i16,
        seen: i16,
    }
    let began = monotonic_ns();
    loop {
        let mut asked = PollFd { fd, events: POLLIN, seen: 0 };
        let left = milliseconds - (monotonic_ns() - began) as i64 / 1_000_000;
        if left <= 0 && milliseconds >= 0 {
            return false;
        }
        let time = [left / 1000, left % 1000 * 1_000_000];
        let time = if milliseconds < 0 { core::ptr::null() } else { time.as_ptr() };
        match call!(number::PPOLL, &raw mut asked, 1usize, time, 0usize) {
            EINTR if milliseconds < 0 => return false,
            EINTR | 0 => {}
            found => return found > 0,
        }
    }
}
