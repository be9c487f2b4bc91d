//! `hosepipe gen`: a filter that writes a payload to standard output.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Args;
use filter::{GenJob, generate};
use model::{ByteSize, PayloadKind};

use crate::{signals, typed};

/// The status that a shell shows for a filter that was killed by SIGPIPE.
const STATUS_SIGPIPE: u8 = 141;

/// Write a payload to standard output: a filter
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/gen.txt"))]
pub(crate) struct GenArgs {
    /// Exact number of bytes to write [default: until the reader ends]
    #[arg(long, value_name = "SIZE")]
    bytes: Option<ByteSize>,

    /// Most bytes to write in one call
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = typed::positive_size)]
    block: ByteSize,

    /// The bytes to write: sequence (the bytes 0 to 255, repeated), printable, random, zero, or file:PATH, repeated
    #[arg(long, value_name = "PAYLOAD", default_value = "sequence", value_parser = typed::payload())]
    payload: PayloadKind,

    /// Seed of the printable or random payload
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::seed)]
    seed: u64,
}

/// Writes until all bytes are written, the reader closes its end, or write(2) fails.
pub(crate) fn run(args: GenArgs) -> anyhow::Result<ExitCode> {
    signals::die_of_sigpipe();
    let block_bytes = usize::try_from(args.block.0).ok().and_then(NonZeroUsize::new);
    let job = GenJob {
        bytes: args.bytes.map(|size| size.0),
        block_bytes: block_bytes.unwrap_or(NonZeroUsize::MAX),
        payload: args.payload,
        seed: args.seed,
    };
    match generate(&job, io::stdout().as_fd()) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        // Only if SIGPIPE is blocked: exits without a message, as if the signal had ended the program.
        Err(error) if error.reader_is_gone() => Ok(ExitCode::from(STATUS_SIGPIPE)),
        Err(error) => Err(error.into()),
    }
}
