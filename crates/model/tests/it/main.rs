//! What the words of the model promise, where a changed line would go unnoticed elsewhere.

mod environment;

use std::time::Duration;

use model::{ByteSize, parse_duration, parse_size, shown_duration};

/// A text that is no number has another error than a number that is too large.
#[test]
fn what_is_no_size_is_not_called_too_large() {
    for text in ["1.", ".5", "1.2.3", "1.2.3MiB", ".", "1.0000000000000001"] {
        let problem = parse_size(text).expect_err(text).to_string();
        assert!(problem.contains("is not a size"), "{problem}");
    }
    let problem = parse_size("99999999999999999999").expect_err("too many").to_string();
    assert!(problem.contains("larger than this machine can count"), "{problem}");
    let problem = parse_size("1.5").expect_err("half a byte").to_string();
    assert!(problem.contains("whole number of bytes"), "{problem}");
}

#[test]
fn a_duration_is_shown_as_it_is_typed() {
    for text in ["500ms", "30s", "2m"] {
        let duration = parse_duration(text).expect(text);
        assert_eq!(shown_duration(duration), text);
    }
    assert_eq!(parse_duration("2m").expect("two minutes"), Duration::from_secs(120));
}

#[test]
fn a_size_is_read_and_shown() {
    assert_eq!("64KiB".parse(), Ok(ByteSize(65536)));
    assert_eq!(ByteSize(1000).rounded(), "1 kB");
}
