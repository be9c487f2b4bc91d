//! The cost of a system call: of a call that does nothing, and of a byte that is written into a pipe and read back.

use std::hint::black_box;
use std::time::Instant;

use rustix::io::{read, write};
use rustix::pipe::pipe;

use super::{KernelPipe, STUDY};
use crate::run::{PartRun, refused};

/// Smallest number of calls in a sample.
const CALLS_MIN: u64 = 10_000;

pub(super) fn run(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let choice = STUDY.parameters::<KernelPipe>().choice;
    let calls = run.request.scale.amount(choice.calls).max(CALLS_MIN);
    run.set("calls", format!("{calls} in a sample"));
    let series = run.made.series;
    let (reader, writer) = pipe().map_err(refused("pipe"))?;
    let (mut trivial, mut write_and_read) = (Vec::new(), Vec::new());
    for round in 0..series {
        if run.is_over() {
            break;
        }
        run.observer.progress("system calls", Some(f64::from(round) / f64::from(series)));
        trivial.push(ns_per_call(calls, do_nothing)?);
        let mut byte = [0u8];
        write_and_read.push(ns_per_call(calls, || {
            write(&writer, &[1])?;
            read(&reader, &mut byte)?;
            Ok(())
        })?);
    }
    run.measured("getppid", "ns", trivial);
    run.measured("1 byte written and read", "ns", write_and_read);
    Ok(())
}

fn do_nothing() -> rustix::io::Result<()> {
    black_box(rustix::process::getppid());
    Ok(())
}

fn ns_per_call(calls: u64, mut call: impl FnMut() -> rustix::io::Result<()>) -> anyhow::Result<f64> {
    let began = Instant::now();
    for _ in 0..calls {
        call().map_err(refused("a byte through a pipe"))?;
    }
    Ok(began.elapsed().as_nanos() as f64 / calls as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_time_but_not_long() {
        let ns = ns_per_call(20_000, do_nothing).expect("getppid(2) cannot fail");
        assert!(ns > 1.0 && ns < 1e6, "{ns}");
    }
}
