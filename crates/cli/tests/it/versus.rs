//! `hosepipe compare` with several pipelines, as a user meets it: a ranking, whether the output is the same, parameters, and what runs
//! beside the trials.

use std::fs;

use crate::common::{Done, Lab, promptly, signal, soon, until};
use model::{CompareRecord, CompareResult};
use rustix::process::Signal;

fn compare(lab: &Lab, args: &[&str]) -> Done {
    lab.run(&[&["compare"], args].concat())
}

fn record(lab: &Lab, args: &[&str], status: i32) -> CompareRecord {
    let done = compare(lab, &[&["--json", "-"], args].concat()).expect_code(status);
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("no record ({error}): {}", done.stdout))
}

fn of<T>(record: &CompareRecord, what: fn(&CompareResult) -> T) -> Vec<T> {
    record.results.iter().map(what).collect()
}

#[test]
fn the_faster_of_two_is_named_and_its_output_compared() {
    let lab = Lab::new();
    let (slow, fast) = ("sleep 0.3; seq 5 | grep -c 3", "sleep 0; seq 5 | sed -n /3/p | wc -l");
    let found = record(&lab, &["--trials", "6", "--warmup", "0", slow, fast], 0);
    assert_eq!(of(&found, |result| result.via.clone()), ["bash", "bash"], "as they are typed");
    let ratios = of(&found, |result| result.times_fastest.expect("six pairs"));
    assert!(
        ratios[0].low > 1.0 && ratios[0].low <= ratios[0].median && ratios[0].median <= ratios[0].high,
        "{ratios:?}"
    );
    assert_eq!((ratios[1].low, ratios[1].high), (1.0, 1.0));
    assert_eq!(of(&found, |result| result.same_output), [Some(true); 2]);
    fs::write(lab.here("r.json"), serde_json::to_string(&model::Record::from(found.clone())).expect("JSON"))
        .expect("a file");
    let shown = lab.run(&["report", "r.json", "--md", "-"]).expect_code(0).stdout;
    let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("| `sleep")).collect();
    assert!(
        rows[0].starts_with("| `sleep 0; seq 5 \\| sed") && rows[0].contains("| 1.00 | same |"),
        "{shown}"
    );
    assert!(shown.contains(&format!("`{fast}` is faster: `{slow}` takes ")), "{shown}");
    let html = lab.run(&["report", "r.json", "--html", "-"]).expect_code(0).stdout;
    assert!(html.contains("Pipelines compared") && html.contains(" is faster: "), "the page says so, too");
    let diff = lab.run(&["diff", "r.json", "r.json"]).expect_code(0).stdout;
    assert!(diff.contains("2 without a change"), "{diff}");
}

