//! Indices of lists, for `#[serde(with = "crate::one_based")]`: from 1 in records, from 0 in programs.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

/// An index, or several.
pub(crate) trait Indices: Sized {
    /// The same after `change` was applied to each index; `None` if the result is not an index.
    fn map_indices(&self, change: &dyn Fn(usize) -> Option<usize>) -> Option<Self>;
}

impl Indices for usize {
    fn map_indices(&self, change: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        change(*self)
    }
}

impl Indices for u32 {
    fn map_indices(&self, change: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        change(*self as usize)?.try_into().ok()
    }
}

impl<P: Indices> Indices for Option<P> {
    fn map_indices(&self, change: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        self.as_ref().map_or(Some(None), |index| index.map_indices(change).map(Some))
    }
}

impl<P: Indices> Indices for Vec<P> {
    fn map_indices(&self, change: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        self.iter().map(|index| index.map_indices(change)).collect()
    }
}

pub(crate) fn serialize<P: Indices + Serialize, S: Serializer>(
    indices: &P,
    to: S,
) -> Result<S::Ok, S::Error> {
    let from_one = indices.map_indices(&|index| index.checked_add(1));
    from_one.ok_or_else(|| S::Error::custom("an index is too large"))?.serialize(to)
}

pub(crate) fn deserialize<'de, P, D>(from: D) -> Result<P, D::Error>
where
    P: Indices + Deserialize<'de>,
    D: Deserializer<'de>,
{
    let from_zero = P::deserialize(from)?.map_indices(&|index| index.checked_sub(1));
    from_zero.ok_or_else(|| D::Error::custom("an index is 0: in records the first index is 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written<P: Indices + Serialize>(indices: &P) -> Result<Value, String> {
        serialize(indices, serde_json::value::Serializer).map_err(|error| error.to_string())
    }

    fn read<P: Indices + for<'de> Deserialize<'de>>(json: &Value) -> Result<P, String> {
        deserialize(json).map_err(|error| error.to_string())
    }

    #[test]
    fn indices_are_one_more_in_records() {
        assert_eq!((written(&0usize), written(&4u32)), (Ok(json!(1)), Ok(json!(5))));
        assert_eq!((written(&Some(2usize)), written(&None::<usize>)), (Ok(json!(3)), Ok(json!(null))));
        assert_eq!(written(&vec![0usize, 7]), Ok(json!([1, 8])));
        assert_eq!((read(&json!(1)), read(&json!(5))), (Ok(0usize), Ok(4u32)));
        assert_eq!((read(&json!(3)), read(&json!(null))), (Ok(Some(2usize)), Ok(None::<usize>)));
        assert_eq!(read(&json!([1, 8])), Ok(vec![0usize, 7]));
    }

    #[test]
    fn what_is_no_index_is_refused() {
        assert!(written(&usize::MAX).is_err_and(|error| error.contains("too large")));
        assert!(written(&u32::MAX).is_err());
        for zero in [read::<usize>(&json!(0)).err(), read::<Vec<usize>>(&json!([1, 0])).err()] {
            assert_eq!(zero.as_deref(), Some("an index is 0: in records the first index is 1"));
        }
    }
}
