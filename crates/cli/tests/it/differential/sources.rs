//! First stages: what writes into a pipeline.

use super::case::Stage;
use super::compound;
use super::dice::Dice;
use super::flow::{Amount, Flow};
use super::words::{literal, word, words};

/// Files of the fixture folder, as typed.
const TEXT_FILES: &[&str] = &[
    "small.txt",
    "words.txt",
    "'a b.txt'",
    "a\\ b.txt",
    "\"it's\"",
    "./-dash",
    "-- -dash",
    "link",
    "sub/inner.txt",
    "empty",
    "$'new\\nline'",
    "é.txt",
    "'star*'",
    "sub/../small.txt",
    "words.txt small.txt",
    "small.txt empty -",
    ".hidden",
    "nosuch",
    "sub",
    "small.txt nosuch words.txt",
    "s*.txt",
    "left right",
];

/// A pipeline's beginning.
pub(crate) fn source(dice: &mut Dice, observed: bool) -> Flow {
    let small = |stage| Flow::from(stage, Amount::Small, false, observed);
    match dice.between(0, 99) {
        0..=24 => small(Stage::plain(echo(dice))),
        25..=39 => small(Stage::plain(reads_files(dice))),
        40..=46 => small(Stage::plain(format!("seq {}", dice.between(0, 40)))),
        47..=52 => small(Stage::plain(from_shell(dice))),
        53..=57 => small(here(dice)),
        58..=63 => Flow::from(Stage::plain(binary(dice)), Amount::Small, true, observed),
        64..=72 => small(compound::writer(dice)),
        73..=78 => small(Stage::plain(fails(dice))),
        79..=82 => small(complains(dice)),
        83..=88 => large(dice, observed),
        89..=96 => Flow::from(Stage::plain(endless(dice)), Amount::Infinite, false, observed),
        97 => zeros(dice, observed),
        _ => small(listing(dice)),
    }
}

fn echo(dice: &mut Dice) -> String {
    let words = words(dice, 4);
    match dice.between(0, 7) {
        0 | 1 => format!("echo {words}"),
        2 | 3 => format!("printf '[%s]\\n' {words}"),
        4 => format!("printf '%s\\0' {words}"),
        5 => format!("echo -n {words}"),
        6 => format!("/bin/echo {words}"),
        _ => format!("printf '%5s|%-4d|%x\\n' {} 7 255", literal(dice)),
    }
}

fn reads_files(dice: &mut Dice) -> String {
    let file = dice.pick(TEXT_FILES);
    match dice.between(0, 13) {
        0..=3 => format!("cat {file}"),
        4 => format!("tac {file}"),
        5 => format!("sort {file}"),
        6 => format!(
            "cat < {}",
            dice.pick(&["small.txt", "\"a b.txt\"", "empty", "nosuch", "$f", "w*.txt", "sub"])
        ),
        7 => format!("< {} cat", dice.pick(&["small.txt", "words.txt", "./-dash"])),
        8 => {
            format!("grep -n {} {file}", dice.pick(&["a", "'e'", "-e o", "-v a", "-c e", "'^b.*n'", "-i A"]))
        }
        9 => format!(
            "sed {} {file}",
            dice.pick(&["-n '2,4p'", "'s/a/<&>/g'", "$d", "-e 1d -e '$d'", "-n '$='"])
        ),
        10 => format!("awk {} {file}", dice.pick(&["'{print NR\": \"$1}'", "'length>4'", "'END{print NR}'"])),
        11 => format!("cut -c1-3 {file}"),
        12 => "join left right".to_owned(),
        _ => "cat".to_owned(),
    }
}

fn from_shell(dice: &mut Dice) -> String {
    match dice.between(0, 12) {
        0 => "./script one 'two words' < small.txt".to_owned(),
        1 => "./tool a b".to_owned(),
        2 => format!("X={} sh -c 'echo \"$X\"'", literal(dice)),
        3 => format!("env Y={} printenv Y", literal(dice)),
        4 => format!("sh -c 'echo \"$0:$1\"' {} {}", word(dice), word(dice)),
        5 => "type -t cat echo if nosuch".to_owned(),
        6 => "pwd".to_owned(),
        7 => "command -v cat".to_owned(),
        8 => "printf '%s\\n' \"${x:-unset}\" \"$n\"".to_owned(),
        9 => "builtin echo built in".to_owned(),
        10 => "command printf '%s\\n' by command".to_owned(),
        11 => "exec cat small.txt".to_owned(),
        _ => "IFS=, read -r p q <<< 'r,s,t'".to_owned(),
    }
}

fn here(dice: &mut Dice) -> Stage {
    let lines = dice.pick(&[
        "plain text\n",
        "$x and $((1+1))\n",
        "a|b 'quotes' \"double\"\n",
        "\\$x \\\\ \\`\n",
        "`echo bq` $(echo sub)\n",
        "two\nlines\n",
        "",
        "  indented\n",
        "\ttabbed\n",
        "# no comment\n",
        "end\\\nless\n",
    ]);
    let command =
        dice.pick(&["cat", "sort -r", "tr a-z A-Z", "while read -r l; do echo \"<$l>\"; done", "cat -"]);
    let (mark, end) = dice.pick(&[
        ("<<E", "E"),
        ("<<'E'", "E"),
        ("<<\"E N D\"", "E N D"),
        ("<< E", "E"),
        ("<<\\E", "E"),
        ("<<-E", "\tE"),
        ("<<-'E'", "\t\tE"),
        ("0<<E", "E"),
    ]);
    if dice.chance(30) {
        return Stage::plain(format!("{command} <<< {}", word(dice)));
    }
    Stage { body: Some(format!("{lines}{end}\n")), ..Stage::plain(format!("{command} {mark}")) }
}

