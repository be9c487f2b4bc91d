//! Many nodes beside each other, one of which is slow, one of which failed, and one pair of which is slow.

use model::{Direction, FleetMeeting, FleetNode, FleetRecord, Record, RecordHead};
use report::read::read;
use report::study::StudyView;
use report::{FORMATS, Style};

use crate::mock::{Mock, Work, record as bench};

/// Six nodes: n2 is slow by itself and in all its pairs, n5 fell silent, and n0 and n4 are slow with each other.
fn fleet(nodes: usize) -> FleetRecord {
    let node = |rank: usize| {
        let speed = if rank == 2 { 0.7 } else { 1.4 + rank as f64 / 100.0 };
        let cases = [
            Mock::stream("pipe").gb_per_s(speed, 2.0, Work::Waking),
            Mock::round_trips("pipe").round_trip_ns(52_000 + rank as u64, 2.0),
        ];
        let mut own = bench(cases);
        own.head.host.kernel = format!("Linux 6.{}", if rank == 2 { 1 } else { 18 });
        let silent = rank == 5;
        FleetNode {
            name: format!("n{rank}"),
            address: Some(format!("10.0.0.{rank}")),
            bench: (!silent).then_some(own),
            failure: silent
                .then(|| "no heartbeat for 15 s, in its own bench: it died, or was cut off".to_owned()),
        }
    };
    let meeting = |(to, from): (usize, usize)| {
        let speed = match (to, from) {
            (2, _) | (_, 2) => 0.5,
            (0, 4) => 0.3,
            _ => 1.0 + (to + from) as f64 / 1000.0,
        };
        let way = |mock: Mock, way| mock.with(|case| case.direction = Some(way));
        let silent = from == 5;
        let stream = || Mock::stream("tcp").gb_per_s(speed, 2.0, Work::Copying);
        let trips = Mock::round_trips("tcp").round_trip_ns(30_000, 2.0);
        let cases =
            vec![way(stream(), Direction::Peer), way(stream(), Direction::Here), way(trips, Direction::Peer)];
        FleetMeeting {
            from,
            to,
            cases: if silent { Vec::new() } else { bench(cases).cases },
            failure: silent.then(|| "n5 did not get to it".to_owned()),
        }
    };
    let pairs = (0..nodes).flat_map(|to| (to + 1..nodes).map(move |from| (to, from)));
    FleetRecord {
        head: RecordHead { arguments: vec!["fleet".to_owned()], ..bench([]).head },
        wall_ns: 61_000_000_000,
        nodes: (0..nodes).map(node).collect(),
        meetings: pairs.map(meeting).collect(),
    }
}

fn no_study(_: &model::StudyRecord) -> StudyView {
    unreachable!("this record is no study's")
}

#[test]
fn slow_nodes_and_pairs_are_named_and_what_failed() {
    let record = Record::Fleet(fleet(6));
    let style = Style { width: 110, ..Style::default() };
    let text = report::terminal(&record, &style, no_study);
    insta::assert_snapshot!(text);
    let few = report::terminal(&Record::Fleet(fleet(3)), &style, no_study);
    assert!(few.contains("Figures of 3 nodes are too few to find slow ones"), "{few}");
    assert!(!few.contains(" is slow"), "{few}");
}

/// Five alike nodes, each pair of which is measured with what becomes of this.
fn alike(case: impl Fn(usize, usize, Mock) -> Mock) -> FleetRecord {
    let mut record = fleet(5);
    for node in &mut record.nodes {
        node.bench = Some(bench([Mock::stream("pipe").gb_per_s(1.0, 2.0, Work::Waking)]));
    }
    for meeting in &mut record.meetings {
        let way = |(from, to), way| {
            let speed = 1.0 + (3 * from + to) as f64 / 1e4;
            let mock = Mock::stream("tcp").gb_per_s(speed, 2.0, Work::Copying);
            case(from, to, mock.with(|case| case.direction = Some(way)))
        };
        let (from, to) = (meeting.from, meeting.to);
        meeting.cases = bench([way((from, to), Direction::Peer), way((to, from), Direction::Here)]).cases;
    }
    record
}

