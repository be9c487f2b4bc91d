//! `--suite`: a fixed set of cases with a name and a version, so that records of different kernels, machines and distributions have the
//! same cases. The keys of an entry have the meaning of the options with the same names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use engine::references;
use model::{AXES, Case, Placement, Suite, describe_errno};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::args::BenchArgs;
use super::cells::cells;
use crate::terminal::UsageError;
use crate::typed;

/// The built-in suites, by name.
const SUITES: [(&str, &str); 2] =
    [("kernel", include_str!("../../suites/kernel.toml")), ("ipc", include_str!("../../suites/ipc.toml"))];

/// The contents of a suite file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    name: String,
    version: u32,
    trials: u32,
    /// The time of the whole run.
    time: Option<String>,
    cases: Vec<Spanned<SuiteEntry>>,
}

/// An entry of the file: the values of each key. It gives one case for each combination of values.
type SuiteEntry = BTreeMap<EntryKey, toml::Value>;

/// A key of an entry: `specs`, or an option of `bench` that decides what a case is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EntryKey(&'static str);

/// The key of the mechanisms.
const SPECS: EntryKey = EntryKey("specs");
/// The key of the placements.
const PLACE: EntryKey = EntryKey("place");
/// Keys that every entry has.
const NEEDED: [EntryKey; 4] = [SPECS, EntryKey("workload"), EntryKey("block"), PLACE];

impl<'de> Deserialize<'de> for EntryKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        let options = AXES.iter().filter(|axis| axis.is_option).filter_map(|axis| axis.name);
        std::iter::once(SPECS.0).chain(options).find(|known| *known == key).map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "unknown field `{key}`: a key is `specs` or an option that describes a case"
            ))
        })
    }
}

/// A suite with its cases.
#[derive(Debug)]
pub(super) struct SuitePlan {
    pub(super) suite: Suite,
    pub(super) cases: Vec<Case>,
    pub(super) trials: u32,
    pub(super) budget: Option<Duration>,
}

/// Reads the suite of this name, or else the file.
///
/// # Errors
/// There is neither, or the file is not a suite; then the message names the line.
pub(super) fn read(named: &str) -> Result<SuitePlan, UsageError> {
    if let Some((name, text)) = SUITES.iter().find(|(name, _)| *name == named) {
        return parse(name, text);
    }
    let text = read_at_most(Path::new(named)).map_err(|error| {
        let known = SUITES.map(|(name, _)| name).join(", ");
        UsageError(format!(
            "--suite {named}: no such suite ({known}), and as a file: {}",
            describe_errno(&error)
        ))
    })?;
    parse(named, &text)
}

/// The largest file that can be a suite.
const SUITE_BYTES_MAX: u64 = 1 << 20;