fn binary(dice: &mut Dice) -> String {
    match dice.between(0, 6) {
        0 => format!("printf '\\x00\\xff\\x{:02x}\\n\\0'", dice.between(1, 255)),
        1 => format!("head -c {} binary", dice.between(0, 4000)),
        2 => format!("tail -c {} binary", dice.between(0, 4000)),
        3 => "printf 'a\\0b\\0c\\0'".to_owned(),
        4 => "echo -e 'x\\x01\\x80\\ty'".to_owned(),
        5 => "head -c 700 binary 2>/dev/null".to_owned(),
        _ => "printf %b '\\0377\\0001\\n'".to_owned(),
    }
}

fn fails(dice: &mut Dice) -> String {
    match dice.between(0, 17) {
        0 => "false".to_owned(),
        1 => "nosuchcmd".to_owned(),
        2 => "./plain".to_owned(),
        3 => "./nosuch arg".to_owned(),
        4 => format!("exit {}", dice.between(0, 300)),
        5 => format!("(exit {})", dice.between(0, 130)),
        6 => format!("sh -c 'echo out; exit {}'", dice.between(0, 255)),
        7 => {
            format!("sh -c 'echo first; kill -s {} $$'", dice.pick(&["TERM", "KILL", "PIPE", "HUP", "USR1"]))
        }
        8 => "''".to_owned(),
        9 => "./sub".to_owned(),
        10 => "cat < nosuch".to_owned(),
        11 => "echo lost > sub".to_owned(),
        12 => "echo lost > nosuch/file".to_owned(),
        13 => "grep -q zzz small.txt".to_owned(),
        14 => "test 3 -gt 5".to_owned(),
        15 => "[[ abc == b* ]]".to_owned(),
        16 => "\"$unset\" arg".to_owned(),
        _ => "$unset".to_owned(),
    }
}

/// Standard error joined with standard output, in an order that the program itself keeps.
fn complains(dice: &mut Dice) -> Stage {
    let text = match dice.between(0, 11) {
        0 => "ls nosuch 2>&1",
        1 => "cat nosuch small.txt 2>&1",
        2 => "sh -c 'echo out; echo err >&2' 2>&1",
        3 => "{ echo out; echo err >&2; } 2>&1",
        4 => "nosuchcmd 2>&1",
        5 => "./plain 2>&1",
        6 => "cat < nosuch 2>&1",
        7 => "ls nosuch 2>&1 >/dev/null",
        8 => "sh -c 'echo out; echo err >&2' 2>/dev/null",
        9 => "sh -c 'echo out; echo err >&2' 2>&1 >/dev/null",
        10 => "sh -c 'echo three >&3' 3>&1",
        _ => "cat nosuch 2>&-",
    };
    Stage::plain(text)
}

fn large(dice: &mut Dice, observed: bool) -> Flow {
    let (text, binary) = match dice.between(0, 5) {
        0 => ("cat text".to_owned(), false),
        1 => (format!("seq {}", dice.between(10_000, 40_000)), false),
        2 => ("cat binary".to_owned(), true),
        3 => ("base64 binary".to_owned(), false),
        4 => ("cat text binary".to_owned(), true),
        _ => (format!("head -c {} text", dice.between(60_000, 200_000)), false),
    };
    Flow::from(Stage::plain(text), Amount::Large, binary, observed)
}

fn endless(dice: &mut Dice) -> String {
    match dice.between(0, 7) {
        0..=2 => "yes".to_owned(),
        3 => format!("yes {}", literal(dice)),
        4 => "seq 1 1000000000".to_owned(),
        5 => "while :; do echo round; done".to_owned(),
        6 => "awk 'BEGIN{while(1)print \"w\", ++i}'".to_owned(),
        _ => "yes 'long line of words'".to_owned(),
    }
}

/// Bytes without end and without lines: what reads lines would wait for ever.
fn zeros(dice: &mut Dice, observed: bool) -> Flow {
    let mut flow = Flow::from(Stage::plain("cat /dev/zero"), Amount::Infinite, true, observed);
    if dice.chance(50) {
        flow.through(Stage::plain("tr '\\0' '\\n'"));
    } else {
        flow.cut(Stage::plain(format!("head -c {}", dice.between(0, 100_000))));
    }
    flow
}

/// What looks at the terminal before it decides on a form.
fn listing(dice: &mut Dice) -> Stage {
    Stage::plain(match dice.between(0, 4) {
        0 => "ls",
        1 => "ls sub",
        2 => "test -t 1",
        3 => "gzip -nc < small.txt",
        _ => "{ [ -t 1 ] && echo terminal || echo none; }",
    })
}
