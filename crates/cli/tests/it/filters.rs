//! `hosepipe gen` and `hosepipe sink` as a user types them, in pipelines of bash.

use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use tempfile::TempDir;

/// Runs a script in a folder of its own, with `hosepipe` on the PATH.
fn bash_in(folder: &Path, script: &str) -> Assert {
    let binary = Path::new(env!("CARGO_BIN_EXE_hosepipe"));
    let folder_of_binary = binary.parent().expect("a binary lies in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("bash")
        .args(["-c", script])
        .env("PATH", format!("{}:{path}", folder_of_binary.display()))
        .current_dir(folder)
        .timeout(std::time::Duration::from_secs(120))
        .assert()
}

fn bash(script: &str) -> Assert {
    let folder = TempDir::new().expect("temporary folder");
    bash_in(folder.path(), script)
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stdout).trim().to_owned()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).trim().to_owned()
}

#[test]
fn gen_writes_exactly_as_many_bytes_as_asked() {
    for bytes in ["0", "1", "4095", "65537", "10MB"] {
        for block in ["1000", "4KiB", "65537", "64KiB", "3MiB"] {
            let piped = bash(&format!("hosepipe gen --bytes {bytes} --block {block} | wc -c")).success();
            let filed =
                bash(&format!("hosepipe gen --bytes {bytes} --block {block} > f && stat -c %s f")).success();
            let exact = if bytes == "10MB" { "10000000" } else { bytes };
            assert_eq!((stdout(&piped), stdout(&filed)), (exact.into(), exact.into()), "blocks of {block}");
        }
    }
}

#[test]
fn the_sequence_is_0_to_255_over_and_over_by_every_method() {
    let folder = TempDir::new().expect("temporary folder");
    let reference: Vec<u8> = (0..=255u8).cycle().take(1_000_003).collect();
    std::fs::write(folder.path().join("reference"), reference).expect("room on the disk");
    for block in ["1KiB", "64KiB", "65537", "777"] {
        let generate = format!("hosepipe gen --bytes 1000003 --block {block}");
        bash_in(folder.path(), &format!("{generate} | cmp - reference")).success();
        bash_in(folder.path(), &format!("{generate} > f && cmp f reference")).success();
        bash_in(folder.path(), &format!("{generate} | cat | cmp - reference")).success();
    }
}

#[test]
fn a_payload_and_a_seed_always_mean_the_same_bytes() {
    for payload in ["printable", "random", "zero"] {
        let generate = format!("hosepipe gen --bytes 20MB --payload {payload}");
        bash(&format!("cmp <({generate}) <({generate} --block 10001 | cat)")).success();
    }
    bash("cmp -s <(hosepipe gen --bytes 1k --payload random) <(hosepipe gen --bytes 1k --payload random --seed 2)")
        .code(1);
    bash("printf abc > f; [ \"$(hosepipe gen --bytes 8 --payload file:f)\" = abcabcab ]").success();
}

#[test]
fn sink_recognises_what_gen_wrote() {
    for payload in ["sequence", "printable", "random", "zero"] {
        let end = bash(&format!("hosepipe gen --bytes 33MB --payload {payload} | hosepipe sink --verify"))
            .success();
        assert!(stderr(&end).starts_with(&format!("33000000 bytes, all as in the payload {payload}")));
        assert_eq!(stdout(&end), "");
    }
    bash("hosepipe gen --bytes 5MB --payload random --seed 7 | hosepipe sink --verify --seed 7").success();
    bash(
        "printf 'my own data' > f
         hosepipe gen --bytes 5MB --payload file:f | hosepipe sink --verify --payload file:f",
    )
    .success();
}

#[test]
fn programs_between_them_change_nothing() {
    for payload in ["sequence", "random"] {
        let generate = format!("set -o pipefail; hosepipe gen --bytes 30MB --payload {payload}");
        for stage in ["cat", "tee copy", "dd bs=5000 status=none", "head -c 30000000"] {
            bash(&format!("{generate} | {stage} | hosepipe sink --verify")).success();
        }
        bash(&format!("{generate} > f; hosepipe sink --verify < f")).success();
        bash(&format!("mkfifo p; {generate} > p & hosepipe sink --verify < p")).success();
    }
}

