//! Records of `run` and `top` of earlier versions, in which pipelines, stages and links are counted from 0.

use std::collections::HashMap;

use serde_json::{Value, json};

/// The keys of these counts.
const PLACES: [&str; 6] = ["pipeline", "stage", "held_up_by", "waits_at", "writers", "readers"];

/// Makes the counts in a record of an earlier version begin at 1, and gives each stage a number. In such a record the stages have no
/// numbers; other records are not changed.
pub(super) fn count_from_one(record: &mut Value) {
    let lists: Vec<&mut Value> = match record.get_mut("chains") {
        Some(Value::Array(chains)) => chains.iter_mut().filter_map(|chain| chain.get_mut("stages")).collect(),
        _ => record.get_mut("stages").into_iter().collect(),
    };
    let mut lists: Vec<&mut Vec<Value>> = lists.into_iter().filter_map(Value::as_array_mut).collect();
    let mut stages = lists.iter().flat_map(|list| list.iter());
    if stages.clone().next().is_none()
        || !stages.all(|stage| stage.is_object() && stage.get("stage").is_none())
    {
        return;
    }
    for list in &mut lists {
        let mut before: HashMap<u64, u64> = HashMap::new();
        for stage in list.iter_mut() {
            let number =
                before.entry(stage.get("pipeline").and_then(Value::as_u64).unwrap_or(0)).or_default();
            stage["stage"] = json!(*number);
            *number += 1;
        }
    }
    for key in ["stages", "links", "chains", "bottleneck"] {
        record.get_mut(key).into_iter().for_each(|value| add_one("", value));
    }
}

fn add_one(key: &str, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| add_one(key, value)),
        Value::Array(values) => values.iter_mut().for_each(|value| add_one(key, value)),
        value if PLACES.contains(&key) => {
            if let Some(place) = value.as_u64() {
                *value = json!(place.saturating_add(1));
            }
        }
        _ => {}
    }
}
