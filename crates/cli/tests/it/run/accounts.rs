//! `--stats` and `--json`: what each stage did, for root and for everybody else.

use std::fs;

use model::{Certainty, RunRecord};
use serde_json::Value;

use super::place::{PARALLEL, as_nobody, recorded, run};
use crate::common::{Done, Lab, is_root, skip, soon, until};

#[test]
fn the_record_has_every_field_of_the_contract() {
    let lab = Lab::new();
    let text = "seq 1000 | sort | tail -1";
    let done = run(&lab, &["--via", "tmpfile", "--json", "-", text, "--keep", "kept"]).expect_code(0);
    let record: Value = serde_json::from_str(&done.stdout).expect("JSON, and nothing else");
    assert_eq!(done.stderr, "999\n", "the pipeline's own output");
    assert_eq!(record["schema"], "hosepipe/1");
    assert_eq!((&record["pipeline"], &record["via"]), (&text.into(), &"tmpfile".into()));
    assert_eq!(record["status"], 0);
    for field in ["tool", "host", "arguments", "started", "wall_ns", "pipestatus", "bottleneck"] {
        assert!(!record[field].is_null(), "{field}");
    }
    let fields = |list: &str, names: &[&str], count: usize| {
        let entries = record[list].as_array().expect("a list");
        assert_eq!(entries.len(), count, "{list}");
        for (entry, name) in entries.iter().flat_map(|entry| names.iter().map(move |name| (entry, name))) {
            assert!(entry.get(name).is_some(), "{list}[].{name}");
        }
    };
    let of_stages = "command pid status signal wall_ns user_ns system_ns blocked_read_ns blocked_write_ns \
                     queued_ns held_up_ns max_rss_bytes";
    fields("stages", &of_stages.split_whitespace().collect::<Vec<_>>(), 3);
    fields("links", &["spec", "bytes", "bytes_is", "stored_bytes", "path", "full_ns", "empty_ns"], 2);
    assert_eq!(record["links"][0]["bytes"], 3893);
    assert_eq!(record["links"][0]["bytes_is"], "exact");
    assert_eq!(record["links"][0]["stored_bytes"], 3893);
}

/// Expected: the status and the CPU time of what ran in the shell's own process. Happened: 0 and none, as of what was never looked at.
#[test]
fn what_runs_in_the_shells_own_process_has_its_figures() {
    let lab = Lab::new();
    let (done, record) = recorded(&lab, &["grep nothing /etc/passwd"]);
    assert_eq!((done.code(), record.pipestatus), (1, vec![Some(1)]));
    let (_, record) = recorded(&lab, &["sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'"]);
    let stage = &record.stages[0];
    assert!(stage.user_ns + stage.system_ns > 10_000_000, "{stage:?}");
    let (_, record) = recorded(&lab, &["seq 3 | while read x; do echo $x; done | cat"]);
    assert_eq!(record.stages[1].command, "(while read x; do echo $x; done)");
    // What the shell does itself is over when it has its own input back; how it ended is not known.
    let (_, record) =
        recorded(&lab, &["shopt -s lastpipe; seq 20000 | while read x; do :; done; sleep 0.3; false"]);
    let stage = &record.stages[1];
    assert_eq!((stage.command.as_str(), stage.status), ("(in the shell)", None), "{stage:?}");
    assert!(stage.user_ns + stage.system_ns > 1_000_000, "{stage:?}");
    assert!(stage.wall_ns + 300_000_000 <= record.wall_ns, "{stage:?} of {}", record.wall_ns);
}

#[test]
fn bytes_of_a_link_are_counted_where_a_relay_or_a_file_tells() {
    for via in ["tmpfile", "file", "pty", "tmpfile:order=sequential"] {
        let lab = Lab::new();
        let (done, record) = recorded(&lab, &["--via", via, "head -c 200000 /dev/zero | wc -c"]);
        assert_eq!(done.stdout, "200000\n", "{via}");
        let link = &record.links[0];
        assert_eq!(link.bytes, Some(200_000), "{via}");
        assert_eq!(link.stored_bytes, (via != "pty").then_some(200_000), "{via}");
        assert_eq!(link.relay, !via.contains("sequential"), "{via}");
        if via == "file" {
            let path = link.path.as_deref().expect("the name it had");
            assert!(path.starts_with(&lab.tmp().display().to_string()), "{path}");
        }
    }
}

