//! `hosepipe spread`: what bash makes of everything at once, failures, and going on after them.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::common::programs::in_english;
use crate::common::{Done, HANGS_AFTER, Lab, files_in, is_root, promptly, signal, soon, until};

pub(crate) fn lab() -> Lab {
    let lab = Lab::new();
    let lines = |from: u32, count: u32| {
        (from..from + count)
            .map(|n| format!("{} word{} of a line\n", n * 7919 % 1003, n % 17))
            .collect::<String>()
    };
    for (number, count) in [(1, 3000), (2, 10), (3, 0), (4, 1), (5, 2000)] {
        fs::write(lab.here(&format!("in{number}")), lines(number * 1000, count)).expect("written");
    }
    lab
}

fn spread(lab: &Lab, args: &[&str]) -> Done {
    lab.run(&[&["spread"], args].concat())
}

pub(crate) fn by_bash(lab: &Lab, text: &str) -> String {
    let mut bash = Command::new("bash");
    let output = in_english(&mut bash).args(["-c", text]).current_dir(lab.here("")).output().expect("bash");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn what_is_known_comes_together_as_bash_has_it() {
    let lab = lab();
    for text in [
        "sort",
        "sort -rn",
        "sort -k2,2 -t ' ' -s",
        "sort -u",
        "sort | uniq",
        "sort -n | uniq -c",
        "sort -rn | head -n 7",
        "wc",
        "wc -l",
        "wc -L",
        "grep -c word3",
        "grep -ci 'WORD3 of'",
        "grep -c \"\"",
        "grep -cv \"\"",
    ] {
        let expected = by_bash(&lab, &format!("cat in1 in2 in3 in4 in5 | {text}"));
        for split in [&[][..], &["--split", "1000"], &["--split", "20k"]] {
            let done = spread(&lab, &[split, &["--map", text, "in[12]", "in3", "in4", "in5"]].concat());
            let done = done.expect_code(i32::from(text == "grep -cv \"\""));
            assert_eq!(done.stdout, expected, "{text} {split:?}");
        }
    }
    spread(&lab, &["--map", "grep -c nowhere", "in1", "in2"]).expect_code(1);
    // Larger than the integers of some awks: a file with a hole.
    let hole = fs::File::create(lab.here("hole")).and_then(|file| file.set_len(5 << 30));
    hole.expect("a file with a hole");
    let done = spread(&lab, &["--map", "wc -c", "hole", "in1"]).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "echo $(($(stat -c %s hole) + $(wc -c <in1)))"));
}

#[test]
fn everything_arrives_once_and_in_order() {
    let lab = lab();
    let expected = by_bash(&lab, "cat in5 in1 in2 in3");
    for more in [&["--split", "777", "-j", "5"][..], &["--via", "socketpair"], &["--check", "10k", "--stats"]]
    {
        let done = spread(
            &lab,
            &[more, &["--map", "cat | cat", "--reduce", "cat", "in5", "in1", "in2", "in3"]].concat(),
        );
        let done = done.expect_code(0);
        assert_eq!(done.stdout, expected, "{more:?}");
        if more.contains(&"--stats") {
            assert!(
                ["gave the same result", "map 1 cat", "map 2 cat", "reduce 1 cat"]
                    .iter()
                    .all(|said| done.stderr.contains(said)),
                "{}",
                done.stderr
            );
        }
    }
    let heads = spread(&lab, &["--map", "head -n 1", "--reduce", "cat", "--split", "20k", "in1", "in5"])
        .expect_code(0);
    assert!(heads.stdout.lines().count() >= 4, "{}", heads.stdout);
    let record = spread(&lab, &["--map", "cat", "--reduce", "wc -l; exit 3", "--json", "r.json", "in1"])
        .expect_code(3);
    let record_text = fs::read_to_string(lab.here("r.json")).expect("a record");
    assert!(record_text.contains("\"stages\"") && record.stdout.trim() == "3000", "{record_text}");
    lab.run(&["report", "r.json"]).expect_code(0);
}

/// Happened: more at a time than this process may have descriptors ended all of them.
#[test]
fn as_many_at_a_time_as_the_system_has_room_for() {
    let lab = lab();
    let few = ["sh", "-c", "ulimit -n 20; exec \"$@\"", "sh"];
    let words = ["spread", "-j", "100", "--map", "sleep 0.3; cat", "--reduce", "cat", "--split", "1k", "in1"];
    let done = lab.finish(lab.wrapped(&few, &words)).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "cat in1"));
}

