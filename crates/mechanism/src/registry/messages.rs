//! What the message sockets share: an end that moves whole messages, and the limit on a message.
//!
//! The payload needs no place of its own here: send(2) takes a block from where it was produced, recv(2) puts
//! it where it is checked. So every byte is copied twice, into the kernel's buffer and out of it.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketType, recv, send, shutdown, sockopt};

use super::sockets::sndbuf_bytes;
use crate::prelude::*;

/// An end that spins looks at the clock once in this many tries.
const TRIES_BETWEEN_LOOKS: u64 = 4096;

/// Either end of a message socket.
pub(super) struct MessageEnd {
    end: FdEnd,
    /// How long nothing may come; `None` where nothing can be lost.
    patience: Option<Duration>,
    /// Whether the receiver of a sequence sees its end. That of datagrams does not: of several, each is sent an empty one.
    has_end: bool,
}

impl MessageEnd {
    /// Takes a socket and puts it in the mode its waiting needs. With `patience`, a receiver that hears
    /// nothing for so long gives up.
    pub(super) fn new(fd: OwnedFd, wait: FdWait, patience: Option<Duration>) -> Result<Self, OpenError> {
        if wait == FdWait::InCall && patience.is_some() {
            sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, patience)
                .map_err(OpenError::system("setsockopt(SO_RCVTIMEO)"))?;
        }
        // A single task never waits, however patient.
        let patience = patience.filter(|_| wait != FdWait::Never);
        let kind = sockopt::socket_type(&fd).map_err(OpenError::system("getsockopt(SO_TYPE)"))?;
        Ok(Self { end: FdEnd::new(fd, wait)?, patience, has_end: kind == SocketType::SEQPACKET })
    }

    /// The socket.
    pub(super) fn fd(&self) -> io::Result<&OwnedFd> {
        self.end.fd()
    }

    /// Hands over one message: all of it or, after an error, nothing.
    #[inline]
    pub(super) fn send_message(&mut self, message: &[u8]) -> io::Result<()> {
        self.retry(PollFlags::OUT, |fd| send(fd, message, SendFlags::NOSIGNAL)).map(|_| ())
    }

    /// Receives one message. One that is larger than the room is an error: its rest would be thrown away.
    #[inline]
    pub(super) fn receive_message(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // MSG_TRUNC: the answer is the message's own length, whatever there was room for.
        let has_end = self.has_end;
        let (taken, whole) = self.retry(PollFlags::IN, |fd| {
            or_the_end(|| recv(fd, &mut *room, RecvFlags::TRUNC), |(_, whole)| has_end && *whole == 0)
        })?;
        if taken == whole { Ok(taken) } else { Err(cut_short(taken, whole)) }
    }

    /// As [`FdEnd::retry`], as long as there is patience.
    #[inline]
    fn retry<T>(
        &mut self,
        interest: PollFlags,
        call: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let patience = self.patience;
        let mut spinning = Spinning::default();
        let wait = |fd: &OwnedFd, wait: FdWait| match patience {
            None => wait.after_would_block(fd, interest),
            Some(patience) => spinning.wait(fd, wait, interest, patience),
        };
        self.end.retry_with(call, wait).map_err(in_words)
    }
}

counted_by!(MessageEnd, end);

impl Sender for MessageEnd {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.send_message(block)
    }

    fn another(&self) -> Option<io::Result<Self>> {
        let (patience, has_end) = (self.patience, self.has_end);
        Some(self.end.share().map(|end| Self { end, patience, has_end }))
    }

    fn finish(&mut self) -> io::Result<()> {
        // The receiver of a sequence reads the rest and then 0; of one that has gone there is nothing to tell.
        let _ = self.end.fd().map(|fd| shutdown(fd, Shutdown::Write));
        Ok(())
    }

    fn finish_for(&mut self, receivers: u32) -> io::Result<()> {
        let messages = if self.has_end { 0 } else { receivers };
        (0..messages).try_for_each(|_| self.send_message(&[]))?;
        self.finish()
    }
}

impl Receiver for MessageEnd {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.receive_message(room)
    }

    fn another_receiver(&self) -> Option<io::Result<Self>> {
        self.another()
    }
}

/// Receives, and where that says that there is no more, once again. A receiver that finds a sequence of packets empty just before
/// the sender sends its last one and closes sees the end before it has that packet: `unix_dgram_recvmsg` (net/unix/af_unix.c)
/// looks at the queue first and at the end afterwards, without a lock around both. What was sent before the end is there at
/// the second look.
#[inline]
pub(super) fn or_the_end<T>(
    mut receive: impl FnMut() -> rustix::io::Result<T>,
    is_end: impl Fn(&T) -> bool,
) -> rustix::io::Result<T> {
    match receive() {
        Ok(received) if is_end(&received) => receive(),
        received => received,
    }
}

/// How a receiver waits whose bytes come through a thread of the kernel's: a single task, too, has to sleep until
/// what it sent whole has arrived, and then it does.
pub(super) fn receiver_wait(request: &Request<'_>) -> FdWait {
    match FdWait::for_request(request) {
        FdWait::Never => FdWait::InPoll,
        other => other,
    }
}

/// How long an end with patience has been spinning.
#[derive(Default)]
struct Spinning {
    tries: u64,
    since: Option<Instant>,
}

