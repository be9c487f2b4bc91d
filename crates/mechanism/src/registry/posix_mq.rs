//! `posix-mq`: a POSIX message queue, mq_overview(7).
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::{Tasks, Wait, sudo};
use payload::{Consumer, Producer};

use crate::descriptor::{BLOCK_OR_SPIN, Capabilities, Descriptor};
use crate::loops::{Direction, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request, Unsupported};
use crate::{Receiver, Sender};

/// Messages asked for: what fs.mqueue.msg_max allows by default (mq_overview(7)).
const MESSAGES: i64 = 10;

/// After so many names that others have, one is not looked for any more.
const NAMES_MAX: u32 = 256;

/// The number in the next queue's name.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct PosixMq;

impl Mechanism for PosixMq {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "posix-mq",
            summary: "a POSIX message queue",
            capabilities: const {
                Capabilities::KEEPS_BOUNDARIES
                    .union(Capabilities::STORES_DATA)
                    .union(Capabilities::NEEDS_CLEANUP)
            },
            waits: BLOCK_OR_SPIN,
            limits: "block: fs.mqueue.msgsize_max; queue: RLIMIT_MSGQUEUE",
            man_pages: &["mq_overview(7)", "mq_open(3)", "mq_send(3)", "mq_receive(3)"],
            default_specs: &["posix-mq"],
            ..Descriptor::MESSAGES
        }
    }

    fn probe(&self) -> Result<(), Unsupported> {
        Queue::open(1, 1, false).map(|_| ()).map_err(|error| Unsupported {
            reason: format!("mq_open: {}", model::describe_errno(&error)),
            remedy: match error.raw_os_error() {
                Some(libc::ENOSYS) => {
                    Some("this kernel has no POSIX queues (CONFIG_POSIX_MQUEUE)".to_owned())
                }
                Some(libc::EMFILE) => Some("raise the limit: ulimit -q unlimited".to_owned()),
                Some(libc::ENOSPC) => Some("raise fs.mqueue.queues_max, or remove stale queues".to_owned()),
                _ => None,
            },
        })
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        one_way(request, || {
            let retry = request.tasks == Tasks::Single || request.wait == Wait::Spin;
            let (queue, messages) = open_as_deep_as_granted(request.block_bytes, retry)?;
            let queue = Arc::new(queue);
            let spins = request.tasks != Tasks::Single && request.wait == Wait::Spin;
            let end = || MessageEnd {
                queue: queue.clone(),
                message: vec![0xA5; request.block_bytes],
                spins,
                syscalls: 0,
            };
            let granted = Granted::from([
                ("queue_bytes".to_owned(), messages as u64 * request.block_bytes as u64),
                ("queue_messages".to_owned(), messages as u64),
            ]);
            Ok(Direction { sender: end(), receiver: end(), granted })
        })
    }
}

/// RLIMIT_MSGQUEUE counts a queue's capacity when it is made: where ten messages do not fit, fewer may.
fn open_as_deep_as_granted(block_bytes: usize, non_blocking: bool) -> Result<(Queue, i64), OpenError> {
    let mut messages = MESSAGES;
    loop {
        let error = match Queue::open(messages, block_bytes, non_blocking) {
            Ok(queue) => return Ok((queue, messages)),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::EINVAL) if messages > 1 => messages /= 2,
            _ => return Err(refusal(block_bytes, error)),
        }
    }
}

fn refusal(block_bytes: usize, error: io::Error) -> OpenError {
    let msgsize_max = std::fs::read_to_string("/proc/sys/fs/mqueue/msgsize_max");
    let msgsize_max: Option<u64> = msgsize_max.ok().and_then(|text| text.trim().parse().ok());
    match (error.raw_os_error(), msgsize_max) {
        (Some(libc::EINVAL), Some(limit)) if block_bytes as u64 > limit => {
            let remedy = format!("{}sysctl -w fs.mqueue.msgsize_max={block_bytes}", sudo());
            OpenError::block_too_large(block_bytes, limit, "fs.mqueue.msgsize_max", &remedy)
        }
        // EMFILE is also the answer of a process that has no descriptor left (mq_open(3)).
        (Some(libc::EMFILE), _) if std::fs::File::open("/dev/null").is_ok() => OpenError::Limit {
            message: format!("not one message of {block_bytes} bytes fits in RLIMIT_MSGQUEUE"),
            remedy: "ulimit -q unlimited (as root), or a smaller --block".to_owned(),
        },
        _ => OpenError::system("mq_open")(error),
    }
}

