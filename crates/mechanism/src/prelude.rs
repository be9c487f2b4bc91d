//! The names that most files of the registry import.

pub(crate) use std::io;
pub(crate) use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
pub(crate) use std::sync::Arc;

pub(crate) use model::{ByteSize, DataLevel, Role, Tasks, Wait, Workload, ZeroCopy, describe_errno, sudo};
pub(crate) use payload::{Consumer, Producer};
pub(crate) use rustix::event::PollFlags;
pub(crate) use rustix::io::Errno;

pub(crate) use crate::assembly::{Direction, assemble, lone_end, one_way, over_connected};
pub(crate) use crate::descriptor::*;
pub(crate) use crate::ends::{End, Receiver, Sender, delegate_end};
pub(crate) use crate::fd::{FdEnd, FdWait};
pub(crate) use crate::link::Transport;
pub(crate) use crate::mechanism::OpenChannel;
pub(crate) use crate::system::{InCall, granted, kernel_setting, libc_result};
pub(crate) use crate::{
    Channel, ConnectionFacts, Endpoint, Folder, Granted, LinkEnds, Mechanism, Meeting, MeetingMode,
    OpenError, Options, Request, SharedMemory,
};
