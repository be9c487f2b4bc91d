//! Surroundings in which a system call is forbidden, as a container's seccomp filter has it: seccomp(2),
//! inherited by all that the command starts. The machine itself is not touched.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where `struct seccomp_data` has the number of the call, and the low half of its first argument; the others follow.
const NUMBER_AT: u32 = 0;
const FIRST_ARGUMENT_AT: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

/// Has the command's system calls of this number answered with `errno` instead of being made.
pub(crate) fn forbid(command: &mut Command, call: libc::c_long, errno: i32) {
    forbid_with(command, call, None, errno);
}

/// The same, where `argument` is given only for calls that have a value as the argument of this place, counted from 0.
pub(crate) fn forbid_with(
    command: &mut Command,
    call: libc::c_long,
    argument: Option<(u32, i32)>,
    errno: i32,
) {
    let load = |at| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let skip_unless =
        |value, skipped| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, 0, skipped);
    let answer = |what| instruction(libc::BPF_RET | libc::BPF_K, what, 0, 0);
    let mut program = vec![load(NUMBER_AT)];
    match argument {
        None => program.push(skip_unless(call as u32, 1)),
        Some((place, value)) => program.extend([
            skip_unless(call as u32, 3),
            load(FIRST_ARGUMENT_AT + place * ARGUMENT_BYTES),
            skip_unless(value as u32, 1),
        ]),
    }
    program.extend([answer(libc::SECCOMP_RET_ERRNO | errno as u32), answer(libc::SECCOMP_RET_ALLOW)]);
    // SAFETY: after fork(2) the closure makes system calls only; it reads memory made before.
    unsafe { command.pre_exec(move || enter(&program)) };
}

fn instruction(code: u32, k: u32, jump_if_true: u8, jump_if_false: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump_if_true, jf: jump_if_false, k }
}

fn enter(program: &[libc::sock_filter]) -> io::Result<()> {
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: prctl(2) as it is documented; the kernel copies the program, and does not change it.
    let entered = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) == 0
    };
    if entered { Ok(()) } else { Err(io::Error::last_os_error()) }
}
