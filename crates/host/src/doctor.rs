//! What would cap or spoil a measurement on this machine, and what to type against it. Rules only: they see
//! facts and vitals and touch nothing, so a test can play any machine.

mod clocks;
mod cpus;
mod memory;
mod neighbours;
mod pipes;
mod queues;
mod sockets;
mod storage;

use std::fmt;

use model::Host;
use serde::Serialize;

use crate::{Roots, Vitals, facts};

/// What a finding means for the figures; worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The figures become unsteady, or belong to another machine than the one named.
    Spoils,
    /// A limit keeps a mechanism below what this machine could do; `mend` lifts it.
    Caps,
    /// Nothing is wrong, but the figures are to be read with it.
    Note,
    /// The system does not say.
    Unknown,
    /// As it should be.
    Good,
}

impl State {
    /// All, worst first.
    pub const ALL: [Self; 5] = [Self::Spoils, Self::Caps, Self::Note, Self::Unknown, Self::Good];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Spoils => "spoils",
            Self::Caps => "caps",
            Self::Note => "note",
            Self::Unknown => "unknown",
            Self::Good => "good",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One thing the doctor looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, as in "governor" or "pipe-max-size".
    pub name: &'static str,
    /// What it means for the figures.
    pub state: State,
    /// The value found, as a sentence without a full stop.
    pub what: String,
    /// What it does to the figures.
    pub why: &'static str,
    /// The command that changes it until the next boot or, for limits, in this shell, or that shows who
    /// is to blame; `None` where no command can.
    pub mend: Option<String>,
}

impl Finding {
    /// A finding without a remedy.
    fn new(name: &'static str, state: State, what: impl Into<String>, why: &'static str) -> Self {
        Self { name, state, what: what.into(), why, mend: None }
    }

    /// The same with a remedy, unless all is well.
    fn mend(mut self, command: impl Into<String>) -> Self {
        self.mend = (self.state != State::Good).then(|| command.into());
        self
    }

    /// The same for a limit of setrlimit(2). Root in a container often lacks CAP_SYS_RESOURCE, and then no
    /// command from within raises it: the cap is a fact to read the figures with.
    fn raise(mut self, command: &str, vitals: &Vitals) -> Self {
        if self.state == State::Caps && vitals.confinement.root && !vitals.confinement.may_exceed_resources()
        {
            self.state = State::Note;
            self.what.push_str("; only whoever started this container or machine can raise that");
            return self;
        }
        self.mend(command)
    }
}

/// Looks at this machine, now.
pub fn diagnose() -> Vec<Finding> {
    examine(&facts(), &Vitals::read(&Roots::default()))
}

/// Every rule, in the order in which one would look: CPUs, clocks, neighbours, memory, then one family of
/// mechanisms after the other.
pub fn examine(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let mut findings = cpus::findings(host, vitals);
    findings.extend(clocks::findings(host, vitals));
    findings.extend(neighbours::findings(host, vitals));
    findings.extend(memory::findings(host, vitals));
    findings.extend(pipes::findings(host, vitals));
    findings.extend(queues::findings(host, vitals));
    findings.extend(sockets::findings(host, vitals));
    findings.extend(storage::findings(vitals));
    if vitals.confinement.root || !vitals.confinement.sudo {
        for command in findings.iter_mut().filter_map(|finding| finding.mend.as_mut()) {
            *command = command.replace("sudo ", "");
        }
    }
    findings
}

/// `Good` where `fine`, else `otherwise`.
fn unless(fine: bool, otherwise: State) -> State {
    if fine { State::Good } else { otherwise }
}

/// Bytes as a person reads them, with three digits at most: "1 MiB", "23.5 GiB".
fn size(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((unit, name)) = units.iter().find(|(unit, _)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    let value = bytes as f64 / *unit as f64;
    if value.fract() < 0.05 || value >= 100.0 {
        format!("{value:.0} {name}")
    } else {
        format!("{value:.1} {name}")
    }
}

#[cfg(test)]
mod tests;
