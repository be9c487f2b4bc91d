//! The ring, as programs use it.

mod ends;
mod rings;
