//! SIGHUP and SIGTERM while a line is being typed: the pipelines behind the prompt are told, the terminal is set right,
//! and the shell goes without leaving a file. (While a pipeline is in front they come to whoever waits for it.)

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pipeline::{Groups, NoSignals, Terminal};
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::scratch::Scratch;

/// Ends bracketed paste and shows the cursor, both of which the line editor changes (ctlseqs of xterm).
const EDITOR_OFF: &[u8] = b"\x1b[?2004l\x1b[?25h";

/// Begins to listen.
///
/// # Errors
/// No descriptor, thread or handler can be had.
pub(crate) fn listen(groups: Groups, terminal: Terminal, scratch: Scratch) -> std::io::Result<()> {
    let (mut wake, waker) = UnixStream::pair()?;
    let came = Arc::new(AtomicUsize::new(0));
    for signal in [SIGHUP, SIGTERM].into_iter().filter(|signal| !pipeline::was_ignored(*signal)) {
        signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
        signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
    }
    let _held = NoSignals::hold();
    std::thread::Builder::new().name("hosepipe-hangup".to_owned()).spawn(move || {
        let mut byte = [0];
        // An error means that nobody can wake us any more.
        if wake.read_exact(&mut byte).is_err() {
            return;
        }
        groups.hang_up();
        let _ = std::io::stdout().write_all(EDITOR_OFF);
        let _ = std::io::stdout().flush();
        terminal.restore_modes();
        drop(terminal);
        scratch.remove();
        std::process::exit(128 + came.load(Ordering::Relaxed) as i32);
    })?;
    Ok(())
}