/// A queue without a name: it goes when its last descriptor is closed.
struct Queue {
    descriptor: libc::mqd_t,
}

impl Queue {
    fn open(messages: i64, message_bytes: usize, non_blocking: bool) -> io::Result<Self> {
        // SAFETY: all-zero is a valid mq_attr; the fields that matter are set below.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = messages;
        attributes.mq_msgsize = i64::try_from(message_bytes).unwrap_or(i64::MAX);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        let flags = if non_blocking { flags | libc::O_NONBLOCK } else { flags };
        for _ in 0..NAMES_MAX {
            let name =
                CString::new(format!("/hosepipe-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)))?;
            // SAFETY: a C string, a mode and a pointer to attributes, as O_CREAT has it (mq_open(3)).
            let descriptor =
                unsafe { libc::mq_open(name.as_ptr(), flags, 0o600 as libc::mode_t, &mut attributes) };
            if descriptor >= 0 {
                // The name goes at once: both ends inherit the descriptor, and a killed run leaves nothing behind.
                // SAFETY: a C string.
                unsafe { libc::mq_unlink(name.as_ptr()) };
                return Ok(Self { descriptor });
            }
            let error = io::Error::last_os_error();
            // A name that is taken is somebody else's, and left alone.
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(error);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EEXIST))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::mq_close(self.descriptor) };
    }
}

/// Either end: a message buffer in which the payload is produced and checked where it lies.
struct MessageEnd {
    queue: Arc<Queue>,
    message: Vec<u8>,
    spins: bool,
    syscalls: u64,
}

impl MessageEnd {
    fn again(&self, error: &io::Error) -> bool {
        match error.raw_os_error() {
            Some(libc::EINTR) => true,
            Some(libc::EAGAIN) => self.spins,
            _ => false,
        }
    }

    fn send_message(&mut self) -> io::Result<()> {
        loop {
            self.syscalls += 1;
            // SAFETY: the buffer is valid for its length.
            let sent = unsafe {
                libc::mq_send(self.queue.descriptor, self.message.as_ptr().cast(), self.message.len(), 0)
            };
            if sent == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if !self.again(&error) {
                return Err(error);
            }
        }
    }

    fn receive_message(&mut self) -> io::Result<usize> {
        loop {
            self.syscalls += 1;
            // SAFETY: the buffer is valid for its length, which is the queue's message size.
            let received = unsafe {
                libc::mq_receive(
                    self.queue.descriptor,
                    self.message.as_mut_ptr().cast(),
                    self.message.len(),
                    std::ptr::null_mut(),
                )
            };
            if let Ok(received) = usize::try_from(received) {
                return Ok(received);
            }
            let error = io::Error::last_os_error();
            if !self.again(&error) {
                return Err(error);
            }
        }
    }
}

impl Sender for MessageEnd {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.message.copy_from_slice(block);
        self.send_message()
    }

    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        producer.fill(&mut self.message);
        self.send_message()
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

impl Receiver for MessageEnd {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let received = self.receive_message()?;
        room[..received].copy_from_slice(&self.message[..received]);
        Ok(received)
    }

    fn recv_next(&mut self, consumer: &mut Consumer, _most: usize) -> io::Result<usize> {
        let received = self.receive_message()?;
        consumer.inspect(&self.message[..received]);
        Ok(received)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: a queue of somebody else's that has the name is left alone.
    /// Happened: it was removed, whosever it was, and the trial failed with EEXIST.
    #[test]
    fn a_queue_that_is_there_already_stays() {
        let first = NEXT.load(Relaxed);
        let names = (first..first + 4).map(|number| format!("/hosepipe-{}-{number}", std::process::id()));
        let names: Vec<CString> = names.map(|name| CString::new(name).expect("no NUL")).collect();
        let mut small: libc::mq_attr = no_attributes();
        (small.mq_maxmsg, small.mq_msgsize) = (1, 1);
        for name in &names {
            // SAFETY: a C string, a mode and a pointer to attributes.
            let made =
                unsafe { libc::mq_open(name.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600, &mut small) };
            assert!(made >= 0, "{}", io::Error::last_os_error());
        }
        let opened = Queue::open(1, 1, false).map(drop);
        // SAFETY: C strings.
        let stayed: Vec<bool> =
            names.iter().map(|name| unsafe { libc::mq_unlink(name.as_ptr()) } == 0).collect();
        assert_eq!(stayed, [true; 4]);
        opened.expect("another name");
    }

    fn no_attributes() -> libc::mq_attr {
        // SAFETY: all-zero is a valid mq_attr.
        unsafe { std::mem::zeroed() }
    }
}
