//! Whether a trial hangs: how long its ends may move nothing.

use std::time::{Duration, Instant};

use model::{Case, CaseError, ErrorKind, Workload};
use process::POLL_INTERVAL;

/// A trial hangs if its ends move no byte for this time plus the time to make and to check one block.
const STALL_MAX: Duration = Duration::from_secs(10);

/// Bytes per second that the slowest machine makes and checks.
const SLOWEST_BYTES_PER_S: u64 = 50 << 20;

/// Longest pause of a trial that does not hang.
pub(crate) fn stall_max(case: &Case) -> Duration {
    STALL_MAX + Duration::from_secs(case.block_bytes / SLOWEST_BYTES_PER_S)
}

/// The error of a trial whose ends have moved nothing for `limit`; `progress` is that of all of them.
pub(crate) fn hung(case: &Case, limit: Duration, progress: u64) -> CaseError {
    if case.direction.is_some() {
        let text = format!("nothing moves between the hosts for {} s", limit.as_secs());
        return CaseError::new(ErrorKind::Hung, text);
    }
    let unit = if case.workload == Workload::Stream { "bytes" } else { "round trips" };
    let message =
        format!("nothing moved for {} s (progress of all ends: {progress} {unit})", limit.as_secs());
    let smaller = if limit > STALL_MAX { "a smaller --block, or " } else { "" };
    let remedy = format!("{smaller}look for a stopped process (SIGSTOP) or a full or very slow disk");
    CaseError::new(ErrorKind::Hung, message).with_remedy(remedy)
}

/// Time without progress while the supervisor was running. Ctrl-Z stops it together with the ends, so that the time between two polls
/// counts only up to twice the usual interval.
pub(crate) struct StallTimer {
    seen_at: Instant,
    sum: u64,
    pub(crate) lasted: Duration,
}

impl StallTimer {
    pub(crate) fn from(now: Instant) -> Self {
        Self { seen_at: now, sum: 0, lasted: Duration::ZERO }
    }

    /// Updates with the sum of the progress of all ends.
    pub(crate) fn update(&mut self, now: Instant, sum: u64) {
        let since = now - self.seen_at;
        self.lasted =
            if sum == self.sum { self.lasted + since.min(2 * POLL_INTERVAL) } else { Duration::ZERO };
        (self.seen_at, self.sum) = (now, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Spec;

    /// Expected: the limit allows the time to make, move and check a block of 2 GB.
    /// Happened: "nothing moved for 10 s: look for a stopped process", on a busy machine.
    #[test]
    fn large_blocks_have_a_longer_limit() {
        let case = |block_bytes| Case { block_bytes, ..Case::stream(Spec::plain("pipe")) };
        assert_eq!(stall_max(&case(64 << 10)), STALL_MAX);
        assert!(stall_max(&case(2_000_000_000)) > Duration::from_secs(40));
        assert!(!hung(&case(1), STALL_MAX, 0).remedy.unwrap_or_default().contains("--block"));
        assert!(
            hung(&case(2_000_000_000), 2 * STALL_MAX, 0)
                .remedy
                .unwrap_or_default()
                .contains("a smaller --block")
        );
    }

    /// Expected: a run that was stopped by Ctrl-Z continues.
    /// Happened: after 10 s of it "nothing moved for 10 s".
    #[test]
    fn time_for_which_the_supervisor_is_stopped_does_not_count() {
        let mut now = Instant::now();
        let mut stall = StallTimer::from(now);
        now += 100 * STALL_MAX;
        stall.update(now, 0);
        assert!(stall.lasted <= 2 * POLL_INTERVAL);
        let polls = STALL_MAX.as_millis() / POLL_INTERVAL.as_millis();
        for _ in 0..polls {
            now += POLL_INTERVAL;
            stall.update(now, 0);
        }
        assert!(stall.lasted >= STALL_MAX, "it counts with polls at the usual interval");
        stall.update(now, 1);
        assert_eq!(stall.lasted, Duration::ZERO, "something moved");
    }
}
