//! Processes and links seen from outside, through /proc: which process holds which end, how full a link is, what a process does and waits
//! for. Nothing here starts or records anything, and only `brief_pipe` changes anything, the size of a pipe.

pub mod activity;
pub mod blame;
pub mod brief_pipe;
pub mod buffers;
pub mod chains;
pub mod elf;
pub mod endpoint;
pub mod flow;
pub mod fullness;
pub mod held_back;
pub mod line_buffering;
pub mod locale;
mod machine;
pub mod open_file;
pub mod pace;
pub mod quota;
pub mod read_progress;
pub mod sampler;
pub mod sockets;
mod stdout_buffer;
pub mod topology;
pub mod waits;
pub mod why;
pub mod written;
