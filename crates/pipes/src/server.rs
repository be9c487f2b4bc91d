//! Reports and requests to hosepipe's server.

use core::ffi::{c_char, c_int};

use crate::message::{ANSWER_HEAD_BYTES, Answer, Message, Sender, TEXT_BYTES_MAX, Usage};
use crate::protocol::Plain;
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

const ENOENT: isize = 2;
const ESRCH: isize = 3;
const EINTR: isize = 4;
const EIO: isize = 5;
const EMFILE: isize = 24;
const EPIPE: isize = 32;
const ECONNREFUSED: isize = 111;
const NO_LIMIT: u64 = u64::MAX;

/// A connection to the server, on which one message was sent. The error is a number of errno(3).
struct Connection(c_int);

impl Connection {
    /// Sends a message about this process.
    fn send(message: Message<'_>, usage: Usage, with: Option<c_int>) -> Result<Self, isize> {
        Self::send_about(sys::getpid(), message, usage, with)
    }

    fn send_about(pid: i32, message: Message<'_>, usage: Usage, with: Option<c_int>) -> Result<Self, isize> {
        let (head, text) = message.packet(Sender { pid, at_ns: sys::monotonic_ns(), usage });
        let connection = Self(sys::connect(SESSION.config().path())?);
        sys::send(connection.0, head.as_bytes(), text, with)?;
        Ok(connection)
    }

    /// Waits for the answer, without a time limit, also after signals. `None`: the server has ended.
    fn answer<'a>(&self, room: &'a mut [u8], fds: &mut [c_int; 2]) -> Option<(Answer<'a>, usize)> {
        while !sys::readable_within(self.0, -1) {}
        self.read(room, fds)
    }

    /// The answer that has come, and the number of descriptors with it.
    fn read<'a>(&self, room: &'a mut [u8], fds: &mut [c_int; 2]) -> Option<(Answer<'a>, usize)> {
        let (len, passed) = sys::receive(self.0, room, fds)?;
        Some((Answer::read(&room[..len])?, passed))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}

/// Sends a message that needs no answer. Without a server nothing needs it.
fn report(message: Message<'_>, usage: Usage) {
    let _ = Connection::send(message, usage, None);
}

/// The result of a request for a link.
pub(crate) enum Requested {
    /// A link: its number, whether a process that takes the reading end waits, and its ends, the reader's first.
    Link { id: u64, waits: bool, ends: [c_int; 2] },
    /// There is none, for this reason (errno(3)).
    Refused(isize),
    /// The server has ended: the shell makes a pipe itself.
    NoServer,
}

/// Asks for a link.
pub(crate) fn request_link() -> Requested {
    let connection = match Connection::send(Message::Link, Usage::default(), None) {
        Ok(connection) => connection,
        Err(ENOENT | ESRCH | EPIPE | ECONNREFUSED) => return Requested::NoServer,
        Err(error) => return Requested::Refused(error),
    };
    if !sys::readable_within(connection.0, NOTICE_AFTER_MS) {
        sys::write(2, WAITING);
        if !sys::readable_within(connection.0, -1) {
            return Requested::Refused(EINTR);
        }
    }
    let (mut room, mut ends) = ([0; ANSWER_HEAD_BYTES], [-1; 2]);
    match connection.read(&mut room, &mut ends) {
        Some((Answer::Link { id, waits }, 2)) => Requested::Link { id, waits, ends },
        Some((Answer::Refused { error }, _)) => Requested::Refused(error as isize),
        Some((_, passed)) => {
            // The process had too few free descriptors for both.
            ends[..passed].iter().for_each(|fd| sys::close(*fd));
            Requested::Refused(EMFILE)
        }
        None => Requested::NoServer,
    }
}

/// Reports that this process has an end of a link. If it `waits`, waits until the link's writers are done.
///
/// # Errors
/// A number of errno(3): it is unknown whether they are done.
pub(crate) fn report_taken(link: u64, fd: c_int, waits: bool) -> Result<(), isize> {
    let message = Message::Took { link, fd, waits };
    if !waits {
        let counters = if SESSION.reports_usage() { sys::open(c"/proc/self/io") } else { None };
        // Without a server the link is a stream like any other.
        let _ = Connection::send(message, own_usage(), counters);
        counters.map(sys::close);
        if fd > 0 {
            report_limit(fd);
        }
        return Ok(());
    }
    let answer = Connection::send(message, own_usage(), None)?;
    // No answer: the server was killed.
    match answer.answer(&mut [0; ANSWER_HEAD_BYTES], &mut [-1; 2]) {
        Some((Answer::Written, _)) => Ok(()),
        _ => Err(EIO),
    }
}

/// Reports this process's file size limit, if it has one and `output` is a link: the link may be a file of the server's.
fn report_limit(output: c_int) {
    let bytes = sys::file_size_limit();
    if bytes == NO_LIMIT {
        return;
    }
    if let Some(link) = SESSION.link_of(output) {
        report(Message::Limit { link: link.id, bytes }, Usage::default());
    }
}

/// Reports that this process has replaced an end of a link.
pub(crate) fn report_left(link: u64, fd: c_int) {
    report(Message::Left { link, fd }, own_usage());
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
    report(Message::Exec { parent: sys::getppid(), text: &text[..len] }, usage);
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

/// Asks the server how a program is to be started. Returns the changes, which are in `room`, and the program's new standard output if
/// there is one; `None`: the program is started without changes.
pub(crate) fn request_changes<'a>(
    path: *const c_char,
    argv: *const *const c_char,
    room: &'a mut [u8],
) -> Option<(&'a [u8], Option<c_int>)> {
    let (mut text, mut len) = ([0; TEXT_BYTES_MAX], 0);
    // SAFETY: the arguments of execve(2): a string, and a list of strings that ends with a null.
    unsafe {
        push_strings(&mut text, &mut len, [path, core::ptr::null()].as_ptr());
        push_strings(&mut text, &mut len, argv);
    }
    let request = Connection::send(Message::Changes(&text[..len]), Usage::default(), None).ok()?;
    let mut fds = [-1; 2];
    match request.answer(room, &mut fds)? {
        (Answer::Changes(changes), passed) => Some((changes, (passed > 0).then_some(fds[0]))),
        _ => None,
    }
}

/// Reports that a process has ended and is about to be reaped; waits until the server has read its counters.
pub(crate) fn report_ended(pid: i32) {
    if let Ok(report) = Connection::send_about(pid, Message::Ended, Usage::default(), None) {
        sys::readable_within(report.0, COUNTERS_MS);
    }
}

/// Reports that a process was reaped, and its resource usage.
pub(crate) fn report_reaped(pid: i32, status: c_int, used: &sys::Rusage) {
    let _ = Connection::send_about(pid, Message::Reaped { status }, usage_of(used), None);
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
