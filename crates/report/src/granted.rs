//! The sizes that the system granted, and where they differ from the requested ones.

use model::{ByteSize, CaseRecord, parse_size};

use crate::value::Value;

/// The granted sizes in short: "pipe 64KiB", "sndbuf 208KiB, rcvbuf 208KiB"; empty if there are none.
pub(crate) fn text(case: &CaseRecord) -> String {
    let size = |(name, value): (&String, &u64)| match name.strip_suffix("_bytes") {
        Some(short) => format!("{} {}", short.replace('_', " "), ByteSize(*value)),
        None => format!("{} {value}", name.replace('_', " ")),
    };
    case.granted.iter().map(size).collect::<Vec<String>>().join(", ")
}

/// The granted sizes, and the requested one if the system granted another; `None` if there are no granted sizes.
pub(crate) fn with_request(case: &CaseRecord) -> Option<Value> {
    let sizes = text(case);
    let asked = requested_size_if_changed(case).map(|size| format!(" (asked {size})"));
    (!sizes.is_empty()).then(|| (sizes + &asked.unwrap_or_default()).into())
}

/// The requested size, if the system granted another one.
pub(crate) fn requested_size_if_changed(case: &CaseRecord) -> Option<ByteSize> {
    let options = case.spec.options.iter();
    let asked = options.filter_map(|(key, value)| Some((key, parse_size(value.as_deref()?).ok()?)));
    asked.filter(|(key, size)| differs(case, key, size.0)).map(|(_, size)| size).next()
}

/// Whether a granted size with the name of the option differs from the requested one. If none has its name, the option `size` is
/// compared with all granted sizes in bytes: it differs if none of them equals it.
fn differs(case: &CaseRecord, key: &str, asked: u64) -> bool {
    let named = |name: &str| name == key || name.strip_suffix("_bytes") == Some(key);
    let mut of_that_name = case.granted.iter().filter(|(name, _)| named(name)).peekable();
    if of_that_name.peek().is_some() {
        // A datagram cannot be larger than the block.
        let is_whole = |value: u64| key == "datagram" && value == case.block_bytes;
        return of_that_name.any(|(_, value)| *value != asked && !is_whole(*value));
    }
    let mut in_bytes = case.granted.iter().filter(|(name, _)| name.ends_with("_bytes")).peekable();
    key == "size" && in_bytes.peek().is_some() && in_bytes.all(|(_, value)| *value != asked)
}
