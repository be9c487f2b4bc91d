//! The inputs of partitions: files, or pieces of a file that end at a line end.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf, absolute};

use model::{ByteSize, describe_errno, one_line};
use payload::Block;
use process::open_regular;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes read at a time to find a line end.
const PIECE_BYTES: usize = 64 << 10;

/// An input file, as it was when the work was planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Its absolute path. In JSON each byte of it is one character, because a path need not be UTF-8.
    #[serde(serialize_with = "write_path", deserialize_with = "read_path")]
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its ctime in seconds and nanoseconds. Programs can set mtime, but not this.
    pub changed: (i64, i64),
}

/// Bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The file.
    pub file: InputFile,
    /// The first byte.
    pub offset: u64,
    /// Their number.
    pub bytes: u64,
}

impl InputFile {
    /// Reads a file's size and time, and checks that it can be opened.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or is not a regular file.
    pub fn from_path(path: &Path) -> Result<Self, String> {
        let found = fs::metadata(path).map_err(unreadable(path))?;
        if !found.is_file() {
            let what = if found.is_dir() { "a folder" } else { "not a regular file" };
            let is_what = format!("{} is {what}", shown(path));
            return Err(is_what + ": an input is a regular file, which can be read again and in parts");
        }
        open_regular(path).map_err(unreadable(path))?;
        let path = absolute(path).map_err(unreadable(path))?;
        Ok(Self { path, bytes: found.len(), changed: (found.ctime(), found.ctime_nsec()) })
    }

    /// All its bytes.
    pub fn whole(self) -> Range {
        Range { offset: 0, bytes: self.bytes, file: self }
    }
}

fn write_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer
        .collect_str(&path.as_os_str().as_bytes().iter().map(|byte| char::from(*byte)).collect::<String>())
}

fn read_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(OsString::from_vec(text.chars().map(|byte| byte as u8).collect()).into())
}

/// A path as it is shown in messages.
pub(crate) fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot read {}: {}", shown(path), describe_errno(&error))
}

/// Whether it is a URL (`s3a://…`), which Spark reads.
pub fn is_url(path: &Path) -> bool {
    path.is_relative() && path.to_str().is_some_and(|path| path.contains("://"))
}

/// The named file; if no file has that name and it is a pattern (`*`, `?`, `[…]`), the files that match, sorted.
///
/// # Errors
/// A sentence: a file is not a readable regular file, or no file matches.
pub fn files(typed: &OsStr) -> Result<Vec<InputFile>, String> {
    let path = Path::new(typed);
    let pattern = typed.to_str().filter(|text| !path.exists() && text.contains(['*', '?', '[']));
    let Some(matches) = pattern.and_then(|pattern| glob::glob(pattern).ok()) else {
        return InputFile::from_path(path).map(|file| vec![file]);
    };
    // As in a shell, a folder that cannot be read has no matches.
    let found: Vec<InputFile> =
        matches.flatten().map(|found| InputFile::from_path(&found)).collect::<Result<_, _>>()?;
    if found.is_empty() { Err(format!("no file matches {}", shown(path))) } else { Ok(found) }
}

/// Divides a file into ranges of about `piece_bytes`, each of whole lines; the last line may have no line end. Only ranges that begin within the
/// first `most_bytes` are returned. A shorter file is one range; an empty file has none.
///
/// # Errors
/// A sentence: the file cannot be read, or it is compressed, so that it can only be decompressed from its beginning.
pub fn cut(file: &InputFile, piece_bytes: u64, most_bytes: u64) -> Result<Vec<Range>, String> {
    let opened = open_regular(&file.path).map_err(unreadable(&file.path))?;
    let mut ranges = Vec::new();
    let mut offset = 0;
    if file.bytes == 0 && opened.read_at(&mut [0], 0).map_err(unreadable(&file.path))? > 0 {
        // Files in /proc have size 0 but content: such a file is one range.
        ranges.push(file.clone().whole());
    }
    if piece_bytes < file.bytes
        && let Some(format) = compressed_format(file)?
    {
        return Err(format!(
            "{} is compressed ({format}), and a part of it cannot be decompressed alone: leave out --split, so that it is one partition, or decompress it first",
            shown(&file.path)
        ));
    }
    while offset < file.bytes.min(most_bytes) {
        let end = line_end(&opened, offset.saturating_add(piece_bytes), file.bytes);
        let end = end.map_err(unreadable(&file.path))?;
        ranges.push(Range { file: file.clone(), offset, bytes: end - offset });
        offset = end;
    }
    Ok(ranges)
}

/// First bytes of compressed files (RFC 1952, RFC 8878, and the formats' own descriptions).
const MAGIC_BYTES: [(&[u8], &str); 6] = [
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
];

fn compressed_format(file: &InputFile) -> Result<Option<&'static str>, String> {
    let mut begin = [0; 8];
    let read = open_regular(&file.path).and_then(|file| file.read_at(&mut begin, 0));
    let read = read.map_err(unreadable(&file.path))?;
    Ok(MAGIC_BYTES.iter().find(|(magic, _)| begin[..read].starts_with(magic)).map(|(_, name)| *name))
}

/// The offset after the first line end at or after `at - 1`, or the end of the file.
fn line_end(file: &File, at: u64, file_bytes: u64) -> io::Result<u64> {
    let mut room = Block::new(PIECE_BYTES);
    // If a line ends just before `at`, the cut is at `at`.
    let mut at = at.saturating_sub(1);
    while at < file_bytes {
        let len = file.read_at(&mut room, at)?;
        match room[..len].iter().position(|byte| *byte == b'\n') {
            Some(place) => return Ok((at + place as u64 + 1).min(file_bytes)),
            None if len == 0 => break,
            None => at += len as u64,
        }
    }
    Ok(file_bytes)
}

/// The first `most` bytes of the inputs as partitions: with `split`, at least four ranges of whole lines; else whole files, at least
/// two.
///
/// # Errors
/// A sentence: a file cannot be read.
pub fn sample(files: &[InputFile], split: Option<ByteSize>, most: ByteSize) -> Result<Vec<Range>, String> {
    let mut left = files.iter().map(|file| file.bytes).sum::<u64>().min(most.0);
    let piece_bytes = split.map(|split| split.0.min(left / 4).max(1));
    let mut ranges = Vec::new();
    for file in files {
        if left == 0 && ranges.len() >= 2 {
            break;
        }
        match piece_bytes {
            // A compressed file cannot be cut.
            Some(piece_bytes) if compressed_format(file)?.is_none() => {
                ranges.extend(cut(file, piece_bytes, left)?)
            }
            _ => ranges.push(file.clone().whole()),
        }
        left = left.saturating_sub(file.bytes);
    }
    Ok(ranges)
}