/// Expected: what a link that goes on has carried and stored so far. Happened: no relay, and nothing stored: also where the machine was so busy that a
/// relay had not ended.
#[test]
fn what_a_link_has_stored_so_far_is_recorded() {
    let lab = Lab::new();
    let until_there = "until [ $(wc -c < out) = 3893 ]; do sleep 0.01; done 2> /dev/null";
    let text = format!("(seq 1000; exec sleep 3) | cat > out & {until_there}");
    let (done, record) = recorded(&lab, &["--via", "file", &text]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let link = &record.links[0];
    assert_eq!((link.relay, link.bytes, link.stored_bytes), (true, Some(3893), Some(3893)), "{link:?}");
    assert!(link.path.is_some());
    until("the end", soon(), || lab.processes().is_empty().then_some(()));
}

/// Expected: what is said of a link's bytes holds, whatever its ends are: they copy, splice, write elsewhere, too, or leave early. An ordinary
/// user is told as much as root.
#[test]
fn bytes_of_every_link_are_exact_or_bounds_that_hold() {
    const SENT: u64 = 30_000_000;
    let texts = [
        "head -c 30000000 /dev/zero | wc -c",
        "head -c 30000000 /dev/zero | tee copy | wc -c",
        "head -c 30000000 /dev/zero | (cat; exit 0) | (wc -c; cat /etc/passwd >&2)",
        "(echo message >&2; head -c 30000000 /dev/zero) 2>/dev/null | (head -c 30000000; sleep 0.1) | wc -c",
    ];
    for via in PARALLEL {
        for (at, text) in texts.iter().enumerate() {
            let lab = Lab::new();
            let args = ["run", "--via", via, "--json", "r.json", text];
            let command = if is_root() { as_nobody(&lab, &args) } else { lab.command(&args) };
            let done = lab.finish(command).expect_code(0);
            assert_eq!(done.stdout, format!("{SENT}\n"), "{via} {text}");
            let json = fs::read_to_string(lab.here("r.json")).expect("a record");
            let record: RunRecord = serde_json::from_str(&json).expect("JSON");
            assert_eq!(record.links.len(), if at == 0 { 1 } else { 2 }, "{json}");
            for link in &record.links {
                let holds = match link.bytes_is {
                    Some(Certainty::Exact) => link.bytes == Some(SENT),
                    Some(Certainty::AtLeast) => link.bytes <= Some(SENT),
                    Some(Certainty::AtMost) => (SENT..SENT * 101 / 100).contains(&link.bytes.unwrap_or(0)),
                    None => link.bytes.is_none() && at == 1,
                };
                let is_counted = link.relay || link.stored_bytes.is_some();
                assert!(holds && (link.bytes_is == Some(Certainty::Exact)) == is_counted, "{text}: {link:?}");
            }
        }
    }
}

/// Expected: what a writer wrote counts where its reader reads other files, too, and what a reader read is followed to its end.
/// Happened: a sort(1) that had read its temporary files left "≥258 kB" of 10 MB, or "?".
#[test]
fn bytes_into_a_sort_and_out_of_it_are_known() {
    const SENT: u64 = 1_988_895;
    let lab = Lab::new();
    let text = "seq 300000 | sort -n -S 256k -T . | cat | tail -n1";
    let args = ["run", "--json", "r.json", text];
    let command = if is_root() { as_nobody(&lab, &args) } else { lab.command(&args) };
    assert_eq!(lab.finish(command).expect_code(0).stdout, "300000\n");
    let json = fs::read_to_string(lab.here("r.json")).expect("a record");
    let record: RunRecord = serde_json::from_str(&json).expect("JSON");
    let [into, out, copied] = &record.links[..] else { panic!("{json}") };
    let about = SENT..SENT * 105 / 100;
    for link in [into, copied] {
        assert_eq!(link.bytes_is, Some(Certainty::AtMost), "{json}");
        assert!(about.contains(&link.bytes.unwrap_or(0)), "{json}");
    }
    match out.bytes_is {
        Some(Certainty::AtLeast) => assert!(out.bytes <= Some(SENT), "{json}"),
        _ => assert!(out.bytes.is_none_or(|bytes| bytes >= SENT), "{json}"),
    }
}

#[test]
fn a_meter_counts_every_link_exactly() {
    for via in PARALLEL {
        for option in ["--meter", "--lines", "--keep=kept"] {
            let lab = Lab::new();
            let (done, record) =
                recorded(&lab, &["--via", via, option, "seq 300000 | tee /dev/null | wc -c"]);
            assert_eq!(done.stdout, "1988895\n", "{via}");
            for link in &record.links {
                assert_eq!(
                    (link.bytes, link.bytes_is),
                    (Some(1_988_895), Some(Certainty::Exact)),
                    "{via} {option}"
                );
                assert_eq!(link.lines, (option == "--lines").then_some(300_000), "{via}");
            }
        }
    }
}

/// Expected: a lower bound, where the reader leaves before the writer has ended. Happened: what the relay took, as if all were counted.
#[test]
fn what_a_reader_left_behind_is_not_counted_as_exact() {
    for (via, written) in [("pipe", 1_900_000), ("socketpair", 1_900_000), ("tmpfile", 9_000_000)] {
        let lab = Lab::new();
        let text = format!("(head -c {written} /dev/zero; :) | (sleep 0.2; head -c 1 >/dev/null)");
        let (_, record) = recorded(&lab, &["--via", via, "--meter", &text]);
        let link = &record.links[0];
        let bytes = link.bytes.expect("counted as far as the relay goes");
        assert!(bytes == written || link.bytes_is == Some(Certainty::AtLeast), "{via}: {link:?}");
        assert!(bytes <= written, "{via}: {link:?}");
    }
}

#[test]
fn the_table_says_how_the_bytes_are_known() {
    let lab = Lab::new();
    let text = "head -c 30000000 /dev/zero | wc -c";
    let done = run(&lab, &["--stats", text]).expect_code(0);
    let first = done.stderr.lines().nth(1).unwrap_or_default();
    assert!(first.contains("≤30.0 MB") && first.contains("B/s"), "{}", done.stderr);
    assert!(done.stderr.contains("≤: from the totals of its ends"), "{}", done.stderr);
    let done = run(&lab, &["--meter", text]).expect_code(0);
    let first = done.stderr.lines().nth(1).unwrap_or_default();
    assert!(first.contains(" 30.0 MB") && !done.stderr.contains('≤'), "{}", done.stderr);
    let done = run(&lab, &["--lines", "seq 3"]).expect_code(0);
    assert!(done.stderr.contains("Nothing was counted"), "{}", done.stderr);
}

/// No figure contradicts another.
fn assert_times_fit(record: &RunRecord) {
    for stage in &record.stages {
        let queued = stage.queued_ns.unwrap_or(0);
        assert!(queued <= stage.wall_ns, "{stage:?}");
        assert!(stage.wall_ns <= record.wall_ns, "{stage:?} of {}", record.wall_ns);
        for blocked in [stage.blocked_read_ns, stage.blocked_write_ns] {
            assert!(blocked.unwrap_or(0) <= stage.wall_ns, "{stage:?}");
        }
    }
}

#[test]
fn the_table_has_each_stage_and_the_slowest_is_named() {
    for (text, slowest) in [
        ("sleep 0.3 | cat", 0),
        ("echo a | sh -c 'sleep 0.3; cat' | cat", 1),
        ("seq 10 | cat | (cat; sleep 0.3)", 2),
        ("seq 1 700000 | sort -r | tail -1", 1),
    ] {
        let lab = Lab::new();
        // What is sampled on a busy machine can miss once, not always.
        let mut runs = (0..3).map(|_| recorded(&lab, &["--stats", text]));
        let named = |(_, record): &(Done, RunRecord)| record.bottleneck.as_ref()?.stage;
        let (done, record) =
            runs.by_ref().find(|run| named(run) == Some(slowest)).expect("the stage is named");
        assert_eq!(done.code(), 0);
        assert_times_fit(&record);
        let bottleneck = record.bottleneck.as_ref().expect("a judgement");
        let name = format!("(stage {})", slowest + 1);
        assert!(bottleneck.sentence.contains(&name), "{text}: {}", bottleneck.sentence);
        let rows: Vec<&str> = done.stderr.lines().collect();
        assert!(rows[0].contains("stage") && rows[0].contains("empty"), "{}", done.stderr);
        for (row, stage) in rows[1..].iter().zip(&record.stages) {
            let command: String = stage.command.chars().take(12).collect();
            assert!(row.contains(&command), "`{command}` in {row}");
        }
        assert!(rows[1 + slowest].contains("←"), "{}", done.stderr);
    }
}

#[test]
fn a_stage_that_waits_is_seen_waiting() {
    let lab = Lab::new();
    let (_, record) =
        recorded(&lab, &["--via", "pipe:size=4096", "yes | (sleep 0.4; head -c 3000000) | cat > /dev/null"]);
    let ms = |ns: Option<u64>| ns.expect("watched") / 1_000_000;
    assert!(ms(record.stages[0].blocked_write_ns) > 250, "the writer waits: {record:?}");
    assert!(ms(record.stages[2].blocked_read_ns) > 250, "the reader waits: {record:?}");
    // Once it is awake, `head` may wait for `yes`.
    let awake_ms = ms(Some(record.stages[1].wall_ns)).saturating_sub(400);
    let asleep_ms = ms(record.stages[1].blocked_read_ns).saturating_sub(awake_ms);
    assert!(asleep_ms < 100, "the sleeper does not read: {record:?}");
    assert_times_fit(&record);
}

#[test]
fn an_ordinary_user_gets_figures_that_are_not_wrong() {
    if !is_root() {
        return skip("only root can run as another user; the other tests were run as one");
    }
    let lab = Lab::new();
    let text = "head -c 1000000 /dev/zero | (cat; sleep 0.9) | (wc -c; sleep 0.1)";
    let done = lab.finish(as_nobody(&lab, &["run", "--stats", "--json", "r.json", text])).expect_code(0);
    assert_eq!(done.stdout, "1000000\n");
    let json = fs::read_to_string(lab.here("r.json")).expect("a record");
    let record: RunRecord = serde_json::from_str(&json).expect("JSON");
    assert_times_fit(&record);
    assert_eq!(record.bottleneck.and_then(|bottleneck| bottleneck.stage), Some(1), "{}", done.stderr);
}

#[test]
fn without_stats_nothing_is_said() {
    let lab = Lab::new();
    let done = run(&lab, &["seq 3 | tail -1"]).expect_code(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("3\n", ""));
}

/// Expected: names on the command line are meant from where hosepipe was started.
/// Happened: after a `cd` in the text, the record went to the folder that the text had gone to.
#[test]
fn a_text_that_goes_elsewhere_takes_no_file_of_ours_along() {
    let lab = Lab::new();
    fs::create_dir(lab.here("below")).expect("mkdir");
    fs::create_dir(lab.here("temporary")).expect("mkdir");
    for via in ["tmpfile", "file", "fifo"] {
        let args = ["run", "--via", via, "--json", "r.json", "--keep", "kept", "--force"];
        let mut command =
            lab.command(&[&args[..], &["cd below; echo a | cat; pwd | sed 's/.*.here.//'"]].concat());
        command.env("TMPDIR", "temporary");
        let done = lab.finish(command).expect_code(0);
        assert_eq!(done.stdout, "a\nbelow\n", "{via}: {}", done.stderr);
        assert!(fs::read_to_string(lab.here("r.json")).expect("the record").contains("hosepipe/1"));
        assert_eq!(fs::read_to_string(lab.here("kept/1.1-shell")).expect("a kept file"), "a\n");
        assert!(crate::common::files_in(&lab.here("below")).is_empty(), "{via}");
        assert!(crate::common::files_in(&lab.here("temporary")).is_empty(), "{via}");
    }
}

/// Expected: a remark on a writer that ended well only because the pipe is larger than a shell's own.
/// Happened: `seq 100000 | head -n1` ends with 0 here, with 141 in bash.
#[test]
fn a_writer_that_a_large_pipe_saves_from_sigpipe_is_a_remark() {
    let lab = Lab::new();
    // The reader reads nothing, and ends after its writer, which needs 589 kB of room.
    let text = "{ seq 100000; echo > done; } | while [ ! -e done ]; do sleep 0.01; done; rm done";
    let said = |via: &str| run(&lab, &["--stats", "--via", via, text]).expect_code(0).stderr;
    assert!(said("pipe:size=1MiB").contains("--via pipe:size=64KiB"));
    let reads_all = run(&lab, &["--stats", "--via", "pipe:size=1MiB", "seq 100000 | sort | wc -l"]);
    assert!(!reads_all.expect_code(0).stderr.contains("size=64KiB"));
}

/// Expected: one row for what a loop starts, and all of it in the record. Happened: two rows for each turn.
#[test]
fn what_a_loop_starts_is_one_row() {
    let lab = Lab::new();
    let text = "for i in 1 2 3 4 5 6; do seq $i | wc -l; done";
    let shown = run(&lab, &["--stats", text]).expect_code(0).stderr;
    assert!(shown.contains(" 1 6 × seq …") && shown.contains(" 2 6 × wc -l"), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.starts_with(" 1 ")).count(), 1, "{shown}");
    let (_, record) = recorded(&lab, &[text]);
    assert_eq!(record.stages.len(), 12);
}
