//! The search: one change at a time, on a part of the input where it is large; then the winners together, each accepted in a contest with
//! the pipeline without it; at last the result against the original.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use model::{CompareResult, Ratio, TuneChange, TuneLeftOut, TuneReason, TuneRecord, shell_quoted};
use pipeline::contest::{Contender, Contest, SHELL};
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::{Start, Trial, TrialOptions, TrialStderr, trial};

use super::judge::{compare, is_clear, is_in_vain};
use super::part::Part;
use super::variant::{Idea, Variant};
use super::whole::wholes;
use crate::compare_cmd::progress::CompareProgress;
use crate::signals::StopRequest;

/// A change whose first trials take more than this part of the time without it is not tried again.
const PROMISING: f64 = 0.98;
/// Most rounds of first trials.
const FIRST_ROUNDS: u32 = 3;
/// A rule for one stage more is preferred where it takes at most this part of the time more.
const STAGE_WORTH: f64 = 0.05;
/// Most rounds of a contest: after as many there is an interval.
const ROUNDS: u32 = 7;
/// Share of the time for the first trials of all changes.
const FIRST_SHARE: f64 = 0.3;
/// Share for one contest, and for the last one.
const DUEL_SHARE: f64 = 0.12;
const LAST_SHARE: f64 = 0.4;
/// A contest has the time of this number of runs of the original, if that is left.
const DUEL_TRIALS: f64 = 6.0;
/// What is kept of the time for links and parts.
const WHOLE_SHARE: f64 = 0.12;
/// Where the input can be cut, a trial before the last contest takes about this share of the time.
const TRIAL_SHARE: f64 = 1.0 / 120.0;

/// The name, among what was left out, of all accepted changes in the last contest.
const ALL_TOGETHER: &str = "all-together";

/// A trial that does not end then is killed.
const GRACE: Duration = Duration::from_secs(2);

/// What came out.
pub(super) enum Outcome {
    /// The pipeline cannot be tuned, and why.
    Refused(String),
    /// All but the head and the time of the search.
    Done(Box<TuneRecord>),
}

/// Ends a trial that would take longer than the whole search may: as Ctrl-C does, but the search ends by itself.
pub(super) struct Watchdog {
    is_over: Arc<AtomicBool>,
    /// The thread ends when this does.
    _search: Sender<()>,
}

impl Watchdog {
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(time: Duration) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (search, ended) = channel::<()>();
        let noted = is_over.clone();
        process::spawn_thread("hosepipe-time", move || {
            // The first request is passed on to the trial, the second kills it.
            for wait in [time, GRACE] {
                if ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                noted.store(true, Relaxed);
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
            }
        })?;
        Ok(Self { is_over, _search: search })
    }

    /// Ends it. Returns whether the time was over.
    pub(super) fn finish(self) -> bool {
        self.is_over.load(Relaxed)
    }
}

/// What every trial needs.
pub(super) struct Search<'a> {
    pub(super) text: &'a str,
    pub(super) shell: &'a Shell,
    /// The file of this program.
    pub(super) hosepipe: &'a Path,
    pub(super) stop: &'a StopRequest,
    pub(super) began: Instant,
    /// Begin no more trials after this.
    pub(super) time: Duration,
}

