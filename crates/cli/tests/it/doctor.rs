//! `hosepipe doctor`: findings and figures of this machine, for people and for programs.

use serde_json::Value;

use crate::common::{self, Lab};

fn entries(lab: &Lab, args: &[&str]) -> Vec<Value> {
    let done = lab.run(&[&["doctor", "--json"], args].concat()).expect_code(0);
    let json: Value = serde_json::from_str(&done.stdout).expect("JSON");
    json.as_array().expect("a list").clone()
}

#[test]
fn the_doctor_says_the_same_to_people_and_to_programs() {
    let lab = Lab::new();
    let text = lab.run(&["doctor", "--quick"]).expect_code(0).stdout;
    let findings = entries(&lab, &["--quick"]);
    assert!(findings.len() > 3, "{findings:?}");
    for finding in findings {
        let name = finding["name"].as_str().expect("a name");
        assert!(text.contains(name), "no {name} in: {text}");
        assert!(finding.get("figure").is_none(), "nothing was measured: {finding}");
    }
}

#[test]
fn figures_stand_before_the_findings_and_are_fields_like_theirs() {
    let lab = Lab::new();
    let text = lab.run(&["doctor"]).expect_code(0).stdout;
    assert!(text.starts_with(" this machine"), "{text}");
    for words in ["a system call", "waking an end, same CPU", "copying in the cache", "first touch of a page"]
    {
        assert!(text.contains(words), "no {words} in {text}");
    }
    let entries = entries(&lab, &[]);
    let measured: Vec<&Value> = entries.iter().filter(|entry| entry["figure"].is_object()).collect();
    assert!(measured.len() >= 6, "{entries:?}");
    for entry in &entries {
        for field in ["name", "state", "what", "why"] {
            assert!(entry[field].is_string(), "{field} of {entry}");
        }
        assert!(entry.get("remedy").is_some_and(|remedy| remedy.is_null() || remedy.is_string()), "{entry}");
    }
    // Happened: the example of --help printed all of them as nanoseconds.
    let units: Vec<&str> = measured.iter().filter_map(|entry| entry["figure"]["unit"].as_str()).collect();
    assert!(units.contains(&"ns") && units.contains(&"bytes_per_s"), "{units:?}");
    let help = lab.run(&["doctor", "--help"]).expect_code(0).stdout;
    assert!(help.contains(".figure.median, .figure.unit") && !help.contains("ns: "), "{help}");
    for entry in measured {
        let number = |field: &str| entry["figure"][field].as_f64().expect("a number");
        assert!(number("low") > 0.0, "{entry}");
        assert!(number("low") <= number("median") && number("median") <= number("high"), "{entry}");
    }
}

/// The machine is invented: the figures of a real one are tested where they are measured.
#[test]
fn slow_offsets_are_told_where_the_machine_has_them_and_only_there() {
    let lab = Lab::new();
    for (share, state, says) in
        [("0.3", "caps", "runs at 0.30 of its speed"), ("1", "good", "equally fast at every offset")]
    {
        let mut command = lab.command(&["doctor", "--json"]);
        command.env("HOSEPIPE_SLOW_COPIES", share);
        let done = lab.finish(command).expect_code(0);
        let entries: Vec<Value> = serde_json::from_str(&done.stdout).expect("JSON");
        let copies = entries.last().expect("an entry");
        assert_eq!((&copies["name"], &copies["state"]), (&"copy-alignment".into(), &state.into()));
        assert!(copies["what"].as_str().is_some_and(|what| what.contains(says)), "{copies}");
        assert_eq!(copies["slow"]["last"].as_u64(), (state == "caps").then_some(31), "{copies}");
        assert_eq!(copies["speeds"].as_array().map(Vec::len), Some(7));
    }
}

/// Expected: commands that need root say so. Happened: an ordinary user without sudo got `sysctl -w`; and, of a limit that only the host
/// of a container can raise, a command for root.
#[test]
fn an_ordinary_user_gets_commands_for_root() {
    if !common::is_root() {
        return common::skip("only root can run as nobody");
    }
    let lab = Lab::new();
    let script = "PATH=/nonexistent exec ./program doctor --quick --json";
    let done = lab.finish(common::another_user::script(65534, &lab, script, &[])).expect_code(0);
    let findings: Vec<Value> = serde_json::from_str(&done.stdout).expect("JSON");
    let for_root =
        |line: &&str| ["sysctl -w", "tee /sys", "prlimit", "remount"].iter().any(|word| line.contains(word));
    let commands = findings.iter().filter_map(|finding| finding["remedy"].as_str()).filter(for_root);
    let commands: Vec<&str> = commands.collect();
    assert!(commands.iter().all(|command| command.starts_with("as root: ")), "{commands:?}");
    let state = |findings: &[Value]| {
        let found = findings.iter().find(|finding| finding["name"] == "msgqueue");
        found.map(|finding| finding["state"].clone())
    };
    assert_eq!(state(&findings), state(&entries(&lab, &["--quick"])), "both can raise it, or neither can");
}

#[test]
fn one_cpu_alone_is_told_and_measured_without_a_hang() {
    let lab = Lab::new();
    let cpus = host::cpus();
    let Some(first) = cpus.first() else { return common::skip("no CPU is known") };
    let one = ["taskset", "-c", &first.id.to_string()].map(str::to_owned);
    if model::file_on_path("taskset").is_none() {
        return common::skip("no taskset(1) here");
    }
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let text = lab.finish(lab.wrapped(&one, &["doctor"])).expect_code(0).stdout;
    assert!(text.contains("waking an end, other CPU") && text.contains("only one CPU"), "{text}");
    let online = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert!(online == 1 || !text.contains("on the machine's one CPU"), "{text}");
}
