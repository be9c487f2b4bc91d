//! The search: one change at a time, on a part of the input where it is large; then the winners together, each accepted in a contest with
//! the pipeline without it; at last the result against the original.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use model::{CompareResult, Ratio, TuneChange, TuneLeftOut, TuneReason, TuneRecord};
use pipeline::contest::{Contender, Contest, SHELL};
use pipeline::shell::{Kind, Shell};
use pipeline::{Start, Trial, TrialOptions, TrialStderr, trial};
use stats::{BothSides, shifts};

use super::part::Part;
use super::variant::{Idea, Variant};
use super::whole::wholes;
use crate::compare_cmd::progress::CompareProgress;
use crate::signals::StopRequest;

/// Most rounds of first trials.
const FIRST_ROUNDS: u32 = 3;
/// A change whose first trials take more than this part of the time without it is not tried again.
const PROMISING: f64 = 0.98;
/// A change must save at least this much to be worth a longer text.
const WORTHWHILE: f64 = 0.97;
/// A rule for one stage more is preferred where it takes at most this part of the time more.
const STAGE_WORTH: f64 = 0.05;
/// Rounds after which there is an interval, and the most.
const ROUNDS: u32 = 7;
/// Rounds of a contest that there is little time for.
const ROUNDS_MIN: u32 = 3;
/// Shares of the time for the first trial of each change, and for the last contest.
const FIRST_SHARE: f64 = 0.35;
const LAST_SHARE: f64 = 0.25;

/// What came out.
pub(super) enum Outcome {
    /// The pipeline cannot be tuned, and why.
    Refused(String),
    /// All but the head and the time of the search.
    Done(Box<TuneRecord>),
}

/// Ends a trial that would take longer than the whole search may: as Ctrl-C does, but the search ends by itself.
pub(super) struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    pub(super) fn start(time: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let noted = is_over.clone();
        // Signals are for the main thread.
        let _held = process::signals::NoSignals::block();
        std::thread::spawn(move || {
            std::thread::sleep(time);
            noted.store(true, Relaxed);
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
        });
        Self(is_over)
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// What every trial needs.
pub(super) struct Search<'a> {
    text: &'a str,
    shell: &'a Shell,
    hosepipe: &'a Path,
    stop: &'a StopRequest,
    began: Instant,
    time: Duration,
}

/// What a pipeline must give in every trial.
#[derive(PartialEq, Eq)]
struct Expected {
    hash: Option<String>,
    status: Option<i32>,
}

impl Expected {
    fn of(result: &CompareResult) -> Self {
        Self { hash: result.output_hash.clone(), status: result.status }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        text: &'a str,
        shell: &'a Shell,
        hosepipe: &'a Path,
        stop: &'a StopRequest,
        began: Instant,
        time: Duration,
    ) -> Self {
        Self { text, shell, hosepipe, stop, began, time }
    }

