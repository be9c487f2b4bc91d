//! The largest amount of memory that a command and its descendants hold at one time.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use process::proc::{children, field_value};

/// Time between two samples of the processes. The kernel keeps the peak of each (VmHWM), so that only processes with a shorter
/// life are missed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The processes whose memory counts.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// Of all processes together.
    All,
    /// Of the largest of those that run this program.
    Largest(&'static str),
}

/// Runs a command, and gives the largest resident peak in bytes. That of all its processes is the sum of those that were alive
/// together, an upper bound: pages that several share are counted once for each. (What wait4(2) has to offer,
/// `ru_maxrss`, is the largest single process: it would not see eight ends of 100 MiB each.)
///
/// # Errors
/// The command does not start, or fails.
pub(crate) fn peak_bytes(mut command: Command, whose: Whose) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("{command:?} does not start"))?;
    let mut peak_bytes = 0;
    let status = loop {
        let family = family(child.id().cast_signed()).into_iter();
        let now = match whose {
            Whose::All => family.map(resident_peak_bytes).sum(),
            Whose::Largest(program) => {
                let runs = |pid: &i32| {
                    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|file| file == Path::new(program))
                };
                family.filter(runs).map(resident_peak_bytes).max().unwrap_or(0)
            }
        };
        peak_bytes = peak_bytes.max(now);
        if let Some(status) = child.try_wait().context("waiting for hosepipe")? {
            break status;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(peak_bytes as f64)
}

/// A process and all that descend from it.
fn family(root: i32) -> Vec<i32> {
    let mut family = vec![root];
    let mut looked_at = 0;
    while let Some(member) = family.get(looked_at) {
        family.extend(children(*member));
        looked_at += 1;
    }
    family
}

/// The largest resident set a process has had (a number of KiB, "1234 kB"); 0 once it is gone. Huge pages of hugetlbfs are not in it.
fn resident_peak_bytes(pid: i32) -> u64 {
    let peak = field_value(&format!("/proc/{pid}/status"), "VmHWM");
    peak.and_then(|peak| peak.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
