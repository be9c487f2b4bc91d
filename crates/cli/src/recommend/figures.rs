//! The figures of an answer: the cases of a record that fit the question.

use std::collections::BTreeSet;

use model::{
    AXES, Axis, AxisGroup, BenchRecord, ByteSize, CaseError, CaseRecord, ErrorKind, Limits, Placement, Role,
};
use programs::Question;

use super::candidates::{Candidate, losers};
use crate::bench::PlaceArgument;

/// Largest factor between the requested message size and a measured one that is used instead.
const NEAR: f64 = 2.0;

/// Cases of the candidates that differ only in the mechanism.
pub(super) struct Figures<'a> {
    /// The cases that are ranked: those placed by the scheduler, if they were measured.
    pub(super) cases: Vec<&'a CaseRecord>,
    /// The same mechanisms with pinned ends, if both placements were measured.
    pub(super) pinned: Vec<&'a CaseRecord>,
    pub(super) block_bytes: u64,
}

/// Bytes of a Unix socket's send buffer that messages cannot use (`unix_dgram_sendmsg`, net/unix/af_unix.c).
const SNDBUF_RESERVED: u64 = 32;

/// The record for messages of `message_bytes`. Cases with smaller messages lose their figures, and get an error, if a limit of the
/// recorded machine forbids messages of that size in their mechanism.
pub(super) fn within_limits(mut record: BenchRecord, message_bytes: u64) -> BenchRecord {
    for case in record.cases.iter_mut().filter(|case| case.block_bytes < message_bytes) {
        let limits = message_limits(case, &record.head.host.limits).into_iter();
        let lowest = limits.filter_map(|(bytes, what)| Some((bytes?, what))).min();
        if let Some((limit, what)) = lowest.filter(|(limit, _)| *limit < message_bytes) {
            let [asked, limit] = [message_bytes, limit].map(|bytes| ByteSize(bytes).to_string());
            case.samples.clear();
            let message = format!("excluded: {what} was {limit} there, too little for a message of {asked}");
            case.error = Some(CaseError::stated(ErrorKind::Limit, message));
        }
    }
    record
}

/// The limits on the size of one message, in bytes and with their names; `None` for one that is not in the record. Empty for mechanisms
/// that send a message in several pieces.
fn message_limits(case: &CaseRecord, limits: &Limits) -> Vec<(Option<u64>, &'static str)> {
    match case.spec.mechanism.as_str() {
        "posix-mq" => {
            vec![
                (limits.mq_msgsize_max, "fs.mqueue.msgsize_max"),
                (limits.rlimit_msgqueue, "RLIMIT_MSGQUEUE"),
            ]
        }
        "sysv-msgq" => vec![(limits.msgmax, "kernel.msgmax"), (limits.msgmnb, "kernel.msgmnb")],
        "unix-dgram" | "unix-seqpacket" => {
            let buffer = case.granted.get("sndbuf_bytes").map(|bytes| bytes.saturating_sub(SNDBUF_RESERVED));
            vec![(buffer, "SO_SNDBUF less 32 bytes")]
        }
        _ => Vec::new(),
    }
}

impl<'a> Figures<'a> {
    /// Selects the cases of a record.
    ///
    /// # Errors
    /// A sentence: the record has none of about this size, or none with this placement.
    pub(super) fn select(
        record: &'a BenchRecord,
        question: &Question,
        candidates: &[Candidate],
        place: Option<PlaceArgument>,
    ) -> Result<Self, String> {
        let (workload, tasks) = (question.pattern.workload(), question.between().tasks());
        let rate_per_s = question.rate_per_s;
        let is_asked = |case: &&CaseRecord| {
            // Cases with relays, under a load, to another host and the like answer another question, and so does another rate.
            let is_usual = |axis: &Axis| axis.group == AxisGroup::Case || axis.unusual(case).is_none();
            let is_plain = AXES.iter().all(|axis| axis.name == Some("rate") || is_usual(axis));
            is_plain
                && case.rate_per_s == rate_per_s
                && case.role == Role::Ranked
                && (case.workload, case.tasks) == (workload, tasks)
        };
        let is_candidate = |case: &&CaseRecord| {
            candidates.iter().any(|candidate| candidate.spec == case.spec && candidate.unfit.is_none())
        };
        let mut cases: Vec<&CaseRecord> = record.cases.iter().filter(is_asked).filter(is_candidate).collect();
        let asked = question.message_bytes;
        let blocks: BTreeSet<u64> = cases.iter().map(|case| case.block_bytes).collect();
        let distance = |block: u64| (block.max(1) as f64 / asked as f64).ln().abs();
        let nearest = blocks.iter().copied().min_by(|one, other| distance(*one).total_cmp(&distance(*other)));
        let Some(block_bytes) = nearest.filter(|block| distance(*block) <= NEAR.ln()) else {
            let is_there =
                |name: &str| record.cases.iter().filter(is_asked).any(|case| case.mechanism == name);
            let left_out = candidates.iter().filter(|one| is_there(&one.spec.mechanism));
            let left_out = left_out.filter_map(Candidate::left_out);
            let why: Vec<String> = losers(question, is_there).into_iter().chain(left_out).collect();
            if blocks.is_empty() && !why.is_empty() {
                return Err(format!(
                    "no mechanism of the record is an answer to this: {}; measure without --from, or ask for another --code, or for less",
                    why.join("; ")
                ));
            }
            let sizes: Vec<String> = blocks.into_iter().map(|block| ByteSize(block).to_string()).collect();
            let sizes = if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") };
            let at = rate_per_s
                .map_or_else(String::new, |rate| format!(" at {rate} a second (bench --rate {rate})"));
            return Err(format!(
                "the record has no {workload} of about {} between {tasks}{at} with a mechanism that can be recommended (sizes it has: {sizes}; rows of \
                 --peer do not count): measure without --from, or ask for another --message",
                ByteSize(asked)
            ));
        };
        cases.retain(|case| case.block_bytes == block_bytes);
        let has = |placement: Placement| cases.iter().any(|case| case.placement == placement);
        let wanted = match place {
            Some(PlaceArgument::One(placement)) => placement,
            _ if has(Placement::Any) => Placement::Any,
            _ => cases[0].placement,
        };
        if !has(wanted) {
            return Err(format!("the record has no figures of --place {wanted}"));
        }
        let (wanted, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.placement == wanted);
        let is_placed = wanted[0].placement != Placement::Any;
        let other = others.first().filter(|_| !is_placed).map(|case| case.placement);
        let pinned = others.into_iter().filter(|case| Some(case.placement) == other).collect();
        Ok(Self { cases: wanted, pinned, block_bytes })
    }

    /// The `--place` of `bench`; `None` for the default, which measures two placements.
    pub(super) fn place(&self) -> Option<PlaceArgument> {
        let only = self.cases.first().filter(|_| self.pinned.is_empty())?;
        Some(PlaceArgument::One(only.placement))
    }
}
