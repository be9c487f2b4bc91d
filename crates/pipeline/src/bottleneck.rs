//! The bottleneck of a pipeline: the stage that the others waited for, or the program before the first or after the last stage.

mod evidence;

use model::{Bottleneck, Cause, LinkRecord, StageRecord, StageShare, Tip};
use observe::locale::Locale;

use crate::history::Blame;
use crate::tips::{Busy, real_name, tips_for};
use evidence::{Culprit, Support, named_by_cpu, sampled, sampled_shares, support};

/// A shorter run consists mostly of the start of its programs, and has too few samples.
const TOO_SHORT_NS: u64 = 50_000_000;
/// Smallest share of a stage's time that its main activity takes.
const MAIN_SHARE: f64 = 0.5;
/// Smallest share of waiting for a CPU or a disk that is reported.
const WORTH_SAYING_SHARE: f64 = 0.25;
/// Smallest share of a stage that is named in a pipeline without a clear bottleneck.
const NAMED_SHARE: f64 = 0.2;
/// Size from which on a larger pipe is not faster.
const LARGE_PIPE_BYTES: u64 = 1 << 20;

/// One pipeline that has run.
pub(crate) struct Observed<'a> {
    /// Its stages, with the time that was attributed to each.
    pub(crate) stages: &'a [(StageRecord, Blame)],
    /// The index of its first stage in the record.
    pub(crate) first: usize,
    /// The locale of each stage's program, if it is known.
    pub(crate) locales: &'a [Option<Locale>],
    /// Its links.
    pub(crate) links: &'a [LinkRecord],
    /// Whether each stage began after the one before it had ended.
    pub(crate) is_sequential: bool,
}

/// Finds the bottleneck.
pub(crate) fn find_bottleneck(pipeline: &Observed<'_>) -> Option<Bottleneck> {
    let total_ns = pipeline.stages.iter().map(|(stage, _)| stage.wall_ns).max()?;
    let found = |cause| Bottleneck { cause: Some(cause), ..Bottleneck::default() };
    if total_ns < TOO_SHORT_NS {
        return Some(found(Cause::TooShort { min_ns: TOO_SHORT_NS }));
    }
    let shares = sampled_shares(pipeline);
    let whole_ns =
        if pipeline.is_sequential { shares.iter().map(|(_, ns)| ns).sum() } else { total_ns as f64 }.max(1.0);
    let (culprit, ns) = *shares.first()?;
    let support = support(pipeline, &shares, whole_ns);
    let at = |index: usize| Some(pipeline.first + index);
    if let Some(index) = named_by_cpu(pipeline, culprit, support, whole_ns) {
        let stage = &pipeline.stages[index].0;
        let share_of = |ns: u64| (ns as f64 / whole_ns).min(1.0);
        let queued_share = stage.queued_ns.map(share_of).filter(|share| *share >= WORTH_SAYING_SHARE);
        let tips = tips(pipeline, index, queued_share.is_some());
        let share = Some(share_of(stage.user_ns.saturating_add(stage.system_ns)));
        return Some(Bottleneck {
            stage: at(index),
            share,
            ..found(Cause::MostCpuTime { queued_share, tips })
        });
    }
    let share = Some((ns / whole_ns).min(1.0));
    let beside = |index, cause| Bottleneck { seen_at: at(index), share, ..found(cause) };
    Some(match culprit {
        _ if support == Support::NotClear => found(no_stage(pipeline, &shares, whole_ns)),
        _ if support == Support::FewSamples => found(Cause::FewSamples { samples: sampled(pipeline) }),
        Culprit::Before => beside(0, Cause::Before),
        Culprit::After => beside(pipeline.stages.len() - 1, Cause::After),
        Culprit::Unread(index) => beside(index, Cause::Unread),
        Culprit::Stage(index) => {
            let in_turn = pipeline.is_sequential;
            Bottleneck { stage: at(index), share, in_turn, ..found(cause_of(pipeline, index)) }
        }
    })
}

/// What a stage did while the others waited for it.
fn cause_of(pipeline: &Observed<'_>, index: usize) -> Cause {
    let (_, blame) = &pipeline.stages[index];
    let share_of = |ns: f64| (ns / blame.total_ns.max(1.0)).min(1.0);
    let (cpu_share, queued_share) = (share_of(blame.cpu_ns), share_of(blame.queued_ns));
    let (disk_share, stopped_share) = (share_of(blame.disk_ns), share_of(blame.stopped_ns));
    let shared = blame.waited_elsewhere_ns.iter().max_by(|one, other| one.1.total_cmp(other.1));
    let shared = shared.map(|(with, ns)| (with, share_of(*ns))).filter(|(_, share)| *share >= MAIN_SHARE);
    if let Some((with, waited_share)) = shared {
        Cause::SharedPipe { with: with.clone(), waited_share }
    } else if queued_share >= WORTH_SAYING_SHARE && queued_share + cpu_share >= MAIN_SHARE {
        Cause::Queues { queued_share, cpu_share, tips: tips(pipeline, index, true) }
    } else if stopped_share >= MAIN_SHARE {
        Cause::Stopped { stopped_share }
    } else if disk_share >= WORTH_SAYING_SHARE && disk_share >= cpu_share {
        Cause::Disk { disk_share }
    } else if cpu_share >= MAIN_SHARE {
        Cause::Computes { cpu_share, tips: tips(pipeline, index, false) }
    } else {
        Cause::Sleeps { cpu_share: (cpu_share >= 0.01).then_some(cpu_share) }
    }
}