fn shown(record: FleetRecord) -> String {
    report::terminal(&Record::Fleet(record), &Style { width: 200, ..Style::default() }, no_study)
}

/// Expected: "it sends at 3.6 %", and no pair. Happened: "streams with its partners at 19 %", and every pair that it sends to.
#[test]
fn a_node_that_only_sends_slowly_is_told_as_that() {
    let shaped =
        alike(|from, _, mock| if from == 2 { mock.gb_per_s(0.036, 2.0, Work::Copying) } else { mock });
    let text = shown(shaped);
    assert!(text.contains("n2 is slow: it sends at 3.6 % of the median node's speed."), "{text}");
    assert!(!text.contains("Slow pairs") && !text.contains("receives at"), "{text}");
}

/// Expected: intervals, and nobody named whose figures reach those of the others. Happened: no mark, and names by chance.
#[test]
fn figures_too_wide_to_judge_by_are_counted_and_name_nobody() {
    let noisy = |from, percent| {
        move |one: usize, _: usize, mock: Mock| {
            if one == from { mock.gb_per_s(0.5, percent, Work::Copying) } else { mock }
        }
    };
    let text = shown(alike(noisy(2, 120.0)));
    assert!(text.contains("500 MB/s ±") && text.contains("± is the 95 % interval of the median."), "{text}");
    assert!(
        text.contains("0.50 (up to ") && text.contains("4 of 25 figures cannot be distinguished from"),
        "{text}"
    );
    assert!(
        text.contains("No node and no pair stands out as slow. This would have: a node below "),
        "{text}"
    );
    // Wild as they are, even their fastest trials are far below.
    let text = shown(alike(noisy(2, 40.0)));
    assert!(
        text.contains("n2 is slow: it sends at 50 %") && !text.contains("cannot be distinguished from"),
        "{text}"
    );
    let mut few = alike(noisy(2, 2.0));
    for case in few.meetings.iter_mut().flat_map(|meeting| &mut meeting.cases) {
        case.samples.truncate(3);
    }
    let text = shown(few);
    assert!(text.contains("20 of 25 figures cannot be distinguished from"), "of three trials: {text}");
    assert!(text.contains("(few trials)") && text.contains("± is the range of all trials;"), "{text}");
    let unknown = "Slow nodes and pairs cannot be found by: sending, receiving";
    assert!(text.contains(unknown) && !text.contains("a pair below"), "{text}");
}

/// Expected: a sentence. Happened: an index out of bounds.
#[test]
fn a_pair_of_nobody_is_damage() {
    let mut record = fleet(2);
    record.meetings[0].to = 9;
    let text = serde_json::to_string(&Record::from(record)).expect("JSON");
    let error = read("fleet", &text).expect_err("damage").to_string();
    assert!(error.contains("fleet: the record is damaged: a rank in `meetings` is 9"), "{error}");
}

#[test]
fn every_format_has_a_fleet_and_json_brings_it_back() {
    let json = FORMATS[0];
    let many = fleet(20);
    let loaded = report::read::Loaded::new("fleet", many.clone());
    let text = (json.render)(std::slice::from_ref(&loaded), no_study).expect("JSON");
    assert_eq!(read("fleet", &text).expect("a record").record, Record::Fleet(many));
    for format in FORMATS {
        let text = (format.render)(std::slice::from_ref(&loaded), no_study).expect("written");
        assert!(
            ["n2", "n19", "no heartbeat for 15 s"].iter().all(|words| text.contains(words)),
            "{}",
            format.name
        );
        if format.flag == "csv" {
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines[0].starts_with("node,partner,failure,mechanism,"), "{}", lines[0]);
            let pairs_of_the_silent = 5;
            // The two streams of a pair are not told apart by their figures alone.
            assert!(lines[0].ends_with(",direction,congestion_control,retransmits"), "{}", lines[0]);
            let ways = ["to-peer,", "from-peer,"].map(|way| text.matches(way).count());
            assert_eq!(ways, [(190 - pairs_of_the_silent) * 2, 190 - pairs_of_the_silent]);
            assert_eq!(lines.len(), 1 + 19 * 2 + 1 + (190 - pairs_of_the_silent) * 3 + pairs_of_the_silent);
        }
    }
}
