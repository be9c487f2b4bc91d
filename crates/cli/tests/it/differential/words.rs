//! Words in every kind of quoting, as one may type them.

use super::dice::Dice;

const BARE: &[&str] = &[
    "a", "foo", "x1", "42", "a-b", "%s", "a,b", "@", "foo.txt", "é", "+", ":", "^x", "a#b", "{}", "a{b",
    "b}", "--", "a=b=c", "{x}", "k=v", "%", "]", "a[", "x.y", "/", "!x",
];
const SINGLE: &[&str] = &[
    "",
    " ",
    "two words",
    "$x",
    "a|b",
    "*",
    "\\n",
    "#no",
    "\"",
    "a;b",
    "&& ||",
    "tab\there",
    "`no`",
    "é",
    "line\nbreak",
    "$(no)",
    "{a,b}",
    "~",
    "  lead",
    "\\",
    "|& cat",
    "<f >g",
];
const DOUBLE: &[&str] = &[
    "",
    " ",
    "$x",
    "${x}",
    "a  b",
    "\\\"",
    "\\$x",
    "\\\\",
    "'",
    "*",
    "$(echo sub)",
    "`echo bq`",
    "$((1+2))",
    "a|b",
    "#",
    "\\a",
    "${x:-d}",
    ">f",
    "$'no'",
    "line\nbreak",
    "\\\n",
    "$(echo \"in $x\")",
    "${#x}",
    "é",
    "{a,b}",
    "~",
    "&&",
    ";",
];
const ANSI: &[&str] =
    &["\\n", "\\t", "\\x41", "\\101", "\\u00e9", "\\'", "a\\\\b", "\\\"", "|", " ", "\\e", "\\x7f", "\\r"];
const ESCAPED: &[&str] = &[
    "\\ ", "\\|", "\\$x", "\\\"", "\\'", "\\\\", "\\*", "\\a", "\\#", "\\;", "\\&", "\\<", "\\(", "\\~",
    "\\\n", "\\{a,b}", "\\!",
];
const EXPANDED: &[&str] = &[
    "$x",
    "${x}",
    "${x:-other}",
    "${#x}",
    "${x%o*}",
    "${x/o/0}",
    "${x^^}",
    "$((7*6))",
    "$((n+1))",
    "$(echo a b)",
    "`echo q`",
    "$(seq 2)",
    "$(printf %s \"$x\" | tr a-z A-Z)",
    "${z-unset}",
    "$#",
    "\"$@\"",
    "$1",
    "${a[1]}",
    "\"${a[@]}\"",
    "~",
    "$n",
    "${x:1:2}",
    "$(( (3 > 2) ? 5 : 6 ))",
    "$(echo 'a|b')",
    "$(< small.txt)",
    "${y:=set}",
];
const BRACES: &[&str] =
    &["{a,b}", "{1..3}", "{x,y}{1,2}", "{c..a}", "{01..03}", "a{,b}", "{a,b", "{1..9..4}", "p{q,r}s", "{a}"];
const GLOBS: &[&str] = &[
    "*.txt", "*", "s*", "?mpty", "[a-c]*", "no*match", "sub/*", ".h*", "[!a-z]*", "*/", "*' '*", "\"*\"",
    "sub/*/x", "*[.]*", "'a b'*",
];

/// One word, as source text.
pub(crate) fn word(dice: &mut Dice) -> String {
    let pieces = dice.pick(&[1, 1, 1, 2, 2, 3]);
    (0..pieces).map(|_| piece(dice)).collect()
}

/// A word in which no shell expands anything.
pub(crate) fn literal(dice: &mut Dice) -> String {
    match dice.between(0, 3) {
        0 => dice.pick(BARE).to_owned(),
        1 => dice.pick(ESCAPED).to_owned(),
        _ => quoted('\'', dice.pick(SINGLE)),
    }
}

/// Up to `most` words, with blanks between them.
pub(crate) fn words(dice: &mut Dice, most: u64) -> String {
    let count = dice.between(1, most);
    (0..count).map(|_| word(dice)).collect::<Vec<_>>().join(" ")
}

fn quoted(quote: char, inside: &str) -> String {
    format!("{quote}{inside}{quote}")
}

fn piece(dice: &mut Dice) -> String {
    match dice.between(0, 15) {
        0..=2 => dice.pick(BARE).to_owned(),
        3..=5 => quoted('\'', dice.pick(SINGLE)),
        6..=8 => {
            // A `$` is used only where no other follows it: `$$` is another number each time.
            let end = dice.pick(&["", "", "", "$", " ", "\\\\"]);
            quoted('"', &format!("{}{}{end}", dice.pick(DOUBLE), dice.pick(DOUBLE)))
        }
        9 => format!("${}", quoted('\'', &format!("{}{}", dice.pick(ANSI), dice.pick(ANSI)))),
        10 => dice.pick(ESCAPED).to_owned(),
        11 | 12 => dice.pick(EXPANDED).to_owned(),
        13 => dice.pick(BRACES).to_owned(),
        14 => dice.pick(GLOBS).to_owned(),
        _ => dice.pick(&["''", "\"\""]).to_owned(),
    }
}
