//! Help and completions: what they offer is there, what is hidden is not, and all of it can be read at any width.

use crate::common::{Lab, registry, skip};

#[test]
fn every_mechanism_of_the_list_is_in_the_completions_and_in_the_text() {
    let lab = Lab::new();
    let script = |shell| lab.run(&["completions", shell]).expect_code(0).stdout;
    let texts = [script("bash"), script("zsh"), lab.run(&["list"]).expect_code(0).stdout];
    for entry in registry(&lab) {
        for text in &texts {
            assert!(text.contains(&entry.name), "no {} in: {text}", entry.name);
        }
        let text = &texts[2];
        for option in &entry.options {
            assert!(text.contains(&option.name), "no {}:{} in: {text}", entry.name, option.name);
        }
    }
    std::fs::write(lab.here("completions.bash"), &texts[0]).expect("write");
    let checked = std::process::Command::new("bash").arg("-n").arg(lab.here("completions.bash")).status();
    assert!(checked.expect("bash runs").success());
}

/// What a shell offers at the end of a line, with the completions as it would read them; `None` where it is not here.
fn offered(lab: &Lab, shell: &str, line: &str) -> Option<String> {
    let file = lab.here(&format!("completions.{shell}"));
    std::fs::write(&file, lab.run(&["completions", shell]).expect_code(0).stdout).expect("written");
    let script = match shell {
        "fish" => "source $argv[1]; or exit 9; complete -C $argv[2]",
        _ => {
            "source \"$1\" || exit 9; COMP_LINE=$2; COMP_POINT=${#2}; COMP_WORDS=($2); \
             [[ $2 == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
             _hosepipe hosepipe \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"; printf '%s\\n' \"${COMPREPLY[@]}\""
        }
    };
    let mut command = std::process::Command::new(shell);
    command.env("HOME", lab.here("")).args(["-c", script]);
    let file = file.display().to_string();
    command.args(if shell == "fish" { vec![&*file, line] } else { vec![shell, &file, line] });
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            skip(&format!("no {shell} here: {error}"));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{shell}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn shells_offer_links_and_studies_and_nothing_that_is_hidden() {
    let lab = Lab::new();
    for shell in ["bash", "fish"] {
        for (line, there, absent) in [
            ("hosepipe run --via ", &["pipe", "socketpair", "tmpfile"][..], "shm-ring"),
            ("hosepipe sh --via ", &["pipe", "socketpair"], "bash"),
            ("hosepipe compare --via ", &["shell", "socketpair"], "shm-ring"),
            ("hosepipe reproduce ", &["bradford", "comp517", "kernel-pipe", "stover"], "Cargo"),
            ("hosepipe completions ", &["bash", "elvish", "fish", "nushell", "zsh"], "Cargo"),
            ("hosepipe ", &["bench", "boost", "sh"], "__"),
            ("hosepipe run --", &["--via", "--keep"], "--outcome"),
            ("hosepipe run --", &["--stats"], "--definitions"),
            ("hosepipe compare --", &["--trials"], "--state"),
            ("hosepipe reproduce --", &["--scale"], "--figures"),
        ] {
            let Some(offered) = offered(&lab, shell, line) else { break };
            let words: Vec<&str> = offered.lines().filter_map(|line| line.split('\t').next()).collect();
            assert!(there.iter().all(|word| words.contains(word)), "{shell}: {line}: {offered}");
            assert!(!words.iter().any(|word| word.starts_with(absent)), "{shell}: {line}: {offered}");
        }
    }
    let zsh = lab.run(&["completions", "zsh"]).expect_code(0).stdout;
    std::fs::write(lab.here("completions.zsh"), &zsh).expect("written");
    match std::process::Command::new("zsh").arg("-n").arg(lab.here("completions.zsh")).output() {
        Ok(read) => assert!(read.status.success() && read.stderr.is_empty(), "{read:?}"),
        Err(error) => skip(&format!("no zsh here: {error}")),
    }
    for hidden in ["--outcome", "--definitions", "--state", "--figures", "__prompt", "__part"] {
        assert!(!zsh.contains(hidden), "{hidden}: {zsh}");
    }
    assert!(
        zsh.contains("(bradford comp517 kernel-pipe stover)") && zsh.contains(":LINK:(pipe fifo"),
        "{zsh}"
    );
}

/// Expected: as in the other shells.
/// Happened: the generator for fish leaves out the values of arguments without an option (SPEC).
#[test]
fn every_mechanism_of_the_list_is_in_the_completions_of_fish() {
    let lab = Lab::new();
    let script = lab.run(&["completions", "fish"]).expect_code(0).stdout;
    let missing: Vec<_> = registry(&lab).into_iter().filter(|entry| !script.contains(&entry.name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    if let Some(offered) = offered(&lab, "fish", "hosepipe bench pip") {
        assert!(offered.contains("pipe\tthe kernel's pipe"), "{offered}");
    }
    // Expected: programs, and then what they take themselves. Happened: neither.
    for (line, there) in [("hosepipe boost gzi", "gzip"), ("hosepipe boost gzip -", "-9")] {
        let Some(offered) = offered(&lab, "fish", line) else { break };
        assert!(offered.lines().any(|line| line.starts_with(there)), "{line}: {offered}");
    }
}

/// Expected: the closing words of help are wrapped at the terminal's width, and comments of examples stay beside or below them.
/// Happened: at 80 columns each line was broken a second time, and comments went on at the left margin.
#[test]
fn the_closing_words_of_help_are_wrapped_once() {
    let lab = Lab::new();
    for command in COMMANDS_WITH_LONG_HELP {
        let mut program = lab.command(&[command, "--help"]);
        program.env("COLUMNS", "80");
        let help = lab.finish(program).expect_code(0).stdout;
        let (_, closing) = help.split_once("\nExamples:\n").expect("examples");
        let (examples, paragraphs) = closing.split_once("\n\n").expect("a paragraph behind them");
        let is_begin = |line: &str| line.starts_with("  ") && !line.starts_with("   ");
        let is_comment = |line: &str| line.starts_with("      ");
        assert!(examples.lines().all(|line| is_begin(line) || is_comment(line)), "{command}: {examples}");
        for pair in paragraphs.lines().collect::<Vec<_>>().windows(2) {
            let [line, next] = [pair[0], pair[1]];
            let word = next.split(' ').next().unwrap_or_default().chars().count();
            let is_list = |line: &str| line.ends_with(':') || line.starts_with("  ");
            let ends =
                line.is_empty() || next.is_empty() || next.starts_with("Exit status:") || is_list(line);
            let is_full = line.chars().count() + 1 + word > 80;
            assert!(ends || is_full, "{command}: there is room behind: {line}");
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
}

/// Those whose help ends with paragraphs.
const COMMANDS_WITH_LONG_HELP: [&str; 14] = [
    "bench",
    "recommend",
    "run",
    "top",
    "compare",
    "diff",
    "boost",
    "spread",
    "fleet",
    "peer",
    "sh",
    "workers",
    "gen",
    "sink",
];

#[test]
fn the_list_of_links_has_what_is_not_as_with_a_pipe_and_nothing_else() {
    let lab = Lab::new();
    let text = lab.run(&["list", "--links"]).expect_code(0).stdout;
    for said in
        ["socketpair ", "[ -p /dev/stdin ]", "Connection reset by peer", "ends=pipe", "order=sequential"]
    {
        assert!(
            text.split_whitespace().collect::<Vec<_>>().join(" ").contains(said.trim()),
            "{said}: {text}"
        );
    }
    let list = lab.run(&["list", "--links", "--json"]).expect_code(0).stdout;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list).expect("JSON");
    let named = |name: &str| list.iter().find(|entry| entry["name"] == name);
    assert!(named("shm-ring").is_none());
    assert_eq!(named("pipe").expect("a link")["differs_from_pipe"], "");
    let differs = named("tcp").expect("a link")["differs_from_pipe"].to_string();
    assert!(differs.contains("[ -p /dev/stdin ]") && !differs.contains("reset"), "{differs}");
}

#[test]
fn help_has_the_outputs_under_a_heading_of_their_own() {
    let lab = Lab::new();
    for (command, options) in [
        ("bench", &["--json", "--csv", "--md", "--html"][..]),
        ("compare", &["--json", "--csv", "--md", "--html"]),
        ("reproduce", &["--json", "--csv", "--md", "--html"]),
        ("report", &["--json", "--csv", "--md", "--html"]),
        ("run", &["--json", "--csv", "--md", "--html", "--keep"]),
        ("sink", &["--json"]),
        ("list", &["--json", "--md"]),
        ("workers", &["--json"]),
        ("doctor", &["--json"]),
    ] {
        let help = lab.run(&[command, "-h"]).expect_code(0).stdout;
        let (before, outputs) = help.split_once("\nRecords and other outputs:\n").expect("a heading");
        for option in options.iter().map(|option| format!("\n      {option}")) {
            assert!(format!("\n{outputs}").contains(&option) && !before.contains(&option), "{help}");
        }
    }
}

#[test]
fn every_command_has_help_and_every_one_is_in_the_help_of_all() {
    let lab = Lab::new();
    let all = lab.run(&["--help"]).expect_code(0).stdout;
    let commands = all.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for expected in ["bench", "list", "gen", "sink", "doctor", "completions"] {
        assert!(commands.contains(&expected), "{commands:?}");
    }
    for command in commands.into_iter().filter(|command| *command != "help") {
        let long = lab.run(&[command, "--help"]).expect_code(0).stdout;
        assert!(long.contains("Usage: hosepipe") && long.contains("Examples:"), "{command}: {long}");
        lab.run(&[command, "-h"]).expect_code(0);
        assert_eq!(lab.run(&["help", command]).expect_code(0).stdout, long, "{command}");
    }
    let version = lab.run(&["--version"]).expect_code(0).stdout;
    assert!(version.starts_with(concat!("hosepipe ", env!("CARGO_PKG_VERSION"))), "{version}");
    // The commit where it is known, and what it was built for.
    let inner =
        version.split_once('(').and_then(|(_, rest)| rest.trim_end().strip_suffix(')')).expect("brackets");
    assert!(inner.split(", ").any(|word| word.contains("-linux-")), "{version}");
    assert_eq!(lab.run(&["-V"]).expect_code(0).stdout, version);
}
