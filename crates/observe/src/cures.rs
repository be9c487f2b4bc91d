//! What makes a program write line by line where its output is no terminal: the table of programs that are known.
//!
//! Sources, in the order of the table: the programs' manuals (grep(1), ripgrep's GUIDE, ugrep(1), sed(1), jq(1), mawk(1), gawk(1) on `fflush`,
//! python(1) `-u`, perlvar(1) `$|`, Ruby's class IO `sync=`, tcpdump(8), tshark(1)), and stdbuf(1) for programs that have no such option
//! and write with stdio(3) of a C library that is linked dynamically.

/// What is known of a program.
pub struct Cure {
    /// Its names, as file names without a version.
    pub programs: &'static [&'static str],
    /// What cures it, in its own words; `{}` is the name of the program.
    pub own: &'static str,
    /// How `--line-buffered` does it.
    pub method: Method,
}

/// How a program is made to write line by line from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By stdbuf's library.
    Library,
    /// By this variable, which one of these letters among the program's options makes it ignore.
    Variable(&'static str, &'static [char]),
    /// By these arguments before its own.
    Arguments(&'static [&'static str]),
    /// By a terminal as its output.
    Terminal,
}
use Method::{Arguments, Library, Terminal, Variable};

const fn cure(programs: &'static [&'static str], own: &'static str, method: Method) -> Cure {
    Cure { programs, own, method }
}

/// Programs that hold lines back.
const CURES: &[Cure] = &[
    cure(&["grep", "egrep", "fgrep", "zgrep"], "`{} --line-buffered`", Library),
    cure(&["rg", "ugrep"], "`{} --line-buffered`", Arguments(&["--line-buffered"])),
    cure(&["sed"], "`{} -u`", Library),
    cure(&["jq"], "`{} --unbuffered`", Library),
    cure(&["mawk"], "`{} -W interactive`, or `fflush()` after `print`", Arguments(&["-W", "interactive"])),
    cure(&["awk", "gawk", "original-awk", "bwk"], "`fflush()` after `print`", Library),
    cure(
        &["python", "pypy"],
        "`{} -u`, or `print(…, flush=True)`",
        Variable("PYTHONUNBUFFERED", &['E', 'I']),
    ),
    cure(&["perl"], "`$| = 1;` at the start of the program", Variable("PERL5OPT", &['T', 't'])),
    cure(&["ruby"], "`$stdout.sync = true` at the start of the program", Terminal),
    cure(&["tcpdump", "tshark"], "`{} -l`", Library),
    cure(
        &[
            "tr", "cut", "uniq", "nl", "fold", "expand", "unexpand", "paste", "join", "comm", "od", "fmt",
            "pr", "column", "rev", "strings", "xxd", "hexdump", "hd", "iconv", "numfmt", "head", "tail",
            "ts", "bc", "dc", "colrm", "find",
        ],
        "`stdbuf -oL {}`",
        Library,
    ),
];

/// Programs whose output is made of all that they read, or is no text: they write in blocks for good reason.
const WHOLE: &[&str] = &[
    "sort", "tac", "wc", "shuf", "tsort", "xz", "gzip", "pigz", "bzip2", "lbzip2", "zstd", "lz4", "lzop",
    "brotli", "openssl", "gpg", "tar", "cpio", "dd", "pv", "mbuffer", "buffer", "ffmpeg", "ssh",
];

/// What is known of a program by its file's name, which may have a version: python3.11, perl5.36.
pub fn find(file: &str) -> Option<&'static Cure> {
    let name = file.trim_end_matches(|letter: char| letter.is_ascii_digit() || ".-".contains(letter));
    CURES.iter().find(|cure| cure.programs.contains(&file) || cure.programs.contains(&name))
}

/// Whether a program is known to need all that it reads before it can write, or to write blocks that are no lines.
pub(crate) fn is_whole(file: &str) -> bool {
    WHOLE.contains(&file)
}

/// What cures a program: `file` is its file's name, `uses_stdio` whether it writes with the C library.
pub(crate) fn own_cure(file: &str, uses_stdio: bool) -> Option<String> {
    match find(file) {
        Some(cure) => Some(cure.own.replace("{}", file)),
        None => uses_stdio.then(|| format!("`stdbuf -oL {file}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_file_with_or_without_a_version() {
        let own = |file: &str| own_cure(file, false);
        assert_eq!(own("grep").as_deref(), Some("`grep --line-buffered`"));
        assert_eq!(own("python3.11").as_deref(), Some("`python3.11 -u`, or `print(…, flush=True)`"));
        assert_eq!(own("perl5.36.0"), own("perl"));
        assert_eq!((own("mine"), own_cure("mine", true)), (None, Some("`stdbuf -oL mine`".to_owned())));
    }

    #[test]
    fn a_program_stands_in_the_table_once() {
        let mut names: Vec<_> = CURES.iter().flat_map(|cure| cure.programs).chain(WHOLE).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