    /// Searches until nothing is left to try, or until the time is over.
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let mut record = TuneRecord {
            pipeline: self.text.to_owned(),
            text: self.text.to_owned(),
            shell: self.shell.name.to_string_lossy().into_owned(),
            equal: true,
            ratio: 1.0,
            ..TuneRecord::default()
        };
        // The first run warms the caches; the second shows whether the output is always the same.
        let first = self.once(self.text, TrialStderr::Shown)?;
        record.output_bytes = first.output.bytes;
        record.original_s = Some(first.wall.as_secs_f64());
        if self.stop.is_set() {
            return Ok(Outcome::Done(Box::new(record)));
        }
        let second = self.once(self.text, TrialStderr::Hidden)?;
        if self.stop.is_set() {
            return Ok(Outcome::Done(Box::new(record)));
        }
        if (&first.output, first.status) != (&second.output, second.status) {
            return Ok(Outcome::Refused(
                "its output is another one each time it is run: that another pipeline gives the same cannot be shown".to_owned(),
            ));
        }
        let original_s = second.wall.as_secs_f64();
        record.original_s = Some(original_s);
        if self.shell.kind == Kind::Fish {
            return Ok(Outcome::Refused(
                "texts of fish are not read: --shell names another shell".to_owned(),
            ));
        }
        let mut best = Variant::new(self.text);
        self.improve(&mut best, original_s, &mut record)?;
        let text = self.improve_whole(&mut best, &mut record)?;
        self.conclude(text, &best.changes, &mut record)?;
        Ok(Outcome::Done(Box::new(record)))
    }

    /// Applies rules to stages, as long as one makes it faster.
    fn improve(&self, best: &mut Variant, original_s: f64, record: &mut TuneRecord) -> anyhow::Result<()> {
        let mut tried = BTreeSet::new();
        // What a change makes possible is tried after it.
        loop {
            let mut fresh: Vec<(Idea, Variant)> = Vec::new();
            for idea in best.ideas() {
                let variant = best.with(idea).filter(|variant| tried.insert(variant.last_change()));
                fresh.extend(variant.map(|variant| (idea, variant)));
            }
            if fresh.is_empty() || self.stop.is_set() {
                return Ok(());
            }
            let mut promising = self.first_trials(best, fresh, original_s, record)?;
            // Of about equal ones first the one that makes more stages simpler.
            let rank = |(idea, ratio): &(Idea, f64)| ratio - STAGE_WORTH * idea.rule.stages() as f64;
            promising.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
            let mut has_changed = false;
            for (idea, ratio) in promising {
                let Some(variant) = best.with(idea) else { continue };
                tried.insert(variant.last_change());
                match self.duel(&best.text(), &variant.text())? {
                    Verdict::Faster(ratio) => {
                        *best = variant;
                        if let Some(change) = best.changes.last_mut() {
                            change.ratio = Some(ratio);
                        }
                        has_changed = true;
                    }
                    Verdict::LeftOut(reason) => {
                        record.left_out.extend(
                            variant.changes.last().map(|change| left_out(change, reason, Some(ratio))),
                        );
                    }
                }
            }
            if !has_changed {
                return Ok(());
            }
        }
    }

    /// Tries each change, on a part of the input where there is too little time for all of it. Returns those that seem faster, with
    /// their times as multiples of the time without them.
    fn first_trials(
        &self,
        best: &Variant,
        fresh: Vec<(Idea, Variant)>,
        original_s: f64,
        record: &mut TuneRecord,
    ) -> anyhow::Result<Vec<(Idea, f64)>> {
        let budget_s = (self.time.as_secs_f64() * FIRST_SHARE).min(self.left_s() / 2.0);
        let share = budget_s / (original_s * (fresh.len() + 1) as f64);
        let part = Part::of(&best.script, share);
        let shown = |variant: &Variant| match &part {
            Some(part) => variant.script.map(|_, pipeline| pipeline.with_files(&part.files)).to_string(),
            None => variant.text(),
        };
        let all: Vec<&Variant> = [best].into_iter().chain(fresh.iter().map(|(_, variant)| variant)).collect();
        let texts: Vec<String> = all.iter().map(|variant| shown(variant)).collect();
        let until = Instant::now() + Duration::from_secs_f64(budget_s.max(0.0));
        let results = self.contest(&texts, FIRST_ROUNDS, until)?;
        let Some(base) = results.first() else { return Ok(Vec::new()) };
        let (mut promising, memory_bytes) = (Vec::new(), memory_bytes());
        for ((idea, variant), result) in fresh.iter().zip(&results[1..]) {
            let ratios: Vec<f64> =
                result.times_s.iter().zip(&base.times_s).map(|(new, old)| new / old).collect();
            let ratio = stats::estimate::median(&ratios);
            let reason = match ratio {
                _ if result.error.is_some() => Some(TuneReason::Status),
                None => Some(TuneReason::NoTime),
                Some(_) if result.status != base.status => Some(TuneReason::Status),
                Some(_) if Expected::of(result) != Expected::of(base) => Some(TuneReason::Output),
                Some(_) if result.max_rss_bytes > Some(memory_bytes) => Some(TuneReason::Memory),
                Some(ratio) if ratio > PROMISING => Some(TuneReason::NotFaster),
                Some(_) => None,
            };
            match reason {
                None => promising.extend(ratio.map(|ratio| (*idea, ratio))),
                Some(reason) => {
                    record
                        .left_out
                        .extend(variant.changes.last().map(|change| left_out(change, reason, ratio)));
                }
            }
        }
        Ok(promising)
    }

    /// Tries links between the stages, and parts of the input at once. Returns the text that is the fastest.
    fn improve_whole(&self, best: &mut Variant, record: &mut TuneRecord) -> anyhow::Result<String> {
        let mut text = best.text();
        for whole in wholes(&best.script) {
            if self.stop.is_set() {
                break;
            }
            let mut change = TuneChange { before: text.clone(), after: whole.text.clone(), ..whole.change() };
            match self.duel(&text, &whole.text)? {
                Verdict::Faster(ratio) => {
                    change.ratio = Some(ratio);
                    text = whole.text;
                    best.changes.push(change);
                }
                Verdict::LeftOut(reason) => record.left_out.push(left_out(&change, reason, None)),
            }
        }
        Ok(text)
    }

    /// Runs the result and the original in turns, on all of the input: what is printed is what was compared.
    fn conclude(&self, text: String, changes: &[TuneChange], record: &mut TuneRecord) -> anyhow::Result<()> {
        if text == self.text {
            return Ok(());
        }
        let until = Instant::now()
            + Duration::from_secs_f64((self.time.as_secs_f64() * LAST_SHARE).max(self.left_s()));
        let results = self.contest(&[self.text.to_owned(), text.clone()], ROUNDS, until)?;
        let [original, tuned] = &results[..] else { return Ok(()) };
        let rounds = original.times_s.len().min(tuned.times_s.len());
        record.equal = is_equal(original, tuned);
        record.rounds = rounds as u32;
        let Some(ratio) = ratio(original, tuned).filter(|_| record.equal) else { return Ok(()) };
        if ratio.high < 1.0 {
            record.original_s = stats::estimate::median(&original.times_s);
            record.tuned_s = stats::estimate::median(&tuned.times_s);
            record.ratio = ratio.median;
            record.interval = Some(ratio);
            record.text = text;
            record.changes = changes.to_vec();
        }
        Ok(())
    }

    /// Whether a text is faster than another one, and gives the same.
    fn duel(&self, old: &str, new: &str) -> anyhow::Result<Verdict> {
        let left_s = self.left_s();
        if left_s <= 0.0 || self.stop.is_set() {
            return Ok(Verdict::LeftOut(TuneReason::NoTime));
        }
        let until = Instant::now() + Duration::from_secs_f64(left_s / 2.0);
        let results = self.contest(&[old.to_owned(), new.to_owned()], ROUNDS, until)?;
        let [old, new] = &results[..] else { return Ok(Verdict::LeftOut(TuneReason::NoTime)) };
        if new.error.is_some() || old.status != new.status {
            return Ok(Verdict::LeftOut(TuneReason::Status));
        }
        if !is_equal(old, new) {
            return Ok(Verdict::LeftOut(TuneReason::Output));
        }
        if new.max_rss_bytes > Some(memory_bytes()) {
            return Ok(Verdict::LeftOut(TuneReason::Memory));
        }
        Ok(match ratio(old, new) {
            Some(ratio) if ratio.high < 1.0 && ratio.median < WORTHWHILE => Verdict::Faster(ratio),
            _ => Verdict::LeftOut(TuneReason::NotFaster),
        })
    }

    /// Seconds until only the last contest may begin.
    fn left_s(&self) -> f64 {
        self.time.as_secs_f64() * (1.0 - LAST_SHARE) - self.began.elapsed().as_secs_f64()
    }

    fn start(&self) -> Start<'_> {
        Start { hosepipe: self.hosepipe, shell: self.shell }
    }

    /// Runs a text once.
    fn once(&self, text: &str, stderr: TrialStderr<'_>) -> anyhow::Result<Trial> {
        let made = trial(&self.start(), text, &TrialOptions::default(), stderr)?;
        self.stop.note(made.ended_by);
        Ok(made)
    }

    /// Runs texts in turns. Their results are in the same order.
    fn contest(&self, texts: &[String], rounds: u32, until: Instant) -> anyhow::Result<Vec<CompareResult>> {
        let own = format!("{} ", self.hosepipe.display());
        let contenders: Result<Vec<Contender>, _> = texts
            .iter()
            .map(|text| {
                // `hosepipe` need not be on PATH; the texts that are printed name it so.
                let typed = text.strip_prefix("hosepipe ").map(|rest| own.clone() + rest);
                Contender::new(typed.as_deref().unwrap_or(text), text, SHELL, self.shell)
            })
            .collect();
        let contest = Contest {
            start: self.start(),
            warmup: 0,
            trials: rounds,
            until: Some(until),
            is_enough: &|made, results| is_decided(made, results),
            seed: 1,
            must_succeed: false,
            shows_messages: false,
        };
        let runs = texts.len() as u64 * u64::from(rounds);
        let mut follower = CompareProgress::new(runs, None, self.stop);
        let (results, signal) = contest.run(contenders?, &mut follower)?;
        self.stop.note(signal);
        Ok(results)
    }
}

