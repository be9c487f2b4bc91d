//! Nothing that comes from outside steers the terminal: not from records, programs, the configuration or arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::common::pty::{Person, home};
use crate::common::{Done, Lab};

/// Sets a window's title, paints in colours that are not ours, turns the line round; as ESC and as C1 have it.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[5;31m\u{9b}7m\u{202e}\r";

/// What is left of it where it was made visible, and in a command as a shell reads it back.
const VISIBLE: [&str; 2] = ["␛]0;owned␇", r"\033]0;owned\0"];

/// Panics if any of it arrived unchanged; only our own colours (ECMA-48, SGR), and what draws a bar, may be in it.
fn assert_harmless(what: &str, shown: &str) {
    let shown = shown.replace("\r\u{1b}[2K", "");
    let mut rest = shown.as_str();
    while let Some((_, sequence)) = rest.split_once('\u{1b}') {
        let end = sequence.find(|c: char| !matches!(c, '[' | ';' | '0'..='9')).unwrap_or(sequence.len());
        let code = &sequence[..end];
        assert!(sequence[end..].starts_with('m') && code != "[5;31", "{what}: {shown:?}");
        rest = &sequence[end..];
    }
    // A terminal ends its lines with both.
    let lone_return = shown.replace("\r\n", "\n").contains('\r');
    assert!(!lone_return && !shown.contains(['\u{7}', '\u{9b}', '\u{202e}']), "{what}: {shown:?}");
}

/// `hosepipe ARGS` on a terminal that shows colours; both streams are its standard output.
fn on_a_terminal(lab: &Lab, args: &[&str]) -> Done {
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', "'\\''"));
    let words = [&[env!("CARGO_BIN_EXE_hosepipe")], args].concat();
    let line = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let mut command = lab.wrapped(&["bash", "-c", "exec script -qec \"$1\" /dev/null", "bash", &line], &[]);
    command.env("TERM", "xterm-256color");
    lab.finish(command)
}

/// Runs it on a terminal and without one; none of it may arrive, and it must have been there to be shown.
fn assert_shown_harmless(lab: &Lab, args: &[&str]) {
    let plain = lab.run(args);
    let shown = format!("{}{}", plain.stdout, plain.stderr);
    assert!(!shown.contains('\u{1b}'), "{args:?}: {shown:?}");
    assert_harmless(&args.join(" "), &shown);
    assert!(VISIBLE.iter().any(|form| shown.contains(form)), "{args:?}: {shown}");
    let done = on_a_terminal(lab, args);
    assert_harmless(&args.join(" "), &done.stdout);
    assert!(done.stdout.contains("owned"), "{args:?}: {}", done.stdout);
}

/// The record with hostile text in every field that takes any text, and what is said of each that does not.
fn poisoned(text: &str) -> (String, Vec<String>) {
    let mut record: Value = serde_json::from_str(text).expect("JSON");
    let mut refused = Vec::new();
    for pointer in strings_of(&record, "") {
        let field = record.pointer_mut(&pointer).expect("a field");
        let Value::String(before) = field.clone() else { continue };
        *field = Value::String(format!("{before}<img onerror=x>{HOSTILE}"));
        let text = record.to_string();
        if report::read::read("record.json", &text).is_err() {
            refused.push(text);
            *record.pointer_mut(&pointer).expect("a field") = Value::String(before);
        }
    }
    (record.to_string(), refused)
}

