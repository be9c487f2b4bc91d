//! What is typed wrongly, and what cannot be had: a wrong command line is a sentence on standard error, nothing
//! on standard output, status 2, before anything runs; a limit is a row with its reason and remedy, status 0.

use crate::common::{Lab, error_of, is_root, promptly, skip};
use model::ErrorKind;

/// A run that takes no time to speak of.
const QUICK: [&str; 7] = ["null", "pipe", "memcpy", "--count", "4", "--trials", "1"];

/// `bench` of something quick, and more.
pub(crate) fn quick<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["bench"][..], &QUICK, more].concat()
}

/// Runs a command line that is wrong; the sentence must have all of `words` in it.
pub(crate) fn assert_refused(args: &[&str], words: &[&str]) {
    let lab = Lab::new();
    let done = lab.run(args).expect_code(2);
    assert_eq!(done.stdout, "", "{args:?}");
    assert!(done.elapsed < promptly(), "{args:?}: {:?}", done.elapsed);
    for word in words {
        assert!(done.stderr.contains(word), "{args:?}: no `{word}` in: {}", done.stderr);
    }
    assert!(!done.stderr.contains("os error"), "{args:?}: an error by number: {}", done.stderr);
    assert!(done.stderr.lines().count() <= 12, "{args:?}: a sentence was enough: {}", done.stderr);
}

#[test]
fn a_wrong_spec_is_refused_with_the_nearest_right_one() {
    for (spec, words) in [
        ("pip", &["unknown mechanism `pip`", "did you mean `pipe`?"][..]),
        ("shmring", &["did you mean `shm-ring`?"]),
        ("Pipe", &["did you mean `pipe`?"]),
        ("zzzz", &["zzzz`. `hosepipe list` shows them all"]),
        ("pip", &["`pipe`? `hosepipe list` shows them all"]),
        ("pipe:siez=1k", &["did you mean `size`?", "It has: size"]),
        ("null:size=1k", &["It has: none"]),
        ("pipe:size=0", &["at least 1 byte"]),
        ("pipe:size=lots", &["size=64KiB", "lots"]),
        ("pipe:size", &["size=64KiB"]),
        ("pipe:size=-4096", &["size=64KiB", "-4096"]),
        ("pipe:size=99999999999999999999", &["99999999999999999999"]),
        ("pipe:", &["empty option"]),
        ("pipe:size=1k,", &["empty option"]),
        ("pipe:size=1k,size=2k", &["twice"]),
        (":size=1k", &["names no mechanism"]),
        ("", &["names no mechanism"]),
        ("shm-ring:wait=sleep", &["spin, futex", "sleep"]),
        ("tmpfile:order=random", &["parallel, sequential"]),
        ("file:sync=yes", &["no value"]),
        ("file:dir=/nonexistent", &["/nonexistent", "folder"]),
        ("file:dir=/etc/passwd", &["/etc/passwd", "folder"]),
    ] {
        assert_refused(&["bench", "null", spec, "--count", "1", "--trials", "1"], words);
    }
}

#[test]
fn a_wrong_value_is_refused_with_what_would_be_right() {
    let huge = "99999999999999999999";
    for (option, value, word) in [
        ("--block", "0", "at least 1"),
        ("--block", "12Q", "12Q"),
        ("--block", "-1", "-1"),
        ("--block", "", "size"),
        ("--block", "64KiB,", "size"),
        ("--block", "1,0,2", "at least 1"),
        ("--block", huge, huge),
        ("--bytes", "0", "at least 1"),
        ("--bytes", "much", "much"),
        ("--count", "0", "0"),
        ("--count", "many", "`many` is not a whole number from 1 to"),
        ("--count", "5x", "`5x` is not a whole number from 1 to"),
        ("--rate", "50x", "`50x` is not a whole number from 1 to 10000000"),
        ("--seed", "x", "`x` is not a whole number from 0 to"),
        ("--trials", "0", "0"),
        ("--trials", "100001", "100001"),
        ("--time", "0s", "for example 1s"),
        ("--time", "soon", "30s"),
        ("--precision", "0", "percentage"),
        ("--precision", "101", "percentage"),
        ("--precision", "NaN", "percentage"),
        ("--seed", "-1", "-1"),
        ("--workload", "both", "pingpong"),
        ("--tasks", "two", "processes"),
        ("--wait", "sleep", "spin"),
        ("--data", "some", "verify"),
        ("--check", "md5", "xxh3"),
        ("--payload", "noise", "file:PATH"),
        ("--payload", "file:", "file:PATH"),
        ("--payload", "file:/nonexistent/x", "ENOENT"),
        ("--payload", "file:/", "EISDIR"),
        ("--payload", "file:/dev/null", "empty"),
        ("--place", "0,999", "CPU 999"),
        ("--place", "0,4294967296", "4294967296"),
        ("--place", "0", "0,1"),
        ("--place", "nowhere", "cross"),
        ("--json", "/nonexistent/run.json", "/nonexistent/run.json"),
        ("--csv", "/", "EISDIR"),
    ] {
        // `--block -1` would be read as an option.
        let joined = format!("{option}={value}");
        assert_refused(&["bench", "null", &joined], &[word]);
    }
}