#[test]
fn a_failure_costs_its_partition_and_what_is_finished_is_not_done_again() {
    let lab = lab();
    fs::write(lab.here("in4"), "945 x\n").expect("written");
    let map = "echo run >> log; read -r first; { [ -e mended ] || [[ $first != 945* ]]; } && echo \"$first\"";
    let args = ["-j", "1", "--map", map, "--reduce", "cat", "--work", "w", "in1", "in2", "in4", "in5"];
    let runs = || fs::read_to_string(lab.here("log")).map_or(0, |log| log.lines().count());
    let done = spread(&lab, &args).expect_code(1);
    assert_eq!((done.stdout.as_str(), runs()), ("", 3), "{}", done.stderr);
    assert!(spread(&lab, &args).expect_code(2).stderr.contains("holds work already"));
    let done =
        spread(&lab, &[&["--resume", "--keep-going", "--retries", "2"], &args[..]].concat()).expect_code(1);
    assert_eq!((done.stdout.as_str(), runs()), ("", 3 + 1 + 3), "{}", done.stderr);
    for words in ["partition 3 of 4 (", "in4) exited with 1", "3 of 4 partitions are finished", "--resume"] {
        assert!(done.stderr.contains(words), "no `{words}` in {}", done.stderr);
    }
    let other = spread(&lab, &[&args[..], &["in3", "--resume"]].concat()).expect_code(2);
    assert!(other.stderr.contains("another list of inputs"), "{}", other.stderr);
    fs::write(lab.here("mended"), "").expect("written");
    let done = spread(&lab, &[&args[..], &["--resume"]].concat()).expect_code(0);
    assert_eq!((done.stdout.lines().count(), runs()), (4, 3 + 1 + 3 + 1), "{}", done.stdout);
}

/// Happened: a name that is no text was a problem of another folder, and what lay about without its plan was taken for ours.
#[test]
fn whatever_the_names_and_whatever_lies_about() {
    let lab = lab();
    let names = [&b"new\nline"[..], b"it's \"q\" $x", b"lat\xe9in", b"{work}"].map(OsStr::from_bytes);
    names.iter().for_each(|name| fs::write(lab.here("").join(name), "b\na\n").expect("written"));
    let mut command = lab.command(&["spread", "--map", "sort", "--work", "w {keep_going} 'q'"]);
    command.args(names);
    assert_eq!(lab.finish(command).expect_code(0).stdout, "a\n".repeat(4) + &"b\n".repeat(4));
    let mut command = lab.command(&["spread", "--map", "sort", "in1", "--work"]);
    command.arg(names[2]);
    let done = lab.finish(command).expect_code(2);
    assert!(done.stderr.contains("UTF-8"), "{}", done.stderr);
    fs::remove_file(lab.here("w {keep_going} 'q'/plan.jsonl")).expect("removed");
    let done = spread(&lab, &["--map", "wc", "--work", "w {keep_going} 'q'", "in1"]).expect_code(2);
    assert!(done.stderr.contains("holds work already"), "{}", done.stderr);
    let mut command = lab.command(&["spread", "--map", "wc", "in1"]);
    command.env("TMPDIR", "/nowhere");
    let done = lab.finish(command).expect_code(1);
    assert!(done.stderr.contains("/nowhere: set TMPDIR"), "{}", done.stderr);
}

/// Happened: Ctrl-C in the reduce lost all that was finished, and `kill -9` left it in a folder that was not named.
#[test]
fn a_reduce_that_is_stopped_can_be_done_otherwise() {
    let lab = lab();
    let args = ["spread", "--map", "cat", "--reduce", "echo $$ > slow; sleep 1000", "in1", "in2"];
    let begin = || {
        let running = lab.start(lab.command(&args));
        until("the reduce", soon(), || fs::metadata(lab.here("slow")).ok().filter(|file| file.len() > 0));
        fs::remove_file(lab.here("slow")).expect("removed");
        running
    };
    begin().kill_and_look();
    let mut running = begin();
    signal(running.pid(), Signal::TERM);
    let done = running.end_within(2 * promptly()).expect_code(143);
    let kept = files_in(&lab.tmp());
    let told = ["2 of 2 partitions are finished", "--resume", kept[0].as_str()];
    assert!(told.iter().all(|words| done.stderr.contains(words)), "{kept:?}: {}", done.stderr);
    let go_on = ["spread", "--work", &kept[0], "--resume", "--map", "cat", "in1", "in2", "--reduce"];
    let mut running = lab.start(lab.command(&[&go_on[..], &["wc -l"]].concat()));
    assert_eq!(running.end_within(soon()).expect_code(0).stdout.trim(), "3010");
    fs::remove_dir_all(&kept[0]).expect("removed");
}

