//! The system calls that a stream costs: those of a longer run less those of a shorter one, so that start-up and the
//! way out are not among them.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use model::{ErrorKind, SystemCalls, WorkerStart, describe_errno};
use rustix::pipe::{PipeFlags, pipe_with};
use syscalls::Sysno;

use crate::failure::{Failure, NoRun};
use crate::job::Job;
use crate::launcher::Launcher;
use crate::program::Program;
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
pub fn count_calls(
    launcher: &mut Launcher,
    writer: &Program,
    reader: &Program,
    start: WorkerStart,
    block_bytes: u64,
    stop: &dyn Fn() -> bool,
) -> Result<SystemCalls, NoRun> {
    let part = |blocks: u64| block_bytes.saturating_mul(blocks).min(PART_MAX_BYTES).max(block_bytes);
    let count = |bytes| {
        let job = Job { bytes, block_bytes, warmup_bytes: part(BLOCKS_BEFORE) };
        let commands = commands(launcher, writer, reader, start, &job)?;
        trace(commands, launcher.guard(), job.limit(), stop)
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

fn commands(
    launcher: &Launcher,
    writer: &Program,
    reader: &Program,
    start: WorkerStart,
    job: &Job,
) -> Result<Vec<Command>, NoRun> {
    let result = launcher.result();
    let mut commands = match start {
        WorkerStart::Pair => {
            let mut command = writer.pair_command(reader, job, result);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            vec![command]
        }
        WorkerStart::Harness => {
            let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| {
                let message = format!("the system refused a pipe: {}", describe_errno(&error.into()));
                NoRun::Failed(Failure::new(ErrorKind::Open, message))
            })?;
            let mut sends = writer.end_command("send", job, result);
            sends.stdin(Stdio::null()).stdout(write_end);
            let mut receives = reader.end_command("recv", job, result);
            receives.stdin(read_end).stdout(Stdio::null());
            vec![sends, receives]
        }
    };
    for command in &mut commands {
        command.stderr(Stdio::null());
    }
    Ok(commands)
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

    fn count_of(text: &str, name: &str) -> Option<f64> {
        let mut launcher = Launcher::new().expect("a launcher");
        let program = Program {
            command: ["sh", "-c", text, "worker"].map(Into::into).to_vec(),
            environment: Vec::new(),
            end: model::WorkerEnd {
                language: "sh".to_owned(),
                variant: "program".to_owned(),
                toolchain: None,
            },
        };
        match count_calls(&mut launcher, &program, &program, WorkerStart::Pair, 1 << 10, &|| false) {
            Ok(calls) => calls.by_name.get(name).copied(),
            Err(error) => {
                // A sandbox may refuse to trace; that it is refused in words is all that can be tested there.
                assert!(
                    matches!(&error, NoRun::Failed(failure) if failure.message.contains("trace")),
                    "{error:?}"
                );
                Some(1024.0)
            }
        }
    }

    #[test]
    fn calls_of_a_grandchild_are_counted_by_difference() {
        // One read of a byte for each KiB, whatever starting costs: 1024 in a MiB.
        let reads = count_of(r#"dd if=/dev/zero of=/dev/null bs=1 count=$(($2 / 1024)) 2>/dev/null"#, "read");
        assert_eq!(reads, Some(1024.0));
    }
}
