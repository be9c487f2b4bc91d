//! `hosepipe diff --run`: runs two commands, or two hosepipes, in pairs and in a seeded random order, until more pairs would not
//! change the result.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use model::{ChangeKind, DiffFigure, DiffRecord, DiffSide, Record, Round, RoundLimits, Rounds};
use pipeline::shell::Shell;
use pipeline::{Start, Trial, TrialOptions, TrialStderr, trial};
use stats::CaseFigures;
use stats::changes::PAIRS_MAX;
use stats::measured::of_bench;

use super::{DiffArgs, show};
use crate::bar::Bar;
use crate::signals::StopRequest;
use crate::terminal::{UsageError, usage};
use crate::{record, script};

/// Default of `--time`: no pair begins later, once there are enough for the first test.
const BUDGET: Duration = Duration::from_secs(300);
/// Options of `bench` that `diff` sets for each trial, as the output formats.
const RESERVED_OPTIONS: [&str; 3] = ["trials", "seed", "dry-run"];

/// Runs the pairs and prints the result.
pub(super) fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let shell = script::shell("bash".as_ref())?;
    let ([old, new], arguments) = args.sides()?;
    let commands = [&old[0], &new[0]];
    let (are_hosepipes, sides) = sides(commands, arguments, &shell)?;
    let head = record::begin(true);
    let stop = StopRequest::listen()?;
    let figures = [Vec::new(), Vec::new()];
    let mut pairing =
        Pairing { args, commands, arguments, shell: &shell, are_hosepipes, sides, stop: &stop, figures };
    let looks = pairing.run_pairs()?;
    let interrupted = stop.is_set();
    let failed = pairing.figures.iter().flatten().any(has_failed);
    let [old, new] = pairing.sides.map(|side| DiffSide { started: head.started.clone(), ..side });
    let [old_figures, new_figures] = &pairing.figures;
    let record = DiffRecord {
        head,
        old,
        new,
        paired: true,
        looks,
        hosts_differ: Vec::new(),
        fail_over_percent: args.fail_over,
        interrupted,
        changes: stats::differences(old_figures, new_figures, true, looks),
    };
    let code = show(args, record)?;
    Ok(if interrupted || failed { stop.exit_code(failed) } else { code })
}

/// Whether a command ended with a status other than 0; the failures of a bench are in its cases.
fn has_failed(figures: &CaseFigures) -> bool {
    figures.figure == DiffFigure::WallTime && figures.problem.is_some()
}

