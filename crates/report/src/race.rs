//! The result of a race in words: what shares the first place, what is not told apart, and by how much the best one leads.

use model::{CaseRecord, Ratio};
use stats::choice::{LEAD_TIMES_MIN, ranking_cost_ns};
use stats::race::SAME_TIMES;
use stats::{Against, Choice, Demand, RankedCase, trials_by_cpus};

use crate::limits::{FACTOR_MIN, NAMES_MAX};
use crate::lists::{first_if_any, first_names, joined_if_any};
use crate::numbers;
use crate::words::count;

/// Cases of which one is taken.
#[derive(Clone, Copy)]
pub struct RaceWords<'a> {
    pub cases: &'a [&'a CaseRecord],
    pub choice: &'a Choice,
    /// The case that is taken.
    pub taken: usize,
    pub demand: &'a Demand,
}

impl RaceWords<'_> {
    fn name(&self, at: usize) -> String {
        format!("`{}`", self.cases[at].spec)
    }

    fn leader(&self) -> Option<&Against> {
        self.choice.standing.first.first()
    }

    /// The names of the other cases that lead, or are shown to cost the same as the leader.
    pub(crate) fn level(&self) -> Vec<String> {
        let is_level = |one: &&RankedCase| one.at != self.taken && self.choice.shares_first_place(one.at);
        self.choice.ranked.iter().filter(is_level).map(|one| self.name(one.at)).collect()
    }

    /// The other cases that may cost less, or more, than the leader.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Against> {
        let first = self.choice.standing.first.iter();
        first.filter(|one| one.at != self.taken && !one.is_same())
    }

    /// Why this one of several is taken: "the simplest of 3 that share the first place (also `tcp`, `fifo`)". `None` if it is simply the
    /// one that costs least.
    pub fn simplest(&self) -> Option<String> {
        let leader = self.leader()?;
        let own = self.choice.standing.against(self.taken)?;
        let name = self.name(leader.at);
        let is_open = self.choice.standing.first.contains(own);
        match self.level() {
            level if own.is_same() => (!level.is_empty()).then(|| {
                let (count, names) = (level.len() + 1, first_names(&level, NAMES_MAX));
                format!("the simplest of {count} that share the first place (also {names})")
            }),
            _ if is_open => Some(format!("simpler than {name}, but not told apart from it ({})", range(own))),
            _ if self.choice.case(self.taken)?.may_be_taken => {
                let percent = 100.0 * (LEAD_TIMES_MIN - 1.0);
                Some(format!(
                    "simpler than {name}, which costs less by at most {percent:.0} % in the median round"
                ))
            }
            _ => None,
        }
    }

    /// "not told apart: `fifo` (0.94 to 1.38 times the cost), `tcp` (0.90 to 1.40 times the cost)", compared with the leader, and before it
    /// "dearer in each round: `file` (36 times the cost)", of which more rounds would not tell another thing; `None` if no other one is left.
    pub fn not_told_apart(&self) -> Option<String> {
        let (dearer, open): (Vec<&Against>, Vec<&Against>) =
            self.open().partition(|one| one.is_dearer_in_each());
        let is_leader = self.leader().is_some_and(|one| one.at == self.taken);
        let also = if is_leader { "" } else { "also " };
        let list = |what: &str, some: Vec<&Against>, factor: fn(&Against) -> String| {
            let names = some.into_iter().map(|one| format!("{} ({})", self.name(one.at), factor(one)));
            Some(format!("{what}: {}", first_if_any(names, NAMES_MAX, ", ")?))
        };
        let typical = |one: &Against| format!("{} times the cost", times(one.factor.median));
        let lists = [
            list("dearer in each round", dearer, typical),
            list(&format!("{also}not told apart"), open, range),
        ];
        joined_if_any(lists.into_iter().flatten(), "; ")
    }

    /// How much more the next one costs: its name, and "costs 1.90 times as much in time and CPU (at least 1.72; 1.80 times in total)".
    /// `None` if another one may be taken, too.
    pub fn lead(&self, what: &str) -> Option<(String, String)> {
        let next =
            self.choice.standing.next().filter(|_| self.leader().is_some_and(|one| one.at == self.taken))?;
        if self.choice.case(next.at)?.may_be_taken {
            return None;
        }
        let Ratio { median, low, .. } = next.factor;
        let by_median = format!("{} times as much in {what}", times(median));
        let total = if next.is_less_in_total {
            String::new()
        } else {
            format!("; {} times in total", times(next.totals))
        };
        let mut text = if low < FACTOR_MIN {
            let cpus = self.by_cpus(next.at).map(|cpus| format!("; {cpus}"));
            let [dearer, rounds] = [next.rounds_dearer, next.rounds];
            format!(
                "costs more in {dearer} of {rounds} rounds, typically {by_median}{total}{}",
                cpus.unwrap_or_default()
            )
        } else {
            format!("costs {by_median} (at least {}{total})", times(rounded_down(low)))
        };
        let beaten = self.choice.standing.beaten.iter().filter(|one| one.is_less_in_total);
        if let Some(least) = beaten.min_by(|one, other| one.totals.total_cmp(&other.totals)) {
            let cpus = self.by_cpus(least.at).map(|cpus| format!(" ({cpus})"));
            let [name, share] = [self.name(least.at), numbers::fixed(least.totals, 2)];
            text += &format!(
                "; but in all {} rounds together {name} costs less, {share} times as much",
                least.rounds
            );
            text += &cpus.unwrap_or_default();
        }
        Some((self.name(next.at), text))
    }

    /// What another one costs where the scheduler put both ends on one CPU, and where it put them on two: "on one CPU the same, on two CPUs
    /// 60 times as much". `None` if either case never had both.
    fn by_cpus(&self, other: usize) -> Option<String> {
        let found = [self.taken, other].map(|at| {
            let case = self.cases[at];
            trials_by_cpus(case, |sample| ranking_cost_ns(case, sample, self.demand))
        });
        let [Some(taken), Some(other)] = found else { return None };
        let kinds = [("one CPU", taken.one_cpu, other.one_cpu), ("two CPUs", taken.two_cpus, other.two_cpus)];
        let words = kinds.into_iter().filter_map(|(kind, taken, other)| {
            let factor = other?.median / taken?.median;
            let is_same = (1.0 / SAME_TIMES..=SAME_TIMES).contains(&factor);
            let much =
                if is_same { "the same".to_owned() } else { format!("{} times as much", times(factor)) };
            Some(format!("on {kind} {much}"))
        });
        let texts: Vec<String> = words.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

/// "0.94 to 1.38 times the cost"
fn range(against: &Against) -> String {
    let Ratio { median, low, high } = against.factor;
    let factor = match high.is_finite() {
        true => format!("{} to {} times the cost", times(low), times(high)),
        false if median.is_finite() => {
            format!("{} times the cost in the median of {}", times(median), count(against.rounds, "round"))
        }
        false => return "no common rounds".to_owned(),
    };
    // The totals say more than the median where the other row is rarely much slower.
    let total = against.is_less_in_total.then(|| format!(", but {} times in total", times(against.totals)));
    factor + &total.unwrap_or_default()
}

/// A factor; below two the second decimal matters.
fn times(factor: f64) -> String {
    if factor < 1.995 { numbers::fixed(factor, 2) } else { numbers::ratio(factor) }
}

/// A lower bound with the digits of [`times`], of which the last one is not rounded up.
fn rounded_down(bound: f64) -> f64 {
    let steps = if bound < 2.0 { 100.0 } else { 10.0 };
    (bound * steps + 1e-6).floor() / steps
}