/// What makes a stage that computes faster.
fn tips(pipeline: &Observed<'_>, index: usize, shares_cpus: bool) -> Vec<Tip> {
    let busy = Busy {
        command: &pipeline.stages[index].0.command,
        locale: pipeline.locales.get(index).copied().flatten(),
        is_before_others: index == 0 && pipeline.stages.len() > 1,
        shares_cpus,
    };
    tips_for(&busy, real_name)
}

/// A pipeline in which no stage stands out.
fn no_stage(pipeline: &Observed<'_>, shares: &[(Culprit, f64)], whole_ns: f64) -> Cause {
    let large = |(culprit, ns): &(Culprit, f64)| match culprit {
        Culprit::Stage(index) if ns / whole_ns > NAMED_SHARE => {
            Some(StageShare { stage: pipeline.first + index, share: ns / whole_ns })
        }
        _ => None,
    };
    let largest: Vec<StageShare> = shares.iter().take(2).filter_map(large).collect();
    let sizes = pipeline.links.iter().filter_map(|link| link.granted.get("pipe_bytes").copied());
    let pipe_bytes = sizes.min().filter(|bytes| *bytes < LARGE_PIPE_BYTES && largest.len() > 1);
    let quota_is_spent = pipe_bytes.is_some_and(|bytes| bytes < mechanism::default_pipe_bytes());
    Cause::NoStage { largest, pipe_bytes, quota_is_spent }
}

#[cfg(test)]
mod tests {
    use observe::locale::Letters;

    use super::*;

    const MS: f64 = 1e6;

    fn stage(command: &str, wall_ms: u64, blame: Blame) -> (StageRecord, Blame) {
        let command = command.to_owned();
        let stage = StageRecord { command, wall_ns: wall_ms * 1_000_000, ..StageRecord::default() };
        (stage, Blame { samples: 100, ..blame })
    }

    fn blame(total_ms: f64, cpu_ms: f64) -> Blame {
        Blame { total_ns: total_ms * MS, cpu_ns: cpu_ms * MS, ..Blame::default() }
    }

    /// A French one.
    const LOCALE: Option<Locale> = Some(Locale { collate: Letters::Language, ctype: Letters::Language });

    fn judged(stages: &[(StageRecord, Blame)], is_sequential: bool) -> Bottleneck {
        let observed = Observed { stages, first: 0, locales: &[LOCALE; 3], links: &[], is_sequential };
        find_bottleneck(&observed).expect("stages")
    }

    type IsIt = fn(&Cause) -> bool;

    fn is(found: &Bottleneck, is_it: IsIt) -> bool {
        found.cause.as_ref().is_some_and(is_it)
    }