#[test]
fn a_wrong_byte_is_named() {
    let end = bash(
        "hosepipe gen --bytes 3MB --payload random > f
         printf 'ABCD' | dd of=f bs=1 seek=1234567 conv=notrunc status=none
         head -c 1234567 f > same; hosepipe sink --verify < same || exit 9
         hosepipe sink --verify < f",
    )
    .code(1);
    // One of the four may happen to be right.
    assert!(stderr(&end).contains("hosepipe sink: byte 12345"), "{}", stderr(&end));
    assert!(stderr(&end).contains("in the payload random"), "{}", stderr(&end));
}

#[test]
fn a_lost_byte_is_seen_and_the_writer_is_stopped() {
    let end = bash(
        "(hosepipe gen --bytes 100000; hosepipe gen | tail -c +2) | hosepipe sink --verify
         echo ${PIPESTATUS[1]}",
    );
    assert_eq!(stdout(&end), "1");
    // 100000 = 390 * 256 + 160: 0xa0 was due, and 0x01 came.
    assert!(
        stderr(&end).contains("byte 100000 is 0x01, but 0xa0 in the payload sequence"),
        "{}",
        stderr(&end)
    );
}

/// Expected: a stream whose end is missing can be told from a whole one.
/// Happened: status 0, "all as in the payload sequence".
#[test]
fn an_end_that_is_cut_off_is_seen_where_the_amount_is_known() {
    for verify in ["", "--verify"] {
        for between in ["", "| cat"] {
            let sink = format!("{between} | hosepipe sink {verify} --bytes 1MB");
            bash(&format!("hosepipe gen --bytes 1MB {sink}")).success();
            let end = bash(&format!("hosepipe gen --bytes 1MB | head -c 900000 {sink}")).code(1);
            assert!(
                stderr(&end).contains("900000 of 1000000 bytes came, 100000 too few"),
                "{}",
                stderr(&end)
            );
            let end = bash(&format!("hosepipe gen {sink}; exit ${{PIPESTATUS[0]}}")).code(141);
            assert!(stderr(&end).contains("more than the 1000000 bytes"), "{}", stderr(&end));
        }
    }
    let end = bash("hosepipe gen --bytes 9 | hosepipe sink --verify --bytes 10 --json -").code(1);
    let json: serde_json::Value = serde_json::from_str(&stdout(&end)).expect("JSON");
    assert_eq!((&json["verified"], &json["bytes"]), (&false.into(), &9.into()));
    assert_eq!(json["expected_bytes"], 10);
    bash("hosepipe gen --bytes 0 | hosepipe sink --bytes 1").code(1);
    bash("hosepipe gen --bytes 0 | hosepipe sink --bytes 0").success();
}

/// Expected: a rate is of bytes that were waited for.
/// Happened: what lay in the pipe before `sink` began was counted as moved in the microseconds it took to read it.
#[test]
fn what_lay_waiting_is_no_rate() {
    let end = bash("head -c 50000 /dev/zero | { sleep 0.3; hosepipe sink --json -; }").success();
    assert!(stderr(&end).contains("50000 bytes") && stderr(&end).contains("no rate"), "{}", stderr(&end));
    let json: serde_json::Value = serde_json::from_str(&stdout(&end)).expect("JSON");
    assert_eq!((&json["bytes"], &json["waiting_bytes"]), (&50_000.into(), &50_000.into()));
    assert!(json["throughput_bytes_per_s"].is_null(), "{json}");

    // 50,000 bytes lie waiting, and 50,000 come half a second later: that is 100 kB/s, and no more.
    let more = "{ head -c 50000 /dev/zero; sleep 0.8; head -c 50000 /dev/zero; }";
    let end = bash(&format!("{more} | {{ sleep 0.3; hosepipe sink --json -; }}")).success();
    assert!(
        stderr(&end).ends_with("without the 50000 that had come before the clock started"),
        "{}",
        stderr(&end)
    );
    let json: serde_json::Value = serde_json::from_str(&stdout(&end)).expect("JSON");
    let rate = json["throughput_bytes_per_s"].as_f64().expect("a rate");
    assert!(rate < 50_000.0 / 0.4, "{json}");
    // A file is there as a whole, and reading it is what is timed.
    let end = bash("head -c 50000 /dev/zero > f; hosepipe sink --json - < f").success();
    let json: serde_json::Value = serde_json::from_str(&stdout(&end)).expect("JSON");
    assert!(json["waiting_bytes"] == 0 && json["throughput_bytes_per_s"].is_f64(), "{json}");
}

