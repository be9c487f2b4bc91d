//! `sysv-msgq`: a System V message queue, msgget(2), msgop(2) (study `stover`).
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::queue::{Queue, QueueEnd, is_nonblocking, queue};
use crate::leftover::{announcer, with_cleaner};
use crate::prelude::*;
use process::{QueueName, TemporaryQueue};

pub(super) static SYSV_MSGQ: Mechanism = Mechanism {
    name: "sysv-msgq",
    summary: "a System V message queue",
    options: &[OptionSpec {
        name: "size",
        kind: OptionKind::Size,
        default: "kernel.msgmnb",
        help: "bytes the queue holds (msg_qbytes; a size above kernel.msgmnb requires CAP_SYS_RESOURCE)",
    }],
    limits: "block: kernel.msgmax; queue: kernel.msgmnb",
    man_pages: &["msgget(2)", "msgop(2)", "msgctl(2)"],
    default_specs: &["sysv-msgq"],
    in_place: |_| true,
    probe,
    ..queue(open_channel)
};

fn probe() -> Result<(), OpenError> {
    with_cleaner(|| SysvQueue::make(0).map(drop)).map_err(not_made)
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let block = request.block_bytes;
    if let Some(msgmax) = kernel_setting("kernel/msgmax").filter(|msgmax| block as u64 > *msgmax) {
        let remedy = format!("{}sysctl -w kernel.msgmax={block} kernel.msgmnb={}", sudo(), block * 4);
        return Err(OpenError::block_too_large(block, msgmax, "kernel.msgmax", &remedy));
    }
    one_way(request, || {
        let queue = Arc::new(make_queue(request)?);
        let bytes = queue.status().in_call("msgctl(IPC_STAT)")?.msg_qbytes;
        if (block as u64) > bytes {
            let remedy = format!("{}sysctl -w kernel.msgmnb={block}", sudo());
            return Err(OpenError::block_too_large(block, bytes, "kernel.msgmnb", &remedy));
        }
        let end = || QueueEnd::new(&queue, request);
        let direction = Direction::new(end(), end()).granted([("queue_bytes", bytes)]);
        // The process that made the queue removes it when the channel is dropped.
        Ok(Direction { keep: Some(Box::new(queue)), ..direction })
    })
}

fn not_made(error: io::Error) -> OpenError {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOSPC) => Some("raise kernel.msgmni, or remove stale queues (ipcs -q, ipcrm -q ID)"),
        Some(libc::ENOSYS) => Some("this kernel has no System V IPC (CONFIG_SYSVIPC)"),
        _ => None,
    };
    OpenError::system("msgget", error, remedy.map(str::to_owned))
}

fn make_queue(request: &Request<'_>) -> Result<SysvQueue, OpenError> {
    let flags = if is_nonblocking(request) { libc::IPC_NOWAIT } else { 0 };
    let queue = SysvQueue::make(flags).map_err(not_made)?;
    if let Some(size) = request.options.size("size") {
        queue.set_bytes(size).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => OpenError::limit(
                format!("a queue of {} is more than this user may have (kernel.msgmnb)", ByteSize(size)),
                format!("{}sysctl -w kernel.msgmnb={size}, or a smaller size=", sudo()),
            ),
            _ => OpenError::system(format!("msgctl(IPC_SET, {size} bytes in the queue)"), error, None),
        })?;
    }
    Ok(queue)
}

/// A queue, removed on drop by the process that made it.
struct SysvQueue {
    id: i32,
    /// IPC_NOWAIT, or 0.
    flags: i32,
    _removed_on_drop: TemporaryQueue,
}

impl SysvQueue {
    fn make(flags: i32) -> io::Result<Self> {
        let (_removed_on_drop, id) =
            TemporaryQueue::make(&announcer(), QueueName::random_key, |name| match name {
                QueueName::SystemV(key) => {
                    // SAFETY: plain integers in and out.
                    libc_result(unsafe { libc::msgget(*key, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) })
                }
                QueueName::Posix(_) => Err(io::ErrorKind::InvalidInput.into()),
            })?;
        Ok(Self { id: id as i32, flags, _removed_on_drop })
    }

    fn status(&self) -> io::Result<libc::msqid_ds> {
        let mut status = MaybeUninit::<libc::msqid_ds>::zeroed();
        // SAFETY: IPC_STAT fills the buffer, which is of the type it expects.
        libc_result(unsafe { libc::msgctl(self.id, libc::IPC_STAT, status.as_mut_ptr()) })?;
        // SAFETY: filled above, and all zeros would be valid too.
        Ok(unsafe { status.assume_init() })
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut status = self.status()?;
        status.msg_qbytes = bytes;
        // SAFETY: IPC_SET reads the buffer, which IPC_STAT filled.
        libc_result(unsafe { libc::msgctl(self.id, libc::IPC_SET, &mut status) }).map(drop)
    }
}

impl Queue for SysvQueue {
    /// `long mtype` of msgop(2), which must be above 0.
    const HEADER: &'static [u8] = &(1 as libc::c_long).to_ne_bytes();

    fn send(&self, message: &[u8]) -> io::Result<()> {
        let text_bytes = message.len() - Self::HEADER.len();
        // SAFETY: the buffer holds a mtype and `text_bytes` bytes after it.
        libc_result(unsafe { libc::msgsnd(self.id, message.as_ptr().cast(), text_bytes, self.flags) })
            .map(drop)
    }

    fn receive(&self, message: &mut [u8]) -> io::Result<usize> {
        let text_bytes = message.len() - Self::HEADER.len();
        // SAFETY: the buffer has room for a mtype and `text_bytes` bytes after it.
        libc_result(unsafe { libc::msgrcv(self.id, message.as_mut_ptr().cast(), text_bytes, 0, self.flags) })
    }
}
