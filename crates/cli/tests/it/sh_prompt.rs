//! The prompt of `hosepipe sh`, on a pseudo-terminal: the user's own shell, and what hosepipe adds to it.

use std::fs;
use std::path::Path;

use crate::common::pty::{Person, SOON, home, plain};
use crate::common::{skip, until};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const TAB: &str = "\t";
const HOSEPIPE: &str = env!("CARGO_BIN_EXE_hosepipe");

/// A shell that a test is about; `false` where it is not here, which a machine that tests every change does not allow.
pub(crate) fn there_is(shell: &str) -> bool {
    let there = std::process::Command::new("sh").args(["-c", &format!("command -v {shell}")]).output();
    let there = there.is_ok_and(|output| output.status.success());
    assert!(there || std::env::var_os("CI").is_none(), "{shell} is not installed");
    if !there {
        skip(&format!("{shell} is not installed"));
    }
    there
}

fn configure(home: &Path, text: &str) {
    let folder = home.join(".config/hosepipe");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("config.toml"), text).expect("written");
}

#[test]
fn the_shell_is_the_users_own() {
    let home = home();
    let bashrc = "PS1='mine> '\nalias ll='echo aliased'\ngreet() { echo hi $1; }\nPROMPT_COMMAND='count=$((count+1))'\n\
                  alias via='echo not this'\n";
    fs::write(home.path().join(".bashrc"), bashrc).expect("written");
    let mut person = Person::at_home(home.path());
    person.sees("mine> ");
    assert_eq!(person.answers("ll; greet you | tr a-z A-Z"), "aliased\nHI YOU\n");
    assert_eq!(
        person.answers("echo $0 $SHLVL-; [[ $count -gt 1 ]] && echo counted"),
        "/bin/bash 1-\ncounted\n"
    );
    // History, and its expansion.
    person.answers("echo f$((40+2))");
    assert!(person.answers("!!").ends_with("f42\n"));
    // What is set stays, and the status is the user's.
    person.answers("cd /usr; x=(1 2); set -o pipefail; (exit 5)");
    assert_eq!(person.answers("echo $? $PWD ${x[1]}; false | true"), "5 /usr 2\n");
    assert_eq!(person.answers("echo $? ${PIPESTATUS[*]}"), "1 1 0\n");
    // No program sees anything of hosepipe.
    let seen = person.answers("env -0 | grep -zic -e ^hosepipe_ -e ^ld_preload -e __hosepipe");
    assert_eq!(seen, "0\n");
    person.types(&format!("echo never{CTRL_C}"));
    person.settles("echo on", "on");
    person.types("exit 4\r");
    assert_eq!(person.leaves().code(), Some(4));
    let history = fs::read_to_string(home.path().join(".bash_history")).unwrap_or_default();
    assert!(history.contains("greet you") && !history.contains("__hosepipe_prompt"), "{history}");
}

#[test]
fn the_link_changes_where_it_is_chosen_and_the_prompt_shows_it() {
    let home = home();
    fs::write(home.path().join(".bashrc"), "PS1='mine> '\n").expect("written");
    let mut person = Person::at_home(home.path());
    assert_eq!(person.answers("via"), "pipe\n");
    let said = person
        .answers("for l in pipe tmpfile:order=sequential socketpair; do via $l; readlink /proc/self/fd/1 | cat; done; via");
    let kinds: Vec<&str> =
        said.lines().map(|line| line.split([':', '/']).next().unwrap_or_default()).collect();
    // A file's name begins with a slash.
    assert_eq!(kinds, ["pipe", "", "socket", "socketpair"], "{said}");
    person.sees("\n(socketpair) mine> ");
    // One that the user changes is marked as well, once.
    person.runs("PS1='other> '; via tmpfile:order=sequential");
    person.sees("\n(tmpfile:order=sequential) other> ");
    assert_eq!(person.answers("f() { via pipe; }; f; seq 3 | wc -l"), "3\n");
    person.sees("\nother> ");
    // What cannot be had changes nothing.
    let said = person.answers("via tmpfil; echo $?; via; via a b");
    assert!(said.contains("did you mean `tmpfile`?") && said.contains("links are pipe, "), "{said}");
    assert!(said.contains("\n1\npipe\nhosepipe: usage: via [LINK]\n"), "{said}");
    person.types(&format!("via socketp{TAB}\r"));
    person.sees("\n(socketpair) other> ");
    person.types(CTRL_D);
    assert_eq!(person.leaves().code(), Some(0));
}