fn read_at_most(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(SUITE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SUITE_BYTES_MAX {
        return Err(io::Error::other("larger than 1 MiB: not a suite"));
    }
    Ok(text)
}

fn parse(named: &str, text: &str) -> Result<SuitePlan, UsageError> {
    let wrong = |at: Option<Range<usize>>, what: &str| {
        let line = |at: Range<usize>| text.bytes().take(at.start).filter(|byte| *byte == b'\n').count() + 1;
        let line = at.map(|at| format!(", line {}", line(at))).unwrap_or_default();
        UsageError(format!("{named}{line}: {}", what.trim()))
    };
    let file: SuiteFile = toml::from_str(text).map_err(|error| wrong(error.span(), error.message()))?;
    if file.trials == 0 || file.cases.is_empty() {
        return Err(wrong(None, "a suite needs at least one trial and one [[cases]] entry"));
    }
    let printable = !file.name.is_empty() && !file.name.chars().any(char::is_control);
    if file.version == 0 || !printable {
        return Err(wrong(None, "a suite needs a name of one line and a version of at least 1"));
    }
    let budget = file.time.as_deref().map(typed::positive_duration).transpose();
    let budget = budget.map_err(|problem| wrong(None, &format!("time: {problem}")))?;
    let mut cases = Vec::new();
    for entry in &file.cases {
        let found = entry_cases(entry.get_ref()).map_err(|problem| wrong(Some(entry.span()), &problem))?;
        cases.extend(found);
    }
    cases.extend(references(None, &cases));
    let suite = Suite { name: file.name, version: file.version };
    Ok(SuitePlan { suite, cases, trials: file.trials, budget })
}

/// The cases of an entry, the same on every machine: a placement that this machine does not have becomes a row that says so.
fn entry_cases(entry: &SuiteEntry) -> Result<Vec<Case>, String> {
    let words = |key: &EntryKey| entry.get(key).map_or(Ok(Vec::new()), words);
    for key in &NEEDED {
        if words(key)?.is_empty() {
            return Err(format!("`{}` needs at least one value", key.0));
        }
    }
    let mut options = Vec::new();
    for key in entry.keys().filter(|key| ![SPECS, PLACE].contains(key)) {
        let words = words(key)?;
        if !words.is_empty() {
            options.push(format!("--{}={}", key.0, words.join(",")));
        }
    }
    // The rest are specs, even if one begins with `-`.
    options.push("--".to_owned());
    options.extend(words(&SPECS)?);
    let args = typed::arguments::<BenchArgs>("suite", options);
    let args = args.map_err(|error| typed::first_line(&error))?;
    let placements: Result<Vec<Placement>, _> = words(&PLACE)?.iter().map(|word| word.parse()).collect();
    let placements = placements.map_err(|error: model::UnknownWord| error.to_string())?;
    cells(&args, &placements).map_err(|problem| problem.to_string())
}

/// The words of a value, as they are typed on a command line.
fn words(value: &toml::Value) -> Result<Vec<String>, String> {
    match value {
        toml::Value::String(word) => Ok(vec![word.clone()]),
        toml::Value::Integer(number) => Ok(vec![number.to_string()]),
        toml::Value::Array(list) => Ok(list.iter().map(words).collect::<Result<Vec<_>, _>>()?.concat()),
        other => Err(format!(
            "a value of type {}: it must be a text, a number or a list of them",
            other.type_str()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse("my.toml", text).expect_err("wrong").to_string()
    }

    const HEAD: &str = "name = \"mine\"\nversion = 3\ntrials = 2\n";
    const ENTRY: &str =
        "[[cases]]\nspecs = [\"pipe\"]\nworkload = \"stream\"\nblock = [\"4KiB\"]\nplace = [\"any\"]\n";

    #[test]
    fn the_suites_of_this_program_are_sound_and_named_as_they_are_typed() {
        for (name, text) in SUITES {
            let plan = parse(name, text).expect("a sound suite");
            assert_eq!(plan.suite.name, name);
            assert!(plan.cases.len() > 10 && plan.budget.is_some(), "{name}");
        }
    }

    #[test]
    fn an_error_names_its_line() {
        let plan = parse("my.toml", &format!("{HEAD}{ENTRY}pairs = [1, 2]\n")).expect("sound");
        assert_eq!((plan.suite, plan.trials), (Suite { name: "mine".to_owned(), version: 3 }, 2));
        let of_pairs: Vec<Option<u32>> = plan.cases.iter().map(|case| case.load.pairs).collect();
        assert_eq!(of_pairs[..2], [Some(1), Some(2)]);
        let unknown = problem(&format!("{HEAD}{ENTRY}blocks = 3\n"));
        assert!(unknown.contains("my.toml, line 9: unknown field `blocks`"), "{unknown}");
        let spec = problem(&format!("{HEAD}{}", ENTRY.replace("pipe", "pip")));
        assert!(spec.contains("my.toml, line 4: ") && spec.contains("did you mean `pipe`?"), "{spec}");
        let place = problem(&format!("{HEAD}{}", ENTRY.replace("any", "moon")));
        assert!(place.contains("line 4: ") && place.contains("moon"), "{place}");
        assert!(problem(HEAD).contains("cases"), "{}", problem(HEAD));
        let time = problem(&format!("time = \"soon\"\n{HEAD}{ENTRY}"));
        assert!(time.contains("my.toml: time: "), "{time}");
        for (wrong, said) in
            [("block = []", "`block`"), ("specs = []", "`specs`"), ("tasks = \"\"", "--tasks")]
        {
            let key = wrong.split(' ').next().unwrap_or_default();
            let kept: Vec<&str> = ENTRY.lines().filter(|line| !line.starts_with(key)).collect();
            let problem = problem(&format!("{HEAD}{}\n{wrong}\n", kept.join("\n")));
            assert!(problem.contains("line 4: ") && problem.contains(said), "{wrong}: {problem}");
        }
    }
}
