//! Output that a program keeps in its buffer while other programs wait for it.

use serde::{Deserialize, Serialize};

/// Output that a program keeps in its buffer.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldBack {
    /// The program's PID.
    pub pid: i32,
    /// Bytes of it; `null` if it was found only by the sizes of the program's writes.
    pub held_bytes: Option<u64>,
    /// Size of the buffer, which is the size of each write.
    pub buffer_bytes: u64,
    /// Smallest possible time since its last write.
    pub for_ns: u64,
    /// Bytes per second by which the buffer fills; `null` if it did not grow.
    pub bytes_per_s: Option<u64>,
    /// Time until the buffer is full at this rate; `null` if it did not grow.
    pub full_in_ns: Option<u64>,
    /// An option or a statement that makes this program write line by line; `null` if none is known.
    pub cure: Option<String>,
}
