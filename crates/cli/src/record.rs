//! What every record begins with, and records read back.

use std::fs::File;
use std::io::{self, Read, stdin};
use std::path::Path;
use std::time::SystemTime;

use model::{BenchRecord, CaseRecord, Host, RecordHead, Settings, Tool, describe_errno};
use payload::Block;
use report::read::Loaded;
use stats::Looks;

use crate::terminal::UsageError;

/// What goes on for longer is no record: a device, or another file by mistake.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// What tells a longer file from a record.
const BEGIN_BYTES: u64 = 64 << 10;

/// Which hosepipe this is.
pub(crate) fn tool() -> Tool {
    Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("HOSEPIPE_REVISION").map(str::to_owned),
    }
}

/// What a record of this command line begins with.
pub(crate) fn record_head(host: Host, started: SystemTime) -> RecordHead {
    let (tool, arguments, started) = (tool(), arguments(), rfc3339(started));
    RecordHead { tool, host, arguments, started, ..RecordHead::default() }
}

/// The record of a bench, with the summaries of its cases.
///
/// # Errors
/// A histogram that does not read back.
pub(crate) fn bench(
    settings: Settings,
    mut cases: Vec<CaseRecord>,
    host: Host,
    started: SystemTime,
) -> anyhow::Result<BenchRecord> {
    let looks = if settings.precision_percent.is_some() { Looks::Repeatedly } else { Looks::Once };
    cases.iter_mut().try_for_each(|case| stats::summarise(case, looks))?;
    Ok(BenchRecord { head: record_head(host, started), peer: None, settings, cases })
}

/// Reads a record back; `-` is standard input. One that cannot be read is a mistake on the command line.
///
/// # Errors
/// There is no such file, or it holds no record: a [`UsageError`] that names it.
pub(crate) fn load(path: &Path) -> anyhow::Result<Loaded> {
    // The folder of a fleet.
    let path = &if path.is_dir() { path.join(remote::fleet::RECORD) } else { path.to_owned() };
    let name = path.display().to_string();
    let bytes = match path.as_os_str().as_encoded_bytes() {
        b"-" => read(stdin()),
        _ => File::open(path).and_then(read),
    };
    let bytes = bytes
        .map_err(|error| UsageError(format!("cannot read the record {name}: {}", describe_errno(&error))))?;
    if bytes.len() as u64 == BEGIN_BYTES && !begins_as_a_record(&bytes) {
        return Err(UsageError(format!("{name}: this is no record: it does not begin with {{")).into());
    }
    if bytes.len() as u64 == RECORD_BYTES_MAX {
        return Err(UsageError(format!("{name}: this is no record: it goes on beyond 1 GiB")).into());
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let place = error.valid_up_to();
        UsageError(format!(
            "{name}: this is no record: byte {place} is no text in UTF-8; a record is what `hosepipe bench --json F` writes"
        ))
    })?;
    report::read::read(&name, text).map_err(|error| UsageError(error.to_string()).into())
}

/// All that may be a record, or the beginning of what is none.
fn read(mut source: impl Read) -> io::Result<Block> {
    let begin = Block::read_to_end((&mut source).take(BEGIN_BYTES))?;
    if (begin.len() as u64) < BEGIN_BYTES || !begins_as_a_record(&begin) {
        return Ok(begin);
    }
    Block::read_to_end(begin.chain(source.take(RECORD_BYTES_MAX - BEGIN_BYTES)))
}

fn begins_as_a_record(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}

/// The command line, after the program's name.
fn arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect()
}

/// A time as RFC 3339 has it.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
