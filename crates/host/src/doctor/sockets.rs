//! What caps sockets and io_uring.

use model::Host;

use super::{Finding, State, size, unless};
use crate::Vitals;

pub(super) fn findings(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let mut findings = vec![
        buffer("wmem-max", "net.core.wmem_max", "SO_SNDBUF", host.limits.wmem_max),
        buffer("rmem-max", "net.core.rmem_max", "SO_RCVBUF", host.limits.rmem_max),
    ];
    findings.extend(datagrams(vitals));
    findings.push(io_uring(vitals));
    findings
}

fn buffer(name: &'static str, key: &str, option: &str, limit: Option<u64>) -> Finding {
    const WANTED: u64 = 1 << 20;
    let why = "Larger socket buffers let the sender run ahead; a request above the limit is cut \
        without an error (socket(7)). The size granted is in every record.";
    let Some(bytes) = limit else {
        return Finding::new(name, State::Unknown, format!("{key} cannot be read"), why);
    };
    let what = format!("{option} may be {}", size(bytes));
    Finding::new(name, unless(bytes >= WANTED, State::Caps), what, why)
        .mend(format!("sudo sysctl -w {key}={}", 4 * WANTED))
}

fn datagrams(vitals: &Vitals) -> Option<Finding> {
    let queued = vitals.switches.unix_max_dgram_qlen?;
    let what = format!("{queued} datagrams may wait in a Unix socket");
    let why = "The sender of unix-dgram waits behind that many, however small they are: with the \
        kernel's 10, small datagrams are bound by wake-ups.";
    Some(
        Finding::new("unix-dgram-qlen", unless(queued >= 128, State::Caps), what, why)
            .mend("sudo sysctl -w net.unix.max_dgram_qlen=512"),
    )
}

fn io_uring(vitals: &Vitals) -> Finding {
    let name = "io-uring";
    let why = "Without it the rows that use io_uring stay empty (EPERM).";
    let (state, what) = match vitals.switches.io_uring_disabled {
        None => (State::Unknown, "this kernel has no switch for io_uring, or no io_uring"),
        Some(0) => (State::Good, "io_uring is open to all"),
        Some(1) if vitals.confinement.may_administer() => {
            (State::Good, "io_uring is open to the privileged, as this process is")
        }
        Some(1) => (State::Caps, "io_uring is closed to ordinary users"),
        Some(_) => (State::Caps, "io_uring is switched off"),
    };
    let finding = Finding::new(name, state, what, why);
    if state == State::Caps { finding.mend("sudo sysctl -w kernel.io_uring_disabled=0") } else { finding }
}
