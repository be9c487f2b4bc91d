//! Later stages: what reads from a pipeline.

use super::case::{Seen, Stage};
use super::compound;
use super::dice::Dice;
use super::flow::{Amount, Flow};
use super::lists::Scope;

/// What `wc` does when its standard input is a file.
const AS_FROM_FILE: &str = "{ cat > .in; wc < .in; rm .in; }";

/// Adds a stage to the pipeline.
pub(crate) fn filter(dice: &mut Dice, flow: &mut Flow, scope: &mut Scope) {
    match flow.amount {
        Amount::Infinite => filter_endless(dice, flow),
        _ => match dice.between(0, 99) {
            0..=29 => flow.through(Stage::plain(passes_on(dice, flow.binary))),
            30..=46 => flow.summed_up(Stage::plain(sums_up(dice))),
            // Its columns are as wide as a file's size has digits, and wider where there is no file.
            47 => flow.summed_up(Stage::plain("wc").but(Seen::FileIn, AS_FROM_FILE)),
            48..=57 if flow.may_be_left() => leaves_early(dice, flow),
            58..=63 if flow.may_be_left() => reads_nothing(dice, flow),
            64..=69 => keeps_a_copy(dice, flow, scope),
            70..=74 => turns_binary(dice, flow),
            75..=78 if flow.amount == Amount::Small && flow.may_be_left() => reopens(dice, flow),
            79..=81 if flow.amount == Amount::Small => leaves_input(dice, flow),
            82..=92 if flow.amount == Amount::Small => flow.through(compound::reader(dice, flow.many_lines)),
            93..=95 if flow.amount == Amount::Small && !flow.binary => {
                flow.through(Stage::plain(by_arguments(dice)));
            }
            _ => flow.through(Stage::plain(dice.pick(&["cat", "cat -", "tee", "sed ''", "tr a-z A-Z"]))),
        },
    }
}

/// Makes sure that the pipeline ends.
pub(crate) fn ends(dice: &mut Dice, flow: &mut Flow) {
    if flow.amount == Amount::Infinite {
        leaves_early(dice, flow);
    }
}

fn filter_endless(dice: &mut Dice, flow: &mut Flow) {
    if dice.chance(55) {
        return leaves_early(dice, flow);
    }
    // What uses up a line, or bytes, at a time, and writes as much.
    flow.through(Stage::plain(dice.pick(&[
        "cat",
        "tr a-z A-Z",
        "sed 's/^/> /'",
        "grep ''",
        "cut -c1-2",
        "nl",
        "rev",
        "fold -w 3",
        "awk '{print NR}'",
        "base64",
        "od -An -v -tx1",
        "cat -n",
        "sed p",
        "tr '\\0' '\\n'",
        "grep -v zzz",
        "paste - -",
        "cat 2>&1",
    ])));
}

/// As much comes out as goes in, more or less.
fn passes_on(dice: &mut Dice, binary: bool) -> String {
    match dice.between(0, 27) {
        0 | 1 => "cat".to_owned(),
        2 => "sort".to_owned(),
        3 => format!("sort {}", dice.pick(&["-r", "-n", "-u", "-k2", "-t: -k1,1", "-s -k1.2"])),
        4 => format!(
            "tr {}",
            dice.pick(&[
                "a-z A-Z",
                "-d aeiou",
                "-s ' '",
                "'\\n' ' '",
                "-c 'a-z\\n' _",
                "'[:upper:]' '[:lower:]'"
            ])
        ),
        5 => format!(
            "sed {}",
            dice.pick(&[
                "'s/a/b/g'",
                "-e 's|x|y|' -e p",
                "-n p",
                "'/^$/d'",
                "'s/\\(.\\)/\\1\\1/'",
                "y/abc/xyz/",
                "'$!N;s/\\n/+/'",
                "G"
            ])
        ),
        6 => format!(
            "awk {}",
            dice.pick(&[
                "'{print $1}'",
                "-F: '{print $NF}'",
                "'NR%2'",
                "'{n++} END {print n+0}'",
                "'{print length($0)\"|\"$0}'",
                "-v v=1 '{print v, $0}'"
            ])
        ),
        7 => format!(
            "grep {}",
            dice.pick(&["-v a", "e", "-n .", "-i T", "-E 'a|b'", "-F '$x'", "-a -c .", "-x y", "-a ''"])
        ),
        8 => format!("cut {}", dice.pick(&["-d' ' -f1", "-c2-", "-b1-3", "-d: -f2 -s", "-d, -f1,3"])),
        9 => "uniq".to_owned(),
        10 => format!("uniq {}", dice.pick(&["-c", "-d", "-u", "-i"])),
        // It stops at what is no character.
        11 if !binary => "rev".to_owned(),
        12 => dice.pick(&["nl", "nl -ba", "cat -n", "cat -A", "cat -b"]).to_owned(),
        13 => format!("fold -w {}", dice.between(5, 40)),
        14 => format!("paste {}", dice.pick(&["- -", "-s", "-d, - - -", "- small.txt", "-s -d+"])),
        15 => format!("head -n {}", dice.pick(&["-1", "-3"])),
        16 => format!("tail {}", dice.pick(&["-n 2", "-n +2", "-c 20", "-n1", "-c +3"])),
        17 => "tac".to_owned(),
        18 => "cat - small.txt".to_owned(),
        19 => "cat <&0".to_owned(),
        20 => "comm -23 - /dev/null".to_owned(),
        21 => "LC_ALL=C sort".to_owned(),
        22 => "( cat; echo after )".to_owned(),
        23 => "{ echo before; cat; }".to_owned(),
        24 => "command cat".to_owned(),
        25 => "tr -dc 'a-z0-9\\n'".to_owned(),
        26 => "\"cat\"".to_owned(),
        _ => "c\\at -\"\"".to_owned(),
    }
}

