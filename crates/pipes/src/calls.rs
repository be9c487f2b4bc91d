//! The functions that replace the C library's. Each does the same as the C library's; in addition, they may make another link for
//! a pipeline, and they report which processes take and leave its ends, execute programs and end.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};

use crate::protocol::{NO_POSIX_SPAWN, asks, mode, share_in_burst};
use crate::server::Requested;
use crate::session::SESSION;
use crate::sites::{SAMPLE_BYTES, SLOTS};
use crate::{end, program, server, start, sys};

const O_CLOEXEC: c_int = 0o2000000;
const FD_CLOEXEC: c_int = 1;
const WNOHANG: c_int = 1;
const ECHILD: isize = -10;
const EINVAL: isize = -22;

/// pipe(2).
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pipe(_fds: *mut c_int) -> c_int {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("xor esi, esi", "jmp {with_stack}", with_stack = sym with_stack);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov w1, wzr", "b {with_stack}", with_stack = sym with_stack);
}

/// pipe2(2).
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pipe2(_fds: *mut c_int, _flags: c_int) -> c_int {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp {with_stack}", with_stack = sym with_stack);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("b {with_stack}", with_stack = sym with_stack);
}

/// Calls [`make`] with the stack of the caller: first the return address, then what was there before the call.
#[unsafe(naked)]
unsafe extern "C" fn with_stack(_fds: *mut c_int, _flags: c_int) -> c_int {
    // The return address is the first word of the stack.
    #[cfg(target_arch = "x86_64")]
    naked_asm!("mov rdx, rsp", "jmp {made}", made = sym make);
    // The return address is in a register: it is stored below the first word of the stack, and the frame below that.
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "str x30, [sp, #24]",
        "mov x29, sp",
        "add x2, sp, #24",
        "bl {made}",
        "ldp x29, x30, [sp], #32",
        "ret",
        made = sym make
    );
}

/// Makes a pipe or a link.
unsafe extern "C" fn make(fds: *mut c_int, flags: c_int, stack: *const usize) -> c_int {
    // SAFETY: the caller's own argument.
    let made = unsafe { sys::pipe2(fds, flags) };
    if made < 0 {
        return sys::answer(made);
    }
    // SAFETY: just filled in by the kernel.
    let ends = unsafe { [*fds, *fds.add(1)] };
    let config = SESSION.config();
    match config.mode {
        mode::LEARN => note(config.argument as i32, stack),
        mode::OFF => {}
        _ if !SESSION.is_pipeline_call(stack) => {}
        mode::ASK => return sys::answer(replace(ends, flags)),
        mode::OWN => {
            let share = share_in_burst(SESSION.count_in_burst());
            sys::set_pipe_size(ends[0], share.map_or(0, |part| config.argument / part));
        }
        _ => sys::set_pipe_size(ends[0], config.argument),
    }
    0
}

/// Replaces the ends of a pipe by a link's, with the same descriptor numbers. Returns 0, or the error as a negative number.
fn replace(pipe: [c_int; 2], flags: c_int) -> isize {
    let (id, waits, ends) = match server::request_link() {
        Requested::Link { id, waits, ends } => (id, waits, ends),
        Requested::NoServer => return 0,
        Requested::Refused(error) => {
            pipe.into_iter().for_each(sys::close);
            return -error;
        }
    };
    for (end, number) in ends.into_iter().zip(pipe) {
        let put = sys::dup(end, number, flags & O_CLOEXEC);
        if put < 0 {
            pipe.into_iter().chain(ends).for_each(sys::close);
            return put;
        }
    }
    ends.into_iter().for_each(sys::close);
    for number in pipe {
        if flags & O_CLOEXEC != 0 {
            sys::set_descriptor_flags(number, FD_CLOEXEC);
        }
        SESSION.remember(number, id, waits);
    }
    0
}

/// Writes a sample of the stack to `fd`.
fn note(fd: i32, stack: *const usize) {
    let mut bytes = [0; SAMPLE_BYTES];
    for (at, word) in bytes.chunks_exact_mut(size_of::<usize>()).enumerate().take(SLOTS) {
        // SAFETY: a stack is at least as deep as main's caller, its arguments and its environment.
        let address = unsafe { *stack.add(at) };
        let offset = SESSION.offset(address).filter(|_| follows_a_call(address)).unwrap_or(0);
        word.copy_from_slice(&offset.to_ne_bytes());
    }
    sys::write(fd, &bytes);
}

