//! Records read back: which kind a text is, and in plain words why it is none.

mod checks;

use checks::Measurable;
use model::{
    BenchRecord, BoostRecord, CompareRecord, DiffRecord, FleetRecord, Host, RunRecord, SCHEMA, StudyRecord,
    Tool, TopRecord,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use thiserror::Error;

/// A record of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRecord {
    /// Of `hosepipe bench`.
    Bench(BenchRecord),
    /// Of `hosepipe run`.
    Run(RunRecord),
    /// Of `hosepipe compare`.
    Compare(CompareRecord),
    /// Of `hosepipe reproduce`.
    Study(StudyRecord),
    /// Of `hosepipe diff`.
    Diff(DiffRecord),
    /// Of `hosepipe boost`.
    Boost(BoostRecord),
    /// Of `hosepipe top`.
    Top(TopRecord),
    /// Of `hosepipe fleet`.
    Fleet(FleetRecord),
}

/// A record with the name it was given by: a path, as a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The name.
    pub name: String,
    /// The record.
    pub record: AnyRecord,
}

impl Loaded {
    /// A record under a name.
    pub fn new(name: &str, record: AnyRecord) -> Self {
        Self { name: name.to_owned(), record }
    }
}

/// Why a text is no record; each names the file and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// It ends too early.
    #[error(
        "{name}: the JSON ends in the middle, at line {line}, column {column}: the file was cut off; write the record \
         again"
    )]
    Truncated {
        /// The file.
        name: String,
        /// Where it ends.
        line: usize,
        /// Where it ends.
        column: usize,
    },
    /// It is no JSON.
    #[error("{name}: this is not JSON: {what}; a record is what `hosepipe bench --json F` writes")]
    NotJson {
        /// The file.
        name: String,
        /// What is wrong, and where.
        what: String,
    },
    /// It is JSON and no record.
    #[error(
        "{name}: this JSON is no record of hosepipe ({what}); a record is what `hosepipe bench --json F` writes"
    )]
    NoRecord {
        /// The file.
        name: String,
        /// What it lacks.
        what: String,
    },
    /// Another version wrote it.
    #[error(
        "{name}: the record has the schema `{found}`, and this hosepipe reads `{SCHEMA}`: use the hosepipe that \
            wrote it"
    )]
    OtherSchema {
        /// The file.
        name: String,
        /// The schema it has.
        found: String,
    },
    /// A record that lacks something, or has something in a wrong form.
    #[error("{name}: the record is damaged: {what}")]
    Damaged {
        /// The file.
        name: String,
        /// What is wrong, and where.
        what: String,
    },
}

/// What tells the kinds apart; a field that is there may hold anything.
#[derive(Deserialize)]
struct Kind {
    schema: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "present")]
    cases: bool,
    #[serde(default, deserialize_with = "present")]
    stages: bool,
    #[serde(default, deserialize_with = "present")]
    results: bool,
    #[serde(default, deserialize_with = "present")]
    parts: bool,
    #[serde(default, deserialize_with = "present")]
    changes: bool,
    #[serde(default, deserialize_with = "present")]
    boosted: bool,
    #[serde(default, deserialize_with = "present")]
    chains: bool,
    #[serde(default, deserialize_with = "present")]
    meetings: bool,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// Reads a record of any kind; `name` is how messages call it.
///
/// # Errors
/// Text that is no JSON or ends too early, JSON that is no record, a record of another schema or with damage.
pub fn read(name: &str, text: &str) -> Result<Loaded, ReadError> {
    let record = any(name, text)?;
    let damaged = |what: String| ReadError::Damaged { name: name.to_owned(), what };
    typed::<Measurable>(name, text)?;
    checks::check(&record).map_err(damaged)?;
    Ok(Loaded::new(name, record))
}

/// A record of any kind by its form alone.
fn any(name: &str, text: &str) -> Result<AnyRecord, ReadError> {
    // Long records are those of bench: which kind they are is not looked for first.
    if let Ok(record) = serde_json::from_str::<BenchRecord>(text)
        && record.schema == SCHEMA
    {
        return Ok(AnyRecord::Bench(record));
    }
    let kind: Kind = serde_json::from_str(text).map_err(|error| not_a_record(name, text, &error))?;
    let no_record = |what: &str| ReadError::NoRecord { name: name.to_owned(), what: what.to_owned() };
    match &kind.schema {
        Some(serde_json::Value::String(schema)) if schema == SCHEMA => {}
        Some(serde_json::Value::String(schema)) => {
            return Err(ReadError::OtherSchema { name: name.to_owned(), found: schema.clone() });
        }
        _ => return Err(no_record("it has no `schema`")),
    }
    Ok(match kind {
        Kind { cases: true, .. } => AnyRecord::Bench(typed(name, text)?),
        Kind { stages: true, .. } => AnyRecord::Run(typed(name, text)?),
        Kind { results: true, .. } => AnyRecord::Compare(typed(name, text)?),
        Kind { parts: true, .. } => AnyRecord::Study(typed(name, text)?),
        Kind { changes: true, .. } => AnyRecord::Diff(typed(name, text)?),
        Kind { boosted: true, .. } => AnyRecord::Boost(typed(name, text)?),
        Kind { chains: true, .. } => AnyRecord::Top(typed(name, text)?),
        Kind { meetings: true, .. } => AnyRecord::Fleet(typed(name, text)?),
        _ => {
            let kinds =
                "`cases`, `stages`, `results`, `parts`, `changes`, `boosted`, `chains` and `meetings`";
            return Err(no_record(&format!("it has none of {kinds}")));
        }
    })
}

