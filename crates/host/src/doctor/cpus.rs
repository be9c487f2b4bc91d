//! Which CPUs there are, what lies below them, and what each system call pays on them.

use model::{Host, Placement};

use super::{Finding, State, unless};
use crate::{CpuList, Vitals, resolve};

pub(super) fn findings(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let mut findings =
        vec![cpus(host), siblings(host), isolated(host, vitals), hypervisor(host), mitigations(host)];
    findings.extend(quota(host, vitals));
    findings.extend(seccomp(vitals));
    findings
}

fn cpus(host: &Host) -> Finding {
    let list: CpuList = host.cpus.iter().map(|cpu| cpu.id).collect();
    let count = host.cpus.len();
    let what = match count {
        1 => format!("this process may use one CPU ({list})"),
        _ => format!("this process may use {count} CPUs ({list})"),
    };
    let why = match count {
        0 | 1 => {
            "Both ends share the CPU: every hand-over is a switch, and only --place same and any \
            mean something."
        }
        2 | 3 => "Two ends fill two CPUs, and whatever else runs takes its time from one of them.",
        _ => "Two ends, and room for everything else.",
    };
    Finding::new("cpus", unless(count > 3, State::Note), what, why)
}

fn siblings(host: &Host) -> Finding {
    let why = "Siblings share one core's caches and units: faster hand-overs, slower copies. \
        Placement `cross` keeps the ends apart, `smt` puts them together.";
    let what = match resolve(Placement::Smt, &host.cpus).as_deref() {
        Ok([a, b]) => format!("SMT siblings are visible, as CPUs {a} and {b}"),
        _ => "no SMT siblings are visible".to_owned(),
    };
    Finding::new("smt", State::Good, what, why)
}

fn isolated(host: &Host, vitals: &Vitals) -> Finding {
    let name = "isolation";
    match &vitals.clockwork.isolated {
        None => Finding::new(
            name,
            State::Unknown,
            "the kernel does not say which CPUs are isolated",
            "Isolated CPUs run nothing but what is pinned to them.",
        ),
        Some(list) if list.is_empty() && host.cpus.len() < 4 => Finding::new(
            name,
            State::Good,
            "no CPU is isolated, nor could one be spared",
            "With fewer than four CPUs the system needs them all.",
        ),
        Some(list) if list.is_empty() => Finding::new(
            name,
            State::Note,
            "no CPU is isolated",
            "The scheduler may put other work beside the ends. Boot with isolcpus= and \
            nohz_full= for the steadiest figures.",
        ),
        Some(list) => Finding::new(
            name,
            State::Good,
            format!("CPUs {list} are isolated"),
            "Pin the ends there (--place CPU,CPU under `taskset -c`): nothing else runs on them.",
        ),
    }
}

fn hypervisor(host: &Host) -> Finding {
    match &host.hypervisor {
        Some(name) => Finding::new(
            "hypervisor",
            State::Note,
            format!("this is a guest of {name}"),
            "To wake another CPU leaves the guest: round trips across CPUs cost tens of \
            microseconds, and blocking mechanisms fall behind spinning ones by more than on bare \
            metal. The host's other guests take their share unseen.",
        ),
        None => Finding::new(
            "hypervisor",
            State::Good,
            "no hypervisor shows itself",
            "Wake-ups and clocks are the machine's own.",
        ),
    }
}

fn mitigations(host: &Host) -> Finding {
    let (state, why) = match host.mitigated_at_system_calls() {
        None => (State::Unknown, "Some mitigations make every system call dearer."),
        Some(names) if names.is_empty() => (State::Good, "A system call costs what the CPU asks for it."),
        Some(_) => (
            State::Note,
            "Small blocks and round trips feel it most. Compare figures only between machines \
            with the same mitigations; they are in every record.",
        ),
    };
    Finding::new("mitigations", state, host.mitigations_in_words(), why)
}

fn quota(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let quota = vitals.confinement.quota.as_ref()?;
    // Two ends that spin need two CPUs; a quota of all CPUs never bites.
    let enough = quota.cpus >= host.cpus.len().min(2) as f64;
    let what = format!("a control group allows {:.2} CPUs' worth of time", quota.cpus);
    let why = "Once it is used up both ends stand still until the period ends (100 ms as a rule): \
        throughput comes in steps and the tail of latency is the period.";
    let command = format!("echo {} | sudo tee {}", quota.lift, quota.file.display());
    Some(Finding::new("cpu-quota", unless(enough, State::Spoils), what, why).mend(command))
}

fn seccomp(vitals: &Vitals) -> Option<Finding> {
    vitals.confinement.seccomp_filter.filter(|filtered| *filtered)?;
    Some(Finding::new(
        "seccomp",
        State::Note,
        "a seccomp filter runs at each system call",
        "Containers have one: it costs tens to hundreds of nanoseconds a call and may refuse \
        io_uring, vmsplice or process_vm_readv altogether.",
    ))
}