/// Expected: status 1 only for what surely takes longer than the first by more than the limit, and rounds that end when that is certain.
#[test]
fn a_pipeline_that_takes_longer_than_allowed_is_a_failure() {
    let lab = Lab::new();
    let (quick, slow) = ("true", "sleep 0.2");
    let slower = record(&lab, &["--fail-over", "100", quick, slow], 1);
    let [quick_runs, slow_runs] = [0, 1].map(|at| slower.results[at].times_s.len());
    assert!(quick_runs == slow_runs && slow_runs < 163, "ends when it is certain: {slow_runs}");
    assert!(slower.results[1].times_baseline.is_some_and(|ratio| ratio.low > 2.0));
    assert_eq!(slower.regressions().count(), 1);
    let limit = |limit: &str, texts: [&str; 2], code| {
        compare(&lab, &["--fail-over", limit, "--trials", "8", texts[0], texts[1]]).expect_code(code).stdout
    };
    let said = limit("0%", [quick, slow], 1);
    assert!(said.contains("`sleep 0.2` surely takes longer than `true`: "), "{said}");
    limit("100000", [quick, slow], 0);
    let said = limit("5", [slow, quick], 0);
    assert!(said.contains("`true` surely does not take more than 5 % longer than `sleep 0.2`: "), "{said}");
    limit("5", [quick, "exit 3"], 1);
    limit("5", ["exit 3", quick], 1);
    let links = ["--fail-over", "100000", "--via", "bash,pipe", "--trials", "6", "true | true"];
    let said = compare(&lab, &links).expect_code(0).stdout;
    assert!(said.contains("`pipe` surely does not take more than 100000 % longer than `bash`: "), "{said}");
    for (args, said) in [
        (&["--fail-over", "5", "true"][..], "there is no other one"),
        (&["--fail-over", "5", "--trials", "3", "true", "false"], "--fail-over needs at least --trials 6"),
        (&["--fail-over=-1", "true", "false"], "is not a percentage of 0 or more"),
        (&["--fail-over", "5", "--precision", "5", "true", "false"], "cannot be used with"),
    ] {
        let done = compare(&lab, args).expect_code(2);
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn other_outputs_are_told_and_are_no_failure_and_other_statuses_are() {
    let lab = Lab::new();
    let done =
        compare(&lab, &["--trials", "2", "seq 3", "seq 4", "echo $RANDOM$RANDOM$RANDOM"]).expect_code(0);
    let row = |start: &str| {
        done.stdout.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or("").to_owned()
    };
    assert!(row("seq 3").ends_with(" same") && row("seq 4").ends_with(" differs"), "{}", done.stdout);
    assert!(row("echo").ends_with(" varies"), "{}", done.stdout);
    assert!(
        done.stdout.contains("Not the same output as of `seq 3` (6 B): `seq 4` (8 B)."),
        "{}",
        done.stdout
    );
    // Who does nothing would be the fastest.
    let done = compare(&lab, &["--trials", "2", "nosuchprogram -x", "true", "true && true"]).expect_code(1);
    let rows: Vec<&str> =
        done.stdout.lines().filter(|line| line.contains("true") || line.contains("nosuch")).collect();
    assert!(rows[2].contains("ended with status 127") && rows[2].contains("|| true"), "{}", done.stdout);
    let found = record(&lab, &["--trials", "2", "false || true", "false"], 1);
    assert_eq!(of(&found, |result| result.times_s.len()), [2, 0]);
    // Over several links a pipeline has its own output to be held against.
    let args = ["--via", "pipe,bash", "--trials", "2", "seq 3", "seq 4"];
    assert!(of(&record(&lab, &args, 0), |result| result.equal == Some(true)).into_iter().all(|equal| equal));
    let args = ["--via", "pipe,bash", "--trials", "2", "seq 3", "echo $RANDOM$RANDOM$RANDOM"];
    record(&lab, &args, 1);
}

#[test]
fn parameters_make_every_combination_of_the_pipelines_in_which_they_stand() {
    let lab = Lab::new();
    let args = [
        "-P",
        "n",
        "1,2",
        "-P",
        "w",
        "a\\,b,'c d'",
        "--trials",
        "1",
        "--warmup",
        "0",
        "echo {n} {w}",
        "echo 1",
    ];
    let found = record(&lab, &args, 0);
    let texts = ["echo 1 a,b", "echo 1 'c d'", "echo 2 a,b", "echo 2 'c d'", "echo 1"];
    assert_eq!(of(&found, |result| result.pipeline.clone()), texts);
    let bytes = of(&found, |result| result.output_bytes);
    assert_eq!(bytes, [6, 6, 6, 6, 2]);
    let parameters = of(&found, |result| result.parameters.clone());
    assert_eq!(
        parameters[1],
        [("n".to_owned(), "1".to_owned()), ("w".to_owned(), "'c d'".to_owned())].into()
    );
    assert!(parameters[4].is_empty());
    assert_eq!(of(&found, |result| result.same_output)[2..], [Some(false), Some(false), Some(false)]);
    let csv =
        compare(&lab, &["--csv", "-", "-P", "n", "3,4", "--trials", "1", "seq {n}"]).expect_code(0).stdout;
    let column = csv.split(['\n', ',']).position(|name| name == "parameters").expect("a column");
    let of_csv: Vec<&str> = csv.lines().map(|line| line.split(',').nth(column).unwrap_or_default()).collect();
    assert_eq!(of_csv, ["parameters", "n=3", "n=4"]);
}

#[test]
fn what_runs_beside_the_trials_runs_when_it_should() {
    let lab = Lab::new();
    let beside = |option: &'static str, word: &str| [option.to_owned(), format!("echo {word}{{n}} >> log")];
    let beside = [
        beside("--set-up", "s"),
        beside("--prepare", "p"),
        beside("--conclude", "c"),
        beside("--clean-up", "u"),
    ];
    let beside: Vec<&str> = beside.iter().flatten().map(String::as_str).collect();
    let args = [&["-P", "n", "1,2", "--trials", "2"], &beside[..], &["echo r{n} >> log"]].concat();
    compare(&lab, &args).expect_code(0);
    let log = fs::read_to_string(lab.here("log")).expect("a log");
    let words: Vec<&str> = log.lines().collect();
    assert_eq!((&words[..2], &words[20..]), (&["s1", "s2"][..], &["u1", "u2"][..]), "{words:?}");
    for run in words[2..20].chunks(3) {
        let n = run[0].trim_start_matches('p');
        assert_eq!(run, [format!("p{n}"), format!("r{n}"), format!("c{n}")], "{words:?}");
    }
    assert_eq!(words[2..20].iter().filter(|word| **word == "r1").count(), 3, "two timed runs and one before");
}

#[test]
fn what_fails_beside_the_trials_is_said() {
    for (option, status, said, ran) in [
        ("--set-up", 2, "ended with exit status: 3: the measurement", false),
        ("--prepare", 2, "ended with exit status: 3: the measurement", false),
        ("--conclude", 2, "ended with exit status: 3: the measurement", true),
        ("--clean-up", 1, "ended with exit status: 3", true),
    ] {
        let lab = Lab::new();
        let args = ["--trials", "1", option, "exit 3", "--json", "r.json", "touch ran", "touch ran; :"];
        let done = compare(&lab, &args).expect_code(status);
        assert!(done.stderr.contains(&format!("`{option} exit 3` {said}")), "{}", done.stderr);
        assert_eq!((lab.here("ran").exists(), lab.here("r.json").exists()), (ran, status == 1), "{option}");
    }
}

#[test]
fn an_interruption_cleans_up_and_keeps_what_was_finished() {
    for (option, sent, code) in
        [("--prepare", Signal::INT, 130), ("--set-up", Signal::INT, 130), ("--set-up", Signal::TERM, 143)]
    {
        let lab = Lab::new();
        // No child makes the file: bash forgets a SIGINT that comes while one ends by itself.
        let wait = if option == "--set-up" { ": > here; sleep 20" } else { "echo p >> here" };
        let args = [
            "compare",
            "--trials",
            "100000",
            option,
            wait,
            "--clean-up",
            "echo u >> cleaned",
            "--json",
            "r.json",
            "sleep 0.02; touch here",
            "sleep 0.02; touch here # b",
        ];
        let running = lab.start(lab.wrapped(&["env", "--default-signal", "setsid"], &args));
        until("a first run", soon(), || lab.here("here").exists().then_some(()));
        // As Ctrl-C at a terminal does.
        let group = rustix::process::Pid::from_raw(running.pid() as i32).expect("its group");
        if sent == Signal::INT {
            rustix::process::kill_process_group(group, sent).expect("it lives");
        } else {
            signal(running.pid(), sent);
        }
        running.wait_within(promptly()).expect_code(code);
        assert_eq!(fs::read_to_string(lab.here("cleaned")).expect("cleaned up"), "u\nu\n", "{option}");
        let text = fs::read_to_string(lab.here("r.json")).expect("the record was saved");
        assert!(serde_json::from_str::<CompareRecord>(&text).expect("a record").interrupted, "{option}");
    }
}

#[test]
fn parameters_that_cannot_be_meant_are_refused_before_anything_runs() {
    for (args, words) in [
        (&["-P", "n", "1,2", "touch ran"][..], &["{n} is in no command line"][..]),
        (&["-P", "n", "1", "-P", "n", "2", "touch ran{n}"], &["is given twice"]),
        (&["-P", "", "1", "touch ran"], &["must not be empty"]),
        (&["-P", "n", "touch ran{n}"], &["PIPELINE"]),
        (&["-P", "n", "1,(", "touch ran{n}"], &["syntax error"]),
        (&["-P", "n", "1,", "{n}", "touch ran"], &["empty"]),
    ] {
        let lab = Lab::new();
        let done = compare(&lab, args).expect_code(2);
        for word in words {
            assert!(done.stderr.contains(word), "{args:?}: no `{word}` in: {}", done.stderr);
        }
        assert!(!lab.here("ran").exists() && !lab.here("ran1").exists(), "{args:?}");
    }
}

#[test]
fn what_the_shell_takes_is_told_of_short_pipelines_only() {
    let lab = Lab::new();
    let start = |texts: &[&str]| record(&lab, &[&["--trials", "3"], texts].concat(), 0).shell_start_s;
    assert_eq!(start(&["sleep 0.01", "sleep 0.011"]), None);
    let known = start(&["true", "true; true"]);
    // A busy machine may take longer for each of them.
    assert!(known.is_none_or(|seconds| seconds > 0.0), "{known:?}");
}

/// Expected: no more rounds than it takes to be certain of the order, none that begins later than asked, and exactly as many as asked for.
#[test]
fn rounds_end_when_the_order_is_certain() {
    let lab = Lab::new();
    let rounds =
        |found: &CompareRecord| found.results.iter().map(|one| one.times_s.len()).collect::<Vec<_>>();
    let far = ["--warmup", "0", "sleep 0.01", "sleep 0.2"];
    let found = record(&lab, &far, 0);
    assert_eq!((rounds(&found), found.trials, found.analyses), (vec![7, 7], 8, Some(2)), "{found:?}");
    assert_eq!(found.order_is_certain, Some(true));
    assert!(found.elapsed_s.is_some_and(|elapsed_s| elapsed_s >= 7.0 * 0.21), "{found:?}");
    let shown = compare(&lab, &far).expect_code(0).stdout;
    assert!(
        shown.contains("is certain after 7 rounds.") && shown.contains("7 trials each, in turns, in "),
        "{shown}"
    );
    let level = ["--warmup", "0", "sleep 0.3", "sleep 0.3; true"];
    let found = record(&lab, &[&["--time", "1s"], &level[..]].concat(), 0);
    assert!(rounds(&found).iter().all(|made| (1..=3).contains(made)), "{found:?}");
    assert_eq!(found.order_is_certain, Some(false));
    let found = record(&lab, &[&["--trials", "3"], &far[..]].concat(), 0);
    assert_eq!((rounds(&found), found.analyses, found.order_is_certain), (vec![3, 3], Some(1), Some(false)));
    let problem = compare(&lab, &["--time", "0s", "true", "false"]).expect_code(2).stderr;
    assert!(problem.contains("--time"), "{problem}");
}

/// Expected: rounds end at a look at which every interval is as narrow as asked, or when the time is over, and which of both it was is said.
#[test]
fn rounds_end_when_the_figures_are_precise() {
    let lab = Lab::new();
    let pair = ["--warmup", "0", "sleep 0.05", "sleep 0.05; true"];
    let found = record(&lab, &[&["--precision", "90%"], &pair[..]].concat(), 0);
    let rounds: Vec<usize> = found.results.iter().map(|one| one.times_s.len()).collect();
    assert!([10, 15, 22, 33].contains(&rounds[0]) && rounds[0] == rounds[1], "{found:?}");
    assert_eq!(found.precision_percent, Some(90.0));
    let shown =
        compare(&lab, &[&["--precision", "0.001", "--time", "1s"], &pair[..]].concat()).expect_code(0);
    assert!(
        shown.stdout.contains("2 of 2 intervals are wider than the ±0.001 % asked for"),
        "{}",
        shown.stdout
    );
    assert!(shown.elapsed < std::time::Duration::from_secs(4), "{:?}", shown.elapsed);
    let problem = compare(&lab, &["--precision", "0", "true", "false"]).expect_code(2).stderr;
    assert!(problem.contains("percentage"), "{problem}");
}
