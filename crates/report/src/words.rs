//! The conditions of a measurement in words, for headings.

use std::collections::BTreeSet;

use model::{CaseRecord, Check, DataLevel, Host, Placement, StopReason, Tasks, Tool, ZeroCopy};

use crate::numbers;

/// The text for an unknown number of bytes, its explanation, and that of the sign of a lower bound. The kernel does not count the bytes
/// that go through a pipe.
pub(crate) const UNKNOWN: &str = "?";
pub(crate) const NOT_KNOWN: &str =
    "?: unknown: the ends use other files, too, or their bytes are not counted.";
pub(crate) const AT_LEAST: &str =
    "≥: only one end counts its bytes; bytes of splice(2) and similar calls are not counted.";

/// The beginning of a remark on a run that was ended early. Older records do not say by what.
pub fn stopped_early(reason: Option<StopReason>) -> &'static str {
    match reason {
        Some(StopReason::Time) => "Stopped early, as its time was over (--time)",
        Some(StopReason::Interrupt) => "Stopped early by Ctrl-C (SIGINT)",
        Some(StopReason::Terminate) => "Stopped early by SIGTERM",
        Some(StopReason::HangUp) => "Stopped early by SIGHUP",
        None => "Stopped early, by --time or Ctrl-C",
    }
}

/// The beginning where the record does not have what ended it.
pub const INTERRUPTED: &str = "Interrupted";

/// The remark on a run that was ended early, after its beginning.
pub fn only_finished(stopped: &str, what: &str) -> String {
    format!("{stopped}: only finished {what} are shown.")
}

/// The tasks of the ends and their CPUs: "two processes on CPUs 0,1".
pub(crate) fn describe_tasks_and_cpus(tasks: Tasks, placement: Placement, cpus: &[u32]) -> String {
    let tasks = match tasks {
        Tasks::Single => "one thread",
        Tasks::Threads => "two threads",
        Tasks::Processes => "two processes",
    };
    let note = match placement {
        Placement::Smt => " (hardware threads of one core)",
        Placement::Numa => " (two NUMA nodes)",
        _ => "",
    };
    match cpus {
        [] if placement == Placement::Any => format!("{tasks}, placed by the scheduler"),
        [] => format!("{tasks}, placed `{placement}`"),
        several => format!("{tasks} on {}{note}", self::cpus(several)),
    }
}

/// The CPUs of the ends of a case: "on CPUs 0,1".
pub fn whereabouts(case: &CaseRecord) -> String {
    match case.cpus.as_slice() {
        [] => "placed by the scheduler".to_owned(),
        cpus => format!("on {}", self::cpus(cpus)),
    }
}

/// "CPU 0", "CPUs 0,1".
pub(crate) fn cpus(cpus: &[u32]) -> String {
    match cpus {
        [first, rest @ ..] if rest.iter().all(|cpu| cpu == first) => format!("CPU {first}"),
        several => {
            let list: Vec<String> = several.iter().map(u32::to_string).collect();
            format!("CPUs {}", list.join(","))
        }
    }
}

/// What the ends did with the bytes: "every byte checked".
pub(crate) fn payload_remark(data: DataLevel, check: Option<Check>) -> &'static str {
    match (data, check) {
        (DataLevel::None, _) => "payload never touched",
        (DataLevel::Write, _) => "every byte written, none checked",
        (DataLevel::Verify, Some(Check::Xor)) => "every byte checked (by XOR, which misses a changed order)",
        (DataLevel::Verify, _) => "every byte checked",
    }
}

/// How far bytes are passed by reference: "zero-copy", or "by reference in part, 1 copy per byte".
pub fn by_reference(evidence: &ZeroCopy) -> String {
    let unproven = if evidence.proven { "" } else { " (not shown)" };
    match evidence.copies_per_byte {
        Some(0) => format!("zero-copy{unproven}"),
        Some(1) => format!("by reference in part, 1 copy per byte{unproven}"),
        Some(copies) => format!("by reference in part, {copies} copies per byte{unproven}"),
        None => format!("by reference, at least in part{unproven}"),
    }
}

