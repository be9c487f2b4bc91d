//! Texts that must not be run several times without being asked: they write, remove, send, or ask a person. A list of words cannot know what
//! a program does that it does not name; it is read for the programs that people use.

/// Programs that write, remove, send or ask, whatever their arguments are.
const STOP: &[&str] = &[
    "tee",
    "rm",
    "mv",
    "cp",
    "ln",
    "mkdir",
    "rmdir",
    "touch",
    "truncate",
    "install",
    "shred",
    "unlink",
    "split",
    "csplit",
    "chmod",
    "chown",
    "chgrp",
    "mkfifo",
    "mknod",
    "mktemp",
    "rename",
    "curl",
    "wget",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "mail",
    "mailx",
    "sendmail",
    "logger",
    "wall",
    "write",
    "sudo",
    "su",
    "doas",
    "pkexec",
    "kill",
    "pkill",
    "killall",
    "reboot",
    "shutdown",
    "git",
    "hg",
    "svn",
    "apt",
    "apt-get",
    "dpkg",
    "dnf",
    "yum",
    "rpm",
    "apk",
    "pacman",
    "pip",
    "pip3",
    "npm",
    "cargo",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "systemctl",
    "service",
    "mount",
    "umount",
    "dd_rescue",
    "mkfs",
    "fdisk",
    "parted",
    "psql",
    "mysql",
    "sqlite3",
    "redis-cli",
    "mongo",
    "aws",
    "gcloud",
    "az",
    "make",
    "ninja",
    "passwd",
    "less",
    "more",
    "most",
    "vi",
    "vim",
    "nano",
    "emacs",
    "fzf",
    "dialog",
    "whiptail",
    "top",
    "htop",
    "crontab",
    "at",
    "batch",
    "unzip",
    "cpio",
    "patch",
    "ed",
    "ex",
    "mkdosfs",
    "sponge",
    "vipe",
    "hosepipe",
];
/// What a shell does itself that is not known before, or asks a person.
const OF_SHELLS: &[&str] = &["eval", "exec", "source", ".", "read"];
/// Programs that start the one that is named behind their options.
const STARTERS: &[&str] = &[
    "env", "nice", "nohup", "time", "timeout", "stdbuf", "unbuffer", "xargs", "parallel", "setsid", "ionice",
    "taskset", "chrt", "command", "builtin", "find", "bash", "sh", "dash", "zsh", "busybox", "flock",
    "watch",
];
/// Programs, and the beginnings of arguments with which they write into files.
const WRITES: &[(&[&str], &[&str])] = &[
    (&["sed", "perl", "ruby", "gawk", "awk"], &["-i", "--in-place"]),
    (&["perl", "ruby"], &["-pi", "-ni", "-lpi"]),
    (&["sort", "gcc", "shuf"], &["-o", "--output"]),
    (&["find"], &["-delete", "-fprint", "-fls", "-ok"]),
    (&["dd"], &["of="]),
    (&["tar"], &["x", "-x", "--extract", "c", "-c", "--create", "r", "-r", "u", "-u"]),
    (&["yq", "xmlstarlet"], &["-i", "--inplace", "-L"]),
];
/// Programs that replace the files that they are given, unless an argument begins so.
const REPLACE: &[(&[&str], &[&str])] = &[(
    &[
        "gzip",
        "gunzip",
        "pigz",
        "bzip2",
        "bunzip2",
        "lbzip2",
        "xz",
        "unxz",
        "lzma",
        "zstd",
        "unzstd",
        "lz4",
        "compress",
        "uncompress",
    ],
    &["-c", "-dc", "-cd", "-kc", "-ck", "--stdout", "--to-stdout", "-t", "-l"],
)];

/// The word for which a text must not be run several times; `None` if there is none.
pub fn stops(text: &str) -> Option<String> {
    let mut commands = vec![Vec::new()];
    let mut letters = text.chars().peekable();
    // What is open: quotes, and commands whose output is a part of a word.
    let (mut open, mut word, mut was_quoted) = (Vec::new(), String::new(), false);
    while let Some(letter) = letters.next() {
        let quote = open.last().copied().filter(|open| matches!(open, '\'' | '"'));
        match (quote, letter) {
            (Some(opened), _) if opened == letter => drop(open.pop()),
            (None, '\'' | '"') => {
                open.push(letter);
                was_quoted = true;
            }
            (None | Some('"'), '\\') => word.extend(letters.next()),
            (None | Some('"'), '`' | '$' | ')') if letter != '$' || letters.peek() == Some(&'(') => {
                let closes = open.last() == Some(&letter);
                match letter {
                    '$' => open.push(')'),
                    _ if closes => drop(open.pop()),
                    '`' => open.push('`'),
                    _ if quote.is_some() => word.push(letter),
                    _ => {}
                }
                if quote.is_none() || letter != ')' {
                    end_word(&mut commands, &mut word, &mut was_quoted);
                    commands.push(Vec::new());
                }
            }
            (None, ';' | '|' | '&' | '(' | '{' | '}' | '\n') => {
                end_word(&mut commands, &mut word, &mut was_quoted);
                commands.push(Vec::new());
            }
            (None, ' ' | '\t') => end_word(&mut commands, &mut word, &mut was_quoted),
            // The name of an input file is no operand.
            (None, '<') => {
                end_word(&mut commands, &mut word, &mut was_quoted);
                while letters.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
                word.push_str("-<");
            }
            (None, '>') => {
                let target: String = letters.clone().collect();
                let target = target.trim_start_matches(['>', '|', ' ', '\t']);
                let is_harmless = target.starts_with("/dev/null")
                    || target.starts_with("/dev/stderr")
                    || is_descriptor(target);
                if !is_harmless {
                    return Some(format!(
                        "> {}",
                        target.split([' ', ';', '|', '&', ')']).next().unwrap_or_default()
                    ));
                }
                if let Some('&' | '>') = letters.peek() {
                    letters.next();
                }
            }
            _ => word.push(letter),
        }
    }
    end_word(&mut commands, &mut word, &mut was_quoted);
    commands.iter().find_map(|words| stops_command(words))
}

