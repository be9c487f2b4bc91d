//! Reports and requests to hosepipe's server.

use core::ffi::{c_char, c_int};

use crate::protocol::{Head, Plain, REPLY_BYTES, Reply, TEXT_BYTES_MAX, Usage, kind};
use crate::session::SESSION;
use crate::sys;

/// Longest list of children that is reported, with the zero after it.
const CHILDREN_BYTES_MAX: usize = 256;

/// The server answers within microseconds, on a busy machine within seconds. After this time the shell prints a notice and waits
/// on until the server answers or ends, or until a signal: a plain pipe would not be the link that the user requested.
const NOTICE_AFTER_MS: i64 = 20_000;
/// Longest wait until the server has read the counters of a process that has ended.
const COUNTERS_MS: i64 = 500;
const WAITING: &[u8] =
    b"hosepipe: the process that serves the links has not answered for 20 s: waiting for it\n";

const EINTR: isize = 4;
const EIO: isize = 5;
const EMFILE: isize = 24;
const ECONNREFUSED: isize = 111;
const NO_LIMIT: u64 = u64::MAX;

fn head(kind: u32, id: u64, value: i64) -> Head {
    Head { kind, pid: sys::getpid(), id, at_ns: sys::monotonic_ns(), value, usage: Usage::default() }
}

/// The error is a number of errno(3).
fn send(head: &Head, text: &[u8], with: Option<i32>) -> Result<(), isize> {
    sys::send_to(SESSION.config().name(), head.as_bytes(), text, with)
}

/// Asks for a link.
pub(crate) fn request_link() -> Answer {
    let answer = request();
    // No socket has the server's name: the server has ended.
    let is_gone = |error: &isize| *error == ECONNREFUSED;
    answer.unwrap_or_else(|error| if is_gone(&error) { Answer::NoServer } else { Answer::Refused(error) })
}

fn request() -> Result<Answer, isize> {
    let [own, theirs] = sys::socket_pair()?;
    let asked = send(&head(kind::LINK, 0, 0), b"", Some(theirs));
    sys::close(theirs);
    let mut room = [0; REPLY_BYTES];
    let mut fds = [-1; 2];
    let mut answered = asked.is_err() || sys::readable_within(own, NOTICE_AFTER_MS);
    if !answered {
        sys::write(2, WAITING);
        answered = sys::readable_within(own, -1);
    }
    let received = if answered { sys::receive(own, &mut room, &mut fds) } else { None };
    sys::close(own);
    asked?;
    let reply = Reply::from_bytes(&room).unwrap_or_default();
    match received {
        _ if !answered => Err(EINTR),
        Some((REPLY_BYTES, 2)) => Ok(Answer::Link(reply, fds)),
        Some(_) if reply.error != 0 => Err(reply.error as isize),
        Some((_, passed)) => {
            // The process had too few free descriptors for both.
            fds[..passed].iter().for_each(|fd| sys::close(*fd));
            Err(EMFILE)
        }
        None => Ok(Answer::NoServer),
    }
}

/// The answer to a request for a link.
pub(crate) enum Answer {
    /// A link and its ends, the reader's first.
    Link(Reply, [c_int; 2]),
    /// There is none, for this reason (errno(3)).
    Refused(isize),
    /// The server has ended: the shell makes a pipe itself.
    NoServer,
}

/// Reports that this process has an end of a link. If `hold`, waits until the link's writers are done.
///
/// # Errors
/// A number of errno(3): it is unknown whether they are done.
pub(crate) fn report_taken(id: u64, target: c_int, hold: bool) -> Result<(), isize> {
    let head = Head { usage: own_usage(), ..head(kind::TOOK, id, target as i64) };
    if !hold {
        let counters = if SESSION.reports_usage() { sys::open(c"/proc/self/io") } else { None };
        // Without a server the link is a stream like any other.
        let _ = send(&head, b"", counters);
        counters.map(sys::close);
        if target > 0 {
            report_limit(target);
        }
        return Ok(());
    }
    let [own, theirs] = sys::socket_pair()?;
    let asked = send(&head, b"", Some(theirs));
    sys::close(theirs);
    let released = asked.is_ok() && {
        // Without a time limit, also after signals.
        while !sys::readable_within(own, -1) {}
        // No reply: the server was killed.
        sys::receive(own, &mut [0; REPLY_BYTES], &mut [-1; 2]).is_some()
    };
    sys::close(own);
    asked?;
    if released { Ok(()) } else { Err(EIO) }
}

/// Reports this process's file size limit, if it has one and `output` is a link: the link may be a file of the server's.
fn report_limit(output: c_int) {
    let bytes = sys::file_size_limit();
    if bytes == NO_LIMIT {
        return;
    }
    if let Some(link) = SESSION.link_of(output) {
        let _ = send(&head(kind::LIMIT, link.id, bytes as i64), b"", None);
    }
}