/// Reads everything and says little.
fn sums_up(dice: &mut Dice) -> &'static str {
    match dice.between(0, 11) {
        0..=2 => dice.pick(&["wc -l", "wc -c", "wc -m", "wc -w"]),
        3 => "cksum",
        4 => "md5sum",
        5 => "tail -c 100 -",
        6 => "awk 'END{print NR}'",
        7 => "grep -c ''",
        8 => "sed -n '$='",
        9 => "{ wc -c; }",
        10 => "(wc -l)",
        _ => "tail -n 1",
    }
}

/// A reader that goes before its writer is done.
fn leaves_early(dice: &mut Dice, flow: &mut Flow) {
    let text = match dice.between(0, 13) {
        0..=2 => format!("head -n{}", dice.between(0, 5)),
        3 => "head -1".to_owned(),
        4 | 5 => format!("head -c{}", dice.between(0, 9)),
        6 => "sed 1q".to_owned(),
        7 => "sed -n '2{p;q}'".to_owned(),
        8 => "awk 'NR==2{exit} {print}'".to_owned(),
        9 => "{ read -r l; echo \"<$l>\"; }".to_owned(),
        10 if !flow.binary => "while read -r l; do echo \"$l\"; break; done".to_owned(),
        11 if !flow.binary => "grep -m1 .".to_owned(),
        12 if flow.amount != Amount::Infinite => "grep -q a".to_owned(),
        _ => format!("head -n {}", dice.between(1, 3)),
    };
    flow.cut(Stage::plain(text));
}

fn reads_nothing(dice: &mut Dice, flow: &mut Flow) {
    let text = dice.pick(&[
        "true",
        "false",
        "echo nothing read",
        "cat small.txt",
        "cat < words.txt",
        "exit 3",
        "nosuchcmd",
        "./plain",
        "sh -c 'exit 7'",
        ":",
        "wc -l < small.txt",
        "cat <<< own",
        "sh -c 'kill -s TERM $$'",
        "(exit 4)",
        "wc -c <&-",
    ]);
    flow.cut(Stage::plain(text));
}

/// Writes a file as well, or instead.
fn keeps_a_copy(dice: &mut Dice, flow: &mut Flow, scope: &mut Scope) {
    let file = scope.new_file();
    let text = match dice.between(0, 8) {
        0..=2 => format!("tee {file}"),
        3 => format!("cat > {file}"),
        4 => format!("tee {file} > /dev/null"),
        5 => format!("sort >> {file}"),
        6 => format!("sed -n 'w {file}'"),
        7 => format!("{{ cat; echo err >&2; }} &> {file}"),
        _ => format!("tee -a \"{file}\" 2>/dev/null"),
    };
    flow.side_effects = true;
    flow.through(Stage::plain(text));
}

fn turns_binary(dice: &mut Dice, flow: &mut Flow) {
    let (text, binary) = match dice.between(0, 6) {
        0 => ("od -An -tx1", false),
        1 => ("base64", false),
        2 => ("od -c", false),
        3 => ("tr a '\\0'", true),
        4 => ("tr '\\0' '\\n'", flow.binary),
        _ if !flow.may_be_left() => ("tr e '\\377'", true),
        _ => {
            flow.through(Stage::plain("gzip -nc"));
            ("gzip -dc", flow.binary)
        }
    };
    flow.through(Stage::plain(text));
    flow.binary = binary;
}

/// Opens its own input or output by the name that /dev has for it.
fn reopens(dice: &mut Dice, flow: &mut Flow) {
    let input = |text: &str, other: &str| Stage::plain(text).but(Seen::SocketIn, other);
    let output = |text: &str, other: &str| Stage::plain(text).but(Seen::SocketOut, other);
    let unread = "(cat >/dev/null; exit 1)";
    let stage = match dice.between(0, 6) {
        0 | 1 => input("cat /dev/stdin", unread),
        2 => input("cat < /dev/stdin", unread),
        3 => input("cat /dev/fd/0", unread),
        4 => output("{ cat; echo again > /dev/stdout; }", "{ cat; false; }"),
        5 => output("{ cat; echo again >> /dev/stdout; echo then; }", "{ cat; echo then; }"),
        _ => input("wc -l /dev/stdin", unread),
    };
    flow.through(stage);
}

/// Readers one after the other on one input, the first of which takes all of a small input at once.
fn leaves_input(dice: &mut Dice, flow: &mut Flow) {
    let stage = match dice.between(0, 2) {
        // The shell reads byte by byte what it cannot seek in, so that this is the same everywhere.
        0 => Stage::plain("{ read -r first; echo \"[$first]\"; cat; }"),
        1 => Stage::plain("{ read -r -N 3 three; echo \"[$three]\"; wc -c; }"),
        _ => Stage::plain("{ read -r a; read -r b; printf '%s+%s\\n' \"$b\" \"$a\"; sort; }"),
    };
    flow.through(stage);
}

fn by_arguments(dice: &mut Dice) -> &'static str {
    match dice.between(0, 4) {
        0 => "xargs -d '\\n' echo",
        1 => "xargs -d '\\n' -n 2 printf '<%s %s>\\n'",
        2 => "xargs -d '\\n' -I{} echo item: {}",
        3 => "xargs -0 printf '%s;'",
        _ => "xargs -d '\\n' sh -c 'echo $#'",
    }
}
