//! Pipelines and stages from reports.

use std::process::Command;

use observe::sampler::Sampler;
use observe::topology::{FillSource, LinkId};

use super::*;

fn took(ledger: &mut Ledger, pid: i32, link: u64, number: i32, at_ns: u64) {
    ledger.took(&Sender { pid, at_ns, ..Sender::default() }, link, number);
}

fn reaped(ledger: &mut Ledger, pid: i32, at_ns: u64, status: i32) {
    ledger.reaped(&Sender { pid, at_ns, ..Sender::default() }, status);
}

fn executes(ledger: &mut Ledger, pid: i32, parent: i32, arguments: &[u8], at_ns: u64) {
    ledger.executes(&Sender { pid, at_ns, ..Sender::default() }, parent, arguments, Vec::new());
}

fn names(ledger: &Ledger) -> Vec<Vec<String>> {
    let name = |joined: Pipeline| joined.processes.iter().map(|index| ledger.name(*index)).collect();
    ledger.pipelines().into_iter().map(name).collect()
}

#[test]
fn what_is_taken_back_is_no_other_part() {
    let mut ledger = Ledger::new(1);
    took(&mut ledger, 11, 7, 1, 1);
    for _ in 0..2 {
        took(&mut ledger, 12, 7, 0, 2);
        took(&mut ledger, 12, 8, 1, 2);
    }
    took(&mut ledger, 13, 8, 0, 3);
    assert_eq!(ledger.pipelines()[0].processes, [0, 1, 2]);
    assert_eq!(ledger.processes.len(), 3);
}

#[test]
fn processes_are_joined_by_their_links() {
    let mut ledger = Ledger::new(1);
    // The last one may come first.
    took(&mut ledger, 12, 8, 0, 5);
    took(&mut ledger, 10, 7, 1, 6);
    took(&mut ledger, 11, 7, 0, 7);
    took(&mut ledger, 11, 8, 1, 8);
    executes(&mut ledger, 10, 1, b"seq\x0010\0", 9);
    executes(&mut ledger, 11, 1, b"sort\0", 9);
    executes(&mut ledger, 12, 1, b"wc\0-l\0", 9);
    executes(&mut ledger, 13, 1, b"ls\0", 20);
    assert_eq!(names(&ledger), [vec!["seq 10", "sort", "wc -l"], vec!["ls"]]);
    reaped(&mut ledger, 11, 30, 2 << 8);
    reaped(&mut ledger, 10, 31, 13);
    let joined = &ledger.pipelines()[0];
    let stage = |at: usize| ledger.stage(0, joined, joined.processes[at]);
    assert_eq!(stage(1).map(|stage| (stage.status, stage.wall_ns)), Some((Some(2), 23)));
    assert_eq!(stage(0).map(|stage| (stage.status, stage.signal)), Some((Some(141), Some(13))));
    assert_eq!(stage(2), None, "not waited for");
    assert_eq!((ledger.downstream(7), ledger.downstream(8)), (vec![7, 8], vec![8]));
}

/// `a | b` and `c | d`, of which d has ended; c and the links know what is behind them.
#[test]
fn stages_that_run_are_joined_by_the_links_that_they_have() {
    let mut children = [(); 3].map(|()| Command::new("sleep").arg("100").spawn().expect("sleep"));
    let [a, b, c] = [0, 1, 2].map(|at: usize| children[at].id().cast_signed());
    // No process has a number as large (proc_sys_kernel(5), pid_max).
    let ended = i32::MAX;
    let mut ledger = Ledger::new(1);
    for (pid, link, number) in [(a, 7, 1), (b, 7, 0), (c, 8, 1), (ended, 8, 0)] {
        took(&mut ledger, pid, link, number, 1);
    }
    let mut sampler = Sampler::default();
    let (entries, topology) = ledger.topology(&mut sampler, &|_| Some(FillSource::Sockets));
    assert_eq!(entries, [0, 1, 2]);
    assert_eq!(topology.stages.iter().map(|stage| &stage.pids[..]).collect::<Vec<_>>(), [[a], [b], [c]]);
    let links = topology.links.iter().map(|link| (link.id, &link.writers[..], &link.readers[..]));
    let expected = [
        (LinkId::Given(7), &[0][..], &[1][..]),
        (LinkId::Given(8), &[2], &[]),
        (LinkId::Output(b), &[1], &[]),
    ];
    assert_eq!(links.collect::<Vec<_>>(), expected);
    let fills = topology.links.iter().map(|link| (link.fill, link.readers_ended));
    let expected = [(FillSource::Sockets, false), (FillSource::Unknown, true), (FillSource::AnyPipe, false)];
    assert_eq!(fills.collect::<Vec<_>>(), expected);
    for child in &mut children {
        child.kill().and_then(|()| child.wait()).expect("ended");
    }
    assert!(ledger.topology(&mut sampler, &|_| None).0.is_empty());
}

