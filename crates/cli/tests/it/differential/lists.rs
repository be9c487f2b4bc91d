//! Whole cases: lists of pipelines, some of which leave something for the next to see.

use super::case::{Case, Item, Join, Stage};
use super::dice::Dice;
use super::filters;
use super::sources;
use super::words::word;

/// What the pipelines of a case share.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    files: u32,
    /// Whether the statuses of all stages are shown.
    observed: bool,
}

impl Scope {
    /// A file that nothing else of the case writes. Hidden, so that no `*` of the same pipeline may see it or not.
    pub(crate) fn new_file(&mut self) -> String {
        self.files += 1;
        format!(".out{}", self.files)
    }
}

/// The case of this number.
pub(crate) fn case(seed: u64, number: u64) -> Case {
    let dice = &mut Dice::of(seed, number);
    let mut scope = Scope { observed: dice.chance(25), ..Scope::default() };
    let pipefail = scope.observed && dice.chance(30);
    let mut items = Vec::new();
    if dice.chance(45) {
        items.extend(preparation(dice, scope.observed));
    }
    for _ in 0..dice.pick(&[1, 1, 1, 1, 2, 2, 3]) {
        items.extend(list_item(dice, &mut scope));
    }
    for item in &mut items {
        decorate(dice, item);
    }
    Case { number, items, pipefail }
}

/// Joins, prefixes and comments.
fn decorate(dice: &mut Dice, item: &mut Item) {
    // What was joined on purpose stays.
    if item.join == Join::Semicolon {
        item.join = match dice.between(0, 9) {
            0..=3 => Join::Semicolon,
            4..=6 => Join::Newline,
            7 | 8 => Join::And,
            _ => Join::Or,
        };
    }
    if item.prefix.is_empty() && dice.chance(8) {
        item.prefix = dice.pick(&["! ", "time ", "time -p ", "! ! "]);
    }
    if dice.chance(6) {
        item.comment = Some(dice.pick(&["# remark", "# it's | not && read", "#", "# \"open"]));
    }
    let one_line = item.comment.is_some() || item.stages.iter().any(|stage| stage.body.is_some());
    for stage in &mut item.stages {
        if dice.chance(25) {
            let many = [" |\n", "|\n  ", " | # on to the next\n"];
            stage.glue = if one_line || dice.chance(60) {
                dice.pick(&["|", " |& ", "|&", "  |  "])
            } else {
                dice.pick(&many)
            };
        }
    }
    for index in 1..item.stages.len() {
        // What a program says when it loses its reader, or may not open a socket, belongs to the link.
        let says_more = item.early_exit || !item.stages[index - 1].otherwise.is_empty();
        if says_more && item.stages[index].glue.contains('&') {
            item.stages[index].glue = " | ";
        }
    }
}

/// Something that what follows depends on.
fn preparation(dice: &mut Dice, observed: bool) -> Vec<Item> {
    let text = match dice.between(0, 19) {
        0..=2 => format!("x={}", word(dice)),
        3 => format!("x=val n={} f=small.txt", dice.between(0, 20)),
        4 => "export x=exported".to_owned(),
        5 => "a=(one 'two three' four)".to_owned(),
        6 => "set -- p 'q r' s".to_owned(),
        7 => "cd sub".to_owned(),
        8 => "cd sub; cd -".to_owned(),
        9 => "f() { tr a-z A-Z; }".to_owned(),
        10 => "g() { echo \"g:$1\"; cat; }; export -f g".to_owned(),
        11 => "shopt -s nullglob".to_owned(),
        12 => "set -f".to_owned(),
        13 => "set -u".to_owned(),
        14 => "set -e".to_owned(),
        15 => "trap 'echo bye' EXIT".to_owned(),
        16 => "exec 3> .kept".to_owned(),
        17 => "read -r x".to_owned(),
        18 => "alias cat=tac".to_owned(),
        _ => "declare -i n=4+5; readonly r=1".to_owned(),
    };
    let mut items: Vec<Item> = text.split("; ").map(Item::plain).collect();
    // Definitions have `;` inside.
    if text.contains("() {") {
        items = vec![Item::plain(text)];
    }
    if observed && dice.chance(60) {
        items.push(Item::plain("set -o pipefail"));
    }
    items
}

