//! Generated command lines, run by bash and by `hosepipe run` over every link: the same bytes, the same status and
//! the same files, or a difference that docs/LINKS.md has.
//!
//! `HOSEPIPE_SEED=N` gives other cases, `HOSEPIPE_DIFFERENTIAL=COUNT` another number of them,
//! `HOSEPIPE_DIFFERENTIAL=FROM..TO` those alone, and `HOSEPIPE_PROGRAM=PATH` another build of hosepipe.

mod case;
mod compound;
mod corpus;
mod dice;
mod filters;
mod fixture;
mod flow;
mod judge;
mod lab;
mod links;
mod lists;
mod run;
mod sources;
mod words;

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::Case;
use lab::{Failure, Lab, Outcome};
use links::LINKS;

const SEED: u64 = 1964;
const CASES: u64 = 600;
const WORKERS: usize = 3;
const FAILURES_SHOWN: usize = 20;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn seed() -> u64 {
    variable("HOSEPIPE_SEED").map_or(SEED, |text| text.parse().expect("HOSEPIPE_SEED is a number"))
}

fn numbers() -> Range<u64> {
    let number = |text: &str| text.parse().expect("HOSEPIPE_DIFFERENTIAL is COUNT or FROM..TO");
    match variable("HOSEPIPE_DIFFERENTIAL") {
        Some(text) => match text.split_once("..") {
            Some((from, to)) => number(from)..number(to),
            None => 0..number(&text),
        },
        None => 0..CASES,
    }
}

/// What all workers found.
#[derive(Default)]
struct Report {
    discarded: Vec<String>,
    failures: Vec<Failure>,
}

/// Judges all cases, each over the links chosen for it.
fn judge_all(cases: &[Case], aligns: bool, links_of: impl Fn(&Case) -> Vec<&'static str> + Sync) -> Report {
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let lab = Lab::new(aligns);
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = lab.judge(case, &links_of(case));
                    let mut report = report.lock().expect("no worker panicked");
                    match outcome {
                        Outcome::Agrees => {}
                        Outcome::Discarded(why) => report.discarded.push(why),
                        Outcome::Differs(failure) => report.failures.push(failure),
                    }
                }
            });
        }
    });
    report.into_inner().expect("no worker panicked")
}

impl Report {
    fn assert_clean(mut self, cases: usize) {
        self.failures.sort_by_key(|failure| failure.number);
        for failure in self.failures.iter().take(FAILURES_SHOWN) {
            let Failure { number, via, pipefail, text, what, smallest } = failure;
            let flag = if *pipefail { " --pipefail" } else { "" };
            eprintln!("--- case {number} (seed {}) --via {via}{flag}\n{text}", seed());
            eprintln!("    {what}");
            if let Some((text, what)) = smallest {
                eprintln!("  smaller:\n{text}\n    {what}");
            }
        }
        for why in &self.discarded {
            eprintln!("--- discarded {why}");
        }
        let counts = (self.failures.len(), self.discarded.len());
        eprintln!("{cases} cases: {} differ, {} discarded", counts.0, counts.1);
        assert!(counts.1 * 50 < cases.max(100), "too many cases in which bash varies");
        assert_eq!(counts.0, 0, "of {cases} cases differ from bash");
    }
}

#[test]
fn generated_command_lines_do_as_in_bash_over_every_link() {
    let cases: Vec<Case> = numbers().map(|number| lists::case(seed(), number)).collect();
    eprintln!("seed {}", seed());
    // Over the first link, and over one of the others in turn.
    // Links with `ends=pipe` run the typed lines only: each case here stays on the link that it was on before there were any.
    let others: Vec<_> = LINKS[1..].iter().filter(|link| !link.spec.contains("ends=")).collect();
    let links_of = |case: &Case| vec![LINKS[0].spec, others[case.number as usize % others.len()].spec];
    judge_all(&cases, false, links_of).assert_clean(cases.len());
}

#[test]
fn command_lines_as_people_type_them_do_as_in_bash_over_all_links() {
    let cases = corpus::cases();
    let report = judge_all(&cases, false, |_| LINKS.iter().map(|link| link.spec).collect());
    report.assert_clean(cases.len());
}

#[test]
fn command_lines_do_as_in_bash_with_their_buffers_aligned() {
    let cases = corpus::cases();
    let report = judge_all(&cases, true, |_| vec![LINKS[0].spec, "tmpfile"]);
    report.assert_clean(cases.len());
}

#[test]
fn the_page_of_links_has_every_link_and_every_difference() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/LINKS.md");
    let page = std::fs::read_to_string(page).expect("docs/LINKS.md");
    for line in links::tables().lines().filter(|line| !line.is_empty()) {
        assert!(page.contains(line), "docs/LINKS.md lacks this line:\n{line}");
    }
    for link in pipeline::link::LinkSpec::names() {
        assert!(LINKS.iter().any(|known| known.spec == link), "`{link}` is not in LINKS");
    }
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows(&page), rows(&links::tables()), "docs/LINKS.md has rows that no table of the test has");
}
