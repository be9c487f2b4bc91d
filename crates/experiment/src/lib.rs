//! The published studies as data: parameters and figures, read from experiments/*.toml. No I/O.
