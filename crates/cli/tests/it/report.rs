//! `hosepipe report`: the tables of records again, and what is said of files that are no records.

use crate::common::Lab;

const QUICK: [&str; 8] = ["bench", "pipe", "--block", "4KiB", "--count", "10", "--trials", "2"];

#[test]
fn a_record_gives_the_table_of_its_run() {
    let lab = Lab::new();
    let first = lab.run(&[&QUICK[..], &["--json", "run.json"]].concat()).expect_code(0);
    let again = lab.run(&["report", "run.json"]).expect_code(0);
    assert_eq!(again.stdout, first.stdout);
    let both = lab.run(&["report", "run.json", "run.json"]).expect_code(0);
    assert_eq!(both.stdout.matches("== run.json ==").count(), 2);
}

#[test]
fn bench_and_compare_write_their_page_at_once() {
    let lab = Lab::new();
    let bench = lab.run(&[&QUICK[..], &["--html", "-"]].concat()).expect_code(0);
    assert!(bench.stdout.starts_with("<!DOCTYPE html>") && bench.stdout.ends_with("</html>\n"));
    let compare = ["compare", "--via", "pipe", "--trials", "1", "--html", "page.html", "true | true"];
    lab.run(&compare).expect_code(0);
    let page = std::fs::read_to_string(lab.here("page.html")).expect("the page");
    assert!(page.contains("<!DOCTYPE html>") && page.contains("true | true"));
}

#[test]
fn what_is_no_record_is_refused_with_its_name() {
    let lab = Lab::new();
    lab.run(&[&QUICK[..], &["--json", "run.json"]].concat()).expect_code(0);
    let text = std::fs::read_to_string(lab.here("run.json")).expect("the record");
    let write = |name: &str, text: &str| std::fs::write(lab.here(name), text).expect("a file");
    write("cut.json", &text[..text.len() / 2]);
    write("future.json", &text.replace("hosepipe/1", "hosepipe/9"));
    write("other.json", "{\"hello\": [1, 2, 3]}");
    std::fs::write(lab.here("binary.json"), b"{\"schema\": \"\xff\"}").expect("a file");
    write("damaged.json", &text.replacen("\"median_bytes_per_s\":", "\"median\":", 1));
    for (file, said) in [
        ("cut.json", "the JSON ends in the middle, at line"),
        ("future.json", "the schema `hosepipe/9`, and this hosepipe reads `hosepipe/1`"),
        ("other.json", "this JSON is not a record"),
        ("binary.json", "byte 12 is not UTF-8"),
        ("damaged.json", "the record is damaged: missing field `median_bytes_per_s`"),
    ] {
        for args in [&["report", "run.json", file][..], &["report", file, "--html", "page.html"]] {
            let done = lab.run(args).expect_code(2);
            assert!(done.stderr.contains(file) && done.stderr.contains(said), "{}", done.stderr);
            assert!(done.stdout.is_empty() && !lab.here("page.html").exists(), "nothing half-made");
        }
    }
    let done = lab.run(&["report", "absent.json"]).expect_code(2);
    assert!(done.stderr.contains("absent.json") && done.stderr.contains("ENOENT"), "{}", done.stderr);
    lab.run(&["report"]).expect_code(2);
}