/// Expected: thousands may be written as with sizes, and a text that is no number is called so.
/// Happened: `--messages-per-second 50k` was refused, and other texts were an "invalid digit found in string".
#[test]
fn numbers_may_be_thousands() {
    let lab = Lab::new();
    lab.run(&["bench", "pipe", "--rate", "50k,1M", "--count", "1k", "--dry-run"]).expect_code(0);
    let words = ["recommend", "--message", "1k", "--from", "/nonexistent"];
    let done = lab.run(&[&words[..], &["--messages-per-second", "50k"]].concat()).expect_code(2);
    assert!(done.stderr.contains("cannot read the record"), "{}", done.stderr);
    assert_refused(
        &[&words[..], &["--messages-per-second", "50x"]].concat(),
        &["`50x` is not a number above 0"],
    );
    assert_refused(&["compare", "true", "--trials", "x"], &["`x` is not a whole number from 1 to 100000"]);
    assert_refused(
        &["spread", "--map", "cat", "--jobs", "x", "f"],
        &["`x` is not a whole number from 1 to 4096"],
    );
}

/// Expected: a wrong link is answered with the links.
/// Happened: with `hosepipe list`, which has all mechanisms; "did you mean `fifo`?; …".
#[test]
fn a_wrong_link_is_refused_with_the_links() {
    let links = "These are links: pipe, fifo, socketpair, unix-stream, tcp, ";
    for command in ["run", "sh", "compare"] {
        assert_refused(
            &[command, "--via", "fif", "true | true"],
            &["link `fif`: did you mean `fifo`? ", links],
        );
    }
    assert_refused(&["run", "--via", "zzzz", "true"], &["unknown link `zzzz`. ", links]);
}

/// Expected: the shell named by --shell takes the word `extglob` as any other.
/// Happened: every shell was started with bash's `-O extglob` to look at the syntax, and dash refused that.
#[test]
fn a_text_with_the_name_of_an_option_of_bash_is_taken_by_other_shells() {
    let lab = Lab::new();
    for shell in ["bash", "dash", "zsh", "fish", "yash"] {
        if model::file_on_path(shell).is_none() {
            skip(&format!("no {shell} here"));
            continue;
        }
        let text = "echo extglob | cat";
        let args = ["compare", "--shell", shell, "--trials", "1", "--via", "pipe", text];
        lab.run(&args).expect_code(0);
    }
}

