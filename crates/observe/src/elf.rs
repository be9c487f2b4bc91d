//! Reads 64-bit programs and libraries (elf(5)): their loader and their dynamic symbols. Only the parts that are needed are read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use process::open_regular;

/// Longest part of a file that is read.
const PART_BYTES_MAX: u64 = 16 << 20;
const HEAD_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

/// An open file in this format.
pub struct Elf {
    file: File,
    head: [u8; HEAD_BYTES],
}

/// The dynamic symbols of a file.
pub struct Symbols {
    entries: Vec<u8>,
    names: Vec<u8>,
}

impl Elf {
    /// Opens a file; `None` if it cannot be read, or has another format.
    pub fn open(path: impl AsRef<Path>) -> Option<Self> {
        let (file, mut head) = (open_regular(path).ok()?, [0; HEAD_BYTES]);
        // A file of /proc has size 0, and reading it may have an effect.
        file.metadata().ok().filter(|found| found.len() >= HEAD_BYTES as u64)?;
        file.read_exact_at(&mut head, 0).ok()?;
        head.starts_with(b"\x7fELF\x02\x01").then_some(Self { file, head })
    }

    /// The path of its loader, with the zero at its end; `None` if it is linked statically, or is a library.
    pub fn loader(&self) -> Option<Vec<u8>> {
        const PT_INTERP: u64 = 3;
        let headers = self.table(32, 54, 56)?;
        let header = headers.iter().find(|header| number(header, 0, 4) == Some(PT_INTERP))?;
        self.part(number(header, 8, 8)?, number(header, 32, 8)?)
    }

    /// Its dynamic symbols.
    pub fn symbols(&self) -> Option<Symbols> {
        const SHT_DYNSYM: u64 = 11;
        let sections = self.table(40, 58, 60)?;
        let symbols = sections.iter().find(|section| number(section, 4, 4) == Some(SHT_DYNSYM))?;
        let names = sections.get(usize::try_from(number(symbols, 40, 4)?).ok()?)?;
        let bytes = |section: &[u8]| self.part(number(section, 24, 8)?, number(section, 32, 8)?);
        Some(Symbols { entries: bytes(symbols)?, names: bytes(names)? })
    }

    /// The entries of a table. The arguments are offsets in the head: of the table's position, of the size of an entry, and of the number of
    /// entries.
    fn table(&self, place: usize, entry_bytes: usize, count: usize) -> Option<Vec<Vec<u8>>> {
        let entry_bytes = number(&self.head, entry_bytes, 2).filter(|bytes| *bytes > 0)?;
        let table = self.part(number(&self.head, place, 8)?, entry_bytes * number(&self.head, count, 2)?)?;
        Some(table.chunks_exact(usize::try_from(entry_bytes).ok()?).map(<[u8]>::to_vec).collect())
    }

    fn part(&self, at: u64, bytes: u64) -> Option<Vec<u8>> {
        let mut part = vec![0; usize::try_from(bytes).ok().filter(|_| bytes <= PART_BYTES_MAX)?];
        self.file.read_exact_at(&mut part, at).ok()?;
        Some(part)
    }
}

impl Symbols {
    /// Whether these bytes are within the names of its symbols, or of the libraries that it needs.
    pub fn names_contain(&self, part: &[u8]) -> bool {
        self.names.windows(part.len()).any(|window| window == part)
    }

    /// The value of a symbol: its address in the file, or 0 if another file defines it. `None` if there is no symbol of this name.
    pub fn value(&self, name: &str) -> Option<u64> {
        let is_it = |entry: &&[u8]| {
            let text = number(entry, 0, 4).and_then(|at| self.names.get(usize::try_from(at).ok()?..));
            let rest = text.and_then(|text| text.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        number(self.entries.chunks_exact(SYMBOL_BYTES).find(is_it)?, 8, 8)
    }
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let mut own = [0; 8];
    own[..len].copy_from_slice(bytes.get(at..at + len)?);
    Some(u64::from_le_bytes(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_its_loader_and_what_it_takes() {
        let own = Elf::open("/proc/self/exe").expect("this test");
        assert!(own.loader().is_some_and(|loader| loader.ends_with(b"\0")));
        let symbols = own.symbols().expect("linked dynamically");
        assert!(symbols.value("read").is_some());
        assert_eq!((symbols.value("rea"), symbols.value("no_such_symbol")), (None, None));
    }

    #[test]
    fn damaged_files_say_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("damaged");
        let own = std::fs::read("/proc/self/exe").expect("this test");
        let says = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("a file");
            Elf::open(&path).is_some_and(|elf| elf.symbols().is_some() || elf.loader().is_some())
        };
        for len in [0, 5, 63, 64, 500] {
            assert!(!says(&own[..len]), "{len}");
        }
        let mut wild = own[..4096].to_vec();
        wild[32..48].fill(0xff);
        assert!(!says(&wild));
    }
}
