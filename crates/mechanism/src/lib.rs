//! Ways of moving bytes between two tasks.
//!
//! A mechanism is one file in `registry/` and one line in `registry.rs`: a table ([`Mechanism`]) of its properties, with
//! functions that test whether this machine has it ([`Mechanism::probe`]) and that open a [`Channel`] of it. It implements
//! [`Sender`] and [`Receiver`], which send and receive a block; the hot loops that call them are written once, in
//! `loops.rs`, and compiled for each mechanism. This crate measures nothing.

mod assembly;
mod channel;
mod descriptor;
mod endpoint;
mod ends;
mod fd;
mod folder;
mod leftover;
mod link;
mod loops;
mod mechanism;
mod meeting;
mod options;
mod pace;
mod prelude;
mod progress;
mod registry;
mod shared;
mod system;

pub use channel::{Channel, Request};
pub use descriptor::{Capabilities, OptionKind, OptionSpec};
pub use endpoint::{Endpoint, EndpointRole, Transfer};
pub use ends::{End, Receiver, Sender};
pub use folder::{Folder, free_bytes};
pub use leftover::{end_cleaner, ensure_cleaner, leave_cleaner, start_cleaner};
pub use link::{LinkEnds, Order, Stored, Transport, default_pipe_bytes, large_pipe};
pub use mechanism::Mechanism;
pub use meeting::{
    CallerCheck, Callers, CheckCaller, ConnectionFacts, MEETING_PATIENCE, Meeting, MeetingMode, TrialKey,
};
pub use options::{Options, SpecProblem};
pub use pace::{Pace, PacedClient};
pub use progress::{Progress, ReportUnit, TaskCpu};
pub use registry::{LINES_OF_CODE, all, all_specs, default_specs, resolve};
pub use shared::SharedMemory;
pub use system::{Granted, OpenError};
