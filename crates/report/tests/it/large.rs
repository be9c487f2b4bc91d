//! Records of very many cases: each format takes time in proportion to them, and a page stays one that opens.

use model::{
    BenchRecord, CaseRecord, Chain, CompareRecord, CompareResult, LinkRecord, Ratio, Record, Role, RunRecord,
    Spec, StageActivity, StageRecord, TopRecord, TopSnapshot, WorkerCase, WorkerEnd, WorkerStart,
};
use nix::time::{ClockId, clock_gettime};
use report::document::Block;
use report::read::Loaded;
use report::study::StudyView;
use report::{FORMATS, Style};

use crate::mock::{ordinary, record};
use crate::page::page;

/// So many that a page cannot show all of them.
const CASES: usize = 3_000;
/// What four times as many cases may take, in proportion: four where time grows with them, sixteen where it grows with their
/// square. It is CPU time, of which a busy machine takes none away; the shortest of three, as caches are shared.
const GROWTH_MAX: f64 = 9.0;

/// What sets the copies of a case apart.
#[derive(Debug, Clone, Copy)]
enum Apart {
    /// Nothing: one row after the other has the same name.
    Nothing,
    /// The spec.
    Spec,
    /// The block: a sweep of ten specs over very many sizes.
    Block,
    /// The language: a ranking of very many workers.
    Worker,
}

fn worker(number: usize) -> WorkerCase {
    let variant = if number.is_multiple_of(2) { "idiomatic" } else { "tuned" };
    let end =
        WorkerEnd { language: format!("L{}", number / 2), variant: variant.to_owned(), toolchain: None };
    let (writer, start) = (end.clone(), WorkerStart::Pair);
    WorkerCase { writer, reader: end, start, warmup_bytes: 0 }
}

/// An ordinary record of which each case, floors and ceilings too, is there very many times.
fn many(apart: Apart, cases: usize) -> BenchRecord {
    let few = record(ordinary());
    let copies = cases / few.cases.len();
    let copy = |number: usize, case: &CaseRecord| {
        let mut case = case.clone();
        match apart {
            Apart::Nothing => {}
            Apart::Spec if case.role == Role::Ranked && case.spec != Spec::plain("pipe") => {
                case.spec.options.insert("copy".to_owned(), Some(number.to_string()));
            }
            Apart::Spec => {}
            Apart::Block => case.block_bytes = 1 + number as u64,
            Apart::Worker => case.worker = Some(worker(number)),
        }
        case
    };
    let cases = (0..copies).flat_map(|number| few.cases.iter().map(move |case| copy(number, case)));
    BenchRecord { cases: cases.collect(), ..few }
}

/// CPU time of this thread so far, in seconds.
fn cpu_time_s() -> f64 {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
    used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9
}

/// How much longer a work takes with four times as many things in what it is done to.
fn growth<T>(most: usize, make: impl Fn(usize) -> T, work: impl Fn(&T)) -> f64 {
    let records = [most / 4, most].map(make);
    let mut times = [f64::INFINITY; 2];
    for (record, at) in (0..3).flat_map(|_| records.iter().zip([0, 1])) {
        let began_s = cpu_time_s();
        work(record);
        times[at] = times[at].min(cpu_time_s() - began_s);
    }
    times[1] / times[0]
}

#[test]
fn very_many_cases_are_shown_in_time_that_grows_with_them() {
    std::thread::scope(|tests| {
        for apart in [Apart::Nothing, Apart::Spec, Apart::Block, Apart::Worker] {
            tests.spawn(move || many_are_shown_in_time_that_grows_with_them(apart));
        }
    });
}

fn many_are_shown_in_time_that_grows_with_them(apart: Apart) {
    let loaded = |cases| [Loaded::new("many.json", many(apart, cases))];
    let as_table = |records: &[Loaded; 1]| {
        let shown = report::terminal(&records[0].record, &Style::default(), StudyView::unknown);
        let Record::Bench(record) = &records[0].record else { panic!("a bench record") };
        assert!(shown.lines().count() > record.cases.len() / 10, "{apart:?}: every row is in the table");
        drop(report::advice(record));
    };
    let as_files = |records: &[Loaded; 1]| {
        for format in FORMATS {
            let text = (format.render)(records, StudyView::unknown).expect("a text");
            assert!(text.lines().count() > 10, "{apart:?} as {}", format.name);
        }
    };
    let growth = [growth(CASES, loaded, as_table), growth(CASES, loaded, as_files)];
    assert!(growth.iter().all(|times| *times < GROWTH_MAX), "{apart:?}: {growth:?} times as long");
}

