//! Names for what the kernel, the CPU or the firmware reports, from the table `names.tsv`.

/// The reported texts of a kind, and their names.
fn entries(kind: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let fields = |line: &'static str| {
        let (kind, entry) = line.split_once('\t')?;
        Some((kind, entry.split_once('\t')?))
    };
    let lines = include_str!("names.tsv").lines().filter_map(fields);
    lines.filter(move |(found, _)| *found == kind).map(|(_, entry)| entry)
}

/// The name of this text.
pub(crate) fn name_of(kind: &str, text: &str) -> Option<&'static str> {
    entries(kind).find(|(reported, _)| *reported == text).map(|(_, name)| name)
}

/// The name of the first entry that `text` contains.
pub(crate) fn name_in(kind: &str, text: &str) -> Option<&'static str> {
    entries(kind).find(|(reported, _)| text.contains(reported)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_an_entry_or_a_comment() {
        for line in include_str!("names.tsv").lines() {
            let fields = line.split('\t').filter(|field| !field.is_empty()).count();
            assert!(line.is_empty() || line.starts_with("# ") || fields == 3, "{line}");
        }
        assert_eq!(name_of("file-system", "0xef53"), Some("ext4"));
        assert_eq!(name_in("hypervisor-firmware", "Google Compute Engine 1"), Some("KVM"));
        assert_eq!(name_of("arm-core", "0x0"), None);
    }
}
