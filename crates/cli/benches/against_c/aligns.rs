//! Real pipelines in plain bash, in `run`, in `run --align-buffers` and under `boost`. A machine that copies at
//! full speed into every address simulates one that does not: then the rows show what the cure costs where it has no effect.

use anyhow::Result;

use crate::hosepipe;
use crate::pipelines::{Timed, bash, big_file, seconds};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target, skip};

const ROUNDS: usize = 7;
/// The variable that simulates such a machine.
const MACHINE: &str = "HOSEPIPE_SLOW_COPIES=0.3";

/// A row's name, the program that it needs, and the pipeline; `FILE` is a file of 1 GB.
const PIPELINES: &[(&str, &str, &str)] = &[
    ("align-zstd", "zstd", "cat FILE | zstd -1 -c | wc -c"),
    ("align-lz4", "lz4", "cat FILE | lz4 -1 -c | wc -c"),
    ("align-pv", "pv", "cat FILE | pv -q | wc -c"),
    ("align-perl", "perl", "cat FILE | perl -e 'while (sysread STDIN, $block, 1 << 20) {}'"),
    ("align-git", "git", "cat FILE | git hash-object --stdin"),
    (
        "align-python",
        "python3",
        "cat FILE | python3 -c 'import io\nblock = bytearray(1 << 20)\ninput = io.FileIO(0)\nwhile input.readinto(block): pass'",
    ),
    ("align-diff", "diff", "cat FILE | diff -q - FILE"),
    ("align-openssl", "openssl", "cat FILE | openssl dgst -blake2b512"),
    ("align-split", "split", "cat FILE | split -b 100M --filter 'cat > /dev/null'"),
    ("align-wc", "wc", "cat FILE | wc -c"),
];

pub(crate) fn targets() -> impl Iterator<Item = Target> {
    let promise = "a pipeline in `run`, in `run --align-buffers` and under `boost`, beside bash";
    PIPELINES.iter().map(move |(name, ..)| Target::slow(name, promise, pipeline))
}

fn pipeline(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let Some((_, program, text)) = PIPELINES.iter().find(|(known, ..)| *known == name) else {
        return Ok(Vec::new());
    };
    if model::file_on_path(program).is_none() {
        return skip(format!("no {program} (Debian: apt-get install {program})"));
    }
    let is_slow = host::copy_costs()?.slow_offsets().is_some();
    let text = text.replace("FILE", &big_file()?.display().to_string());
    let ours = |words: &[&str]| {
        let machine: &[&str] = if is_slow { &["env"] } else { &["env", MACHINE] };
        Timed::new(&[machine, &[hosepipe::PROGRAM], words, &[&text]].concat())
    };
    let [plain, run, aligned, boosted] = [
        bash(&text),
        ours(&["run"]),
        ours(&["run", "--align-buffers"]),
        ours(&["boost", "--quiet", "bash", "-c"]),
    ];
    let [plain, run, aligned, boosted] = lab.interleave(
        ROUNDS,
        [&|| seconds(&plain), &|| seconds(&run), &|| seconds(&aligned), &|| seconds(&boosted)],
    )?;
    let invented = if is_slow { "" } else { " (invented)" };
    let row = |what: &str, pair: [&Vec<f64>; 2]| {
        BenchRow::beside(format!("{name} {what}"), Unit::Seconds, pair.map(Vec::clone), Wanted::Nothing)
    };
    Ok(vec![
        row(&format!("aligned/run{invented}"), [&aligned, &run]),
        row("run", [&run, &plain]),
        row(&format!("aligned{invented}"), [&aligned, &plain]),
        row(&format!("boost{invented}"), [&boosted, &plain]),
    ])
}