    #[test]
    fn the_one_that_is_waited_for_is_named_with_what_it_did() {
        let none = Blame::default;
        let among = |middle: Blame| {
            vec![
                stage("cat f", 2000, blame(100.0, 50.0)),
                stage("sort", 2000, middle),
                stage("wc", 2000, none()),
            ]
        };
        let waited_elsewhere_ns = [("sleep 1".to_owned(), 1800.0 * MS)].into();
        let before = Blame { before_ns: 950.0 * MS, ..none() };
        let after = Blame { after_ns: 950.0 * MS, ..none() };
        let cases: Vec<(_, _, IsIt)> = vec![
            (
                among(blame(1900.0, 1800.0)),
                [Some(1), None],
                |cause| matches!(cause, Cause::Computes { tips, .. } if tips[..] == [Tip::OrderByBytes]),
            ),
            (
                among(Blame { queued_ns: 900.0 * MS, ..blame(1900.0, 900.0) }),
                [Some(1), None],
                |cause| matches!(cause, Cause::Queues { tips, .. } if tips[..] == [Tip::OrderByBytes]),
            ),
            (among(Blame { disk_ns: 1500.0 * MS, ..blame(1900.0, 100.0) }), [Some(1), None], |cause| {
                matches!(cause, Cause::Disk { .. })
            }),
            (
                among(Blame { waited_elsewhere_ns, ..blame(1900.0, 0.0) }),
                [Some(1), None],
                |cause| matches!(cause, Cause::SharedPipe { with, .. } if with == "sleep 1"),
            ),
            (among(blame(1900.0, 10.0)), [Some(1), None], |cause| matches!(cause, Cause::Sleeps { .. })),
            (vec![stage("cat", 1000, before), stage("wc", 1000, none())], [None, Some(0)], |cause| {
                *cause == Cause::Before
            }),
            (vec![stage("cat", 1000, none()), stage("tr", 1000, after)], [None, Some(1)], |cause| {
                *cause == Cause::After
            }),
            (
                vec![stage("cat f", 1000, blame(480.0, 400.0)), stage("wc -c", 1000, blame(450.0, 400.0))],
                [None, None],
                |cause| matches!(cause, Cause::NoStage { largest, .. } if largest.len() == 2),
            ),
            (vec![stage("true", 3, blame(3.0, 1.0))], [None, None], |cause| {
                matches!(cause, Cause::TooShort { .. })
            }),
            (
                vec![stage("a", 1000, blame(100.0, 0.0)), stage("b", 1000, none())],
                [None, None],
                |cause| matches!(cause, Cause::NoStage { largest, .. } if largest.is_empty()),
            ),
        ];
        for (stages, [named, seen_at], cause) in cases {
            let found = judged(&stages, false);
            assert_eq!((found.stage, found.seen_at), (named, seen_at), "{found:?}");
            assert!(is(&found, cause), "{found:?}");
        }
        let stages = [stage("a", 300, blame(300.0, 290.0)), stage("b", 1000, blame(650.0, 600.0))];
        let found = judged(&stages, true);
        assert!(found.stage == Some(1) && found.in_turn, "{found:?}");
    }

    fn computing(command: &str, cpu_ms: u64, blame: Blame) -> (StageRecord, Blame) {
        let (record, blame) = stage(command, 300, blame);
        (StageRecord { user_ns: cpu_ms * 1_000_000, ..record }, blame)
    }

    /// Expected: python3, which computes for 171 of 283 ms, or that it is not known. Happened: `cat`, `uniq` and `wc` by turns.
    #[test]
    fn cpu_time_outranks_samples_and_few_samples_name_no_stage() {
        let few = |(record, blame): (StageRecord, Blame)| (record, Blame { samples: 3, ..blame });
        let slept = blame(290.0, 0.0);
        let counted: IsIt = |cause| matches!(cause, Cause::MostCpuTime { .. });
        for (case, stages, expected, cause) in [
            (
                "cat copies",
                [computing("cat f", 60, blame(200.0, 190.0)), computing("python3", 171, blame(80.0, 70.0))],
                Some(1),
                counted,
            ),
            (
                "no sample",
                [computing("cat f", 60, Blame::default()), computing("python3", 171, Blame::default())],
                Some(1),
                counted,
            ),
            (
                "few samples",
                [few(computing("sort", 171, Blame::default())), few(computing("wc", 1, slept.clone()))],
                Some(0),
                counted,
            ),
            (
                "a reader at a low rate",
                [computing("gzip", 171, Blame::default()), computing("pv", 1, slept.clone())],
                Some(1),
                |cause| matches!(cause, Cause::Sleeps { .. }),
            ),
            (
                "both compute",
                [computing("a", 160, blame(200.0, 190.0)), computing("b", 155, blame(80.0, 70.0))],
                Some(0),
                |cause| matches!(cause, Cause::Computes { .. }),
            ),
            (
                "nothing is known",
                [few(computing("uniq", 20, blame(100.0, 0.0))), few(computing("wc", 1, slept.clone()))],
                None,
                |cause| *cause == Cause::FewSamples { samples: 3 },
            ),
        ] {
            let found = judged(&stages, false);
            assert_eq!(found.stage, expected, "{case}: {found:?}");
            assert!(is(&found, cause), "{case}: {found:?}");
        }
        let half = |samples| {
            let with = |stage: (StageRecord, Blame)| (stage.0, Blame { samples, ..stage.1 });
            judged(
                &[with(computing("a", 9, blame(110.0, 9.0))), with(computing("b", 9, blame(190.0, 9.0)))],
                false,
            )
            .stage
        };
        assert_eq!((half(8), half(100)), (None, Some(1)), "0.63 of the samples");
    }

    #[test]
    fn what_runs_on_without_a_reader_is_not_to_blame() {
        let unread = Blame { unread_ns: 290.0 * MS, ..Blame::default() };
        let stages = [
            stage("tail -f log", 300, Blame::default()),
            stage("sed", 300, unread),
            stage("grep -m1 x", 2, Blame::default()),
        ];
        let found = judged(&stages, false);
        assert!(found.stage.is_none() && is(&found, |cause| *cause == Cause::Unread), "{found:?}");
        assert_eq!(found.seen_at, Some(1));
    }
}
