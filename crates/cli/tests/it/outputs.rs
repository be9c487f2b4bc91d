//! What the commands print agrees: record, CSV, Markdown, table, plan, list, completions, help.

use std::time::{Duration, Instant};

use crate::common::pty::{Person, home};
use crate::common::{Lab, read_record, registry, skip};
use model::{ErrorKind, Role};
use serde_json::Value;

const QUICK: [&str; 13] = [
    "pipe",
    "sysv-msgq",
    "tmpfile",
    "null",
    "memcpy",
    "--block",
    "1,64KiB",
    "--count",
    "4",
    "--trials",
    "2",
    "--place",
    "any",
];

/// Rows of CSV text, quotes undone.
pub(crate) fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let row = rows.last_mut().expect("a row");
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                row.last_mut().expect("a cell").push('"');
                letters.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            '\r' if !quoted => {}
            other => row.last_mut().expect("a cell").push(other),
        }
    }
    rows.retain(|row| row.len() > 1);
    rows
}

#[test]
fn all_formats_of_one_run_agree() {
    let lab = Lab::new();
    let args = ["bench", "--json", "run.json", "--csv", "run.csv", "--md", "run.md"];
    let done = lab.run(&[&args[..], &QUICK].concat()).expect_code(0);
    let file = |name: &str| std::fs::read_to_string(lab.here(name)).expect(name);
    let record = read_record(&file("run.json"));
    let rows = csv_rows(&file("run.csv"));
    assert_eq!(rows.len(), 1 + record.cases.len(), "one line for the names and one for each case");
    let column =
        |name: &str| rows[0].iter().position(|title| title == name).unwrap_or_else(|| panic!("{name}"));
    let (spec, block, samples) = (column("spec"), column("block_bytes"), column("samples"));
    let (median, error) = (column("throughput_median_bytes_per_s"), column("error"));
    for (row, case) in rows[1..].iter().zip(&record.cases) {
        assert_eq!(row.len(), rows[0].len());
        assert_eq!(row[spec], case.spec.to_string());
        assert_eq!(row[block], case.block_bytes.to_string());
        assert_eq!(row[samples], case.samples.len().to_string());
        let expected = case.throughput.as_ref().map(|t| format!("{:.0}", t.median_bytes_per_s));
        assert_eq!(row[median], expected.unwrap_or_default());
        assert_eq!(row[error], case.error.as_ref().map(|error| error.message.clone()).unwrap_or_default());
    }
    let markdown = file("run.md");
    for text in [&done.stdout, &markdown] {
        for spec in ["pipe", "sysv-msgq", "tmpfile", "memcpy", "null"] {
            assert!(text.contains(spec), "no {spec} in: {text}");
        }
        assert!(text.contains("kernel.msgmax"), "the reason of the row that has no figures: {text}");
    }
    assert!(markdown.lines().any(|line| line.starts_with('|')), "{markdown}");
}

#[test]
fn each_format_can_go_to_standard_output_and_is_alone_there() {
    let lab = Lab::new();
    for (flag, begins) in [("--json", "{"), ("--csv", "mechanism,spec,")] {
        let done = lab.run(&[&["bench", flag, "-"], &QUICK[..]].concat()).expect_code(0);
        assert!(done.stdout.starts_with(begins), "{}", done.stdout);
        assert_eq!(done.stderr, "", "no progress where there is no terminal");
        match flag {
            "--json" => drop(read_record(&done.stdout)),
            _ => assert!(csv_rows(&done.stdout).windows(2).all(|pair| pair[0].len() == pair[1].len())),
        }
    }
    let done = lab.run(&[&["bench", "--md", "-"], &QUICK[..]].concat()).expect_code(0);
    assert!(done.stdout.contains("| ---") || done.stdout.contains("|---"), "{}", done.stdout);
}

