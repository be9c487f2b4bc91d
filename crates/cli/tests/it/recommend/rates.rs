//! Questions with a rate: rows, answers and programs are those of that rate.

use std::fs;
use std::process::Command;

use model::{CaseRecord, Placement, Role, Sample, Tasks, Workload};

use super::programs::{compiled, is_there};
use super::{answer, case, record};
use crate::common::programs::python;
use crate::common::{Lab, read_record};

/// The same at this rate in messages a second, of which it reaches as many as its time allows.
fn paced(spec: &str, rate_per_s: u32, time_ns: u64, cpu_ns: u64) -> CaseRecord {
    let time_ns = time_ns.max(1_000_000_000 / u64::from(rate_per_s));
    CaseRecord { rate_per_s: Some(rate_per_s), ..case(spec, time_ns, cpu_ns) }
}

/// Expected: at 1,000 a second what takes the least CPU time in trials at that rate, and no figure of full speed.
/// Happened: "take `shm-ring`, 53 ns of CPU, 0.0 % of a CPU", where both took microseconds and the ring 1.7 times as many.
#[test]
fn a_question_with_a_rate_is_answered_by_trials_at_that_rate() {
    let lab = Lab::new();
    let full = || vec![case("shm-ring:wait=futex", 50, 53), case("pipe", 900, 1044)];
    record(&lab, "run.json", full());
    let rate = ["--messages-per-second", "1000"];
    let said = answer(&lab, &rate, 2);
    assert!(said.contains("at 1000 a second (bench --rate 1000)"), "full speed is no answer: {said}");
    let other_rate = vec![paced("shm-ring:wait=futex", 50_000, 50, 900)];
    let at_rate = vec![paced("shm-ring:wait=futex", 1000, 50, 14_000), paced("pipe", 1000, 900, 7000)];
    record(&lab, "run.json", full().into_iter().chain(other_rate).chain(at_rate).collect());
    let said = answer(&lab, &rate, 0).replace('\n', " ");
    assert!(
        said.contains("Take `pipe`: at 1,000 a second a message takes 7.00 µs of CPU at both ends, and all of them keep 0.7 % of a CPU busy."),
        "{said}"
    );
    assert!(said.contains("costs 2.0 times as much in CPU (at least 2.0"), "{said}");
    assert!(said.contains("--workload stream --tasks processes --rate 1000 --seed 1"), "the proof: {said}");
    assert!(said.contains("RATE (messages in a second, 1000 if not given)"), "the program: {said}");
    let budget = |percent| answer(&lab, &[&rate[..], &["--cpu-budget", percent]].concat(), 0);
    assert!(budget("1").contains("excluded: it may take 1.4 % of a CPU"), "at the rate");
    assert!(!budget("2").contains("excluded"), "at the rate");
    let plain = answer(&lab, &[], 0);
    assert!(plain.contains("Take `shm-ring:wait=futex`") && !plain.contains("RATE"), "{plain}");
    assert!(answer(&lab, &["--messages-per-second", "0.5"], 2).contains("less than 1 a second"));
}

#[test]
fn what_does_not_reach_the_rate_is_out() {
    let lab = Lab::new();
    let at = |rate| vec![paced("pipe", rate, 900, 600), paced("shm-ring:wait=futex", rate, 100, 800)];
    record(&lab, "run.json", at(1_000_000).into_iter().chain(at(5_000_000)).chain(at(10_000_000)).collect());
    let slow = answer(&lab, &["--messages-per-second", "1e6"], 0);
    assert!(slow.contains("Take `pipe`") && slow.contains("costs 1.33 times as much in CPU"), "{slow}");
    let fast = answer(&lab, &["--messages-per-second", "5e6"], 0);
    assert!(
        fast.contains("Take `shm-ring:wait=futex`") && fast.contains("excluded: it reached only 1,111,"),
        "{fast}"
    );
    let none = answer(&lab, &["--messages-per-second", "5e9"], 1);
    assert!(none.contains("Nothing that was measured can be recommended"), "{none}");
    assert!(!none.contains("The command that proves it"), "{none}");
}

