//! Chooses the CPUs for a requested placement. The result depends only on the arguments and prefers low numbers, so that two runs on
//! one machine use the same CPUs.

use model::{Cpu, Placement};
use thiserror::Error;

use crate::CpuList;

/// Why a placement is impossible on this machine, with the possible ones and the CPUs that this process may use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PlacementError(String);

/// The CPUs of the two ends, the sender's first; empty if the scheduler chooses.
///
/// `cross` chooses two cores of one kind, if there are two, and of those the two nearest: in one node and package, else in one node, else any two. `numa` chooses CPUs of the lowest
/// node and of another one.
///
/// # Errors
/// The placement is impossible; the message names possible ones.
pub fn resolve(placement: Placement, cpus: &[Cpu]) -> Result<Vec<u32>, PlacementError> {
    let usable = cpus.iter().map(|cpu| cpu.id).collect::<CpuList>();
    let first = || {
        let lowest = cpus.iter().min_by_key(|cpu| cpu.id);
        lowest.ok_or_else(|| PlacementError("no usable CPU is known: use --place any".to_owned()))
    };
    match placement {
        Placement::Any => Ok(Vec::new()),
        Placement::Same => first().map(|cpu| vec![cpu.id, cpu.id]),
        // A CPU may be missing, offline, or forbidden (taskset(1), cpuset(7)).
        Placement::Cpus(a, b) => match [a, b].into_iter().find(|id| cpus.iter().all(|cpu| cpu.id != *id)) {
            Some(cpu) => Err(PlacementError(format!(
                "CPU {cpu} is not among the CPUs this process may use ({usable}): name two of those, \
                or widen the set with `taskset -c` or the cpuset of the container"
            ))),
            None => Ok(vec![a, b]),
        },
        Placement::Smt => {
            first()?;
            nearest(cpus, |a, b| same_core(a, b).then_some(0)).ok_or_else(|| {
                PlacementError(format!(
                    "this machine shows no SMT siblings among the CPUs this process may use ({usable}): \
                    use --place cross or same"
                ))
            })
        }
        Placement::Cross => {
            first()?;
            nearest(cpus, |a, b| (!same_core(a, b)).then_some(distance(a, b))).ok_or_else(|| match cpus.len() {
                1 => PlacementError(format!("this process may use only one CPU ({usable}): use --place same or any")),
                _ => PlacementError(format!(
                    "the CPUs this process may use ({usable}) are threads of one core: use --place smt, same or any"
                )),
            })
        }
        Placement::Numa => {
            let node = first()?.node;
            let pair = nearest(cpus, |a, b| (a.node != b.node).then_some(a.node.min(b.node)));
            pair.ok_or_else(|| {
                PlacementError(format!(
                    "the CPUs this process may use ({usable}) are all on NUMA node {node}: use --place cross or same"
                ))
            })
        }
    }
}

/// The CPUs of several pairs of ends, pair after pair. CPUs are used again only when there is no pair among the unused ones.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_pairs(placement: Placement, cpus: &[Cpu], pairs: u32) -> Result<Vec<u32>, PlacementError> {
    let (mut free, mut placed) = (cpus.to_vec(), Vec::new());
    for _ in 0..pairs {
        let pair = resolve(placement, &free).or_else(|_| {
            free = cpus.to_vec();
            resolve(placement, &free)
        })?;
        free.retain(|cpu| !pair.contains(&cpu.id));
        placed.extend(pair);
    }
    Ok(placed)
}

/// The CPUs of all senders, then the receiver's. With `cross` the senders use all cores except the receiver's, in turn; else they
/// share one CPU.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_senders(placement: Placement, cpus: &[Cpu], senders: u32) -> Result<Vec<u32>, PlacementError> {
    let pair = resolve(placement, cpus)?;
    let &[sender, receiver] = pair.as_slice() else { return Ok(pair) };
    let core = cpus.iter().find(|cpu| cpu.id == receiver);
    let apart = |cpu: &&Cpu| core.is_some_and(|core| !same_core(cpu, core));
    let others: Vec<u32> = match placement {
        Placement::Cross => {
            let mut others: Vec<&Cpu> = cpus.iter().filter(apart).collect();
            // Cores of the receiver's kind come first.
            others.sort_by_key(|cpu| core.is_some_and(|core| core.kind != cpu.kind));
            others.into_iter().map(|cpu| cpu.id).collect()
        }
        _ => vec![sender],
    };
    Ok(others.into_iter().cycle().take(senders as usize).chain([receiver]).collect())
}