/// `>&1`, `>&-`.
fn is_descriptor(target: &str) -> bool {
    target
        .strip_prefix('&')
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-'))
}

fn end_word(commands: &mut [Vec<String>], word: &mut String, was_quoted: &mut bool) {
    if (!word.is_empty() || *was_quoted)
        && let Some(command) = commands.last_mut()
    {
        command.push(std::mem::take(word));
    }
    *was_quoted = false;
}

/// The same for the words of one command.
fn stops_command(words: &[String]) -> Option<String> {
    let of_shell = words.first().filter(|word| OF_SHELLS.contains(&word.as_str())).cloned();
    of_shell.or_else(|| stops_program(words))
}

/// The same for a command that no shell runs itself.
fn stops_program(words: &[String]) -> Option<String> {
    const BEFORE: &[&str] = &["!", "if", "then", "else", "elif", "do", "while", "until", "time"];
    let is_before = |word: &&String| {
        let is_variable = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        });
        is_variable || BEFORE.contains(&word.as_str())
    };
    let at = words.iter().take_while(is_before).count();
    let (first, arguments) = words.get(at..)?.split_first()?;
    let name = first.rsplit('/').next().unwrap_or(first);
    let is_of = |names: &&(&[&str], &[&str])| names.0.contains(&name);
    let has = |beginnings: &[&str]| {
        arguments.iter().find(|word| beginnings.iter().any(|beginning| word.starts_with(beginning)))
    };
    if STOP.contains(&name) {
        return Some(name.to_owned());
    }
    if let Some(word) = WRITES.iter().filter(is_of).find_map(|(_, beginnings)| has(beginnings)) {
        return Some(format!("{name} {word}"));
    }
    let has_operand = arguments.iter().any(|word| !word.starts_with('-'));
    if REPLACE.iter().filter(is_of).any(|(_, beginnings)| has_operand && has(beginnings).is_none()) {
        return Some(name.to_owned());
    }
    // A program in awk or Perl that writes or starts something.
    let is_interpreter = ["awk", "gawk", "mawk", "nawk"].contains(&name);
    let starts = |word: &&String| {
        ["system(", "| \"", "print >", "print>", "printf >", "> \"", ">> \"", ">\""]
            .iter()
            .any(|part| word.contains(part))
    };
    if let Some(word) = arguments.iter().filter(|_| is_interpreter).find(starts) {
        return Some(format!("{name} {word}"));
    }
    if STARTERS.contains(&name) {
        // The text of `sh -c`.
        let of_text = |word: &String| word.contains([' ', ';', '|']).then(|| stops(word)).flatten();
        let started = |at: usize| stops_program(&arguments[at..]).or_else(|| of_text(&arguments[at]));
        // Behind options with values of their own, any word may be the program.
        return (0..arguments.len()).find_map(started);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_removes_sends_or_asks_is_named() {
        for (text, word) in [
            ("sort f > out", "> out"),
            ("sort f >>out; ls", "> out"),
            ("sort f 2>err", "> err"),
            ("sort f &>err", "> err"),
            ("ls | xargs -n 1 rm", "rm"),
            ("ls | xargs sh -c 'rm x'", "rm"),
            ("find . -name x -delete", "find -delete"),
            ("find . -exec rm {} +", "rm"),
            ("cat f | tee g | wc", "tee"),
            ("for x in a b; do mv $x y; done", "mv"),
            ("x=1 /usr/bin/curl http://a | jq .", "curl"),
            ("echo $(rm x)", "rm"),
            ("echo \"`rm x`\"", "rm"),
            ("echo \"$(rm x)\"", "rm"),
            ("echo \"`ls`\" | rm y", "rm"),
            ("echo \"$(ls \"a b\")\" | rm y", "rm"),
            ("sed -i s/a/b/ f", "sed -i"),
            ("sort -o f f", "sort -o"),
            ("dd if=a of=b", "dd of=b"),
            ("gzip f", "gzip"),
            ("awk '{print > \"x\"}' f", "awk {print > \"x\"}"),
            ("if true; then rm x; fi", "rm"),
            ("sudo cat f | wc", "sudo"),
            ("timeout 3 ssh host ls | wc", "ssh"),
        ] {
            assert_eq!(stops(text).as_deref(), Some(word), "{text}");
        }
    }

    #[test]
    fn what_only_reads_is_not_stopped() {
        for text in [
            "cat access.log | grep GET | cut -d\" \" -f7 | sort | uniq -c | sort -rn | head",
            "grep rm log | awk '$1 > 5' | wc -l",
            "gzip -dc f.gz | zstd -q -c | wc -c",
            "gzip <f | wc -c",
            "sort f 2>/dev/null | uniq 2>&1 >&2",
            "for x in rm mv; do grep $x f; done | sort",
            "find . -name '*.c' | xargs cat | wc",
            "echo 'a > b; rm x' | cat",
            "tar -tf a.tar | wc -l",
        ] {
            assert_eq!(stops(text), None, "{text}");
        }
    }
}
