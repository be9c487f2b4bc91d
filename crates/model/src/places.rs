//! Indices of lists, for `#[serde(with = "crate::places")]`: from 1 in records, from 0 in programs.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

/// An index, or several.
pub(crate) trait Places: Sized {
    /// The same after `by_one` was applied to each index; `None` if the result is not an index.
    fn moved(&self, by_one: &dyn Fn(usize) -> Option<usize>) -> Option<Self>;
}

impl Places for usize {
    fn moved(&self, by_one: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        by_one(*self)
    }
}

impl Places for u32 {
    fn moved(&self, by_one: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        by_one(*self as usize)?.try_into().ok()
    }
}

impl<P: Places> Places for Option<P> {
    fn moved(&self, by_one: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        self.as_ref().map_or(Some(None), |place| place.moved(by_one).map(Some))
    }
}

impl<P: Places> Places for Vec<P> {
    fn moved(&self, by_one: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        self.iter().map(|place| place.moved(by_one)).collect()
    }
}

pub(crate) fn serialize<P: Places + Serialize, S: Serializer>(places: &P, to: S) -> Result<S::Ok, S::Error> {
    let from_one = places.moved(&|place| place.checked_add(1));
    from_one.ok_or_else(|| S::Error::custom("a place is too large"))?.serialize(to)
}

pub(crate) fn deserialize<'de, P, D>(from: D) -> Result<P, D::Error>
where
    P: Places + Deserialize<'de>,
    D: Deserializer<'de>,
{
    let from_zero = P::deserialize(from)?.moved(&|place| place.checked_sub(1));
    from_zero.ok_or_else(|| D::Error::custom("a place is 0, and places count from 1"))
}
