//! Who else is on this machine: the share of its CPUs that is in use while we sleep.

use std::fs;
use std::time::Duration;

/// Long enough for some tens of the ticks that /proc/stat counts in.
const LISTEN: Duration = Duration::from_millis(500);
/// Below this share the machine is ours: kernel threads and the odd timer.
const QUIET_SHARE: f64 = 0.05;

/// Sleeps for a moment; a sentence where others were at work meanwhile, or the hypervisor was (stolen time).
pub(crate) fn remark() -> Option<String> {
    let [busy_before, all_before] = ticks()?;
    std::thread::sleep(LISTEN);
    let [busy, all] = ticks()?;
    let share = (busy - busy_before) / (all - all_before);
    (share > QUIET_SHARE).then(|| {
        format!("others used {:.0} % of the CPUs before this began: repeat when it is quiet", share * 100.0)
    })
}

/// Ticks in use and all ticks of all CPUs since boot. The first line of /proc/stat: user, nice, system, idle,
/// iowait, irq, softirq, steal, then two that are in the first two already (proc_stat(5)).
fn ticks() -> Option<[f64; 2]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<f64> = fields.map_while(|field| field.parse().ok()).collect();
    let all: f64 = ticks.iter().sum();
    (ticks.len() == 8).then(|| [all - ticks[3] - ticks[4], all])
}
