//! The reports of a trial's ends, checked and combined into one sample.

use model::{
    Case, CaseError, DataLevel, ErrorKind, Load, NoSample, Sample, Share, Workload, decode_histogram,
    encode_histogram,
};
use payload::BlockTotals;

use crate::control::TrialPage;
use crate::endpoint::EndpointReport;
use crate::prepare::{all_tasks, tasks};

/// The reports of all ends of a trial, pair after pair.
pub(crate) struct Ends<'a> {
    pub(crate) case: &'a Case,
    /// Blocks of each pair and each sender.
    pub(crate) blocks: u64,
    pub(crate) reports: &'a [EndpointReport],
}

impl<'a> Ends<'a> {
    /// The ends of each pair.
    fn pairs(&self) -> impl Iterator<Item = &'a [EndpointReport]> + use<'a> {
        self.reports.chunks(tasks(self.case))
    }

    /// The ends of each pair at which the clock stops: the receivers of a stream, the client of round trips.
    fn last_of_pairs(&self) -> impl Iterator<Item = &'a [EndpointReport]> + use<'a> {
        let (workload, receivers) = (self.case.workload, self.case.load.receivers() as usize);
        self.pairs().map(move |ends| match workload {
            Workload::Stream => &ends[ends.len().saturating_sub(receivers)..],
            Workload::PingPong => &ends[..1],
        })
    }

    /// The same ends of all pairs, in one sequence.
    fn last(&self) -> impl Iterator<Item = &'a EndpointReport> + use<'a> {
        self.last_of_pairs().flatten()
    }

    /// Blocks that did not arrive in one piece; `None` if bytes are missing, or blocks were not checked.
    fn torn_blocks(&self) -> Option<u64> {
        let Load { receivers: Some(_), .. } = self.case.load else {
            return self.reports.iter().find_map(|end| end.torn_blocks);
        };
        let sent = self.reports.first()?.pieces?;
        let received: Vec<BlockTotals> = self.last().map(|end| end.pieces).collect::<Option<_>>()?;
        let byte_sum: u64 = received.iter().map(|pieces| pieces.byte_sum).sum();
        // A single receiver has every block, also one that came in two reads.
        let whole_blocks: u64 = match received.as_slice() {
            [_] => sent.whole_blocks,
            several => several.iter().map(|pieces| pieces.whole_blocks).sum(),
        };
        sent.whole_blocks.checked_sub(whole_blocks).filter(|_| byte_sum == sent.byte_sum)
    }

    /// Blocks that arrive at the last end of each pair.
    fn blocks_of_pair(&self) -> u64 {
        self.blocks.saturating_mul(self.case.load.senders().into())
    }
}

/// Combines the reports of the ends.
///
/// # Errors
/// Histograms of round trips that cannot be added up.
pub(crate) fn make_sample(
    ends: &Ends<'_>,
    round: u32,
    began_ns: u64,
    control: &TrialPage,
) -> Result<Sample, CaseError> {
    let (case, reports) = (ends.case, ends.reports);
    let (start_ns, end_ns) = clock_trial(ends).unwrap_or((began_ns, began_ns));
    let usage = reports.iter().map(|end| end.usage.clone()).collect();
    let messages = ends.blocks_of_pair() * u64::from(case.load.pairs());
    let histogram = |of: fn(&EndpointReport) -> &Option<String>| {
        let texts: Vec<&str> = reports.iter().filter_map(|end| of(end).as_deref()).collect();
        merged(&texts).map_err(|what| CaseError::new(ErrorKind::Failed, what))
    };
    let several = case.load.pairs.is_some() || case.load.shares_an_end();
    // The times of another host are not those of this clock.
    let last = ends.last().next().filter(|_| !several && case.direction.is_none());
    let sixteenths = last.into_iter().flat_map(|last| &last.sixteenths_ns);
    Ok(Sample {
        round,
        elapsed_ns: end_ns.saturating_sub(start_ns).max(1),
        setup_ns: start_ns.saturating_sub(began_ns),
        bytes: messages * case.block_bytes,
        messages,
        checksum: ends.last().next().and_then(|last| last.checksum.clone()),
        latency_histogram: histogram(|end| &end.latency_histogram)?,
        service_histogram: histogram(|end| &end.service_histogram)?,
        sixteenths_ns: sixteenths.map(|at| at.saturating_sub(start_ns)).collect(),
        same_cpu_share: same_cpu_share(reports),
        shares: if several { shares(ends, control) } else { Vec::new() },
        all_ran_ns: several.then(|| control.all_ran_until_ns().saturating_sub(start_ns)),
        torn_blocks: ends.torn_blocks(),
        ..Sample::of_ends(usage)
    })
}

