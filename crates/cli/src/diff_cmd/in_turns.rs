//! `hosepipe diff --run`: runs the bench of two hosepipes in pairs and in a seeded random order, until more pairs would not change the
//! result.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use model::{ChangeKind, DiffRecord, DiffSide, Record, Round, RoundLimits, Rounds};
use stats::CaseFigures;
use stats::changes::PAIRS_MAX;
use stats::measured::of_bench;

use super::{DiffArgs, show};
use crate::bar::Bar;
use crate::record;
use crate::signals::StopRequest;
use crate::terminal::{UsageError, usage};

/// Default of `--time`: no pair begins later, once there are enough for the first analysis.
const BUDGET: Duration = Duration::from_secs(300);
/// Options of `bench` that `diff` sets for each trial, as the output formats.
const RESERVED_OPTIONS: [&str; 3] = ["trials", "seed", "dry-run"];

/// Runs the pairs and prints the result.
pub(super) fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let ([old, new], bench) = args.sides()?;
    let programs = [&old[0], &new[0]];
    let sides = sides(programs, bench)?;
    let head = record::begin(true);
    let stop = StopRequest::listen()?;
    let figures = [Vec::new(), Vec::new()];
    let mut pairing = Pairing { args, programs, bench, stop: &stop, figures };
    let analyses = pairing.run_pairs()?;
    let interrupted = stop.is_set();
    let [old, new] = sides.map(|side| DiffSide { started: head.started.clone(), ..side });
    let [old_figures, new_figures] = &pairing.figures;
    let record = DiffRecord {
        head,
        old,
        new,
        paired: true,
        analyses,
        hosts_differ: Vec::new(),
        fail_over_percent: args.fail_over,
        interrupted,
        changes: stats::differences(old_figures, new_figures, true, analyses),
    };
    let code = show(args, record)?;
    Ok(if interrupted { stop.exit_code(false) } else { code })
}

/// The sides of the record, each named by its program.
fn sides(programs: [&OsString; 2], bench: &[OsString]) -> anyhow::Result<[DiffSide; 2]> {
    let is_bench = bench.first().is_some_and(|first| first == "bench");
    let [Some(old), Some(new)] = programs.map(|program| is_bench.then(|| version(program)).flatten()) else {
        let words = programs.map(|program| model::shell_quoted(program.as_encoded_bytes()));
        return usage(format!(
            "--run takes two hosepipes, and their bench after --; two commands are compared by \
             `hosepipe compare --fail-over {} {}`",
            super::MARGIN_PERCENT,
            words.join(" ")
        ));
    };
    let is_reserved = |word: &&OsString| {
        let word = word.to_string_lossy();
        let option = word.strip_prefix("--").and_then(|option| option.split('=').next());
        let formats = report::FORMATS.iter().map(|format| format.flag);
        option.is_some_and(|option| formats.chain(RESERVED_OPTIONS).any(|reserved| reserved == option))
    };
    if let Some(word) = bench.iter().find(is_reserved) {
        let word = word.to_string_lossy();
        return usage(format!("`diff` itself sets `{word}` for each trial: leave it out"));
    }
    let arguments: Vec<String> = bench.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let side = |program: &OsStr, tool: String| DiffSide {
        name: program.to_string_lossy().into_owned(),
        tool,
        arguments: arguments.clone(),
        ..DiffSide::default()
    };
    Ok([side(programs[0], old), side(programs[1], new)])
}

/// The version that a hosepipe prints; `None` if the program is not a hosepipe.
fn version(program: &OsStr) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::piped()).stderr(Stdio::null());
    let said = String::from_utf8(process::output(&mut command).ok()?.1).ok()?;
    said.starts_with("hosepipe ").then(|| said.trim().to_owned())
}

/// The pairs, and their figures so far.
struct Pairing<'a> {
    args: &'a DiffArgs,
    programs: [&'a OsString; 2],
    bench: &'a [OsString],
    stop: &'a StopRequest,
    /// Of the old and of the new program.
    figures: [Vec<CaseFigures>; 2],
}

