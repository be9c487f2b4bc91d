//! The names bash answers to itself (bash(1), SHELL BUILTIN COMMANDS): a stage that begins with one is bash's to run.

/// Builtins of bash 5, sorted.
const BUILTINS: &[&str] = &[
    ".",
    ":",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Words after which a shell holds what no other process can be given: its traps, jobs, limits and descriptors.
const HOLDERS: &[&str] = &[
    "bg", "coproc", "dirs", "disown", "exec", "fg", "jobs", "lastpipe", "popd", "pushd", "suspend", "trap",
    "ulimit", "wait",
];

/// Whether bash runs a command of this name itself.
pub fn is_builtin(name: &str) -> bool {
    BUILTINS.binary_search(&name).is_ok()
}

/// Whether these words of a builtin do the same as the program of its name, so that the program can stand for it:
/// `true` and `false` alone, and `echo` without options that the two read differently.
pub(crate) fn program_does_the_same(words: &[String]) -> bool {
    match words {
        [name] => matches!(name.as_str(), "true" | "false" | "echo"),
        [name, first, ..] => {
            name == "echo" && (first == "-n" || !first.starts_with('-')) && plain(&words[1..])
        }
        [] => false,
    }
}

/// No second option, and no backslash for either to interpret.
fn plain(arguments: &[String]) -> bool {
    let rest = if arguments[0] == "-n" { &arguments[1..] } else { arguments };
    rest.first().is_none_or(|word| !word.starts_with('-')) && rest.iter().all(|word| !word.contains('\\'))
}

/// The most that a builtin may write and still need no process: what any link holds when nobody has read yet.
const INSTANT_BYTES_MAX: usize = 4096;

/// The status and the output of a builtin that is over at once, so that no process is needed for it: what bash
/// forks for, it does by itself. `None` for everything else.
pub(crate) fn instant(words: &[String]) -> Option<(i32, Vec<u8>)> {
    match words.first()?.as_str() {
        "true" | ":" => Some((0, Vec::new())),
        "false" => Some((1, Vec::new())),
        "echo" if program_does_the_same(words) => {
            let newline = words.get(1).is_none_or(|word| word != "-n");
            let mut text = words[if newline { 1 } else { 2 }..].join(" ");
            text.extend(newline.then_some('\n'));
            (text.len() <= INSTANT_BYTES_MAX).then(|| (0, text.into_bytes()))
        }
        _ => None,
    }
}

/// Whether a text that a shell runs may leave something behind in that very shell, so that what follows has to run
/// there as well.
pub(crate) fn must_stay_in_one_shell(text: &str) -> bool {
    text.trim_end().ends_with('&')
        || ["$!", "RANDOM=", "SECONDS="].iter().any(|name| text.contains(name))
        || text
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-' || c == '/' || c == '.'))
            .any(|word| HOLDERS.binary_search(&word).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(BUILTINS.is_sorted());
        assert!(HOLDERS.is_sorted());
    }

    #[test]
    fn every_builtin_of_this_bash_is_known() {
        let bash = std::process::Command::new("bash").args(["-c", "compgen -b"]).output().expect("bash");
        for name in String::from_utf8_lossy(&bash.stdout).lines() {
            assert!(is_builtin(name), "{name}");
        }
    }

    #[test]
    fn programs_stand_for_builtins_only_where_they_agree() {
        for text in ["true", "false", "echo", "echo a b", "echo -n a"] {
            assert!(program_does_the_same(&words(text)), "{text}");
        }
        for text in ["true --help", "echo -e a", "echo --version", "echo -n -e a", "printf a", r"echo a\n"] {
            assert!(!program_does_the_same(&words(text)), "{text}");
        }
    }

    #[test]
    fn some_are_over_at_once() {
        assert_eq!(instant(&words("false x")), Some((1, Vec::new())));
        assert_eq!(instant(&words("echo a b")), Some((0, b"a b\n".to_vec())));
        assert_eq!(instant(&words("echo -n a")), Some((0, b"a".to_vec())));
        assert_eq!(instant(&words("echo -e a")), None);
        assert_eq!(instant(&words("printf a")), None);
    }

    #[test]
    fn what_a_shell_keeps_is_seen() {
        for text in ["trap 'rm x' EXIT", "sleep 1 &", "exec 3>x", "kill $!", "{ a; wait; }"] {
            assert!(must_stay_in_one_shell(text), "{text}");
        }
        for text in ["cd /tmp", "x=5", "export A=await", "for i in 1 2; do echo $i; done", "f() { cat; }"] {
            assert!(!must_stay_in_one_shell(text), "{text}");
        }
    }
}