/// Expected: an option that a shell does not have is refused.
/// Happened: fish took `-o pipefail` for the name of a file, made that file, and ended with 0.
#[test]
fn fish_has_no_pipefail() {
    if model::file_on_path("fish").is_none() {
        return skip("no fish here");
    }
    let asked = ["--shell", "fish", "--pipefail"];
    for words in [&["run"][..], &["sh", "-c"], &["spread", "--map", "cat", "--reduce", "cat"]] {
        let (command, more) = words.split_at(1);
        let text = if command == ["spread"] { "/etc/passwd" } else { "false | true" };
        assert_refused(&[command, &asked, more, &[text]].concat(), &["fish has no pipefail"]);
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    assert_refused(&["bench", "pipe", "--bytes", "1", "--count", "1"], &["--bytes", "--count"]);
    assert_refused(&["bench", "pipe", "--sweep", "--block", "1"], &["--sweep", "--block"]);
    assert_refused(&["bench", "pipe", "--all"], &["--all"]);
    assert_refused(&quick(&["--json", "-", "--csv", "-"]), &["standard output"]);
    assert_refused(&["bench", "--json"], &["--json"]);
    assert_refused(&["bench", "--nonsense"], &["--nonsense"]);
    assert_refused(&["nonsense"], &["nonsense"]);
    assert_refused(&["completions", "nosuchshell"], &["bash"]);
    assert_refused(&["list", "nonsense"], &["nonsense"]);
}

/// Expected: a time in which not every case gets a trial is refused before the run; one that is short is said to be.
/// Happened: a table with empty cells when the time was over, and status 1.
#[test]
fn a_time_that_is_too_short_is_refused_before_the_run() {
    assert_refused(&["bench", "--time", "1ms"], &["--time 1ms is too short", "or more"]);
    assert_refused(&["bench", "--sweep", "--place", "all", "--time", "6s"], &["--time 6s is too short"]);
    let lab = Lab::new();
    let done = lab.run(&["bench", "pipe", "--workload", "stream", "--time", "100ms"]);
    assert!(done.stderr.contains("--time 100ms is short"), "{}", done.stderr);
    // A fixed amount takes as long as it takes.
    lab.run(&["bench", "pipe", "--count", "4", "--time", "1s", "--dry-run"]).expect_code(0);
}

/// Expected: two formats to one file are a mistake: one would overwrite the other.
/// Happened: status 0, and only the last of them is there.
#[test]
fn two_formats_cannot_share_a_file() {
    assert_refused(&quick(&["--json", "run", "--csv", "run"]), &["run"]);
}

/// Expected: a name that no file can have is refused before the run.
/// Happened: the run is made, its record cannot be written and is lost, status 1.
#[test]
fn a_file_that_cannot_be_made_is_refused_before_the_run() {
    let long = "x".repeat(300);
    for name in ["", "nofolder/", long.as_str()] {
        assert_refused(&quick(&["--json", name]), &["cannot write"]);
    }
}

/// Expected: four commands, each of which is accepted as it is printed, and how to read the rest. Happened: the whole help.
#[test]
fn no_subcommand_is_answered_with_four_things_to_try() {
    let lab = Lab::new();
    let done = lab.run(&[]).expect_code(2);
    assert_eq!(done.stdout, "");
    let commands: Vec<&str> =
        done.stderr.lines().filter_map(|line| line.strip_prefix("  hosepipe ")?.split("  ").next()).collect();
    assert_eq!(commands.len(), 4, "{}", done.stderr);
    assert!(done.stderr.ends_with("All commands: hosepipe --help\n") && done.stderr.lines().count() == 6);
    for command in commands {
        let mut words: Vec<&str> = command.split(' ').take_while(|word| !word.starts_with('\'')).collect();
        words.extend(command.split('\'').nth(1));
        words.push("--help");
        lab.run(&words).expect_code(0);
    }
    let pipeline = done.stderr.split('\'').nth(1).expect("a pipeline in quotes");
    let ran = lab.run(&["run", "--stats", pipeline]).expect_code(0);
    assert!(ran.stdout.lines().count() == 10 && ran.stderr.contains("sort"), "{ran:?}");
}

/// Expected: EACCES, by name. Happened: "Permission denied (os error 13) at path ...".
#[test]
fn a_folder_that_cannot_be_written_to_is_refused_before_the_run() {
    if !is_root() {
        return skip("only root can run as nobody");
    }
    let lab = Lab::new();
    let done = lab.finish(lab.wrapped(&NOBODY, &quick(&["--json", "/etc/run.json"]))).expect_code(2);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("/etc/run.json") && done.stderr.contains("EACCES"), "{}", done.stderr);
}

/// Runs what follows as the user nobody.
pub(crate) const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn a_pipe_larger_than_this_user_may_have_is_a_row_with_the_remedy() {
    if !is_root() {
        return skip("only root can run as nobody");
    }
    let lab = Lab::new();
    let text = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").expect("the limit");
    let over: u64 = text.trim().parse::<u64>().expect("a number") * 2;
    let specs = [format!("pipe:size={over}"), format!("fifo:size={over}")];
    let args = [&["bench", "--json", "-", &specs[0], &specs[1]], &QUICK[..]].concat();
    let done = lab.finish(lab.wrapped(&NOBODY, &args)).expect_code(0);
    for case in done.record().cases.iter().filter(|case| !case.spec.options.is_empty()) {
        let error = error_of(case);
        assert_eq!((error.kind, error.expected), (ErrorKind::Limit, true), "{error:?}");
        assert!(error.message.contains("fs.pipe-max-size"), "{error:?}");
        assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("sysctl")), "{error:?}");
    }
    assert!(done.cases_of("null").iter().all(|case| case.error.is_none()));
}