impl Pairing<'_> {
    /// Runs pairs until further ones would not change the result, or the limits are reached; returns the number of interim analyses.
    fn run_pairs(&mut self) -> anyhow::Result<u32> {
        let most = self.args.trials.unwrap_or(PAIRS_MAX as u32);
        let bar = Bar::new(u64::from(most + self.args.warmup), " {pos}/{len} {bar:20} {wide_msg} {elapsed}");
        bar.tick_every(Duration::from_millis(200));
        let began = Instant::now();
        let limits = RoundLimits {
            most: self.args.warmup + most,
            least: self.args.warmup + 1,
            until: self.args.time.and_then(|time| began.checked_add(time)),
            unshuffled: self.args.warmup,
        };
        let mut rounds = Rounds::new(self.args.seed, limits);
        // The numbers of pairs after which the figures are analysed, the last one being the most pairs.
        let mut analysed_after = vec![most as usize];
        let mut pairs = 0;
        while let Some(Round { number: turn, rows: order }) = rounds.next(vec![0, 1]) {
            // The pairs of the warm-up have no round, and are dropped.
            let round = turn.checked_sub(self.args.warmup);
            let mut pair = [Vec::new(), Vec::new()];
            for side in order {
                bar.say(&format!("{} {}", ["old:", "new:"][side], self.programs[side].to_string_lossy()));
                pair[side] = self.run_bench(self.programs[side], turn, round.unwrap_or(0))?;
                if self.stop.is_set() {
                    return Ok(stats::analyses_at_end(&analysed_after, pairs));
                }
            }
            bar.advance();
            let Some(round) = round else { continue };
            self.add(pair);
            pairs = round as usize + 1;
            if pairs == 1 && self.args.trials.is_none() {
                // How many cases there are is known after the first pair.
                let judged = self.figures[0].iter().filter(|one| !one.control).count();
                analysed_after = stats::analyses_for(judged, PAIRS_MAX);
            }
            if analysed_after.contains(&pairs) && self.is_settled(analysed_after.len() as u32) {
                break;
            }
            let has_no_limit = self.args.time.is_none() && self.args.trials.is_none();
            if has_no_limit && pairs >= analysed_after[0] && began.elapsed() >= BUDGET {
                break;
            }
        }
        Ok(stats::analyses_at_end(&analysed_after, pairs))
    }

    /// Whether further pairs would not change the result.
    fn is_settled(&self, analyses: u32) -> bool {
        let [old, new] = &self.figures;
        stats::differences(old, new, true, analyses)
            .iter()
            .all(|change| change.kind != ChangeKind::TooFew && stats::is_settled(change, self.args.fail_over))
    }

    /// Adds the figures of a pair.
    fn add(&mut self, pair: [Vec<CaseFigures>; 2]) {
        for (known, further) in self.figures.iter_mut().zip(pair) {
            for one in further {
                match known.iter_mut().find(|known| known.key() == one.key()) {
                    Some(known) => known.absorb(one),
                    None => known.push(one),
                }
            }
        }
    }

    /// Runs one trial of every case of the bench; returns its figures as those of `round`. `turn` also counts the pairs of the warm-up: both
    /// programs of a pair get the same seed, and each pair another one.
    fn run_bench(&self, program: &OsStr, turn: u32, round: u32) -> anyhow::Result<Vec<CaseFigures>> {
        let seed = self.args.seed.wrapping_add(u64::from(turn)).to_string();
        let name = program.to_string_lossy();
        let mut command = Command::new(program);
        command.args(self.bench).args(["--trials", "1", "--seed", &seed, "--json", "-"]);
        let mut errors = tempfile::tempfile()?;
        command.stdout(Stdio::piped()).stderr(errors.try_clone()?);
        let (status, printed) =
            process::output(&mut command).with_context(|| format!("cannot run {name}"))?;
        if self.stop.is_set() {
            return Ok(Vec::new());
        }
        // A case that fails is in the record; without a record there are only the messages on standard error.
        let text = String::from_utf8_lossy(&printed);
        let record = report::read::read(&name, &text).map_err(|_| {
            let mut said = Vec::new();
            let _ = errors.rewind().and_then(|()| errors.read_to_end(&mut said));
            UsageError(format!("{name} made no record ({status}): {}", String::from_utf8_lossy(&said).trim()))
        })?;
        let Record::Bench(record) = record.record else {
            return usage(format!("{name} made a record of another command than bench"));
        };
        let mut figures = of_bench(&record);
        figures.iter_mut().flat_map(|one| &mut one.values).for_each(|(of_round, _)| *of_round = round);
        Ok(figures)
    }
}
