//! Makes the head of records, and reads records.

use std::fs::File;
use std::io::{self, Read, stdin};
use std::path::Path;
use std::time::SystemTime;

use model::{BenchRecord, CaseRecord, Host, RecordHead, Settings, Tool, describe_errno};
use payload::Block;
use report::read::Loaded;
use stats::Analyses;

use crate::terminal::{UsageError, usage};

/// Largest record that is read: a larger input is a device, or another file by mistake.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Bytes of an input that are tested before the rest is read.
const BEGIN_BYTES: u64 = 64 << 10;

/// This hosepipe's version.
pub(crate) fn tool() -> Tool {
    Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("HOSEPIPE_REVISION").map(str::to_owned),
    }
}

/// The version with the commit, if known. All tasks of a spread must have the same one, even if they are built for different machines.
pub(crate) fn version_and_commit() -> String {
    let Tool { version, revision } = tool();
    revision.map_or_else(|| version.clone(), |revision| format!("{version} ({revision})"))
}

/// The head of a record of this command, which begins to measure now. The facts of the machine are read before the run, because they
/// would show the load of the run afterwards; if no record is kept, they are not read.
pub(crate) fn begin(is_kept: bool) -> RecordHead {
    let host = if is_kept { host::facts() } else { Host::default() };
    let arguments = std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    RecordHead { tool: tool(), host, arguments, started, ..RecordHead::default() }
}

/// The record of a bench, with the summaries of its cases.
///
/// # Errors
/// A histogram cannot be decoded.
pub(crate) fn bench(
    head: RecordHead,
    settings: Settings,
    mut cases: Vec<CaseRecord>,
) -> anyhow::Result<BenchRecord> {
    let analyses = if settings.precision_percent.is_some() { Analyses::Repeatedly } else { Analyses::Once };
    cases.iter_mut().try_for_each(|case| stats::summarise(case, analyses))?;
    Ok(BenchRecord { head, peer: None, recommendation: None, settings, cases })
}

/// Reads a record; `-` is standard input.
///
/// # Errors
/// There is no such file, or it is not a record: a [`UsageError`] that names it.
pub(crate) fn load(path: &Path) -> anyhow::Result<Loaded> {
    // `hosepipe fleet` writes a folder with the record in it.
    let (in_folder, is_folder) = (path.join(remote::fleet::RECORD), path.is_dir());
    if is_folder && !in_folder.exists() {
        return usage(format!(
            "cannot read the record {}: it is a folder, and none that `hosepipe fleet` has written a record into",
            path.display()
        ));
    }
    let path = &if is_folder { in_folder } else { path.to_owned() };
    let name = path.display().to_string();
    let bytes = match path.as_os_str().as_encoded_bytes() {
        b"-" => read(stdin()),
        // The user has not typed this name; the others may be of a FIFO, as of `<(…)`.
        _ if is_folder => process::open_regular(path).and_then(read),
        _ => File::open(path).and_then(read),
    };
    let bytes = bytes
        .map_err(|error| UsageError(format!("cannot read the record {name}: {}", describe_errno(&error))))?;
    if bytes.len() as u64 == BEGIN_BYTES && !begins_as_a_record(&bytes) {
        return usage(format!("{name}: this is not a record: it does not begin with {{"));
    }
    if bytes.len() as u64 == RECORD_BYTES_MAX {
        return usage(format!("{name}: this is not a record: it is longer than 1 GiB"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let place = error.valid_up_to();
        UsageError(format!(
            "{name}: this is not a record: byte {place} is not UTF-8; a record is what `hosepipe bench --json F` writes"
        ))
    })?;
    Ok(report::read::read(&name, text).map_err(UsageError::new)?)
}

/// Reads a whole record, or only the beginning of anything else.
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