/// Whether the instruction before an address in the shell's code is a call.
#[cfg(target_arch = "x86_64")]
fn follows_a_call(address: usize) -> bool {
    if address < SESSION.code_begins() + 7 {
        return false;
    }
    // SAFETY: within the code, as just checked.
    let before = |bytes: usize| unsafe { *((address - bytes) as *const u8) };
    // call rel32; call through a register or memory (FF /2) of two to seven bytes.
    before(5) == 0xe8 || (2..=7).any(|len| before(len) == 0xff && before(len - 1) >> 3 & 7 == 2)
}

/// Whether the instruction before an address in the shell's code is a call.
#[cfg(target_arch = "aarch64")]
fn follows_a_call(address: usize) -> bool {
    if address < SESSION.code_begins() + 4 || address % 4 != 0 {
        return false;
    }
    // SAFETY: within the code, as just checked.
    let before = unsafe { *((address - 4) as *const u32) };
    // BL, and BLR with any register.
    before >> 26 == 0b100101 || before & 0xffff_fc1f == 0xd63f_0000
}

/// dup2(2). Reports when a link's end becomes a standard descriptor, and when it is replaced.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    let reports = (0..=2).contains(&new) && SESSION.has_server();
    let link = |fd| if reports { SESSION.link_of(fd) } else { None };
    let (had, takes) = (link(new), link(old));
    let done = sys::dup(old, new, 0);
    let reported = match (had, takes) {
        _ if done < 0 => Ok(()),
        (_, Some(takes)) => server::report_taken(takes.id, new, takes.waits && new == 0),
        (Some(had), None) => {
            server::report_left(had.id, new);
            Ok(())
        }
        (None, None) => Ok(()),
    };
    if let Err(error) = reported {
        // Shells continue after an error of dup2, but a reader must not take incomplete data for all.
        sys::close(new);
        return sys::answer(-error);
    }
    sys::answer(done)
}

/// execve(2). Reports the new program.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execve(
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's own arguments: an environment is a list that the caller made for this call.
    unsafe {
        start::remove_variable(envp.cast_mut().cast(), NO_POSIX_SPAWN);
        let (mut argv, mut envp) = (argv, envp);
        if SESSION.has_server() && !argv.is_null() {
            server::report_exec(argv);
            if SESSION.asks(asks::CHANGES) {
                (argv, envp) = program::changed(path, argv, envp).unwrap_or((argv, envp));
            }
        }
        sys::answer(end::over_exec(|| sys::execve(path, argv, envp)))
    }
}

/// waitpid(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { reap(pid, status, options, core::ptr::null_mut()) }
}

/// wait3(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn wait3(status: *mut c_int, options: c_int, usage: *mut c_void) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { reap(-1, status, options, usage) }
}

/// wait4(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn wait4(
    pid: c_int,
    status: *mut c_int,
    options: c_int,
    usage: *mut c_void,
) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { reap(pid, status, options, usage) }
}

unsafe fn reap(pid: c_int, status: *mut c_int, options: c_int, usage: *mut c_void) -> c_int {
    let (mut own_status, mut own_usage) = (0, sys::Rusage::default());
    let status = if status.is_null() { &raw mut own_status } else { status };
    let used: *mut sys::Rusage = if usage.is_null() { &raw mut own_usage } else { usage.cast() };
    let reaped = if SESSION.reports_usage() {
        // SAFETY: the caller's own pointers, or ours.
        unsafe { reap_reported(pid, status, options, used) }
    } else {
        // SAFETY: as above.
        unsafe { sys::wait4(pid, status, options, used) }
    };
    if reaped > 0 {
        SESSION.end_burst();
        // SAFETY: just filled in by the kernel.
        let (status, used) = unsafe { (*status, &*used) };
        // Neither stopped nor continued (wait(2), WIFSTOPPED and WIFCONTINUED).
        if SESSION.has_server() && status & 0xff != 0x7f && status != 0xffff {
            server::report_reaped(reaped as i32, status, used);
        }
    }
    sys::answer(reaped)
}

/// wait4(2), where a child that has ended is reported before it is reaped.
unsafe fn reap_reported(pid: c_int, status: *mut c_int, options: c_int, used: *mut sys::Rusage) -> isize {
    loop {
        let awaited = match sys::awaited_child(pid, options) {
            // SAFETY: the caller's own arguments, which wait4(2) may take where waitid(2) does not.
            Err(EINVAL) => return unsafe { sys::wait4(pid, status, options, used) },
            Err(error) => return error,
            Ok((0, _)) => return 0,
            Ok((awaited, has_ended)) => {
                if has_ended {
                    server::report_ended(awaited);
                }
                awaited
            }
        };
        // SAFETY: as above.
        let reaped = unsafe { sys::wait4(awaited, status, options | WNOHANG, used) };
        // A signal handler may have reaped it meanwhile, or it goes on.
        if reaped != 0 && (reaped != ECHILD || pid == awaited) {
            return reaped;
        }
    }
}
