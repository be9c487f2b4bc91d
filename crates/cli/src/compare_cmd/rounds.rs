//! When the rounds of `hosepipe compare` end.

use std::time::Duration;

use model::CompareResult;
use stats::changes::{PAIRS_MAX, analyses_for_order};
use stats::{analyses_for, figures_needed};

use super::CompareArgs;
use super::plan::Plan;
use crate::terminal::usage;

/// Most timed runs of each by default, unless more are needed for the order of all.
const TRIALS: usize = 8;
/// Default of --time with --precision, and with --fail-over.
const TIME_FOR_PRECISION: Duration = Duration::from_secs(60);
const TIME_FOR_LIMIT: Duration = Duration::from_secs(300);

/// When the rounds end.
pub(super) struct EndRule {
    /// Most timed rounds.
    pub(super) trials: u32,
    /// No round begins after this time, except the first timed one.
    pub(super) time: Option<Duration>,
    /// The numbers of rounds after which the order is examined, or the limit; the last one is `trials`. With --precision they may end after any
    /// round, and the order that they show is still one of as many analyses.
    pub(super) analyses: Vec<usize>,
    wanted: Wanted,
}

/// What must be known for the rounds to end early.
#[derive(Clone, Copy)]
enum Wanted {
    /// Nothing: all rounds are made.
    All,
    /// Which of any two is faster.
    Order,
    /// Every median within this many percent.
    Precision(f64),
    /// Whether any takes longer than its baseline by more than this many percent.
    Limit(f64),
}

impl EndRule {
    pub(super) fn new(args: &CompareArgs, plan: &Plan<'_>) -> anyhow::Result<Self> {
        let results: Vec<&CompareResult> = plan.contenders.iter().map(|one| &one.result).collect();
        let (pairs, compared) = (stats::pairs_to_order(&results), stats::baselines(&results).len());
        let wanted = match (args.precision, args.fail_over) {
            (Some(percent), _) => Wanted::Precision(percent),
            (None, Some(_)) if compared == 0 => {
                return usage(
                    "--fail-over compares with the first pipeline or link, and there is no other one",
                );
            }
            (None, Some(percent)) => Wanted::Limit(percent),
            (None, None) if args.trials.is_some() => Wanted::All,
            (None, None) => Wanted::Order,
        };
        let has_time = args.time.is_some() || matches!(wanted, Wanted::Precision(_) | Wanted::Limit(_));
        let usual = if has_time { PAIRS_MAX } else { TRIALS.max(stats::rounds_to_order(pairs)) };
        let trials = args.trials.unwrap_or(usual as u32);
        let needed = figures_needed(compared, 1, true);
        if matches!(wanted, Wanted::Limit(_)) && (trials as usize) < needed {
            return usage(format!("--fail-over needs at least --trials {needed} to find anything"));
        }
        let analyses = match wanted {
            Wanted::Limit(_) if args.trials.is_none() => analyses_for(compared, trials as usize),
            Wanted::Limit(_) | Wanted::All => vec![trials as usize],
            Wanted::Order | Wanted::Precision(_) if pairs == 0 => vec![trials as usize],
            Wanted::Order | Wanted::Precision(_) => analyses_for_order(pairs, trials as usize),
        };
        let usual_time = match wanted {
            Wanted::Precision(_) => Some(TIME_FOR_PRECISION),
            Wanted::Limit(_) => Some(TIME_FOR_LIMIT),
            _ => None,
        };
        let time = args.time.or(usual_time.filter(|_| args.trials.is_none()));
        Ok(Self { trials, time, analyses, wanted })
    }

    /// Whether this many rounds with these results are enough.
    pub(super) fn is_enough(&self, rounds: u32, results: &[&CompareResult]) -> bool {
        let analyses = self.analyses.len() as u32;
        let is_analysis = analyses > 1 && self.analyses.contains(&(rounds as usize));
        match self.wanted {
            Wanted::All => false,
            Wanted::Precision(percent) => stats::are_times_precise(results, percent),
            Wanted::Order => is_analysis && stats::is_order_certain(results, analyses) == Some(true),
            Wanted::Limit(percent) => is_analysis && stats::are_baselines_settled(results, percent, analyses),
        }
    }
}
