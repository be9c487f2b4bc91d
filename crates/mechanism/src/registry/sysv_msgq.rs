//! `sysv-msgq`: a System V message queue, msgget(2), msgop(2) (study `stover`).
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use model::{ByteSize, Tasks, Wait, sudo};
use payload::{Consumer, Producer};

use crate::descriptor::{BLOCK_OR_SPIN, Capabilities, Descriptor, OptionKind, OptionSpec};
use crate::loops::{Direction, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request, Unsupported};
use crate::{Receiver, Sender};

pub(crate) struct SysvMsgq;

impl Mechanism for SysvMsgq {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "sysv-msgq",
            summary: "a System V message queue",
            capabilities: const {
                Capabilities::KEEPS_BOUNDARIES
                    .union(Capabilities::STORES_DATA)
                    .union(Capabilities::NEEDS_CLEANUP)
            },
            waits: BLOCK_OR_SPIN,
            options: &[OptionSpec {
                name: "size",
                kind: OptionKind::Size,
                default: "kernel.msgmnb",
                help: "bytes the queue holds (msg_qbytes; more than kernel.msgmnb takes CAP_SYS_RESOURCE)",
            }],
            limits: "block: kernel.msgmax; queue: kernel.msgmnb",
            man_pages: &["msgget(2)", "msgop(2)", "msgctl(2)"],
            default_specs: &["sysv-msgq"],
            ..Descriptor::MESSAGES
        }
    }

    fn probe(&self) -> Result<(), Unsupported> {
        Queue::make().map(|_| ()).map_err(|error| Unsupported {
            reason: format!("msgget: {}", model::describe_errno(&error)),
            remedy: queue_remedy(&error),
        })
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        if let Some(msgmax) = kernel_limit("msgmax").filter(|msgmax| request.block_bytes as u64 > *msgmax) {
            let block = request.block_bytes;
            let remedy = format!("{}sysctl -w kernel.msgmax={block} kernel.msgmnb={}", sudo(), block * 4);
            return Err(OpenError::block_too_large(block, msgmax, "kernel.msgmax", &remedy));
        }
        // The queues' owners: removed when the channel goes, by the process that made them.
        let mut keep: Vec<Box<dyn std::any::Any>> = Vec::new();
        let mut channel = one_way(request, || {
            let queue = Arc::new(make_queue(request)?);
            keep.push(Box::new(queue.clone()));
            line(request, &queue)
        })?;
        channel.keep = keep;
        Ok(channel)
    }
}

fn kernel_limit(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

fn queue_remedy(error: &io::Error) -> Option<String> {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            Some("raise kernel.msgmni, or remove stale queues (ipcs -q, ipcrm -q ID)".to_owned())
        }
        Some(libc::ENOSYS) => Some("this kernel has no System V IPC (CONFIG_SYSVIPC)".to_owned()),
        _ => None,
    }
}

fn make_queue(request: &Request<'_>) -> Result<Queue, OpenError> {
    let queue = Queue::make().map_err(|error| OpenError::System {
        call: "msgget".to_owned(),
        remedy: queue_remedy(&error),
        source: error,
    })?;
    if let Some(size) = request.options.size("size") {
        queue.set_bytes(size).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => OpenError::Limit {
                message: format!(
                    "a queue of {} is more than this user may have (kernel.msgmnb)",
                    ByteSize(size)
                ),
                remedy: format!("{}sysctl -w kernel.msgmnb={size}, or a smaller size=", sudo()),
            },
            _ => OpenError::system(format!("msgctl(IPC_SET, {size} bytes in the queue)"))(error),
        })?;
    }
    Ok(queue)
}

fn line(request: &Request<'_>, queue: &Arc<Queue>) -> Result<Direction<MessageEnd, MessageEnd>, OpenError> {
    let bytes = queue.bytes().map_err(OpenError::system("msgctl(IPC_STAT)"))?;
    if (request.block_bytes as u64) > bytes {
        let remedy = format!("{}sysctl -w kernel.msgmnb={}", sudo(), request.block_bytes);
        return Err(OpenError::block_too_large(request.block_bytes, bytes, "kernel.msgmnb", &remedy));
    }
    let retry = match (request.tasks, request.wait) {
        (Tasks::Single, _) => Retry::Never,
        (_, Wait::Spin) => Retry::AtOnce,
        _ => Retry::InCall,
    };
    let end = || MessageEnd::new(queue.clone(), request.block_bytes, retry);
    Ok(Direction {
        sender: end(),
        receiver: end(),
        granted: Granted::from([("queue_bytes".to_owned(), bytes)]),
    })
}