/// Expected: words that a shell reads back. Happened: `cut -d  -f1`, `tr .  `.
/// Expected: the CPU time and the status of what the shell became. Happened: none, and 0.
#[test]
fn what_the_shell_becomes_has_its_own_figures() {
    let mut ledger = Ledger::new(1);
    let used = |user_us| Usage { user_us, ..Usage::default() };
    ledger.executes(&Sender { pid: 1, at_ns: 5, usage: used(1000) }, 0, b"grep\0", Vec::new());
    ledger.reaped(&Sender { pid: 1, at_ns: 9, usage: used(4000) }, 1 << 8);
    let stage = ledger.stage(0, &ledger.pipelines()[0], 0).expect("it has ended");
    assert_eq!((stage.status, stage.user_ns, stage.wall_ns), (Some(1), 3_000_000, 4));
}

#[test]
fn what_the_shell_does_of_a_pipeline_ends_when_it_has_its_input_back() {
    let mut ledger = Ledger::new(1);
    let used = |user_us| Usage { user_us, ..Usage::default() };
    let sender = |at_ns, user_us| Sender { pid: 1, at_ns, usage: used(user_us) };
    took(&mut ledger, 10, 7, 1, 1);
    ledger.took(&sender(2, 100), 7, 0);
    // A redirection within the loop.
    ledger.left(&sender(3, 150), 7, 0);
    ledger.took(&sender(4, 150), 7, 0);
    ledger.left(&sender(8, 400), 7, 0);
    reaped(&mut ledger, 10, 20, 0);
    reaped(&mut ledger, 1, 30, 3 << 8);
    let joined = &ledger.pipelines()[0];
    let stage = ledger.stage(0, joined, joined.processes[1]).expect("it has ended");
    assert_eq!((stage.status, stage.user_ns, stage.wall_ns), (None, 300_000, 6));
    assert_eq!(ledger.processes.len(), 2);
}

