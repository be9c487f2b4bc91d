//! `hosepipe run` as a user meets it: the real binary, real programs, every link; nothing may be left behind.

#[path = "../common/mod.rs"]
mod common;

mod accounts;
mod descriptors;
mod endings;
mod keep;
mod lists;
mod many;
mod place;
mod signals;
mod status;
mod terminal;
mod trouble;
mod window;
mod wrong;