/// Whether the two commands are hosepipes, whose `bench` runs; and their sides of the record, each named by its program or its whole
/// command line.
fn sides(
    named: [&OsString; 2],
    arguments: &[OsString],
    shell: &Shell,
) -> anyhow::Result<(bool, [DiffSide; 2])> {
    let [old_name, new_name] = named;
    let is_bench = arguments.first().is_some_and(|first| first == "bench");
    let versions = named.map(|program| is_bench.then(|| version(program)).flatten());
    if let [Some(old), Some(new)] = versions {
        let is_reserved = |word: &&OsString| {
            let word = word.to_string_lossy();
            let option = word.strip_prefix("--").and_then(|option| option.split('=').next());
            let formats = report::FORMATS.iter().map(|format| format.flag);
            option.is_some_and(|option| formats.chain(RESERVED_OPTIONS).any(|reserved| reserved == option))
        };
        if let Some(word) = arguments.iter().find(is_reserved) {
            let word = word.to_string_lossy();
            return usage(format!("`diff` itself sets `{word}` for each trial: leave it out"));
        }
        let arguments = arguments.iter().map(|word| word.to_string_lossy().into_owned());
        let arguments: Vec<String> = arguments.collect();
        let side = |name: &OsStr, tool: String| DiffSide {
            name: name.to_string_lossy().into_owned(),
            tool,
            arguments: arguments.clone(),
            ..DiffSide::default()
        };
        return Ok((true, [side(old_name, old), side(new_name, new)]));
    }
    let quoted = |word: &OsString| format!(" {}", model::shell_quoted(word.as_encoded_bytes()));
    let words: String = arguments.iter().map(quoted).collect();
    let texts = named.map(|command| format!("{}{words}", command.to_string_lossy()));
    for (side, text) in ["old", "new"].iter().zip(&texts) {
        let problem = |problem: anyhow::Error| UsageError(format!("the {side} command: {problem}"));
        script::check_syntax(text, shell).map_err(problem)?;
    }
    Ok((false, texts.map(|name| DiffSide { name, ..DiffSide::default() })))
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
    commands: [&'a OsString; 2],
    arguments: &'a [OsString],
    shell: &'a Shell,
    are_hosepipes: bool,
    sides: [DiffSide; 2],
    stop: &'a StopRequest,
    figures: [Vec<CaseFigures>; 2],
}

impl Pairing<'_> {
    /// Runs pairs until there are enough; returns the planned number of tests, the last one included.
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
        let (mut looks, mut pairs) = (vec![most as usize], 0);
        while let Some(Round { number: turn, rows: order }) = rounds.next(vec![0, 1]) {
            let round = turn.checked_sub(self.args.warmup);
            let mut pair = [Vec::new(), Vec::new()];
            for side in order {
                bar.say(&format!("{} {}", ["old:", "new:"][side], self.sides[side].name));
                pair[side] = self.run_side(side, turn, round.unwrap_or(0))?;
                if self.stop.is_set() {
                    return Ok(stats::looks_at_end(&looks, pairs));
                }
            }
            bar.advance();
            let failed = pair.iter().flatten().any(has_failed);
            let Some(round) = round.or(failed.then_some(0)) else { continue };
            self.add(pair);
            if failed {
                break;
            }
            pairs = round as usize + 1;
            if pairs == 1 && self.args.trials.is_none() {
                let judged = self.figures[0].iter().filter(|one| !one.control).count();
                looks = stats::looks_for(judged, PAIRS_MAX);
            }
            if looks.contains(&pairs) && self.is_settled(looks.len() as u32) {
                break;
            }
            let has_no_limit = self.args.time.is_none() && self.args.trials.is_none();
            if has_no_limit && pairs >= looks[0] && began.elapsed() >= BUDGET {
                break;
            }
        }
        Ok(stats::looks_at_end(&looks, pairs))
    }

    /// Whether further pairs would not change the result.
    fn is_settled(&self, looks: u32) -> bool {
        let [old, new] = &self.figures;
        stats::differences(old, new, true, looks)
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

    /// Runs one trial of the old or the new command; returns its figures, all with this round.
    fn run_side(&self, side: usize, turn: u32, round: u32) -> anyhow::Result<Vec<CaseFigures>> {
        if self.are_hosepipes {
            self.run_bench(self.commands[side], turn, round)
        } else {
            self.run_text(&self.sides[side].name, turn, round)
        }
    }

    fn run_text(&self, text: &str, turn: u32, round: u32) -> anyhow::Result<Vec<CaseFigures>> {
        let ourselves = std::env::current_exe().context("cannot find the file of this program")?;
        let start = Start { hosepipe: &ourselves, shell: self.shell };
        let stderr = if turn == 0 { TrialStderr::Shown } else { TrialStderr::Hidden };
        let Trial { wall, status, output, ended_by, .. } =
            trial(&start, text, &TrialOptions::default(), stderr)?;
        self.stop.note(ended_by);
        let failed = status != 0;
        let problem =
            format!("`{text}` ended with status {status} (if that is intended, write `(…) || true`)");
        Ok(vec![CaseFigures {
            case: BTreeMap::from([("spec".to_owned(), "command".to_owned())]),
            figure: DiffFigure::WallTime,
            control: false,
            values: if failed { Vec::new() } else { vec![(round, wall.as_secs_f64())] },
            run_medians: Vec::new(),
            failed,
            short: false,
            amounts: Vec::new(),
            problem: failed.then_some(problem),
            found: BTreeMap::from([("hash of the output", output.hash)]),
        }])
    }

    /// One trial of every case of a bench.
    fn run_bench(&self, program: &OsStr, turn: u32, round: u32) -> anyhow::Result<Vec<CaseFigures>> {
        let seed = self.args.seed.wrapping_add(u64::from(turn)).to_string();
        let name = program.to_string_lossy();
        let mut command = Command::new(program);
        command.args(self.arguments).args(["--trials", "1", "--seed", &seed, "--json", "-"]);
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
        figures.iter_mut().flat_map(|one| &mut one.values).for_each(|(of, _)| *of = round);
        Ok(figures)
    }
}