/// Expected: a histogram that cannot be read makes a record no record, and what its header says takes no memory.
/// Happened: `report` ended with 0, `diff` left the rows out, and a length of 0xffffffff took 4.2 GB.
#[test]
fn a_histogram_that_cannot_be_read_is_refused_by_all_that_read_records() {
    let lab = Lab::new();
    let trips =
        ["bench", "pipe", "--workload", "pingpong", "--count", "10", "--trials", "2", "--json", "trips.json"];
    lab.run(&trips).expect_code(0);
    let mut record =
        crate::common::read_record(&std::fs::read_to_string(lab.here("trips.json")).expect("a record"));
    let samples = record.cases.iter_mut().flat_map(|case| &mut case.samples);
    samples.for_each(|sample| sample.latency_histogram = Some("@@".to_owned()));
    std::fs::write(lab.here("bad.json"), serde_json::to_string(&model::Record::from(record)).expect("JSON"))
        .expect("written");
    for args in [
        &["report", "bad.json"][..],
        &["diff", "trips.json", "bad.json"],
        &["diff", "bad.json", "bad.json"],
        &["recommend", "--from", "bad.json", "--message", "64", "--pattern", "request-reply"],
    ] {
        let done = lab.run(args).expect_code(2);
        let said = "bad.json: the record is damaged: a latency histogram is not base64";
        assert!(done.stdout.is_empty() && done.stderr.contains(said), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn records_with_nothing_in_common_are_told_so_and_shown_all_the_same() {
    let lab = Lab::new();
    let here = ["bench", "fifo", "--block", "1KiB", "--count", "10", "--trials", "2", "--json", "fifo.json"];
    lab.run(&[&QUICK[..], &["--json", "pipe.json"]].concat()).expect_code(0);
    lab.run(&here).expect_code(0);
    let done = lab.run(&["report", "pipe.json", "fifo.json", "--html", "page.html"]).expect_code(0);
    for name in ["pipe.json", "fifo.json"] {
        assert!(done.stderr.contains(&format!("{name} has no case in common")), "{}", done.stderr);
    }
    let page = std::fs::read_to_string(lab.here("page.html")).expect("the page");
    assert!(page.contains("has no case in common with the other records"));
}

/// Expected: a path is bytes, as the system has it.
/// Happened: the parser refused names of records that are no text, and a record in Latin-1 was status 1.
#[test]
fn a_path_need_not_be_text() {
    let lab = Lab::new();
    let script = r#"
        set -e
        mkdir "$TMPDIR"/$'t-\xff'
        export TMPDIR=$TMPDIR/$'t-\xff'
        "$0" bench file pipe --place any --count 4 --trials 1 --json $'j-\xff' >&2
        "$0" report $'j-\xff' --html $'h-\xff'
        "$0" run --via tmpfile --keep $'k-\xff' --json $'r-\xff' 'seq 9 | wc -l'
        echo 'seq 3 | tac' > $'s-\xff'
        "$0" sh $'s-\xff'
        "$0" gen --bytes 12 --payload $'file:s-\xff'
        chmod +x $'s-\xff'
        "$0" bench --worker $'./s-\xff' --bytes 1MiB --trials 1 | grep -o 'said: .*' || echo none
        rmdir "$TMPDIR"
        wc -l < $'k-\xff/1-seq'
        ls $'j-\xff' $'h-\xff' $'r-\xff' | wc -l
    "#;
    let done = lab.finish(lab.wrapped(&["bash", "-c", script], &[])).expect_code(0);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines, ["9", "3", "2", "1", "seq 3 | tac", "none", "9", "3"], "{}", done.stderr);
}

/// Expected: a text is bytes, too, as the shell takes it.
/// Happened: what was no UTF-8 was refused.
#[test]
fn a_text_need_not_be_utf_8() {
    let lab = Lab::new();
    let script = r#"
        text=$'echo \xe9 | od -An -tx1'
        "$0" run "$text"
        "$0" sh -c "$text"
        echo "$text" > latin
        "$0" sh latin
        "$0" run --json record "$text"
        grep -o '"pipeline": "echo.*od' record
        "$0" compare "$text" || echo refused $?
    "#;
    let done = lab.finish(lab.wrapped(&["bash", "-c", script], &[])).expect_code(0);
    let lines: Vec<&str> = done.stdout.lines().map(str::trim).collect();
    let expected = ["e9 0a", "e9 0a", "e9 0a", "e9 0a", "\"pipeline\": \"echo \u{fffd} | od", "refused 2"];
    assert_eq!(lines, expected, "{}", done.stderr);
}

/// Expected: the error names what was typed. Happened: "cannot read the record /tmp/fleet", which had not been typed.
#[test]
fn a_folder_without_a_record_is_named_as_typed() {
    let lab = Lab::new();
    std::fs::create_dir(lab.here("empty")).expect("a folder");
    for args in [
        ["report", "empty"].as_slice(),
        &["diff", "empty", "empty"],
        &["recommend", "--message", "1KiB", "--from", "empty"],
    ] {
        let done = lab.run(args).expect_code(2);
        assert!(done.stderr.contains("cannot read the record empty: it is a folder"), "{}", done.stderr);
    }
}