#[test]
fn a_pipeline_that_cannot_be_spread_is_found_out() {
    let lab = lab();
    fs::write(lab.here("same"), "a\n".repeat(1000)).expect("written");
    let args = ["--split", "100", "--map", "uniq -c", "--reduce", "cat", "same"];
    // Happened: of more than there is nothing was checked.
    for most in ["1k", "1GiB"] {
        let done = spread(&lab, &[&args[..], &["--check", most]].concat()).expect_code(1);
        assert!(done.stdout.is_empty() && done.stderr.contains("cannot be spread"), "{}", done.stderr);
    }
    spread(&lab, &args).expect_code(0);
}

/// Happened: `{parts}` in a reduce that the user gave was taken for a mark of ours, and the shell read the variable of another name.
#[test]
fn a_reduce_that_is_given_is_run_as_it_is() {
    let lab = lab();
    let reduce = "parts=$(wc -l); echo ${parts} '{parts}'";
    let done = spread(&lab, &["--map", "cat", "--reduce", reduce, "in1", "in2"]).expect_code(0);
    assert_eq!(done.stdout, "3010 {parts}\n");
}

/// Happened: the input ended early for the program, and that was a success.
#[test]
fn an_input_whose_reader_is_killed_is_a_failure() {
    let lab = lab();
    fs::write(lab.here("large"), "line\n".repeat(1 << 20)).expect("written");
    let kill = "pipe=$(readlink /proc/self/fd/0); for p in /proc/[0-9]*; do
        [ \"$(cat $p/comm)\" = hosepipe-feed ] && ls -l $p/fd | grep -qF \"$pipe\" && kill -9 ${p#/proc/}
    done 2>/dev/null; cat";
    let args = ["--work", "w", "--split", "4MiB", "--map", kill, "--reduce", "cat", "large"];
    let done = spread(&lab, &args).expect_code(1);
    assert!(done.stdout.is_empty() && done.stderr.contains("was ended by SIGKILL"), "{}", done.stderr);
    let done = spread(&lab, &["--map", "cat", "--reduce", kill, "large", "in1"]).expect_code(125);
    assert!(done.stderr.contains("not everything could be read: "), "{}", done.stderr);
}

/// Happened: packed inputs were refused because of a --split that was not given.
#[test]
fn packed_inputs_can_be_checked() {
    let lab = lab();
    by_bash(&lab, "gzip in1 in2");
    let args = ["--check", "1k", "--map", "zcat", "--reduce", "cat", "in1.gz", "in2.gz"];
    let done = spread(&lab, &args).expect_code(0);
    assert!(done.stderr.contains("in 2 parts, gave the same result"), "{}", done.stderr);
    assert_eq!(done.stdout, by_bash(&lab, "zcat in1.gz in2.gz"));
}

/// Happened: the text of a name looked like a message of its own.
#[test]
fn a_name_makes_no_line_of_its_own() {
    let lab = lab();
    let name = "in\nerror: all went well";
    let done = spread(&lab, &["--map", "wc", name]).expect_code(2);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    fs::write(lab.here(name), "a\n").expect("written");
    let done = spread(&lab, &["--map", "exit 3", "--reduce", "cat", "--work", "w", name]).expect_code(1);
    assert!(!done.stderr.contains("\nerror: all"), "{}", done.stderr);
    assert!(done.stderr.contains("in␊error: all went well) exited with 3"), "{}", done.stderr);
}

/// Expected: a user who may write to the folder of the work decides what is run, so that it must be this one alone.
#[test]
fn a_folder_that_others_may_write_to_is_no_folder_for_the_work() {
    let lab = lab();
    let args = ["--map", "cat", "--reduce", "cat", "in2", "--work"];
    by_bash(&lab, "mkdir -m 777 open; mkdir own; echo precious > precious; ln -s ../precious own/plan.new");
    let done = spread(&lab, &[&args[..], &["open"]].concat()).expect_code(2);
    assert!(done.stderr.contains("all users may write to it"), "{}", done.stderr);
    spread(&lab, &[&args[..], &["own"]].concat()).expect_code(0);
    assert_eq!(fs::read_to_string(lab.here("precious")).expect("still there"), "precious\n");
    if is_root() {
        by_bash(&lab, "mkdir others; chown 65534 others");
        let done = spread(&lab, &[&args[..], &["others"]].concat()).expect_code(2);
        assert!(done.stderr.contains("belongs to another user"), "{}", done.stderr);
    }
}

#[test]
fn wrong_command_lines_say_what_is_wrong() {
    let lab = lab();
    fs::create_dir(lab.here("folder")).expect("made");
    let packed = Command::new("sh").args(["-c", "gzip <in1 >in1.gz"]).current_dir(lab.here("")).status();
    assert!(packed.expect("gzip").success());
    for (args, words) in [
        (
            &["--map", "zcat | wc -l", "--reduce", "cat", "--split", "16", "in1.gz"][..],
            "is compressed (gzip)",
        ),
        (&["--map", "cut -c1", "in1"][..], "no reduce is known for `cut -c1`"),
        (&["--map", "cat", "--reduce", "cat"], "INPUT"),
        (&["--map", "wc", "missing"], "missing: ENOENT"),
        (&["--map", "wc", "no*"], "no file matches no*"),
        (&["--map", "wc", "folder"], "is a folder"),
        (&["--map", "wc", "/dev/null"], "not a regular file"),
        (&["--map", "wc (", "--reduce", "cat", "in1"], "syntax error"),
        (&["--map", "wc", "--via", "nolink", "in1"], "nolink"),
        (&["--map", "wc", "--resume", "in1"], "--work"),
        (&["--map", "wc", "--work", "folder", "--resume", "in1"], "holds no work"),
    ] {
        let done = spread(&lab, args).expect_code(2);
        assert!(done.stderr.contains(words), "{args:?}: no `{words}` in {}", done.stderr);
    }
}

#[test]
fn an_interruption_keeps_what_is_finished() {
    for (sent, status) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let lab = lab();
        let map = "[ -e done ] && { echo $$ > slow; sleep 1000; }; touch done; cat";
        let args = ["spread", "-j", "1", "--map", map, "--reduce", "cat", "--work", "w", "in1", "in2"];
        let running = lab.start(lab.command(&args));
        until("the second partition", soon(), || {
            fs::metadata(lab.here("slow")).ok().filter(|file| file.len() > 0)
        });
        let Some(status) = status else {
            running.kill_and_look();
            continue;
        };
        signal(running.pid(), sent);
        let done = running.wait_within(2 * promptly()).expect_code(status);
        assert!(done.stderr.contains("1 of 2 partitions are finished"), "{}", done.stderr);
        // Happened: what the one that was ended had written so far stayed there for ever.
        let left = files_in(&lab.here("w"));
        assert!(!left.iter().any(|name| name.ends_with(".unfinished")), "{left:?}");
        fs::remove_file(lab.here("done")).expect("removed");
        let done = lab.run(&[&args[..], &["--resume"]].concat()).expect_code(0);
        assert_eq!(done.stdout, by_bash(&lab, "cat in1 in2"));
    }
}

