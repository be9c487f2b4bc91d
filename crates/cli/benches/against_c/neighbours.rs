//! Other load on this machine: the share of its CPUs that is in use while we sleep.

use std::time::Duration;

/// Long enough for some tens of the ticks that /proc/stat counts in.
const LISTEN: Duration = Duration::from_millis(500);
/// Below this share only kernel threads and timers run.
const QUIET_SHARE: f64 = 0.05;

/// Sleeps for half a second; a sentence if other programs, or other guests of the hypervisor, used the CPUs meanwhile.
pub(crate) fn remark() -> Option<String> {
    let watch = host::LoadWatch::start();
    std::thread::sleep(LISTEN);
    let others = watch.finish()?;
    let share = others.programs_share + others.stolen_share;
    (share > QUIET_SHARE).then(|| {
        format!("others used {:.0} % of the CPUs before this began: repeat when it is quiet", share * 100.0)
    })
}
