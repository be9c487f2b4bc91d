//! `--like`: the cases of a record again, each with the amount of its trials, so that `diff` compares like with like.

use std::path::Path;

use engine::{Ask, AskedSpecs};
use model::{Amount, BenchRecord, Case, CaseRecord, Record, Role, Suite};
use payload::{Period, Tile};

use super::args::PlaceArgument;
use super::cells::check_amounts;
use super::decision::TRIALS;
use crate::record;
use crate::terminal::{UsageError, usage};

/// What is measured again.
pub(super) struct LikePlan {
    pub(super) suite: Option<Suite>,
    pub(super) cases: Vec<Case>,
    pub(super) trials: u32,
}

/// Reads the cases of a record.
///
/// # Errors
/// A [`UsageError`]: it is not a record of mechanisms between ends of one host, or this hosepipe cannot measure one of its cases.
pub(super) fn read(path: &Path, place: Option<PlaceArgument>) -> anyhow::Result<LikePlan> {
    let loaded = record::load(path)?;
    let name = &loaded.name;
    let Record::Bench(record) = loaded.record else {
        return usage(format!(
            "--like {name}: a record of `hosepipe {}` has no cases of mechanisms: give one of `hosepipe bench`",
            loaded.record.kind()
        ));
    };
    let again = |case: &CaseRecord| {
        case_again(case).map_err(|problem| UsageError(format!("--like {name}: `{}`: {problem}", case.spec)))
    };
    let cases = record.cases.iter().map(again).collect::<Result<Vec<Case>, UsageError>>()?;
    if cases.is_empty() {
        return usage(format!("--like {name}: this record has no cases"));
    }
    let is_elsewhere = |case: &&Case| place.is_some_and(|place| place != PlaceArgument::One(case.placement));
    if let Some(case) = cases.iter().find(is_elsewhere) {
        return usage(format!(
            "--place contradicts --like {name}, which has `{}` at {}: leave it out",
            case.spec, case.placement
        ));
    }
    check_amounts(&cases)?;
    Ok(LikePlan { trials: trials(&record), suite: record.settings.suite, cases })
}

/// The case as the options of `bench` describe it, with the amount of its trials.
fn case_again(case: &CaseRecord) -> Result<Case, String> {
    if case.worker.is_some() || case.direction.is_some() {
        return Err("it was measured with --workers or --peer: repeat its command line".to_owned());
    }
    mechanism::resolve(&case.spec).map_err(|problem| problem.to_string())?;
    Tile::make(&case.payload, 0, Period::Bench).map_err(|problem| problem.to_string())?;
    let load = case.load();
    let ask = Ask {
        specs: AskedSpecs::Named(vec![case.spec.clone()]),
        blocks: vec![case.block_bytes],
        workload: Some(case.workload),
        tasks: Some(case.tasks),
        wait: Some(case.wait),
        placements: vec![case.placement],
        data: vec![case.data],
        check: case.check,
        payload: Some(case.payload.clone()),
        relays: case.relays,
        offsets: vec![case.align],
        pairs: load.pairs.into_iter().collect(),
        senders: load.senders.into_iter().collect(),
        receivers: load.receivers.into_iter().collect(),
        rates_per_s: load.rate_per_s.into_iter().collect(),
        ..Ask::default()
    };
    ask.check()?;
    let is_same = |made: &Case| CaseRecord::from(made.clone()).identity() == case.identity();
    let one = ask
        .cases()
        .into_iter()
        .find(is_same)
        .ok_or("this version of hosepipe does not measure it in that way")?;
    Ok(Case { amount: amount(case), ..one })
}

/// Blocks of each pair, and of each sender, in the median trial.
fn amount(case: &CaseRecord) -> Amount {
    let ends = u64::from(case.load().pairs()) * u64::from(case.load().senders());
    let median = stats::figure::median_of(case, |sample| Some(sample.messages as f64));
    median.map_or(Amount::Adaptive, |messages| Amount::Blocks((messages as u64 / ends.max(1)).max(1)))
}

/// As many trials as each case has, or more, if those are few.
fn trials(record: &BenchRecord) -> u32 {
    let ranked = record.cases.iter().filter(|case| case.role == Role::Ranked);
    let fewest = ranked.map(|case| case.samples.len()).filter(|samples| *samples > 0).min();
    fewest.map_or(TRIALS, |fewest| TRIALS.max(fewest as u32))
}
