//! A part of the input, cut at a line end, for first trials of a pipeline over large files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;

use pipeline::tune::safety;
use pipeline::tune::script::Script;
use rustix::fs::{MemfdFlags, memfd_create};

/// Smallest part, and the largest: it is in memory.
const BYTES_MIN: u64 = 1 << 20;
const BYTES_MAX: u64 = 256 << 20;
/// A larger share of a file is not worth a copy.
const SHARE_MAX: f64 = 0.8;

/// The beginnings of files.
pub(super) struct Part {
    /// The name of each file, and the path of its beginning.
    pub(super) files: Vec<(String, String)>,
    _open: Vec<File>,
}

impl Part {
    /// About this share of the files that pipelines name. `None` where all of them is to be taken, or none is a text.
    pub(super) fn of(script: &Script, share: f64) -> Option<Self> {
        // What a text writes (`--yes`) must be of the whole input.
        if share > SHARE_MAX || safety::stops(&script.to_string()).is_some() {
            return None;
        }
        let (mut files, mut open) = (Vec::new(), Vec::new());
        for name in script.pipelines().into_iter().flat_map(|pipeline| pipeline.names()) {
            if files.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let Some(file) = beginning(&name, share) else { continue };
            files.push((name, format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())));
            open.push(file);
        }
        (!files.is_empty()).then_some(Self { files, _open: open })
    }
}

/// The beginning of a text; `None` if it is no large text file.
fn beginning(name: &str, share: f64) -> Option<File> {
    let file = process::open_regular(name).ok()?;
    let bytes = file.metadata().ok()?.len();
    let wanted = ((bytes as f64 * share) as u64).clamp(BYTES_MIN, BYTES_MAX);
    if wanted as f64 > bytes as f64 * SHARE_MAX {
        return None;
    }
    copy(BufReader::new(file), wanted).ok().flatten()
}

/// A file in memory with whole lines, at least `wanted` bytes; `None` if it is no text.
fn copy(mut from: BufReader<File>, wanted: u64) -> io::Result<Option<File>> {
    if from.fill_buf()?.contains(&0) {
        return Ok(None);
    }
    let mut part = File::from(memfd_create("part", MemfdFlags::CLOEXEC)?);
    io::copy(&mut from.by_ref().take(wanted), &mut part)?;
    let mut line = Vec::new();
    // A text without line ends is not read to its end.
    from.take(BYTES_MIN).read_until(b'\n', &mut line)?;
    part.write_all(&line)?;
    Ok(line.ends_with(b"\n").then_some(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_of_whole_lines() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let line = format!("{}\n", "x".repeat(99));
        file.write_all(line.repeat(100_000).as_bytes()).expect("written");
        let name = file.path().display().to_string();
        let script = Script::parse(&format!("grep x {name} | cat /nonexistent"));
        let part = Part::of(&script, 0.3).expect("ten MB are cut");
        let [(cut, path)] = &part.files[..] else { panic!("{:?}", part.files) };
        assert_eq!(*cut, name);
        let text = std::fs::read_to_string(path).expect("readable");
        assert!(text.len() >= 3_000_000 && text.len() < 3_001_000 && text.ends_with("x\n"), "{}", text.len());
        assert!(text.lines().all(|one| one.len() == 99));
        assert!(Part::of(&script, 1.0).is_none());
        file.as_file().set_len(20_000_000).expect("longer");
        assert!(Part::of(&Script::parse(&format!("cat {name}.gz")), 0.1).is_none());
    }
}
