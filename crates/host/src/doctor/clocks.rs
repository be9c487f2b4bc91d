//! Frequencies, idle states and the clock: what makes one second unlike the next.

use model::Host;

use super::{Finding, State, unless};
use crate::Vitals;

pub(super) fn findings(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let mut findings = vec![governor(host), clocksource(vitals)];
    findings.extend(boost(vitals));
    findings.extend(idle(vitals));
    findings
}

fn governor(host: &Host) -> Finding {
    let name = "governor";
    match (host.governor.as_deref(), &host.hypervisor) {
        (Some("performance"), _) => Finding::new(
            name,
            State::Good,
            "the frequency governor is `performance`",
            "The clock does not wait for load before it rises.",
        ),
        (Some(word), _) => Finding::new(
            name,
            State::Spoils,
            format!("the frequency governor is `{word}`"),
            "The clock follows the load: short trials, and ends that sleep between blocks, run \
            slower than long busy ones.",
        )
        .mend("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
        (None, Some(_)) => Finding::new(
            name,
            State::Note,
            "no frequency governor: the hypervisor's host decides",
            "The clock may change without this system knowing; interleaved trials spread the \
            change over all rows.",
        ),
        (None, None) => Finding::new(
            name,
            State::Unknown,
            "no frequency governor is visible",
            "Whether the clock is steady cannot be told; watch the ±95 % column.",
        ),
    }
}

fn boost(vitals: &Vitals) -> Option<Finding> {
    let boost = vitals.clockwork.boost.as_ref()?;
    let what = if boost.on {
        "the CPU may run above its nominal frequency"
    } else {
        "the CPU keeps to its nominal frequency"
    };
    let why = "How far above depends on heat and on how many cores are busy: the first trials are \
        faster than the last, one busy core is faster than two.";
    let command = format!("echo {} | sudo tee {}", boost.off, boost.file.display());
    Some(Finding::new("boost", unless(!boost.on, State::Spoils), what, why).mend(command))
}

fn idle(vitals: &Vitals) -> Option<Finding> {
    let exit_us = vitals.clockwork.idle_exit_us?;
    // A wake-up on another core costs 2 to 5 µs on bare metal: shallower states are lost in it.
    let fine = exit_us <= 5;
    let what = format!("an idle CPU needs up to {exit_us} µs to wake");
    let why = "An end that blocks lets its CPU fall asleep: the exit time is part of every round \
        trip across CPUs.";
    Some(
        Finding::new("idle-states", unless(fine, State::Caps), what, why).mend("sudo cpupower idle-set -D 5"),
    )
}

fn clocksource(vitals: &Vitals) -> Finding {
    let name = "clocksource";
    let Some(source) = vitals.clockwork.clocksource.as_deref() else {
        return Finding::new(
            name,
            State::Unknown,
            "the kernel does not name its clock source",
            "A clock that needs a system call shows in short round trips.",
        );
    };
    // Those the vDSO reads without entering the kernel (vdso(7); arch/*/include/asm/vdso/clocksource.h).
    let fast = [
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "arch_sys_counter",
        "riscv_clocksource",
        "timebase",
        "tod",
    ];
    let what = format!("time is read from `{source}`");
    if fast.contains(&source) {
        return Finding::new(name, State::Good, what, "CLOCK_MONOTONIC costs some 20 ns and no system call.");
    }
    let finding = Finding::new(
        name,
        State::Spoils,
        what,
        "Each look at the clock is a system call of a microsecond or more, which stands in \
        every round trip.",
    );
    match vitals.clockwork.clocksources.iter().find(|other| fast.contains(&other.as_str())) {
        Some(better) => finding.mend(format!(
            "echo {better} | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
        )),
        None => finding,
    }
}
