//! What is preloaded into a shell, and into the shell alone: it stands in for pipe(2) where the shell makes the pipe of a
//! *pipeline*, and tells hosepipe which process took which end, became what, and ended how. Everything else stays the shell's.
//!
//! Built twice: as an ordinary library, whose [`protocol`] and [`sites`] hosepipe uses, and (`--cfg preload`, by the build script of
//! `pipeline`) as a shared object without a standard library, without a C library of its own, without memory to allocate, and
//! without threads, so that one file serves every dynamically linked shell. It runs between fork(2) and execve(2), and in signal
//! handlers: nothing here may wait for a lock.
#![cfg_attr(not(test), no_std)]

pub mod protocol;
pub mod sites;

#[cfg(preload)]
mod calls;
#[cfg(preload)]
mod session;
#[cfg(preload)]
mod start;
#[cfg(preload)]
mod sys;
#[cfg(preload)]
mod tell;

/// There is nothing to print to, and nothing to unwind.
#[cfg(preload)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit(127)
}

/// What `core` was compiled with refers to it; nothing here unwinds.
#[cfg(preload)]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
