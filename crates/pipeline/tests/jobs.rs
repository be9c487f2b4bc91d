//! What a shell puts behind its prompt. (Jobs themselves are tested where there is a terminal: crates/cli/tests/sh_jobs.rs.)

use pipeline::syntax::{in_background, parse};

#[test]
fn an_ampersand_is_seen_where_bash_sees_one() {
    let seen = |text: &str| {
        let script = parse(text).expect("a command line");
        script
            .items
            .iter()
            .map(|item| in_background(&item.pipeline).map_or(0, |list| list.items.len()))
            .collect()
    };
    let none: [usize; 1] = [0];
    assert_eq!(seen("sleep 1 &"), [1]);
    assert_eq!(seen("a | b & c"), [1, 0]);
    assert_eq!(seen("a && b &"), [2]);
    for text in ["a", "echo $x \\&", "echo '&'", "echo $x '&'", "cat <<'&'\n$x\n&\n", "a 2>&1"] {
        let items: Vec<usize> = seen(text);
        assert_eq!(items, none, "{text}");
    }
}
