//! What `hosepipe diff` says of two records: a golden table, and that no record makes it say nonsense.

use model::{
    BenchRecord, ChangeKind, CompareRecord, CompareResult, DiffRecord, ErrorKind, Record, RecordHead, Sample,
};
use proptest::collection::vec;
use proptest::prelude::*;
use report::difference::{go, sides};
use report::document::{Document, Medium};
use report::read::Loaded;
use report::{FORMATS, Style};

use crate::mock::{Mock, Work, ordinary, record};

fn loaded(name: &str, record: Record) -> Loaded {
    Loaded::new(name, record)
}

/// The comparison of two records, which have something in common.
fn compared(old: &Loaded, new: &Loaded) -> DiffRecord {
    let figures = [sides::figures(old), sides::figures(new)];
    sides::check(old, new, &figures).expect("something in common");
    DiffRecord {
        head: RecordHead {
            tool: new.record.head().tool.clone(),
            host: new.record.head().host.clone(),
            arguments: vec!["diff".to_owned()],
            started: "2026-01-02T03:04:05Z".to_owned(),
            ..RecordHead::default()
        },
        old: sides::side(old),
        new: sides::side(new),
        paired: false,
        analyses: 1,
        hosts_differ: sides::hosts_differ(&old.record.head().host, &new.record.head().host),
        fail_over_percent: Some(10.0),
        interrupted: false,
        changes: stats::differences(&figures[0], &figures[1], false, 1),
    }
}

fn bench(name: &str, record: BenchRecord) -> Loaded {
    loaded(name, Record::Bench(record))
}

fn shown(record: &DiffRecord, medium: Medium) -> Document {
    report::text(&Record::Diff(record.clone()), medium, report::study::StudyView::unknown)
}

#[test]
fn the_worst_comes_first() {
    let mut cases = ordinary();
    cases[0] = Mock::stream("pipe").gb_per_s(1.2, 3.0, Work::Waking).granted("pipe_bytes", 4096);
    cases[2] = Mock::stream("pipe:size=1MiB").gb_per_s(3.6, 2.1, Work::Copying);
    cases[3] = Mock::round_trips("pipe:size=1MiB").round_trip_ns(40_000, 2.0);
    cases[4] = Mock::stream("unix-stream").fails(ErrorKind::Died, "the receiver was killed", None);
    cases.pop();
    cases.push(Mock::stream("null").gb_per_s(50_000.0, 1.0, Work::Copying).role(model::Role::Floor));
    let [old, new] = [bench("old.json", record(ordinary())), bench("new.json", record(cases))];
    let found = compared(&old, &new);
    let style = Style { width: 110, explain: true, ..Style::default() };
    insta::assert_snapshot!(shown(&found, Medium::Terminal).terminal(&style));
    insta::assert_snapshot!(shown(&found, Medium::Markdown).markdown());
    let kinds: Vec<ChangeKind> = found.regressions().map(|change| change.kind).collect();
    assert_eq!(kinds.len(), 2, "one failed, one slower; the floor is none");
}

fn with_load(programs_share: f64, stolen_share: f64) -> BenchRecord {
    let mut record = record(ordinary());
    let programs = vec!["cc1 (4711)".to_owned()];
    record.head.started = format!("2031-01-01T00:00:{:02.0}Z", programs_share * 100.0);
    record.head.other_load =
        Some(model::OtherLoad { programs_share, stolen_share, programs, frequency_fell: None });
    record
}

