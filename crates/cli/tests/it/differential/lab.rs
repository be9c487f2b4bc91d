//! Puts a case to bash and to hosepipe, and asks whether the two agree.

use std::time::Duration;

use super::case::{Case, Seen};
use super::fixture::Fixture;
use super::judge::difference;
use super::links;
use super::run::{Done, Place, hangs_after};

/// How often bash is asked again before a difference is called one.
const ASKED_AGAIN: usize = 8;

/// What takes longer where it may wait for ever, does.
const WAITS_LONG: Duration = Duration::from_secs(3);

/// How many smaller texts are tried on a failure.
const SHRINKS_MAX: usize = 60;

/// File sizes end here for a writer that nothing else ends, in units of 512 bytes (`ulimit -f` of sh), whatever the tester ignores.
const FILE_LIMIT: &str = "ulimit -f 2048; exec env --default-signal=XFSZ \"$@\"";

/// What came of a case.
pub(crate) enum Outcome {
    Agrees,
    /// Bash itself does not do the same each time.
    Discarded(String),
    Differs(Failure),
}

/// A difference that the table of links does not have.
pub(crate) struct Failure {
    pub(crate) number: u64,
    pub(crate) via: String,
    pub(crate) pipefail: bool,
    pub(crate) text: String,
    pub(crate) what: String,
    /// The smallest text found that differs, perhaps in another way, and how.
    pub(crate) smallest: Option<(String, String)>,
}

/// A worker's place and the fixture.
pub(crate) struct Lab {
    place: Place,
    fixture: Fixture,
    program: String,
    /// Buffers are aligned, on a machine that is said to need it.
    aligns: bool,
}

impl Lab {
    pub(crate) fn new(aligns: bool) -> Self {
        let program = std::env::var("HOSEPIPE_PROGRAM");
        let fixture = Fixture::new();
        Self {
            place: Place::new(&fixture),
            fixture,
            aligns,
            program: program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_hosepipe").to_owned()),
        }
    }

    /// Runs a case in bash and over these links; bash is asked again where they differ.
    pub(crate) fn judge(&self, case: &Case, links: &[&str]) -> Outcome {
        let expected = self.bash(case, &[]);
        if let Some(what) = &expected.trouble {
            return Outcome::Discarded(format!("{}: bash {what}\n{}", case.number, case.text()));
        }
        for spec in links {
            if let Some(what) = self.differs(case, spec, Some(&expected)) {
                if self.bash_varies(case, spec, &expected) {
                    return Outcome::Discarded(format!(
                        "{}: bash varies: {what}\n{}",
                        case.number,
                        case.text()
                    ));
                }
                return Outcome::Differs(self.failure(case, spec, what));
            }
        }
        Outcome::Agrees
    }

    fn bash(&self, case: &Case, seen: &[Seen]) -> Done {
        let text = case.text_where(seen);
        let mut words = vec!["bash"];
        if case.pipefail {
            words.extend(["-o", "pipefail"]);
        }
        words.extend(["-c", &text]);
        self.place.run(&self.fixture, &words, hangs_after())
    }

    fn hosepipe(&self, case: &Case, spec: &str) -> Done {
        let text = case.text();
        let mut words = vec![];
        if links::needs_file_limit(spec, case) {
            words.extend(["sh", "-c", FILE_LIMIT, "sh"]);
        }
        if self.aligns {
            words.extend(["env", "HOSEPIPE_SLOW_COPIES=0.3"]);
        }
        words.extend([self.program.as_str(), "run"]);
        words.extend(self.aligns.then_some("--align-buffers"));
        // The first link is also what is used when nothing is said.
        if spec != links::LINKS[0].spec || case.number.is_multiple_of(2) {
            words.extend(["--via", spec]);
        }
        if case.pipefail {
            words.push("--pipefail");
        }
        words.extend(["--", &text]);
        let limit = if links::may_wait(spec, case) { WAITS_LONG } else { hangs_after() };
        self.place.run(&self.fixture, &words, limit)
    }

    /// What bash does, where programs see what they see on this link.
    fn expected(&self, case: &Case, spec: &str, over_pipes: Option<&Done>) -> Done {
        let seen = links::seen_on(spec);
        match over_pipes {
            Some(known) if case.text_where(&seen) == case.text() => known.clone(),
            _ => self.bash(case, &seen),
        }
    }

    fn differs(&self, case: &Case, spec: &str, over_pipes: Option<&Done>) -> Option<String> {
        let expected = self.expected(case, spec, over_pipes);
        let got = self.hosepipe(case, spec);
        if got.hung && links::may_wait(spec, case) {
            return None;
        }
        if links::may_be_cut(spec, case) {
            return got.trouble;
        }
        difference(&expected, &got, links::instead_of_sigpipe(spec, case))
    }

    /// Whether bash differs from what it did over pipes, when asked often enough.
    fn bash_varies(&self, case: &Case, spec: &str, over_pipes: &Done) -> bool {
        let first = self.expected(case, spec, Some(over_pipes));
        (0..ASKED_AGAIN).any(|_| difference(&first, &self.expected(case, spec, None), &[]).is_some())
    }

    fn failure(&self, case: &Case, spec: &str, what: String) -> Failure {
        let (smallest, its) = self.shrink(case, spec, what.clone());
        let text = case.text();
        let smallest = Some((smallest.text(), its)).filter(|(smaller, _)| *smaller != text);
        Failure { number: case.number, via: spec.to_owned(), pipefail: case.pipefail, text, what, smallest }
    }

    /// Takes away items and stages for as long as the rest still differs.
    fn shrink(&self, case: &Case, spec: &str, what: String) -> (Case, String) {
        let mut smallest = (case.clone(), what);
        if smallest.1.contains("hangs") {
            // Each try would take as long again.
            return smallest;
        }
        let mut tries = 0;
        'again: loop {
            for smaller in smaller_than(&smallest.0) {
                tries += 1;
                if tries > SHRINKS_MAX {
                    return smallest;
                }
                if let Some(what) = self.differs(&smaller, spec, None) {
                    smallest = (smaller, what);
                    continue 'again;
                }
            }
            return smallest;
        }
    }
}

/// Cases with one thing less.
fn smaller_than(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut without = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        all.push(smaller);
    };
    for index in 0..case.items.len() {
        if case.items.len() > 1 {
            without(&|case| drop(case.items.remove(index)));
        }
        let item = &case.items[index];
        // Without the stage that ends it, an endless writer goes on.
        if item.stages.len() > 1 && !item.infinite {
            for stage in 0..item.stages.len() {
                without(&|case| drop(case.items[index].stages.remove(stage)));
            }
        }
        if !item.prefix.is_empty() {
            without(&|case| case.items[index].prefix = "");
        }
        if item.comment.is_some() {
            without(&|case| case.items[index].comment = None);
        }
    }
    if case.pipefail {
        without(&|case| case.pipefail = false);
    }
    // Nothing has a status before anything has run: another case.
    all.retain(|case| case.items.first().is_some_and(|item| !item.stages[0].text.contains("st:")));
    all
}