#[test]
fn a_line_follows_a_long_pipeline_and_no_short_one() {
    let home = home();
    let mut person = Person::at_home(home.path());
    let said = person.answers("seq 3 | wc -l; sleep 0.6");
    assert!(!said.contains('·'), "{said}");
    let said = person.answers("printf 'no end' | { cat; sleep 0.6; }");
    assert!(said.contains("no end⏎ "), "{said}");
    assert!(said.contains(" ms · (in the shell) → (cat; sleep 0.6) · pipe\n"), "{said}");
    drop(person);
    configure(home.path(), "stats_above = 0\nlink = \"file\"\nmark_pipes = true\n");
    let mut person = Person::at_home(home.path());
    let said = person.answers("seq 10000 | sort | wc -l");
    assert!(said.contains("· seq →48.9 kB→ sort →48.9 kB→ wc · file\n"), "{said}");
    assert!(person.bytes().windows(4).any(|bytes| bytes == b"\x1b[2m"), "it is dim");
    let said = person.answers("stats; stats off; seq 3 | wc -l");
    assert_eq!(said, "on\n3\n");
    let said = person.answers("stats on; false | true");
    assert!(said.contains("· false") || said.contains("in the shell"), "{said}");
    person.runs("via pipe");
    person.sees("(pipe) ");
    // One that Ctrl-C ends needs no words.
    person.types("sleep 1001 | cat\r");
    person.runs_in_front("sleep 1001", "cat");
    person.types(CTRL_C);
    let said = person.sees_a_prompt();
    assert!(!said.contains('·'), "{said}");
    assert!(person.answers("stats maybe").contains("usage: stats [on|off]"));
}

#[test]
fn named_pipelines_are_listed_and_run() {
    let home = home();
    configure(home.path(), "[presets]\nthree = \"seq 3 | tac\"\n");
    let mut person = Person::at_home(home.path());
    let said = person.answers("presets");
    assert!(said.contains("  1  ps -ef | grep systemd | cut -c9-16"), "{said}");
    assert!(
        said.contains("  4  ls -l | grep ourpipe | wc") && said.contains("  three  seq 3 | tac"),
        "{said}"
    );
    assert_eq!(
        person.answers("preset three; preset 2; via tmpfile; stats off; preset 2"),
        "3\n2\n1\n117286\n117286\n"
    );
    let said = person.answers("preset 9; echo $?");
    assert_eq!(said, "hosepipe: there is no preset `9`: `presets` shows them\n1\n");
    assert!(person.answers("hosepipe_help").contains("  via [LINK] "));
    // bash's own help is not in its way.
    assert!(person.answers("help cd").starts_with("cd: cd "));
    // Much to remove, and yet nothing is left when it has ended.
    person.runs("(cd ~/hosepipe-*/ && seq 20000 | xargs touch)");
    person.types(CTRL_D);
    person.leaves();
    nothing_is_left(home.path());
}

/// Soon after the shell has ended, nothing of hosepipe's is left in a home that is its TMPDIR, too.
fn nothing_is_left(home: &Path) {
    until("the end of the server", SOON, || {
        let mut names = fs::read_dir(home).expect("there").flatten().map(|entry| entry.file_name());
        (!names.any(|name| name.to_string_lossy().starts_with("hosepipe"))).then_some(())
    });
}

#[test]
fn a_pipeline_is_compared_over_links() {
    let home = home();
    let mut person = Person::at_home(home.path());
    let said = person.answers("compare --trials 2 --via pipe,socketpair 'seq 4 | wc -l'");
    assert!(said.contains("\n socketpair ") && said.contains("same"), "{said}");
}