/// Expected: rows and programs send at the asked rate. Happened: both ran at full speed, and the CPU time was multiplied.
#[test]
fn rows_and_programs_of_a_question_with_a_rate_are_paced() {
    let lab = Lab::new();
    let question = ["recommend", "--message", "64B", "--must", "filter", "--between", "processes"];
    let rate = ["--messages-per-second", "500", "--time", "3s", "--json", "run.json"];
    lab.run(&[&question[..], &rate].concat()).expect_code(0);
    let text = std::fs::read_to_string(lab.here("run.json")).expect("a file");
    let measured = read_record(&text);
    let rows = measured.cases.iter().filter(|case| case.role == Role::Ranked);
    for case in rows {
        assert_eq!((case.rate_per_s, case.placement), (Some(500), Placement::Any), "{}", case.spec);
        for Sample { elapsed_ns, messages, .. } in &case.samples {
            assert!(*elapsed_ns >= (messages - 1) * 2_000_000 && *messages >= 5, "{}: {messages}", case.spec);
        }
    }
    let answer = measured.recommendation.expect("an answer");
    assert!(answer.title.contains("500 a second"), "{}", answer.title);
    for program in answer.programs.iter().filter(|program| program.failure.is_none()) {
        let least_ns = 2e6 * (program.messages - 1) as f64 / program.messages as f64;
        assert!(program.time_ns.iter().all(|each_ns| *each_ns >= least_ns), "{program:?}");
    }
}

/// The programs of a question with a rate: one way between processes, and there and back between threads.
fn paced_programs(lab: &Lab, language: &str) -> [String; 2] {
    let streams = paced("pipe", 50, 900, 900);
    let trips = CaseRecord { workload: Workload::PingPong, tasks: Tasks::Threads, ..streams.clone() };
    record(lab, "run.json", vec![streams, trips]);
    let there_and_back = ["--pattern", "request-reply", "--between", "threads"];
    [&[][..], &there_and_back].map(|words| {
        let rate = ["--messages-per-second", "50", "--code", language, "--code-to", "paced"];
        answer(lab, &[words, &rate].concat(), 0);
        fs::read_to_string(lab.here("paced")).expect("the program")
    })
}

/// Expected: a program of a question with a rate sends at that rate, or at the RATE that it is given, and what is late at once.
/// Happened: programs knew no rate, and those of full speed decided.
fn expect_pace(program: &dyn Fn() -> Command) {
    let each_ns = |arguments: &[&str]| -> f64 {
        let done = program().args(arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        said.split(' ').next().and_then(|number| number.parse().ok()).expect("nanoseconds first")
    };
    // The first one is due at once.
    assert!(each_ns(&["6"]) >= 5.0 * 2e7 / 6.0, "50 a second");
    assert!(each_ns(&["6", "100"]) >= 5.0 * 1e7 / 6.0, "100 a second");
    assert!(each_ns(&["1000", "1000000000"]) < 2e7, "all of them are late");
    for rate in ["0", "-1", "1e3", "10abc", "1000000001"] {
        let done = program().args(["6", rate]).output().expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            done.status.code() == Some(2) && said.contains("RATE is a number from 1 to"),
            "{rate}: {said}"
        );
    }
}

#[test]
fn programs_in_c_keep_a_rate() {
    let lab = Lab::new();
    if !is_there("cc") {
        return;
    }
    for (at, text) in paced_programs(&lab, "c").into_iter().enumerate() {
        let words = ["cc", "-Wall", "-Wextra", "-Werror", "-pthread", "paced.c", "-lrt"];
        let program = compiled(&format!("c-paced{at}"), &words, &[("paced.c".to_owned(), text)], &lab);
        expect_pace(&|| Command::new(&program));
    }
}

#[test]
fn programs_in_rust_keep_a_rate() {
    let lab = Lab::new();
    if !is_there("rustc") {
        return;
    }
    for (at, text) in paced_programs(&lab, "rust").into_iter().enumerate() {
        let words = ["rustc", "--edition=2021", "-Dwarnings", "paced.rs"];
        let program = compiled(&format!("rust-paced{at}"), &words, &[("paced.rs".to_owned(), text)], &lab);
        expect_pace(&|| Command::new(&program));
    }
}

#[test]
fn programs_in_python_keep_a_rate() {
    let lab = Lab::new();
    if !is_there("python3") {
        return;
    }
    for text in paced_programs(&lab, "python") {
        fs::write(lab.here("paced.py"), text).expect("a file");
        expect_pace(&|| {
            let mut command = Command::new(python());
            command.args(["-W", "error"]).arg(lab.here("paced.py"));
            command
        });
    }
}
