//! The study's Windows program, cross-compiled and run under Wine: its record is ours to the letter, its bytes are
//! checked, and nothing of it hangs. Skipped, with the reason, where mingw-w64 or Wine is missing.

mod wine;

use std::time::Duration;

use model::{Check, DataLevel, ErrorKind, PayloadKind, Tasks};
use payload::{Period, Tile, expected_checksum};
use rustix::process::{Pid, Signal, kill_process};
use wine::Wine;

use crate::common::{HANGS_AFTER, until};

/// The study's list, as it is written there.
const STUDY_SIZES: &str = "1 2 3 4 6 8 10 12 14 16 20 24 28 32 36 40 44 48 52 56 60 64 72 80 88 96 104 112 120 128 \
    144 160 176 192 208 224 240 256 288 320 352 384 416 448 480 512 576 640 704 768 832 896 960 1024 1280 1536 1792 \
    2048 2560 3k 3584 4k";

#[test]
fn every_way_moves_every_byte() {
    let Some(wine) = Wine::new() else { return };
    let tile = Tile::make(&PayloadKind::Random, 7, Period::Bench).expect("no file involved");
    for threads in ["1", "2"] {
        for way in [&[][..], &["--overlapped"], &["--overlapped", "--depth", "5"]] {
            // Neither the block nor the whole is a multiple of anything.
            let job =
                ["--threads", threads, "--type", "both", "--count", "77", "--block", "3001", "--verify"];
            let args = [&job, way, &["--series", "2", "--seed", "7"]].concat();
            let done = wine.run(&args).expect_code(0);
            assert!(done.stderr.contains("checked on arrival"), "{done}");
            let mut options = match way {
                [] => String::new(),
                [_] => "depth=2,overlapped,".to_owned(),
                _ => "depth=5,overlapped,".to_owned(),
            };
            options += &format!("threads={threads}");
            let specs: Vec<String> = done.record().cases.iter().map(|case| case.spec.to_string()).collect();
            let spec = |kind| format!("windows-named-pipe:{options},type={kind}");
            assert_eq!(specs, [spec("byte"), spec("message")], "{done}");
            for case in done.record().cases {
                assert_eq!(case.error, None, "{done}");
                assert_eq!(case.data, DataLevel::Verify);
                assert_eq!(case.tasks, if threads == "1" { Tasks::Single } else { Tasks::Threads });
                assert_eq!(case.granted.get("in_buffer_bytes"), Some(&3025), "24 more than the block");
                assert_eq!(case.samples.len(), 2);
                for sample in case.samples {
                    assert_eq!((sample.bytes, sample.messages), (77 * 3001, 77));
                    let expected = expected_checksum(&tile, Check::Xor, sample.bytes, &|| false);
                    assert_eq!(sample.checksum, expected, "the bytes are those of our own payload");
                }
            }
        }
    }
    wine.close();
}

#[test]
fn the_record_is_ours_to_the_letter_and_says_wine() {
    let Some(wine) = Wine::new() else { return };
    let name = "näme (1).json";
    let args = ["--threads", "2", "--count", "1k", "--block", "512", "--series", "7", "--json", name];
    let done = wine.run(&args).expect_code(0);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("Wine's figures"), "{done}");
    assert!(done.stderr.contains("nothing is examined"), "the table tells the level: {done}");
    let text = std::fs::read_to_string(wine.here(name)).expect("the record is where it was asked for");
    let record: model::BenchRecord = serde_json::from_str(&text).expect("a record");
    let as_written: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        serde_json::to_value(model::Record::from(record.clone())).expect("JSON"),
        as_written,
        "no field more, and none less"
    );
    assert!(
        record.head.host.kernel.starts_with("Wine ") && record.head.host.kernel.contains(" on Linux "),
        "{text}"
    );
    assert!(!record.head.host.kernel.contains("Windows"));
    assert!(!record.head.host.cpus.is_empty() && record.head.host.memory_bytes > 1 << 20, "{text}");
    assert_eq!(record.head.arguments, args);
    assert_eq!((record.settings.trials, record.settings.interrupted), (7, false));
    for case in record.cases {
        let mut again = case.clone();
        stats::summarise(&mut again, stats::Analyses::Once).expect("a stream has no histogram");
        assert_eq!(again, case, "its summary is the one computed here");
    }
    wine.close();
}