#[test]
fn a_configuration_says_how_it_begins_and_a_wrong_one_is_no_crash() {
    let home = home();
    configure(home.path(), "link = \"tmpfile\"\nprompt = \"[{link}] \"\n");
    let mut person = Person::before_the_prompt(home.path());
    person.sees("config.toml: `prompt` is no longer used: the prompt is your own shell's");
    person.sees("(tmpfile) ");
    drop(person);
    configure(home.path(), "links = 3\n");
    let mut person = Person::before_the_prompt(home.path());
    person.sees("config.toml: line 1: unknown field `links`");
    person.sees_a_prompt();
    drop(person);
    // A FIFO would be waited for, and a device read for ever.
    let file = home.path().join(".config/hosepipe/config.toml");
    for make in [&["mkfifo"][..], &["ln", "-s", "/dev/zero"]] {
        fs::remove_file(&file).expect("there");
        let made = std::process::Command::new(make[0]).args(&make[1..]).arg(&file).status().expect("runs");
        assert!(made.success());
        let mut person = Person::before_the_prompt(home.path());
        person.sees("config.toml: this is not a regular file; the defaults are used");
        person.sees_a_prompt();
    }
}

/// A shell: where its own file lies and what that says, a loop over links, and how a status is asked for.
struct Kind {
    name: &'static str,
    file: &'static str,
    own: &'static str,
    each: &'static str,
    status: &'static str,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "zsh",
        file: ".zshrc",
        own: "PS1='mine> '\nalias ll='echo aliased'\nprecmd_functions+=(counts)\ncounts() { let count+=1; }\n",
        each: "for l in pipe tmpfile; do via $l; readlink /proc/self/fd/1 | cat; done",
        status: "echo r$?r$count",
    },
    Kind {
        name: "fish",
        file: ".config/fish/config.fish",
        own: "function fish_prompt; echo \"mine$status> \"; end\nfunction ll; echo aliased; end\nset -g count 1\n",
        each: "for l in pipe tmpfile; via $l; readlink /proc/self/fd/1 | cat; end",
        status: "echo r$status\"r\"$count",
    },
    Kind {
        name: "dash",
        file: ".shinit",
        own: "PS1='mine> '\nalias ll='echo aliased'\ncount=1\n",
        each: "for l in pipe tmpfile; do via $l; readlink /proc/self/fd/1 | cat; done",
        status: "echo r$?r$count",
    },
    Kind {
        name: "yash",
        file: ".yashrc",
        own: "PS1='mine> '\nalias ll='echo aliased'\ncount=1\n",
        each: "for l in pipe tmpfile; do via $l; readlink /proc/self/fd/1 | cat; done",
        status: "echo r$?r$count",
    },
];

