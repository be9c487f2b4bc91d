//! The system calls that a stream costs: those of a longer run less those of a shorter one, so that start-up and the
//! way out are not among them.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use model::{NoSample, SystemCalls};
use syscalls::Sysno;

use crate::job::Job;
use crate::launcher::{Launch, Launcher};
use crate::trace::{Counts, trace};

/// Blocks of the warm-up of both runs, so that a just-in-time compiler has done its work; and of the shorter one.
const BLOCKS_BEFORE: u64 = 256;
const BLOCKS_FEW: u64 = 16;

/// Blocks that the longer run has more; fewer where the shorter one made this many calls: tracing takes its time.
const BLOCKS_MORE: u64 = 1024;
const BLOCKS_MORE_OF_MANY_CALLS: u64 = 256;
const CALLS_MANY: u64 = 20_000;

/// No part of a run is larger than this, as long as that is a block.
const PART_MAX_BYTES: u64 = 64 << 20;

/// Names that are told apart; the calls made least are in the sum only.
const NAMES_MAX: usize = 8;

/// Calls rarer than this, per MiB, have no name: they are the noise of a runtime's own threads.
const PER_MIB_MIN: f64 = 0.05;

/// Counts the system calls of both ends, all threads and children included, by ptrace(2). Times mean nothing meanwhile.
///
/// # Errors
/// Stopped; or nobody may trace here (a container's seccomp filter, a kernel before 5.3), or the program fails.
pub(crate) fn count_calls(
    launcher: &mut Launcher,
    launch: &Launch<'_>,
    block_bytes: u64,
    stop: &dyn Fn() -> bool,
) -> Result<SystemCalls, NoSample> {
    let part = |blocks: u64| block_bytes.saturating_mul(blocks).min(PART_MAX_BYTES).max(block_bytes);
    let count = |bytes| {
        let job = Job { bytes, block_bytes, warmup_bytes: part(BLOCKS_BEFORE) };
        let (parts, _) = launcher.parts(launch, &job)?;
        let mut commands: Vec<Command> = parts.into_iter().map(|part| part.command).collect();
        for command in &mut commands {
            command.stderr(Stdio::null());
        }
        trace(commands, launcher.cleaner(), job.limit(), stop)
    };
    let few = part(BLOCKS_FEW);
    let mut shorter = count(few)?;
    let many = shorter.values().sum::<u64>() > CALLS_MANY;
    let more = part(if many { BLOCKS_MORE_OF_MANY_CALLS } else { BLOCKS_MORE });
    let mut longer = count(few.saturating_add(more))?;
    if !many {
        shorter = least(&shorter, &count(few)?);
        longer = least(&longer, &count(few.saturating_add(more))?);
    }
    Ok(per_mib(&shorter, &longer, more))
}

/// The lesser count of each call: what a runtime's own threads do on their own account, sometimes, only adds.
fn least(one: &Counts, other: &Counts) -> Counts {
    let both = |(number, count): (&u64, &u64)| Some((*number, *count.min(other.get(number)?)));
    one.iter().filter_map(both).collect()
}

fn per_mib(shorter: &Counts, longer: &Counts, more_bytes: u64) -> SystemCalls {
    let scale = f64::from(1 << 20) / more_bytes.max(1) as f64;
    let mut differences: Vec<(String, f64)> = longer
        .iter()
        .map(|(number, count)| {
            let before = shorter.get(number).copied().unwrap_or(0);
            (name(*number), (*count as f64 - before as f64) * scale)
        })
        .collect();
    differences.sort_by(|a, b| b.1.total_cmp(&a.1));
    // A call that the shorter run made more often by chance is not made less than never.
    let total: f64 = differences.iter().map(|(_, per_mib)| per_mib.max(0.0)).sum();
    let most = differences.into_iter().take(NAMES_MAX).filter(|(_, per_mib)| *per_mib >= PER_MIB_MIN);
    SystemCalls { per_mib: total, by_name: most.collect::<BTreeMap<String, f64>>() }
}

fn name(number: u64) -> String {
    let known = usize::try_from(number).ok().and_then(Sysno::new);
    known.map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::program::Program;

    /// The calls of a worker that is this shell script; `None` where a sandbox refuses to trace. That it is refused in words
    /// is all that can be tested there.
    fn counted(script: &'static str) -> Option<SystemCalls> {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut launcher = Launcher::new().expect("a launcher");
            let program = Program {
                command: ["sh", "-c", script, "worker"].map(Into::into).to_vec(),
                folder: None,
                environment: Vec::new(),
                end: model::WorkerEnd {
                    language: "sh".to_owned(),
                    variant: "program".to_owned(),
                    toolchain: None,
                },
            };
            tell.send(count_calls(&mut launcher, &Launch::pair(&program, &program), 1 << 10, &|| false))
        });
        match told.recv_timeout(Duration::from_secs(50)).expect("an end long before the limit of a job") {
            Ok(calls) => Some(calls),
            Err(NoSample::Failed(failure)) if failure.message.contains("trace") => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn calls_of_a_grandchild_are_counted_by_difference() {
        // One read of a byte for each KiB, whatever starting costs: 1024 in a MiB.
        let calls = counted(r#"dd if=/dev/zero of=/dev/null bs=1 count=$(($2 / 1024)) 2>/dev/null"#);
        assert!(calls.is_none_or(|calls| calls.by_name["read"] == 1024.0));
    }

    #[test]
    fn a_child_that_left_its_session_is_not_waited_for() {
        counted("setsid sleep 1000 & sleep 0.1");
    }
}
