//! Many pairs, many senders and given rates, as people and programs read them.

use crate::golden::{format, plain};
use crate::mock::{Mock, Work, record};
use model::{BenchRecord, CaseRecord, DataLevel, ErrorKind, Role, Share};

fn loads() -> BenchRecord {
    let shares = |case: &mut CaseRecord, pairs: u32| {
        for sample in &mut case.samples {
            let share = |number: u32| Share {
                elapsed_ns: sample.elapsed_ns,
                bytes: sample.bytes / u64::from(pairs),
                bytes_while_all_ran: sample.bytes / u64::from(pairs) / u64::from(number + 1),
            };
            sample.shares = (0..pairs).map(share).collect();
            sample.all_ran_ns = Some(sample.elapsed_ns);
        }
    };
    let pairs = |spec: &str, pairs: u32, gb_per_s: f64| {
        Mock::stream(spec).gb_per_s(gb_per_s, 1.0, Work::Copying).with(|case| {
            case.pairs = Some(pairs);
            shares(case, pairs);
        })
    };
    let senders = |count: u32, torn: u64| {
        Mock::stream("pipe").gb_per_s(1.0, 1.0, Work::Copying).with(|case| {
            case.senders = Some(count);
            shares(case, count);
            case.samples.iter_mut().for_each(|sample| sample.torn_blocks = Some(torn));
        })
    };
    let rate = |rate_per_s: u32, elapsed_ns: u64| {
        Mock::round_trips("tcp").round_trip_ns(40_000, 1.0).with(|case| {
            case.rate_per_s = Some(rate_per_s);
            for sample in &mut case.samples {
                sample.elapsed_ns = elapsed_ns;
                sample.service_histogram = sample.latency_histogram.clone();
            }
        })
    };
    let refused = |pairs: u32| {
        Mock::stream("pty").with(|case| case.pairs = Some(pairs)).fails(
            ErrorKind::Limit,
            "pair 2 of 4: ENOSPC",
            None,
        )
    };
    record([
        pairs("pipe", 1, 1.0),
        pairs("pipe", 4, 1.5),
        pairs("shm-ring", 1, 4.0),
        pairs("shm-ring", 4, 3.0),
        refused(4),
        senders(1, 0),
        senders(3, 700),
        rate(1000, 1_000_000_000),
        rate(4000, 500_000_000),
        Mock::stream("memcpy").gb_per_s(50.0, 1.0, Work::Copying).data(DataLevel::None).role(Role::Ceiling),
    ])
}

#[test]
fn loads_are_tables_of_their_own() {
    let record = loads();
    for width in [80, 120] {
        let text = plain(&record, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width} columns: {line}");
        }
        insta::assert_snapshot!(format!("loads_{width}"), text);
    }
    insta::assert_snapshot!("loads_markdown", format(&record, "md"));
    let csv = format(&record, "csv");
    let heading = csv.lines().next().expect("a heading");
    assert!(heading.ends_with("torn_share,service_p50_ns,service_p99_ns"), "{heading}");
    let page = format(&record, "html");
    for figure in ["pairs at once", "senders", "round trips asked for in a second"] {
        assert!(page.contains(&format!(">{figure}<")), "an axis of {figure}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf "), "no figure that is none");
}
