//! `hosepipe boost` beside the same command without it: what it gains if the stages only copy, and what it costs if larger pipes gain
//! nothing.

use anyhow::Result;

use crate::hosepipe;
use crate::pipelines::{Timed, bash, copying, times};
use crate::table::{BenchRow, Wanted};
use crate::target::{Laboratory, Target};

pub(crate) const TARGETS: &[Target] = &[
    Target::quick(
        "boost-copy",
        "`cat FILE | wc -l` of 1 GB and its like under boost: at most 0.6 of the time without",
        |name, lab| copying(name, lab, boosted, "-l", 0.6),
    ),
    Target::quick(
        "boost-tree",
        "500 short processes, as of make -j: at most 1.01 of the time without",
        |name, lab| without_gain(name, lab, "seq 500 | xargs -P 4 -n 1 sh -c ':'", 21),
    ),
    Target::quick(
        "boost-latency",
        "a filter that answers line by line, 20000 times: at most 1.01 of the time without",
        |name, lab| without_gain(name, lab, LINES, 11),
    ),
];

/// Questions and answers over two pipes, each waited for.
const LINES: &str = "coproc cat; for ((i = 0; i < 20000; i++)); do echo \"line $i\" >&${COPROC[1]}; read -r -u ${COPROC[0]}; done";

fn boosted(text: &str) -> Timed {
    Timed::new(&[hosepipe::PROGRAM, "boost", "--quiet", "bash", "-c", text])
}

fn without_gain(name: &str, lab: &Laboratory, text: &str, rounds: usize) -> Result<Vec<BenchRow>> {
    Ok(vec![times(name, lab, rounds, [&boosted(text), &bash(text)], Wanted::AtMost(1.01))?])
}
