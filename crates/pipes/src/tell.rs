//! Telling hosepipe, and asking it.

use core::ffi::{c_char, c_int};

use crate::protocol::{Head, Plain, REPLY_BYTES, Reply, TEXT_BYTES_MAX, Usage, kind};
use crate::session::SESSION;
use crate::sys;

/// The longest list of children that is told, and the zero behind it.
const CHILDREN_BYTES_MAX: usize = 256;

/// How long a shell waits for a link before it makes a pipe of its own. hosepipe answers within microseconds; a machine that is
/// out of breath may take seconds.
const PATIENCE_MS: i64 = 20_000;

fn head(kind: u32, id: u64, value: i64) -> Head {
    Head { kind, pid: sys::getpid(), id, at_ns: sys::monotonic_ns(), value, usage: Usage::default() }
}

fn send(head: &Head, text: &[u8], with: Option<i32>) -> bool {
    sys::send_to(SESSION.config().name(), head.as_bytes(), text, with)
}

/// Asks for a link.
pub(crate) fn ask_for_link() -> Answer {
    let Some([own, theirs]) = sys::socket_pair() else { return Answer::Nobody };
    let asked = send(&head(kind::LINK, 0, 0), b"", Some(theirs));
    sys::close(theirs);
    let mut room = [0; REPLY_BYTES];
    let mut fds = [-1; 2];
    let answered = asked && sys::readable_within(own, PATIENCE_MS);
    let received = if answered { sys::receive(own, &mut room, &mut fds) } else { None };
    sys::close(own);
    let reply = Reply::from_bytes(&room).unwrap_or_default();
    match received {
        Some((REPLY_BYTES, 2)) => Answer::Link(reply, fds),
        Some((REPLY_BYTES, 0)) if reply.error != 0 => Answer::Refused(reply.error as isize),
        Some((_, 1)) => {
            // Too few descriptors were free for both.
            sys::close(fds[0]);
            Answer::Nobody
        }
        _ => Answer::Nobody,
    }
}

/// What became of the question for a link.
pub(crate) enum Answer {
    /// A link, and its ends, the reader's first.
    Link(Reply, [c_int; 2]),
    /// There is none, for this reason (errno(3)).
    Refused(isize),
    /// Nobody answers any more: the shell is to make a pipe itself.
    Nobody,
}

/// Says that this process has an end of a link now. A reader that is to be held waits here until its writers are done.
pub(crate) fn took(id: u64, target: c_int, hold: bool) {
    let head = Head { usage: usage(&sys::usage(false)), ..head(kind::TOOK, id, target as i64) };
    let pair = if hold { sys::socket_pair() } else { None };
    let Some([own, theirs]) = pair else {
        send(&head, b"", None);
        return;
    };
    let asked = send(&head, b"", Some(theirs));
    sys::close(theirs);
    // As long as it takes; the end of hosepipe ends the waiting, too.
    if asked && sys::readable_within(own, -1) {
        sys::receive(own, &mut [0; REPLY_BYTES], &mut [-1; 2]);
    }
    sys::close(own);
}

/// Says that this process has put something else in the place of an end of a link.
pub(crate) fn left(id: u64, target: c_int) {
    send(&Head { usage: usage(&sys::usage(false)), ..head(kind::LEFT, id, target as i64) }, b"", None);
}

/// Says what this process becomes, and which children it has then: of a program they are none, but process substitutions of its
/// arguments.
pub(crate) fn becomes(argv: *const *const c_char) {
    let mut text = [0; TEXT_BYTES_MAX];
    let mut len = sys::read_file(c"/proc/thread-self/children", &mut text[..CHILDREN_BYTES_MAX]) + 1;
    // SAFETY: as execve(2) has it, a list of strings that ends with a null.
    let arguments = (0..).map(|at| unsafe { *argv.add(at) }).take_while(|argument| !argument.is_null());
    'text: for argument in arguments {
        // SAFETY: as above: up to the zero behind it.
        let bytes = (0..).map(|at| unsafe { *argument.add(at) } as u8).take_while(|byte| *byte != 0);
        for byte in bytes.chain([0]) {
            if len == text.len() {
                break 'text;
            }
            text[len] = byte;
            len += 1;
        }
    }
    let (own, children) = (usage(&sys::usage(false)), usage(&sys::usage(true)));
    let usage = Usage {
        user_us: own.user_us + children.user_us,
        system_us: own.system_us + children.system_us,
        ..own
    };
    send(&Head { usage, ..head(kind::EXEC, 0, i64::from(sys::getppid())) }, &text[..len], None);
}

/// Says that a process has ended, and what it used.
pub(crate) fn reaped(pid: i32, status: c_int, used: &sys::Rusage) {
    send(&Head { pid, usage: usage(used), ..head(kind::REAPED, 0, i64::from(status)) }, b"", None);
}

fn usage(used: &sys::Rusage) -> Usage {
    let microseconds = |time: [i64; 2]| (time[0] * 1_000_000 + time[1]) as u64;
    Usage {
        user_us: microseconds(used.user),
        system_us: microseconds(used.system),
        max_rss_kib: used.max_rss_kib as u64,
    }
}
