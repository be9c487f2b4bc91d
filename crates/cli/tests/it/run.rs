//! `hosepipe run` as a user meets it: the real binary, real programs, every link; nothing may be left behind.

mod accounts;
mod descriptors;
mod endings;
mod keep;
mod latency;
mod lists;
mod many;
mod place;
mod signals;
mod status;
mod terminal;
mod trouble;
mod window;
mod wrong;