/// Expected: that two runs lie one after the other, and what else ran, is said of every two runs. Happened: both were remarks that a
/// terminal did not show without --explain.
#[test]
fn what_lies_between_two_runs_is_always_said() {
    let said = |old: BenchRecord, new: BenchRecord| {
        let record = compared(&bench("old.json", old), &bench("new.json", new));
        let style = Style { width: usize::MAX, explain: false, ..Style::default() };
        let text = shown(&record, Medium::Terminal).terminal(&style);
        assert!(text.contains("Two runs, one after the other: "), "{text}");
        (text, record)
    };
    for (old, new, expected) in [
        (
            with_load(0.003, 0.0),
            with_load(0.04, 0.0),
            "0.3 % of the CPUs during the old run, 4.0 % of the CPUs during the new one.\n",
        ),
        (
            with_load(0.2, 0.0),
            with_load(0.21, 0.012),
            "20 % of the CPUs (most: cc1 (4711)) during the old run, 21 % of the CPUs (most: cc1 \
                                                       (4711)) during the new one. Other guests of the hypervisor: 0.0 % and 1.2 %.\n",
        ),
        (
            record(ordinary()),
            with_load(0.0, 0.0),
            "an unknown share of the CPUs during the old run, 0.0 % of the CPUs during the new one.\n",
        ),
    ] {
        let (text, _) = said(old, new);
        assert!(text.contains(&format!("Other programs used {expected}")), "{text}");
    }
    let mut later = record(ordinary());
    later.head.started = "2031-01-01T00:00:00Z".to_owned();
    let (text, _) = said(record(ordinary()), later);
    assert!(text.contains("What other programs used of the CPUs during the runs is not recorded."), "{text}");

    let mut slow = with_load(0.4, 0.0);
    slow.cases.iter_mut().flat_map(|case| &mut case.samples).for_each(|sample| sample.elapsed_ns *= 2);
    let (text, found) = said(with_load(0.0, 0.0), slow);
    assert!(text.contains("4 that differ between the two runs; none counts as slower or faster, as the other load of the two sides differs"), "{text}");
    assert_eq!(found.regressions().count(), 0);
}

/// Expected: a record compared with itself, or with a copy of it, is called that. Happened: "there may still be one, by a factor of 423".
#[test]
fn a_run_compared_with_itself_is_called_that() {
    let twice = |old: &str, new: &str, other: BenchRecord| {
        let found = compared(&bench(old, record(ordinary())), &bench(new, other));
        shown(&found, Medium::Markdown).markdown()
    };
    let text = twice("b.json", "b.json", record(ordinary()));
    assert!(text.contains("b.json is given twice: this compares a run with itself."), "{text}");
    assert!(!text.contains("by a factor of"), "{text}");
    let text = twice("b.json", "copy.json", record(ordinary()));
    assert!(text.contains("b.json and copy.json are the same: this compares a run with itself."), "{text}");
    let mut later = record(ordinary());
    later.head.started = "2031-01-01T00:00:00Z".to_owned();
    assert!(!twice("b.json", "b.json", later).contains("with itself"));
}

/// Any number where a sample has one, the largest and none included.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 1u64..1 << 40]
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let histogram = prop_oneof![
        Just(None),
        Just(Some("no histogram".to_owned())),
        Just(
            record([Mock::round_trips("pipe").round_trip_ns(900, 2.0)]).cases[0].samples[0]
                .latency_histogram
                .clone()
        ),
    ];
    let sample = (number(), number(), number(), histogram).prop_map(
        |(elapsed_ns, bytes, messages, latency_histogram)| Sample {
            elapsed_ns,
            bytes,
            messages,
            latency_histogram,
            ..Sample::default()
        },
    );
    vec(sample, 0..12)
}

fn any_bench() -> impl Strategy<Value = BenchRecord> {
    let case = (0usize..3, any::<bool>(), number(), samples()).prop_map(|(spec, trips, block, samples)| {
        let spec = ["pipe", "fifo", "null"][spec];
        let mock = if trips { Mock::round_trips(spec) } else { Mock::stream(spec) };
        let role = if spec == "null" { model::Role::Floor } else { model::Role::Ranked };
        mock.block(block.max(1)).role(role).with(|case| case.samples = samples)
    });
    vec(case, 0..6).prop_map(|cases| {
        let mut made = record([]);
        // Without a summary, as a damaged histogram has none.
        made.cases = cases.into_iter().map(Mock::into_case).collect();
        made
    })
}

