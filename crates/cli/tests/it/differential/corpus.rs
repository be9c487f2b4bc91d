//! Command lines as people type them, each run over all links.

use super::case::{Case, Item, Seen, Stage};

const PLAIN: &[&str] = &[
    "cat text | sort | uniq -c | sort -rn | head -n 3 | awk '{print $1}'",
    "cut -d' ' -f1 text | sort | uniq -u | wc -l",
    "cat small.txt",
    "cat text text text | wc -c",
    "grep -o '[a-z]*' text | sort | uniq -c | sort -k1,1nr -k2 | sed 3q > .out1; cat .out1",
    "printf '%s\\n' *.txt | while read -r f; do wc -l < \"$f\"; done | paste -sd+ | sed 's/$//'",
    "tr -cs A-Za-z '\\n' < text | tr A-Z a-z | sort | uniq -c | sort -rn | sed 10q",
    "echo hello | tr a-z A-Z | tee .out1 | rev; cat .out1",
    "x=5; echo $x | cat; y=$(echo $x | tr 5 6); echo $y",
    "cd sub && cat inner.txt | tr a-z A-Z; pwd | sed 's|.*/||'",
    "find . -name '*.txt' -print0 | sort -z | xargs -0 wc -c | tail -n 1",
    "seq 1000 | awk '{s+=$1} END {print s}'",
    "seq 20000 | tac | tac | md5sum",
    "cat <<E | tr a-z A-Z | wc -l\none\ntwo $((1+1))\nE",
    "cat <<'A'; cat <<B\n$x\nA\nsecond\nB\n",
    "for f in small.txt words.txt; do cat $f | wc -l; done",
    "(echo b; echo a) | sort | { read -r x; echo \"$x\"; cat; }",
    "echo \"$?:${PIPESTATUS[*]}\"",
    "! true | false; echo \"$?:${PIPESTATUS[*]}\"; ! true; echo \"$?:${PIPESTATUS[*]}\"",
    "set -f; nosuchcmd 2>&1; set +f\nnosuchcmd 2>&1 | cat\necho $LINENO",
    "trap '' PIPE; seq 100000 2>/dev/null | head -n 2",
    "readonly r=1; r=2; echo never",
    "set -- a b c; shift; echo $1 | cat; echo $#",
    "shopt -s extglob\necho @(small|words).txt | cat",
    "echo hi | cat\n | |",
    "cd sub; cd - | cat; pwd; pushd sub; popd | cat; popd",
    "! exit 3",
    "RANDOM=5; echo $RANDOM; echo a | cat; echo $RANDOM",
    "set -o noclobber; echo a > .out1; echo b > .out1; echo $?; echo c | cat > .out1; echo $?",
    "unset PATH; ls | cat; echo $?",
    "true | false; echo $?; set -o pipefail; false | true; echo $?",
    "false | true | sh -c 'exit 3'; echo ${PIPESTATUS[*]}",
    "! true | false && echo negated",
    "nosuchcmd | cat; echo $?; cat small.txt | nosuchcmd; echo $?",
    "./plain; echo $?; ./script a < small.txt | wc -l; ./tool x | cat; echo ${PIPESTATUS[0]}",
    "ls nosuch |& wc -l",
    "sh -c 'echo out; echo err >&2' |& sort",
    "sh -c 'echo out; echo err >&2' 2>&1 >/dev/null | cat",
    "echo one > .out1; echo two >> .out1; cat < .out1 | nl",
    "echo \"a  b\" 'c  d' e\\ f $'g\\th' \"\" '' | cat -A",
    "printf 'x\\0y\\0' | xargs -0 -n1 echo item",
    "head -c 0 small.txt | wc -c; : | cat; cat empty | sort | wc -l",
    "f() { sed \"s/^/$1/\"; }; cat small.txt | f '> ' | f '- ' | tail -n 1",
    "exec 3>.out1; echo to three >&3 | cat; exec 3>&-; cat .out1 | rev",
    "trap 'echo bye' EXIT; echo hi | cat; exit 4",
    "read -r a b; read -r c; echo \"$c|$b|$a\" | cat; cat | wc -l",
    "kill -s TERM $$; echo never",
    "sh -c 'kill -s PIPE $$'",
    "sh -c 'kill -s KILL $$' | cat; echo ${PIPESTATUS[@]}",
    "echo {a,b}{1..3} | tr ' ' '\\n' | sort -r",
    "cat small.txt | while read -r a b; do echo \"$b\"; done | grep -v '^$' | sort",
    "diff <(sort small.txt) <(sort -u small.txt) | cat",
    "echo a |\n  # between\n  cat |\ncat -n # end",
    "time seq 3 | wc -l",
    "echo $(echo nested | tr a-z A-Z | rev) | cat",
    "if cat small.txt | grep -q Tea; then echo yes | cat; else echo no; fi",
    "n=0; while [ $n -lt 3 ]; do echo $n; n=$((n+1)); done | paste -sd,",
    "echo a | cat && false | cat || echo b | cat",
    "export V=seen; sh -c 'echo $V' | cat; V=other sh -c 'echo $V' | cat",
    "cat - small.txt < words.txt | sort -u | cksum",
    "base64 binary | base64 -d | cmp - binary; echo $?",
    "cat text | (cat | (cat | cat)) | cat | cat | cat | cat | cksum",
];

