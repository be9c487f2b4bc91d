//! How two ends on different hosts connect: one end connects, and the other listens and accepts the caller that sends the right
//! key. Other callers are dropped, and delay nothing.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use process::{POLL_INTERVAL, sleep_on};
use rustix::event::{PollFd, PollFlags};

use crate::Granted;

/// How long one end waits for the other before it fails; also how long a caller may take for its first message.
pub const MEETING_PATIENCE: Duration = Duration::from_secs(4);

/// Most callers at the same time; if there are more, the oldest one is dropped.
const CALLERS_MAX: usize = 32;

/// Random bytes of a trial, which the end that connects sends first.
pub type TrialKey = [u8; 32];

/// How one end of a channel connects to the other, which is on another host.
#[derive(Debug, Clone)]
pub struct Meeting {
    /// Whether this end connects or listens.
    pub mode: MeetingMode,
    /// The key of the trial.
    pub key: TrialKey,
    /// Whether this end is the sender of a stream, or the client of round trips. A stream is timed by its receiver, round trips by
    /// their client.
    pub is_initiator: bool,
}

/// Whether an end connects or listens.
#[derive(Debug, Clone)]
pub enum MeetingMode {
    /// This end connects to this address, at which the other end listens.
    Connect(SocketAddr),
    /// This end listens with this socket.
    Listen(Arc<TcpListener>),
}

/// Facts about the connection of an end with another host, known at the end of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ConnectionFacts {
    /// Sizes that the system granted this end, in bytes.
    pub granted: Granted,
    /// The algorithm of its congestion control, such as "cubic".
    pub congestion_control: Option<String>,
    /// Number of segments or datagrams that it sent again.
    pub retransmits: Option<u64>,
}

/// The result of checking the bytes that a caller has sent so far.
#[derive(Debug, PartialEq, Eq)]
pub enum CallerCheck<T> {
    /// More bytes are needed.
    Incomplete,
    /// The caller is dropped.
    Wrong,
    /// The caller is the expected one.
    Right(T),
}

/// Checks a caller: the arguments are the greeting that was sent to it, and the bytes that it has sent so far.
pub type CheckCaller<'a, T> = dyn FnMut(&[u8], &[u8]) -> CallerCheck<T> + 'a;

struct Caller {
    stream: TcpStream,
    greeting: Vec<u8>,
    received: Vec<u8>,
    since: Instant,
}

/// The connections to a listener that are not yet checked.
pub struct Callers {
    listener: Arc<TcpListener>,
    received_max: usize,
    unchecked: Vec<Caller>,
}

impl Callers {
    /// The callers of this listener. The first message of each has at most `received_max` bytes.
    pub fn new(listener: Arc<TcpListener>, received_max: usize) -> Self {
        Self { listener, received_max, unchecked: Vec::new() }
    }

    /// Waits for a caller that `check` accepts; `None` after `patience`, or when `go_on` returns false. Each caller is sent the
    /// result of `greet`.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn next<T>(
        &mut self,
        patience: Duration,
        greet: &mut dyn FnMut() -> Vec<u8>,
        check: &mut CheckCaller<'_, T>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Option<(TcpStream, T)>> {
        let Self { listener, received_max, unchecked: callers } = self;
        listener.set_nonblocking(true)?;
        let began = Instant::now();
        while go_on() && began.elapsed() < patience {
            let mut fds: Vec<PollFd<'_>> =
                callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN)).collect();
            fds.push(PollFd::new(&**listener, PollFlags::IN));
            sleep_on(&mut fds, Some(POLL_INTERVAL))?;
            for index in (0..callers.len()).rev() {
                match callers[index].receive(*received_max, check) {
                    CallerCheck::Right(found) => {
                        let stream = callers.remove(index).stream;
                        stream.set_nonblocking(false)?;
                        return Ok(Some((stream, found)));
                    }
                    CallerCheck::Incomplete if callers[index].since.elapsed() < MEETING_PATIENCE => {}
                    CallerCheck::Incomplete | CallerCheck::Wrong => drop(callers.remove(index)),
                }
            }
            match listener.accept().and_then(|(stream, _)| Caller::greeted(stream, greet())) {
                Ok(caller) => {
                    if callers.len() == CALLERS_MAX {
                        callers.remove(0);
                    }
                    callers.push(caller);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // If no descriptor is left, the connection stays pending, and poll(2) would return at once each time.
                Err(_) => std::thread::sleep(POLL_INTERVAL),
            }
        }
        Ok(None)
    }
}

impl Caller {
    fn greeted(stream: TcpStream, greeting: Vec<u8>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        io::Write::write_all(&mut &stream, &greeting)?;
        Ok(Self { stream, greeting, received: Vec::new(), since: Instant::now() })
    }

    /// Reads the bytes that are there and checks them. Reads no more than `most` bytes in all: later bytes belong to the trial.
    fn receive<T>(&mut self, most: usize, check: &mut CheckCaller<'_, T>) -> CallerCheck<T> {
        let mut room = vec![0; most - self.received.len()];
        match self.stream.read(&mut room) {
            Ok(0) => CallerCheck::Wrong,
            Ok(len) => {
                self.received.extend_from_slice(&room[..len]);
                check(&self.greeting, &self.received)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => CallerCheck::Incomplete,
            Err(_) => CallerCheck::Wrong,
        }
    }
}

impl Meeting {
    /// The error if the other end did not connect or answer within [`MEETING_PATIENCE`].
    pub(crate) fn timed_out(&self) -> io::Error {
        let text = match self.mode {
            MeetingMode::Connect(address) => {
                format!("{address} does not answer (is a firewall between the hosts?)")
            }
            MeetingMode::Listen(_) => {
                "the other host did not connect (is a firewall between the hosts?)".to_owned()
            }
        };
        io::Error::new(io::ErrorKind::TimedOut, text)
    }
}