/// Happened, in one run of four: a process that was forked while its shell was ended lived on.
#[test]
fn who_begins_in_the_last_moment_ends_too() {
    let lab = lab();
    let map = "echo > began; for n in {1..400}; do sleep 1000 & done; wait";
    for _ in 0..10 {
        let running = lab.start(lab.command(&["spread", "--map", map, "--reduce", "cat", "in1", "in2"]));
        until("a shell that forks", soon(), || fs::remove_file(lab.here("began")).ok());
        signal(running.pid(), Signal::TERM);
        running.wait_within(2 * promptly()).expect_code(143);
    }
}

#[test]
fn an_input_that_changes_meanwhile_is_told() {
    let lab = lab();
    // Happened: a change while it was read was not noticed.
    for change in ["head -n 1; sleep 0.1; echo more >> in2", "cat; rm in2"] {
        let done = spread(&lab, &["--map", change, "--reduce", "cat", "in2"]).expect_code(1);
        assert!(done.stdout.is_empty() && done.stderr.contains("in2"), "{}", done.stderr);
        assert!(done.stderr.contains("could not be run"), "{}", done.stderr);
    }
    let lab = self::lab();
    let map = "echo more >> in2; cat";
    let done = spread(&lab, &["-j", "1", "--work", "w", "--map", map, "--reduce", "cat", "in1", "in2"])
        .expect_code(1);
    assert!(done.stderr.contains("in2 has changed since the work was started"), "{}", done.stderr);
    assert!(done.stderr.contains("could not be run") && !done.stderr.contains("--resume"), "{}", done.stderr);
    let words = ["-j", "1", "--work", "w", "--resume", "--map", map, "--reduce", "cat", "in1", "in2"];
    let again = spread(&lab, &words).expect_code(2);
    assert!(
        again.stderr.contains("work with another content of ") && again.stderr.contains("in2"),
        "{again:?}"
    );
    let done =
        spread(&lab, &["-j", "1", "--work", "v", "--map", "rm -f in5; cat", "--reduce", "cat", "in1", "in5"])
            .expect_code(1);
    assert!(done.stderr.contains("in5") && done.stderr.contains("ENOENT"), "{}", done.stderr);
}

