//! Reads records of all kinds. The error for a text that is not a record says why, and what to do.

mod checks;

use model::{Record, SCHEMA};
use serde_json::error::Category;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::show::kind_of;

/// A record with its name, which usually is its path.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The name.
    pub name: String,
    /// The record.
    pub record: Record,
}

impl Loaded {
    /// A record under a name.
    pub fn new(name: &str, record: impl Into<Record>) -> Self {
        Self { name: name.to_owned(), record: record.into() }
    }
}

/// Why a text is not a record: the file, the error and its position, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ReadError(String);

/// Reads a record of any kind; `name` is its name in messages.
///
/// # Errors
/// The text is not JSON or ends too early, is not a record, has another schema, or is damaged.
pub fn read(name: &str, text: &str) -> Result<Loaded, ReadError> {
    let refused = |problem: String| ReadError(format!("{name}: {problem}"));
    let damaged = |what: String| refused(format!("the record is damaged: {what}"));
    let record = model::tree_from_json(text).map_err(|error| refused(not_json(text, &error)))?;
    let Value::Object(fields) = &record else {
        return Err(refused(not_a_record("it is not an object")));
    };
    let kind = kind(fields).map_err(&refused)?.to_owned();
    checks::numbers(&record).map_err(&damaged)?;
    let record = Record::of_kind(&kind, record).map_err(|error| damaged(error.to_string()))?;
    kind_of(&record).check().map_err(damaged)?;
    Ok(Loaded::new(name, record))
}

/// The kind of a record: its field `kind`.
fn kind(fields: &Map<String, Value>) -> Result<&str, String> {
    match fields.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(format!(
                "the record has the schema `{other}`, and this hosepipe reads `{SCHEMA}`: use the hosepipe that wrote it"
            ));
        }
        None => return Err(not_a_record("it has no `schema`")),
    }
    fields.get("kind").and_then(Value::as_str).ok_or_else(|| not_a_record("it has no `kind`"))
}

fn not_a_record(what: &str) -> String {
    format!("this JSON is not a record ({what}); a record is what `hosepipe bench --json F` writes")
}

fn not_json(text: &str, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let what = match error.classify() {
        _ if text.trim().is_empty() => "the file is empty".to_owned(),
        Category::Eof => {
            return format!(
                "the JSON ends in the middle, at line {line}, column {column}: the file was cut off; write the record again"
            );
        }
        _ => error.to_string(),
    };
    format!("this is not JSON: {what}; a record is what `hosepipe bench --json F` writes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Host;

    fn message(text: &str) -> String {
        read("run.json", text).expect_err("no record").to_string()
    }

    #[test]
    fn a_text_that_is_no_record_is_refused_with_its_name_and_the_position() {
        assert!(message("").contains("run.json: this is not JSON: the file is empty"));
        assert!(message("hello").contains("run.json: this is not JSON"), "{}", message("hello"));
        let cut = message("{\"schema\": \"hosepipe/1\",\n \"cases\": [");
        assert!(cut.contains("run.json: the JSON ends in the middle, at line 2, column 11"), "{cut}");
        assert!(message("[1, 2]").contains("this JSON is not a record"), "{}", message("[1, 2]"));
        assert!(message("{\"cases\": []}").contains("has no `schema`"));
        assert!(message("{\"schema\": \"hosepipe/1\"}").contains("has no `kind`"));
        let other = message("{\"schema\": \"hosepipe/9\", \"cases\": []}");
        assert!(other.contains("`hosepipe/9`") && other.contains("reads `hosepipe/1`"), "{other}");
        let damaged = message("{\"schema\": \"hosepipe/1\", \"kind\": \"bench\", \"cases\": []}");
        assert!(damaged.contains("run.json: the record is damaged: missing field"), "{damaged}");
    }

    #[test]
    fn numbers_that_cannot_be_measured_are_refused_everywhere() {
        let result = |times: &str| {
            format!(
                r#"{{"schema": "hosepipe/1", "kind": "compare", "tool": {{"version": "0"}}, "host": {}, "arguments": [], "started": "", "seed": {},
                   "trials": 1, "warmup": 0, "interrupted": false, "results": [{{"pipeline": "a", "via": "pipe",
                   "times_s": [{times}], "output_bytes": 0}}], "unknown": 1e17}}"#,
                serde_json::to_string(&Host::default()).expect("JSON"),
                u64::MAX
            )
        };
        assert!(read("run.json", &result("1.5, 0, 1e3")).is_ok());
        for (times, said) in [
            ("1e308, 1e308", "`results.0.times_s.0` is 1e308: more than anything that can be measured"),
            ("1, -1.5", "`results.0.times_s.1` is -1.5: negative"),
            ("-1", "`results.0.times_s.0` is -1: negative"),
            (
                "9007199254740993",
                "`results.0.times_s.0` is 9.007199254740992e15: more than anything that can be measured",
            ),
        ] {
            let message = message(&result(times));
            assert!(message.contains("the record is damaged") && message.contains(said), "{message}");
        }
    }

    #[test]
    fn a_record_is_read_by_its_kind() {
        for (kind, record) in [
            ("run", Record::from(model::RunRecord::default())),
            ("compare", model::CompareRecord::default().into()),
            ("diff", model::DiffRecord::default().into()),
            ("top", model::TopRecord::default().into()),
        ] {
            let mut text = serde_json::to_value(&record).expect("JSON");
            assert_eq!(text["kind"], kind);
            assert_eq!(read("a", &text.to_string()).map(|loaded| loaded.record), Ok(record.clone()));
            text["kind"] = "nothing".into();
            assert!(message(&text.to_string()).contains("there is no kind `nothing`"));
            text.as_object_mut().expect("an object").remove("kind");
            assert!(message(&text.to_string()).contains("it has no `kind`"));
        }
    }
}
