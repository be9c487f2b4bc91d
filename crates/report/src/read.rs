//! Reads records: the kind of a text, or a sentence on why it is no record.

mod checks;
mod earlier;

use checks::Measurable;
use model::{Record, SCHEMA};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::error::Category;
use thiserror::Error;

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

/// Why a text is no record: the file, the error and its position, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ReadError(String);

/// The keys of a JSON object, and the values of two of them.
#[derive(Default)]
struct Outline {
    schema: Option<String>,
    kind: Option<String>,
    keys: Vec<String>,
}

/// Reads a record of any kind; `name` is its name in messages.
///
/// # Errors
/// The text is no JSON or ends too early, is no record, has another schema, or is damaged.
pub fn read(name: &str, text: &str) -> Result<Loaded, ReadError> {
    let refused = |problem: String| ReadError(format!("{name}: {problem}"));
    let damaged = |what: String| refused(format!("the record is damaged: {what}"));
    let mut outline = Outline::default();
    let mut json = serde_json::Deserializer::from_str(text);
    if let Err(error) = outline.deserialize(&mut json).and_then(|()| json.end()) {
        return Err(match error.classify() {
            Category::Data if outline.schema.as_deref() == Some(SCHEMA) => damaged(error.to_string()),
            _ => refused(not_a_record(text, &error)),
        });
    }
    let kind = outline.kind().map_err(&refused)?;
    let record = Record::of_kind(kind, &mut serde_json::Deserializer::from_str(text));
    let record = record.or_else(|error| match earlier::counted_from_one(text) {
        Some(value) => Record::of_kind(kind, value),
        None => Err(error),
    });
    let record = record.map_err(|error| damaged(error.to_string()))?;
    checks::check(&record).map_err(damaged)?;
    Ok(Loaded::new(name, record))
}

impl Outline {
    /// The kind of the record: its field `kind`, or, in records of earlier versions, the kind with one of its keys.
    fn kind(&self) -> Result<&str, String> {
        match self.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(other) => {
                return Err(format!(
                    "the record has the schema `{other}`, and this hosepipe reads `{SCHEMA}`: use the hosepipe that wrote it"
                ));
            }
            None => return Err(no_record("it has no `schema`")),
        }
        let by_key = || Record::KINDS.iter().find(|(_, key)| self.keys.iter().any(|own| own == key));
        self.kind.as_deref().or_else(|| Some(by_key()?.0)).ok_or_else(|| {
            let keys: Vec<String> = Record::KINDS.iter().map(|(_, key)| format!("`{key}`")).collect();
            no_record(&format!("it has no `kind`, and none of {}", keys.join(", ")))
        })
    }
}

/// Reads the outline of a whole text, and checks its numbers.
impl<'de> DeserializeSeed<'de> for &mut Outline {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Outline {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let word = match key.as_str() {
                "schema" => &mut self.schema,
                "kind" => &mut self.kind,
                _ => {
                    map.next_value::<Measurable>()?;
                    self.keys.push(key);
                    continue;
                }
            };
            if word.is_some() {
                return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
            }
            *word = map.next_value::<serde_json::Value>()?.as_str().map(str::to_owned);
        }
        Ok(())
    }
}

fn no_record(what: &str) -> String {
    format!("this JSON is no record of hosepipe ({what}); a record is what `hosepipe bench --json F` writes")
}

/// Why a text is no record, by its outline.
fn not_a_record(text: &str, error: &serde_json::Error) -> String {
    let what = match error.classify() {
        _ if text.trim().is_empty() => "the file is empty".to_owned(),
        Category::Eof => {
            return format!(
                "the JSON ends in the middle, at line {}, column {}: the file was cut off; write the record again",
                error.line(),
                error.column()
            );
        }
        Category::Data => return no_record(&error.to_string()),
        Category::Syntax | Category::Io => error.to_string(),
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
        assert!(message("[1, 2]").contains("no record of hosepipe"), "{}", message("[1, 2]"));
        assert!(message("{\"cases\": []}").contains("has no `schema`"));
        assert!(message("{\"schema\": \"hosepipe/1\"}").contains("none of `cases`"));
        let other = message("{\"schema\": \"hosepipe/9\", \"cases\": []}");
        assert!(other.contains("`hosepipe/9`") && other.contains("reads `hosepipe/1`"), "{other}");
        let damaged = message("{\"schema\": \"hosepipe/1\", \"cases\": []}");
        assert!(damaged.contains("run.json: the record is damaged: missing field"), "{damaged}");
    }

    #[test]
    fn numbers_that_cannot_be_measured_are_refused_everywhere() {
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

    /// Expected: a record has the field `kind`, and records of earlier versions without it are read, too.
    #[test]
    fn a_record_is_read_by_its_kind_and_without_one_by_its_keys() {
        for (kind, record) in [
            ("run", Record::from(model::RunRecord::default())),
            ("compare", model::CompareRecord::default().into()),
            ("diff", model::DiffRecord::default().into()),
            ("top", model::TopRecord::default().into()),
        ] {
            let mut text = serde_json::to_value(&record).expect("JSON");
            assert_eq!(text["kind"], kind);
            assert_eq!(read("a", &text.to_string()).map(|loaded| loaded.record), Ok(record.clone()));
            text.as_object_mut().expect("an object").remove("kind");
            assert_eq!(read("a", &text.to_string()).map(|loaded| loaded.record), Ok(record));
            text["kind"] = "nothing".into();
            assert!(message(&text.to_string()).contains("there is no kind `nothing`"));
        }
    }
}
