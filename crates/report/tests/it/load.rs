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

/// Several senders, or receivers, of a mechanism, and how many of the blocks of each trial did not arrive in one piece.
fn torn(spec: &str, gb_per_s: f64, [senders, receivers]: [Option<u32>; 2], torn: Option<u64>) -> Mock {
    Mock::stream(spec).gb_per_s(gb_per_s, 1.0, Work::Copying).with(|case| {
        (case.senders, case.receivers) = (senders, receivers);
        case.samples.iter_mut().for_each(|sample| sample.torn_blocks = torn);
    })
}

/// Expected: what mixes blocks is not advised. Happened: `pipe` was, with 58 % of its blocks mixed.
#[test]
fn what_tears_blocks_is_never_taken() {
    let said = |cases: Vec<Mock>| plain(&record(cases), 200).replace('\n', " ");
    let (four, four_receivers) = ([Some(4), None], [None, Some(4)]);
    let text = said(vec![torn("pipe", 3.0, four, Some(7)), torn("unix-dgram", 1.0, four, Some(0))]);
    assert!(text.contains("take `unix-dgram` ("), "{text}");
    assert!(text.contains("left out, as blocks of several senders were mixed: `pipe` ("), "{text}");
    let text = said(vec![torn("pipe", 3.0, four, Some(7)), torn("fifo", 1.0, four, Some(1))]);
    assert!(text.contains("none to take, as blocks of several senders were mixed: `pipe` ("), "{text}");
    let both = [torn("tcp", 3.0, four_receivers, Some(7)), torn("pipe", 1.0, four_receivers, Some(0))];
    let text = said(both.into());
    assert!(text.contains("take `pipe` (") && text.contains("divided among receivers: `tcp` ("), "{text}");
    let both = ["pipe", "fifo"].map(|spec| torn(spec, 3.0, four, None).data(DataLevel::Write));
    let text = said(both.into());
    let unchecked = "not checked (--data write): whether blocks of several senders were mixed";
    assert!(text.contains(unchecked), "{text}");
}

/// Expected: what may tear blocks is taken only with that said. Happened: `pipe` of 8 senders of 64 KiB; read in pieces of 32 KiB, 91 % were mixed.
#[test]
fn what_promises_no_whole_blocks_is_taken_with_a_warning() {
    let said = |taken: &str, bytes, load, promised: Option<u64>| {
        let rows =
            [taken, "shm-ring"].map(|spec| torn(spec, if spec == taken { 9.0 } else { 1.0 }, load, Some(0)));
        let rows = rows.map(|row| row.with(|case| (case.block_bytes, case.atomic_bytes) = (bytes, promised)));
        plain(&record(rows), 200).replace('\n', " ")
    };
    for (taken, bytes, load, promised, warns) in [
        ("pipe", 65536, [Some(8), None], Some(4096), "only up to 4 KiB"),
        ("pipe", 8192, [None, Some(4)], Some(4096), "only up to 4 KiB"),
        ("tcp", 200, [Some(3), None], Some(0), "a stream of bytes does not promise that"),
        ("pipe", 4096, [Some(8), None], Some(4096), ""),
        ("unix-dgram", 65536, [Some(8), None], Some(65536), ""),
        ("pipe", 65536, [None, Some(1)], None, ""),
        ("pipe", 4096, [Some(8), None], None, "the record does not say whether it promises that"),
    ] {
        let text = said(taken, bytes, load, promised);
        assert!(text.contains(&format!("take `{taken}` (")) && text.contains(warns), "{text}");
        assert_eq!(text.contains("in one piece, but"), !warns.is_empty(), "{taken} {bytes}: {text}");
    }
}

/// Expected: one receiver has every block. Happened: "Blocks were divided among receivers on tcp (64 KiB, 64 KiB, 64 KiB)", of one, two
/// and four receivers.
#[test]
fn one_receiver_divides_nothing_and_a_size_is_named_once() {
    let rows = [1, 2, 4].map(|receivers| torn("tcp", 1.0, [None, Some(receivers)], Some(7)));
    let text = plain(&record(rows.to_vec()), 200);
    assert!(text.contains("divided among receivers on tcp (64 KiB):"), "{text}");
    let text = plain(&record(rows[..1].to_vec()), 200);
    assert!(!text.contains("divided"), "{text}");
}

/// Expected: a sentence on a column is shown with the column. Happened: "each: … fairness: …" below a table that was too narrow for both.
#[test]
fn a_column_is_explained_where_it_is_shown() {
    let record = loads();
    for (width, each, fairness) in [(50, false, false), (120, true, true)] {
        let text = plain(&record, width).replace("\n   ", " ");
        assert_eq!(text.contains("each: the throughput of the median one"), each, "{text}");
        assert_eq!(text.contains("fairness: Jain's index"), fairness, "{text}");
    }
    for other in ["md", "html"] {
        let text = format(&record, other).replace("&#39;", "'");
        assert!(text.contains("fairness: Jain's index"), "{other}: {text}");
    }
}