/// Happened: what a program in the background wrote came after the end, and only when the work was gone on with.
#[test]
fn who_still_writes_is_waited_for_and_what_was_tampered_with_is_made_again() {
    let lab = lab();
    let args = ["--map", "cat; (sleep 0.3; echo late) &", "--reduce", "cat", "--work", "w", "in2", "in4"];
    let done = spread(&lab, &args).expect_code(0);
    let expected = by_bash(&lab, "cat in2; echo late; cat in4; echo late");
    assert_eq!(done.stdout, expected);
    fs::write(lab.here("w/000001.out"), "other").expect("written");
    let done = spread(&lab, &[&args[..], &["--resume"]].concat()).expect_code(0);
    assert_eq!(done.stdout, expected);
    // The size of such a file is 0.
    let done =
        spread(&lab, &["--map", "cat", "--reduce", "cat", "--split", "10", "/proc/version"]).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "cat /proc/version"));
}

#[test]
fn standard_input_is_cut_into_blocks_of_lines() {
    let lab = lab();
    let from = |args: &[&str]| {
        let mut command = lab.command(&[&["spread"], args].concat());
        command.stdin(fs::File::open(lab.here("in1")).expect("an input"));
        lab.finish(command)
    };
    let expected = by_bash(&lab, "cat in1");
    for split in [&[][..], &["--split", "1000"], &["--split", "3k"]] {
        let done = from(&[split, &["--map", "cat", "--reduce", "cat", "-"]].concat()).expect_code(0);
        assert_eq!(done.stdout, expected, "{split:?}");
    }
    let done = from(&["--map", "wc -l", "--split", "5k", "--stats", "-"]).expect_code(0);
    assert!(done.stdout.trim() == "3000" && done.stderr.contains("partitions together"), "{done:?}");
    assert!(from(&["--map", "wc -l", "in1", "-"]).expect_code(2).stderr.contains("must be the only input"));
    // With --check it is read before anything runs.
    let done = from(&["--map", "wc -l", "--check", "10k", "--split", "5k", "-"]).expect_code(0);
    assert!(done.stdout.trim() == "3000" && done.stderr.contains("gave the same result"), "{done:?}");
    // What failed is done again from what was kept.
    let map = "[ -e mended ] || ! grep -q word3 || exit 3; cat";
    let args = ["--map", map, "--reduce", "wc -l", "--split", "20k", "--keep-going", "--work", "w", "-"];
    from(&args).expect_code(1);
    assert!(from(&args).expect_code(2).stderr.contains("holds work already"));
    fs::write(lab.here("mended"), "").expect("written");
    let done = lab.run(&[&["spread", "--resume"], &args[..]].concat()).expect_code(0);
    assert!(done.stdout.trim().parse::<u32>().is_ok_and(|lines| lines > 0), "{done:?}");
    let empty = lab.run(&["spread", "--map", "wc -l", "-"]).expect_code(0);
    assert_eq!(empty.stdout.trim(), "0");
}

