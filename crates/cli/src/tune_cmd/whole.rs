//! Changes to the whole pipeline: `hosepipe run`, with its larger pipes or another link, and `hosepipe spread`, which runs it over parts of its input
//! on all CPUs. Whether a stage gives the same over parts is tried, not known.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use model::{ByteSize, TuneChange, file_on_path, shell_quoted};
use pipeline::shell::{Kind, Shell};
use pipeline::tune::safety;
use pipeline::tune::script::Script;
use pipeline::tune::text::{Pipeline, Stage};

use crate::copies;

/// Programs that may treat each line, or each byte, by itself.
const BY_LINE: &[&str] = &[
    "grep", "egrep", "fgrep", "cut", "tr", "sed", "awk", "gawk", "mawk", "rev", "jq", "jaq", "gojq", "iconv",
    "fold", "expand",
];
/// Arguments of grep with which its lines are not those of its parts.
const ACROSS_LINES: &[&str] = &["-c", "-m", "-n", "-q", "-l", "-L", "-A", "-B", "-C", "-b"];
/// Parts for each CPU: the last one to end is then a small one.
const PARTS: u64 = 4;
/// Smallest part, and the smallest input worth cutting.
const PART_BYTES_MIN: u64 = 1 << 20;
const INPUT_BYTES_MIN: u64 = 16 << 20;
/// What adds the results of `wc -l` and `grep -c`.
const SUM: &str = "awk '{n += $1} END {printf \"%.0f\\n\", n}'";
/// The rule `count-by-hash`, and what adds its results.
const COUNTS: &str = r#"printf "%7d %s\n", n[line], line}"#;
const SUM_COUNTS: &str = r#"awk '{count = $1; sub(/^ *[0-9]+ /, ""); n[$0] += count} END {for (line in n) printf "%7d %s\n", n[line], line}'"#;

/// A change to the whole pipeline.
pub(super) struct Whole {
    rule: &'static str,
    pub(super) text: String,
    equal: Option<&'static str>,
    differs: Option<&'static str>,
}

impl Whole {
    pub(super) fn change(&self) -> TuneChange {
        TuneChange {
            rule: self.rule.to_owned(),
            equal_because: self.equal.map(str::to_owned),
            differs: self.differs.map(str::to_owned),
            ..TuneChange::default()
        }
    }
}

/// What can be tried with a plain pipeline, which `shell` runs.
pub(super) fn wholes(script: &Script, shell: &Shell) -> Vec<Whole> {
    let text = script.to_string();
    let Some(pipeline) = script.as_pipeline().filter(|_| safety::stops(&text).is_none()) else {
        return Vec::new();
    };
    let own = match shell.kind {
        Kind::Bash => String::new(),
        _ => format!("--shell {} ", shell_quoted(shell.name.as_bytes())),
    };
    let run = |rule, options: &str| Whole {
        rule,
        text: format!("hosepipe run {own}{options}{}", shell_quoted(text.as_bytes())),
        equal: Some("links pass every byte on"),
        differs: None,
    };
    let mut all: Vec<Whole> = spread(pipeline, &own).into_iter().collect();
    if pipeline.stages().count() > 1 {
        all.push(run("larger-pipes", ""));
        all.push(run("tmpfile-links", "--via tmpfile "));
    }
    if copies::alignment_has_effect() {
        all.push(run("align-buffers", "--align-buffers "));
    }
    all.extend(one_cpu(&text, shell));
    all
}

/// All stages on one CPU, whose caches then hold what flows between them.
fn one_cpu(text: &str, shell: &Shell) -> Option<Whole> {
    let cpu = host::cpus().first()?.id;
    file_on_path("taskset")?;
    let [shell, text] = [shell.name.as_bytes(), text.as_bytes()].map(shell_quoted);
    Some(Whole {
        rule: "one-cpu",
        text: format!("taskset -c {cpu} {shell} -c {text}"),
        equal: None,
        differs: Some("a program that asks for the number of CPUs is answered 1"),
    })
}

