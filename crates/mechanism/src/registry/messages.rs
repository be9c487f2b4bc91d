//! Common code of the message sockets: an end that moves whole messages, and the limit on a message.
//!
//! There is no extra copy of the payload: send(2) reads a block from where it was produced, and recv(2) writes it where it
//! is checked. So every byte is copied twice, into the kernel's buffer and out of it.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketType, recv, send, shutdown, sockopt};

use super::sockets::sndbuf_bytes;
use crate::prelude::*;

/// An end that spins reads the clock once in this many tries.
const TRIES_BETWEEN_CLOCK_READS: u64 = 4096;

/// Either end of a message socket.
pub(super) struct MessageEnd {
    end: FdEnd,
    /// Longest wait for a message; `None` if messages cannot be lost.
    patience: Option<Duration>,
    /// Whether a receiver sees that the sender has ended: true of SOCK_SEQPACKET, not of datagrams. There the sender sends an empty
    /// datagram to each of several receivers.
    has_end: bool,
}

impl MessageEnd {
    /// Takes a socket and puts it in the mode that `wait` needs. With `patience`, a receiver that gets no message for that
    /// long fails.
    pub(super) fn new(fd: OwnedFd, wait: FdWait, patience: Option<Duration>) -> Result<Self, OpenError> {
        if wait == FdWait::InCall && patience.is_some() {
            sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, patience)
                .in_call("setsockopt(SO_RCVTIMEO)")?;
        }
        // A single task never waits.
        let patience = patience.filter(|_| wait != FdWait::Never);
        let kind = sockopt::socket_type(&fd).in_call("getsockopt(SO_TYPE)")?;
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

    /// Receives one message. A message larger than `room` is an error: the kernel drops the rest of it.
    #[inline]
    pub(super) fn receive_message(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // MSG_TRUNC: the call returns the message's own length, even if that is more than `room`.
        let has_end = self.has_end;
        let (taken, whole) = self.retry(PollFlags::IN, |fd| {
            receive_or_end(|| recv(fd, &mut *room, RecvFlags::TRUNC), |(_, whole)| has_end && *whole == 0)
        })?;
        if taken == whole { Ok(taken) } else { Err(cut_short(taken, whole)) }
    }

    /// As [`FdEnd::retry`], but fails with `TimedOut` after `patience`.
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
        self.end.retry_with(call, wait).map_err(explain_closed)
    }
}

delegate_end!(MessageEnd, end);

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
        // A SOCK_SEQPACKET receiver reads the remaining packets and then 0. An error means that the receiver has gone.
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

/// Receives, and if the result is the end of the stream, receives once more. The kernel may report the end too early: if a receiver
/// finds the queue of packets empty just before the sender sends its last packet and closes, `unix_dgram_recvmsg`
/// (net/unix/af_unix.c) checks the queue first and the end afterwards, without a lock around both. The second call gets that packet.
#[inline]
pub(super) fn receive_or_end<T>(
    mut receive: impl FnMut() -> rustix::io::Result<T>,
    is_end: impl Fn(&T) -> bool,
) -> rustix::io::Result<T> {
    match receive() {
        Ok(received) if is_end(&received) => receive(),
        received => received,
    }
}

