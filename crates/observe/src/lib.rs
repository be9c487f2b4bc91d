//! Processes and links seen from outside, through /proc: who holds which end, how full a link is, what a process does and waits
//! for. Nothing here starts, changes or records anything.

pub mod activity;
pub mod end;
pub mod fullness;
pub mod open_file;
