//! `posix-mq`: a POSIX message queue, mq_overview(7).
#![allow(unsafe_code)]

use super::queue::{Queue, QueueEnd, is_nonblocking, queue};
use crate::leftover::{announcer, with_cleaner};
use crate::prelude::*;
use process::{QueueName, TemporaryQueue};

/// Requested capacity in messages: the default of fs.mqueue.msg_max (mq_overview(7)).
const MESSAGES: i64 = 10;

pub(super) static POSIX_MQ: Mechanism = Mechanism {
    name: "posix-mq",
    summary: "a POSIX message queue",
    limits: "block: fs.mqueue.msgsize_max; queue: RLIMIT_MSGQUEUE",
    man_pages: &["mq_overview(7)", "mq_open(3)", "mq_send(3)", "mq_receive(3)"],
    default_specs: &["posix-mq"],
    in_place: |_| true,
    probe,
    ..queue(open_channel)
};

fn probe() -> Result<(), OpenError> {
    with_cleaner(|| PosixQueue::open(1, 1, false).map(drop)).map_err(|error| {
        let remedy = match error.raw_os_error() {
            Some(libc::ENOSYS) => Some("this kernel has no POSIX queues (CONFIG_POSIX_MQUEUE)"),
            Some(libc::EMFILE) => Some("raise the limit: ulimit -q unlimited"),
            Some(libc::ENOSPC) => Some("raise fs.mqueue.queues_max, or remove stale queues"),
            _ => None,
        };
        OpenError::system("mq_open", error, remedy.map(str::to_owned))
    })
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    one_way(request, || {
        let (queue, messages) = open_largest_queue(request.block_bytes, is_nonblocking(request))?;
        let queue = Arc::new(queue);
        let end = || QueueEnd::new(&queue, request);
        Ok(Direction::new(end(), end()).granted([
            ("queue_bytes", messages as u64 * request.block_bytes as u64),
            ("queue_messages", messages as u64),
        ]))
    })
}

/// Makes a queue for [`MESSAGES`] messages, or for fewer if the system refuses that: RLIMIT_MSGQUEUE counts the capacity of a queue when
/// it is made. Returns the number of messages.
fn open_largest_queue(block_bytes: usize, non_blocking: bool) -> Result<(PosixQueue, i64), OpenError> {
    let mut messages = MESSAGES;
    loop {
        match PosixQueue::open(messages, block_bytes, non_blocking) {
            Ok(queue) => return Ok((queue, messages)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EMFILE | libc::EINVAL) if messages > 1 => messages /= 2,
                _ => return Err(refusal(block_bytes, error)),
            },
        }
    }
}

fn refusal(block_bytes: usize, error: io::Error) -> OpenError {
    match (error.raw_os_error(), kernel_setting("fs/mqueue/msgsize_max")) {
        (Some(libc::EINVAL), Some(limit)) if block_bytes as u64 > limit => {
            let remedy = format!("{}sysctl -w fs.mqueue.msgsize_max={block_bytes}", sudo());
            OpenError::block_too_large(block_bytes, limit, "fs.mqueue.msgsize_max", &remedy)
        }
        // EMFILE can also mean that this process has no descriptor left (mq_open(3)).
        (Some(libc::EMFILE), _) if std::fs::File::open("/dev/null").is_ok() => OpenError::limit(
            format!(
                "a queue of one message of {block_bytes} bytes does not fit in what is left of RLIMIT_MSGQUEUE"
            ),
            "ulimit -q unlimited (as root), or a smaller --block",
        ),
        _ => OpenError::system("mq_open", error, None),
    }
}

/// A queue whose name was removed: the kernel removes the queue when its last descriptor is closed.
struct PosixQueue {
    descriptor: libc::mqd_t,
}

impl PosixQueue {
    fn open(messages: i64, message_bytes: usize, non_blocking: bool) -> io::Result<Self> {
        // SAFETY: all-zero is a valid mq_attr; the fields that matter are set below.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = messages;
        attributes.mq_msgsize = i64::try_from(message_bytes).unwrap_or(i64::MAX);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        let flags = if non_blocking { flags | libc::O_NONBLOCK } else { flags };
        // The name is removed at once: both ends inherit the descriptor, and a killed run leaves no queue.
        let (_name, descriptor) =
            TemporaryQueue::make(&announcer(), QueueName::random_name, |name| match name {
                // SAFETY: a C string, a mode and a pointer to attributes, as O_CREAT requires (mq_open(3)).
                QueueName::Posix(name) => libc_result(unsafe {
                    libc::mq_open(name.as_ptr(), flags, 0o600 as libc::mode_t, &mut attributes)
                }),
                QueueName::SystemV(_) => Err(io::ErrorKind::InvalidInput.into()),
            })?;
        Ok(Self { descriptor: descriptor as libc::mqd_t })
    }
}

impl Drop for PosixQueue {
    fn drop(&mut self) {
        // SAFETY: this value owns the descriptor.
        unsafe { libc::mq_close(self.descriptor) };
    }
}

impl Queue for PosixQueue {
    fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer is valid for its length.
        libc_result(unsafe { libc::mq_send(self.descriptor, message.as_ptr().cast(), message.len(), 0) })
            .map(drop)
    }

    fn receive(&self, message: &mut [u8]) -> io::Result<usize> {
        let (start, len) = (message.as_mut_ptr().cast(), message.len());
        // SAFETY: the buffer is valid for its length, which is the queue's message size.
        libc_result(unsafe { libc::mq_receive(self.descriptor, start, len, std::ptr::null_mut()) })
    }
}