#[test]
fn other_shells_are_the_users_own_as_well() {
    for kind in KINDS.iter().filter(|kind| there_is(kind.name)) {
        let name = kind.name;
        let home = home();
        let file = home.path().join(kind.file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(&file, kind.own).expect("written");
        configure(home.path(), "stats_above = 0.3\n");
        let own_file = format!("ENV={}", file.display());
        let program = ["env", &own_file, &format!("SHELL=/usr/bin/{name}"), HOSEPIPE, "sh"];
        let mut person = Person::before(home.path(), &program);
        person.sees("mine");
        person.types("ll\r");
        person.sees_line("aliased");
        person.types("false\r");
        person.sees("> ");
        person.types(&format!("{}\r", kind.status));
        person.waits("the status", |seen| plain(seen).contains("r1r"));
        person.types(&format!("{}\r", kind.each));
        person.waits("two links", |seen| {
            let text = plain(seen);
            text.matches("pipe:[").count() == 2 && text.contains("(tmpfile) mine")
        });
        person.types("sleep 0.4 | cat\r");
        person.waits("the line", |seen| {
            let text = plain(seen);
            text.contains(" ms · sleep →") && text.contains("→ cat · tmpfile\n")
        });
        person.sees("(tmpfile) mine");
        // What the shell's own file was found by is again what it was.
        person.types(
            "env | grep -c -e '^ENV=.*shinit' -e '^ENV=.*rc' -e '^ENV=.*fish' -e ^ZDOTDIR= -e hosepipe-\r",
        );
        person.sees_line("1");
        person.types("exit 3\r");
        assert_eq!(person.leaves().code(), Some(3), "{name}");
        nothing_is_left(home.path());
    }
}

/// Expected: whatever the user has set, what is added shows nothing of itself, and no shell that is started inside inherits it.
#[test]
fn what_is_added_is_neither_shown_nor_inherited() {
    for (shell, file, inner) in [("bash", ".bashrc", "bash --norc"), ("zsh", ".zshrc", "zsh -f")] {
        if !there_is(shell) {
            continue;
        }
        let home = home();
        let own = "set -a; PS1='mine> '; PROMPT_COMMAND='count=1'; export PROMPT_COMMAND PS1\n\
                   alias local='echo local' read='echo read' emulate='echo emulate' echo='echo aliased'\n";
        fs::write(home.path().join(file), own).expect("written");
        let mut person = Person::before(home.path(), &[HOSEPIPE, "sh", "--shell", shell, "--via", "tmpfile"]);
        let mark = if shell == "bash" { "(tmpfile) mine> " } else { "mine> " };
        person.sees(mark);
        person.types("command env | grep -ac -e BASH_FUNC -e __hosepipe_ba -e __hosepipe_sh -e __hosepipe_text -e __hosepipe_mark=\r");
        person.sees_line("0");
        person.types("set -xu\r");
        person.types(": two; printf 'was %s\\n' here\r");
        person.sees_line("was here");
        person.sees(mark);
        let said = person.text();
        assert!(!said.contains("hosepipe") && !said.contains("aliased"), "{shell}: {said}");
        person.types("set +xu\r");
        person.sees(mark);
        person.types(&format!("{inner}\r"));
        person.sees("> ");
        person.types("printf 'inside %s\\n' $(( 40 + 2 ))\r");
        person.sees_line("inside 42");
        person.types("\r");
        person.sees("> ");
        let said = person.text();
        assert!(
            !said.contains("not found") && !said.contains("hosepipe") && !said.contains("tmpfile"),
            "{inner}: {said}"
        );
    }
}

/// A restricted bash writes to no path, and zsh's trap for DEBUG sees commands of hooks.
#[test]
fn a_restricted_shell_and_a_debug_trap_stay_quiet() {
    let home = home();
    fs::write(home.path().join(".bashrc"), "PS1='mine> '\n").expect("written");
    let mut person = Person::at_home(home.path());
    person.runs("set -r");
    assert_eq!(person.answers("seq 3 | wc -l"), "3\n");
    let shown = person.text();
    assert!(!shown.contains("restricted"), "{shown}");
    if there_is("zsh") {
        fs::write(home.path().join(".zshrc"), "PS1='mine> '\n").expect("written");
        let seen = |program: &[&str]| {
            let mut person = Person::before(home.path(), program);
            person.sees("mine> ");
            for line in ["trap 'let seen+=1' DEBUG", "seen=0", "print se''en $seen."] {
                person.types(&format!("{line}\r"));
                person.sees("mine> ");
            }
            person.sees("seen ");
            let shown = person.text();
            let number =
                shown.rsplit("seen ").next().and_then(|rest| rest.split('.').next()).map(str::to_owned);
            number.and_then(|number| number.parse::<u32>().ok()).expect("a number")
        };
        // The two lists with which the hook begins.
        assert_eq!(seen(&[HOSEPIPE, "sh", "--shell", "zsh"]), seen(&["zsh"]) + 2);
    }
}

/// The file of the whole machine may say where zsh's others are; a file of ENV that is not there is no mistake; yash looks below
/// XDG_CONFIG_HOME, too.
#[test]
fn the_users_files_are_found_where_the_shell_finds_them() {
    let home = home();
    let elsewhere = home.path().join("else where/yash");
    fs::create_dir_all(&elsewhere).expect("made");
    for file in [".zshrc", ".yashrc", "else where/.zshrc", "else where/yash/rc"] {
        let name = if file.starts_with("else") { "right" } else { "wrong" };
        fs::write(home.path().join(file), format!("PS1='{name}> '\n")).expect("written");
    }
    let root = "[[ -n $ZDOTDIR ]] || ZDOTDIR=~/'else where'\n";
    fs::write(home.path().join("zshenv"), root).expect("written");
    let config = format!("XDG_CONFIG_HOME={}", home.path().join("else where").display());
    let bound = "mount --bind ~/zshenv /etc/zsh/zshenv && exec \"$@\"";
    let apart = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];
    let tried = std::process::Command::new(apart[0]).args(&apart[1..]).args(["mount --bind / /mnt"]).output();
    let in_namespace =
        tried.is_ok_and(|tried| tried.status.success()) && Path::new("/etc/zsh/zshenv").exists();
    let zsh = [&apart[..], &[bound, "sh", HOSEPIPE, "sh", "--shell", "zsh"]].concat();
    let dash = ["env", "ENV=/nonexistent", "PS1=right> ", HOSEPIPE, "sh", "--shell", "dash"];
    let yash = ["env", &config, HOSEPIPE, "sh", "--shell", "yash"];
    for (shell, program) in [("zsh", &zsh[..]), ("dash", &dash), ("yash", &yash)] {
        if !there_is(shell) || (shell == "zsh" && !in_namespace) {
            continue;
        }
        let mut person = Person::before(home.path(), program);
        person.sees("right> ");
        assert!(!person.text().contains("nonexistent"), "{shell}: {}", person.text());
        person.types("via tmpfile\r");
        person.sees("(tmpfile) right> ");
    }
}

