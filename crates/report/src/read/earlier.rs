//! Records of `run` and `top` of earlier versions, in which pipelines, stages and links are counted from 0.

use std::collections::HashMap;

use serde_json::{Value, json};

/// The keys of such numbers.
const PLACES: [&str; 6] = ["pipeline", "stage", "held_up_by", "waits_at", "writers", "readers"];

/// The record with all numbers counted from 1, and a number for each stage; `None` if its stages have numbers, or if it has no stages.
pub(super) fn counted_from_one(text: &str) -> Option<Value> {
    let mut record: Value = serde_json::from_str(text).ok()?;
    let lists: Vec<&mut Value> = match record.get_mut("chains") {
        Some(chains) => {
            chains.as_array_mut()?.iter_mut().filter_map(|chain| chain.get_mut("stages")).collect()
        }
        None => vec![record.get_mut("stages")?],
    };
    for list in lists {
        let mut before: HashMap<u64, u64> = HashMap::new();
        for stage in list.as_array_mut()? {
            let number =
                before.entry(stage.get("pipeline").and_then(Value::as_u64).unwrap_or(0)).or_default();
            if stage.as_object_mut()?.insert("stage".to_owned(), json!(*number)).is_some() {
                return None;
            }
            *number += 1;
        }
    }
    for key in ["stages", "links", "chains", "bottleneck"] {
        record.get_mut(key).into_iter().for_each(|value| count_from_one("", value));
    }
    Some(record)
}

fn count_from_one(key: &str, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| count_from_one(key, value)),
        Value::Array(values) => values.iter_mut().for_each(|value| count_from_one(key, value)),
        value if PLACES.contains(&key) => {
            if let Some(place) = value.as_u64() {
                *value = json!(place.saturating_add(1));
            }
        }
        _ => {}
    }
}
