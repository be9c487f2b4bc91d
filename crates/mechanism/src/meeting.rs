//! How two ends meet that are on different hosts: one calls, and the other answers the caller that says the right word. Other
//! callers are dropped, and delay nothing.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use process::{POLL_INTERVAL, sleep_on};
use rustix::event::{PollFd, PollFlags};

use crate::Granted;

/// How long one end waits for the other before it says so; and how long a caller may take to say what he has to.
pub const MEETING_PATIENCE: Duration = Duration::from_secs(4);

/// Callers who are heard at once; the one who came first goes when there are more.
const CALLERS_MAX: usize = 32;

/// Bytes that a caller begins with, which no other trial has.
pub type Word = [u8; 32];

/// Where one end of a channel meets the other, which is on another host.
#[derive(Debug, Clone)]
pub struct Meeting {
    /// Who calls whom.
    pub place: Place,
    /// What the caller begins with.
    pub word: Word,
    /// True of the sender of a stream and of who asks; the clock is the other's of a stream, and the asker's of round trips.
    pub is_first: bool,
}

/// Who calls whom.
#[derive(Debug, Clone)]
pub enum Place {
    /// The other end answers there.
    Call(SocketAddr),
    /// This end answers here.
    Answer(Arc<TcpListener>),
}

/// What an end knows of its connection with another host when it is done.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ConnectionFacts {
    /// Sizes that the system gave this end, in bytes.
    pub granted: Granted,
    /// Its congestion control.
    pub congestion_control: Option<String>,
    /// What it sent again.
    pub retransmits: Option<u64>,
}

/// What a caller is, by what he has said so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// Not yet known.
    More,
    /// Not who is waited for.
    Wrong,
    /// Him.
    Right(T),
}

/// Says what a caller is, by the greeting he was sent and what he has said so far.
pub type Judge<'a, T> = dyn FnMut(&[u8], &[u8]) -> Heard<T> + 'a;

struct Caller {
    stream: TcpStream,
    greeting: Vec<u8>,
    heard: Vec<u8>,
    since: Instant,
}

/// Those who call a listener.
pub struct Callers {
    listener: Arc<TcpListener>,
    heard_max: usize,
    /// Not yet known.
    callers: Vec<Caller>,
}

impl Callers {
    /// Of this listener; each says what it must in at most `heard_max` bytes.
    pub fn new(listener: Arc<TcpListener>, heard_max: usize) -> Self {
        Self { listener, heard_max, callers: Vec::new() }
    }

    /// Waits for one who says what he must. Each is sent a greeting; `judge` is given that and what he has said. `None` where
    /// `patience` or `go_on` ended.
    ///
    /// # Errors
    /// What poll(2) answers.
    pub fn next<T>(
        &mut self,
        patience: Duration,
        greet: &mut dyn FnMut() -> Vec<u8>,
        judge: &mut Judge<'_, T>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Option<(TcpStream, T)>> {
        let Self { listener, heard_max, callers } = self;
        listener.set_nonblocking(true)?;
        let began = Instant::now();
        while go_on() && began.elapsed() < patience {
            let mut fds: Vec<PollFd<'_>> =
                callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN)).collect();
            fds.push(PollFd::new(&**listener, PollFlags::IN));
            sleep_on(&mut fds, Some(POLL_INTERVAL))?;
            for index in (0..callers.len()).rev() {
                match callers[index].listen(*heard_max, judge) {
                    Heard::Right(found) => {
                        let stream = callers.remove(index).stream;
                        stream.set_nonblocking(false)?;
                        return Ok(Some((stream, found)));
                    }
                    Heard::More if callers[index].since.elapsed() < MEETING_PATIENCE => {}
                    Heard::More | Heard::Wrong => drop(callers.remove(index)),
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
                // Without a descriptor left poll(2) would come back at once, again and again.
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
        Ok(Self { stream, greeting, heard: Vec::new(), since: Instant::now() })
    }

    /// Nothing is read beyond what he has to say: the rest is for who knows him.
    fn listen<T>(&mut self, most: usize, judge: &mut Judge<'_, T>) -> Heard<T> {
        let mut room = vec![0; most - self.heard.len()];
        match self.stream.read(&mut room) {
            Ok(0) => Heard::Wrong,
            Ok(len) => {
                self.heard.extend_from_slice(&room[..len]);
                judge(&self.greeting, &self.heard)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Heard::More,
            Err(_) => Heard::Wrong,
        }
    }
}

impl Meeting {
    /// A sentence's part: who did not come.
    pub(crate) fn missed(&self) -> io::Error {
        let text = match self.place {
            Place::Call(address) => format!("{address} does not answer (is a firewall between the hosts?)"),
            Place::Answer(_) => "the other host did not call (is a firewall between the hosts?)".to_owned(),
        };
        io::Error::new(io::ErrorKind::TimedOut, text)
    }
}
