//! Whole scripts in the user's own shell: the same output, errors and status as without hosepipe, over links of every kind.
//!
//! Each text is run by the bare shell first, which is the reference.

mod whole;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::programs::in_english;
use crate::common::{Done, Lab, promptly, skip};

/// A pipe that the shell makes itself, a link that is handed to it, and ones with a relay.
const LINKS: [&str; 4] = ["pipe", "socketpair", "tmpfile", "pty"];

/// What went wrong with an imitation of the shell, and what else a process alone can hold.
const SCRIPTS: &[&str] = &[
    // An exported variable stays exported.
    "export V; V=5; sh -c 'echo \"$V\"' | cat",
    "export v=$(head -c 200000 /dev/zero | tr '\\0' q); echo hello",
    "IFS=$'\\n\\t'; f() { for w in $1; do echo \"<$w>\"; done; }; f $'a b\\nc' | cat -n",
    "readonly a=1; a=2 env | grep -c PATH; echo after",
    "builtin() { command builtin \"$@\"; }; builtin echo x | rev",
    "while read -r l; do echo \"[$l]\"; done <<E; echo x\na\nb\nE",
    "ulimit -n 64; seq 5 | tac | head -n 1",
    "PWD=/etc; /bin/pwd | wc -l",
    "{ echo a; echo b >&2; } |& cat - <(echo c) <<E | sort\nd\nE",
    "TIMEFORMAT='%0lR'; time true | true",
    "hash -p /bin/echo nosuch; nosuch x | cat",
    "complete -W 'a b' foo; complete -p foo | cat",
    "set -e; [ -f /nonexistent ] || echo no; echo after | cat; false | true; echo still; false; echo never",
    "set -u; echo ${x-unset} | cat; echo $x | cat; echo after",
    "trap 'echo bye | rev' EXIT; trap 'echo usr' USR1; kill -USR1 $$; exit 3",
    "declare -A m=([a]=1 [b]=2); for k in a b; do echo \"$k=${m[$k]}\"; done | sort -r; echo ${#m[@]}",
    "[[ abc =~ (b)(c) ]] && echo \"${BASH_REMATCH[2]}\" | cat",
    "shopt -s extglob lastpipe\ncase foo.c in *.@(c|h)) echo yes;; esac | cat\necho a b | read -r x y; echo \"$y\"",
    "for i in 1 2 3; do { sleep 0.01; echo $i; } & done | sort; wait; echo \"$!\" | grep -c .",
    "eval 'f() { echo \"${FUNCNAME[0]} $#\" | cat; }'; f 1 2; exec 3>&1; echo three >&3 | cat",
    "true | false | true; echo \"${PIPESTATUS[*]}\"; ! true | false; echo $?",
    "set -o pipefail; seq 1000 | tail -n 1; echo ${PIPESTATUS[*]}; exit 7 | cat; echo $?",
    "cat <(seq 3 | tac) | tee >(cat >/dev/null) | tail -n 2; coproc { cat; }; echo hi >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l",
    "x=$(seq 10 | tail -n 1; exit 4); echo \"$x $?\"; y=`echo a | tr a b`; echo $y",
    "echo $$ | grep -c . ; echo \"$0 $# $-\" | tr -d s; printenv LD_PRELOAD HOSEPIPE_PIPES | cat; env | grep -ci preload",
    "bash -c 'seq 3 | tac' | cat; env -i /bin/sh -c 'echo a | cat'; (exec bash -c 'echo in | cat')",
    "kill -s TERM $$ | cat; echo after",
    "kill -s KILL $$",
    "nosuchcommand | cat; echo ${PIPESTATUS[*]}; ( exit 5 ) | cat; echo ${PIPESTATUS[0]}",
    "if then",
    "echo \"open | cat",
    "cat <<E | rev &\nbackground\nE\nwait $!; echo $?",
    "set -r; cd /; echo x > y; echo restricted | cat; PATH=/",
    "set -m; sleep 0.01 | cat & jobs | sed 's/ .*//'; wait; fg 2>&1 | cat",
];

/// The same for shells that lack most of that.
const PLAIN: &[&str] = &[
    "seq 10 | tac | head -n 1; echo $?",
    "false | true; echo $?; exit 3",
    "x=$(echo a | tr a b); echo $x | cat; cat <<E | rev\nabc\nE",
    "kill -s TERM $$",
];

fn bare(shell: &str, arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(shell);
    in_english(&mut command).args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("RUST_BACKTRACE", "0").output().expect(shell)
}

/// Runs a shell's arguments with and without hosepipe; both must do the same.
fn same(lab: &Lab, shell: &str, via: &str, arguments: &[&str]) {
    let expected = bare(shell, arguments, &lab.here(""));
    let ours = lab.run(&[&["sh", "--shell", shell, "--via", via], arguments].concat());
    agree(&expected, &ours, &format!("{shell} over {via}: {arguments:?}"));
}

