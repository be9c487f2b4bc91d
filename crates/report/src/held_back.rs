//! Sentences on a program that keeps its output in a buffer.

use model::HeldBack;

use crate::numbers::{binary_size, decimal_size, speed, time};

/// The remedy for every program.
const OPTION: &str = "`hosepipe run --line-buffered`";

/// On a running program: how much it holds back, for how long, when the buffer will be full, and the remedy.
pub(crate) fn present(name: &str, held: &HeldBack) -> String {
    let until = match (held.bytes_per_s, held.full_in_ns) {
        (Some(rate), Some(full)) => {
            format!("fills at {}: it writes in {}", speed(rate as f64), time(full as f64))
        }
        _ => "does not fill in this time".to_owned(),
    };
    sentence(&format!("{name} holds its"), held, "so far", &until)
}

/// On a program that has ended.
pub(crate) fn past(name: &str, held: &HeldBack) -> String {
    let rate = held.bytes_per_s.map(|rate| format!("filled at {}", speed(rate as f64)));
    let until = rate.unwrap_or_else(|| "did not fill in this time".to_owned());
    sentence(&format!("{name} held its"), held, "at the longest", &until)
}

fn sentence(subject: &str, held: &HeldBack, how_long: &str, until: &str) -> String {
    let amount = held.held_bytes.map_or_else(
        || "it reads on and writes only whole blocks".to_owned(),
        |bytes| format!("{} in its buffer", decimal_size(bytes)),
    );
    let (since, buffer) = (time(held.for_ns as f64), binary_size(held.buffer_bytes as f64));
    let own = held.cure.as_ref().map(|own| format!("{own}, or ")).unwrap_or_default();
    format!(
        "{subject} output back: {amount}, for {since} {how_long}. The buffer of {buffer} {until}. To get each line at once: {own}{OPTION}."
    )
}

/// A few words for a line of a chain.
pub fn in_brief(held: &HeldBack) -> String {
    let bytes = held.held_bytes.map(|bytes| format!(" {}", decimal_size(bytes))).unwrap_or_default();
    format!("holds back{bytes} for {}", time(held.for_ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_amount_the_time_and_the_cure() {
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
             did not fill in this time. To get each line at once: `hosepipe run --line-buffered`."
        );
        assert_eq!(in_brief(&held), "holds back for 12.0 s");
    }
}
