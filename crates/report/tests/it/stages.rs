//! The table of `hosepipe run --stats`, at several widths.

use model::{
    Certainty, Delays, LatencyRecord, LinkRecord, Matched, Record, RecordHead, RunRecord, StageLatency,
    StageRecord,
};
use report::read::Loaded;
use report::study::StudyView;
use report::{FORMATS, Style};

fn stage(command: &str, wall_ms: u64, waits_ms: [u64; 2], signal: Option<i32>) -> StageRecord {
    StageRecord {
        pipeline: 0,
        stage: 0,
        is_reduce: false,
        command: command.to_owned(),
        pid: Some(7),
        status: Some(signal.map_or(0, |signal| 128 + signal)),
        signal,
        wall_ns: wall_ms * 1_000_000,
        user_ns: wall_ms * 500_000,
        system_ns: 0,
        blocked_read_ns: Some(waits_ms[0] * 1_000_000),
        blocked_write_ns: Some(waits_ms[1] * 1_000_000),
        queued_ns: Some(3_000_000),
        held_up_ns: None,
        max_rss_bytes: Some(8_430_000),
        ..StageRecord::default()
    }
}

fn link(bytes: Option<u64>) -> LinkRecord {
    LinkRecord {
        pipeline: 0,
        spec: "pipe".to_owned(),
        granted: [("pipe_bytes".to_owned(), 1 << 20)].into(),
        bytes,
        bytes_is: None,
        lines: None,
        left_bytes: None,
        stored_bytes: None,
        path: None,
        relay: false,
        kept: None,
        trouble: None,
        watched_ns: Some(4_000_000_000),
        full_ns: Some(3_900_000_000),
        empty_ns: Some(40_000_000),
    }
}

fn numbered(mut stages: Vec<StageRecord>) -> Vec<StageRecord> {
    (0..).zip(&mut stages).for_each(|(at, stage)| stage.stage = at);
    stages
}

fn record() -> RunRecord {
    RunRecord {
        head: RecordHead::default(),
        pipeline: "cat a long name | sort | head -1".to_owned(),
        via: "pipe".to_owned(),
        wall_ns: 8_940_000_000,
        status: 0,
        pipestatus: vec![Some(0), Some(141), Some(0)],
        stages: numbered(vec![
            stage("cat some/rather/long/path/of/a/file and another", 6790, [0, 6500], None),
            stage("sort", 8940, [10, 20], Some(13)),
            stage("head -1", 8940, [8940, 0], None),
        ]),
        links: vec![link(Some(100_000_000)), link(None)],
        partitions: None,
        without: None,
        latency: None,
        bottleneck: Some(crate::mock::held_up_by_the_second()),
        why: None,
    }
}

fn table(width: usize) -> String {
    report::terminal(&Record::Run(record()), &Style { width, ..Style::default() }, StudyView::unknown)
}

#[test]
fn the_table_at_a_hundred_columns() {
    insta::assert_snapshot!(table(100));
}

/// Expected: a figure of an earlier record, without a word on how it is known, was counted; a bound has its sign, and what that means
/// stands below.
#[test]
fn bytes_have_the_sign_of_how_they_are_known() {
    let mut record = record();
    let mut shown = |bytes_is| {
        record.links[0].bytes_is = bytes_is;
        report::terminal(
            &Record::Run(record.clone()),
            &Style { width: 160, ..Style::default() },
            StudyView::unknown,
        )
    };
    for (bytes_is, figure, rate, note) in [
        (None, " 100 MB ", " 14.7 MB/s ", "?: unknown"),
        (Some(Certainty::Exact), " 100 MB ", " 14.7 MB/s ", "?: unknown"),
        (Some(Certainty::AtLeast), " ≥100 MB ", " ≥14.7 MB/s ", "≥: only one end counts its bytes"),
        (Some(Certainty::AtMost), " ≤100 MB ", " ≤14.7 MB/s ", "≤: from the totals of its ends"),
    ] {
        let text = shown(bytes_is);
        assert!([figure, rate, note, " ? "].iter().all(|part| text.contains(part)), "{text}");
    }
}

/// Expected: numbers of pipelines and stages count from 1 in JSON and CSV as in the text.
#[test]
fn numbers_count_from_one() {
    let now = record();
    let mut json = serde_json::to_value(Record::Run(now.clone())).expect("JSON");
    assert_eq!((&json["bottleneck"]["stage"], &json["stages"][1]["stage"]), (&2.into(), &2.into()));
    assert_eq!((&json["stages"][0]["pipeline"], &json["links"][1]["pipeline"]), (&1.into(), &1.into()));
    let csv = FORMATS.iter().find(|format| format.flag == "csv").expect("CSV");
    let csv = (csv.render)(&[Loaded::new("r", now.clone())], StudyView::unknown).expect("text");
    assert!(csv.lines().nth(2).is_some_and(|row| row.starts_with("1,2,sort,")), "{csv}");
    let read = |json: &serde_json::Value| report::read::read("r.json", &json.to_string());
    assert_eq!(read(&json).expect("a record").record, Record::Run(now.clone()));
    json["bottleneck"]["stage"] = 4.into();
    let problem = read(&json).expect_err("a place beyond the end").to_string();
    assert!(problem.contains("`bottleneck.stage` is 4, and `stages` ends before it"), "{problem}");
    json["stages"][0]["stage"] = 0.into();
    assert!(read(&json).is_err());
}

