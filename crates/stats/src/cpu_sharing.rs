//! Divides the trials of a case into those whose ends ran on one CPU and those whose ends ran on two. If the scheduler chooses, a
//! case is a mixture of both, and its median alone is not informative.

use model::{CaseRecord, Placement, Sample};

use crate::estimate::median;
use crate::figure::round_trip_p50_ns;

/// A trial ran on one CPU if both ends shared it in more than this share of the samples of their CPUs.
const SAME_CPU_SHARE: f64 = 0.5;
/// A whole case ran on one CPU if its mean share is at least this, and on two if it is at most 1 minus this.
const NEARLY_ALL: f64 = 0.8;

/// A group of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialGroup {
    /// Number of trials.
    pub trials: usize,
    /// Median of their figures.
    pub median: f64,
}

/// The trials of a case that the scheduler placed, in two groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialsByCpus {
    /// Both ends were mostly on one CPU.
    pub one_cpu: Option<TrialGroup>,
    /// They were mostly on two CPUs.
    pub two_cpus: Option<TrialGroup>,
}

/// A figure on one CPU and on two; `None` if the user chose the CPUs, or no trial has samples of them.
pub fn trials_by_cpus(case: &CaseRecord, figure: impl Fn(&Sample) -> Option<f64>) -> Option<TrialsByCpus> {
    let placed = case.samples.iter().filter(|_| case.placement == Placement::Any);
    let shared: Vec<(bool, f64)> = placed
        .filter_map(|sample| Some((sample.same_cpu_share? > SAME_CPU_SHARE, figure(sample)?)))
        .collect();
    let group = |together: bool| {
        let values: Vec<f64> =
            shared.iter().filter(|(one, _)| *one == together).map(|(_, value)| *value).collect();
        median(&values).map(|median| TrialGroup { trials: values.len(), median })
    };
    (!shared.is_empty()).then(|| TrialsByCpus { one_cpu: group(true), two_cpus: group(false) })
}

/// The same for median round trips. If all trials are in one group, the median is that of the case, and no histogram has to be
/// decoded.
pub fn round_trips_by_cpus(case: &CaseRecord) -> Option<TrialsByCpus> {
    let kinds = trials_by_cpus(case, |_| Some(0.0))?;
    let known = case.latency_ns.as_ref().map(|found| found.p50 as f64);
    let whole = |group: Option<TrialGroup>| {
        let found = group.filter(|group| group.trials == case.samples.len())?;
        Some(TrialGroup { median: known?, ..found })
    };
    match (whole(kinds.one_cpu), whole(kinds.two_cpus)) {
        (None, None) => trials_by_cpus(case, round_trip_p50_ns),
        (one_cpu, two_cpus) => Some(TrialsByCpus { one_cpu, two_cpus }),
    }
}

/// Whether the scheduler put the ends on one CPU in some trials and on two in others.
pub fn is_mixed(case: &CaseRecord) -> bool {
    let found = trials_by_cpus(case, |_| Some(0.0));
    found.is_some_and(|found| found.one_cpu.is_some() && found.two_cpus.is_some())
}

/// Whether the scheduler put the ends on one CPU in any trial.
pub fn ever_shared_cpu(case: &CaseRecord) -> bool {
    trials_by_cpus(case, |_| Some(0.0)).is_some_and(|found| found.one_cpu.is_some())
}

