//! Further sentences of an answer: what would be faster, what the mechanism cannot do, how certain the figures are.

use programs::{CodeLanguage, Must, Pattern, Promises, Share};
use report::sheet::{Sheet, col};
use report::table::{Fit, Table};
use report::{first_of, numbers, words};
use stats::{Excluded, MessageCost, RankedCase};

use super::answer::{Answer, in_own_options};
use super::candidates::{by_reason, losers};

/// Most names in a sentence.
const NAMES_MAX: usize = 3;
/// Smallest message whose cost depends on the position of its buffer.
const PLACED_BYTES: u64 = 4096;

impl Answer<'_> {
    /// A mechanism whose ends spin and that would be faster.
    pub(super) fn spinning(&self, cost: &MessageCost) -> Option<String> {
        // What a loop in this program takes says little of two programs.
        if self.question.is_of_pair() {
            return None;
        }
        if self.question.demand.messages_per_s.is_some() {
            // The time between messages is given, and a receiver that spins takes more CPU time.
            return None;
        }
        let mut spinning = self.choice.ranked.iter().filter(|one| one.excluded == Some(Excluded::Spins));
        let faster = |one: &&RankedCase| one.cost.is_some_and(|own| own.time_ns.high < cost.time_ns.low);
        let found = spinning.find(faster)?;
        let own = found.cost?;
        let pinned = if stats::ever_shared_cpu(self.case(found)) { ", and pin it to them" } else { "" };
        Some(format!(
            "{} takes {}, but keeps {} CPUs busy, also while no message comes: take it if you can spend them \
             (--cpu-budget 200){pinned}.",
            self.name(found),
            numbers::time(own.time_ns.median),
            numbers::ratio(own.cpus.median),
        ))
    }

    /// Whether to pin the ends, if that surely changes the cost.
    pub(super) fn pinning(&self, taken: &RankedCase, cost: &MessageCost) -> Option<String> {
        (!self.question.is_of_pair()).then_some(())?;
        let case = self.figures.pinned.iter().find(|case| case.spec == self.case(taken).spec)?;
        let pinned = stats::choose(&[case], &self.question.demand).ranked.first()?.cost?;
        if cost.has_few_trials() || pinned.has_few_trials() {
            return None;
        }
        let (own, pinned) = (cost.ranking_ns, pinned.ranking_ns);
        let advice = match (pinned.high < own.low, pinned.low > own.high) {
            (true, _) => "pin them (taskset)",
            (_, true) => "do not pin them",
            _ => return None,
        };
        let times = numbers::ratio(pinned.median / own.median);
        Some(format!("With its ends {} it costs {times} times as much: {advice}.", words::whereabouts(case)))
    }

    /// What the mechanism, or its program, cannot do.
    pub(super) fn shortcomings(&self, taken: &RankedCase) -> Option<String> {
        let text = match self.case(taken).mechanism.as_str() {
            "tcp" if self.question.is_of_pair() && self.question.must.contains(&Must::CrossHost) => {
                "Both programs name 127.0.0.1: on two hosts the sender connects to the receiver's address, and the receiver binds its own."
            }
            // In C and Rust a stream is written and checked in the ring.
            "shm-ring" if self.question.must.contains(&Must::NoCopy) && self.copies_over_ring() => {
                "The kernel copies no message, but programs of round trips, and those in Python, copy each one into the ring and out of it; a stream in C or Rust is written and read in the ring."
            }
            // The two programs have an end of stream.
            "posix-mq" | "sysv-msgq" if self.question.is_of_pair() => {
                "A message queue does not notice when the other end dies: the end that is left waits for a new one."
            }
            "posix-mq" | "sysv-msgq" => {
                "A message queue has no end of stream, and does not notice when the other end dies: the end that is left waits for ever."
            }
            "file" => {
                "The program puts each message on the disk before the next: two fsync(2) and a rename(2) for each."
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// Whether programs with a ring between them write a message before they put it there, or take it out before they check it.
    fn copies_over_ring(&self) -> bool {
        self.question.pattern == Pattern::RequestReply
            || self.question.code.both().contains(&CodeLanguage::Python)
    }

    /// What to ask if no mechanism stays within the CPU budget at full speed. What it takes at a rate is only known at that rate.
    pub(super) fn within_budget(&self) -> Option<String> {
        let demand = self.question.demand;
        demand.cpus_max.filter(|_| demand.messages_per_s.is_none())?;
        let is_over = self.choice.ranked.iter().any(|one| one.excluded == Some(Excluded::TooMuchCpu));
        is_over.then(|| {
            "At full speed no mechanism surely stays within the budget: give the rate of your messages \
             (--messages-per-second N)."
                .to_owned()
        })
    }

    /// What the mechanisms promise to several ends; nothing for one sender and one receiver.
    pub(super) fn promises(&self) -> Option<Table> {
        let question = self.question;
        question.has_several_ends().then_some(())?;
        let could = self.candidates.iter().filter(|one| one.unfit.is_none() && one.missing.is_none());
        let mut names: Vec<&str> = could.map(|one| one.spec.mechanism.as_str()).collect();
        names.dedup();
        let rows: Vec<_> = names.into_iter().filter_map(Promises::of).collect();
        let mut sheet = Sheet::new(&rows);
        sheet.add(col("mechanism").fit(Fit::Spec), |one| Some(one.name.clone().into()));
        sheet.add(col("whole messages"), |one| {
            // The limit is one of what several ends share.
            let is_any = one.atomic_bytes.is_some() && !question.shares(one);
            Some(if is_any { "any size" } else { one.whole.as_str() }.into())
        });
        sheet.add(col("order").drop(4), |one| Some(one.order.clone().into()));
        if question.share == Some(Share::Compete) {
            sheet.add(col("equal shares").drop(2), |one| Some(one.fair.clone().into()));
        }
        if question.receivers > 1 {
            sheet.add(col("a slow receiver").drop(1), |one| {
                // Each message goes to all: the sender waits for the slowest, unless nothing is ever full.
                Some(match question.share {
                    Some(Share::Broadcast) if one.full.starts_with("the sender waits") => {
                        "holds up all".into()
                    }
                    Some(Share::Broadcast) => "holds up none".into(),
                    _ => one.slow.as_str().into(),
                })
            });
        }
        sheet.add(col("when full").drop(3), |one| Some(one.full.clone().into()));
        Some(sheet.table())
    }

    /// Which rows have too few trials for an interval.
    pub(super) fn few_trials(&self) -> Option<String> {
        let least = self.with_few_trials().map(|(_, trials)| trials).min()?;
        let names: Vec<String> = self.with_few_trials().map(|(one, _)| self.name(one)).collect();
        Some(format!(
            "Too few trials of {} (the least: {}; an interval needs 6): no difference is sure, and the figures may be far off{}.",
            first_of(&names, NAMES_MAX, ", ", String::clone),
            words::count(least, "trial"),
            self.more_time("; a larger --time gives more")
        ))
    }

    /// Notes under the table.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.figures.block_bytes != self.question.message_bytes {
            let [block, asked] = [self.figures.block_bytes, self.question.message_bytes].map(numbers::size);
            notes.push(format!(
                "The figures are of {block}, the size in the record that is nearest to {asked}."
            ));
        }
        notes.extend(self.slow_copies());
        let of_programs = self.question.must.iter().filter(|_| self.question.is_of_pair());
        notes.extend(of_programs.map(|must| format!("`{must}`: {}.", must.text().asks)));
        notes.extend(losers(self.question, |_| true).map(|losers| format!("Left out: {losers}.")));
        for candidate in self.candidates {
            let (spec, missing) = (&candidate.spec, &candidate.missing);
            let missing = missing.as_ref().map(|why| in_own_options(why));
            notes.extend(missing.map(|why| format!("`{spec}` is not there on this machine: {why}.")));
            notes.extend(candidate.left_out().map(|text| text + "."));
        }
        if self.choice.taken.is_some() && !self.race.cases.is_empty() && !self.race.does_all {
            let language = self.question.code.names();
            notes.push(format!(
                "No program in {language} surely meets all requirements: the best of them is taken."
            ));
        }
        if self.choice.taken.is_some() && self.taken_by_loops.is_none() {
            notes.push(
                "In the loops of `bench` no mechanism surely meets all requirements, but the program does."
                    .to_owned(),
            );
        }
        let failures = self.race.programs.iter().filter_map(|one| Some((one.failure.as_ref()?, &one.spec)));
        for (why, names) in by_reason(failures) {
            let [noun, was] = if names.len() > 1 { ["programs", "were"] } else { ["program", "was"] };
            notes.push(format!("The {noun} of {} {was} not timed: {why}.", names.join(", ")));
        }
        notes
    }

    /// On a machine that copies slowly at some offsets in a page: at which ones.
    fn slow_copies(&self) -> Option<String> {
        let is_large = self.question.message_bytes >= PLACED_BYTES;
        let slow = is_large.then(|| host::copy_costs().ok()?.slow_offsets()).flatten()?;
        // The allocator decides where Python's `bytes` are.
        let program = if self.question.code.both().contains(&CodeLanguage::Python) {
            ""
        } else {
            ", as the program's do"
        };
        Some(format!(
            "The figures are of buffers that begin at a page{program}: this machine copies into {} to {} bytes past the start \
             of one at {:.2} of its speed (docs/ALIGNMENT.md).",
            slow.first, slow.last, slow.pipe_read
        ))
    }
}