/// The pipeline over parts of its only input file.
fn spread(pipeline: &Pipeline, own: &str) -> Option<Whole> {
    let stages: Vec<&Stage> = pipeline.stages().collect();
    let (file, first) = without_input(stages.first()?)?;
    let bytes = fs::metadata(&file).ok().filter(fs::Metadata::is_file)?.len();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    if bytes < INPUT_BYTES_MIN || cpus < 2 {
        return None;
    }
    let mut stages: Vec<Stage> = stages.into_iter().cloned().collect();
    match first {
        Some(first) => stages[0] = first,
        None => drop(stages.remove(0)),
    }
    let (map, reduce) = map_and_reduce(&stages)?;
    let part = (bytes / (cpus * PARTS)).max(PART_BYTES_MIN).next_multiple_of(PART_BYTES_MIN);
    let [map, reduce] = [map, reduce].map(|text| shell_quoted(text.as_bytes()));
    let file = model::shell_line(&[file]);
    Some(Whole {
        rule: "parts-on-all-cpus",
        text: format!("hosepipe spread {own}--split {} --map {map} --reduce {reduce} {file}", ByteSize(part)),
        equal: None,
        differs: Some(
            "a stage that looks beyond a line would differ with other data, and without a match the status could be another one",
        ),
    })
}

/// The file that a first stage reads, and the stage without it; no stage where it does nothing else.
fn without_input(stage: &Stage) -> Option<(String, Option<Stage>)> {
    let mut without = stage.clone();
    if let [typed] = stage.redirections.as_slice() {
        let one =
            Pipeline { places: vec![vec![Stage { redirections: vec![typed.clone()], ..Stage::default() }]] };
        without.redirections.clear();
        return typed
            .starts_with('<')
            .then(|| one.names().next())
            .flatten()
            .map(|file| (file, Some(without)));
    }
    let last = stage.words.last().filter(|_| stage.words.len() > 1 && stage.redirections.is_empty())?;
    let file = last.value.clone().filter(|name| fs::metadata(name).is_ok_and(|found| found.is_file()))?;
    without.words.pop();
    let only_copies = stage.program() == Some("cat") && without.words.len() == 1;
    Some((file, (!only_copies).then_some(without)))
}

fn is_grep(stage: &Stage) -> bool {
    stage.program().is_some_and(|name| name.ends_with("grep"))
}

/// Whether it is the table of the rule `count-by-hash`.
fn counts(stage: &Stage) -> bool {
    stage.words.iter().any(|word| word.text.contains(COUNTS))
}

/// Whether a stage may treat each line by itself: no numbers of lines, no ends of files, no tables of what came before.
fn is_by_line(stage: &&Stage) -> bool {
    const BEYOND: &[&str] = &["NR", "END", "BEGIN", "[$", "getline"];
    let Some(name) = stage.program().filter(|name| BY_LINE.contains(name)) else { return false };
    let looks_beyond = |text: &str| match name {
        _ if name.ends_with("awk") => BEYOND.iter().any(|part| text.contains(part)),
        _ if name.ends_with("grep") => ACROSS_LINES.iter().any(|option| text.starts_with(option)),
        "sed" => text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '$'),
        _ => false,
    };
    stage.arguments().iter().all(|word| word.value.as_deref().is_some_and(|text| !looks_beyond(text)))
}