fn agree(expected: &Output, ours: &Done, what: &str) {
    assert_eq!(ours.stdout, String::from_utf8_lossy(&expected.stdout), "{what}: {}", ours.stderr);
    // Numbers of processes differ, and so does where an error interrupts another's line.
    let without_numbers = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    assert_eq!(
        without_numbers(&ours.stderr),
        without_numbers(&String::from_utf8_lossy(&expected.stderr)),
        "{what}"
    );
    assert_eq!(ours.status, expected.status, "{what}");
}

#[test]
fn scripts_do_as_in_bash_over_links_of_every_kind() {
    let lab = Lab::new();
    for script in SCRIPTS {
        for via in LINKS {
            same(&lab, "bash", via, &["-c", script]);
        }
    }
}

#[test]
fn whole_scripts_do_as_in_bash_over_links_of_every_kind() {
    for (name, script) in whole::SCRIPTS {
        let with = |run: &dyn Fn(&Lab)| {
            let lab = Lab::new();
            std::fs::write(lab.here("script.sh"), script).expect("a file");
            run(&lab);
        };
        let arguments = ["script.sh", "an argument"];
        with(&|reference| {
            let expected = bare("bash", &arguments, &reference.here(""));
            for via in LINKS {
                with(&|lab| {
                    let ours = lab.run(&[&["sh", "--via", via], &arguments[..]].concat());
                    agree(&expected, &ours, &format!("{name} over {via}"));
                });
            }
        });
    }
}

/// A library that the user preloads is still in the user's programs, and ours is in none of them.
#[test]
fn a_library_that_the_user_preloads_stays() {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc(5)");
    let library =
        maps.split_whitespace().find(|word| word.contains("/libgcc_s")).expect("a library of this test");
    let text = "printenv LD_PRELOAD | cat; grep -c libgcc_s /proc/self/maps | tr -d 0-9; grep -ac 'PIPES=[0-9a-f]' /proc/$$/environ";
    for via in LINKS {
        let lab = Lab::new();
        let mut command = lab.command(&["sh", "--via", via, "-c", text]);
        command.env("LD_PRELOAD", library);
        let done = lab.finish(command).expect_code(1);
        assert_eq!(done.stdout, format!("{library}\n\n0\n"), "{via}");
    }
}

#[test]
fn other_shells_do_as_without_us() {
    let lab = Lab::new();
    for shell in ["dash", "zsh", "yash", "fish"] {
        if Command::new(shell).arg("-c").arg("true").output().is_err() {
            skip(&format!("{shell} is not installed"));
            continue;
        }
        let scripts = if shell == "fish" { &PLAIN[..1] } else { PLAIN };
        for script in scripts {
            let script = script.replace("$?", if shell == "fish" { "$status" } else { "$?" });
            for via in LINKS {
                same(&lab, shell, via, &["-c", &script]);
            }
        }
    }
}

/// Expected: every byte arrives. Happened: `echo 1 | cat` hung, because the reader had inherited the end that fish itself writes to, and
/// `seq 3 | string match '*'` lost everything, because fish itself read before the writer was done.
#[test]
fn fish_is_not_given_links_whose_readers_must_wait() {
    if Command::new("fish").arg("-c").arg("true").output().is_err() {
        return skip("fish is not installed");
    }
    let lab = Lab::new();
    let args = ["--shell", "fish", "--via", "tmpfile:order=sequential"];
    for verb in [&["run"][..], &["sh", "-c"]] {
        let args = [&verb[..1], &args, &verb[1..], &["echo 1 | cat"]].concat();
        let done = lab.run(&args).expect_code(1);
        assert!(done.stderr.contains("fish") && done.stderr.contains("order=sequential"), "{}", done.stderr);
    }
}

#[test]
fn a_shells_own_arguments_are_the_shells() {
    let lab = Lab::new();
    let script = lab.here("script.sh");
    // Longer than one argument may be (execve(2), MAX_ARG_STRLEN).
    let long = format!("# {}\nset -e\necho \"$0 $# $2\" | cat\nfalse | true\nexit 3\n", "x".repeat(200_000));
    std::fs::write(&script, long).expect("a file");
    let script = script.to_str().expect("a plain path");
    for arguments in [
        &[script, "a", "b c"][..],
        &["-e", "-o", "pipefail", script, "a", "b c"],
        &["-ec", "echo \"$0 $1\" | rev", "name", "x"],
        &["--norc", "-c", "echo $- | cat"],
        &["-o", "nosuchoption", "-c", "true"],
        &["/nonexistent.sh"],
    ] {
        same(&lab, "bash", "pipe", arguments);
        same(&lab, "bash", "tmpfile", arguments);
    }
}