fn any_comparison() -> impl Strategy<Value = CompareRecord> {
    let time = prop_oneof![
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
        0.001f64..10.0
    ];
    let result =
        vec(time, 0..12).prop_map(|times_s| CompareResult { times_s, ..CompareResult::new("a | b", "pipe") });
    vec(result, 1..3).prop_map(|results| CompareRecord {
        head: record([]).head,
        seed: 1,
        trials: 9,
        warmup: 0,
        results,
        ..CompareRecord::default()
    })
}

/// Everything that is ever written of a comparison, or why there is none.
fn all_texts(old: &Loaded, new: &Loaded) -> Vec<String> {
    if let Err(problem) = sides::check(old, new, &[sides::figures(old), sides::figures(new)]) {
        return vec![problem.to_string()];
    }
    let found = compared(old, new);
    let mut texts =
        vec![shown(&found, Medium::Terminal).terminal(&Style::default()), go::text(&found, go::Sides::Both)];
    let loaded = [loaded("diff", Record::Diff(found.clone()))];
    for format in FORMATS {
        texts.push((format.render)(&loaded, report::study::StudyView::unknown).expect("a text"));
    }
    let again = report::read::read("diff.json", &texts[2]).expect("it reads back");
    assert_eq!(again.record, Record::Diff(found));
    // The style and the script of a page are no figures.
    texts.pop();
    texts
}

fn assert_no_nonsense(texts: &[String]) {
    for text in texts {
        let mut words = text.split(|character: char| !character.is_alphanumeric());
        assert!(words.all(|word| !matches!(word, "NaN" | "inf" | "infinity")), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_bench_makes_nonsense(old in any_bench(), new in any_bench()) {
        assert_no_nonsense(&all_texts(&bench("old", old.clone()), &bench("new", new)));
        assert_no_nonsense(&all_texts(&bench("old", old.clone()), &bench("same", old)));
    }

    #[test]
    fn no_comparison_makes_nonsense(old in any_comparison(), new in any_comparison()) {
        let both = [("old", old), ("new", new)].map(|(name, record)| loaded(name, Record::Compare(record)));
        assert_no_nonsense(&all_texts(&both[0], &both[1]));
    }
}

#[test]
fn other_hosts_are_named_fact_by_fact() {
    let here = record([]).head.host;
    let mut there = here.clone();
    assert!(sides::hosts_differ(&here, &there).is_empty());
    there.load_average_1m = Some(3.0);
    there.memory_bytes = here.memory_bytes;
    assert!(sides::hosts_differ(&here, &there).is_empty(), "the load is no fact of a host");
    there.kernel = "Linux 6.19.0".to_owned();
    there.cpus.pop();
    assert_eq!(
        sides::hosts_differ(&here, &there),
        ["kernel: Linux 6.18.0, then Linux 6.19.0", "CPUs: 2 CPUs under KVM, then 1 CPU under KVM"]
    );
    // Expected: a host with another governor or other huge pages is measured as another one. Happened: nothing was said of it.
    let set = |governor: Option<&str>, pages: Option<&str>, shared: Option<&str>| {
        let [governor, transparent_huge_pages, shmem_huge_pages] =
            [governor, pages, shared].map(|word| word.map(str::to_owned));
        model::Host { governor, transparent_huge_pages, shmem_huge_pages, ..here.clone() }
    };
    let before = set(Some("performance"), Some("always"), Some("never"));
    let differences = |after: &model::Host| sides::hosts_differ(&before, after);
    assert_eq!(
        differences(&set(Some("powersave"), Some("madvise"), Some("advise"))),
        [
            "frequency governor: performance, then powersave",
            "huge pages: always, then madvise",
            "huge pages of shared memory: never, then advise"
        ]
    );
    assert!(differences(&set(None, None, None)).is_empty(), "unknown is no difference");
    assert!(differences(&before).is_empty());
}
