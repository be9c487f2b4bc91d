//! What else runs here, and who looks over this process' shoulder.

use model::Host;

use super::{Finding, State, size, unless};
use crate::Vitals;

/// Shows who is busy; what to do about it is for the reader to decide.
const WHO: &str = "ps -eo pid,pcpu,comm --sort=-pcpu | head";

pub(super) fn findings(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let mut findings = vec![load(host)];
    findings.extend(
        [running(host, vitals), pressure(vitals), stolen(vitals), swap(vitals), tracer(vitals)]
            .into_iter()
            .flatten(),
    );
    findings
}

fn load(host: &Host) -> Finding {
    let why = "Other work takes turns with the ends, and its share changes from trial to trial.";
    let Some(load) = host.load_average_1m else {
        return Finding::new("load", State::Unknown, "the load average cannot be read", why);
    };
    // Two CPUs are for the ends; of the others half may be busy before the caches and the clock feel it.
    let bearable = ((host.cpus.len() as f64 - 2.0) / 2.0).max(0.25);
    let cpus = host.cpus.len();
    let what = format!("the load average is {load:.2} on {cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" });
    Finding::new("load", unless(load <= bearable, State::Spoils), what, why).mend(WHO)
}

fn running(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let others = vitals.activity.other_running_tasks?;
    let fine = others == 0 || others.saturating_add(2) <= host.cpus.len() as u64;
    let what = match others {
        0 => "nothing else runs at this moment".to_owned(),
        1 => "one other task runs at this moment".to_owned(),
        _ => format!("{others} other tasks run at this moment"),
    };
    Some(
        Finding::new(
            "running",
            unless(fine, State::Spoils),
            what,
            "With the two ends that is more than there are CPUs: somebody waits.",
        )
        .mend(WHO),
    )
}

fn pressure(vitals: &Vitals) -> Option<Finding> {
    let percent = vitals.activity.cpu_pressure_percent?;
    let what = format!("tasks waited for a CPU during {percent:.1} % of the last ten seconds");
    let why = "A task that is ready and must wait is an end that does not move bytes.";
    Some(Finding::new("cpu-pressure", unless(percent < 5.0, State::Spoils), what, why).mend(WHO))
}

fn stolen(vitals: &Vitals) -> Option<Finding> {
    let percent = vitals.activity.stolen_percent?;
    let what = format!("{percent:.2} % of CPU time since boot was given to other guests");
    let why = "Stolen time stands in the clock and in no counter of the ends: throughput drops and \
        the tail of latency grows for no visible reason.";
    Some(Finding::new("stolen-time", unless(percent < 1.0, State::Spoils), what, why))
}

fn swap(vitals: &Vitals) -> Option<Finding> {
    const LITTLE: u64 = 512 << 20;
    let available = vitals.activity.memory_available_bytes?;
    let swapped = vitals.activity.swap_used_bytes.unwrap_or(0);
    let what = match swapped {
        0 => format!("{} of memory are available, nothing is swapped out", size(available)),
        _ => format!("{} of memory are available, {} are swapped out", size(available), size(swapped)),
    };
    let state = match (available < LITTLE, swapped > 0) {
        (true, _) => State::Spoils,
        (false, true) => State::Note,
        (false, false) => State::Good,
    };
    let why = "Buffers, page cache and files as links need memory; a page that comes back from \
        swap costs more than any hand-over.";
    let finding = Finding::new("memory", state, what, why);
    Some(if swapped > 0 && swapped < available / 2 {
        finding.mend("sudo swapoff -a && sudo swapon -a")
    } else {
        finding
    })
}

fn tracer(vitals: &Vitals) -> Option<Finding> {
    let pid = vitals.confinement.tracer_pid.filter(|pid| *pid > 0)?;
    let why = "Under strace(1) or a debugger every system call stops twice; no figure means anything.";
    Some(
        Finding::new("tracer", State::Spoils, format!("process {pid} traces this one"), why)
            .mend(format!("ps -p {pid} -o pid,comm,args")),
    )
}
