//! `hosepipe tune` over twelve pipelines: the time of what it prints as a multiple of the time of what it was given, and how long it searched.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use model::TuneRecord;

use crate::hosepipe;
use crate::pipelines::made;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

pub(crate) const TARGETS: &[Target] = &[Target::slow(
    "tune",
    "twelve pipelines, the text that tune prints beside the given one: in the median at most 0.5 of the time, none above 1.02, each output the same",
    tuned,
)];

/// A file: its name, its size, and what makes it. `{size}` is that size.
const FILES: &[(&str, u64, &str)] = &[
    (
        "tune-log",
        120_000_000,
        r#"seq 100000000 | awk '{x = ($1 * 7919) % 100003; print "host" x % 5003 " - - [" $1 "] \"" (x % 4 ? "GET" : "POST") " /page/" x % 1009 " HTTP/1.1\" " (x % 7 ? 200 : 404) " " x}' | head -c 120000000"#,
    ),
    (
        "tune-csv",
        80_000_000,
        r#"seq 100000000 | awk '{x = ($1 * 104729) % 1000003; print $1 "," x % 977 ",name" x % 10007 "," x / 7 "," (x % 2 ? "yes" : "no")}' | head -c 80000000"#,
    ),
    (
        "tune-json",
        60_000_000,
        r#"seq 100000000 | awk '{x = ($1 * 7919) % 100003; print "{\"id\":" $1 ",\"user\":\"u" x % 997 "\",\"ms\":" x % 500 ",\"ok\":" (x % 5 ? "true" : "false") "}"}' | head -c 60000000"#,
    ),
    (
        "tune-words",
        40_000_000,
        r#"seq 100000000 | awk '{x = ($1 * 7919) % 100003; printf "%s", "word" x % 20011 ($1 % 12 ? " " : ".\n")}' | head -c 40000000"#,
    ),
    (
        "tune-genome",
        40_000_000,
        r#"seq 100000000 | awk 'BEGIN {split("A C G T", b, " ")} {x = ($1 * 1103515245 + 12345) % 2147483648; s = s b[int(x / 65536) % 4 + 1]; if (length(s) == 60) {print s; s = ""}}' | head -c 40000000"#,
    ),
];

/// The pipelines, with the names of files between braces.
const PIPELINES: [&str; 12] = [
    r#"cat {tune-log} | grep GET | cut -d" " -f6 | sort | uniq -c | sort -rn | head"#,
    r#"cut -d" " -f1 {tune-log} | sort | uniq | wc -l"#,
    r#"cat {tune-log} | grep 404 | awk '{print $6}' | sort | uniq -c | sort -rn | head -n 20"#,
    r#"grep POST {tune-log} | grep page/7 | wc -l"#,
    r#"cut -d, -f3 {tune-csv} | sort | uniq -d"#,
    r#"sort -t, -k3,3 {tune-csv} | head -n 100"#,
    r#"cat {tune-csv} | tr a-z A-Z | grep YES | cut -d, -f2 | sort -n | uniq -c"#,
    r#"grep '"ok":false' {tune-json} | sed 's/.*"user":"\([^"]*\)".*/\1/' | sort | uniq -c | sort -rn | head"#,
    r#"gzip -dc {tune-gz} | cut -d" " -f1 | sort -u | wc -l"#,
    r#"tr -cs A-Za-z0-9 '\n' <{tune-words} | tr A-Z a-z | sort | uniq -c | sort -rn | head"#,
    r#"cat {tune-genome} | cut -c1-6 | sort | uniq -c | sort -rn"#,
    r#"fold -w 12 {tune-genome} | sort | uniq -c | sort -rn | head"#,
];

fn tuned(name: &str, _: &Laboratory) -> Result<Vec<BenchRow>> {
    let mut files = Vec::new();
    for (file, bytes, command) in FILES {
        files.push((*file, made(file, *bytes, command)?.display().to_string()));
    }
    let log = &files[0].1;
    files.push(("tune-gz", made("tune-gz", 1, &format!("gzip -c {log}"))?.display().to_string()));
    let (mut rows, mut ratios) = (Vec::new(), Vec::new());
    for (number, pipeline) in PIPELINES.iter().enumerate() {
        let text = files
            .iter()
            .fold((*pipeline).to_owned(), |text, (name, path)| text.replace(&format!("{{{name}}}"), path));
        let record = tune(&text)?;
        ensure!(record.equal, "the output of `{}` differs", record.text);
        let original = record.original_s.context("it was not timed")?;
        let tuned = record.tuned_s.unwrap_or(original);
        let name = format!("{name} {}", number + 1);
        println!("{name}: {}", record.text);
        rows.push(BenchRow::beside(
            &name,
            Unit::Seconds,
            [vec![tuned], vec![original]],
            Wanted::AtMost(1.02),
        ));
        rows.push(BenchRow::alone(
            format!("{name} search"),
            Unit::Seconds,
            vec![record.search_s],
            Wanted::Nothing,
        ));
        ratios.push(record.ratio);
    }
    rows.push(BenchRow::alone(format!("{name} median"), Unit::Count, ratios, Wanted::AtMost(0.5)));
    Ok(rows)
}

fn tune(text: &str) -> Result<TuneRecord> {
    let output = Command::new(hosepipe::PROGRAM).args(["tune", "--json", "-", text]).output()?;
    model::from_json(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}
