//! The JSON Schema of records: made from the types, and fitted by real records.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use model::{Record, SCHEMA};
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};

/// Where the schema is kept, which `hosepipe help record --schema` prints.
const FILE: &str = "docs/record.schema.json";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema as the types have it.
fn schema() -> Value {
    let mut schema = schemars::schema_for!(Record).to_value();
    schema["title"] = json!(format!("A record of hosepipe: {SCHEMA}"));
    schema
}

#[test]
fn the_schema_is_what_the_types_say() {
    // One blank a level: the program holds this text.
    let mut fresh = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut fresh, PrettyFormatter::with_indent(b" "));
    schema().serialize(&mut writer).expect("JSON");
    let fresh = String::from_utf8(fresh).expect("text") + "\n";
    let file = root().join(FILE);
    if std::env::var_os("HOSEPIPE_WRITE_SCHEMA").is_some() {
        fs::write(&file, &fresh).expect("written");
    }
    let kept = fs::read_to_string(&file).expect(FILE);
    assert!(kept == fresh, "{FILE} is stale: HOSEPIPE_WRITE_SCHEMA=1 cargo test -p hosepipe-report schema");
}

/// The JSON files of a folder, by name.
fn records(folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join(folder)).expect("records").flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("a record"))).collect()
}

#[test]
fn records_of_every_version_are_read_and_fit_the_schema() {
    let schema = schema();
    let mut kinds = BTreeSet::new();
    for (name, text) in records("records").into_iter().chain(records("records/0.1.0")) {
        let loaded = report::read::read(&name, &text).unwrap_or_else(|problem| panic!("{problem}"));
        kinds.insert(loaded.record.kind());
        let value: Value = serde_json::from_str(&text).expect("JSON");
        Fit { schema: &schema }
            .whole(&schema, &value, "")
            .unwrap_or_else(|problem| panic!("{name}{problem}"));
    }
    let all: BTreeSet<&str> = Record::KINDS.iter().copied().collect();
    assert_eq!(kinds, all, "a record of each kind");
}

#[test]
fn what_is_no_record_does_not_fit() {
    let schema = schema();
    let (_, text) =
        records("records/0.1.0").into_iter().find(|(name, _)| name.ends_with("/run.json")).expect("one");
    let good: Value = serde_json::from_str(&text).expect("JSON");
    let fit = |value: &Value| Fit { schema: &schema }.whole(&schema, value, "");
    assert_eq!(fit(&good), Ok(()));
    for (pointer, wrong) in [
        ("/kind", json!("ran")),
        ("/wall_ns", json!("long")),
        ("/wall_ns", json!(-1)),
        ("/stages/0/stage", json!(null)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = wrong;
        assert!(fit(&bad).is_err(), "{pointer}");
    }
    let mut bad = good.clone();
    bad["stages"][0]["colour"] = json!("red");
    assert!(fit(&bad).is_err_and(|problem| problem.contains("colour")));
    bad["stages"][0].as_object_mut().expect("a stage").remove("colour");
    bad.as_object_mut().expect("a record").remove("stages");
    assert!(fit(&bad).is_err());
}

/// A validator for what schemars writes (JSON Schema, draft 2020-12); beyond that it refuses properties that the schema does not have.
struct Fit<'s> {
    schema: &'s Value,
}

impl<'s> Fit<'s> {
    fn resolved(&self, reference: &str) -> &'s Value {
        self.schema.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("no {reference}"))
    }

    /// Fits a value, and all its properties are known.
    fn whole(&self, schema: &'s Value, value: &Value, at: &str) -> Result<(), String> {
        self.part(schema, value, at)?;
        let mut names = BTreeSet::new();
        if let (Value::Object(fields), true) = (value, self.names(schema, &mut names)) {
            let unknown = fields.keys().find(|name| !names.contains(name.as_str()));
            return unknown.map_or(Ok(()), |name| Err(format!("{at}: `{name}` is not in the schema")));
        }
        Ok(())
    }

    /// The names of the properties; false where any may be there.
    fn names(&self, schema: &'s Value, names: &mut BTreeSet<&'s str>) -> bool {
        let Some(fields) = schema.as_object() else { return false };
        names.extend(
            fields
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys)
                .map(String::as_str),
        );
        let below =
            ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|key| fields.get(key)?.as_array()).flatten();
        let reference = fields.get("$ref").and_then(Value::as_str).map(|reference| self.resolved(reference));
        let below: Vec<&Value> = below.chain(reference).collect();
        let closed = below.into_iter().all(|schema| self.names(schema, names) || schema["type"] == "null");
        closed && fields.get("additionalProperties").is_none_or(|more| more == false)
    }

    /// Fits a value.
    fn part(&self, schema: &'s Value, value: &Value, at: &str) -> Result<(), String> {
        let Some(fields) = schema.as_object() else {
            return if schema == false { Err(format!("{at}: nothing may be here")) } else { Ok(()) };
        };
        let list = |key: &str| fields.get(key).and_then(Value::as_array);
        let wrong = |what: &str| Err(format!("{at}: {value} {what}"));
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            self.part(self.resolved(reference), value, at)?;
        }
        let types =
            fields.get("type").map(|types| types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]));
        if types.is_some_and(|types| !types.iter().filter_map(Value::as_str).any(|name| is_type(value, name)))
        {
            return wrong(&format!("is no {}", fields["type"]));
        }
        if fields.get("const").is_some_and(|only| only != value)
            || list("enum").is_some_and(|all| !all.contains(value))
        {
            return wrong("is none of the values");
        }
        if let (Some(least), Some(number)) = (fields.get("minimum").and_then(Value::as_f64), value.as_f64())
            && number < least
        {
            return wrong("is too small");
        }
        list("allOf").into_iter().flatten().try_for_each(|schema| self.part(schema, value, at))?;
        for choices in [list("anyOf"), list("oneOf")].into_iter().flatten() {
            let problems: Vec<String> =
                choices.iter().filter_map(|schema| self.part(schema, value, at).err()).collect();
            if problems.len() == choices.len() {
                return Err(problems.into_iter().max_by_key(String::len).unwrap_or_default());
            }
        }
        if let (Some(items), Value::Array(values)) = (fields.get("items"), value) {
            for (place, value) in values.iter().enumerate() {
                self.whole(items, value, &format!("{at}/{place}"))?;
            }
        }
        let Value::Object(has) = value else { return Ok(()) };
        if let Some(missing) = list("required")
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .find(|name| !has.contains_key(*name))
        {
            return Err(format!("{at}: `{missing}` is missing"));
        }
        for (name, value) in has {
            let known = fields.get("properties").and_then(|all| all.get(name));
            if let Some(schema) = known.or(fields.get("additionalProperties")) {
                self.whole(schema, value, &format!("{at}/{name}"))?;
            }
        }
        Ok(())
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}