/// Expected: the first block is run while the input goes on, and what waits is not piled up in the folder.
#[test]
fn blocks_of_standard_input_are_run_while_it_comes_in() {
    let lab = lab();
    let map = "read -r line; until [ -e go ] || [ $line = first ]; do sleep 0.01; done; echo $line; cat";
    let args = ["spread", "-j", "2", "--map", map, "--reduce", "cat", "--split", "6", "--work", "w", "-"];
    let mut command = lab.command(&args);
    let (reads, mut writes) = std::io::pipe().expect("a pipe");
    command.stdin(reads);
    let running = lab.start(command);
    writes.write_all(b"first\n").expect("written");
    until("the first block", HANGS_AFTER, || fs::metadata(lab.here("w/000001.out")).ok());
    // The pipe takes them all: they wait there.
    let others: String = (10_000..10_100).map(|number| format!("{number}\n")).collect();
    let expected = format!("first\n{others}");
    writes.write_all(others.as_bytes()).expect("written");
    drop(writes);
    until("blocks two to four", HANGS_AFTER, || fs::metadata(lab.here("w/000004.in")).ok());
    let blocks = files_in(&lab.here("w")).into_iter().filter(|name| name.ends_with(".in")).count();
    assert!(blocks <= 4, "two that run, one that waits, and one that is written: {blocks}");
    fs::write(lab.here("go"), "").expect("written");
    assert_eq!(running.wait_within(HANGS_AFTER).expect_code(0).stdout, expected);
    let left = files_in(&lab.here("w"));
    assert!(!left.iter().any(|name| name.ends_with(".in")), "{left:?}");
    // A file for each output, and one for all tasks together.
    assert_eq!(left.iter().filter(|name| name.contains(".out")).count(), 101);
    assert!(left.len() <= 101 + 4, "{left:?}");
}

/// Expected: what was not read is lost, and the run is not continued as if the input had ended there.
#[test]
fn an_input_that_was_not_read_to_its_end_is_begun_anew() {
    let lab = lab();
    let args = ["--map", "grep -q nowhere", "--reduce", "cat", "--split", "100", "--work", "w", "-"];
    let mut command = lab.command(&[&["spread"], &args[..]].concat());
    command.stdin(fs::File::open(lab.here("in1")).expect("an input"));
    let done = lab.finish(command).expect_code(1);
    assert!(done.stderr.contains("block 1 of standard input exited with 1"), "{}", done.stderr);
    assert!(!done.stderr.contains("--resume"), "{}", done.stderr);
    let done = lab.run(&[&["spread", "--resume"], &args[..]].concat()).expect_code(2);
    assert!(done.stderr.contains("was not read to its end"), "{}", done.stderr);
}

/// Expected: "0 of 1 partitions". Happened: a temporary folder was removed before its blocks were counted, and there were 0 of 0.
#[test]
fn blocks_that_failed_are_counted() {
    let lab = lab();
    let mut command = lab.command(&["spread", "--keep-going", "--map", "false", "--reduce", "cat", "-"]);
    command.stdin(fs::File::open(lab.here("in2")).expect("an input"));
    let done = lab.finish(command).expect_code(1);
    assert!(done.stderr.contains("\n0 of 1 partitions are finished\n"), "{}", done.stderr);
}

/// Expected: as with `run`, SIGINT that was ignored at the start ends nothing. Happened: it ended the partitions.
#[test]
fn an_ignored_interruption_stays_ignored() {
    let lab = lab();
    let map = "echo > began; until [ -e go ]; do sleep 0.01; done; cat";
    let words = ["spread", "-j", "1", "--map", map, "--reduce", "cat", "--split", "100k", "in1", "in2"];
    let mut command = lab.wrapped(&["sh", "-c", "trap '' INT; exec \"$0\" \"$@\""], &words);
    command.process_group(0);
    let running = lab.start(command);
    until("a partition", soon(), || fs::metadata(lab.here("began")).ok());
    let group = Pid::from_raw(running.pid() as i32).expect("a number");
    kill_process_group(group, Signal::INT).expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    fs::write(lab.here("go"), "").expect("written");
    let done = running.wait_within(soon()).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "cat in1 in2"), "{}", done.stderr);
}

/// Happened: after SIGTERM the `sleep` of a partition went on.
#[test]
fn nothing_goes_on_however_it_is_ended() {
    for (sent, to_a_task, status) in [
        (Signal::TERM, false, 143),
        (Signal::INT, false, 130),
        (Signal::KILL, true, 1),
        (Signal::TERM, true, 1),
    ] {
        let lab = lab();
        let map = "trap '' TERM INT; sleep 1000 & echo > began.$$; sleep 1000; wait";
        let args = ["spread", "-j", "2", "--map", map, "--reduce", "cat", "in1", "in2"];
        let running = lab.start(lab.command(&args));
        let began = || files_in(&lab.here("")).into_iter().filter(|name| name.contains("began.")).count();
        until("two partitions", soon(), || (began() == 2).then_some(()));
        if to_a_task {
            let of_a_task =
                |pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().ends_with(b"--task\0");
            let tasks = running.children().into_iter().filter(|(pid, _)| of_a_task(*pid));
            tasks.for_each(|(task, _)| signal(task, sent));
        } else {
            signal(running.pid(), sent);
        }
        running.wait_within(soon()).expect_code(status);
    }
}
