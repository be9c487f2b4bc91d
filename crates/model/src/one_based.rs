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
