//! Programs in other languages, kept as golden files.

use model::{BenchRecord, DataLevel, ErrorKind, Placement, Role, WorkerCase, WorkerEnd, WorkerStart};

use crate::golden::{format, plain};
use crate::mock::{Mock, Work, record};
use crate::page::{bench, page, text};

/// A row of `bench --workers`, or a cell of `--matrix`.
pub(crate) fn worker(writer: &str, reader: &str, gb_per_s: f64) -> Mock {
    let end = |label: &str| {
        let (language, variant) = label.split_once(' ').expect("a language and a variant");
        let toolchain = Some(format!("{language} 1.0"));
        WorkerEnd { language: language.to_owned(), variant: variant.to_owned(), toolchain }
    };
    let start = if writer == reader { WorkerStart::Pair } else { WorkerStart::Harness };
    Mock::stream("pipe").gb_per_s(gb_per_s, 2.0, Work::Waking).on(Placement::Any, &[]).with(|case| {
        case.worker =
            Some(WorkerCase { writer: end(writer), reader: end(reader), start, warmup_bytes: 64 << 20 });
    })
}

fn languages() -> BenchRecord {
    record([
        worker("C tuned", "C tuned", 2.1),
        worker("Java tuned", "Java tuned", 1.9),
        worker("Java idiomatic", "Java idiomatic", 0.53),
        worker("C idiomatic", "C idiomatic", 2.08),
        worker("Zig tuned", "Zig tuned", 0.0).with(|case| case.samples.clear()).fails(
            ErrorKind::Unavailable,
            "no `zig` here",
            Some("pip install ziglang"),
        ),
        worker("C tuned", "Java tuned", 1.95),
        worker("Java tuned", "C tuned", 2.0),
        Mock::stream("memcpy").gb_per_s(117.0, 1.0, Work::Copying).role(Role::Ceiling).data(DataLevel::None),
    ])
}

/// Few trials, in three placements: the scheduler's choice is a mixture.
fn seated_languages() -> BenchRecord {
    let of = |name: &str, rates: [f64; 3], placement: Placement, cpus: &[u32], same: [f64; 3]| {
        worker(name, name, 1.0).on(placement, cpus).with(|case| {
            case.samples.truncate(3);
            for ((sample, rate), same) in case.samples.iter_mut().zip(rates).zip(same) {
                (sample.bytes, sample.same_cpu_share) = ((rate * 1e9) as u64, Some(same));
            }
        })
    };
    let node = of("JavaScript idiomatic", [0.50, 0.51, 0.49], Placement::Any, &[], [0.9, 0.8, 0.7]);
    record([
        of("C tuned", [4.8, 0.6, 4.9], Placement::Any, &[], [1.0, 0.0, 0.9]),
        node.with(|case| case.mechanism = "socketpair".to_owned()),
        of("C tuned", [4.8, 4.85, 4.9], Placement::Same, &[0, 0], [1.0; 3]),
        of("C idiomatic", [1.2, 1.22, 1.19], Placement::Same, &[0, 0], [1.0; 3]),
        of("C tuned", [0.6, 0.55, 0.62], Placement::Cross, &[0, 1], [0.0; 3]),
    ])
}

#[test]
fn placements_of_languages_are_tables_of_their_own_and_a_mixture_is_told() {
    let record = seated_languages();
    insta::assert_snapshot!("languages_seated_100", plain(&record, 100));
    insta::assert_snapshot!("languages_seated_140", plain(&record, 140));
    insta::assert_snapshot!("languages_seated_markdown", format(&record, "md"));
    assert!(
        plain(&record, 140).contains("± is the range of all trials;"),
        "three trials have no such interval"
    );
}

/// Happened: on a page the rows of peers were all named `pipe`, and had the CPU time of their start as that of a block.
#[test]
fn peers_are_in_the_charts_of_a_page_beside_hosepipes_own_rows() {
    let own = Mock::stream("shm-ring").gb_per_s(3.0, 1.0, Work::Copying).on(Placement::Any, &[]);
    let peers = record([worker("zmq tuned", "zmq tuned", 2.0), worker("nng tuned", "nng tuned", 1.0), own]);
    let said = text(&page(&[bench("peers.json", peers)]));
    let of =
        |row: &str| said.lines().filter(|line| line.starts_with(&format!("{row} |"))).collect::<Vec<_>>();
    assert!(of("zmq tuned").iter().any(|line| line.ends_with("zmq 1.0")), "in the chart: {said}");
    let heads = said.lines().find(|line| line.contains("CPU/block")).expect("every figure");
    let at = heads.split(" | ").position(|head| head == "CPU/block").expect("a column");
    let cpu =
        |row: &str| of(row).last().and_then(|line| line.split(" | ").nth(at)).expect("a row").to_owned();
    assert_eq!(cpu("zmq tuned"), "–", "{said}");
    assert_ne!(cpu("shm-ring"), "–", "{said}");
}

#[test]
fn languages_are_ranked_and_a_matrix_has_every_pair() {
    let record = languages();
    for width in [80, 120] {
        let text = plain(&record, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width} columns: {line}");
        }
        insta::assert_snapshot!(format!("languages_{width}"), text);
    }
    insta::assert_snapshot!("languages_markdown", format(&record, "md"));
    let csv = format(&record, "csv");
    assert!(csv.contains("java:tuned,c:tuned"), "the two ends of a cell are in its row");
    let columns = || csv.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let heads = columns().next().expect("a heading");
    for name in ["cpu_per_block_ns", "voluntary_switches_per_block", "bound_by"] {
        let at = heads.iter().position(|head| *head == name).expect("a column");
        assert!(columns().skip(1).take(3).all(|row| row[at].is_empty()), "{name} would count starting, too");
    }
}