/// The keys of the queues that a process makes: `h`, its number, and which of up to four it is. A queue found
/// with such a key and no such process is a leftover.
pub(crate) fn queue_key(process: u32) -> i32 {
    0x6800_0000 | ((process & 0x3f_ffff) << 2) as i32
}

/// Removes a queue by its number; one that is gone already is no error.
pub(crate) fn remove_queue(id: i32) {
    // SAFETY: IPC_RMID ignores the buffer.
    unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// A queue, removed on drop by the process that made it.
struct Queue {
    id: i32,
    owner: u32,
}

impl Queue {
    fn make() -> io::Result<Self> {
        let owner = std::process::id();
        let mut last = io::Error::from_raw_os_error(libc::EEXIST);
        for which in 0..4 {
            // SAFETY: plain integers in and out.
            let id =
                unsafe { libc::msgget(queue_key(owner) | which, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
            if id >= 0 {
                return Ok(Self { id, owner });
            }
            last = io::Error::last_os_error();
            if last.raw_os_error() != Some(libc::EEXIST) {
                break;
            }
        }
        Err(last)
    }

    fn status(&self) -> io::Result<libc::msqid_ds> {
        let mut status = MaybeUninit::<libc::msqid_ds>::zeroed();
        // SAFETY: IPC_STAT fills the buffer, which is of the type it expects.
        if unsafe { libc::msgctl(self.id, libc::IPC_STAT, status.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: filled above, and all zeros would be valid too.
        Ok(unsafe { status.assume_init() })
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.status()?.msg_qbytes)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut status = self.status()?;
        status.msg_qbytes = bytes;
        // SAFETY: IPC_SET reads the buffer, which IPC_STAT filled.
        if unsafe { libc::msgctl(self.id, libc::IPC_SET, &mut status) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            remove_queue(self.id);
        }
    }
}

/// What a call that would block leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    InCall,
    AtOnce,
    Never,
}

/// Bytes of `long mtype` before the text of a message.
const HEADER_BYTES: usize = size_of::<libc::c_long>();

/// Either end: a message buffer in which the payload is produced and checked where it lies.
struct MessageEnd {
    queue: Arc<Queue>,
    message: Vec<u8>,
    retry: Retry,
    syscalls: u64,
}

impl MessageEnd {
    fn new(queue: Arc<Queue>, block_bytes: usize, retry: Retry) -> Self {
        let mut message = vec![0xA5; HEADER_BYTES + block_bytes];
        message[..HEADER_BYTES].copy_from_slice(&(1 as libc::c_long).to_ne_bytes());
        Self { queue, message, retry, syscalls: 0 }
    }

    fn flags(&self) -> i32 {
        if self.retry == Retry::InCall { 0 } else { libc::IPC_NOWAIT }
    }

    /// Whether to make the call again after this error.
    fn again(&self, error: &io::Error) -> bool {
        match error.raw_os_error() {
            Some(libc::EINTR) => true,
            Some(libc::EAGAIN | libc::ENOMSG) => self.retry == Retry::AtOnce,
            _ => false,
        }
    }

    fn send_message(&mut self) -> io::Result<()> {
        let text_bytes = self.message.len() - HEADER_BYTES;
        loop {
            self.syscalls += 1;
            // SAFETY: the buffer holds a mtype and `text_bytes` bytes after it.
            let sent = unsafe {
                libc::msgsnd(self.queue.id, self.message.as_ptr().cast(), text_bytes, self.flags())
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
        let text_bytes = self.message.len() - HEADER_BYTES;
        loop {
            self.syscalls += 1;
            // SAFETY: the buffer has room for a mtype and `text_bytes` bytes after it.
            let received = unsafe {
                libc::msgrcv(self.queue.id, self.message.as_mut_ptr().cast(), text_bytes, 0, self.flags())
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
        self.message[HEADER_BYTES..].copy_from_slice(block);
        self.send_message()
    }

    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        producer.fill(&mut self.message[HEADER_BYTES..]);
        self.send_message()
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

impl Receiver for MessageEnd {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let received = self.receive_message()?;
        room[..received].copy_from_slice(&self.message[HEADER_BYTES..HEADER_BYTES + received]);
        Ok(received)
    }

    fn recv_next(&mut self, consumer: &mut Consumer, _most: usize) -> io::Result<usize> {
        let received = self.receive_message()?;
        consumer.inspect(&self.message[HEADER_BYTES..HEADER_BYTES + received]);
        Ok(received)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}
