//! Records of very many cases: each format takes time in proportion to them, and a page stays one that opens.

use std::time::{Duration, Instant};

use model::{BenchRecord, CaseRecord, Role, Spec};
use report::page::{Block, page};
use report::read::{AnyRecord, Loaded};
use report::{FORMATS, Style, table};

use crate::mock::{ordinary, record};

/// So many that anything which looks at all cases for each of them takes minutes.
const CASES: usize = 20_000;
/// Far more than is needed, also on a machine that does other things.
const DEADLINE: Duration = Duration::from_secs(30);

/// What sets the copies of a case apart.
#[derive(Debug, Clone, Copy)]
enum Apart {
    /// Nothing: one row after the other has the same name.
    Nothing,
    /// The spec.
    Spec,
    /// The block: a sweep of ten specs over very many sizes.
    Block,
}

/// An ordinary record of which each case, floors and ceilings too, is there very many times.
fn many(apart: Apart) -> BenchRecord {
    let few = record(ordinary());
    let copies = CASES / few.cases.len();
    let copy = |number: usize, case: &CaseRecord| {
        let mut case = case.clone();
        match apart {
            Apart::Nothing => {}
            Apart::Spec if case.role == Role::Ranked && case.spec != Spec::plain("pipe") => {
                case.spec.options.insert("copy".to_owned(), Some(number.to_string()));
            }
            Apart::Spec => {}
            Apart::Block => case.block_bytes = 1 + number as u64,
        }
        case
    };
    let cases = (0..copies).flat_map(|number| few.cases.iter().map(move |case| copy(number, case)));
    BenchRecord { cases: cases.collect(), ..few }
}

#[test]
fn very_many_cases_are_shown_in_time_that_grows_with_them() {
    for apart in [Apart::Nothing, Apart::Spec, Apart::Block] {
        let record = many(apart);
        let began = Instant::now();
        let shown = table::render(&record, &Style::default());
        assert!(shown.lines().count() > CASES / 10, "{apart:?}: every row is in the table");
        for format in FORMATS {
            let text = (format.render)(&record).expect("a text");
            assert!(text.lines().count() > 10, "{apart:?} as {}", format.name);
        }
        assert!(began.elapsed() < DEADLINE, "{apart:?}: {:?}", began.elapsed());
    }
}

#[test]
fn a_page_of_very_many_cases_is_bounded_and_says_what_it_leaves_out() {
    for (apart, sentence) in [
        (Apart::Nothing, "The first 80 of "),
        (Apart::Spec, "The first 80 of "),
        (Apart::Block, "points of a line one is drawn."),
    ] {
        let page = page(&[Loaded::new("many.json", AnyRecord::Bench(many(apart)))]);
        let blocks = || page.sections.iter().flat_map(|section| &section.blocks);
        let captions = blocks().filter_map(|block| match block {
            Block::Figure(figure) => Some(figure.caption.as_str()),
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
    let (one, mut other) = (many(Apart::Spec), many(Apart::Spec));
    other.cases.iter_mut().for_each(|case| case.relays += 1);
    let loaded = |name, record| Loaded::new(name, AnyRecord::Bench(record));
    let began = Instant::now();
    let strangers = report::page::strangers(&[loaded("one", one), loaded("other", other)]);
    assert_eq!(strangers.len(), 2);
    assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
}
