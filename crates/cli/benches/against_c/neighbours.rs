//! Who else is on this machine: the share of its CPUs that is in use while we sleep.

use std::time::Duration;

/// Long enough for some tens of the ticks that /proc/stat counts in.
const LISTEN: Duration = Duration::from_millis(500);
/// Below this share the machine is ours: kernel threads and the odd timer.
const QUIET_SHARE: f64 = 0.05;

/// Sleeps for a moment; a sentence where others were at work meanwhile, or the hypervisor was (stolen time).
pub(crate) fn remark() -> Option<String> {
    let watch = host::LoadWatch::start();
    std::thread::sleep(LISTEN);
    let others = watch.finish()?;
    let share = others.programs_share + others.stolen_share;
    (share > QUIET_SHARE).then(|| {
        format!("others used {:.0} % of the CPUs before this began: repeat when it is quiet", share * 100.0)
    })
}
