//! Which stage the figures of a pipeline support as the one that the others waited for. CPU times are counted by the kernel; waits are sampled, and on a
//! busy machine, or in a short pipeline, a few samples may all show the wrong stage.

use model::StageRecord;
use observe::blame::stands_out;

use super::{MAIN_SHARE, Observed};
use crate::history::Blame;

/// Fewest samples by which a stage is named.
const SAMPLES_MIN: u32 = 4;

/// What the pipeline waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Culprit {
    Stage(usize),
    Before,
    After,
    /// This stage, whose reader has ended.
    Unread(usize),
}

/// The times for which the pipeline waited, the longest first.
pub(super) fn sampled_shares(pipeline: &Observed<'_>) -> Vec<(Culprit, f64)> {
    let of_stage = |(index, (_, blame)): (usize, &(StageRecord, Blame))| {
        [
            (Culprit::Stage(index), blame.total_ns),
            (Culprit::Before, blame.before_ns),
            (Culprit::After, blame.after_ns),
            (Culprit::Unread(index), blame.unread_ns),
        ]
    };
    let mut shares: Vec<(Culprit, f64)> = pipeline.stages.iter().enumerate().flat_map(of_stage).collect();
    model::sort_by(&mut shares, |one, other| other.1.total_cmp(&one.1));
    shares
}

/// How well the samples support the longest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// It is not long, or others are nearly as long.
    NotClear,
    /// With so few samples it may be chance.
    FewSamples,
    Enough,
}

/// The samples are enough if, drawn anew, they would seldom show another majority: the share of the first is above one half by one and a half
/// standard errors of a proportion.
pub(super) fn support(pipeline: &Observed<'_>, shares: &[(Culprit, f64)], whole_ns: f64) -> Support {
    let ns = |at: usize| shares.get(at).map_or(0.0, |(_, ns)| *ns);
    if !stands_out(ns(0), ns(1), whole_ns) {
        return Support::NotClear;
    }
    let share = ns(0) / shares.iter().map(|(_, ns)| ns).sum::<f64>();
    let samples = sampled(pipeline);
    let error = (share * (1.0 - share) / f64::from(samples.max(1))).sqrt();
    if samples >= SAMPLES_MIN && share - 1.5 * error >= 0.5 { Support::Enough } else { Support::FewSamples }
}

/// The number of samples of the pipeline.
pub(super) fn sampled(pipeline: &Observed<'_>) -> u32 {
    pipeline.stages.iter().map(|(_, blame)| blame.samples).max().unwrap_or(0)
}

/// The stage that computes for over half of the time. The kernel counts CPU times, so they outrank samples, except where these show clearly that the
/// pipeline waited for what does not compute.
pub(super) fn named_by_cpu(
    pipeline: &Observed<'_>,
    culprit: Culprit,
    support: Support,
    whole_ns: f64,
) -> Option<usize> {
    let busiest = busiest(pipeline, whole_ns).filter(|_| !pipeline.is_sequential)?;
    let yields = match culprit {
        Culprit::Stage(index) => {
            let blame = &pipeline.stages[index].1;
            index == busiest || blame.cpu_ns + blame.queued_ns < MAIN_SHARE * blame.total_ns
        }
        _ => true,
    };
    (support != Support::Enough || !yields).then_some(busiest)
}

/// The only stage that computes for over half of the time.
fn busiest(pipeline: &Observed<'_>, whole_ns: f64) -> Option<usize> {
    let cpu_ns =
        |(stage, _): &(StageRecord, Blame)| stage.user_ns.saturating_add(stage.system_ns).min(stage.wall_ns);
    let mut times: Vec<(usize, u64)> = pipeline.stages.iter().map(cpu_ns).enumerate().collect();
    model::sort_by(&mut times, |one, other| other.1.cmp(&one.1));
    let (at, first) = *times.first()?;
    let next = times.get(1).map_or(0, |(_, ns)| *ns);
    stands_out(first as f64, next as f64, whole_ns).then_some(at)
}
