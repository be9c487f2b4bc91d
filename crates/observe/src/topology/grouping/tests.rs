//! Which processes form a stage, and which stages a chain.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// A process from a text: `PID PARENT`, then `FD<PIPE` or `FD>PIPE` for each end of a pipe that it reads or writes, `w` if it waits for a
/// child, `y` if it is young. `!` behind a pipe: it waits for that end.
fn holder(text: &str) -> (Holder, (i32, i32)) {
    let mut words = text.split(' ');
    let mut number = || words.next().and_then(|word| word.parse::<i32>().ok()).expect("a number");
    let (pid, parent) = (number(), number());
    let mut holder = Holder { pid, ..Holder::default() };
    for word in words {
        match word {
            "w" => {
                holder.waits_for_children = true;
                continue;
            }
            "y" => {
                holder.is_young = true;
                continue;
            }
            _ => {}
        }
        let at = word.find(['<', '>']).expect("a direction");
        let link = LinkId::Pipe((0, word[at + 1..].trim_end_matches('!').parse().expect("a pipe")));
        let side = Side { link, writes: &word[at..=at] == ">" };
        holder.awaited.extend(word.ends_with('!').then_some(side));
        holder.sides.entry(side).or_default().push(word[..at].parse().expect("a descriptor"));
    }
    (holder, (pid, parent))
}

/// The chains of these processes, each as its links `WRITERS>READERS`, or `?` for an end without a stage. A stage is the PIDs of its leaders,
/// joined by `+`, and those of its other processes in parentheses.
fn drawn(texts: &[&str]) -> Vec<String> {
    let (holders, parents): (Vec<Holder>, HashMap<i32, i32>) = texts.iter().map(|text| holder(text)).unzip();
    let chain = |graph: &Topology| {
        let name = |at: &usize| {
            let group = &graph.stages[*at];
            let pids: Vec<String> = group.pids.iter().map(i32::to_string).collect();
            pids[..group.leaders].join("+")
                + &pids[group.leaders..].iter().map(|pid| format!("({pid})")).collect::<String>()
        };
        let names = |places: &[usize]| match places {
            [] => "?".to_owned(),
            places => places.iter().map(name).collect::<Vec<_>>().join(","),
        };
        let mut links: Vec<&Link> = graph.links.iter().collect();
        links.sort_by_key(|link| link.writers.first().copied());
        let links = links.iter().map(|link| format!("{}>{}", names(&link.writers), names(&link.readers)));
        links.collect::<Vec<_>>().join(" ")
    };
    let mut drawn: Vec<String> = chains_of(&holders, &parents).iter().map(chain).collect();
    drawn.sort();
    drawn
}

/// Expected: a chain. Happened: the processes were said to be in none, as each has both ends (fork(2) without close(2), multiprocessing.Queue).
#[test]
fn of_a_pipe_that_both_have_whole_the_waiting_end_is_used() {
    assert_eq!(drawn(&["10 1 3<1 4>1 w", "11 10 3<1! 4>1"]), ["10>11"]);
    assert_eq!(drawn(&["10 1 3<1 4>1 w", "11 10 3<1 4>1!"]), ["11>10"]);
    assert_eq!(drawn(&["10 1 3<1! 4>1", "11 10 3<1 4>1!"]), ["11>10"]);
    // Nothing is known, or both wait for the same end.
    assert_eq!(drawn(&["10 1 3<1 4>1", "11 10 3<1 4>1"]), [""; 0]);
    assert_eq!(drawn(&["10 1 3<1! 4>1", "11 10 3<1! 4>1"]), [""; 0]);
    // One with other ends, too, of which the queue was dropped as inherited.
    assert_eq!(drawn(&["10 1 3<1 4>1 5<2", "11 10 3<1 4>1! 6>2"]), ["11>10 11>10"]);
    assert_eq!(drawn(&["10 1 3<1! 4>1", "11 10 3<1 4>1"]), [""; 0]);
    // What wakes a process by itself, inherited by a child that uses another pipe.
    assert_eq!(drawn(&["10 1 3<1! 4>1 5>2", "11 10 3<1 4>1 0<2!"]), ["10>11"]);
}

#[test]
fn a_shell_that_waits_for_its_children_is_no_stage() {
    assert_eq!(drawn(&["2 1 1>10", "3 1 0<10 1>11", "4 1 0<11"]), ["2>3 3>4"]);
    // bash -c 'a | b' | c
    assert_eq!(drawn(&["1 0 1>9 w", "2 1 1>10", "3 1 0<10 1>9", "4 0 0<9"]), ["2>3 3>4"]);
    // while read line; do program; done
    assert_eq!(drawn(&["2 1 1>10", "3 1 0<10 w", "4 3 0<10"]), ["2>3(4)"]);
    // A shell that does not wait, and writes beside the pipeline that it has started in the background.
    assert_eq!(drawn(&["1 0 1>9", "2 1 1>10", "3 1 0<10 1>9", "4 0 0<9"]), ["1,3>4 2>3"]);
}