#[test]
fn the_sweeps_are_the_studys() {
    let Some(wine) = Wine::new() else { return };
    let swept = |args: &[&str]| {
        let args = [args, &["--series", "1", "--scale", "0.00001"]].concat();
        let done = wine.run(&args).expect_code(0);
        assert!(done.stderr.contains("scale: every count times 1e-05"), "{done}");
        let cases = done.record().cases;
        cases.into_iter().map(|case| (case.block_bytes, case.samples[0].messages)).collect::<Vec<_>>()
    };
    // 512,000 and 102,400 blocks, a hundred-thousandth of them.
    let count = |size: &str| if size.len() <= 3 && !size.ends_with('k') { 5 } else { 1 };
    let size = |size: &str| model::parse_size(size).expect("a size").0;
    let study: Vec<(u64, u64)> =
        STUDY_SIZES.split_whitespace().map(|text| (size(text), count(text))).collect();
    assert_eq!(swept(&["--sweep", "bradford1"]), study);
    let blocks: Vec<u64> = swept(&["--sweep", "bradford2"]).into_iter().map(|(block, _)| block).collect();
    assert_eq!(blocks, (0..=24).map(|power| 1 << power).collect::<Vec<u64>>());
    wine.close();
}

/// Wine keeps the quota and charges the data alone. A write that is one byte too large must be found to block, and
/// the search must come to an end all the same.
#[test]
fn the_search_for_the_24_bytes_ends_with_a_finding() {
    let Some(wine) = Wine::new() else { return };
    let done = wine.run(&["--check-24", "--type", "both", "--block", "100"]).expect_code(0);
    assert!(done.stderr.contains("-1 blocks, 0 works"), "{done}");
    assert!(done.stderr.contains("Wine charges a queued write for its data alone"), "{done}");
    for case in done.record().cases {
        let slack = case.spec.options.get("slack").cloned().flatten();
        match (slack.as_deref(), case.error) {
            (Some("-1"), Some(error)) => {
                assert_eq!((error.kind, error.expected), (ErrorKind::Hung, true));
                assert!(
                    error.message.contains("100 bytes found no room in a pipe of 99"),
                    "{}",
                    error.message
                );
            }
            (Some("-1"), None) => panic!("{}: a write larger than the pipe came back", case.spec),
            (_, error) => assert_eq!(error, None, "{}", case.spec),
        }
    }
    // Begun without waiting, even a write that is larger than the pipe needs no slack.
    wine.run(&["--overlapped", "--slack", "0", "--count", "10", "--hang", "5"]).expect_code(0);
    wine.close();
}

#[test]
fn a_wrong_command_line_is_a_sentence_and_status_2() {
    let Some(wine) = Wine::new() else { return };
    for (args, word) in [
        (&["--threads", "3"][..], "`3`"),
        (&["--block", "0"], "`0`"),
        (&["--block", "4x"], "`4x`"),
        (&["--block", "2g"], "`2g`"),
        (&["--count", "-1"], "`-1`"),
        (&["--count", "99999999999999999999"], "`99999999999999999999`"),
        (&["--count"], "--count needs a value"),
        (&["--type", "stream"], "`stream`"),
        (&["--data", "some"], "`some`"),
        (&["--scale", "0"], "`0`"),
        (&["--scale", "nan"], "`nan`"),
        (&["--sweep", "bradford3"], "`bradford3`"),
        (&["--sweep", "bradford1", "--block", "4k"], "--block"),
        (&["--depth", "2"], "--overlapped"),
        (&["--check-24", "--threads", "2"], "--check-24"),
        (&["--fast"], "`--fast`"),
    ] {
        let done = wine.run(args).expect_code(2);
        assert_eq!(done.stdout, "", "{args:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{done}");
        assert!(done.stderr.starts_with("pipes: ") && done.stderr.contains(word), "{args:?}: {done}");
    }
    let done = wine.run(&["--json", "no\\such\\folder.json", "--count", "1"]).expect_code(1);
    assert!(done.stderr.contains("ERROR_PATH_NOT_FOUND"), "{done}");
    wine.close();
}

/// Whatever call an end is in, it is cancelled.
#[test]
fn ctrl_c_keeps_what_was_finished() {
    let Some(wine) = Wine::new() else { return };
    for way in [&["--threads", "1"][..], &["--threads", "2"], &["--threads", "2", "--overlapped"]] {
        let child = wine.start(&[&["--count", "1000m", "--block", "64", "--series", "2"], way].concat());
        let pid = Pid::from_raw(child.id() as i32).expect("a process number");
        until("its first line", HANGS_AFTER, || wine.stderr().contains("Wine's figures").then_some(()));
        std::thread::sleep(Duration::from_millis(300));
        kill_process(pid, Signal::INT).expect("it is still running");
        let done = wine.wait(child).expect_code(130);
        let record = done.record();
        assert!(record.settings.interrupted && record.cases.len() == 1, "{done}");
        assert_eq!(record.cases[0].error, None);
    }
    wine.close();
}