/// Reports that this process has replaced an end of a link.
pub(crate) fn report_left(id: u64, target: c_int) {
    let _ = send(&Head { usage: own_usage(), ..head(kind::LEFT, id, target as i64) }, b"", None);
}

/// Reports the program that this process executes, and its children, which are the process substitutions in the program's arguments.
pub(crate) fn report_exec(argv: *const *const c_char) {
    let mut text = [0; TEXT_BYTES_MAX];
    let mut len = sys::read_file(c"/proc/thread-self/children", &mut text[..CHILDREN_BYTES_MAX]) + 1;
    // SAFETY: the argument of execve(2), a list of strings that ends with a null.
    unsafe { push_strings(&mut text, &mut len, argv) };
    let mut usage = own_usage();
    if SESSION.reports_usage() {
        let children = usage_of(&sys::usage(true));
        usage.user_us += children.user_us;
        usage.system_us += children.system_us;
    }
    let _ = send(&Head { usage, ..head(kind::EXEC, 0, i64::from(sys::getppid())) }, &text[..len], None);
    // The limit may have changed since the process took the link.
    [1, 2].into_iter().for_each(report_limit);
}

/// Adds the strings of a list that ends with a null to a text, each with a zero behind it, until the text is full.
unsafe fn push_strings(text: &mut [u8], len: &mut usize, list: *const *const c_char) {
    // SAFETY: as the caller guarantees.
    let strings = (0..).map(|at| unsafe { *list.add(at) }).take_while(|string| !string.is_null());
    for string in strings {
        // SAFETY: as above: a string ends with a zero.
        let bytes = (0..).map(|at| unsafe { *string.add(at) } as u8).take_while(|byte| *byte != 0);
        for byte in bytes.chain([0]) {
            let Some(place) = text.get_mut(*len) else { return };
            *place = byte;
            *len += 1;
        }
    }
}

/// Asks the server how a program is to be started. Returns the length of the answer in `room`, and the program's new standard output if
/// there is one; `None`: the program is started without changes.
pub(crate) fn request_changes(
    path: *const c_char,
    argv: *const *const c_char,
    room: &mut [u8],
) -> Option<(usize, Option<c_int>)> {
    let [own, theirs] = sys::socket_pair().ok()?;
    let (mut text, mut len) = ([0; TEXT_BYTES_MAX], 0);
    // SAFETY: the arguments of execve(2): a string, and a list of strings that ends with a null.
    unsafe {
        push_strings(&mut text, &mut len, [path, core::ptr::null()].as_ptr());
        push_strings(&mut text, &mut len, argv);
    }
    let asked = send(&head(kind::CHANGES, 0, i64::from(sys::getppid())), &text[..len], Some(theirs));
    sys::close(theirs);
    let mut fds = [-1; 2];
    // Without a time limit, also after signals: a server that has ended has closed its end.
    while asked.is_ok() && !sys::readable_within(own, -1) {}
    let received = if asked.is_ok() { sys::receive(own, room, &mut fds) } else { None };
    sys::close(own);
    let (bytes, passed) = received?;
    // The first byte has no meaning: the server sends it because an answer must not be empty.
    room[0] = 0;
    Some((bytes, (passed > 0).then_some(fds[0])))
}

/// Reports that a process has ended and is about to be reaped; waits until the server has read its counters.
pub(crate) fn report_ended(pid: i32) {
    let Ok([own, theirs]) = sys::socket_pair() else { return };
    let asked = send(&Head { pid, ..head(kind::ENDED, 0, 0) }, b"", Some(theirs));
    sys::close(theirs);
    if asked.is_ok() {
        sys::readable_within(own, COUNTERS_MS);
    }
    sys::close(own);
}

/// Reports that a process was reaped, and its resource usage.
pub(crate) fn report_reaped(pid: i32, status: c_int, used: &sys::Rusage) {
    let _ = send(&Head { pid, usage: usage_of(used), ..head(kind::REAPED, 0, i64::from(status)) }, b"", None);
}

/// The resource usage of this process; zeros if it is not recorded.
fn own_usage() -> Usage {
    if SESSION.reports_usage() { usage_of(&sys::usage(false)) } else { Usage::default() }
}

fn usage_of(used: &sys::Rusage) -> Usage {
    let microseconds = |time: [i64; 2]| (time[0] * 1_000_000 + time[1]) as u64;
    Usage {
        user_us: microseconds(used.user),
        system_us: microseconds(used.system),
        max_rss_kib: used.max_rss_kib as u64,
    }
}