/// How a receiver waits if a kernel thread delivers its bytes: even a single task, which has sent a whole message before it
/// receives, must sleep until the message has arrived.
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
    /// Waits after EAGAIN. Returns the number of system calls that it made.
    #[cold]
    fn wait(
        &mut self,
        fd: &OwnedFd,
        wait: FdWait,
        interest: PollFlags,
        patience: Duration,
    ) -> io::Result<u64> {
        let (timed_out, syscalls) = match wait {
            // Only a receive timeout ends a sleep with EAGAIN (socket(7), SO_RCVTIMEO).
            FdWait::InCall | FdWait::Never => (true, 0),
            FdWait::Spin => {
                std::hint::spin_loop();
                self.tries += 1;
                let reads_clock = self.tries.is_multiple_of(TRIES_BETWEEN_CLOCK_READS);
                (reads_clock && self.since.get_or_insert_with(Instant::now).elapsed() > patience, 0)
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
        let text = || format!("no message arrived for {} s", patience.as_secs_f64());
        if timed_out { Err(io::Error::new(io::ErrorKind::TimedOut, text())) } else { Ok(syscalls) }
    }
}

/// The error with a plainer message: a datagram to a closed socket is refused with ECONNREFUSED or ENOTCONN, where a stream would read
/// 0 or fail with EPIPE.
#[cold]
fn explain_closed(error: io::Error) -> io::Error {
    if !matches!(Errno::from_io_error(&error), Some(Errno::CONNREFUSED | Errno::NOTCONN)) {
        return error;
    }
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the other end closed: {}", describe_errno(&error)))
}

#[cold]
fn cut_short(taken: usize, whole: usize) -> io::Error {
    let text = format!("a message of {whole} bytes came, but the buffer has room for {taken}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The limits of a message on a Unix socket.
pub(super) const MESSAGE_LIMITS: &str =
    "block: the send buffer less 32 bytes, and at most about 4 MiB; sndbuf: net.core.wmem_max";

/// Bytes of a Unix socket's send buffer that a message cannot use (`unix_dgram_sendmsg`, net/unix/af_unix.c).
const RESERVED_BYTES: u64 = 32;

/// From this size on, the kernel may have no contiguous memory for a message that fits into the send buffer.
const IN_ONE_PIECE_BYTES: usize = 1 << 20;

/// Makes a direction from two Unix sockets. Refuses a block that they cannot transfer, with a remedy; `spec` is the beginning of a spec
/// to which the remedy adds `sndbuf=`.
pub(super) fn unix_direction(
    request: &Request<'_>,
    (near, far): (OwnedFd, OwnedFd),
    spec: &str,
) -> Result<Direction<MessageEnd, MessageEnd>, OpenError> {
    let sndbuf = sndbuf_bytes(&near)?;
    let limit = sndbuf.saturating_sub(RESERVED_BYTES);
    if request.block_bytes as u64 > limit {
        let remedy = larger_buffer(request.block_bytes as u64, spec);
        let what = "SO_SNDBUF less 32 bytes";
        return Err(OpenError::block_too_large(request.block_bytes, limit, what, &remedy));
    }
    if request.block_bytes >= IN_ONE_PIECE_BYTES {
        try_one(request.block_bytes, &near, &far)?;
    }
    let end = |socket| MessageEnd::new(socket, FdWait::for_request(request), None);
    Ok(Direction::new(end(near)?, end(far)?).granted([("sndbuf_bytes", sndbuf)]))
}

/// The remedy for a block that is too long. The kernel doubles the requested size, and reduces it to wmem_max without an error
/// (socket(7)).
fn larger_buffer(block_bytes: u64, spec: &str) -> String {
    let ask = (block_bytes + RESERVED_BYTES).div_ceil(2).next_multiple_of(1024);
    let raise = if kernel_setting("net/core/wmem_max").is_some_and(|most| ask <= most) {
        String::new()
    } else {
        format!("{}sysctl -w net.core.wmem_max={ask} and ", sudo())
    };
    format!("{raise}{spec}sndbuf={}", ByteSize(ask))
}

/// Sends one block and receives it again. A message is stored in one contiguous piece of kernel memory except for its last 68 KiB
/// (`sock_alloc_send_pskb`), and the kernel has no pieces above 4 MiB.
fn try_one(block_bytes: usize, near: &OwnedFd, far: &OwnedFd) -> Result<(), OpenError> {
    let mut block = vec![0xA5; block_bytes];
    let sent = send(near, &block, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    if sent == Err(Errno::NOBUFS) {
        let block = ByteSize(block_bytes as u64);
        return Err(OpenError::limit(
            format!("{block} blocks: ENOBUFS, the kernel has no memory in one piece for such a message"),
            "a smaller --block (4 MiB and less may pass), or unix-stream, which cuts blocks",
        ));
    }
    sent.in_call("send")?;
    let (taken, _) = recv(far, &mut block[..], RecvFlags::DONTWAIT).in_call("recv")?;
    debug_assert_eq!(taken, block_bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: the packet that was sent before the end.
    /// Happened: "the other end closed after 0 bytes", on a busy machine, once in some thousand runs.
    #[test]
    fn the_end_of_a_stream_counts_only_if_it_is_received_twice() {
        let received = |answers: &[usize]| {
            let mut answers = answers.iter();
            let received = receive_or_end(|| answers.next().copied().ok_or(Errno::AGAIN), |len| *len == 0);
            (received, answers.len())
        };
        assert_eq!(
            received(&[0, 7, 9]),
            (Ok(7), 1),
            "sent between the check of the queue and that of the end"
        );
        assert_eq!(received(&[0, 0, 9]), (Ok(0), 1));
        assert_eq!(received(&[7, 0]), (Ok(7), 1));
    }
}