/// JSON pointers to all texts, of each list only to those of its first few entries.
fn strings_of(value: &Value, at: &str) -> Vec<String> {
    const ENTRIES: usize = 3;
    match value {
        Value::String(_) => vec![at.to_owned()],
        Value::Array(list) => {
            let entries = list.iter().enumerate().take(ENTRIES);
            entries.flat_map(|(index, entry)| strings_of(entry, &format!("{at}/{index}"))).collect()
        }
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, field)| strings_of(field, &format!("{at}/{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

fn assert_harmless_as_a_record(lab: &Lab, name: &str, text: &str) {
    let (text, refused) = poisoned(text);
    fs::write(lab.here(name), text).expect("written");
    assert_shown_harmless(lab, &["report", name]);
    for format in ["--html", "--md", "--csv"] {
        let text = lab.run(&["report", name, format, "-"]).expect_code(0).stdout;
        let is_harmless = !text.contains(['\u{1b}', '\u{7}', '\0', '\r', '\u{9b}', '\u{202e}']);
        assert!(is_harmless && VISIBLE.iter().any(|form| text.contains(form)), "{name} {format}: {text}");
        // In a code span of Markdown a tag is text.
        let spans = format == "--md" && !text.contains(" <img") && !text.contains("\n<img");
        assert!(format == "--csv" || spans || !text.contains("<img onerror"), "{name} {format}: {text}");
    }
    for text in refused.iter().take(2).chain(refused.last()) {
        fs::write(lab.here(name), text).expect("written");
        assert_shown_harmless(lab, &["report", name]);
    }
}

#[test]
fn records_do_not_steer_the_terminal() {
    let lab = Lab::new();
    let quick = ["bench", "pipe", "fifo", "--count", "10", "--trials", "2", "--json", "-"];
    assert_harmless_as_a_record(&lab, "bench.json", &lab.run(&quick).expect_code(0).stdout);
    let compare = ["compare", "--via", "pipe,bash", "--trials", "1", "--json", "-", "true | true"];
    assert_harmless_as_a_record(&lab, "compare.json", &lab.run(&compare).expect_code(0).stdout);
    lab.run(&["run", "--json", "run.json", "seq 9 | wc -l"]).expect_code(0);
    let run = fs::read_to_string(lab.here("run.json")).expect("a record");
    assert_harmless_as_a_record(&lab, "run.json", &run);
    for study in ["stover", "comp517"] {
        let path = format!("{}/../../records/{study}.json", env!("CARGO_MANIFEST_DIR"));
        assert_harmless_as_a_record(&lab, "study.json", &fs::read_to_string(path).expect("a record"));
    }
}

#[test]
fn a_worker_does_not_steer_the_terminal() {
    let lab = Lab::new();
    for how in ["exit 1", "printf '%s\\n' \"$said\" >> \"$5\""] {
        let script = format!("#!/bin/sh\nsaid='{HOSTILE}'\necho \"$said\" >&2\n{how}\n");
        fs::write(lab.here("worker"), script).expect("written");
        fs::set_permissions(lab.here("worker"), fs::Permissions::from_mode(0o755)).expect("chmod");
        assert_shown_harmless(&lab, &["bench", "--worker", "./worker", "--bytes", "1MiB", "--trials", "1"]);
    }
}

#[test]
fn arguments_do_not_steer_the_terminal() {
    let lab = Lab::new();
    fs::write(lab.here(HOSTILE), "no record").expect("written");
    let of = |option: &str| format!("{option}{HOSTILE}");
    for args in [
        &["bench", &of("pipe")][..],
        &["bench", "--place", HOSTILE],
        &["bench", "--json", &of("/nowhere/"), "null"],
        &["bench", &of("--")],
        &[HOSTILE],
        &["run", "--via", HOSTILE, "true"],
        &["run", "--shell", HOSTILE, "true"],
        &["compare", &format!("true '{HOSTILE}' | | true")],
        &["run", "--stats", &format!("/bin/true '{HOSTILE}' | true")],
        &["sh", "--via", HOSTILE, "-c", "true"],
        &["sh", "--shell", HOSTILE, "-c", "true"],
        &["run", "--via", &of("file:dir=/nowhere/"), "true | true"],
        &["run", "--keep", &of("/dev/null/"), "true | true"],
        &["run", "--via", &of("tmpfile:dir="), "true | true"],
        &["report", &of("absent")],
        &["report", HOSTILE],
        &["gen", "--payload", &of("file:absent")],
        &["workers", HOSTILE],
        &["reproduce", "stover", "--part", HOSTILE],
        &["compare", "--via", "pipe", "--trials", "1", &format!("true '{HOSTILE}' | true")],
        &["compare", "--via", "pipe", "--trials", "1", "--md", "-", &format!("true '{HOSTILE}' | true")],
    ] {
        assert_shown_harmless(&lab, args);
    }
    // What goes to a program is as the format has it; what goes to a terminal is not.
    for format in ["--csv", "--json"] {
        let text = format!("true '{HOSTILE}' | true");
        let args = ["compare", "--via", "pipe", "--trials", "1", format, "-", &text];
        assert_harmless(format, &on_a_terminal(&lab, &args).stdout);
    }
}

/// Happened: a line within a name looked like a message of its own.
#[test]
fn a_name_of_two_lines_makes_no_message() {
    let lab = Lab::new();
    let of = |words: &str| format!("{words}x\nhosepipe: all is well");
    for args in [
        &["report", &of("")][..],
        &["diff", &of(""), &of("")],
        &["run", "--keep", &of("/dev/null/"), "true | true"],
        &["run", "--via", &of("file:dir=/nowhere/"), "true | true"],
        &["run", "--via", &of("ssh:"), "true | true"],
        &["sh", "--via", &of("ssh:"), "-c", "true"],
        &["bench", "tcp", "--peer", &of("")],
        &["peer", "--listen", "127.0.0.1:0", "--token-file", &of("")],
        &["gen", "--payload", &of("file:")],
        &["spread", "--map", "wc", &of("")],
        &["spread", "--map", "wc", "--work", &of("/dev/null/"), "/proc/version"],
        &["fleet", "--rank", "0", "--nodes", "2", "--toward", "127.0.0.1", "--folder", &of("/dev/null/")],
        &[&of("")],
    ] {
        let done = lab.run(args);
        let false_line = done.stderr.lines().any(|line| line.starts_with("hosepipe: all"));
        assert!(done.code() != 0 && !false_line, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("all is well"), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_configuration_and_names_do_not_steer_the_terminal_at_a_prompt() {
    let home = home();
    let folder = home.path().join(".config/hosepipe");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("config.toml");
    let escapes = "\\u001b]0;owned\\u0007";
    fs::write(&file, format!("link = \"{escapes}\"\n")).expect("written");
    let shown = |person: &Person| String::from_utf8_lossy(&person.bytes()).into_owned();
    let steers = |person: &Person| shown(person).contains("\u{1b}]0;owned");
    let mut person = Person::before_the_prompt(home.path());
    person.sees("link: unknown");
    person.sees_a_prompt();
    assert!(!steers(&person), "{}", shown(&person));
    drop(person);
    let presets = format!("stats_above = 0\n[presets]\n\"{escapes}\" = \"true {escapes}\"\n");
    fs::write(&file, presets).expect("written");
    fs::write(home.path().join(".bashrc"), "x=$'\\e]0;owned\\a'\n").expect("written");
    let mut person = Person::at_home(home.path());
    for line in [
        "presets",
        "preset no$x",
        "via \"$x\"",
        "via \"tmpfile:dir=/nowhere/$x\"",
        "mkdir \"$x\"; via \"file:dir=$x\"; via",
        "cp /bin/true \"./$x/true\"; seq 3 | \"./$x/true\"",
        "keep \"$x\"; keep; keep \"/dev/null/$x\"",
        "rm -r \"$x\"; seq 3 | cat",
        "compare --via pipe --trials 1 \"true '$x' | | true\"",
    ] {
        let said = person.answers(line);
        assert!(said.contains("owned") && !steers(&person), "{line}: {said:?}");
    }
}