/// Expected: a record on standard output can be read. Happened: what the pipeline printed stood before it.
#[test]
fn what_is_run_prints_beside_a_record_on_standard_output() {
    let lab = Lab::new();
    std::fs::write(lab.here("in"), "hi\n").expect("an input");
    for args in [
        &["run", "--json", "-", "echo hi | cat"][..],
        &["boost", "--quiet", "--json", "-", "echo", "hi"],
        &["spread", "--json", "-", "--map", "cat", "--reduce", "cat", "in"],
    ] {
        let done = lab.run(args).expect_code(0);
        assert!(serde_json::from_str::<Value>(&done.stdout).is_ok(), "{args:?}: {}", done.stdout);
        assert_eq!(done.stderr, "hi\n", "{args:?}");
    }
}

/// The names of DESIGN.md, section Records.
#[test]
fn a_record_has_the_fields_that_the_contract_names() {
    let lab = Lab::new();
    let done = lab.bench(&QUICK).expect_code(0);
    let record: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let assert_has = |value: &Value, names: &str| {
        for name in names.split_whitespace() {
            assert!(value.get(name).is_some(), "no `{name}` in {value}");
        }
    };
    assert_eq!(record["schema"], "hosepipe/1");
    assert_has(&record, "schema tool host arguments started cases");
    assert_has(&record["tool"], "version revision");
    assert_has(
        &record["host"],
        "kernel cpu_model cpus caches_bytes memory_bytes hypervisor governor mitigations",
    );
    assert_has(
        &record["host"],
        "transparent_huge_pages pipe_max_size pipe_user_pages_soft msgmax msgmnb msgmni",
    );
    assert_has(&record["host"], "mq_msg_max mq_msgsize_max mq_queues_max");
    let given: Vec<&str> =
        record["arguments"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(given, [&["bench", "--json", "-"], &QUICK[..]].concat());
    let started = record["started"].as_str().expect("text");
    assert!(humantime::parse_rfc3339(started).is_ok(), "{started}");
    for case in record["cases"].as_array().expect("a list") {
        assert_has(
            case,
            "mechanism spec workload tasks placement cpus wait data block_bytes granted samples",
        );
        assert_has(case, "throughput latency_ns error");
        assert!(case["error"].is_null() || case["error"].is_object(), "{case}");
        for sample in case["samples"].as_array().expect("a list") {
            assert_has(sample, "elapsed_ns bytes messages checksum syscalls voluntary_switches");
            assert_has(sample, "involuntary_switches user_ns system_ns");
        }
        if !case["throughput"].is_null() {
            assert_has(&case["throughput"], "median_bytes_per_s low high mean stddev");
        }
        if !case["latency_ns"].is_null() {
            assert_has(&case["latency_ns"], "p50 p90 p99 p999 max");
        }
    }
    assert!(done.stdout.contains("\"p999\"") && done.stdout.contains("\"median_bytes_per_s\""));
}

#[test]
fn a_dry_run_prints_the_plan_that_would_be_run_and_measures_nothing() {
    let lab = Lab::new();
    let plan = |seed: &str| {
        let args = ["bench", "--dry-run", "--seed", seed, "--json", "run.json"];
        lab.run(&[&args[..], &QUICK].concat()).expect_code(0)
    };
    let (first, second, other) = (plan("7"), plan("7"), plan("8"));
    assert_eq!(first.stdout, second.stdout, "one seed, one plan");
    assert!(other.stdout.contains("seed 8"), "{}", other.stdout);
    assert!(!lab.here("run.json").exists(), "nothing was measured, nothing is written");
    let cases = lab.bench(&QUICK).expect_code(0).record().cases.len();
    assert!(first.stdout.contains(&format!("{cases} cases x 2 trials")), "{}", first.stdout);
    let lines = first.stdout.lines().skip(1).take_while(|line| !line.is_empty()).count();
    assert_eq!(lines, cases, "{}", first.stdout);
}

#[test]
fn all_is_every_mechanism_of_the_registry() {
    let lab = Lab::new();
    let plan = lab.run(&["bench", "--all", "--dry-run"]).expect_code(0).stdout;
    for entry in registry(&lab) {
        let of_it = |line: &str| line.trim_start().split([' ', ':']).next() == Some(entry.name.as_str());
        assert!(plan.lines().any(of_it), "no {} in: {plan}", entry.name);
    }
}

#[test]
fn a_sweep_covers_the_powers_of_two_from_a_byte_to_a_mebibyte() {
    let lab = Lab::new();
    let args =
        ["shm-ring", "null", "memcpy", "--sweep", "--workload", "stream", "--count", "2", "--trials", "1"];
    let done = lab.bench(&args).expect_code(0);
    let blocks: Vec<u64> = done.cases_of("shm-ring").iter().map(|case| case.block_bytes).collect();
    assert_eq!(blocks, (0..=20).map(|power| 1 << power).collect::<Vec<u64>>());
}

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
            ("hosepipe completions ", &["bash", "zsh", "fish"], "Cargo"),
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
    for hidden in ["--outcome", "--definitions", "--state", "--figures"] {
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
}

#[test]
fn a_precision_that_is_easily_reached_ends_a_case_early() {
    let lab = Lab::new();
    let args = ["memcpy", "null", "--workload", "stream", "--count", "20000", "--precision", "100"];
    let record = lab.bench(&args).expect_code(0).record();
    for case in &record.cases {
        let made = case.samples.len();
        assert!(made >= 2 && made < record.settings.trials as usize, "{}: {made} trials", case.spec);
    }
    assert!(!record.settings.interrupted, "that was enough, not an interruption");
}

#[test]
fn a_budget_is_kept() {
    let lab = Lab::new();
    let began = Instant::now();
    let args = ["pipe", "shm-ring:wait=futex", "socketpair", "--time", "2s", "--workload", "stream"];
    let done = lab.bench(&args).expect_code(0);
    assert!(began.elapsed() > Duration::from_millis(500), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(done.record().cases.iter().all(|case| !case.samples.is_empty() && case.error.is_none()));
}

/// Expected: a case for which there was no time says so, and the status is not that of a run that measured all.
/// Happened: "0 of 1 trials", no error, status 0.
#[test]
fn a_case_that_got_no_time_says_so() {
    let lab = Lab::new();
    let args = ["pipe", "--workload", "stream", "--bytes", "4TiB", "--trials", "1", "--time", "100ms"];
    let done = lab.bench(&args).expect_code(1);
    let error = done.only_case("pipe").error.expect("an error");
    assert_eq!(error.kind, ErrorKind::Time, "{error:?}");
    assert!(error.message.contains("0.1 s") && error.remedy.is_some_and(|remedy| remedy.contains("--time")));
}

/// Columns that a line takes; every character of our tables takes one.
fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Expected: nothing printed is wider than COLUMNS says.
/// Happened: the advice below the table is not wrapped.
#[test]
fn nothing_is_wider_than_the_terminal() {
    let lab = Lab::new();
    let at = |columns: &str, args: &[&str]| {
        let mut command = lab.command(args);
        command.env("COLUMNS", columns);
        // 1 where the machine is too busy to get to every case within the second.
        let done = lab.finish(command);
        assert!(done.code() <= 1, "{}", done.stderr);
        let width: usize = columns.parse().expect("a number");
        assert!(widest(&done.stdout) <= width, "wider than {columns}:\n{}", done.stdout);
    };
    for more in [&["--place", "same"][..], &["--sweep"], &["--place", "all"], &["--data", "none"]] {
        let args = ["bench", "pipe", "sysv-msgq:size=8192", "file:order=sequential,sync", "tcp:nodelay"];
        let little = ["--count", "4", "--trials", "2", "--time", "1s"];
        let made = lab.here("run.json");
        let kept = ["--json", made.to_str().expect("a plain path")];
        at("80", &[&args[..], &little, more, &kept].concat());
        for columns in ["100", "132"] {
            at(columns, &["report", kept[1]]);
        }
    }
}

#[test]
fn no_width_is_too_small_or_too_odd() {
    let lab = Lab::new();
    for columns in ["0", "1", "20", "-5", "wide", "99999999999999999999", "65535"] {
        for args in [
            &["list"][..],
            &["doctor"],
            &["bench", "pipe", "null", "memcpy", "--count", "4", "--trials", "1"],
        ] {
            let mut command = lab.command(args);
            command.env("COLUMNS", columns);
            lab.finish(command).expect_code(0);
        }
    }
}

/// What a terminal would be shown, with or without NO_COLOR.
fn on_a_terminal(lab: &Lab, term: &str, no_color: Option<&str>, args: &str) -> String {
    // script(1) makes a terminal.
    let line = format!("exec script -qec \"$0 {args}\" /dev/null");
    let mut command = lab.wrapped(&["bash", "-c", &line], &[]);
    command.env("TERM", term);
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    lab.finish(command).expect_code(0).stdout
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let lab = Lab::new();
    for args in ["doctor", "bench null memcpy pipe shm-ring --count 4 --trials 1", "bench --help"] {
        // Progress, on standard error, moves the cursor, unless the terminal cannot.
        let quiet = format!("{args} 2>/dev/null");
        assert!(!on_a_terminal(&lab, "dumb", None, args).contains('\u{1b}'), "{args}: a dumb terminal");
        assert!(
            on_a_terminal(&lab, "xterm-256color", None, &quiet).contains('\u{1b}'),
            "{args}: no colour on a terminal"
        );
        assert!(
            !on_a_terminal(&lab, "xterm-256color", Some("1"), &quiet).contains('\u{1b}'),
            "{args}: colour despite NO_COLOR"
        );
        let words: Vec<&str> = args.split(' ').collect();
        assert!(!lab.run(&words).expect_code(0).stdout.contains('\u{1b}'), "{args}: colour in a file");
    }
}

/// Expected: a run of trials that were asked to be short is short. Happened: a floor that nobody had asked for took 0.3 s
/// a trial beside ten round trips, and 200 trials of them a minute.
#[test]
fn floors_and_ceilings_make_a_run_no_longer_than_what_they_stand_beside() {
    let lab = Lab::new();
    let done = lab.bench(&["pipe", "--count", "10", "--trials", "3"]);
    let record = done.record();
    let references = || record.cases.iter().filter(|case| case.role != Role::Ranked);
    assert!(references().count() >= 3, "{}", done.stdout);
    for case in references() {
        let shortest_ns = case.samples.iter().map(|sample| sample.elapsed_ns).min();
        assert!(shortest_ns.is_some_and(|ns| ns < 100_000_000), "{}: {shortest_ns:?}", case.spec);
    }
}

/// Expected: Ctrl-C takes the bar away. Happened: blanks behind it sent the terminal's `^C` to the next line, and that was cleared.
#[test]
fn ctrl_c_takes_the_bar_away() {
    let home = home();
    let mut person = Person::before(home.path(), &[env!("CARGO_BIN_EXE_hosepipe"), "bench", "pipe"]);
    person.sees("trial");
    let drawn = String::from_utf8_lossy(&person.bytes()).into_owned();
    assert!(drawn.contains("\r\u{1b}[2K") && !drawn.ends_with("  "), "{drawn:?}");
    person.types("\u{3}");
    person.sees("Stopped early");
    let shown = String::from_utf8_lossy(&person.bytes()).into_owned();
    let last = shown.split_once("Stopped early").map_or("", |(before, _)| before);
    assert!(last.contains("^C") && !last.contains("\u{1b}[1A"), "nothing above was touched: {shown:?}");
    assert_eq!(person.leaves().code(), Some(130));
}