/// A run of one long pipeline, a comparison of very many pipelines that begin alike, and a chain of very many processes.
fn others(count: usize) -> [Loaded; 3] {
    let text = |at: usize| format!("grep -c a-long-pattern-that-all-of-them-begin-with-alike file-{at}");
    let run = RunRecord {
        stages: (0..count).map(|at| StageRecord { command: text(at), ..StageRecord::default() }).collect(),
        links: vec![LinkRecord { spec: "pipe".to_owned(), ..LinkRecord::default() }; count - 1],
        ..RunRecord::default()
    };
    let result = |at: usize| CompareResult {
        times_s: vec![1.0; 3],
        median_s: Some(1.0),
        times_fastest: Some(Ratio { median: 1.0, low: 0.9, high: 1.1 }),
        same_output: Some(at == 0),
        ..CompareResult::new(&text(at), "pipe")
    };
    let compare = CompareRecord { results: (0..count).map(result).collect(), ..CompareRecord::default() };
    let links = (1..count).map(|at| crate::chains::link([&[at - 1], &[at]], Some(1.0), 0)).rev();
    let stage = crate::chains::stage(&[("cat", 1)], [1.0, 1.0], StageActivity::Works, None);
    let chain = Chain { stages: vec![stage; count], links: links.collect(), held_up_by: None, why: None };
    let top = TopRecord {
        seen: TopSnapshot { chains: vec![chain], ..TopSnapshot::default() },
        ..TopRecord::default()
    };
    [Record::Run(run), Record::Compare(compare), Record::Top(top)]
        .map(|record| Loaded::new("many.json", record))
}

/// Expected: time grows with the stages and the results.
/// Happened: with their square; 20,000 stages took more than a minute.
#[test]
fn very_many_stages_and_results_are_shown_in_time_that_grows_with_them() {
    const MANY: usize = 3_000;
    for kind in 0..3 {
        let made = |count| {
            let all = others(count);
            [all.into_iter().nth(kind).expect("a record")]
        };
        let shown = |records: &[Loaded; 1]| {
            drop(report::terminal(&records[0].record, &Style::default(), StudyView::unknown));
            for format in FORMATS {
                (format.render)(records, StudyView::unknown).expect("a text");
            }
        };
        let growth = growth(MANY, made, shown);
        assert!(growth < GROWTH_MAX, "{kind}: {growth} times as long");
    }
}

#[test]
fn a_page_of_very_many_cases_is_bounded_and_says_what_it_leaves_out() {
    for (apart, sentence) in [
        (Apart::Nothing, "The first 80 of "),
        (Apart::Spec, "The first 80 of "),
        (Apart::Block, "points of a line is drawn."),
    ] {
        let page = page(&[Loaded::new("many.json", many(apart, CASES))]);
        let blocks = || page.sections.iter().flat_map(|section| &section.blocks);
        let captions = blocks().filter_map(|block| match block {
            Block::Chart(figure) => Some(figure.caption.as_str()),
            _ => None,
        });
        assert!(captions.into_iter().any(|caption| caption.contains(sentence)), "{apart:?}");
        let rows = blocks().filter_map(|block| match block {
            Block::Folded(_, tables) => Some(tables),
            _ => None,
        });
        let rows: Vec<usize> = rows.flatten().map(|table| table.rows.len()).collect();
        assert!((100..=1_000).contains(&rows.iter().sum::<usize>()), "{apart:?}: {rows:?}");
    }
}

#[test]
fn records_that_share_no_case_are_told_so_in_time_that_grows_with_them() {
    let both = |cases| {
        let one = many(Apart::Spec, cases);
        let mut other = one.clone();
        other.cases.iter_mut().for_each(|case| case.relays += 1);
        [("one", one), ("other", other)].map(|(name, record)| Loaded::new(name, record))
    };
    let growth = growth(CASES, both, |records| assert_eq!(report::disjoint_records(records).len(), 2));
    assert!(growth < GROWTH_MAX, "{growth} times as long");
}