/// The block sizes of streams and of round trips: "64 KiB blocks, round trips of 1 B".
pub(crate) fn blocks(streams: Option<String>, round_trips: Option<String>) -> String {
    match (streams, round_trips) {
        (Some(streams), Some(trips)) if streams == trips => format!("blocks and round trips of {trips}"),
        (Some(streams), Some(trips)) => format!("{streams} blocks, round trips of {trips}"),
        (Some(streams), None) => format!("{streams} blocks"),
        (None, Some(trips)) => format!("round trips of {trips}"),
        (None, None) => String::new(),
    }
}

/// The relays between the ends, if there are any: "through 2 relays".
pub(crate) fn relays(relays: u32) -> Option<String> {
    (relays > 0).then(|| format!("through {}", count(relays as usize, "relay")))
}

/// "1 trial", "9 trials".
pub fn count(number: usize, one: &str) -> String {
    count_of(number, one, &format!("{one}s"))
}

/// "1 process", "9 processes".
pub(crate) fn count_of(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// "1 line", "12,000 lines".
pub fn grouped_count(number: u64, one: &str) -> String {
    format!("{} {one}{}", numbers::grouped(number as f64, 0), if number == 1 { "" } else { "s" })
}

/// A machine in a line: its processor, cores and kernel.
pub fn machine(host: &Host) -> String {
    let cores = host.cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect::<BTreeSet<_>>().len();
    let cpus = host.cpus.len();
    let mut parts = Vec::new();
    if !host.cpu_model.is_empty() {
        parts.push(host.cpu_model.clone());
    }
    if cores > 0 {
        let threads = if cpus > cores { format!(", {}", count(cpus, "CPU")) } else { String::new() };
        let hypervisor = host.hypervisor.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        parts.push(format!("{}{threads}{hypervisor}", count(cores, "core")));
    }
    parts.push(host.kernel.clone());
    parts.join(", ")
}

/// The version of a hosepipe, and its revision if known: "0.1.0 (7c2f6ac9c745)".
pub(crate) fn version(tool: &Tool) -> String {
    let revision = tool.revision.as_ref().map(|revision| format!(" ({revision})"));
    tool.version.clone() + &revision.unwrap_or_default()
}

/// The command line of a record, quoted for a shell.
pub(crate) fn command(arguments: &[String]) -> String {
    format!("hosepipe {}", model::shell_line(arguments)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let command =
            |arguments: &[&str]| command(&arguments.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
        assert_eq!(
            command(&["bench", "pipe:size=1MiB", "--place", "0,1"]),
            "hosepipe bench pipe:size=1MiB --place 0,1"
        );
        assert_eq!(command(&["run", "a 'b' | c $x"]), r"hosepipe run 'a '\''b'\'' | c $x'");
        assert_eq!(command(&["", "~", "é"]), "hosepipe '' '~' 'é'");
        assert_eq!(command(&["a\n1'\\\u{9b}"]), r"hosepipe $'a\0121\'\\\302\233'");
    }

    /// Expected: `1 line`. Happened: `1 lines`.
    #[test]
    fn one_is_singular() {
        let lines = [0, 1, 12_345].map(|number| grouped_count(number, "line"));
        assert_eq!(lines, ["0 lines", "1 line", "12,345 lines"]);
    }

    #[test]
    fn ends_and_places() {
        assert_eq!(
            describe_tasks_and_cpus(Tasks::Processes, Placement::Cross, &[0, 1]),
            "two processes on CPUs 0,1"
        );
        assert_eq!(describe_tasks_and_cpus(Tasks::Threads, Placement::Same, &[1, 1]), "two threads on CPU 1");
        assert_eq!(describe_tasks_and_cpus(Tasks::Single, Placement::Same, &[1]), "one thread on CPU 1");
        assert_eq!(
            describe_tasks_and_cpus(Tasks::Processes, Placement::Any, &[]),
            "two processes, placed by the scheduler"
        );
    }
}
