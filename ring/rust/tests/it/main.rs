//! The ring, as programs use it.

mod bits;
mod ends;
mod rings;
