//! Checks of a tree before it is a record: numbers that can be measured.

use serde_json::Value;

/// Largest number that a record may hold: no rate, time or share that can be measured is larger, nor a quotient of two of them.
const NUMBER_MAX: f64 = 1e40;
/// Largest whole number that a record may hold: more nanoseconds or bytes than any trial has, and few enough for the sum of any that are
/// counted together.
const WHOLE_NUMBER_MAX: u64 = 1 << 53;
/// A field whose number measures nothing.
const SEED: &str = "seed";

/// Checks that no number in a tree is negative, larger than [`NUMBER_MAX`], or a whole number larger than [`WHOLE_NUMBER_MAX`].
///
/// # Errors
/// A sentence on the first one that is, with its keys and indexes from the root.
pub(super) fn numbers(tree: &Value) -> Result<(), String> {
    immeasurable(tree).map_or(Ok(()), |(mut path, problem)| {
        path.reverse();
        Err(format!("`{}` is {problem}", path.join(".")))
    })
}

/// The first number that cannot be measured: its keys and indexes, the last one first, and what is wrong with it.
fn immeasurable(tree: &Value) -> Option<(Vec<String>, String)> {
    let at = |key: &dyn ToString, value: &Value| {
        immeasurable(value).map(|(mut path, problem)| {
            path.push(key.to_string());
            (path, problem)
        })
    };
    match tree {
        Value::Array(values) => values.iter().enumerate().find_map(|(index, value)| at(&index, value)),
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| *key != SEED).find_map(|(key, value)| at(key, value))
        }
        Value::Number(number) => match number.as_f64() {
            Some(value) if value < 0.0 => Some((Vec::new(), format!("{number}: negative"))),
            Some(value)
                if value > NUMBER_MAX || number.as_u64().is_some_and(|whole| whole > WHOLE_NUMBER_MAX) =>
            {
                Some((Vec::new(), format!("{value:e}: more than anything that can be measured")))
            }
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}