/// What runs over each part, and over all its outputs, one behind the other.
fn map_and_reduce(stages: &[Stage]) -> Option<(String, String)> {
    let text = |stages: &[Stage]| stages.iter().map(Stage::to_string).collect::<Vec<_>>().join(" | ");
    let mut mapped = stages.iter().take_while(is_by_line).take_while(|stage| !counts(stage)).count();
    let arguments =
        |stage: &Stage| stage.arguments().iter().map(|word| word.text.clone()).collect::<Vec<_>>();
    let is = |stage: &Stage, name: &str| stage.program() == Some(name);
    // What also runs over parts, and what is then made of its results.
    let (more, again) = match &stages[mapped..] {
        [next, ..] if counts(next) => (1, SUM_COUNTS.to_owned()),
        [next, ..] if is(next, "wc") && arguments(next) == ["-l"] => (1, SUM.to_owned()),
        [next, ..] if is(next, "grep") && arguments(next).contains(&"-c".to_owned()) => (1, SUM.to_owned()),
        // The first lines are among the first ones of the parts.
        [first, next, ..]
            if is(first, "sort") && is(next, "head") && !arguments(next).concat().contains('c') =>
        {
            (2, text(&stages[mapped..mapped + 2]))
        }
        _ => (0, String::new()),
    };
    mapped += more;
    let last = stages[..mapped].last()?;
    // A part without a match is no failure.
    let end = if is_grep(last) { " || [ $? -eq 1 ]" } else { "" };
    let rest = text(&stages[mapped..]);
    let reduce = [again.as_str(), &rest].into_iter().filter(|part| !part.is_empty());
    let reduce_text = reduce.collect::<Vec<_>>().join(" | ");
    Some((text(&stages[..mapped]) + end, if reduce_text.is_empty() { "cat".to_owned() } else { reduce_text }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::tune::rules::rules;

    fn parts(text: &str) -> Option<(String, String)> {
        let pipeline = Pipeline::parse(text).expect("plain");
        map_and_reduce(&pipeline.stages().cloned().collect::<Vec<_>>())
    }

    #[test]
    fn the_longest_beginning_that_treats_lines_runs_over_parts() {
        let made = |text| parts(text).map(|(map, reduce)| format!("{map} / {reduce}"));
        assert_eq!(made("grep a | sort | uniq").as_deref(), Some("grep a || [ $? -eq 1 ] / sort | uniq"));
        assert_eq!(
            made("cut -f1 | sort -n | head -n 5 | wc").as_deref(),
            Some("cut -f1 | sort -n | head -n 5 / sort -n | head -n 5 | wc")
        );
        assert_eq!(made("sort -k2 | head").as_deref(), Some("sort -k2 | head / sort -k2 | head"));
        assert_eq!(made("sort | head -c5"), None);
        assert_eq!(made("tr a b | grep c").as_deref(), Some("tr a b | grep c || [ $? -eq 1 ] / cat"));
        assert_eq!(made("tr a b | wc -l").as_deref(), Some(&*format!("tr a b | wc -l / {SUM}")));
        assert_eq!(made("grep -c x").as_deref(), Some(&*format!("grep -c x || [ $? -eq 1 ] / {SUM}")));
        assert_eq!(made("sort | uniq"), None);
        assert_eq!(made("awk '!n[$0]++' | sort"), None, "a table of what came before");
        assert_eq!(made("sed 1d | sort"), None);
        assert_eq!(made("grep -n x | sort"), None, "numbers of lines are not those of parts");
    }

    /// The table of the rule, which is added over parts, is the one that is known here.
    #[test]
    fn the_table_of_the_rule_is_known() {
        let rule = rules().iter().find(|rule| rule.name == "count-by-hash").expect("a rule");
        let made = rule.apply(&Pipeline::parse("sort | uniq -c").expect("plain"), 0).expect("it holds");
        assert!(made.stages().next().is_some_and(counts));
    }

    #[test]
    fn an_input_is_an_operand_or_a_redirection() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let name = file.path().display().to_string();
        let of = |text: &str| {
            let pipeline = Pipeline::parse(text).expect("plain");
            without_input(pipeline.stages().next()?)
                .map(|(file, stage)| (file, stage.map(|stage| stage.to_string())))
        };
        assert_eq!(of(&format!("grep x {name}")), Some((name.clone(), Some("grep x".to_owned()))));
        assert_eq!(of(&format!("wc -l <{name}")), Some((name.clone(), Some("wc -l".to_owned()))));
        assert_eq!(of(&format!("cat {name}")), Some((name.clone(), None)));
        assert_eq!(of("grep x /nonexistent"), None);
    }
}
