//! Whole messages through shared memory, from one sender to one receiver: processes, containers or threads. The bytes in memory are
//! described in `ring/LAYOUT.md`; C and Python use the same ones.
//!
//! ```
//! use hosepipe_ring::{Error, linux::{self, Wait}};
//!
//! let path = std::env::temp_dir().join(format!("ring-example-{}", std::process::id()));
//! let mut sender = linux::open_sender(&path, 1 << 20, Wait::Futex)?;
//! let mut receiver = linux::open_receiver(&path, 1 << 20, Wait::Futex)?;
//! sender.send(b"hello")?;
//! sender.finish()?;
//! assert_eq!(receiver.peek()?, b"hello");
//! assert_eq!(receiver.peek(), Err(Error::Ended));
//! std::fs::remove_file(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! All but `linux` knows no operating system: `no_std`, without the feature `std`. It takes its atomics from `std`, which is `core` there,
//! and the model checker in `tests/orders.rs`.
#![cfg_attr(not(feature = "std"), no_std)]
#![allow(unsafe_code)]

#[cfg(not(feature = "std"))]
extern crate core as std;

#[cfg(feature = "std")]
pub mod linux;
mod protocol;
mod receiver;
mod sender;

pub use protocol::*;
pub use receiver::*;
pub use sender::*;
