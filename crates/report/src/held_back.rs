//! What is said of a program that keeps its output in a buffer.

use model::HeldBack;

use crate::numbers::{binary_size, decimal_size, time};

/// How every program is cured.
const OPTION: &str = "`hosepipe run --line-buffered`";

/// Of one that runs: who holds back how much, since when, until when, and the cure.
pub(crate) fn present(name: &str, held: &HeldBack) -> String {
    let until = match (held.bytes_per_s, held.full_in_ns) {
        (Some(rate), Some(full)) => {
            let rate = crate::chains::speed(rate as f64);
            format!("fills at {rate}: it writes in {}", time(full as f64))
        }
        _ => "does not fill meanwhile".to_owned(),
    };
    format!(
        "{name} holds its output back: {}, for {} so far. The buffer of {} {until}. {}",
        amount(held),
        time(held.for_ns as f64),
        binary_size(held.buffer_bytes as f64),
        cures(held)
    )
}

/// The same of one that has ended.
pub(crate) fn past(name: &str, held: &HeldBack) -> String {
    let rate = held.bytes_per_s.map(|rate| format!(" filled at {}", crate::chains::speed(rate as f64)));
    format!(
        "{name} held its output back: {}, for {} at the longest. The buffer of {}{}. {}",
        amount(held),
        time(held.for_ns as f64),
        binary_size(held.buffer_bytes as f64),
        rate.unwrap_or_else(|| " did not fill meanwhile".to_owned()),
        cures(held)
    )
}

/// The same in a few words, for a line of a picture.
pub fn in_brief(held: &HeldBack) -> String {
    let bytes = held.held_bytes.map(|bytes| format!(" {}", decimal_size(bytes))).unwrap_or_default();
    format!("holds back{bytes} for {}", time(held.for_ns as f64))
}

fn amount(held: &HeldBack) -> String {
    held.held_bytes.map_or_else(
        || "it reads on and writes only whole blocks".to_owned(),
        |bytes| format!("{} in its buffer", decimal_size(bytes)),
    )
}

fn cures(held: &HeldBack) -> String {
    match &held.cure {
        Some(own) => format!("To get each line at once: {own}, or {OPTION}."),
        None => format!("To get each line at once: {OPTION}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_who_holds_back_how_much_until_when_and_the_cure() {
        let mut held = HeldBack {
            held_bytes: Some(812),
            buffer_bytes: 4096,
            for_ns: 12_000_000_000,
            bytes_per_s: Some(70),
            full_in_ns: Some(47_000_000_000),
            cure: Some("`grep --line-buffered`".to_owned()),
            ..HeldBack::default()
        };
        assert_eq!(
            present("grep 7", &held),
            "grep 7 holds its output back: 812 B in its buffer, for 12.0 s so far. The buffer of 4 KiB fills at 70.0 B/s: it writes in \
             47.0 s. To get each line at once: `grep --line-buffered`, or `hosepipe run --line-buffered`."
        );
        assert_eq!(in_brief(&held), "holds back 812 B for 12.0 s");
        (held.held_bytes, held.cure) = (None, None);
        (held.bytes_per_s, held.full_in_ns) = (None, None);
        assert_eq!(
            past("`mine` (stage 2)", &held),
            "`mine` (stage 2) held its output back: it reads on and writes only whole blocks, for 12.0 s at the longest. The buffer of 4 KiB \
             did not fill meanwhile. To get each line at once: `hosepipe run --line-buffered`."
        );
        assert_eq!(in_brief(&held), "holds back for 12.0 s");
    }
}