/// Expected: a System V queue larger than kernel.msgmnb is a limit like a pipe larger than fs.pipe-max-size: a row
/// with its remedy, status 0.
/// Happened: the row is an `open` failure, not expected, and the status is 1.
#[test]
fn a_queue_larger_than_this_user_may_have_is_a_row_with_the_remedy() {
    if !is_root() {
        return skip("only root can run as nobody");
    }
    let lab = Lab::new();
    let args = [&["bench", "--json", "-", "--block", "512", "sysv-msgq:size=1GiB"], &QUICK[..]].concat();
    let done = lab.finish(lab.wrapped(&NOBODY, &args)).expect_code(0);
    for case in done.cases_of("sysv-msgq") {
        let error = error_of(&case);
        assert_eq!((error.kind, error.expected), (ErrorKind::Limit, true), "{error:?}");
        assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("kernel.msgmnb")), "{error:?}");
    }
}

#[test]
fn sudo_is_named_to_those_who_need_it_and_have_it() {
    if !is_root() {
        return skip("only root can run as nobody");
    }
    let lab = Lab::new();
    std::fs::write(lab.here("sudo"), "").expect("a file");
    let here = format!("PATH={}:/usr/bin:/bin", lab.here("").display());
    let nowhere = "PATH=/nonexistent";
    let args = [&["bench", "--json", "-", "posix-mq", "sysv-msgq", "--block", "64KiB"], &QUICK[..]].concat();
    for (user, path, named) in
        [(&NOBODY[..], &*here, true), (&NOBODY, nowhere, false), (&["setpriv"], &here, false)]
    {
        let done = lab.finish(lab.wrapped(&[user, &["env", path]].concat(), &args)).expect_code(0);
        for name in ["posix-mq", "sysv-msgq"] {
            let remedy = error_of(&done.cases_of(name)[0]).remedy.clone().unwrap_or_default();
            assert!(remedy.contains("sysctl") && remedy.contains("sudo ") == named, "{path}: {remedy}");
        }
        let doctor =
            lab.finish(lab.wrapped(&[user, &["env", path]].concat(), &["doctor", "--quick"])).expect_code(0);
        assert!(named || !doctor.stdout.contains("sudo "), "{path}: {}", doctor.stdout);
    }
}

#[test]
fn a_block_beyond_a_mechanisms_limit_is_a_row_with_limit_and_remedy() {
    let lab = Lab::new();
    let done =
        lab.bench(&[&["posix-mq", "sysv-msgq", "--block", "64KiB"], &QUICK[..]].concat()).expect_code(0);
    for mechanism in ["posix-mq", "sysv-msgq"] {
        for case in done.cases_of(mechanism) {
            let error = error_of(&case);
            assert!(error.expected, "{error:?}");
            // Where the queue is there at all, it is the block that is too large.
            if error.kind != ErrorKind::Unavailable {
                assert_eq!(error.kind, ErrorKind::Limit, "{error:?}");
                assert!(error.message.contains("64KiB") && error.message.contains("limit"), "{error:?}");
            }
            assert!(error.remedy.is_some(), "{error:?}");
        }
    }
    let table = lab.run(&[&["bench", "posix-mq", "--block", "16MiB"], &QUICK[..]].concat()).expect_code(0);
    assert!(table.stdout.contains("posix-mq"), "{}", table.stdout);
}

/// Expected: a block that no memory holds is a row like any other limit.
/// Happened: the ceiling allocates its block in hosepipe itself, which aborts (134) with a stack trace; the ends
/// of the other cases abort each in their own process.
#[test]
fn a_block_that_does_not_fit_in_memory_is_a_row() {
    for mechanism in ["pipe", "shm-ring", "memcpy", "null", "file"] {
        let lab = Lab::new();
        let args = ["--workload", "stream", "--block", "1PiB", "--count", "1", "--trials", "1"];
        let done = lab.bench(&[&[mechanism], &args[..]].concat()).expect_code(1);
        assert!(done.cases_of(mechanism).iter().all(|case| error_of(case).expected), "{}", done.stdout);
    }
}

