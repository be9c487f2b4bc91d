//! `hosepipe boost` beside the same command without it: what it gains where copying is all, and what it costs where there is
//! nothing to gain.

use anyhow::Result;

use crate::hosepipe;
use crate::pipelines::{Timed, bash, big_file, times};
use crate::table::{BenchRow, Wanted};
use crate::target::{Laboratory, Target};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "boost-copy",
        promise: "`cat FILE | wc -l` of 1 GB and its like under boost: at most 0.6 of the time without",
        slow: false,
        measure: copying,
    },
    Target {
        name: "boost-tree",
        promise: "500 short processes, as of make -j: at most 1.01 of the time without",
        slow: false,
        measure: |name, lab| without_gain(name, lab, "seq 500 | xargs -P 4 -n 1 sh -c ':'", 21),
    },
    Target {
        name: "boost-latency",
        promise: "a filter that answers line by line, 20000 times: at most 1.01 of the time without",
        slow: false,
        measure: |name, lab| without_gain(name, lab, LINES, 11),
    },
];

/// Questions and answers over two pipes, each waited for.
const LINES: &str = "coproc cat; for ((i = 0; i < 20000; i++)); do echo \"line $i\" >&${COPROC[1]}; read -r -u ${COPROC[0]}; done";

fn boosted(text: &str) -> Timed {
    Timed([hosepipe::PROGRAM, "boost", "--quiet", "bash", "-c", text].map(str::to_owned).to_vec())
}

fn copying(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let file = big_file()?;
    let file = file.display();
    let texts = [
        ("", format!("cat {file} | wc -l"), Wanted::AtMost(0.6)),
        (" tail", format!("cat {file} | tail -c 1"), Wanted::AtMost(0.6)),
        (" cat", format!("cat {file} | cat | wc -c"), Wanted::Nothing),
    ];
    let row = |(more, text, wanted): (&str, String, Wanted)| {
        times(&format!("{name}{more}"), lab, 11, [&boosted(&text), &bash(&text)], wanted)
    };
    texts.into_iter().map(row).collect()
}

fn without_gain(name: &str, lab: &Laboratory, text: &str, rounds: usize) -> Result<Vec<BenchRow>> {
    Ok(vec![times(name, lab, rounds, [&boosted(text), &bash(text)], Wanted::AtMost(1.01))?])
}
