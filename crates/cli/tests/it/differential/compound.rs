//! Stages that are small programs of the shell.

use super::case::Stage;
use super::dice::Dice;
use super::words::{word, words};

/// A compound command that writes a few lines.
pub(crate) fn writer(dice: &mut Dice) -> Stage {
    let count = dice.between(0, 6);
    Stage::plain(match dice.between(0, 17) {
        0 => format!("for i in {}; do echo \"$i\"; done", words(dice, 3)),
        1 => format!("for ((i = 0; i < {count}; i++)); do echo $i; done"),
        2 => format!("{{ i=0; while [ $i -lt {count} ]; do echo line $i; i=$((i + 1)); done; }}"),
        3 => "( echo a; echo b )".to_owned(),
        4 => format!("{{ echo a; {}; echo b; }}", inner(dice)),
        5 => format!("( {} | cat; exit {count} )", inner(dice)),
        6 => format!("if test -f small.txt; then {}; else echo none; fi", inner(dice)),
        7 => format!(
            "case {} in a*) echo A;; *.txt|b) echo file;; '') echo empty;; *) echo other;; esac",
            word(dice)
        ),
        8 => "until false; do echo once; break; done".to_owned(),
        9 => "{ f() { echo \"in f $1\"; return 4; }; f x; }".to_owned(),
        10 => "while read -r a b; do echo \"$b $a\"; done < small.txt".to_owned(),
        11 => format!("{{ [[ {} == *a* ]] && echo has an a; }}", word(dice)),
        12 => "(( 3 > 2 ))".to_owned(),
        13 => "let 'k = 4 * 5'".to_owned(),
        14 => "( cd sub && cat inner.txt && pwd | sed 's|.*/||' )".to_owned(),
        15 => "( X=1; export X; sh -c 'echo X is $X' )".to_owned(),
        16 => "cat <(echo one) <(echo two | tr a-z A-Z)".to_owned(),
        _ => "{ echo a | cat; echo b; } 2>/dev/null".to_owned(),
    })
}

/// A simple command, within another.
fn inner(dice: &mut Dice) -> String {
    match dice.between(0, 5) {
        0 => format!("echo {}", word(dice)),
        1 => "cat small.txt".to_owned(),
        2 => "seq 3 | tac".to_owned(),
        3 => "false || echo rescued".to_owned(),
        4 => "true && echo went on".to_owned(),
        _ => "printf '%s\\n' *.txt".to_owned(),
    }
}

/// A compound command that reads all of a small input.
pub(crate) fn reader(dice: &mut Dice, many_lines: bool) -> Stage {
    let one_line = [
        "while read -r l; do echo \"<$l>\"; done",
        "while IFS= read -r l; do printf '%s|' \"$l\"; done",
        "while read a b; do echo \"$b:$a\"; done",
        "while IFS=: read -r a b; do [ -n \"$b\" ] && echo \"$b\"; done",
        "{ n=0; while read -r l; do n=$((n + 1)); done; echo $n; }",
        "( tr a-z A-Z | sed 's/^/> /' )",
        "{ cat; echo end; }",
        "{ cat; exit 5; }",
        "( cat; false )",
        "if grep a; then echo found; else echo nothing; fi",
        "if true; then cat; fi",
        "for i in 1 2; do cat; done",
        "case x in x) cat;; esac",
        "{ mapfile -t a; echo \"${#a[@]}: ${a[*]}\"; }",
        "{ g() { tr a-z A-Z; }; g; }",
        "until ! read -r l; do echo \"-$l\"; done",
        "cat - <(echo more)",
        "paste -d= - <(seq 3)",
        "eval 'cat | rev'",
        "(cat | (cat | cat))",
        "{ cat; } | { cat; }",
        "xargs -d '\\n' -n1 -- echo 2>/dev/null",
    ];
    let with_breaks = [
        "{\n  cat\n  echo more\n}",
        "while read -r l\ndo\n  # a comment | with 'one quote\n  echo \"$l\"\ndone",
        "(\n cat |\n tr a b\n)",
        "case y in\n  x) echo x ;;\n  (y) cat ;;\nesac",
        "{ cat; cat <<E\nhere $x\nE\n}",
        "if cat\nthen echo fine\nfi",
    ];
    if many_lines && dice.chance(25) {
        return Stage::plain(dice.pick(&with_breaks));
    }
    Stage::plain(dice.pick(&one_line))
}