/// Expected: a lower bound is called one, and no share is the largest if another may be larger.
/// Happened: "line p50 6.43 ms" of a stage, "p50 176 µs" of the whole.
#[test]
fn times_of_blocks_are_lower_bounds() {
    let delays =
        |matched, mean_ns| Delays { matched, count: 5, mean_ns, p50_ns: 176_000, ..Delays::default() };
    let text = |whole, stages: [Matched; 2]| {
        let stages = (1..).zip(stages).map(|(stage, matched)| StageLatency {
            stage,
            delays: delays(matched, 10),
            share: Some(0.25 * f64::from(stage)),
        });
        let latency = LatencyRecord { pipeline: 0, whole: delays(whole, 20), stages: stages.collect() };
        let record = RunRecord { latency: Some(vec![latency]), ..record() };
        report::terminal(&Record::Run(record), &Style { width: 400, ..Style::default() }, StudyView::unknown)
    };
    use Matched::{Block, Content};
    let exact = text(Content, [Content, Content]);
    assert!(
        exact.contains("p50 176 µs") && !exact.contains("at least") && !exact.contains("≥176"),
        "{exact}"
    );
    assert!(exact.contains("The largest share, 50 %, was in stage 3"), "{exact}");
    let bound = text(Block, [Content, Block]);
    assert!(bound.contains("p50 at least 176 µs") && bound.contains(" ≥176 µs "), "{bound}");
    assert!(bound.contains("share, at least 50 %, was in stage 3") && bound.contains("p99 ≥: "), "{bound}");
    assert!(!text(Block, [Block, Content]).contains("The largest share"));
}

/// Expected: a remark where only a large pipe saved a writer from SIGPIPE.
#[test]
fn a_fault_that_a_large_pipe_hides_is_a_remark() {
    let mut record = record();
    let mut text = |left_bytes| {
        record.links[0].left_bytes = left_bytes;
        let style = Style { width: 400, ..Style::default() };
        report::terminal(&Record::Run(record.clone()), &style, StudyView::unknown)
    };
    assert!(!text(None).contains("size=64KiB"));
    let shown = text(Some(576_000));
    assert!(
        shown.contains("(stage 1) wrote 576 kB more than `sort` (stage 2) read, and ended well"),
        "{shown}"
    );
    assert!(shown.contains("--via pipe:size=64KiB"), "{shown}");
}

#[test]
fn the_table_at_eighty_columns() {
    insta::assert_snapshot!(table(80));
}

#[test]
fn a_run_has_every_format() {
    let loaded = [Loaded::new("run.json", record())];
    let text = |flag: &str| {
        let format = FORMATS.iter().find(|format| format.flag == flag).expect("a registered format");
        (format.render)(&loaded, StudyView::unknown).expect("a sound record")
    };
    for format in FORMATS {
        assert!(text(format.flag).contains("some/rather/long/path"), "{}", format.name);
    }
    assert_eq!(text("csv").lines().count(), 4, "a heading and a line for each stage");
    assert!(text("md").contains("| 2 sort | 8.94 s |"), "{}", text("md"));
}

#[test]
fn formats_for_one_record_refuse_several() {
    let two = ["one.json", "two.json"].map(|name| Loaded::new(name, record()));
    for format in FORMATS {
        let made = (format.render)(&two, StudyView::unknown).map_err(|error| error.to_string());
        match format.flag {
            "json" | "csv" => assert!(made.is_err_and(|message| message.contains("holds one record"))),
            _ => assert!(made.is_ok(), "{}", format.name),
        }
    }
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in [72, 80, 100, 160] {
        let widest = table(width).lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} of {width}");
    }
}

/// Expected: the size that a pipe was given is said where its spec does not say it. Happened: a path with `size=` in it hid the size.
#[test]
fn a_size_is_said_unless_the_spec_has_it() {
    for (spec, said) in [
        ("pipe", "over pipe (1MiB)"),
        ("pipe:size=1MiB", "over pipe:size=1MiB."),
        ("file:dir=/x/size=1", "over file:dir=/x/size=1 (1MiB)"),
    ] {
        let mut record = record();
        record.links.iter_mut().for_each(|link| link.spec = spec.to_owned());
        let shown = report::terminal(&Record::Run(record), &Style::default(), StudyView::unknown);
        assert!(shown.contains(said), "{shown}");
    }
}
