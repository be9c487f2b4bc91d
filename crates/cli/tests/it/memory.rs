//! A run needs little memory, however much it moves: 2 GiB by default, 64 GiB with `HOSEPIPE_TEST_FULL=1`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::common::{self, Lab, full};

/// All processes of the run together, each at its peak.
const MOST_BYTES: u64 = 300 << 20;

fn peak_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Runs one spec and adds up the peaks of the supervisor and of the two largest children ever seen: more than
/// were alive at any one time, so that the sum is an upper bound of what was sampled.
fn assert_small(spec: &str) {
    let lab = Lab::new();
    let bytes = if full() { "64GiB" } else { "2GiB" };
    // With floor and ceiling among the specs nothing of adaptive length is added.
    let args = [
        "bench",
        spec,
        "null",
        "memcpy",
        "--bytes",
        bytes,
        "--trials",
        "1",
        "--workload",
        "stream",
        "--json",
        "-",
    ];
    let mut running = lab.start(lab.command(&args));
    let mut peaks: BTreeMap<u32, u64> = BTreeMap::new();
    let pid = running.pid();
    let last = Instant::now() + Duration::from_secs(if full() { 300 } else { 100 });
    let mut supervisor = 0;
    // The supervisor's own peak disappears with it; a zombie has none.
    while let Some(bytes) = peak_bytes(pid) {
        supervisor = supervisor.max(bytes);
        for (child, _) in running.children() {
            let peak = peak_bytes(child).unwrap_or(0);
            let known = peaks.entry(child).or_default();
            *known = peak.max(*known);
        }
        assert!(Instant::now() < last, "still running");
        std::thread::sleep(Duration::from_millis(10));
    }
    let done = running.end_within(common::promptly()).expect_code(0);
    lab.assert_nothing_left(pid, common::promptly());
    assert!(done.cases_of(spec)[0].error.is_none(), "{}", done.stdout);
    let mut children: Vec<u64> = peaks.into_values().collect();
    children.sort_unstable_by(|a, b| b.cmp(a));
    assert!(children.len() >= 2 && supervisor > 0, "nothing was sampled");
    let sum = supervisor + children.iter().take(3).sum::<u64>();
    assert!(sum < MOST_BYTES, "{spec}: {} MiB: supervisor {supervisor}, {children:?}", sum >> 20);
}

#[test]
fn pipe_stays_small() {
    assert_small("pipe");
}

#[test]
fn socketpair_stays_small() {
    assert_small("socketpair");
}

#[test]
fn shm_ring_stays_small() {
    assert_small("shm-ring");
}
