//! Chains, as `hosepipe top --once` shows them.

use model::{
    Chain, ChainLink, ChainLinkKind, ChainProcess, ChainStage, Record, RecordHead, RunRecord, StageActivity,
    StageRecord, TopRecord, TopSnapshot,
};
use report::read::{Loaded, read};
use report::study::StudyView;
use report::{FORMATS, Style, chains};

pub(crate) fn stage(
    names: &[(&str, i32)],
    rates: [f64; 2],
    doing: StageActivity,
    waits_at: Option<usize>,
) -> ChainStage {
    let process = |(name, pid): &(&str, i32)| ChainProcess {
        pid: *pid,
        name: (*name).to_owned(),
        command: format!("{name} --option"),
        ..ChainProcess::default()
    };
    ChainStage {
        stage: 0,
        processes: names.iter().map(process).collect(),
        leaders: 1,
        read_bytes_per_s: Some(rates[0]),
        write_bytes_per_s: Some(rates[1]),
        at_most: names.len() > 1,
        cpus: if doing == StageActivity::Computes { 0.98 } else { 0.0 },
        queued: 0.0,
        doing,
        waits_at,
        held_up: 0.0,
        read_buffer_offset: None,
        write_buffer_offset: None,
        slow_copies: None,
        held_back: None,
    }
}

pub(crate) fn link(ends: [&[usize]; 2], rate: Option<f64>, held: u64) -> ChainLink {
    ChainLink {
        kind: ChainLinkKind::Pipe,
        name: "pipe:[4711]".to_owned(),
        writers: ends[0].to_vec(),
        readers: ends[1].to_vec(),
        bytes_per_s: rate,
        at_least: false,
        held_bytes: Some(held),
        capacity_bytes: Some(65536),
        fullness: Some(held as f64 / 65536.0),
        over: false,
    }
}

fn record() -> TopRecord {
    let straight = Chain {
        stages: vec![
            stage(&[("zcat", 812)], [4e8, 1.2e9], StageActivity::WaitsToWrite, Some(0)),
            stage(&[("awk", 813)], [1.2e9, 3e3], StageActivity::Computes, None),
            stage(&[("sort", 814)], [3e3, 0.0], StageActivity::WaitsToRead, Some(1)),
        ],
        links: vec![link([&[0], &[1]], Some(1.2e9), 65536), link([&[1], &[2]], Some(3e3), 0)],
        held_up_by: Some(1),
        why: None,
    };
    // Two that ask and answer, a second writer, and an end that no visible process has open.
    let round = Chain {
        stages: vec![
            stage(
                &[("bash", 20), ("sleep\u{1b}[31m\n", 23), ("tee", 24)],
                [9.0, 9.0],
                StageActivity::WaitsToRead,
                Some(1),
            ),
            stage(&[("bc", 21)], [0.0, 0.0], StageActivity::WaitsToRead, Some(0)),
            stage(&[("cat", 22)], [0.0, 0.0], StageActivity::MayWait, None),
        ],
        links: vec![
            link([&[0, 2], &[1]], Some(0.0), 0),
            link([&[1], &[0]], Some(0.0), 0),
            ChainLink { at_least: true, ..link([&[], &[2]], Some(5e6), 0) },
            ChainLink {
                held_bytes: None,
                capacity_bytes: None,
                fullness: None,
                ..link([&[1], &[]], None, 0)
            },
        ],
        held_up_by: None,
        why: None,
    };
    let idle = Chain {
        stages: vec![
            stage(&[("tail", 5)], [0.0, 0.0], StageActivity::Elsewhere, None),
            stage(&[("grep", 6)], [0.0, 0.0], StageActivity::WaitsToRead, Some(0)),
        ],
        links: vec![link([&[0], &[1]], Some(0.0), 0)],
        held_up_by: None,
        why: None,
    };
    TopRecord {
        head: RecordHead::default(),
        seen: TopSnapshot {
            elapsed_ns: 1_002_000_000,
            chains: vec![straight, round, idle],
            foreign_processes: 57,
            pipe_quota: None,
            two_way_sockets: 1,
            jobservers: Vec::new(),
        },
    }
}

fn of_no_study(_: &model::StudyRecord) -> StudyView {
    unreachable!("there is no study here")
}

#[test]
fn chains_are_drawn_with_who_waits_for_whom() {
    let any = Record::Top(record());
    for width in [100, 60] {
        let style = Style { width, explain: true, ..Style::default() };
        insta::assert_snapshot!(format!("chains_{width}"), report::terminal(&any, &style, of_no_study));
    }
    let nothing = Record::Top(TopRecord { seen: TopSnapshot::default(), ..record() });
    let said = report::terminal(&nothing, &Style::default(), of_no_study);
    assert_eq!(said.split_whitespace().collect::<Vec<_>>().join(" "), chains::NOTHING);
}

