//! Values of a type from JSON and TOML. The text is parsed into a tree first, so that the code that reads each type is compiled once,
//! for trees, and not again for each format: it was a seventh of the program.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a value from JSON.
///
/// # Errors
/// The text is not JSON, or an object has a field twice, with the position; or it is not of that type.
pub fn from_json<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> serde_json::Result<T> {
    serde_json::from_value(tree_from_json(text)?)
}

/// Reads JSON of any kind.
///
/// # Errors
/// The text is not JSON, or an object has a field twice, with the position.
pub fn tree_from_json(text: impl AsRef<[u8]>) -> serde_json::Result<Value> {
    serde_json::from_slice(text.as_ref()).map(|Tree(tree)| tree)
}

/// Reads a value from a TOML file that is compiled in; for a user's file, `toml::from_str` knows the line of an error.
///
/// # Errors
/// As [`from_json`].
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let tree = toml::from_str(text).map_err(|error| error.to_string())?;
    serde_json::from_value(tree).map_err(|error| error.to_string())
}

/// A tree without an object that has a field twice: [`Value`] itself keeps the last of them.
struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Tree(value))) = fields.next_entry::<String, _>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("the field `{name}` occurs twice")));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_serde_jsons_and_a_field_that_occurs_twice_is_refused() {
        let text = r#"{"a": [null, true, -1, 18446744073709551615, 0.5, "x\u0041", {}], "b": {"a": []}}"#;
        assert_eq!(tree_from_json(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        let error = tree_from_json("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}").unwrap_err().to_string();
        assert!(error.starts_with("the field `c` occurs twice at line 2"), "{error}");
        assert!(from_json::<Vec<u8>>("[1, 2").is_err());
    }
}