/// Half of the memory that is free.
fn memory_bytes() -> u64 {
    host::memory().map_or(u64::MAX, |memory| memory.available_bytes / 2)
}

/// Whether more rounds are in vain: the second of two differs from the first, or is clearly not faster.
fn is_decided(made: u32, results: &[&CompareResult]) -> bool {
    let [old, new] = results else { return false };
    let is_slower = || {
        let pairs = old.times_s.iter().zip(&new.times_s);
        made >= ROUNDS_MIN && pairs.filter(|(old, new)| new >= old).count() * 2 > made as usize
    };
    !is_equal(old, new) || is_slower()
}

fn is_equal(old: &CompareResult, new: &CompareResult) -> bool {
    let is_steady = |result: &CompareResult| result.equal != Some(false) && result.error.is_none();
    is_steady(old) && is_steady(new) && Expected::of(old) == Expected::of(new)
}

/// The times of `new` as multiples of those of `old` within rounds; after few rounds the interval is from the smallest to the largest.
/// `None` before there are some.
fn ratio(old: &CompareResult, new: &CompareResult) -> Option<Ratio> {
    let rounds = old.times_s.len().min(new.times_s.len());
    let (old, new) = (&old.times_s[..rounds], &new.times_s[..rounds]);
    let found = shifts(&[BothSides { old, new, paired: true }], 1).pop().flatten()?;
    if let Some((low, high)) = found.interval {
        return Some(Ratio { median: found.ratio, low, high });
    }
    let of_rounds = || old.iter().zip(new).map(|(old, new)| new / old);
    let (low, high) = (of_rounds().fold(f64::INFINITY, f64::min), of_rounds().fold(0.0, f64::max));
    (rounds >= ROUNDS_MIN as usize).then_some(Ratio { median: found.ratio, low, high })
}

enum Verdict {
    Faster(Ratio),
    LeftOut(TuneReason),
}

fn left_out(change: &TuneChange, reason: TuneReason, ratio: Option<f64>) -> TuneLeftOut {
    let TuneChange { rule, stage, after, .. } = change.clone();
    TuneLeftOut { rule, stage, after, reason, ratio }
}
