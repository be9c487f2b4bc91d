//! Ways of moving bytes between two tasks.
//!
//! A mechanism is one file under `registry/` and one line in `registry.rs`: a table ([`Mechanism`]) that says what it is,
//! whether it is there ([`Mechanism::probe`]), and how a [`Channel`] of it is opened. It brings a way to
//! send a block and a way to receive one ([`Sender`], [`Receiver`]); the hot loops around them are written
//! once, in `loops.rs`, and compiled for each mechanism. Nothing here measures anything.

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
pub use endpoint::{Endpoint, EndpointRole, Job};
pub use ends::{End, Receiver, Sender};
pub use folder::{Folder, free_bytes};
pub use leftover::{
    end_cleaner, ensure_cleaner, leave_cleaner, queue_of_program, remove_queues_of_programs, start_cleaner,
};
pub use link::{LinkEnds, LinkKind, Order, Stored, StoredName, default_pipe_bytes, large_pipe};
pub use mechanism::Mechanism;
pub use meeting::{Callers, ConnectionFacts, Heard, Judge, MEETING_PATIENCE, Meeting, Place, Word};
pub use options::{Options, SpecProblem};
pub use pace::Pace;
pub use progress::{Progress, TaskCpu};
pub use registry::{LINES_OF_CODE, all, all_specs, default_specs, resolve};
pub use shared::SharedMemory;
pub use system::{Granted, OpenError, Unsupported};