/// What lies in a folder and those in it: paths, and what the files hold, line ends as blanks.
fn tree(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("there").flatten() {
        if entry.path().is_dir() {
            let name = entry.file_name();
            let below = tree(&entry.path()).into_iter();
            found.extend(below.map(|path| format!("{}/{path}", name.to_string_lossy())));
        } else {
            let text = fs::read_to_string(entry.path()).expect("text").replace('\n', " ");
            found.push(format!("{}: {text}", entry.file_name().to_string_lossy()).trim_end().to_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn what_flows_is_kept_line_by_line() {
    for shell in ["bash", "zsh", "fish", "dash", "yash"].into_iter().filter(|shell| there_is(shell)) {
        let home = home();
        for file in [".zshrc", ".yashrc"] {
            fs::write(home.path().join(file), "").expect("written");
        }
        let before = home.path().join("there/2");
        fs::create_dir_all(&before).expect("made");
        fs::write(before.join("1-seq"), "precious").expect("written");
        let mut person =
            Person::before(home.path(), &[HOSEPIPE, "sh", "--shell", shell, "--via", "socketpair"]);
        person.sees("(socketpair) ");
        let [each, done] = if shell == "fish" { ["", "end"] } else { ["do ", "done"] };
        // Each line, and what is then in the folder.
        let mut number = 0;
        let mut line = |line: &str| {
            number += 1;
            person.types(&format!("{line}; echo this was {number}\r"));
            // What is typed early stands before the prompt.
            let printed =
                |shown: &str| shown.ends_with(&format!("this was {number}")) && !shown.contains("echo");
            person.waits(line, |seen| plain(seen).lines().any(printed));
        };
        line("keep there; keep");
        line("seq 3 | tac");
        line("cd there; seq 2 | sort | wc -l; seq 4 | tac");
        line(&format!("for i in 1 2; {each}seq $i | tac; {done}"));
        line("keep off; seq 5 | tac");
        line("keep .; echo hi | tac");
        line("via tmpfile; seq 6 | tac");
        line("sleep 1 | cat & seq 7 | tac");
        line("wait");
        line("keep 2/1-seq/below; keep");
        person.types("exit 0\r");
        assert_eq!(person.leaves().code(), Some(0), "{shell}");
        // fish has no process of its own for what it does itself.
        let by_shell = if shell == "fish" { "1.1-stage" } else { "1-shell" };
        let expected = [
            "1/1-seq: 1 2 3",
            "2/1-seq: precious",
            "3/1.1-seq: 1 2",
            "3/1.2-sort: 1 2",
            "3/2.1-seq: 1 2 3 4",
            "4/1.1-seq: 1",
            "4/2.1-seq: 1 2",
            &format!("5/{by_shell}: hi"),
            "6/1-seq: 1 2 3 4 5 6",
            "7/1-seq: 1 2 3 4 5 6 7",
            "7/2.1-sleep:",
        ];
        assert_eq!(tree(&home.path().join("there")), expected, "{shell}");
        nothing_is_left(home.path());
    }
}

#[test]
fn a_paste_of_many_lines_and_bytes_that_are_no_text_come_through() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs(r"printf '\377\376\200z' | cat");
    assert!(person.bytes().windows(4).any(|bytes| bytes == b"\xff\xfe\x80z"));
    let lines: String = (0..200).map(|line| format!("line {line}\n")).collect();
    person.types(&format!("\x1b[200~cat <<'END' | wc -l\n{lines}END\x1b[201~\r"));
    person.sees_line("200");
}
