//! `bench --align`: the ends' buffers are where they were asked for, and the record and the tables say where.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::common::{self, Lab, error_of};

/// Page offsets of the buffers in which a process's blocked calls of this number are seen.
fn offset_in_call(pid: u32, number: i64) -> u64 {
    common::until(&format!("call {number} of {pid}"), Duration::from_secs(30), || {
        let text = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let address = u64::from_str_radix(words.get(2)?.strip_prefix("0x")?, 16).ok()?;
        (words[0].parse() == Ok(number)).then_some(address % 4096)
    })
}

#[test]
fn buffers_begin_where_they_were_asked_for() {
    let _turn = common::alone();
    let lab = Lab::new();
    let args =
        ["bench", "pipe", "--workload", "stream", "--align", "5,16", "--bytes", "4TiB", "--trials", "1"];
    let mut running = lab.start(lab.command(&[&args[..], &["--data", "none", "--place", "same"]].concat()));
    for (end, number, offset) in
        [("hosepipe-recv", libc::SYS_read, 16), ("hosepipe-send", libc::SYS_write, 5)]
    {
        let pid = running.child_in_a_long_trial(end);
        assert_eq!(offset_in_call(pid, number), offset, "{end}");
    }
    running.kill_and_look();
}

#[test]
fn the_record_and_the_tables_say_where_the_buffers_were() {
    let lab = Lab::new();
    let few = ["--workload", "stream", "--place", "same", "--bytes", "1MiB", "--trials", "1"];
    let run = |args: &[&str]| lab.bench(&[args, &few].concat()).expect_code(0);
    let case = run(&["fifo", "--align", "0,16"]).only_case("fifo");
    assert_eq!((case.align.sender, case.align.receiver), (0, 16));
    let text = lab.run(&[&["bench", "fifo", "--align", "7"][..], &few].concat()).expect_code(0).stdout;
    assert!(text.contains("buffers 7 and 7 bytes past a page's start"), "{text}");
    let swept = run(&["fifo", "--align", "sweep"]);
    let places: BTreeMap<i32, usize> =
        swept.cases_of("fifo").iter().map(|case| (case.align.place(), 1)).collect();
    assert_eq!((places.len(), places.keys().next(), places.keys().next_back()), (32, Some(&-32), Some(&128)));
    let text = lab.run(&[&["bench", "fifo", "--align", "sweep"][..], &few].concat()).expect_code(0).stdout;
    let at = |place: &str| text.lines().position(|line| line.trim_start().starts_with(&format!("{place} ")));
    assert!(at("4080,0") < at("0,0") && at("0,0") < at("0,16") && at("4080,0").is_some(), "{text}");
    assert!(text.contains("of best") && !text.contains("take `fifo`"), "{text}");
}

#[test]
fn ends_without_buffers_and_offsets_beyond_a_page_are_refused() {
    let lab = Lab::new();
    let spec = "shm-ring:copy=in-place";
    let few = ["--workload", "stream", "--bytes", "1MiB", "--trials", "1", "--align", "0,16"];
    // Nothing was measured.
    let case = lab.bench(&[&[spec], &few[..]].concat()).expect_code(1).only_case("shm-ring");
    assert!(error_of(&case).message.contains("no buffers to align"), "{case:?}");
    for args in [
        &["--align", "4096"][..],
        &["--align", "x"],
        &["--align", "1", "--workers", "c"],
        &["--align", "1", "--senders", "2"],
    ] {
        let done = lab.run(&[&["bench", "pipe"], args].concat()).expect_code(2);
        assert!(
            done.stderr.contains("--align") || done.stderr.contains("bytes past the start"),
            "{}",
            done.stderr
        );
    }
}
