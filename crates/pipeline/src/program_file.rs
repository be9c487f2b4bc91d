//! Facts about a program from its file: its interpreter, its loader, and the functions that it takes from libraries.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::file_on_path;
use observe::elf::Elf;
use process::{is_shell, open_regular};

/// Symbols that a program takes from the C library if it writes to standard output with stdio(3).
const STDIO: [&str; 6] = ["stdout", "puts", "putchar", "printf", "__printf_chk", "vprintf"];
/// Libraries with a malloc(3) of their own.
const ALLOCATORS: [&[u8]; 3] = [b"libjemalloc.so", b"libtcmalloc", b"libmimalloc.so"];
/// Longest first line of a script (execve(2)).
const LINE_BYTES_MAX: u64 = 256;
/// Programs that only start others, in the same environment.
const STARTERS: &[&str] =
    &["env", "nice", "nohup", "timeout", "time", "stdbuf", "xargs", "setsid", "ionice", "taskset", "chrt"];

/// A program that is about to be executed.
pub(crate) struct Program {
    /// The name of its file, or of a script's interpreter, with symbolic links resolved.
    pub(crate) name: String,
    arguments: Vec<Vec<u8>>,
    /// Its loader (elf(5), `PT_INTERP`); `None` if it is linked statically.
    pub(crate) loader: Option<Vec<u8>>,
    pub(crate) uses_stdio: bool,
    /// It has an allocator that is not the C library's.
    pub(crate) has_own_allocator: bool,
    pub(crate) is_script: bool,
    pub(crate) is_privileged: bool,
}

impl Program {
    /// `path` is the file that is executed, `arguments` have its name first.
    pub(crate) fn read(path: &Path, arguments: &[&[u8]]) -> Self {
        Self::read_at(path, arguments, 0)
    }

    fn read_at(path: &Path, arguments: &[&[u8]], depth: usize) -> Self {
        const DEPTH_MAX: usize = 4;
        const SET_ID: u32 = 0o6000;
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut line = Vec::new();
        if let Ok(file) = open_regular(&real) {
            // A file that cannot be read is no script.
            let _ = file.take(LINE_BYTES_MAX).read_to_end(&mut line);
        }
        if let Some((interpreter, options)) = interpreter(&line)
            && depth < DEPTH_MAX
        {
            let words: Vec<&[u8]> = options.iter().map(Vec::as_slice).collect();
            return Self { is_script: true, ..Self::read_at(&interpreter, &words, depth + 1) };
        }
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let elf = Elf::open(&real);
        let symbols = elf.as_ref().and_then(Elf::symbols);
        let takes = |name: &&str| symbols.as_ref().is_some_and(|symbols| symbols.value(name).is_some());
        Self {
            name,
            arguments: arguments.iter().skip(1).map(|word| word.to_vec()).collect(),
            loader: elf.as_ref().and_then(Elf::loader),
            uses_stdio: STDIO.iter().any(takes),
            has_own_allocator: symbols.as_ref().is_some_and(|symbols| {
                symbols.value("malloc").is_some_and(|at| at > 0)
                    || ALLOCATORS.iter().any(|library| symbols.names_contain(library))
            }),
            is_script: false,
            is_privileged: fs::metadata(&real).is_ok_and(|found| found.mode() & SET_ID != 0),
        }
    }

    /// Whether it mainly starts others, in the same environment.
    pub(crate) fn starts_others(&self) -> bool {
        is_shell(&self.name) || STARTERS.contains(&self.name.as_str())
    }

    /// Whether one of these letters is among the options before its first operand.
    pub(crate) fn has_option(&self, letters: &[char]) -> bool {
        let options = self.arguments.iter().take_while(|word| word.len() > 1 && word[0] == b'-');
        let mut short = options.filter(|word| word[1] != b'-');
        short.any(|word| letters.iter().any(|letter| word.contains(&(*letter as u8))))
    }

    pub(crate) fn arguments_contain(&self, text: &[u8]) -> bool {
        self.arguments.iter().any(|word| word.windows(text.len()).any(|window| window == text))
    }
}

/// The interpreter of a script, with its arguments, from its first line (execve(2)); after env(1), the program that env(1) finds.
fn interpreter(script: &[u8]) -> Option<(PathBuf, Vec<Vec<u8>>)> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    let owned = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    if first.ends_with("/env") {
        let at = rest.iter().position(|word| !word.starts_with('-') && !word.contains('='))?;
        return Some((file_on_path(rest[at])?, owned(&rest[at..])));
    }
    Some((PathBuf::from(first), owned(&words)))
}
