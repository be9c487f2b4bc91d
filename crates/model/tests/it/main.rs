//! What the words of the model promise, where a changed line would go unnoticed elsewhere.

use model::parse_size;

/// Texts that are no numbers are told from numbers that are too large.
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