fn list_item(dice: &mut Dice, scope: &mut Scope) -> Vec<Item> {
    if dice.chance(14) {
        return vec![Item::plain(in_the_shell(dice, scope))];
    }
    let mut items = vec![pipeline(dice, scope)];
    if scope.observed && dice.chance(70) {
        let statuses = Item::plain("echo \"st: $? ${PIPESTATUS[*]}\"");
        items.push(if dice.chance(70) { statuses } else { Item::plain("echo \"st: ${PIPESTATUS[@]}\"") });
    } else if dice.chance(15) {
        items.push(Item::plain("echo \"st: $?\""));
    }
    items
}

/// A pipeline of a length as people write them.
fn pipeline(dice: &mut Dice, scope: &mut Scope) -> Item {
    let mut flow = sources::source(dice, scope.observed);
    for _ in 0..dice.pick(&[0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 6]) {
        filters::filter(dice, &mut flow, scope);
    }
    filters::ends(dice, &mut flow);
    // A function that may not be there, and then reads nothing.
    if flow.may_be_left() && dice.chance(7) {
        flow.cut(Stage::plain(dice.pick(&["f", "g 1"])));
    }
    let mut item = flow.item();
    if dice.chance(8) {
        let file = scope.new_file();
        let to = dice.pick(&[" > FILE", " >> FILE", " >FILE 2>&1", " &> FILE", " >| 'FILE'"]);
        if let Some(last) = item.stages.last_mut().filter(|last| !last.text.contains(".out")) {
            last.append(&to.replace("FILE", &file));
        }
    }
    item
}

/// What the shell itself does, between pipelines.
fn in_the_shell(dice: &mut Dice, scope: &mut Scope) -> String {
    match dice.between(0, 27) {
        0 => "echo \"$x|$n|$f\"".to_owned(),
        1 => "pwd".to_owned(),
        2 => "echo \"$#: $*\"".to_owned(),
        3 => "echo \"${a[@]} ${#a[@]}\"".to_owned(),
        4 => "x=$(seq 3 | tail -n 1)".to_owned(),
        5 => "echo $((n * 2))".to_owned(),
        6 => format!("exit {}", dice.between(0, 255)),
        7 => "true".to_owned(),
        8 => "false".to_owned(),
        9 => ":".to_owned(),
        10 => "shift".to_owned(),
        11 => "echo to three >&3".to_owned(),
        12 => "cat .out1".to_owned(),
        13 => "cat .out1 .kept 2>/dev/null | wc -c".to_owned(),
        14 => "x=${x}more".to_owned(),
        15 => "unset x".to_owned(),
        16 => format!("[ \"$x\" = {} ]", word(dice)),
        17 => "sh -c 'kill -s TERM $$'".to_owned(),
        18 => {
            dice.pick(&["kill -s TERM $$", "kill -s PIPE $$", "kill -s INT $$", "kill -s KILL $$"]).to_owned()
        }
        19 => format!("mkdir {}", scope.new_file()),
        20 => format!("printf '%s\\n' made > {}", scope.new_file()),
        21 => "eval 'x=1; echo $x | cat'".to_owned(),
        22 => ". ./sourced".to_owned(),
        23 => "x=5 y=6".to_owned(),
        24 => "echo $BASH_SUBSHELL $LINENO".to_owned(),
        25 => "(cd sub; pwd; x=lost)".to_owned(),
        26 => dice
            .pick(&[
                "echo a | | cat",
                "fi",
                "echo (",
                "echo 'open",
                "&& true",
                "echo a &&",
                "{ echo a",
                "echo a >",
            ])
            .to_owned(),
        _ => "shopt -s lastpipe; echo last | read -r x".to_owned(),
    }
}
