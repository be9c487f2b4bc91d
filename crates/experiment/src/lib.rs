//! The published studies as data: parameters and figures, read from `experiments/*.toml`, which are part of the
//! program. No I/O: whoever runs a study or prints it asks here what its authors did and found.

mod bradford;
mod comp517;
mod kernel_pipe;
mod size;
mod stover;
mod study;

pub use bradford::{Bradford, Huge, Named, PublishedSystem, Single, ThreadsSweep, bradford};
pub use comp517::{Comp517, FILE_NAME, FOLDER_NAME, Link, Material, Needs, Pipeline, comp517};
pub use kernel_pipe::{
    Alternative, Atomicity, BufferSize, Calls, KernelPipe, PublishedLanguage, Stated, kernel_pipe,
};
pub use size::Size;
pub use stover::{Column, Printed, PublishedHost, Stover, stover};
pub use study::{Head, Name, head};
