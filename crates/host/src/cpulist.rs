//! CPU lists as the kernel writes them: `0-3,8,10-11` (cpuset(7), "List format").

use std::fmt;

/// CPU numbers, sorted, without repetition; prints in the kernel's list format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CpuList(Vec<u32>);

/// More CPUs than any Linux supports (NR_CPUS is at most 8192): a range beyond it is invalid.
const CPUS_MAX: u32 = 1 << 16;

impl CpuList {
    /// Parses the list format; ignores every item that is neither a number nor a range.
    pub(crate) fn parse(text: &str) -> Self {
        text.trim().split(',').filter_map(range).flatten().collect()
    }

    /// The numbers, ascending.
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }
}

/// `4` or `0-3`. The stride of cpuset(7), `0-31:2/4`, is never written by the files read here.
fn range(item: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (last < CPUS_MAX).then_some(first..=last)
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((*run.first()?, *run.last()?)));
        let words: Vec<_> = runs
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
            .collect();
        f.pad(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_and_print() {
        for text in ["", "0", "0-1", "0-3,8,10-11"] {
            assert_eq!(CpuList::parse(text).to_string(), text);
        }
        assert_eq!(CpuList::parse("3,1-2,2\n").as_slice(), [1, 2, 3]);
    }

    #[test]
    fn invalid_items_are_ignored() {
        assert_eq!(CpuList::parse("0,x,2-1,5-,0-4294967295,7").as_slice(), [0, 7]);
        assert!(CpuList::parse("(null)").is_empty());
    }
}
