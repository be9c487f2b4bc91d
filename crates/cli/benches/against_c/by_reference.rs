//! A pipe whose pages are passed by reference, with huge pages and with ends that spin, compared with plain copying and with
//! `yes | pv`.

use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use model::Workload;

use crate::hosepipe::{self, bytes_per_s};
use crate::one_run::one_run;
use crate::reference::succeed;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{GIB, Laboratory, skip};

const SPEC: &str = "pipe:send=vmsplice,recv=splice,size=1MiB,wait=spin";
/// A block that is so large that the cost of a call is small beside copying it.
const JUDGED_BLOCK: &str = "256KiB";

/// The judged row, and one with the block size of all other rows.
pub(crate) fn against_memcpy(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let row = |name: &str, block: &str, wanted| {
        let options = format!("--data none --block {block}");
        one_run(name, lab, [SPEC, "memcpy"], &options, Workload::Stream, wanted)
    };
    let judged = row(name, JUDGED_BLOCK, Wanted::AtLeast(0.50))?;
    Ok(vec![judged, row(&format!("{name} 64 KiB"), "64KiB", Wanted::Nothing)?])
}

/// Options of pv: none, so that it uses splice(2) if it can; and one for read(2) and write(2), which is faster on some
/// machines.
const WAYS_OF_PV: [&str; 2] = ["", "--no-splice"];

/// Both move the same bytes. Of pv the whole command is timed, from the start of the shell to the end of pv, which
/// ends behind the last byte (--stop-at-size): its own display of an average rounds to three digits, and counts from
/// its first. What is started takes some milliseconds of a run of a second.
pub(crate) fn against_pv(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    if model::file_on_path("pv").is_none() {
        return skip("no pv to compare with (Debian: apt-get install pv)");
    }
    let bytes = lab.bytes.unwrap_or(4 * GIB);
    let ours = || {
        let record = hosepipe::bench(&format!(
            "{SPEC} --block {JUDGED_BLOCK} --bytes {bytes} --data none --workload stream --place cross --trials 1"
        ))?;
        Ok(bytes_per_s(&hosepipe::case(&record, SPEC, Workload::Stream)?.samples[0]))
    };
    let best = || {
        let speeds = WAYS_OF_PV.map(|way| yes_pv(way, bytes));
        speeds.into_iter().try_fold(0.0, |best: f64, speed| Ok(best.max(speed?)))
    };
    let pair = lab.interleave(7, [&ours, &best])?;
    Ok(vec![BenchRow::beside(name, Unit::BytesPerSecond, pair, Wanted::AtLeast(1.1))])
}

/// Bytes per second of `yes | pv`, both placed by the scheduler.
fn yes_pv(way: &str, bytes: u64) -> Result<f64> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("yes | pv --quiet {way} --stop-at-size --size {bytes} > /dev/null")]);
    let started = Instant::now();
    // The shell's status is that of pv; `yes` ends by a broken pipe.
    succeed(command)?;
    Ok(bytes as f64 / started.elapsed().as_secs_f64())
}
