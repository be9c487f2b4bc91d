//! Values of a type from JSON and TOML. The text is parsed into a tree first, so that the code that reads each type is compiled once,
//! for trees, and not again for each format: it was a seventh of the program.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a value from JSON.
///
/// # Errors
/// The text is not JSON, with the position, or it is not of that type.
pub fn from_json<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> serde_json::Result<T> {
    serde_json::from_value(tree_from_json(text)?)
}

/// Reads JSON of any kind. Of a field that an object has twice the last one counts.
///
/// # Errors
/// The text is not JSON, with the position.
pub fn tree_from_json(text: impl AsRef<[u8]>) -> serde_json::Result<Value> {
    serde_json::from_slice(text.as_ref())
}

/// Reads a value from a TOML file that is compiled in; for a user's file, `toml::from_str` knows the line of an error.
///
/// # Errors
/// As [`from_json`].
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let tree = toml::from_str(text).map_err(|error| error.to_string())?;
    serde_json::from_value(tree).map_err(|error| error.to_string())
}
