//! Commands whose reduce is derived, and commands for which it must be given.

use remote::spread::derive;

#[test]
fn few_are_known() {
    for (text, reduce) in [
        ("sort", "sort -m --files0-from=-"),
        ("sort -rnk2 -t '|' -u", "sort -m '-rnk2' '-t' '|' '-u' --files0-from=-"),
        ("sort -n | uniq -c", "sort -m '-n' --files0-from=- | uniq '-c'"),
        ("sort|head -n 3", "sort -m --files0-from=- | head '-n' '3'"),
        ("wc -l", "awk '{ n += $1 } END { printf \"%.0f\\n\", n }'"),
    ] {
        assert_eq!(derive(text).map(|derived| derived.reduce), Ok(reduce.to_owned()), "{text}");
    }
    assert_eq!(derive("sort -n | uniq -c").map(|derived| derived.map), Ok("sort '-n'".to_owned()));
    let grep = derive("grep -ic 'a b'").expect("known");
    assert_eq!(grep.map, "grep -ic 'a b' || [ $? -eq 1 ]");
}

#[test]
fn and_nothing_else() {
    for text in [
        "sort -R",
        "sort -o f",
        "sort f",
        "sort -k",
        "sort -",
        "sort --parallel=2",
        "wc f",
        "wc -lL",
        "wc -l f",
        "grep -c a b",
        "grep a",
        "grep -cr a",
        "grep -cm1 a",
        "uniq -c",
        "cut -c1 | sort",
        "sort | head -c 3",
        "sort | tail",
        "awk '{print $1}'",
        "sort; rm x",
        "sort 'a",
        "",
        "sort | uniq -d",
    ] {
        let answer = derive(text);
        assert!(answer.as_ref().is_err_and(|why| why.contains("--reduce")), "{text}: {answer:?}");
    }
}