#[test]
fn what_is_no_payload_is_told_from_one_gone_wrong() {
    let end = bash("echo hello | hosepipe sink --verify").code(1);
    assert!(
        stderr(&end).contains("of --seed 1: give `sink` the --payload and --seed of `gen`"),
        "{}",
        stderr(&end)
    );
    // Happened: "byte 0 is 0x91, but 0x00 in the payload sequence", which these bytes never were.
    let end =
        bash("hosepipe gen --bytes 1MB --payload random --seed 7 | hosepipe sink --verify --seed 8").code(1);
    let said = stderr(&end);
    assert!(said.contains("none of the payloads sequence, printable, random, zero of --seed 8"), "{said}");
    assert!(!said.contains("in the payload sequence"), "{said}");
    let end = bash("echo hello | hosepipe sink --verify --payload zero").code(1);
    assert!(stderr(&end).contains("byte 0 is 0x68, but 0x00 in the payload zero"), "{}", stderr(&end));
}

#[test]
fn gen_dies_of_sigpipe_without_a_word() {
    for payload in ["sequence", "random"] {
        let end = bash(&format!("hosepipe gen --payload {payload} | head -c 5 > h; echo ${{PIPESTATUS[*]}}"));
        assert_eq!((stdout(&end), stderr(&end)), ("141 0".into(), String::new()));
    }
}

#[test]
fn a_full_disk_and_a_missing_payload_are_sentences() {
    let end = bash("hosepipe gen --bytes 1MB > /dev/full").code(1);
    assert!(stderr(&end).contains("cannot write standard output at byte 0: ENOSPC"), "{}", stderr(&end));
    let end = bash("hosepipe gen --bytes 10 --payload file:missing").code(1);
    assert!(stderr(&end).contains("cannot read the payload missing: ENOENT"), "{}", stderr(&end));
    let end = bash("hosepipe sink --json missing/f < /dev/null").code(1);
    assert!(stderr(&end).contains("cannot write missing/f: ENOENT"), "{}", stderr(&end));
    let end = bash("hosepipe sink < .").code(1);
    assert!(stderr(&end).contains("EISDIR"), "{}", stderr(&end));
}

#[test]
fn nothing_is_a_stream_too() {
    let end = bash("hosepipe gen --bytes 0 | hosepipe sink --verify").success();
    assert_eq!(stderr(&end), "0 bytes: standard input was empty");
}

#[test]
fn the_json_says_what_came_in() {
    let end = bash("hosepipe gen --bytes 1GB | hosepipe sink --verify --json -").success();
    let json: serde_json::Value = serde_json::from_str(&stdout(&end)).expect("JSON");
    assert_eq!((&json["bytes"], &json["verified"]), (&1_000_000_000.into(), &true.into()));
    assert_eq!((&json["payload"], &json["method"]), (&"sequence".into(), &"read".into()));
    assert!(
        json["elapsed_ns"].is_u64() && json["throughput_bytes_per_s"].is_f64() && json["mismatch"].is_null()
    );

    let end = bash("printf '\\0\\1X' | hosepipe sink --verify --json f; cat f").success();
    let json: serde_json::Value = serde_json::from_str(&stdout(&end)).expect("JSON");
    assert_eq!((&json["verified"], &json["mismatch"]["offset"]), (&false.into(), &2.into()));
    assert_eq!(json["mismatch"]["found"], u64::from(b'X'));

    let end = bash("hosepipe gen --bytes 1MiB | hosepipe sink --json -").success();
    let json: serde_json::Value = serde_json::from_str(&stdout(&end)).expect("JSON");
    assert_eq!((&json["verified"], &json["method"]), (&false.into(), &"splice".into()));
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for (arguments, says) in [
        ("gen --block 0", "0 bytes move nothing"),
        ("gen --bytes much", "`much` is not a size"),
        ("gen --payload noise", "choose sequence, printable, random, zero, or file:PATH"),
        ("sink --payload zero", "--verify"),
        ("sink --seed 3", "--verify"),
    ] {
        let end = bash(&format!("hosepipe {arguments} < /dev/null")).code(2);
        assert!(stderr(&end).contains(says), "{arguments}: {}", stderr(&end));
    }
}
