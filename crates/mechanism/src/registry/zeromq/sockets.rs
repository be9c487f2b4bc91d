//! The ends: a PUSH socket that connects, a PULL socket that binds and waits for a greeting. Contexts have threads, so they are made
//! after fork(2), in the task that uses them; within one process both ends share one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::{Tasks, Wait, Workload};
use payload::Consumer;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use zmq::{Context, Message, PollEvents, Socket, SocketType};

use crate::channel::{Channel, Granted, OpenError, Request};
use crate::loops::{Direction, assemble, one_way};
use crate::{Receiver, Sender};

/// How long the ends look for each other before the trial.
const MEETING: Duration = Duration::from_secs(5);

/// A task's context, made when first needed.
type TaskContext = Arc<OnceLock<Context>>;

/// Endpoints of one process differ by this number.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub(super) fn open(request: &Request<'_>) -> Result<Channel, OpenError> {
    let inproc = request.options.word("transport") == Some("inproc");
    if inproc && request.tasks == Tasks::Processes {
        return Err(OpenError::Unsupported {
            message: "transport=inproc stays within one process".to_owned(),
            remedy: "--tasks threads, or transport=ipc".to_owned(),
        });
    }
    let context = TaskContext::default;
    let near = context();
    // Who shares a process may share a context, and must for inproc.
    let far = if inproc { near.clone() } else { context() };
    if request.workload == Workload::PingPong && request.tasks != Tasks::Single {
        let forth = line(request, &near, &far, inproc)?;
        return Ok(assemble(request, forth, Some(line(request, &far, &near, inproc)?)));
    }
    one_way(request, || {
        if inproc {
            line(request, &near, &near, inproc)
        } else {
            line(request, &context(), &context(), inproc)
        }
    })
}

fn line(
    request: &Request<'_>,
    from: &TaskContext,
    to: &TaskContext,
    inproc: bool,
) -> Result<Direction<Push, Pull>, OpenError> {
    let name = format!("hosepipe-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    // `@`: the abstract namespace of unix(7), which leaves no file behind, whatever happens.
    let endpoint = if inproc { format!("inproc://{name}") } else { format!("ipc://@{name}") };
    let depth = request.options.word("depth").and_then(|word| word.parse().ok()).unwrap_or(16);
    let flags = if request.wait == Wait::Spin { zmq::DONTWAIT } else { 0 };
    let end = |context: &TaskContext| End {
        context: context.clone(),
        endpoint: endpoint.clone(),
        depth,
        flags,
        socket: None,
    };
    // In a round trip nothing is on its way when an end closes, and one task would wait for itself.
    let streams = request.workload == Workload::Stream && request.tasks != Tasks::Single;
    let told =
        if streams { Some(pipe_with(PipeFlags::CLOEXEC).map_err(OpenError::system("pipe2"))?) } else { None };
    let (until_all_taken, all_taken) = told.unzip();
    let bytes = (request.block_bytes as u64).saturating_mul(2 * depth as u64);
    Ok(Direction {
        sender: Push { end: end(from), until_all_taken },
        receiver: Pull { end: end(to), message: Message::new(), taken: 0, _all_taken: all_taken },
        granted: Granted::from([("queue_bytes".to_owned(), bytes)]),
    })
}

/// What both ends have. The socket goes before its context.
struct End {
    socket: Option<Socket>,
    context: TaskContext,
    endpoint: String,
    depth: i32,
    flags: i32,
}

impl End {
    fn make(&self, kind: SocketType) -> io::Result<Socket> {
        let socket = self.context.get_or_init(Context::new).socket(kind)?;
        socket.set_sndhwm(self.depth)?;
        socket.set_rcvhwm(self.depth)?;
        // A closing end waits for its last messages to leave, however long: none may be lost. Should the other
        // end have died, the supervisor ends the wait.
        socket.set_linger(-1)?;
        // The other end may not have bound yet.
        socket.set_reconnect_ivl(1)?;
        Ok(socket)
    }

    fn socket(&self) -> io::Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

/// Makes a call again that was interrupted, or that was not to wait and would have had to.
fn insist<T>(mut call: impl FnMut() -> zmq::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(zmq::Error::EINTR) => {}
            Err(zmq::Error::EAGAIN) => std::hint::spin_loop(),
            done => return Ok(done?),
        }
    }
}

/// The sending end.
struct Push {
    end: End,
    /// Closed by the receiving end when it has everything. A PULL socket whose queue is full when the PUSH
    /// socket closes loses what it has not yet read (seen with libzmq 4.3.4, whatever ZMQ_LINGER says).
    until_all_taken: Option<OwnedFd>,
}

impl Drop for Push {
    fn drop(&mut self) {
        if let (Some(until), Some(_)) = (&self.until_all_taken, &self.end.socket) {
            while rustix::io::read(until, &mut [0u8; 1][..]) == Err(Errno::INTR) {}
        }
    }
}

impl Sender for Push {
    fn prepare(&mut self) -> io::Result<()> {
        let socket = self.end.make(SocketType::PUSH)?;
        socket.connect(&self.end.endpoint)?;
        // The greeting goes out when the other end is there.
        insist(|| socket.send(&[][..], 0))?;
        self.end.socket = Some(socket);
        Ok(())
    }

    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let socket = self.end.socket()?;
        insist(|| socket.send(block, self.end.flags))
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}

/// The receiving end.
struct Pull {
    message: Message,
    /// Bytes of the message already taken.
    taken: usize,
    end: End,
    _all_taken: Option<OwnedFd>,
}

impl Pull {
    /// The bytes at hand; waits for a message where there are none.
    fn at_hand(&mut self) -> io::Result<&[u8]> {
        while self.taken == self.message.len() {
            let socket = self.end.socket()?;
            insist(|| socket.recv(&mut self.message, self.end.flags))?;
            self.taken = 0;
        }
        Ok(&self.message[self.taken..])
    }
}

impl Receiver for Pull {
    fn prepare(&mut self) -> io::Result<()> {
        let socket = self.end.make(SocketType::PULL)?;
        socket.bind(&self.end.endpoint)?;
        if insist(|| socket.poll(PollEvents::POLLIN, MEETING.as_millis() as i64))? == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the other end did not connect"));
        }
        insist(|| socket.recv(&mut self.message, 0))?;
        self.end.socket = Some(socket);
        Ok(())
    }

    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.at_hand()?;
        let len = bytes.len().min(room.len());
        room[..len].copy_from_slice(&bytes[..len]);
        self.taken += len;
        Ok(len)
    }

    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        let bytes = self.at_hand()?;
        let len = bytes.len().min(most);
        consumer.inspect(&bytes[..len]);
        self.taken += len;
        Ok(len)
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}
