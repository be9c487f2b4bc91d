//! Options of programs, asked of the programs themselves. Only of those that are known to answer `--help` with a list
//! and nothing else: a program that is started while a line is typed must not do anything.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Programs of the GNU project, and a few that are as polite, sorted.
const POLITE: &[&str] = &[
    "awk",
    "base64",
    "basename",
    "bzip2",
    "cat",
    "chmod",
    "chown",
    "cmp",
    "comm",
    "cp",
    "csplit",
    "curl",
    "cut",
    "date",
    "dd",
    "df",
    "diff",
    "dirname",
    "du",
    "egrep",
    "env",
    "expand",
    "fgrep",
    "find",
    "fmt",
    "fold",
    "gawk",
    "grep",
    "gzip",
    "head",
    "join",
    "jq",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mkfifo",
    "mv",
    "nice",
    "nl",
    "nohup",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "pr",
    "ps",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sha1sum",
    "sha256sum",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "stdbuf",
    "stty",
    "sum",
    "tac",
    "tail",
    "tar",
    "tee",
    "timeout",
    "touch",
    "tr",
    "truncate",
    "tsort",
    "uname",
    "unexpand",
    "uniq",
    "wc",
    "wget",
    "xargs",
    "xz",
    "zstd",
];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most of an answer that is read.
const ANSWER_BYTES_MAX: u64 = 256 << 10;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The options of a program at `path`, or of this one's subcommand; none where it is not known to answer.
pub(crate) fn options(path: &Path, first: Option<&str>) -> Vec<String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let ours = is_ours(path);
    if !ours && POLITE.binary_search(&name).is_err() {
        return Vec::new();
    }
    let subcommand = first.filter(|word| ours && !word.starts_with('-'));
    named_in(&answer(path, subcommand).unwrap_or_default())
}

/// This program's subcommands, with what it says of each; none of another program.
pub(crate) fn subcommands(path: &Path) -> Vec<String> {
    let text = if is_ours(path) { answer(path, None).unwrap_or_default() } else { String::new() };
    let lines = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names =
        lines.take_while(|line| line.starts_with("  ")).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn is_ours(path: &Path) -> bool {
    let real = |path: &Path| -> Option<PathBuf> { std::fs::canonicalize(path).ok() };
    std::env::current_exe().ok().and_then(|ours| real(&ours)).is_some_and(|ours| real(path) == Some(ours))
}

/// What it prints for `--help`; nothing where that takes too long.
fn answer(path: &Path, subcommand: Option<&str>) -> Option<String> {
    let mut command = Command::new(path);
    command.args(subcommand).arg("--help").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
        bytes
    });
    let began = Instant::now();
    while !reader.is_finished() && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK_AGAIN);
    }
    let in_time = reader.is_finished();
    let _ = child.kill();
    let _ = child.wait();
    let bytes = if in_time { reader.join().ok()? } else { return None };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Options named in a help text: `--reverse`, `--key=`, `-n`.
fn named_in(text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        // The names stand before the first gap; what follows explains them.
        let names = line.split("  ").next().unwrap_or(line);
        for word in names.split([',', ' ']).filter(|word| word.starts_with('-')) {
            let end = word.find(['=', '[', '<', '.']).unwrap_or(word.len());
            let valued = word[end..].starts_with('=');
            let name = &word[..end];
            if name.len() > 1 && name != "--" && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
                found.insert(format!("{name}{}", if valued { "=" } else { "" }));
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(POLITE.is_sorted());
    }

    #[test]
    fn options_are_found_in_help_texts() {
        let text = "Usage: sort [OPTION]...\n\n  -b, --ignore-leading-blanks  ignore leading blanks\n\
                    \x20     --sort=WORD   like --this\n      --color[=WHEN]  x\n  -k, --key=KEYDEF   y\n\
                    \x20     --via <LINK>  z\n";
        let found = named_in(text);
        assert_eq!(found, ["--color", "--ignore-leading-blanks", "--key=", "--sort=", "--via", "-b", "-k"]);
    }

    #[test]
    fn only_polite_programs_are_asked() {
        assert!(options(Path::new("/usr/bin/sort"), None).contains(&"--reverse".to_owned()));
        assert!(options(Path::new("/usr/bin/bash"), None).is_empty());
    }
}
