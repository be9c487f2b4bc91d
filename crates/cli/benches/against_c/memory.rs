//! How much memory a command and everything it starts hold, at the worst moment.

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How often the processes are looked at. The kernel keeps each one's peak (VmHWM), so that nothing is lost
/// between two looks but processes that live shorter than this.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs a command, and gives the largest sum of resident peaks of all its processes that were alive together, in
/// bytes; of its first process alone without `with_children`. An upper bound: pages that several share are counted once for each. (What wait4(2) has to offer,
/// `ru_maxrss`, is the largest single process: it would not see eight ends of 100 MiB each.)
///
/// # Errors
/// The command does not start, or fails.
pub(crate) fn peak_bytes(mut command: Command, with_children: bool) -> Result<u64> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("{command:?} does not start"))?;
    let mut peak_bytes = 0;
    let status = loop {
        let looked_at = if with_children { family(child.id()) } else { vec![child.id()] };
        peak_bytes = peak_bytes.max(looked_at.into_iter().map(resident_peak_bytes).sum());
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