#[test]
fn every_format_has_chains_and_json_reads_back() {
    let loaded = [Loaded::new("top.json", record())];
    for format in FORMATS {
        let text = (format.render)(&loaded, of_no_study).expect(format.name);
        let steers = text.contains('\u{1b}') && format.flag != "csv";
        assert!(text.contains("zcat") && !steers, "{}: {text}", format.flag);
        if format.flag == "json" {
            assert_eq!(read("top.json", &text).expect("a record").record, loaded[0].record);
        }
        if format.flag == "csv" {
            insta::assert_snapshot!("chains_csv", text);
        }
    }
}

/// Expected: places that do not exist are found when a record is read. Happened: `report` panicked.
#[test]
fn places_that_do_not_exist_are_refused() {
    let refused = |change: fn(&mut Chain)| {
        let mut record = record();
        change(&mut record.seen.chains[0]);
        let text = serde_json::to_string(&Record::from(record)).expect("JSON");
        read("top.json", &text).expect_err("refused").to_string()
    };
    type Change = fn(&mut Chain);
    let all: [(Change, &str); 6] = [
        (|chain| chain.stages.clear(), "a chain has no `stages`"),
        (|chain| chain.held_up_by = Some(99), "`held_up_by` is 100, and `stages` ends before it"),
        (|chain| chain.links[0].writers = vec![99], "an end of a link is 100"),
        (|chain| chain.links[1].readers = vec![0, 3], "an end of a link is 4"),
        (|chain| chain.stages[2].waits_at = Some(2), "`waits_at` is 3, and `links` ends before it"),
        (|chain| chain.links[0] = link([&[0; 2000], &[1; 2000]], None, 0), "join 4000001 pairs"),
    ];
    for (change, said) in all {
        let message = refused(change);
        assert!(message.contains("top.json: the record is damaged") && message.contains(said), "{message}");
    }
}

/// Expected: sentences that do not contradict themselves. Happened: "jq holds the chain up: it waits for sort to read".
#[test]
fn one_that_is_waited_for_may_wait_itself_by_now() {
    let mut chain = record().seen.chains.swap_remove(0);
    (chain.stages[1].doing, chain.stages[1].waits_at) = (StageActivity::WaitsToWrite, Some(1));
    let expected =
        "awk 813 held the chain up in most of the last samples; now it waits for sort 814 to read.";
    assert_eq!(chains::sentence(&chain), expected);
}

/// Expected: a page of a kind of record has that kind's words and a picture, and what a stage does stands beside its name.
/// Happened: the words of `bench` on every page, a row for each bug that the CPU does not have, no picture, and the key column last.
#[test]
fn a_page_of_chains_has_a_picture_and_its_own_words() {
    let mut record = record();
    let spared = ["mds", "l1tf"].map(|name| (name.to_owned(), "Not affected".to_owned()));
    record.head.host.mitigations =
        spared.into_iter().chain([("spectre_v2".to_owned(), "IBRS".to_owned())]).collect();
    let html = FORMATS.iter().find(|format| format.flag == "html").expect("pages");
    let text = (html.render)(&[Loaded::new("top", record)], StudyView::unknown).expect("a page");
    assert!(text.contains("id=\"word-chain\"") && !text.contains("id=\"word-data\""), "words");
    assert!(
        !text.contains("Not affected") && text.contains("not affected by</th><td>l1tf, mds</td>"),
        "bugs"
    );
    assert!(text.contains("mitigation: spectre_v2</th><td>IBRS"), "bugs");
    // The first chain is a line, the second one is not.
    assert!(text.contains("id=\"chain-0-0\"") && !text.contains("id=\"chain-0-1\""), "pictures");
    assert!(text.contains("1.20 GB</tspan>"), "what flowed in a second");
    let columns = [text.find(">stage</th>"), text.find(">what it does</th>"), text.find(">CPU</th>")];
    assert!(columns.is_sorted() && columns[0].is_some(), "{columns:?}");
    let queued = RunRecord {
        stages: vec![StageRecord {
            wall_ns: 4_000_000_000,
            queued_ns: Some(3_000_000_000),
            ..StageRecord::default()
        }],
        ..RunRecord::default()
    };
    let text = (html.render)(&[Loaded::new("run", queued)], StudyView::unknown).expect("a page");
    assert_eq!(text.matches("class=\"queued\"").count(), 4, "a key and a bar, in both drawings");
}
