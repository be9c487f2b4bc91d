//! What the commands print agrees: record, CSV, Markdown, table, plan, list.

use std::time::{Duration, Instant};

use crate::common::pty::{Person, home};
use crate::common::{Lab, busy, read_record, registry};
use model::{ErrorKind, Role, StopReason, Workload};
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
    assert_eq!((&record["schema"], &record["kind"]), (&Value::from("hosepipe/1"), &Value::from("bench")));
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

/// Expected: the default set has rows that can be measured. A mechanism that was named has its row, with the reason.
/// Happened: `tmpfile`, `file` and `dev-null`, which have no round trips, were rows of `--workload pingpong`.
#[test]
fn a_plan_has_no_rows_that_cannot_exist() {
    let lab = Lab::new();
    let registry = registry(&lab);
    for workload in [Workload::Stream, Workload::PingPong] {
        for set in ["--all", "--explain"] {
            let args = ["bench", set, "--workload", workload.word(), "--dry-run"];
            let plan = lab.run(&args).expect_code(0).stdout;
            let names = plan.lines().filter_map(|line| line.split([' ', ':']).nth(1));
            let planned = registry.iter().filter(|entry| names.clone().any(|name| name == entry.name));
            let wrong: Vec<&str> = planned
                .filter(|entry| !entry.workloads.contains(&workload))
                .map(|entry| entry.name.as_str())
                .collect();
            assert!(wrong.is_empty(), "{set}, {workload}: {wrong:?}");
        }
    }
    let named = ["bench", "tmpfile", "--workload", "pingpong", "--dry-run"];
    assert!(lab.run(&named).expect_code(0).stdout.contains("tmpfile"));
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
    // Happened: "Stopped early, by --time or Ctrl-C".
    assert_eq!(done.record().settings.stopped_by, Some(StopReason::Time));
    assert!(error.message.contains("0.1 s") && error.remedy.is_some_and(|remedy| remedy.contains("--time")));
}

/// Expected: a run in which no mechanism could be measured fails, with a sentence; a row that is refused beside measured ones does not.
/// Happened: status 0 for a table of a reason.
#[test]
fn where_nothing_was_measured_the_status_is_1() {
    let lab = Lab::new();
    let small = ["--count", "1", "--trials", "1", "--place", "any"];
    for refused in [&["pipe:size=1TiB"][..], &["posix-mq", "--block", "32MiB", "--workload", "stream"]] {
        let done = lab.run(&[&["bench"], refused, &small].concat()).expect_code(1);
        assert!(done.stderr.contains("nothing was measured: each row has its reason"), "{}", done.stderr);
        assert!(done.stdout.contains(refused[0]), "{}", done.stdout);
    }
    let beside = lab.run(&[&["bench", "pipe:size=1TiB", "pipe"], &small[..]].concat()).expect_code(0);
    assert!(!beside.stderr.contains("nothing was measured"), "{}", beside.stderr);
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
            &["doctor", "--quick"],
            &["bench", "pipe", "null", "memcpy", "--count", "4", "--trials", "1"],
            // Three seconds each time.
            &["doctor"],
        ] {
            if args == ["doctor"] && columns != "1" {
                continue;
            }
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

/// Expected: a run of trials that were asked to be short is short. Happened: a floor that was not asked for took 0.3 s
/// a trial beside ten round trips, and 200 trials of them a minute.
#[test]
fn floors_and_ceilings_make_a_run_no_longer_than_what_they_stand_beside() {
    let lab = Lab::new();
    let done = lab.bench(&["pipe", "--count", "10", "--trials", "3"]);
    let record = done.record();
    let references = || record.cases.iter().filter(|case| case.role != Role::Ranked);
    assert!(references().count() >= 3, "{}", done.stdout);
    let longest = Duration::from_millis(100) * busy();
    for case in references() {
        let shortest = case.samples.iter().map(|sample| Duration::from_nanos(sample.elapsed_ns)).min();
        assert!(shortest.is_some_and(|time| time < longest), "{}: {shortest:?}", case.spec);
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

/// Expected: the caches (docs/SHELL.md, Files) are in XDG_RUNTIME_DIR, or else in TMPDIR.
/// Happened: without XDG_RUNTIME_DIR they were in /tmp, also where TMPDIR was set.
#[test]
fn caches_are_in_the_runtime_folder_and_never_in_tmpdir() {
    for (variable, has_caches) in [("XDG_RUNTIME_DIR", true), ("TMPDIR", false)] {
        let folder = tempfile::tempdir().expect("a folder");
        for args in [&["run", "true | true"][..], &["boost", "--quiet", "true"]] {
            let lab = Lab::new();
            let mut command = lab.command(args);
            command.env_remove("XDG_RUNTIME_DIR").env(variable, folder.path());
            lab.finish(command).expect_code(0);
        }
        let user = rustix::process::geteuid().as_raw();
        for cache in ["shells", "copies"] {
            let path = folder.path().join(format!("hosepipe-{cache}-{user}"));
            assert_eq!(path.exists(), has_caches, "{cache} in {variable}");
        }
    }
}
