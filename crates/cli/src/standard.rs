//! Standard streams that were closed when this program was started.
//!
//! The Rust runtime opens /dev/null in their place before `main`: output would be lost, with status 0, where other programs fail with
//! EBADF. Therefore the streams are examined before the runtime starts, and replaced afterwards by descriptors that are open for the
//! other direction and closed in children.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static WAS_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// The loader calls this before `main`, and so before the runtime (ELF, DT_INIT_ARRAY).
#[used]
// SAFETY: this section is a list of functions of the C calling convention, as this one is.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note_closed_streams;

extern "C" fn note_closed_streams() {
    for (number, was_closed) in WAS_CLOSED.iter().enumerate() {
        // SAFETY: F_GETFD uses no memory.
        let found = unsafe { libc::fcntl(number as i32, libc::F_GETFD) };
        let error = std::io::Error::last_os_error().raw_os_error();
        was_closed.store(found < 0 && error == Some(libc::EBADF), Relaxed);
    }
}

/// Makes closed streams fail with EBADF again. Their numbers stay in use: otherwise the next opened file would be standard output.
pub(crate) fn refuse_closed_streams() {
    for (number, _) in WAS_CLOSED.iter().enumerate().filter(|(_, was_closed)| was_closed.load(Relaxed)) {
        let opposite = if number == 0 { libc::O_WRONLY } else { libc::O_RDONLY };
        // SAFETY: a C string; the descriptor opened is closed again, and the one replaced is the runtime's own.
        unsafe {
            let refuses = libc::open(c"/dev/null".as_ptr(), opposite | libc::O_CLOEXEC);
            libc::dup3(refuses, number as i32, libc::O_CLOEXEC);
            libc::close(refuses);
        }
    }
}
