//! Programs that buffer lines if their output is not a terminal, and what makes them write line by line.
//!
//! Sources, in the order of the table: the programs' manuals (grep(1), ripgrep's GUIDE, ugrep(1), sed(1), jq(1), mawk(1), gawk(1) on `fflush`,
//! python(1) `-u`, perlvar(1) `$|`, Ruby's class IO `sync=`, tcpdump(8), tshark(1)), and stdbuf(1) for programs that have no such option
//! and write with stdio(3) of a C library that is linked dynamically.

/// A program that holds lines back.
pub struct KnownProgram {
    /// Its names, as file names without a version.
    names: &'static [&'static str],
    /// Its own option for this, or another way to make it write each line immediately; `{}` is the name of the program.
    advice: &'static str,
    /// How `--line-buffered` makes it write line by line.
    pub method: Method,
}

/// How a program is made to write line by line from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By stdbuf's library.
    Library,
    /// By this variable, which the program ignores if one of these letters is among its options.
    Variable(&'static str, &'static [char]),
    /// By these arguments before its own.
    Arguments(&'static [&'static str]),
    /// By a terminal as its output.
    Terminal,
}
use Method::{Arguments, Library, Terminal, Variable};

const fn program(names: &'static [&'static str], advice: &'static str, method: Method) -> KnownProgram {
    KnownProgram { names, advice, method }
}

const KNOWN_PROGRAMS: &[KnownProgram] = &[
    program(&["grep", "egrep", "fgrep", "zgrep"], "`{} --line-buffered`", Library),
    program(&["rg", "ugrep"], "`{} --line-buffered`", Arguments(&["--line-buffered"])),
    program(&["sed"], "`{} -u`", Library),
    program(&["jq"], "`{} --unbuffered`", Library),
    // mawk makes its option upper case with toupper(3), which does not make `I` of `i` in a Turkish locale.
    program(&["mawk"], "`{} -W INTERACTIVE`, or `fflush()` after `print`", Arguments(&["-W", "INTERACTIVE"])),
    program(&["awk", "gawk", "original-awk", "bwk"], "`fflush()` after `print`", Library),
    program(
        &["python", "pypy"],
        "`{} -u`, or `print(…, flush=True)`",
        Variable("PYTHONUNBUFFERED", &['E', 'I']),
    ),
    program(&["perl"], "`$| = 1;` at the start of the program", Variable("PERL5OPT", &['T', 't'])),
    program(&["ruby"], "`$stdout.sync = true` at the start of the program", Terminal),
    program(&["tcpdump", "tshark"], "`{} -l`", Library),
    program(
        &[
            "tr", "cut", "uniq", "nl", "fold", "expand", "unexpand", "paste", "join", "comm", "od", "fmt",
            "pr", "rev", "strings", "xxd", "hexdump", "hd", "numfmt", "head", "tail", "ts", "bc", "dc",
            "colrm", "find",
        ],
        "`stdbuf -oL {}`",
        Library,
    ),
];

/// Programs that read all of their input before they write.
const NEEDS_ALL_INPUT: &[&str] = &[
    "sort",
    "tac",
    "column",
    "wc",
    "shuf",
    "tsort",
    "sponge",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "b2sum",
    "b3sum",
    "xxhsum",
];

/// Programs whose output has no lines. If these, or those above, write late, an output buffer is not the cause.
const WRITES_BLOCKS: &[&str] = &[
    "iconv", "xz", "gzip", "pigz", "bzip2", "lbzip2", "zstd", "lz4", "lzop", "brotli", "openssl", "gpg",
    "tar", "cpio", "dd", "pv", "mbuffer", "buffer", "ffmpeg", "ssh",
];

/// Finds a program by its file's name, which may have a version: python3.11, perl5.36.
pub fn known_program(file: &str) -> Option<&'static KnownProgram> {
    let name = file.trim_end_matches(|letter: char| letter.is_ascii_digit() || ".-".contains(letter));
    KNOWN_PROGRAMS.iter().find(|program| program.names.contains(&file) || program.names.contains(&name))
}

/// Whether a program runs a script, and has a buffer of its own for its output.
pub(crate) fn is_interpreter(file: &str) -> bool {
    known_program(file).is_some_and(|program| matches!(program.method, Variable(..) | Terminal))
}

/// Whether a program is known to pass its standard input on, or a part of it, and to ask its user nothing.
pub(crate) fn is_filter(file: &str) -> bool {
    let is_known = known_program(file).is_some() && !is_interpreter(file) && !["bc", "dc"].contains(&file);
    ["cat", "tee"].contains(&file) || writes_blocks(file) || is_known
}

/// Whether a program is known to read all of its input before it writes, or to write blocks that have no lines.
pub fn writes_blocks(file: &str) -> bool {
    WRITES_BLOCKS.contains(&file) || NEEDS_ALL_INPUT.contains(&file)
}

/// Whether a command is known to read all of its input before it writes: lines that come to it earlier, or that come from it, change nothing.
pub fn needs_all_input(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    // tail(1) copies from a given line on, or follows a file.
    let mut copies =
        words.filter(|word| word.contains('+') || word.starts_with('-') && word.contains(['f', 'F']));
    match program {
        "tail" => copies.next().is_none(),
        "grep" | "egrep" | "fgrep" => counts(command),
        // What comes from it comes at the end, unless it prints before that.
        "awk" | "gawk" | "mawk" => {
            let end = ["END{", "END {"].iter().find_map(|end| command.split_once(end));
            end.is_some_and(|(before, _)| !before.contains("print"))
        }
        _ => NEEDS_ALL_INPUT.contains(&program),
    }
}

/// Whether grep(1) has its option `-c`.
fn counts(command: &str) -> bool {
    let mut words = command.split_whitespace().skip(1);
    words.any(|word| {
        word == "--count"
            || word
                .strip_prefix('-')
                .is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
    })
}

/// How to make a program write each line immediately. `file` is its file's name, `uses_stdio` whether it writes with the C library.
pub(crate) fn advice(file: &str, uses_stdio: bool) -> Option<String> {
    match known_program(file) {
        Some(program) => Some(program.advice.replace("{}", file)),
        None => uses_stdio.then(|| format!("`stdbuf -oL {file}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_file_with_or_without_a_version() {
        let own = |file: &str| advice(file, false);
        assert_eq!(own("grep").as_deref(), Some("`grep --line-buffered`"));
        assert_eq!(own("python3.11").as_deref(), Some("`python3.11 -u`, or `print(…, flush=True)`"));
        assert_eq!(own("perl5.36.0"), own("perl"));
        assert_eq!((own("mine"), advice("mine", true)), (None, Some("`stdbuf -oL mine`".to_owned())));
    }

    #[test]
    fn what_needs_all_its_input_is_known_by_its_command() {
        let those = ["sort -rn", "/usr/bin/wc -l", "tail -1", "tail -n 5", "sha256sum"];
        let counts = ["grep -vc x", "grep --count x", "awk '{n[$1]++} END {print n[1]}'"];
        for command in those.into_iter().chain(counts) {
            assert!(needs_all_input(command), "{command}");
        }
        for command in
            ["tail -n +2", "tail -f", "uniq -c", "cat", "sortx", "", "grep --color x", "awk '{print} END{}'"]
        {
            assert!(!needs_all_input(command), "{command}");
        }
    }

    #[test]
    fn a_program_is_in_the_tables_once() {
        let known = KNOWN_PROGRAMS.iter().flat_map(|program| program.names);
        let mut names: Vec<_> = known.chain(WRITES_BLOCKS).chain(NEEDS_ALL_INPUT).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