/// Endless writers, and readers that leave.
const CUT: &[&str] = &[
    "yes | head -n1",
    "yes | head -n 100000 | wc -l",
    "cat /dev/zero | head -c 100000 | tr '\\0' x | cksum",
    "seq 1 1000000000 | sed 3q",
    "yes | cat | cat | cat | head -c 10; echo \"st: ${PIPESTATUS[*]}\"",
    "set -o pipefail; yes | tr y n | head -n 2; echo \"st: $?\"",
    "while :; do echo round; done | head -n 2; echo \"st: ${PIPESTATUS[*]}\"",
    "yes | while read -r l; do echo \"$l\"; break; done",
    "yes abc | grep -m2 b | tr a-z A-Z",
    "yes | true; echo over",
    "yes | sleep 0; echo over",
    "awk 'BEGIN{while(1)print \"x\"}' | head -n 1; echo \"st: ${PIPESTATUS[*]}\"",
    "set -o pipefail; yes | head -n 3 | wc -l && echo fine || echo \"st: $?\"",
];

/// The cases, their differences known.
pub(crate) fn cases() -> Vec<Case> {
    let mut items: Vec<Item> = PLAIN.iter().map(|text| Item::plain(*text)).collect();
    items.extend(CUT.iter().map(|text| Item { infinite: true, early_exit: true, ..Item::plain(*text) }));
    let first = || Stage::plain("cat small.txt");
    let last = Stage::plain("cat -A");
    for (seen, text, other) in [
        (Seen::SocketIn, "cat /dev/stdin", "false"),
        (Seen::SocketIn, "wc -l < /dev/stdin", "false"),
        // What lies in the pipe is read by the first; a file gives it back.
        (Seen::FileIn, "{ head -n 1; cat; }", "cat"),
    ] {
        items.push(Item::of(vec![first(), Stage::plain(text).but(seen, other)]));
    }
    for (seen, text, other) in [
        (Seen::SocketOut, "{ echo a >> /dev/stdout; echo b; }", "echo b"),
        (Seen::SocketOut, "echo a > /dev/stdout", "false"),
        (Seen::SocketOut, "{ echo a > /dev/stdout; sleep 0.1; echo b; }", "echo b"),
    ] {
        items.push(Item::of(vec![Stage::plain(text).but(seen, other), last.clone()]));
    }
    for text in ["gzip -nc < small.txt", "ls", "{ test -t 1; echo $?; }"] {
        items.push(Item::of(vec![Stage::plain(text), last.clone()]));
    }
    let case = |(number, item)| Case { number: number as u64, items: vec![item], pipefail: false };
    items.into_iter().enumerate().map(case).collect()
}
