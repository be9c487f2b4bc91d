//! What a reader of an answer would ask next: what spinning, pinning, a pace or other buffers would change.

use report::{numbers, words};
use stats::{Excluded, MessageCost, Weighed};

use super::explain::Answer;
use super::program::CodeLanguage;

/// Smallest message whose buffer's place is worth a sentence.
const PLACED_BYTES: u64 = 4096;

impl Answer<'_> {
    /// What a reader would ask next.
    pub(super) fn besides(&self, taken: &Weighed, cost: &MessageCost) -> Option<String> {
        let sure = || {
            // The headline is the program's.
            if self.program_cost(taken).is_some() {
                return None;
            }
            let share = cost.decisive_ns.relative_half_width().filter(|_| !cost.has_few_trials())?;
            let trials = words::count(cost.decisive_ns.count, "trial");
            Some(format!("That is the median of {trials}, ±{}.", numbers::percent(share)))
        };
        self.spinning(cost).or_else(|| self.pinned(taken, cost)).or_else(sure)
    }

    /// What would be faster, and what it costs.
    fn spinning(&self, cost: &MessageCost) -> Option<String> {
        let spins = |one: &&Weighed| one.excluded == Some(Excluded::Spins);
        let faster = |one: &&Weighed| one.cost.is_some_and(|own| own.time_ns.high < cost.time_ns.low);
        let found = self.weighing.weighed.iter().filter(spins).find(faster)?;
        let own = found.cost?;
        // What the scheduler may put on one CPU spins there in vain.
        let pinned = if stats::sat_on_one_cpu(self.case(found)) { ", and pin it to them" } else { "" };
        Some(format!(
            "{} takes {}, but keeps {} CPUs busy, also while no message comes: take it if you can spend them \
             (--cpu-budget 200){pinned}.",
            self.name(found),
            numbers::time(own.time_ns.median),
            numbers::ratio(own.cpus.median),
        ))
    }

    /// What pinning its ends would change.
    fn pinned(&self, taken: &Weighed, cost: &MessageCost) -> Option<String> {
        let case = self.figures.pinned.iter().find(|case| case.spec == self.case(taken).spec)?;
        let alone = stats::choose(&[case], &self.question.demand);
        let other = alone.weighed.first()?.cost?;
        if cost.has_few_trials() || other.has_few_trials() {
            return None;
        }
        let (own, other) = (cost.decisive_ns, other.decisive_ns);
        let advice = match (other.high < own.low, other.low > own.high) {
            (true, _) => "pin them (taskset)",
            (_, true) => "do not pin them",
            _ => return None,
        };
        let times = numbers::ratio(other.median / own.median);
        Some(format!("With its ends {} it costs {times} times as much: {advice}.", words::whereabouts(case)))
    }

    /// Why buffers elsewhere than the program's may be slower, on a machine where that is so.
    pub(super) fn buffers(&self) -> Option<String> {
        let is_large = self.question.message_bytes >= PLACED_BYTES;
        let slow = is_large.then(|| host::copy_costs().ok()?.slow_offsets()).flatten()?;
        // Python's `bytes` lie where its allocator puts them.
        let as_here = if self.language == CodeLanguage::Python { "" } else { ", as the program's do" };
        Some(format!(
            "The figures are of buffers that begin at a page{as_here}: this machine copies into {} to {} bytes past the start \
             of one at {:.2} of its speed (docs/ALIGNMENT.md).",
            slow.first, slow.last, slow.pipe_read
        ))
    }

    /// Where nothing surely takes little enough CPU at full speed: the rate at which the one with the least upper bound stays within the budget.
    pub(super) fn within_budget(&self) -> Option<String> {
        let demand = &self.question.demand;
        let cpus_max = demand.cpus_max.filter(|_| demand.messages_per_s.is_none())?;
        let too_much = self.weighing.weighed.iter().filter(|one| one.excluded == Some(Excluded::TooMuchCpu));
        let least = too_much.filter_map(|one| Some((one, one.cost?.cpu_ns.high)));
        let (least, cpu_ns) = least.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let rate = cpus_max * 1e9 / cpu_ns;
        // Two digits, rounded down.
        let step = 10f64.powf(rate.log10().floor() - 1.0).max(1.0);
        let rate = (rate / step).floor() * step;
        (rate >= 1.0).then(|| {
            format!(
                "At full speed nothing surely stays within that. {} takes the least CPU for each message: up to {} of them a \
                 second it stays within {} of a CPU (--messages-per-second {rate:.0}).",
                self.name(least),
                numbers::grouped(rate, 0),
                numbers::percent(cpus_max)
            )
        })
    }
}
