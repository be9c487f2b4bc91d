//! How much memory a command and everything it starts hold, at the worst moment.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How often the processes are looked at. The kernel keeps each one's peak (VmHWM), so that nothing is lost
/// between two looks but processes that live shorter than this.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whose memory is looked at.
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
pub(crate) fn peak_bytes(mut command: Command, whose: Whose) -> Result<u64> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("{command:?} does not start"))?;
    let mut peak_bytes = 0;
    let status = loop {
        let family = family(child.id()).into_iter();
        let now = match whose {
            Whose::All => family.map(resident_peak_bytes).sum(),
            Whose::Largest(program) => {
                let runs = |pid: &u32| {
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
    Ok(peak_bytes)
}

/// A process and all that descend from it.
fn family(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = pid.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let Some((pid, parent)) = pid.and_then(|pid| Some((pid, parent_of(pid)?))) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut family = vec![root];
    let mut looked_at = 0;
    while let Some(member) = family.get(looked_at) {
        family.extend(children.remove(member).unwrap_or_default());
        looked_at += 1;
    }
    family
}

/// Fourth field of `/proc/PID/stat`; the second may hold spaces and parentheses (proc_pid_stat(5)).
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The largest resident set a process has had; 0 once it is gone. Huge pages of hugetlbfs are not in it.
fn resident_peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0u64) * 1024
}