/// The clock of a trial on this host: it starts when the first end leaves the barrier, and stops when the last receiver of a stream,
/// or the last client of round trips, has its last byte. `None` without reports. The times of ends are those of
/// [`crate::endpoint::run_endpoint`]; those of an end on another host were moved to this clock.
fn clock_trial(ends: &Ends<'_>) -> Option<(u64, u64)> {
    let start_ns = ends.reports.iter().map(|end| end.start_ns).min()?;
    Some((start_ns, ends.last().map(|end| end.end_ns).max()?))
}

/// Merges histograms of round trips; a single one is not changed.
///
/// # Errors
/// A text is not a histogram.
fn merged(texts: &[&str]) -> Result<Option<String>, String> {
    let decode = |text| decode_histogram(text).map_err(|error| error.to_string());
    let (first, more) = match texts {
        [] => return Ok(None),
        [one] => return Ok(Some((*one).to_owned())),
        [first, more @ ..] => (first, more),
    };
    let mut all = decode(first)?;
    for text in more {
        all.add(decode(text)?).map_err(|error| error.to_string())?;
    }
    encode_histogram(&all).map(Some).map_err(|error| error.to_string())
}

/// The part of each pair, or of each sender or receiver of the only pair.
fn shares(ends: &Ends<'_>, control: &TrialPage) -> Vec<Share> {
    let case = ends.case;
    // Progress is in bytes for a stream, else in round trips.
    let unit = if case.workload == Workload::Stream { 1 } else { case.block_bytes };
    let share = |(task, end): (usize, &EndpointReport)| Share {
        elapsed_ns: end.end_ns.saturating_sub(end.start_ns).max(1),
        bytes: ends.blocks * case.block_bytes,
        bytes_while_all_ran: control.moved_while_all_ran(task) * unit,
    };
    match case.load {
        Load { senders: Some(senders), .. } => {
            ends.reports.iter().take(senders as usize).enumerate().map(share).collect()
        }
        Load { receivers: Some(_), .. } => {
            let of_receiver = |(task, end): (usize, &EndpointReport)| Share {
                bytes: end.received_bytes,
                ..share((task, end))
            };
            ends.reports.iter().enumerate().skip(1).map(of_receiver).collect()
        }
        _ => {
            // The end at which the clock of a pair stops: its last task, the receiver, or its first, the client.
            let index = if case.workload == Workload::Stream { tasks(case) - 1 } else { 0 };
            ends.last().enumerate().map(|(pair, end)| share((pair * tasks(case) + index, end))).collect()
        }
    }
}

/// The share of comparisons that found both ends on one CPU; `None` without a comparison.
fn same_cpu_share(ends: &[EndpointReport]) -> Option<f64> {
    let sum = |of: fn(&EndpointReport) -> u64| ends.iter().map(of).sum::<u64>();
    let (comparisons, equal) = (sum(|end| end.cpu_comparisons.0), sum(|end| end.cpu_comparisons.1));
    (comparisons > 0).then(|| equal as f64 / comparisons as f64)
}

/// Refuses a trial without the reports of all tasks, or whose receivers received less than was sent. The only check below `verify`.
pub(crate) fn check_arrival(ends: &Ends<'_>) -> Result<(), CaseError> {
    let (reports, tasks) = (ends.reports.len(), all_tasks(ends.case));
    let sent = ends.blocks_of_pair().saturating_mul(ends.case.block_bytes);
    let received_by_pair = |ends: &[EndpointReport]| ends.iter().map(|end| end.received_bytes).sum();
    let received: u64 = ends.last_of_pairs().map(received_by_pair).min().unwrap_or(0);
    if reports == tasks && received >= sent {
        return Ok(());
    }
    Err(corrupt(format!("{reports} of {tasks} ends reported, and {received} of {sent} bytes arrived")))
}

/// Refuses a trial at level `verify` whose received bytes differ from those that were sent. Blocks of many senders, or for many
/// receivers, of up to `atomic_bytes` must have arrived in one piece.
pub(crate) fn check_content(
    ends: &Ends<'_>,
    atomic_bytes: u64,
    expected: &mut dyn FnMut(u64) -> Option<String>,
) -> Result<(), NoSample> {
    let case = ends.case;
    if case.data != DataLevel::Verify {
        return Ok(());
    }
    if case.load.shares_an_end() {
        return Ok(check_blocks(case, ends.blocks_of_pair(), ends.torn_blocks(), atomic_bytes)?);
    }
    for end in ends.reports.iter().filter(|end| end.received_bytes > 0) {
        let expected = expected(end.received_bytes).ok_or(NoSample::Stopped)?;
        verify(case, end, &expected)?;
    }
    Ok(())
}