impl Spinning {
    /// Waits after EAGAIN. Returns how many system calls that took.
    #[cold]
    fn wait(
        &mut self,
        fd: &OwnedFd,
        wait: FdWait,
        interest: PollFlags,
        patience: Duration,
    ) -> io::Result<u64> {
        let (enough, syscalls) = match wait {
            // Only a receive timeout ends a sleep with EAGAIN (socket(7), SO_RCVTIMEO).
            FdWait::InCall | FdWait::Never => (true, 0),
            FdWait::Spin => {
                std::hint::spin_loop();
                self.tries += 1;
                let looks = self.tries.is_multiple_of(TRIES_BETWEEN_LOOKS);
                (looks && self.since.get_or_insert_with(Instant::now).elapsed() > patience, 0)
            }
            FdWait::InPoll => {
                let timeout = Timespec::try_from(patience).ok();
                match poll(&mut [PollFd::new(fd, interest)], timeout.as_ref()) {
                    Ok(ready) => (ready == 0, 1),
                    Err(Errno::INTR) => (false, 1),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let text = || format!("nothing came for {} s", patience.as_secs_f64());
        if enough { Err(io::Error::new(io::ErrorKind::TimedOut, text())) } else { Ok(syscalls) }
    }
}

/// A datagram to a socket that has gone is refused, where a stream's end would read 0 or write EPIPE.
#[cold]
fn in_words(error: io::Error) -> io::Error {
    if !matches!(Errno::from_io_error(&error), Some(Errno::CONNREFUSED | Errno::NOTCONN)) {
        return error;
    }
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the other end closed: {}", describe_errno(&error)))
}

#[cold]
fn cut_short(taken: usize, whole: usize) -> io::Error {
    let text = format!("a message of {whole} bytes came where there was room for {taken}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// What bounds a message on a Unix socket.
pub(super) const MESSAGE_LIMITS: &str =
    "block: the send buffer less 32 bytes, and some 4 MiB; sndbuf: net.core.wmem_max";

/// Bytes of a Unix socket's send buffer that no message gets (`unix_dgram_sendmsg`, net/unix/af_unix.c).
const RESERVED_BYTES: u64 = 32;

/// From this size on, a message may find no memory although the buffer would take it.
const IN_ONE_PIECE_BYTES: usize = 1 << 20;

/// Refuses a block that would not pass between these Unix sockets, and says what would let it through. Returns
/// the send buffer granted. `spec` is what `sndbuf=` is to be added to.
pub(super) fn check_block(
    request: &Request<'_>,
    near: &OwnedFd,
    far: &OwnedFd,
    spec: &str,
) -> Result<u64, OpenError> {
    let sndbuf = sndbuf_bytes(near)?;
    let limit = sndbuf.saturating_sub(RESERVED_BYTES);
    if request.block_bytes as u64 > limit {
        let remedy = larger_buffer(request.block_bytes as u64, spec);
        let what = "SO_SNDBUF less 32 bytes";
        return Err(OpenError::block_too_large(request.block_bytes, limit, what, &remedy));
    }
    if request.block_bytes >= IN_ONE_PIECE_BYTES {
        try_one(request.block_bytes, near, far)?;
    }
    Ok(sndbuf)
}

/// The kernel doubles what is asked for, and cuts it to wmem_max without a word.
fn larger_buffer(block_bytes: u64, spec: &str) -> String {
    let ask = (block_bytes + RESERVED_BYTES).div_ceil(2).next_multiple_of(1024);
    let raise = if kernel_setting("net/core/wmem_max").is_some_and(|most| ask <= most) {
        String::new()
    } else {
        format!("{}sysctl -w net.core.wmem_max={ask} and ", sudo())
    };
    format!("{raise}{spec}sndbuf={}", ByteSize(ask))
}

/// Sends one block and takes it out again: a message lies in one piece of kernel memory but for its last 68 KiB
/// (`sock_alloc_send_pskb`), and there are no pieces above 4 MiB.
fn try_one(block_bytes: usize, near: &OwnedFd, far: &OwnedFd) -> Result<(), OpenError> {
    let mut block = vec![0xA5; block_bytes];
    match send(near, &block, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Err(Errno::NOBUFS) => Err(OpenError::limit(
            format!(
                "{} blocks: ENOBUFS, the kernel has no memory in one piece for such a message",
                ByteSize(block_bytes as u64)
            ),
            "a smaller --block (4 MiB and less may pass), or unix-stream, which cuts blocks",
        )),
        Err(error) => Err(OpenError::system("send")(error)),
        Ok(_) => {
            let (taken, _) =
                recv(far, &mut block[..], RecvFlags::DONTWAIT).map_err(OpenError::system("recv"))?;
            debug_assert_eq!(taken, block_bytes);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: the packet that was sent before the end.
    /// Happened: "the other end closed after 0 bytes", on a busy machine, once in some thousand runs.
    #[test]
    fn an_end_is_believed_when_it_was_seen_twice() {
        let received = |answers: &[usize]| {
            let mut answers = answers.iter();
            let received = or_the_end(|| answers.next().copied().ok_or(Errno::AGAIN), |len| *len == 0);
            (received, answers.len())
        };
        assert_eq!(received(&[0, 7, 9]), (Ok(7), 1), "sent between a look at the queue and one at the end");
        assert_eq!(received(&[0, 0, 9]), (Ok(0), 1));
        assert_eq!(received(&[7, 0]), (Ok(7), 1));
    }
}
