//! `hosepipe doctor`: what limits or distorts measurements on this machine, and the commands that change it. The rules get facts and
//! vitals and read no files, so that tests can describe any machine.

mod copies;
mod limits;
mod machine;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

pub use copies::copy_finding;
use model::Host;
use serde::Serialize;

use crate::{Roots, facts, vitals::Vitals};

model::words! {
    /// What a finding means for the figures; worst first.
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// The figures become unsteady, or are not those of the named machine.
        Spoils = "spoils",
        /// A limit makes a mechanism slower than this machine allows; `remedy` raises the limit.
        Caps = "caps",
        /// No fault, but it explains the figures.
        Note = "note",
        /// The system does not report it.
        Unknown = "unknown",
        /// Good for measurements.
        Good = "good",
    }
}

/// The result of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The checked property, such as "governor" or "pipe-max-size".
    pub name: &'static str,
    pub state: Severity,
    /// The value, as a sentence without a full stop.
    pub what: String,
    /// The effect on the figures.
    pub why: &'static str,
    /// A command that shows the cause, or changes it until the next boot or, for limits of setrlimit(2), in this shell; `None` if there
    /// is none. A command for root contains `sudo`, or begins with [`model::AS_ROOT`].
    pub remedy: Option<String>,
}

/// The texts of `findings.toml`: of each finding by the word of a severity, by a name that its rule gives, `why` and `remedy`.
static TEXTS: LazyLock<BTreeMap<String, BTreeMap<String, String>>> =
    LazyLock::new(|| toml::from_str(include_str!("doctor/findings.toml")).unwrap_or_default());

fn text(finding: &str, key: &str) -> Option<&'static str> {
    TEXTS.get(finding)?.get(key).map(String::as_str)
}

/// One check; `None` if it does not apply to this machine.
type Rule = fn(&Host, &Vitals) -> Option<Finding>;

impl Finding {
    /// A finding with the text of its severity, and without a remedy.
    fn new(name: &'static str, state: Severity, what: impl Into<String>) -> Self {
        let why = text(name, state.word()).or_else(|| text(name, "why")).unwrap_or_default();
        Self { name, state, what: what.into(), why, remedy: None }
    }

    /// The same with the text of that name.
    fn because(mut self, key: &str) -> Self {
        self.why = text(self.name, key).unwrap_or_default();
        self
    }

    /// Adds the remedy of `findings.toml`, unless the finding is [`Severity::Good`].
    fn remedied(self) -> Option<Self> {
        let command = text(self.name, "remedy").unwrap_or_default();
        self.remedy(command)
    }

    /// Adds a remedy, unless the finding is [`Severity::Good`].
    fn remedy(mut self, command: impl Into<String>) -> Option<Self> {
        self.remedy = (self.state != Severity::Good).then(|| command.into());
        Some(self)
    }

    /// Adds the command that raises a limit of setrlimit(2). In a container without CAP_SYS_RESOURCE no command raises it, neither
    /// for root nor with sudo: the finding becomes a note with the command for the host.
    fn raise(mut self, limit: &str, vitals: &Vitals) -> Option<Self> {
        if self.state == Severity::Caps && !vitals.confinement.can_raise_limits() {
            self.state = Severity::Note;
            self.what.push_str(&format!(
                "; root in this container cannot raise that, root on its host can: prlimit --pid PID --{limit}=unlimited"
            ));
            return Some(self);
        }
        self.remedy(format!("sudo prlimit --pid $$ --{limit}=unlimited"))
    }
}

/// Examines this machine.
pub fn diagnose() -> Vec<Finding> {
    examine(&facts(), &Vitals::read(&Roots::default()))
}

/// Applies every rule: CPUs, clocks, other programs, memory, then each family of mechanisms.
fn examine(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let rules = machine::RULES.iter().chain(limits::RULES);
    let mut findings: Vec<Finding> = rules.filter_map(|rule| rule(host, vitals)).collect();
    for command in findings.iter_mut().filter_map(|finding| finding.remedy.as_mut()) {
        *command = model::for_root(command, vitals.confinement.sudo);
    }
    findings
}

/// `Good` if the value is `fine`, else the other severity.
fn unless(fine: bool, otherwise: Severity) -> Severity {
    if fine { Severity::Good } else { otherwise }
}

/// A command for root that writes a value into a file of /proc or /sys.
fn write_command(value: &str, file: impl fmt::Display) -> String {
    format!("echo {value} | sudo tee {file}")
}

/// "1 file", "1024 files".
fn count(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// Bytes in binary units: "1 MiB", "23.5 GiB".
fn size(bytes: u64) -> String {
    model::ByteSize(bytes).rounded()
}

#[cfg(test)]
mod tests;