fn typed<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ReadError> {
    serde_json::from_str(text)
        .map_err(|error| ReadError::Damaged { name: name.to_owned(), what: error.to_string() })
}

fn not_a_record(name: &str, text: &str, error: &serde_json::Error) -> ReadError {
    let name = name.to_owned();
    match error.classify() {
        _ if text.trim().is_empty() => ReadError::NotJson { name, what: "the file is empty".to_owned() },
        Category::Eof => ReadError::Truncated { name, line: error.line(), column: error.column() },
        Category::Data => ReadError::NoRecord { name, what: error.to_string() },
        Category::Syntax | Category::Io => ReadError::NotJson { name, what: error.to_string() },
    }
}

impl AnyRecord {
    /// The command whose record it is.
    pub fn command(&self) -> &'static str {
        match self {
            Self::Bench(_) => "bench",
            Self::Run(_) => "run",
            Self::Compare(_) => "compare",
            Self::Study(_) => "reproduce",
            Self::Diff(_) => "diff",
            Self::Boost(_) => "boost",
            Self::Top(_) => "top",
            Self::Fleet(_) => "fleet",
        }
    }

    /// Whether it was ended before every trial was made.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Bench(record) => record.settings.interrupted,
            Self::Run(_) | Self::Boost(_) | Self::Top(_) | Self::Fleet(_) => false,
            Self::Compare(record) => record.interrupted,
            Self::Study(record) => record.interrupted,
            Self::Diff(record) => record.interrupted,
        }
    }

    /// The machine.
    pub fn host(&self) -> &Host {
        match self {
            Self::Bench(record) => &record.host,
            Self::Run(record) => &record.host,
            Self::Compare(record) => &record.host,
            Self::Study(record) => &record.host,
            Self::Diff(record) => &record.host,
            Self::Boost(record) => &record.host,
            Self::Top(record) => &record.host,
            Self::Fleet(record) => &record.host,
        }
    }

    /// Which hosepipe made it.
    pub fn tool(&self) -> &Tool {
        match self {
            Self::Bench(record) => &record.tool,
            Self::Run(record) => &record.tool,
            Self::Compare(record) => &record.tool,
            Self::Study(record) => &record.tool,
            Self::Diff(record) => &record.tool,
            Self::Boost(record) => &record.tool,
            Self::Top(record) => &record.tool,
            Self::Fleet(record) => &record.tool,
        }
    }

    /// The command line, after the program's name.
    pub fn arguments(&self) -> &[String] {
        match self {
            Self::Bench(record) => &record.arguments,
            Self::Run(record) => &record.arguments,
            Self::Compare(record) => &record.arguments,
            Self::Study(record) => &record.arguments,
            Self::Diff(record) => &record.arguments,
            Self::Boost(record) => &record.arguments,
            Self::Top(record) => &record.arguments,
            Self::Fleet(record) => &record.arguments,
        }
    }

    /// When it began (RFC 3339).
    pub fn started(&self) -> &str {
        match self {
            Self::Bench(record) => &record.started,
            Self::Run(record) => &record.started,
            Self::Compare(record) => &record.started,
            Self::Study(record) => &record.started,
            Self::Diff(record) => &record.started,
            Self::Boost(record) => &record.started,
            Self::Top(record) => &record.started,
            Self::Fleet(record) => &record.started,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        read("run.json", text).expect_err("no record").to_string()
    }

    #[test]
    fn what_is_no_record_is_told_so_with_the_name_and_the_place() {
        assert!(message("").contains("run.json: this is not JSON: the file is empty"));
        assert!(message("hello").contains("run.json: this is not JSON"), "{}", message("hello"));
        let cut = message("{\"schema\": \"hosepipe/1\",\n \"cases\": [");
        assert!(cut.contains("run.json: the JSON ends in the middle, at line 2, column 11"), "{cut}");
        assert!(message("[1, 2]").contains("no record of hosepipe"), "{}", message("[1, 2]"));
        assert!(message("{\"cases\": []}").contains("has no `schema`"));
        assert!(message("{\"schema\": \"hosepipe/1\"}").contains("none of `cases`"));
        let other = message("{\"schema\": \"hosepipe/9\", \"cases\": []}");
        assert!(other.contains("`hosepipe/9`") && other.contains("reads `hosepipe/1`"), "{other}");
        let damaged = message("{\"schema\": \"hosepipe/1\", \"cases\": []}");
        assert!(damaged.contains("run.json: the record is damaged: missing field"), "{damaged}");
    }

    #[test]
    fn numbers_that_nobody_can_measure_are_refused_wherever_they_are() {
        let result = |times: &str| {
            format!(
                r#"{{"schema": "hosepipe/1", "tool": {{"version": "0"}}, "host": {}, "arguments": [], "started": "", "seed": 1,
                   "trials": 1, "warmup": 0, "interrupted": false, "results": [{{"pipeline": "a", "via": "pipe",
                   "times_s": [{times}], "output_bytes": 0}}], "unknown": 1e17}}"#,
                serde_json::to_string(&Host::default()).expect("JSON")
            )
        };
        assert!(read("run.json", &result("1.5, 0, 1e3")).is_ok());
        for (times, said) in [
            ("1e308, 1e308", "1e308 is more than anything that can be measured"),
            ("1, -1.5", "-1.5e0 is negative at line"),
            ("-1", "-1 is negative at line"),
        ] {
            let message = message(&result(times));
            assert!(message.contains("the record is damaged") && message.contains(said), "{message}");
        }
    }
}
