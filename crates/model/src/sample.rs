//! What one trial gave: its times and bytes, and what its ends used.

use serde::{Deserialize, Serialize};

/// Number of times in [`Sample::sixteenths_ns`].
pub const SIXTEENTHS: usize = 15;

/// One trial's raw figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// The round in which it was taken; samples of one round are compared pair by pair.
    pub round: u32,
    /// When the trial began, from the beginning of the run; absent in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// Its place in its round, from 0; absent in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// From the barrier until the receiver had the last byte (checked, under `verify`).
    pub elapsed_ns: u64,
    /// Opening the mechanism and starting the tasks, before the clock starts.
    pub setup_ns: u64,
    /// Bytes that arrived; for ping-pong the bytes that came back.
    pub bytes: u64,
    /// Blocks sent, or round trips made.
    pub messages: u64,
    /// The receiver's checksum of all bytes, in hexadecimal; `null` below `verify`.
    pub checksum: Option<String>,
    /// Data-moving and waiting system calls of both ends, counted where they are made; `null` where unknown.
    pub syscalls: Option<u64>,
    /// Voluntary context switches (both ends, getrusage(2)).
    pub voluntary_switches: u64,
    /// Involuntary context switches (both ends).
    pub involuntary_switches: u64,
    /// CPU time in user mode (both ends).
    pub user_ns: u64,
    /// CPU time in the kernel (both ends).
    pub system_ns: u64,
    /// The same figures end by end: the sender (or the only end) first.
    pub ends: Vec<EndUsage>,
    /// Round trip times of a ping-pong: an HdrHistogram of nanoseconds, V2+DEFLATE, base64; `null` for a stream.
    pub latency_histogram: Option<String>,
    /// The share of samples of the trial with both ends on one CPU (0 to 1); absent if there are not two ends, or no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_cpu_share: Option<f64>,
    /// Page offset, 0 to 4095, of the buffer for the receiver's large reads (`--workers`); absent if no sample shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_buffer_offset: Option<u64>,
    /// The same for the sender's writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_buffer_offset: Option<u64>,
    /// The part of each pair, sender or receiver; absent without `--pairs`, `--senders` and `--receivers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// From the barrier until the first of them was done: the time for which all of them ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_ran_ns: Option<u64>,
    /// Blocks that did not arrive in one piece (`--senders` and `--receivers`, under `verify`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn_blocks: Option<u64>,
    /// Segments (TCP_INFO, tcp(7)) or datagrams that the sender or the client sent again; absent if both ends were on one host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// For paced round trips (`--rate`) the times from the actual request, as a histogram; `latency_histogram` then has the times from
    /// the instant at which the request was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_histogram: Option<String>,
    /// From the barrier until the receiver, or the client of round trips, had each sixteenth of the blocks but the last one: 15 times.
    /// Absent below 128 blocks, with several pairs, senders or receivers, and between two hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sixteenths_ns: Vec<u64>,
    /// Whether its round was repeated; absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
}

/// The part of one of several pairs, senders or receivers in a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// From the barrier until it was done.
    pub elapsed_ns: u64,
    /// Bytes that it moved; for ping-pong the bytes that came back.
    pub bytes: u64,
    /// Bytes that it had moved when the first of all was done (with small round trips up to 63 fewer).
    pub bytes_while_all_ran: u64,
}

impl Sample {
    /// A sample with only the resource usage of its ends, and the sums.
    pub fn of_ends(ends: Vec<EndUsage>) -> Self {
        let sum = EndUsage::sum(ends.iter());
        Self {
            syscalls: sum.syscalls,
            voluntary_switches: sum.voluntary_switches,
            involuntary_switches: sum.involuntary_switches,
            user_ns: sum.user_ns,
            system_ns: sum.system_ns,
            ends,
            ..Self::default()
        }
    }
}

impl EndUsage {
    /// The usage since an earlier sample of the same end.
    pub fn since(&self, before: &Self) -> Self {
        self.joined(before, u64::saturating_sub)
    }

    /// The same usage with this CPU time in total, in nanoseconds. What was counted in user mode and in the kernel says only how it is
    /// divided. If nothing was counted, all of it is taken for time in the kernel.
    pub fn with_cpu_ns(self, cpu_ns: u64) -> Self {
        let counted_ns = (self.user_ns + self.system_ns).max(1);
        let user_ns = (u128::from(cpu_ns) * u128::from(self.user_ns) / u128::from(counted_ns)) as u64;
        Self { user_ns, system_ns: cpu_ns - user_ns, ..self }
    }

    /// The usage of several ends, or of one in several trials, together.
    pub fn sum<'a>(ends: impl Iterator<Item = &'a Self>) -> Self {
        let none = Self { syscalls: Some(0), ..Self::default() };
        ends.fold(none, |sum, end| sum.joined(end, u64::saturating_add))
    }

    /// Each figure joined with the other's; a figure that one of them lacks is unknown.
    fn joined(&self, other: &Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            syscalls: self.syscalls.zip(other.syscalls).map(|(one, other)| join(one, other)),
            voluntary_switches: join(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: join(self.involuntary_switches, other.involuntary_switches),
            minor_faults: join(self.minor_faults, other.minor_faults),
            blocks_stored: join(self.blocks_stored, other.blocks_stored),
            user_ns: join(self.user_ns, other.user_ns),
            system_ns: join(self.system_ns, other.system_ns),
        }
    }
}

/// The resource usage of one end between the barrier and the end of the clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndUsage {
    /// System calls, counted where they are made; `null` where unknown.
    pub syscalls: Option<u64>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Blocks of 512 bytes that were written to a file system (`ru_oublock`).
    #[serde(default)]
    pub blocks_stored: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(factor: u64, syscalls: Option<u64>) -> EndUsage {
        EndUsage {
            syscalls,
            voluntary_switches: factor,
            involuntary_switches: 2 * factor,
            minor_faults: 3 * factor,
            blocks_stored: 4 * factor,
            user_ns: 5 * factor,
            system_ns: 6 * factor,
        }
    }

    #[test]
    fn a_total_cpu_time_is_divided_as_it_was_counted() {
        let divided = |of: EndUsage, cpu_ns| {
            let usage = of.with_cpu_ns(cpu_ns);
            (usage.user_ns, usage.system_ns)
        };
        assert_eq!(divided(usage(1, None), 22), (10, 12));
        assert_eq!(divided(usage(1, None), 0), (0, 0));
        assert_eq!(divided(EndUsage::default(), 7), (0, 7));
        let all = EndUsage { user_ns: u64::MAX / 2, ..EndUsage::default() };
        assert_eq!(divided(all, u64::MAX), (u64::MAX, 0));
    }

    #[test]
    fn a_sample_has_the_sums_of_its_ends() {
        let ends = vec![usage(1, Some(7)), usage(10, Some(8))];
        let expected = Sample {
            syscalls: Some(15),
            voluntary_switches: 11,
            involuntary_switches: 22,
            user_ns: 55,
            system_ns: 66,
            ends: ends.clone(),
            ..Sample::default()
        };
        assert_eq!(Sample::of_ends(ends), expected);
        assert_eq!(Sample::of_ends(vec![usage(1, Some(7)), usage(1, None)]).syscalls, None);
    }

    #[test]
    fn usage_grows_from_an_earlier_one() {
        assert_eq!(usage(9, Some(20)).since(&usage(2, Some(5))), usage(7, Some(15)));
        assert_eq!(usage(9, Some(20)).since(&usage(2, None)).syscalls, None);
    }
}
