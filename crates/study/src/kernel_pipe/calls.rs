//! What a system call costs: a call that does nothing, and a byte written into a pipe and read back.

use std::hint::black_box;
use std::time::Instant;

use super::kernel_pipe;
use model::{Measure, StudyPart};
use rustix::io::{read, write};
use rustix::pipe::pipe;

use crate::part::{ReproduceError, Stage};

/// Calls between two looks at the clock and the user.
const PIECE: u64 = 10_000;

pub(super) fn run(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let how = kernel_pipe().calls();
    let calls = stage.job.scale.amount(how.calls).max(PIECE);
    let mut part = stage.blank(stage.job.scale.trials(how.samples));
    let (reader, writer) = pipe().map_err(ReproduceError::system("pipe"))?;
    let mut trivial = Measure::new("getppid", "ns");
    let mut both = Measure::new("1 byte written and read", "ns");
    for round in 0..part.series {
        if stage.is_over() {
            break;
        }
        stage.watcher.progress("system calls", Some(f64::from(round) / f64::from(part.series)));
        trivial.samples.push(ns_per_call(calls, || {
            black_box(rustix::process::getppid());
            Ok(())
        })?);
        let mut byte = [0u8];
        both.samples.push(ns_per_call(calls, || {
            write(&writer, &[1])?;
            read(&reader, &mut byte)?;
            Ok(())
        })?);
    }
    part.complete = !(stage.job.stop)();
    part.settings.insert("calls".to_owned(), format!("{calls} in a sample"));
    part.measures = vec![trivial, both];
    Ok(part)
}

fn ns_per_call(calls: u64, mut call: impl FnMut() -> rustix::io::Result<()>) -> Result<f64, ReproduceError> {
    let mut elapsed_ns = 0.0;
    let mut left = calls;
    while left > 0 {
        let piece = left.min(PIECE);
        let began = Instant::now();
        for _ in 0..piece {
            call().map_err(ReproduceError::system("a byte through a pipe"))?;
        }
        elapsed_ns += began.elapsed().as_nanos() as f64;
        left -= piece;
    }
    Ok(elapsed_ns / calls as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_time_but_not_long() {
        let ns = ns_per_call(20_000, || {
            black_box(rustix::process::getppid());
            Ok(())
        });
        let ns = ns.expect("the call has no way to fail");
        assert!(ns > 1.0 && ns < 1e6, "{ns}");
    }
}