fn check_blocks(case: &Case, blocks: u64, torn: Option<u64>, atomic_bytes: u64) -> Result<(), CaseError> {
    match torn {
        None => Err(corrupt(
            "bytes of many senders, or for many receivers, were lost, repeated or changed".to_owned(),
        )),
        Some(torn) if torn > 0 && case.block_bytes <= atomic_bytes => Err(corrupt(format!(
            "{torn} of {blocks} blocks did not arrive in one piece, and blocks of up to {atomic_bytes} bytes should"
        ))),
        Some(_) => Ok(()),
    }
}

pub(crate) fn corrupt(message: String) -> CaseError {
    let remedy = "a fault of the mechanism or of its code here: please report it".to_owned();
    CaseError::new(ErrorKind::Corrupt, message).with_remedy(remedy)
}

fn verify(case: &Case, end: &EndpointReport, expected: &str) -> Result<(), CaseError> {
    if end.checksum.as_deref() == Some(expected) {
        return Ok(());
    }
    Err(corrupt(format!(
        "the {} of {} received bytes is {}, not {expected}: bytes were lost, repeated, swapped or changed",
        case.check,
        end.received_bytes,
        end.checksum.as_deref().unwrap_or("missing")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Spec;

    #[test]
    fn without_a_report_or_without_bytes_there_is_no_sample() {
        let case = Case { block_bytes: 10, ..Case::stream(Spec::plain("pipe")) };
        let end = |received_bytes| EndpointReport { received_bytes, ..EndpointReport::default() };
        let said = |case: &Case, reports: &[EndpointReport]| {
            check_arrival(&Ends { case, blocks: 2, reports }).err().map(|error| error.message)
        };
        assert_eq!(said(&case, &[end(0), end(20)]), None);
        assert_eq!(
            said(&case, &[end(20)]).as_deref(),
            Some("1 of 2 ends reported, and 20 of 20 bytes arrived")
        );
        assert_eq!(
            said(&case, &[end(20), end(0)]).as_deref(),
            Some("2 of 2 ends reported, and 0 of 20 bytes arrived")
        );
        let two = Case { load: Load { pairs: Some(2), ..Load::default() }, ..case.clone() };
        assert_eq!(said(&two, &[end(0), end(20), end(0), end(20)]), None);
        assert!(said(&two, &[end(0), end(20), end(0), end(10)]).is_some(), "the second pair counts as well");
        let competing = Case { load: Load { receivers: Some(2), ..Load::default() }, ..case.clone() };
        assert_eq!(said(&competing, &[end(0), end(20), end(0)]), None, "one of them may get everything");
        assert!(said(&competing, &[end(0), end(10), end(9)]).is_some());
        let three = Case { load: Load { senders: Some(3), ..Load::default() }, ..case };
        assert_eq!(said(&three, &[end(0), end(0), end(0), end(60)]), None);
    }

    #[test]
    fn torn_blocks_are_an_error_only_up_to_the_atomic_size() {
        let case = Case { block_bytes: 4096, ..Case::stream(Spec::plain("pipe")) };
        assert!(check_blocks(&case, 9, Some(0), 4096).is_ok());
        assert!(check_blocks(&case, 9, Some(1), 4095).is_ok());
        let torn = check_blocks(&case, 9, Some(1), 4096).expect_err("promised");
        assert_eq!(torn.kind, ErrorKind::Corrupt);
        assert!(check_blocks(&case, 9, None, 0).is_err(), "bytes are missing");
    }

    #[test]
    fn competing_receivers_have_every_byte_together() {
        let load = Load { receivers: Some(2), ..Load::default() };
        let case = Case { block_bytes: 10, load, ..Case::stream(Spec::plain("pipe")) };
        let torn = |pieces: [(u64, u64); 3]| {
            let end = |(whole_blocks, byte_sum)| EndpointReport {
                pieces: Some(BlockTotals { whole_blocks, byte_sum }),
                ..EndpointReport::default()
            };
            Ends { case: &case, blocks: 4, reports: &pieces.map(end) }.torn_blocks()
        };
        assert_eq!(torn([(4, 100), (3, 80), (1, 20)]), Some(0));
        assert_eq!(torn([(4, 100), (1, 60), (1, 40)]), Some(2), "two were divided");
        assert_eq!(torn([(4, 100), (3, 80), (1, 19)]), None, "a byte was changed");
        assert_eq!(torn([(4, 100), (3, 80), (2, 20)]), None, "one came twice");
        let alone = |byte_sum| {
            let load = Load { receivers: Some(1), ..Load::default() };
            let end = |whole_blocks, byte_sum| EndpointReport {
                pieces: Some(BlockTotals { whole_blocks, byte_sum }),
                ..EndpointReport::default()
            };
            let case = Case { load, ..case.clone() };
            Ends { case: &case, blocks: 4, reports: &[end(4, 100), end(2, byte_sum)] }.torn_blocks()
        };
        assert_eq!(
            [alone(100), alone(99)],
            [Some(0), None],
            "two came in several reads: nothing was divided"
        );
    }
}