/// Whether the two ends of a case shared a CPU; `None` if they did for part of the time, or their CPUs are unknown.
pub fn shared_cpu(case: &CaseRecord) -> Option<bool> {
    match case.cpus.as_slice() {
        [] => {}
        cpus => return Some(cpus.iter().all(|cpu| *cpu == cpus[0])),
    }
    let shares: Vec<f64> = case.samples.iter().filter_map(|sample| sample.same_cpu_share).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    match mean {
        mean if mean >= NEARLY_ALL => Some(true),
        mean if mean <= 1.0 - NEARLY_ALL => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::throughput_bytes_per_s;
    use crate::mock;
    use model::Workload;

    fn case(trials: &[(u64, Option<f64>)]) -> CaseRecord {
        let sample =
            |(rate, share): &(u64, Option<f64>)| Sample { same_cpu_share: *share, ..mock::stream(0, *rate) };
        let mut case = mock::case(Workload::Stream, trials.iter().map(sample).collect());
        (case.placement, case.cpus) = (Placement::Any, Vec::new());
        case
    }

    #[test]
    fn trials_on_one_cpu_and_on_two_are_two_groups() {
        let mixed =
            case(&[(4800, Some(1.0)), (600, Some(0.02)), (5000, Some(0.9)), (4900, Some(0.51)), (1, None)]);
        let found = trials_by_cpus(&mixed, throughput_bytes_per_s).unwrap();
        assert_eq!(found.one_cpu, Some(TrialGroup { trials: 3, median: 4900.0 }));
        assert_eq!(found.two_cpus, Some(TrialGroup { trials: 1, median: 600.0 }));
        assert_eq!(shared_cpu(&mixed), None);
        let pinned = CaseRecord { placement: Placement::Cross, ..mixed };
        assert_eq!(trials_by_cpus(&pinned, throughput_bytes_per_s), None);
    }

    #[test]
    fn without_samples_of_the_cpus_there_are_no_groups() {
        let silent = case(&[(1, None), (2, None)]);
        assert_eq!((trials_by_cpus(&silent, throughput_bytes_per_s), shared_cpu(&silent)), (None, None));
        assert_eq!(shared_cpu(&case(&[(1, Some(1.0)), (1, Some(0.7))])), Some(true));
        assert_eq!(shared_cpu(&CaseRecord { cpus: vec![3, 3], ..silent }), Some(true));
    }

    /// Round trips of which some trials were on one CPU.
    fn trips(trials: &[(u64, f64)]) -> CaseRecord {
        let sample = |(time, share): &(u64, f64)| Sample {
            same_cpu_share: Some(*share),
            ..mock::round_trips(0, &[*time])
        };
        let mut case = mock::case(Workload::PingPong, trials.iter().map(sample).collect());
        (case.placement, case.cpus) = (Placement::Any, Vec::new());
        let (p50, other) = (777, 0);
        case.latency_ns = Some(model::Latency {
            p50,
            p90: other,
            p99: other,
            p999: other,
            max: other,
            tails: None,
            p50_low: other,
            p50_high: other,
            count: other,
        });
        case
    }

    #[test]
    fn one_group_of_all_trials_has_the_median_of_the_case() {
        let group = |trials, median| Some(TrialGroup { trials, median });
        let found = |trials| round_trips_by_cpus(&trips(trials)).map(|found| (found.one_cpu, found.two_cpus));
        assert_eq!(found(&[(100, 1.0), (100, 0.51)]), Some((group(2, 777.0), None)));
        assert_eq!(found(&[(100, 0.5), (100, 0.0)]), Some((None, group(2, 777.0))), "half is not most");
        let mixed = [(100, 1.0), (100, 1.0), (300, 0.0)];
        assert_eq!(found(&mixed), Some((group(2, 100.0), group(1, 300.0))));
        let mut unknown = trips(&mixed[..2]);
        unknown.samples[1].same_cpu_share = None;
        let found = round_trips_by_cpus(&unknown).map(|found| (found.one_cpu, found.two_cpus));
        assert_eq!(found, Some((group(1, 100.0), None)), "the CPUs of the other trial are unknown");
    }

    #[test]
    fn a_case_is_mixed_if_it_has_trials_of_both_kinds() {
        for (shares, mixed, ever) in [
            (&[Some(1.0), Some(0.9)][..], false, true),
            (&[Some(0.0), Some(0.5)], false, false),
            (&[Some(0.0), Some(0.6)], true, true),
            (&[None, None], false, false),
        ] {
            let case = case(&shares.iter().map(|share| (1, *share)).collect::<Vec<_>>());
            assert_eq!((is_mixed(&case), ever_shared_cpu(&case)), (mixed, ever), "{shares:?}");
        }
    }

    #[test]
    fn nearly_all_of_the_time_on_one_cpu_is_all_of_it() {
        for (shares, expected) in [
            ([1.0, 0.6], Some(true)),
            ([1.0, 0.59], None),
            ([0.5, 0.5], None),
            ([0.42, 0.0], None),
            ([1.0 - NEARLY_ALL, 1.0 - NEARLY_ALL], Some(false)),
        ] {
            assert_eq!(shared_cpu(&case(&shares.map(|share| (1, Some(share))))), expected, "{shares:?}");
        }
        let pinned = |cpus: &[u32]| shared_cpu(&CaseRecord { cpus: cpus.to_vec(), ..case(&[]) });
        assert_eq!((pinned(&[3, 4]), pinned(&[3]), pinned(&[])), (Some(false), Some(true), None));
    }
}
