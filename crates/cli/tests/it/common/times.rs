//! How long tests wait, by how busy the machine is.

use std::fs;
use std::time::Duration;

/// No run of these tests takes longer, nor those of real sizes: what does, hangs.
pub(crate) const HANGS_AFTER: Duration = Duration::from_secs(300);

/// How many programs share a CPU, at least 1: what takes a second on a quiet machine takes this many here.
pub(crate) fn busy() -> u32 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running: f64 = load.split(' ').next().and_then(|mean| mean.parse().ok()).unwrap_or(1.0);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (running / cpus as f64).ceil().clamp(1.0, 16.0) as u32
}

/// What the contract calls prompt, on a quiet machine.
pub(crate) fn promptly() -> Duration {
    Duration::from_secs(2) * busy()
}

/// How long a run may go on that has nothing left to do but its floor and ceiling.
pub(crate) fn soon() -> Duration {
    Duration::from_secs(20) * busy()
}

/// A `--time` in which a trial begins and is seen to have begun: a test that looks late wants a longer trial as well.
pub(crate) fn short_time() -> Duration {
    Duration::from_millis(600) * busy() * busy()
}

/// A `--time`, as it is typed.
pub(crate) fn typed(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
