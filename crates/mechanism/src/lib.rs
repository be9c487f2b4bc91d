//! Ways of moving bytes between two tasks.
//!
//! A mechanism is one file under `registry/` and one line in `registry.rs`: it says what it is
//! ([`Descriptor`]), whether it is there ([`Mechanism::probe`]), and opens a [`Channel`]. It brings a way to
//! send a block and a way to receive one ([`SendEnd`], [`RecvEnd`]); the hot loops around them are written
//! once, in `halves.rs`, and compiled for each mechanism. Nothing here measures anything.

mod channel;
mod descriptor;
mod ends;
mod fd;
mod folder;
mod half;
mod halves;
mod leftover;
mod link;
mod options;
mod progress;
mod registry;
mod shared;

pub use channel::{Channel, Granted, Mechanism, OpenError, Request, Unsupported};
pub use descriptor::{Capabilities, Descriptor, OptionKind, OptionSpec};
pub use ends::{RecvEnd, SendEnd};
pub use folder::{Folder, free_bytes};
pub use half::{Half, HalfRole, Job};
pub use leftover::{
    Announcement, announce, announce_leftovers_to, remove_message_queues_of, stop_announcing,
};
pub use link::{LinkEnds, LinkKind, Order, Stored, StoredName, large_pipe};
pub use options::{Options, SpecProblem};
pub use progress::{Progress, Seat};
pub use registry::{all, all_specs, default_specs, resolve};
pub use shared::SharedMemory;
