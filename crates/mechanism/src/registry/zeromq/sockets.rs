//! The ends: a PUSH socket that connects, a PULL socket that binds and waits for a greeting. Contexts have threads, so they are made
//! after fork(2), in the task that uses them; within one process both ends share one.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use zmq::{Context, Message, PollEvents, Socket, SocketType};

use super::super::pipe::new_pipe;
use crate::prelude::*;

/// How long the ends look for each other before the trial.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A task's context, made when first needed.
type TaskContext = Arc<OnceLock<Context>>;

/// Endpoints of one process differ by this number.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub(super) fn open(request: &Request<'_>) -> Result<Channel, OpenError> {
    let inproc = request.options.word("transport") == Some("inproc");
    if inproc && request.tasks == Tasks::Processes {
        return Err(OpenError::unsupported(
            "transport=inproc stays within one process",
            "--tasks threads, or transport=ipc",
        ));
    }
    let context = TaskContext::default;
    let near = context();
    // Who shares a process may share a context, and must for inproc.
    let far = if inproc { near.clone() } else { context() };
    if request.workload == Workload::PingPong && request.tasks != Tasks::Single {
        let forth = direction(request, &near, &far, inproc)?;
        return Ok(assemble(request, forth, Some(direction(request, &far, &near, inproc)?)));
    }
    one_way(request, || {
        if inproc {
            direction(request, &near, &near, inproc)
        } else {
            direction(request, &context(), &context(), inproc)
        }
    })
}

fn direction(
    request: &Request<'_>,
    from: &TaskContext,
    to: &TaskContext,
    inproc: bool,
) -> Result<Direction<Push, Pull>, OpenError> {
    let name = format!("hosepipe-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    // `@`: the abstract namespace of unix(7), which leaves no file behind, whatever happens.
    let endpoint = if inproc { format!("inproc://{name}") } else { format!("ipc://@{name}") };
    let depth = request.options.parsed("depth").unwrap_or(16);
    let flags = if request.wait == Wait::Spin { zmq::DONTWAIT } else { 0 };
    let end = |context: &TaskContext| ZmqEnd {
        context: context.clone(),
        endpoint: endpoint.clone(),
        depth,
        flags,
        socket: None,
    };
    // In a round trip nothing is on its way when an end closes, and one task would wait for itself.
    let streams = request.workload == Workload::Stream && request.tasks != Tasks::Single;
    let told = if streams { Some(new_pipe()?) } else { None };
    let (until_all_taken, all_taken) = told.unzip();
    let bytes = (request.block_bytes as u64).saturating_mul(2 * depth as u64);
    let receiver = Pull { end: end(to), message: Message::new(), taken: 0, _all_taken: all_taken };
    Ok(Direction::new(Push { end: end(from), until_all_taken }, receiver).granted([("queue_bytes", bytes)]))
}

/// What both ends have. The socket goes before its context.
struct ZmqEnd {
    socket: Option<Socket>,
    context: TaskContext,
    endpoint: String,
    depth: i32,
    flags: i32,
}

impl ZmqEnd {
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
    end: ZmqEnd,
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

impl End for Push {
    fn prepare(&mut self) -> io::Result<()> {
        let socket = self.end.make(SocketType::PUSH)?;
        socket.connect(&self.end.endpoint)?;
        // The greeting goes out when the other end is there.
        insist(|| socket.send(&[][..], 0))?;
        self.end.socket = Some(socket);
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}

impl Sender for Push {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let socket = self.end.socket()?;
        insist(|| socket.send(block, self.end.flags))
    }
}

/// The receiving end.
struct Pull {
    message: Message,
    /// Bytes of the message already taken.
    taken: usize,
    end: ZmqEnd,
    _all_taken: Option<OwnedFd>,
}

impl End for Pull {
    fn prepare(&mut self) -> io::Result<()> {
        let socket = self.end.make(SocketType::PULL)?;
        socket.bind(&self.end.endpoint)?;
        if insist(|| socket.poll(PollEvents::POLLIN, CONNECT_TIME.as_millis() as i64))? == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the other end did not connect"));
        }
        insist(|| socket.recv(&mut self.message, 0))?;
        self.end.socket = Some(socket);
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}

impl ReceiveInPlace for Pull {
    fn take(&mut self, most: usize, show: impl FnOnce(&[u8])) -> io::Result<usize> {
        while self.taken == self.message.len() {
            let socket = self.end.socket()?;
            insist(|| socket.recv(&mut self.message, self.end.flags))?;
            self.taken = 0;
        }
        let bytes = &self.message[self.taken..];
        let len = bytes.len().min(most);
        show(&bytes[..len]);
        self.taken += len;
        Ok(len)
    }
}
