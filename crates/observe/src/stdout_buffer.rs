//! How much output is in a program's buffer: glibc's stdout, found in its memory (proc_pid_mem(5)) by the symbol `_IO_2_1_stdout_`. Needs what
//! ptrace(2) calls PTRACE_MODE_ATTACH: one's own processes where Yama does not forbid it, or root.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::elf::Elf;
use crate::waits::memory;

/// The symbol of the structure behind `stdout`, a part of glibc's ABI.
const SYMBOL: &str = "_IO_2_1_stdout_";
/// The first words of struct _IO_FILE, whose order is a part of glibc's ABI: flags, three pointers for reading, three for writing (base,
/// next, end), two for the whole buffer.
const WORDS: usize = 9;
const MAGIC: u64 = 0xfbad;
const UNBUFFERED: u64 = 0x2;
const LINE_BUFFERED: u64 = 0x200;

/// The buffer of a program's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StdoutBuffer {
    /// Bytes that the program has put into it and that are not written yet; 0 where it writes each line or each byte.
    pub(crate) held_bytes: u64,
    /// Its size; 0 before the program's first output.
    pub(crate) size_bytes: u64,
}

/// Finds stdout in processes; remembers its offset in each C library.
#[derive(Debug, Default)]
pub(crate) struct StdoutFinder {
    offsets: HashMap<(u64, u64), Option<u64>>,
}

impl StdoutFinder {
    /// Its address in a process; `None` if that has no glibc, or this user may not read its memory.
    pub(crate) fn address(&mut self, pid: i32) -> Option<u64> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let (base, path) = maps.lines().find_map(library)?;
        let path = format!("/proc/{pid}/root{path}");
        let found = fs::metadata(&path).ok()?;
        let offset = *self
            .offsets
            .entry((found.dev(), found.ino()))
            .or_insert_with(|| Elf::open(&path)?.symbols()?.value(SYMBOL));
        Some(base + offset?)
    }
}

/// The address and the path of a C library, from the line of its first mapping (proc_pid_maps(5)).
fn library(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, offset) = (fields.next()?.split('-').next()?, fields.nth(1)?);
    let path = &line[line.find('/')?..];
    let name = path.rsplit('/').next()?;
    let is_it = name.starts_with("libc.so.6") || name.starts_with("libc-2.");
    let begins = offset.bytes().all(|digit| digit == b'0');
    (is_it && begins).then(|| Some((u64::from_str_radix(from, 16).ok()?, path)))?
}

/// The buffer at this address of a process; `None` if it may not be read, or if there is no stdout because the process has executed another program.
pub(crate) fn buffer_at(pid: i32, address: u64) -> Option<StdoutBuffer> {
    let bytes = memory(pid, address, WORDS as u64 * 8)?;
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().unwrap_or_default());
    let flags = word(0) & 0xffff_ffff;
    if flags >> 16 != MAGIC {
        return None;
    }
    let [base, next] = [4, 5].map(word);
    let by_line = flags & (UNBUFFERED | LINE_BUFFERED) != 0;
    let held_bytes = if by_line { 0 } else { next.saturating_sub(base) };
    Some(StdoutBuffer { held_bytes, size_bytes: word(8).saturating_sub(word(7)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_c_library_is_known_by_its_first_mapping() {
        let line =
            |offset: &str, path: &str| format!("7f0012345000-7f0012367000 r--p {offset} fe:01 77   {path}");
        let found = |offset, path| library(&line(offset, path)).map(|(base, path)| (base, path.to_owned()));
        let path = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        assert_eq!(found("00000000", path), Some((0x7f00_1234_5000, path.to_owned())));
        assert_eq!((found("00028000", path), found("00000000", "/usr/lib/libm.so.6")), (None, None));
        assert_eq!(library("7ffd1000-7ffd2000 rw-p 00000000 00:00 0 [stack]"), None);
    }
}
