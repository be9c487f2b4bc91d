//! The library that is preloaded into a shell, but not into the programs that it starts: it replaces pipe(2) for the pipes of a
//! *pipeline*, and reports to hosepipe which process took which end, which program it executed, and how it ended.
//!
//! Built twice: as an ordinary library, whose [`protocol`] and [`sites`] hosepipe uses, and (`--cfg preload`, by the build script)
//! as a shared object without a standard library, a C library of its own, an allocator or threads, so that one file works in every
//! dynamically linked shell. It runs between fork(2) and execve(2), and in signal handlers: no code here may take a lock.
#![cfg_attr(not(test), no_std)]

pub mod message;
pub mod protocol;
pub mod sites;

/// The shared object.
#[cfg(not(preload))]
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libpipes.so"));

/// A hash of the shared object: it differs from that of every other version.
#[cfg(not(preload))]
pub const FINGERPRINT: &str = env!("PIPES_FINGERPRINT");

#[cfg(preload)]
mod calls;
#[cfg(preload)]
mod end;
#[cfg(preload)]
mod program;
#[cfg(preload)]
mod server;
#[cfg(preload)]
mod session;
#[cfg(preload)]
mod start;
#[cfg(preload)]
mod sys;

/// Nothing can be printed or unwound.
#[cfg(preload)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit(127)
}

/// The compiled `core` refers to it; nothing here unwinds.
#[cfg(preload)]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