#[test]
fn ends_that_are_merely_still_held_or_inherited_join_nobody() {
    // A parent that has not closed the pipe of its children.
    assert_eq!(drawn(&["1 0 3<10 4>10", "2 1 1>10", "3 1 0<10"]), ["2>3"]);
    // A parent that writes, and has not closed the end for reading.
    assert_eq!(drawn(&["1 0 3<10 4>10", "2 1 0<10"]), ["1>2"]);
    // The jobserver of make, and its output.
    let make =
        ["1 0 3<8 4>8 1>9 w", "2 1 3<8 4>8 1>9 w", "3 2 3<8 4>8 1>10", "4 2 3<8 4>8 0<10 1>9", "5 0 0<9"];
    assert_eq!(drawn(&make), ["3>4 4>5"]);
    // A pipe by which a process wakes itself.
    assert_eq!(drawn(&["2 1 5<7 6>7 1>10", "3 1 0<10"]), ["2>3"]);
    // An end that all processes have inherited.
    assert_eq!(
        drawn(&["1 0 9>7", "2 1 9>7 1>10", "3 1 9>7 0<10", "4 3 9>7 0<10", "5 0 0<7"]),
        ["1>5", "2>3(4)"]
    );
}

#[test]
fn standard_error_joins_where_nothing_else_does() {
    // A program that reads the output and the standard error of a pipeline, through one pipe and through two.
    assert_eq!(drawn(&["1 0 1>9 2>9 w", "2 1 1>10 2>9", "3 1 0<10 1>9 2>9", "4 0 3<9"]), ["2>3 3>4"]);
    assert_eq!(drawn(&["1 0 1>8 2>9 w", "2 1 1>10 2>9", "3 1 0<10 1>8 2>9", "4 0 3<8 5<9"]), ["2>3 3>4"]);
    // A child of xargs before it replaces its standard input, with a pipe of its own; later it is what a shell waits for.
    let child_of_xargs = |word: &str| format!("3 2 0<10 1>11 5>12{word}");
    assert_eq!(drawn(&["1 0 1>10", "2 0 0<10 1>11 w", &child_of_xargs(" y"), "4 0 0<11"]), ["1>2,3 2,3>4"]);
    assert_eq!(drawn(&["1 0 1>10", "2 0 0<10 1>11 w", &child_of_xargs(""), "4 0 0<11"]), ["1>3 3>4"]);
    // cmd 2> >(logger)
    assert_eq!(drawn(&["2 1 2>10", "3 1 0<10"]), ["2>3"]);
}

#[test]
fn what_branches_goes_round_or_leads_outside_is_drawn_all_the_same() {
    assert_eq!(drawn(&["2 1 1>10", "3 1 1>10", "4 1 0<10"]), ["2+3>4"], "two writers with nothing else");
    assert_eq!(drawn(&["2 1 1>10", "3 1 0<11 1>10", "4 1 0<10", "5 1 1>11"]), ["2,3>4 5>3"]);
    assert_eq!(drawn(&["1 0 60>10 63<11", "2 1 0<10 1>11"]), ["1>2 2>1"], "a coprocess");
    assert_eq!(drawn(&["2 1 0<10 1>11", "3 1 0<11"]), ["?>2 2>3"]);
    assert_eq!(drawn(&["2 1 5<10", "3 1 7>11"]), Vec::<String>::new(), "no standard stream");
    // A log to which many chains write is drawn at the end of each, and does not join them.
    let many: Vec<String> = (0..6)
        .flat_map(|at| [format!("{} 1 1>{at}", 10 + at), format!("{} 1 0<{at} 1>99", 20 + at)])
        .collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.push("50 1 0<99");
    let expected: Vec<String> = (0..6).map(|at| format!("{}>{} {}>50", 10 + at, 20 + at, 20 + at)).collect();
    assert_eq!(drawn(&many), expected);
}

proptest! {
    /// For all holders: links have indices of stages, no process is in a chain twice, and every link has an end.
    #[test]
    fn nothing_upsets_it(
        held in prop::collection::vec((0..12i32, 0..12i32, prop::collection::vec((0..6i32, 0..8u64, any::<bool>()), 0..5), any::<bool>()), 0..12),
    ) {
        let mut parents = HashMap::new();
        let mut holders: BTreeMap<i32, Holder> = BTreeMap::new();
        for (pid, parent, ends, waits_for_children) in held {
            parents.insert(pid, parent);
            let mut holder = Holder { pid, waits_for_children, ..Holder::default() };
            for (fd, link, writes) in ends {
                holder.sides.entry(Side { link: LinkId::Pipe((0, link)), writes }).or_default().push(fd);
            }
            holders.insert(pid, holder);
        }
        let holders: Vec<Holder> = holders.into_values().collect();
        for chain in chains_of(&holders, &parents) {
            for link in &chain.links {
                prop_assert!(!link.writers.is_empty() || !link.readers.is_empty());
                prop_assert!(link.writers.iter().chain(&link.readers).all(|at| *at < chain.stages.len()));
            }
            let mut pids: Vec<i32> = chain.stages.iter().flat_map(|stage| stage.pids.clone()).collect();
            pids.sort_unstable();
            let before = pids.len();
            pids.dedup();
            prop_assert_eq!(before, pids.len());
            prop_assert!(chain.stages.iter().all(|stage| (1..=stage.pids.len()).contains(&stage.leaders)));
        }
    }
}