#[test]
fn a_text_says_what_the_shell_does_itself_where_that_is_certain() {
    let loops = "seq 3 | while read x; do echo $x; done | wc -l";
    assert_eq!(typed_stages(loops, 3), ["seq 3", "while read x; do echo $x; done", "wc -l"]);
    // Happened: "(sleep .1)" was the name of a loop before a program with a semicolon or a new line in quotes.
    let quoted = "while true; do x; done | awk '{a; b}' | python3 -c \"a\nb\"";
    assert_eq!(typed_stages(quoted, 3)[0], "while true; do x; done");
    for (text, count) in [
        (loops, 2),
        ("seq 3 | read x; echo", 2),
        ("seq 3 || true", 2),
        ("a | tr '|' x", 2),
        ("echo 'a'; b | c", 2),
        (r#"echo "\""; b "x" | c"#, 2),
    ] {
        assert!(typed_stages(text, count).is_empty(), "{text}");
    }
}

#[test]
fn words_keep_their_quotes() {
    let mut ledger = Ledger::new(1);
    executes(&mut ledger, 10, 1, b"cut\0-d \0-f1\0", 1);
    executes(&mut ledger, 11, 1, b"tr\0.\0 \0", 2);
    executes(&mut ledger, 12, 1, b"sort\0\0", 3);
    assert_eq!(names(&ledger), [["cut '-d ' -f1"], ["tr . ' '"], ["sort ''"]]);
}

#[test]
fn what_a_shell_does_itself_has_no_program() {
    let mut ledger = Ledger::new(1);
    took(&mut ledger, 10, 7, 1, 1);
    took(&mut ledger, 1, 7, 0, 2);
    executes(&mut ledger, 20, 10, b"echo\0a\0", 3);
    executes(&mut ledger, 21, 10, b"sleep\x001\0", 4);
    // The shell reads the next pipeline, too.
    took(&mut ledger, 30, 9, 1, 9);
    took(&mut ledger, 1, 9, 0, 9);
    assert_eq!(
        names(&ledger),
        [["(echo a; sleep 1)", "(in the shell)"], ["(in the shell)", "(in the shell)"]]
    );
}

/// Expected: a name. Happened: "(sleep 0.05; sleep 0.05; sleep 0.05; …" of a loop.
#[test]
fn a_subshell_is_called_by_each_of_its_programs_once() {
    let name = |commands: &[&[u8]]| {
        let mut ledger = Ledger::new(1);
        took(&mut ledger, 10, 7, 1, 1);
        for (pid, command) in (20..).zip(commands) {
            executes(&mut ledger, pid, 10, command, 3);
        }
        names(&ledger).remove(0).remove(0)
    };
    let [date, sleep] = [b"date\0".as_slice(), b"sleep\x001\0"];
    assert_eq!(name(&[date, sleep, date, sleep]), "(date; sleep 1)");
    assert_eq!(name(&[b"grep\0a\0", b"grep\0b\0", date]), "(grep a; grep b; date)");
    let grep: [&[u8]; 5] = [b"grep\0a\0", b"grep\0b\0", b"grep\0c\0", b"grep\0d\0", b"grep\0e\0"];
    assert_eq!(name(&[grep.as_slice(), &[sleep]].concat()), "(grep …; sleep 1)");
}

/// Expected: a writer that got no SIGPIPE because its pipe is large is noticed. Happened: `seq 100000 | head -n1` had status 0, in bash 141.
#[test]
fn bytes_that_a_reader_left_are_known_if_all_writers_ended_well() {
    let left = |written, read, status| {
        let mut ledger = Ledger::new(1);
        took(&mut ledger, 10, 7, 1, 1);
        took(&mut ledger, 11, 7, 0, 1);
        for (pid, written, read) in [(10, written, 5000), (11, 7, read)] {
            ledger.moved(pid, Moved { read, written });
        }
        reaped(&mut ledger, 11, 2, 0);
        assert_eq!(ledger.left_in(7), None, "its writer runs");
        reaped(&mut ledger, 10, 3, status);
        ledger.left_in(7)
    };
    assert_eq!(left(588_895, 13_000, 0), Some(575_895));
    assert_eq!(left(588_895, 13_000, 13), None, "SIGPIPE");
    assert_eq!(left(588_895, 595_000, 0), None, "it read all, and its libraries");
    assert_eq!(left(600_000, 307_000, 0), None, "tee");
}

#[test]
fn what_is_over_is_forgotten_with_all_that_it_started() {
    let mut ledger = Ledger::new(1);
    // No process has a number as large (proc_sys_kernel(5), pid_max).
    let own = std::process::id() as i32;
    let [writer, child, reader] = [i32::MAX - 3, i32::MAX - 2, i32::MAX - 1];
    took(&mut ledger, writer, 7, 1, 1);
    executes(&mut ledger, child, writer, b"echo\0", 2);
    took(&mut ledger, reader, 7, 0, 3);
    took(&mut ledger, own, 8, 1, 4);
    took(&mut ledger, 1, 8, 0, 4);
    reaped(&mut ledger, child, 5, 0);
    reaped(&mut ledger, writer, 6, 0);
    reaped(&mut ledger, reader, 6, 0);
    let over = ledger.ended_pipelines();
    assert_eq!(over.len(), 1, "the other one's writer, which is this test, lives");
    ledger.forget(&over);
    assert!(!ledger.has_link(7) && ledger.has_link(8));
    assert_eq!(ledger.processes.len(), 2);
    reaped(&mut ledger, own, 9, 0);
    let over = ledger.ended_pipelines();
    ledger.forget(&over);
    assert!(ledger.processes.is_empty() && ledger.latest.is_empty());
}

/// Expected: a shell that runs pipeline after pipeline costs no more memory than one. Happened: all of them were remembered.
#[test]
fn what_has_ended_can_be_forgotten() {
    let mut ledger = Ledger::new(1);
    let own = std::process::id() as i32;
    took(&mut ledger, own, 9, 1, 1);
    for link in 10..1000 {
        let (writer, reader) = (i32::MAX - 3 * link, i32::MAX - 3 * link - 1);
        took(&mut ledger, writer, link as u64, 1, 2);
        took(&mut ledger, reader, link as u64, 0, 2);
        executes(&mut ledger, reader, 1, b"cat\0", 3);
        reaped(&mut ledger, writer, 4, 0);
        reaped(&mut ledger, reader, 4, 0);
    }
    assert_eq!(ledger.running().count(), 1);
    ledger.forget_ended(&|link| link == 999);
    assert_eq!(ledger.processes.len(), 3, "this test's own, which lives, and those of the link that is open");
    assert_eq!((ledger.latest.len(), ledger.alive.len(), ledger.children.len()), (3, 1, 1));
    assert_eq!(names(&ledger), [vec![IN_THE_SHELL], vec![IN_THE_SHELL, "cat"]]);
}

#[test]
fn a_number_that_comes_again_is_another_process() {
    let mut ledger = Ledger::new(1);
    executes(&mut ledger, 10, 1, b"a\0", 1);
    reaped(&mut ledger, 10, 2, 0);
    executes(&mut ledger, 10, 1, b"b\0", 3);
    assert_eq!(names(&ledger), [["a"], ["b"]]);
}