/// Expected: an amount that 64 bits cannot count in bytes is refused, or a row that says so.
/// Happened: blocks × block size wraps around in the ends; the row says EPIPE (receiver done with nothing).
#[test]
fn an_amount_beyond_counting_is_refused() {
    for amount in [["--bytes", "18446744073709551615"], ["--count", "281474976710656"]] {
        let lab = Lab::new();
        let args =
            ["bench", "--json", "-", "shm-ring", "--workload", "stream", "--block", "64KiB", "--trials", "1"];
        let done = lab.run(&[&args[..], &amount].concat());
        if done.code() != 2 {
            let errors: Vec<_> =
                done.cases_of("shm-ring").iter().map(|case| error_of(case).clone()).collect();
            assert!(errors.iter().all(|error| error.expected), "{amount:?}: {errors:?}");
        }
    }
}

#[test]
fn more_bytes_than_the_disk_has_are_a_row_with_the_remedy() {
    let lab = Lab::new();
    let args = ["file", "tmpfile", "--bytes", "1PiB", "--trials", "1", "--workload", "stream"];
    let done = lab.bench(&[&args[..], &["--tasks", "threads", "--time", "100ms"]].concat()).expect_code(1);
    for mechanism in ["file", "tmpfile"] {
        let case = done.only_case(mechanism);
        let error = error_of(&case);
        assert_eq!((error.kind, error.expected), (ErrorKind::Limit, true), "{error:?}");
        assert!(error.message.contains("1PiB") && error.message.contains("ENOSPC"), "{error:?}");
        assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("--bytes")), "{error:?}");
    }
}

/// Expected: an error by name (ENOENT).
/// Happened: "No such file or directory (os error 2) at path ...": the library that makes temporary files wraps
/// the errno, and describe_errno did not look inside. And every row had it, those too that need no folder.
#[test]
fn no_folder_for_temporary_files_costs_the_rows_that_need_one() {
    let lab = Lab::new();
    let needs = ["fifo", "file", "unix-stream"];
    let mut command = lab.command(&[&quick(&["--json", "-"])[..], &needs].concat());
    command.env("TMPDIR", "/nonexistent");
    let done = lab.finish(command).expect_code(1);
    for case in done.record().cases {
        if !needs.contains(&case.mechanism.as_str()) {
            assert!(case.error.is_none() && case.samples.len() == 1, "{}: {:?}", case.spec, case.error);
            continue;
        }
        let error = error_of(&case);
        assert!(error.message.contains("ENOENT") && error.message.contains("/nonexistent"), "{error:?}");
        assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("TMPDIR")), "{error:?}");
    }
    let args = ["compare", "--via", "pipe,file,bash", "--trials", "1", "--csv", "-", "echo hi | cat"];
    let mut command = lab.command(&args);
    command.env("TMPDIR", "/nonexistent");
    let done = lab.finish(command).expect_code(1);
    let rows: Vec<bool> = done.stdout.lines().skip(1).map(|row| row.contains("ENOENT")).collect();
    assert_eq!(rows, [false, true, false], "{}", done.stdout);
}

/// Expected: an empty TMPDIR is none, as for mktemp(1).
/// Happened: "cannot make an empty path absolute"; other commands made folders where they stood.
#[test]
fn an_empty_tmpdir_is_none() {
    for args in [
        &["run", "--via", "file", "pwd; ls -A | wc -l"][..],
        &["bench", "fifo", "tmpfile", "file", "mmap-file:wait=spin", "--count", "4", "--trials", "1"],
        &["compare", "--via", "file,bash", "--trials", "1", "ls -A | wc -l"],
    ] {
        let lab = Lab::new();
        let mut command = lab.command(args);
        command.env("TMPDIR", "");
        let done = lab.finish(command).expect_code(0);
        assert_eq!(done.stderr, "", "{args:?}");
        if args[0] == "run" {
            assert!(done.stdout.ends_with("\n0\n"), "nothing is made where it stands: {}", done.stdout);
        }
    }
}