impl Search<'_> {
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
        if self.stop.is_set() {
            return Ok(Outcome::Done(Box::new(record)));
        }
        record.original_s = Some(first.wall.as_secs_f64());
        record.output_bytes = first.output.bytes;
        let second = self.once(self.text, TrialStderr::Hidden)?;
        if self.stop.is_set() {
            return Ok(Outcome::Done(Box::new(record)));
        }
        let differs = |what| {
            Ok(Outcome::Refused(format!(
                "its {what} is another one each time it is run: that another pipeline gives the same cannot be shown"
            )))
        };
        if first.output != second.output {
            return differs("output");
        }
        if first.status != second.status {
            return differs("exit status");
        }
        let original_s = second.wall.as_secs_f64();
        record.original_s = Some(original_s);
        let mut best = Variant::new(self.text);
        let ground = Ground::new(&best, original_s, self.time.as_secs_f64() * TRIAL_SHARE);
        self.improve(&mut best, &ground, &mut record)?;
        let text = self.improve_whole(&mut best, original_s, &mut record)?;
        self.conclude(text, best.changes, &mut record)?;
        Ok(Outcome::Done(Box::new(record)))
    }

    /// Applies rules to stages, as long as one makes it faster.
    fn improve(&self, best: &mut Variant, ground: &Ground, record: &mut TuneRecord) -> anyhow::Result<()> {
        let (mut tried, mut order) = (BTreeSet::new(), None);
        // What a change makes possible is tried after it.
        loop {
            let mut fresh: Vec<(Idea, Variant)> = Vec::new();
            for idea in best.ideas() {
                let variant = best.with(idea).filter(|variant| tried.insert(variant.last_change()));
                fresh.extend(variant.map(|variant| (idea, variant)));
            }
            let affordable = (self.first_s() / ground.trial_s) as usize;
            if fresh.len() >= affordable {
                let order = order.get_or_insert_with(|| self.busiest_stages(best, ground));
                // Rules that make several stages simpler gain most.
                let place =
                    |idea: &Idea| order.iter().position(|stage| *stage == idea.place).unwrap_or(order.len());
                fresh.sort_by_key(|(idea, _)| (place(idea), Reverse(idea.rule.stages())));
                let late = fresh.split_off(fresh.len().min(affordable.saturating_sub(1).max(1)));
                late.iter().for_each(|(_, variant)| leave_out(record, variant, TuneReason::NoTime, None));
            }
            if fresh.is_empty() || self.stop.is_set() || self.rules_s() <= 0.0 {
                return Ok(());
            }
            let mut promising = self.first_trials(best, fresh, ground, record)?;
            // Of about equal ones first the one that makes more stages simpler.
            let rank = |(idea, ratio): &(Idea, f64)| ratio - STAGE_WORTH * idea.rule.stages() as f64;
            promising.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
            let mut has_changed = false;
            for (idea, ratio) in promising {
                let Some(variant) = best.with(idea) else { continue };
                tried.insert(variant.last_change());
                match self.duel(&ground.text(best), &ground.text(&variant), ground.trial_s, self.rules_s())? {
                    Verdict::Faster(ratio) => {
                        *best = variant;
                        if let Some(change) = best.changes.last_mut() {
                            change.ratio = Some(ratio);
                        }
                        has_changed = true;
                    }
                    Verdict::LeftOut(reason) => leave_out(record, &variant, reason, Some(ratio)),
                }
            }
            if !has_changed {
                return Ok(());
            }
        }
    }

    /// The stages of a plain pipeline from 0, the one that used most CPU time first.
    fn busiest_stages(&self, best: &Variant, ground: &Ground) -> Vec<usize> {
        if best.script.as_pipeline().is_none() {
            return Vec::new();
        }
        let options =
            TrialOptions { via: LinkSpec::parse("pipe").ok(), stats: true, ..TrialOptions::default() };
        let Ok(made) = trial(&self.start(), &ground.text(best), &options, TrialStderr::Hidden) else {
            return Vec::new();
        };
        self.stop.note(made.ended_by);
        let mut order: Vec<usize> = (0..made.stages.len()).collect();
        model::sort_by_key(&mut order, |at| Reverse(made.stages[*at].user_ns + made.stages[*at].system_ns));
        order
    }

    /// Tries each change. Returns those that seem faster, with their times as multiples of the time without them.
    fn first_trials(
        &self,
        best: &Variant,
        fresh: Vec<(Idea, Variant)>,
        ground: &Ground,
        record: &mut TuneRecord,
    ) -> anyhow::Result<Vec<(Idea, f64)>> {
        let all: Vec<&Variant> = [best].into_iter().chain(fresh.iter().map(|(_, variant)| variant)).collect();
        let texts: Vec<String> = all.iter().map(|variant| ground.text(variant)).collect();
        let until = Instant::now() + Duration::from_secs_f64(self.first_s().max(0.0));
        let results = self.contest(&texts, FIRST_ROUNDS, until, &|_, _| false)?;
        let Some(base) = results.first() else { return Ok(Vec::new()) };
        let mut promising = Vec::new();
        for ((idea, variant), result) in fresh.iter().zip(&results[1..]) {
            let ratio = compare(base, result).map(|found| found.ratio.median);
            let reason = match ratio {
                Err(reason) => reason,
                Ok(ratio) if ratio > PROMISING => TuneReason::NotFaster,
                Ok(ratio) => {
                    promising.push((*idea, ratio));
                    continue;
                }
            };
            leave_out(record, variant, reason, ratio.ok());
        }
        Ok(promising)
    }

    /// Tries links between the stages, and parts of the input at once. Returns the text that is the fastest.
    fn improve_whole(
        &self,
        best: &mut Variant,
        original_s: f64,
        record: &mut TuneRecord,
    ) -> anyhow::Result<String> {
        let mut text = best.text();
        for whole in wholes(&best.script, self.shell) {
            if self.stop.is_set() {
                break;
            }
            let mut change = TuneChange { before: text.clone(), after: whole.text.clone(), ..whole.change() };
            match self.duel(&text, &whole.text, original_s, self.left_s())? {
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
    fn conclude(
        &self,
        text: String,
        changes: Vec<TuneChange>,
        record: &mut TuneRecord,
    ) -> anyhow::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let until = self.began + self.time;
        let results = self.contest(&[self.text.to_owned(), text.clone()], ROUNDS, until, &is_in_vain)?;
        let [original, tuned] = &results[..] else { return Ok(()) };
        let found = compare(original, tuned);
        if self.stop.is_set() && matches!(found, Err(TuneReason::NoTime)) {
            // What is known: each change was faster in its own contest.
            let ratios = changes.iter().filter_map(|change| change.ratio);
            record.ratio = ratios.map(|ratio| ratio.median).product();
            (record.text, record.changes, record.equal) = (text, changes, false);
            return Ok(());
        }
        let (reason, ratio) = match found {
            Err(reason) => (reason, None),
            Ok(found) if !found.is_faster() => (TuneReason::NotFaster, Some(found.ratio.median)),
            Ok(found) => {
                record.original_s = stats::estimate::median(&original.times_s);
                record.tuned_s = stats::estimate::median(&tuned.times_s);
                (record.ratio, record.rounds) = (found.ratio.median, found.rounds);
                record.interval = Some(found.ratio);
                (record.text, record.changes) = (text, changes);
                return Ok(());
            }
        };
        let all = TuneChange { rule: ALL_TOGETHER.to_owned(), after: text, ..TuneChange::default() };
        record.left_out.push(left_out(&all, reason, ratio));
        Ok(())
    }

    /// Whether a text is faster than another one, and gives the same; `trial_s` is about the time of a run, and `left_s` what is left for it.
    fn duel(&self, old: &str, new: &str, trial_s: f64, left_s: f64) -> anyhow::Result<Verdict> {
        if left_s <= 0.0 || self.stop.is_set() {
            return Ok(Verdict::LeftOut(TuneReason::NoTime));
        }
        let enough_s = (self.time.as_secs_f64() * DUEL_SHARE).max(trial_s * DUEL_TRIALS);
        let until = Instant::now() + Duration::from_secs_f64(left_s.min(enough_s));
        let is_enough =
            |made: u32, results: &[&CompareResult]| is_in_vain(made, results) || is_clear(made, results);
        let results = self.contest(&[old.to_owned(), new.to_owned()], ROUNDS, until, &is_enough)?;
        let [old_result, new_result] = &results[..] else {
            return Ok(Verdict::LeftOut(TuneReason::NoTime));
        };
        Ok(match compare(old_result, new_result) {
            Ok(found) if found.is_worthwhile() => Verdict::Faster(found.ratio),
            Ok(found) if found.is_open() => Verdict::LeftOut(TuneReason::NoTime),
            Ok(_) => Verdict::LeftOut(TuneReason::NotFaster),
            Err(reason) => Verdict::LeftOut(reason),
        })
    }

    /// Seconds that first trials may take now.
    fn first_s(&self) -> f64 {
        (self.time.as_secs_f64() * FIRST_SHARE).min(self.rules_s())
    }

    /// Seconds until only links, parts and the last contest may begin.
    fn rules_s(&self) -> f64 {
        self.left_s() - self.time.as_secs_f64() * WHOLE_SHARE
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
    fn contest(
        &self,
        texts: &[String],
        rounds: u32,
        until: Instant,
        is_enough: &dyn Fn(u32, &[&CompareResult]) -> bool,
    ) -> anyhow::Result<Vec<CompareResult>> {
        let own = format!("{} ", shell_quoted(self.hosepipe.as_os_str().as_bytes()));
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
            is_enough,
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

/// The input of trials before the last contest.
struct Ground {
    part: Option<Part>,
    /// About how long the original takes on it.
    trial_s: f64,
}

impl Ground {
    /// A part of the input, with which a trial takes about `wanted_s`; all of it where it cannot be cut, or is small.
    fn new(original: &Variant, original_s: f64, wanted_s: f64) -> Self {
        let share = wanted_s / original_s;
        let part = Part::of(&original.script, share);
        let trial_s = if part.is_some() { wanted_s } else { original_s };
        Self { part, trial_s: trial_s.max(1e-6) }
    }

    fn text(&self, variant: &Variant) -> String {
        match &self.part {
            Some(part) => variant.script.map(|_, pipeline| pipeline.with_files(&part.files)).to_string(),
            None => variant.text(),
        }
    }
}

enum Verdict {
    Faster(Ratio),
    LeftOut(TuneReason),
}

/// Notes that a variant's last change is left out.
fn leave_out(record: &mut TuneRecord, variant: &Variant, reason: TuneReason, ratio: Option<f64>) {
    record.left_out.extend(variant.changes.last().map(|change| left_out(change, reason, ratio)));
}

fn left_out(change: &TuneChange, reason: TuneReason, ratio: Option<f64>) -> TuneLeftOut {
    let TuneChange { rule, stage, after, .. } = change.clone();
    TuneLeftOut { rule, stage, after, reason, ratio }
}