/// Expected: the text on standard input is read as the shell reads it, so that `read` takes the line behind it.
#[test]
fn a_text_on_standard_input_is_read_by_the_shell_itself() {
    let lab = Lab::new();
    let text = lab.here("text");
    std::fs::write(&text, "read -r x\nthe next line\necho \"<$x> $1\" | cat\n").expect("a file");
    for via in LINKS {
        let mut command = lab.command(&["sh", "--via", via, "-s", "one"]);
        command.stdin(std::fs::File::open(&text).expect("the text"));
        let done = lab.finish(command).expect_code(0);
        assert_eq!(done.stdout, "<the next line> one\n", "{via}");
    }
}

#[test]
fn an_option_that_hosepipe_has_too_is_the_shells() {
    let done = Lab::new().run(&["sh", "-h", "-c", "echo $-"]).expect_code(0);
    assert_eq!(done.stdout, "hBc\n");
}

#[test]
fn a_shell_that_nothing_can_be_preloaded_into_is_refused() {
    let lab = Lab::new();
    let script = lab.here("wrapper");
    std::fs::write(&script, "#!/bin/sh\nexec bash \"$@\"\n").expect("a file");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
    let done = lab.run(&["run", "--shell", script.to_str().expect("plain"), "true"]).expect_code(2);
    assert!(done.stderr.contains("script"), "{}", done.stderr);
    assert!(done.elapsed < promptly());
}

/// Expected: when hosepipe is killed, what it started goes too, and no reader takes the end for a normal one: be it the process that
/// waits for the shell, or the one that serves the links.
/// Happened: `yes` went on, and filled the disk.
#[test]
fn nothing_goes_on_when_hosepipe_is_killed() {
    for (via, server) in [
        ("pipe", false),
        ("tmpfile", false),
        ("socketpair", false),
        ("pty", false),
        ("file", false),
        ("pipe", true),
        ("tmpfile", true),
        ("socketpair", true),
        ("file", true),
        ("file:sync", true),
    ] {
        let lab = Lab::new();
        let text = "{ echo begun; while sleep 0.01; do echo more; done; } | { head -n 1; cat >/dev/null; echo ended > ended; }";
        let mut running = lab.start(lab.command(&["run", "--via", via, text]));
        let output = lab.here("../stdout");
        crate::common::until("a first line", promptly() * 5, || {
            std::fs::read_to_string(&output).is_ok_and(|text| text.contains("begun")).then_some(())
        });
        let pid = running.pid();
        let is_the_server = |(other, name): &(u32, String)| *other != pid && name == "pipe-links";
        // It begins while the shell does: a shell may be first to say something.
        let servers = || lab.processes().into_iter().find(is_the_server);
        let (its_pid, _) = crate::common::until("the server", promptly() * 5, servers);
        let killed = if server { its_pid } else { pid };
        crate::common::signal(killed, rustix::process::Signal::KILL);
        let done = running.end_within(promptly()).expect_code(if server { 1 } else { 137 });
        assert_eq!(done.stderr.contains("was killed"), server, "{via}: {}", done.stderr);
        lab.assert_nothing_left(pid, promptly());
        // With the server its ends of the links go, before anybody can be told.
        assert!(server || !lab.here("ended").exists(), "{via}: the reader saw an end");
    }
}

/// Expected: over plain pipes, too, nothing goes on, although hosepipe only waits there.
/// Happened: on one CPU, or a busy machine, the shell had ended before the process that kills the rest looked for its children; in a third of the
/// runs they went on.
#[test]
fn nothing_goes_on_over_plain_pipes_when_hosepipe_is_killed() {
    if model::file_on_path("taskset").is_none() {
        return crate::common::skip("no taskset(1) here");
    }
    for shell in ["bash", "sh"] {
        for round in 0..10 {
            let lab = Lab::new();
            let text = "sleep 1000 | { sleep 1000; echo ended > ended; }";
            let one_cpu = ["taskset", "-c", "0"];
            let mut running = lab.start(lab.wrapped(&one_cpu, &["run", "--shell", shell, text]));
            let pid = running.pid();
            let sleeps = || lab.processes().iter().any(|(_, name)| name == "sleep").then_some(());
            crate::common::until("a stage", promptly() * 5, sleeps);
            // Before and after there is another process of hosepipe.
            std::thread::sleep(std::time::Duration::from_millis(round * 10));
            crate::common::signal(pid, rustix::process::Signal::KILL);
            running.end_within(promptly()).expect_code(137);
            lab.assert_nothing_left(pid, promptly());
            assert!(!lab.here("ended").exists(), "{shell}: the reader saw an end");
        }
    }
}