/// The CPU of the sender, then those of all receivers: the reverse of [`resolve_senders`].
///
/// # Errors
/// As [`resolve`].
pub fn resolve_receivers(
    placement: Placement,
    cpus: &[Cpu],
    receivers: u32,
) -> Result<Vec<u32>, PlacementError> {
    let mut placed = resolve_senders(placement, cpus, receivers)?;
    placed.reverse();
    Ok(placed)
}

/// Whether both are hardware threads of one core.
fn same_core(a: &Cpu, b: &Cpu) -> bool {
    (a.package, a.core) == (b.package, b.core)
}

/// Distance of two cores: 0 in one package and node, 1 in one node, 2 otherwise; 3 more if one is smaller than the other.
fn distance(a: &Cpu, b: &Cpu) -> u32 {
    let apart = match (a.node == b.node, a.package == b.package) {
        (true, true) => 0,
        (true, false) => 1,
        (false, _) => 2,
    };
    apart + if a.kind == b.kind { 0 } else { 3 }
}

/// The pair of lowest cost, and of those the one with the lowest numbers. `cost` is `None` for a pair that is not allowed.
fn nearest(cpus: &[Cpu], cost: impl Fn(&Cpu, &Cpu) -> Option<u32>) -> Option<Vec<u32>> {
    let pairs = cpus.iter().flat_map(|a| cpus.iter().filter(|b| a.id < b.id).map(move |b| (a, b)));
    let costed = pairs.filter_map(|(a, b)| Some((cost(a, b)?, a.id, b.id)));
    costed.min().map(|(_, a, b)| vec![a, b])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::cpu;

    /// Two sockets of two cores of two threads, numbered as Linux does on x86: the siblings come last.
    fn big() -> Vec<Cpu> {
        let cpu_of = |id: u32| cpu(id, id % 4, (id % 4) / 2, (id % 4) / 2);
        (0..8).map(cpu_of).collect()
    }

    #[test]
    fn one_cpu() {
        let cpus = [cpu(3, 3, 0, 0)];
        assert_eq!(resolve(Placement::Same, &cpus), Ok(vec![3, 3]));
        assert_eq!(resolve(Placement::Any, &cpus), Ok(vec![]));
        let error = resolve(Placement::Cross, &cpus).expect_err("one CPU");
        assert_eq!(error.to_string(), "this process may use only one CPU (3): use --place same or any");
    }

    #[test]
    fn two_cores_without_siblings() {
        let cpus = [cpu(0, 0, 0, 0), cpu(1, 1, 0, 0)];
        assert_eq!(resolve(Placement::Cross, &cpus), Ok(vec![0, 1]));
        assert_eq!(resolve(Placement::Cpus(1, 0), &cpus), Ok(vec![1, 0]), "the sender's CPU comes first");
        let error = resolve(Placement::Smt, &cpus).expect_err("no siblings").to_string();
        assert!(
            error.starts_with("this machine shows no SMT siblings") && error.contains("(0-1)"),
            "{error}"
        );
        let error = resolve(Placement::Numa, &cpus).expect_err("one node").to_string();
        assert!(error.contains("all on NUMA node 0"), "{error}");
    }

    #[test]
    fn two_threads_of_one_core() {
        let cpus = [cpu(0, 0, 0, 0), cpu(1, 0, 0, 0)];
        assert_eq!(resolve(Placement::Smt, &cpus), Ok(vec![0, 1]));
        let error = resolve(Placement::Cross, &cpus).expect_err("one core").to_string();
        assert!(error.contains("threads of one core"), "{error}");
    }

    #[test]
    fn two_sockets() {
        assert_eq!(resolve(Placement::Cross, &big()), Ok(vec![0, 1]));
        assert_eq!(resolve(Placement::Smt, &big()), Ok(vec![0, 4]));
        assert_eq!(resolve(Placement::Numa, &big()), Ok(vec![0, 2]));
    }

    #[test]
    fn pairs_and_senders_use_all_cpus_in_turn() {
        assert_eq!(resolve_pairs(Placement::Cross, &big(), 3), Ok(vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(resolve_pairs(Placement::Smt, &big(), 5), Ok(vec![0, 4, 1, 5, 2, 6, 3, 7, 0, 4]));
        assert_eq!(resolve_pairs(Placement::Same, &big()[..2], 3), Ok(vec![0, 0, 1, 1, 0, 0]));
        assert_eq!(resolve_pairs(Placement::Cpus(1, 0), &big(), 2), Ok(vec![1, 0, 1, 0]));
        assert_eq!(resolve_pairs(Placement::Any, &big(), 9), Ok(vec![]));
        assert!(resolve_pairs(Placement::Cross, &big()[..1], 2).is_err());
        assert_eq!(resolve_senders(Placement::Cross, &big()[..3], 3), Ok(vec![0, 2, 0, 1]));
        assert_eq!(resolve_senders(Placement::Same, &big(), 2), Ok(vec![0, 0, 0]));
        assert_eq!(resolve_senders(Placement::Any, &big(), 2), Ok(vec![]));
        assert_eq!(resolve_receivers(Placement::Cross, &big()[..3], 3), Ok(vec![1, 0, 2, 0]));
    }

    #[test]
    fn cross_takes_the_nearest_cores() {
        let interleaved = [cpu(0, 0, 0, 0), cpu(1, 1, 1, 1), cpu(2, 2, 0, 0)];
        assert_eq!(resolve(Placement::Cross, &interleaved), Ok(vec![0, 2]));
        let apart = [cpu(0, 0, 0, 0), cpu(5, 0, 1, 1)];
        assert_eq!(
            resolve(Placement::Cross, &apart),
            Ok(vec![0, 5]),
            "core 0 of another package is another core"
        );
    }

    /// Expected: two cores alike. Happened: on a machine whose lowest core is of another kind, `cross` took one small and one big core.
    #[test]
    fn cross_takes_cores_of_one_kind() {
        let of_kind = |id, kind| Cpu { kind: Some(kind), ..cpu(id, id, 0, 0) };
        let cpus = [of_kind(0, 0), of_kind(1, 1), of_kind(2, 1), of_kind(3, 0)];
        assert_eq!(resolve(Placement::Cross, &cpus), Ok(vec![0, 3]));
        assert_eq!(resolve(Placement::Cross, &cpus[..3]), Ok(vec![1, 2]));
        assert_eq!(resolve(Placement::Cross, &cpus[..2]), Ok(vec![0, 1]), "there are no others");
        assert_eq!(resolve_pairs(Placement::Cross, &cpus, 2), Ok(vec![0, 3, 1, 2]));
        assert_eq!(resolve_senders(Placement::Cross, &cpus, 3), Ok(vec![0, 1, 2, 3]));
    }

    #[test]
    fn a_missing_cpu() {
        let cpus = [cpu(0, 0, 0, 0), cpu(1, 1, 0, 0)];
        let error = resolve(Placement::Cpus(0, 7), &cpus).expect_err("no CPU 7").to_string();
        assert!(error.starts_with("CPU 7 is not among the CPUs this process may use (0-1): "), "{error}");
    }

    #[test]
    fn the_order_of_the_list_does_not_matter_and_an_empty_list_is_an_error() {
        let reversed: Vec<Cpu> = big().into_iter().rev().collect();
        for placement in Placement::NAMED {
            assert_eq!(resolve(*placement, &big()), resolve(*placement, &reversed));
        }
        for placement in [Placement::Same, Placement::Smt, Placement::Cross, Placement::Numa] {
            let error = resolve(placement, &[]).expect_err("no CPU").to_string();
            assert_eq!(error, "no usable CPU is known: use --place any");
        }
    }
}
