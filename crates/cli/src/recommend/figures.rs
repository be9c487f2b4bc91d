//! The figures that an answer rests on: the cases of a record that are about the question.

use std::collections::BTreeSet;

use model::{
    AXES, AxisGroup, BenchRecord, ByteSize, CaseError, CaseRecord, ErrorKind, Limits, Placement, Role,
};

use super::question::{Candidate, Question};
use crate::bench::PlaceArgument;

/// A size that is at most so many times larger or smaller stands for the one that was asked for.
const NEAR: f64 = 2.0;

/// Cases of the candidates, alike in all but the mechanism.
pub(crate) struct Figures<'a> {
    /// Where the answer holds: the scheduler's choice where that was measured.
    pub(crate) cases: Vec<&'a CaseRecord>,
    /// The same with pinned ends, where both were measured.
    pub(crate) pinned: Vec<&'a CaseRecord>,
    pub(crate) block_bytes: u64,
}

/// Bytes of a Unix socket's send buffer that no message gets (`unix_dgram_sendmsg`, net/unix/af_unix.c).
const SNDBUF_RESERVED: u64 = 32;

/// The record, less the figures of smaller messages where the message asked for would cross a limit of its machine: they cannot
/// stand in for it, and say why.
pub(super) fn within_limits(mut record: BenchRecord, message_bytes: u64) -> BenchRecord {
    for case in record.cases.iter_mut().filter(|case| case.block_bytes < message_bytes) {
        let least = longest_message(case, &record.head.host.limits).into_iter().flatten().min();
        if let Some((limit, what)) = least.filter(|(limit, _)| *limit < message_bytes) {
            let [asked, limit] = [message_bytes, limit].map(|bytes| ByteSize(bytes).to_string());
            case.samples.clear();
            let message = format!("out: no message of {asked}, since {what} was {limit} there");
            case.error = Some(CaseError::stated(ErrorKind::Limit, message));
        }
    }
    record
}

/// What bounds a message of a mechanism that carries each as one, in bytes and by name.
fn longest_message(case: &CaseRecord, limits: &Limits) -> [Option<(u64, &'static str)>; 2] {
    let named = |bytes: Option<u64>, name| bytes.map(|bytes| (bytes, name));
    match case.spec.mechanism.as_str() {
        "posix-mq" => [
            named(limits.mq_msgsize_max, "fs.mqueue.msgsize_max"),
            named(limits.rlimit_msgqueue, "RLIMIT_MSGQUEUE"),
        ],
        "sysv-msgq" => [named(limits.msgmax, "kernel.msgmax"), named(limits.msgmnb, "kernel.msgmnb")],
        "unix-dgram" | "unix-seqpacket" => {
            let granted = case.granted.get("sndbuf_bytes").copied();
            [
                named(granted.map(|bytes| bytes.saturating_sub(SNDBUF_RESERVED)), "SO_SNDBUF less 32 bytes"),
                None,
            ]
        }
        _ => [None, None],
    }
}

impl<'a> Figures<'a> {
    /// What a record says of the question.
    ///
    /// # Errors
    /// It has nothing near enough; in words, with what it has.
    pub(crate) fn of(
        record: &'a BenchRecord,
        question: &Question,
        candidates: &[Candidate],
        place: Option<PlaceArgument>,
    ) -> Result<Self, String> {
        let (workload, tasks) = (question.pattern.workload(), question.between.tasks());
        let alike = |case: &&CaseRecord| {
            let is_candidate = candidates.iter().any(|candidate| candidate.spec == case.spec);
            // Cases with relays, under a load, on the way to another host and the like answer another question.
            let is_plain =
                AXES.iter().all(|axis| axis.group == AxisGroup::Case || axis.unusual(case).is_none());
            is_plain
                && case.role == Role::Ranked
                && is_candidate
                && (case.workload, case.tasks) == (workload, tasks)
        };
        let cases: Vec<&CaseRecord> = record.cases.iter().filter(alike).collect();
        let asked = question.message_bytes;
        let blocks: BTreeSet<u64> = cases.iter().map(|case| case.block_bytes).collect();
        let far = |block: u64| (block.max(1) as f64 / asked as f64).ln().abs();
        let nearest = blocks.iter().copied().min_by(|one, other| far(*one).total_cmp(&far(*other)));
        let Some(block_bytes) = nearest.filter(|block| far(*block) <= NEAR.ln()) else {
            let has: Vec<String> = blocks.into_iter().map(|block| ByteSize(block).to_string()).collect();
            let has = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
            return Err(format!(
                "the record has no {workload} of about {} between {tasks} of what could be the answer (sizes it has: {has}; rows of --peer do not count): \
                 measure without --from, or another --message",
                ByteSize(asked)
            ));
        };
        let placements: Vec<Placement> =
            cases.iter().filter(|case| case.block_bytes == block_bytes).map(|case| case.placement).collect();
        let wanted = match place {
            Some(PlaceArgument::One(placement)) => placement,
            _ => placements.iter().copied().find(|one| *one == Placement::Any).unwrap_or(placements[0]),
        };
        let placed = |placement: Option<Placement>| -> Vec<&CaseRecord> {
            let here =
                |case: &&&CaseRecord| case.block_bytes == block_bytes && Some(case.placement) == placement;
            cases.iter().filter(here).copied().collect()
        };
        if !placements.contains(&wanted) {
            return Err(format!("the record has no figures of --place {wanted}"));
        }
        let other = placements.iter().copied().find(|one| wanted == Placement::Any && *one != wanted);
        Ok(Self { cases: placed(Some(wanted)), pinned: placed(other), block_bytes })
    }

    /// The placement to ask `bench` for; `None` where it was the usual two.
    pub(super) fn place(&self) -> Option<PlaceArgument> {
        let only = self.cases.first().filter(|_| self.pinned.is_empty())?;
        Some(PlaceArgument::One(only.placement))
    }
}
