//! `hosepipe fleet`: the whole way through real engines, what a node costs that dies, and mistakes.

mod nodes;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{FleetRecord, Workload};
use rustix::process::Signal;

use crate::common::programs::has;
use crate::common::slurm::{NODES, Slurm};
use crate::common::sshd::Sshd;
use crate::common::{CACHES, Lab, files_in, signal, until};

const HOSEPIPE: &str = env!("CARGO_BIN_EXE_hosepipe");
/// On loopback, and a pair for a moment.
const HOW: [&str; 4] = ["--toward", "127.0.0.1", "--pair-time", "500ms"];
const BENCH: [&str; 8] = ["--", "pipe", "--place", "any", "--trials", "3", "--bytes", "1MiB"];

const LONG: [&str; 9] =
    ["--", "pipe", "--place", "any", "--workload", "stream", "--time", "60s", "--trials=10000"];

fn read(text: &str) -> FleetRecord {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no record ({error}): {text}"))
}

/// Panics unless every node and every pair has its figures.
fn assert_whole(record: &FleetRecord, names: &[&str]) {
    let called: Vec<&str> = record.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(called, names);
    for node in &record.nodes {
        assert_eq!(node.failure, None, "{}", node.name);
        let bench = node.bench.as_ref().unwrap_or_else(|| panic!("{} has no bench", node.name));
        assert!(bench.cases.iter().any(|case| case.mechanism == "pipe" && !case.samples.is_empty()));
    }
    assert_eq!(record.meetings.len(), names.len() * (names.len() - 1) / 2);
    for meeting in &record.meetings {
        assert_eq!(meeting.failure, None);
        for workload in Workload::ALL {
            let of = |case: &&model::CaseRecord| case.workload == *workload && case.mechanism == "tcp";
            let case = meeting.cases.iter().find(of).unwrap_or_else(|| panic!("no {workload}"));
            assert!(!case.samples.is_empty(), "{:?}", case.error);
        }
    }
}

fn mpi(mut command: Command) -> Command {
    // Nodes on one machine, in a container perhaps.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command
}

#[test]
fn through_slurm() {
    let Some(slurm) = Slurm::start("") else { return };
    let lab = Lab::new();
    let job = ["fleet", "--on", "slurm", "--nodes", "2", "--submit", "--folder", "work", "--json", "r.json"];
    let mut command = lab.command(&[&job[..], &HOW, &BENCH].concat());
    command.env("SLURM_CONF", slurm.configuration());
    let done = lab.finish(command).expect_code(0);
    assert_whole(&read(&fs::read_to_string(lab.here("r.json")).expect("a record")), &NODES);
    for words in ["2 nodes · 1 pair", "too few to find slow ones", "Streams between nodes"] {
        assert!(done.stdout.contains(words), "no `{words}` in {}", done.stdout);
    }
    for format in ["--html", "--md", "--csv"] {
        let text = lab.run(&["report", "r.json", format, "-"]).expect_code(0).stdout;
        assert!(text.contains("n1") && text.contains("n2"), "{format}: {text}");
    }
    // The folder stands for the record in it.
    lab.run(&["report", "work"]).expect_code(0);
    let again = lab.run(&job).expect_code(2);
    assert!(again.stderr.contains("already contains a fleet"), "{}", again.stderr);
}

/// A node that is killed in the middle of its bench costs its rows: the others measure each other.
#[test]
fn through_mpirun_and_what_a_killed_node_costs() {
    if !has("mpirun") {
        return;
    }
    let lab = Lab::new();
    let job = ["fleet", "--on", "mpi", "--submit", "--json", "-"];
    let command = lab.command(&[&job[..], &["--nodes", "2", "--folder", "whole"], &HOW, &BENCH].concat());
    let record = read(&lab.finish(mpi(command)).expect_code(0).stdout);
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_whole(&record, &[&format!("{name}#0"), &format!("{name}#1")]);

    let long = ["--", "pipe", "--place", "any", "--workload", "stream", "--time", "4s", "--trials", "1000"];
    let command = lab.command(&[&job[..], &["--nodes", "3", "--folder", "killed"], &HOW, &long].concat());
    let running = lab.start(mpi(command));
    let is_the_node = |pid: &u32| {
        let of = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        of("environ").contains("OMPI_COMM_WORLD_RANK=1\0") && of("cmdline").contains("\0fleet\0")
    };
    let node = until("node 1 in its bench", Duration::from_secs(30), || {
        let all: Vec<u32> = lab.processes().into_iter().map(|(pid, _)| pid).collect();
        lab.here("killed/node-1").exists().then(|| all.into_iter().find(is_the_node)).flatten()
    });
    signal(node, Signal::KILL);
    let done = running.wait_within(Duration::from_secs(60)).expect_code(1);
    let record = read(&done.stdout);
    let failures: Vec<bool> = record.nodes.iter().map(|node| node.failure.is_some()).collect();
    assert_eq!(failures, [false, true, false], "{:?}", record.nodes[1].failure);
    let why = record.nodes[1].failure.as_deref().unwrap_or_default();
    assert!(why.contains("no heartbeat for") && why.contains("in its own bench"), "{why}");
    for meeting in &record.meetings {
        let of_the_dead = meeting.from == 1 || meeting.to == 1;
        assert_eq!(
            meeting.failure.is_some(),
            of_the_dead,
            "{} {} {:?}",
            meeting.from,
            meeting.to,
            meeting.failure
        );
    }
}

#[test]
fn ctrl_c_ends_what_mpirun_has_started() {
    if !has("mpirun") {
        return;
    }
    let lab = Lab::new();
    let job = ["fleet", "--on", "mpi", "--submit", "--nodes", "2", "--folder", "work", "--json", "-"];
    let running = lab.start(mpi(lab.command(&[&job[..], &HOW, &LONG].concat())));
    until("both nodes", Duration::from_secs(30), || {
        ["work/node-0", "work/node-1"].iter().all(|file| lab.here(file).exists()).then_some(())
    });
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(Duration::from_secs(20)).expect_code(130);
    assert!(read(&done.stdout).nodes.iter().all(|node| node.failure.is_some()), "{}", done.stdout);

    // Happened: who cleaned up after the launcher ended those who clean up after the nodes.
    let lab = Lab::new();
    let running = lab.start(mpi(lab.command(&[&job[..], &HOW, &LONG].concat())));
    until("both nodes", Duration::from_secs(30), || {
        ["work/node-0", "work/node-1"].iter().all(|file| lab.here(file).exists()).then_some(())
    });
    let pid = running.pid();
    signal(pid, Signal::KILL);
    until("nothing of ours", Duration::from_secs(5), || {
        let ours = |file: &String| file.contains("hosepipe");
        (!files_in(&lab.tmp()).iter().any(ours) && lab.processes().is_empty()).then_some(())
    });
}

#[test]
fn through_ssh_and_past_a_host_that_is_not_there() {
    let Some(sshd) = Sshd::start(&["a", "b"], "") else { return };
    let lab = Lab::new();
    let job = ["fleet", "--hosepipe", HOSEPIPE, "--json", "-"];
    let run = |hosts: &str| {
        let mut command = lab.command(&[&job[..], &["--hosts", hosts], &HOW, &BENCH].concat());
        command.env("PATH", sshd.path());
        lab.finish(command)
    };
    assert_whole(&read(&run("a,b").expect_code(0).stdout), &["a", "b"]);
    // As printed, by hand, in a folder that all see.
    let folder = lab.here("by hand");
    let words = ["fleet", "--on", "ssh", "--hosts", "a,b", "--folder", folder.to_str().expect("a path")];
    let script =
        lab.run(&[&words[..], &["--hosepipe", HOSEPIPE], &HOW, &BENCH].concat()).expect_code(0).stdout;
    let status =
        Command::new("sh").args(["-c", &script]).env("PATH", sshd.path()).stdout(Stdio::null()).status();
    assert!(status.expect("sh").success(), "{script}");
    assert_whole(&read(&fs::read_to_string(folder.join("fleet")).expect("a record")), &["a", "b"]);

    let record = read(&run("a,nowhere.invalid,b").expect_code(1).stdout);
    let why = record.nodes[1].failure.as_deref().unwrap_or_default();
    assert!(why.contains("Could not resolve hostname"), "{why}");
    assert_eq!((&record.nodes[0].failure, &record.nodes[2].failure), (&None, &None));
    let whole: Vec<bool> = record.meetings.iter().map(|meeting| meeting.failure.is_none()).collect();
    assert_eq!(whole, [false, true, false], "a with b, and nobody with the third");
}

#[test]
fn however_the_launcher_ends_nodes_behind_ssh_end_with_it() {
    let Some(sshd) = Sshd::start(&["a", "b"], "") else { return };
    let lab = Lab::new();
    // What runs there is known by its folder for temporary files, as everywhere.
    let there = lab.here("there");
    let script = format!(
        "#!/bin/sh\nTMPDIR='{}' XDG_RUNTIME_DIR={CACHES} exec {HOSEPIPE} \"$@\"\n",
        lab.tmp().display()
    );
    fs::write(&there, script).expect("written");
    fs::set_permissions(&there, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
    let start = || {
        let job = ["fleet", "--hosts", "a,b", "--json", "-", "--hosepipe", there.to_str().expect("a path")];
        let mut command = lab.command(&[&job[..], &HOW, &LONG].concat());
        command.env("PATH", sshd.path());
        let running = lab.start(command);
        until("both in their benches", Duration::from_secs(30), || {
            let is_bench = |(pid, _): &(u32, String)| {
                let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                words.contains("hosepipe\0bench\0")
            };
            (lab.processes().iter().filter(|process| is_bench(process)).count() > 1).then_some(())
        });
        running
    };
    start().kill_and_look();
    let running = start();
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(Duration::from_secs(20)).expect_code(130);
    assert!(read(&done.stdout).nodes.iter().all(|node| node.failure.is_some()), "{}", done.stdout);
}

#[test]
fn ctrl_c_cancels_what_slurm_runs() {
    let Some(slurm) = Slurm::start("") else { return };
    let lab = Lab::new();
    let job = ["fleet", "--on", "slurm", "--nodes", "2", "--submit", "--folder", "work", "--json", "-"];
    let mut command = lab.command(&[&job[..], &HOW, &LONG].concat());
    command.env("SLURM_CONF", slurm.configuration());
    let running = lab.start(command);
    until("both nodes", Duration::from_secs(60), || {
        ["work/node-0", "work/node-1"].iter().all(|file| lab.here(file).exists()).then_some(())
    });
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(Duration::from_secs(20)).expect_code(130);
    assert!(read(&done.stdout).nodes.iter().all(|node| node.failure.is_some()), "{}", done.stdout);
}

/// No node is said to have failed that was never started.
#[test]
fn a_batch_system_that_refuses_is_quoted() {
    let lab = Lab::new();
    fs::write(lab.here("sbatch"), "#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
        .expect("written");
    fs::set_permissions(lab.here("sbatch"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("chmod");
    let mut command =
        lab.command(&["fleet", "--on", "slurm", "--nodes", "2", "--submit", "--folder", "work"]);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", lab.here("").display()));
    let done = lab.finish(command).expect_code(1);
    let said = done.stderr;
    assert!(said.contains("no node was started: ") && said.contains("invalid partition"), "{said}");
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let lab = Lab::new();
    fs::write(lab.here("file"), "").expect("written");
    fs::write(lab.here("token"), "0123456789abcdef").expect("written");
    fs::set_permissions(lab.here("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("chmod");
    let on = |words: &[&'static str]| [&["--on", "slurm"], words].concat();
    let cases: [(Vec<&str>, &str); 22] = [
        (vec![], "no launcher has started this"),
        (vec!["--hosts", "a"], "two nodes at least"),
        (vec!["--hosts", "a,-oProxyCommand=x"], "is not a host"),
        (vec!["--on", "ssh"], "--hosts A,B"),
        (vec!["--on", "ssh", "--hosts", "a,b"], "--folder DIR"),
        (on(&["--nodes", "2", "--rank", "1"]), "cannot be used with"),
        (on(&["--nodes", "2", "--", "pipe", "--json", "x"]), "gives its record to the fleet"),
        (
            vec![
                "--rank",
                "0",
                "--nodes",
                "2",
                "--toward",
                "127.0.0.1",
                "--meet",
                ":7117",
                "--token-file",
                "token",
            ],
            "is not HOST:PORT",
        ),
        (on(&[]), "--nodes N"),
        (on(&["--nodes", "1"]), "two nodes at least"),
        (on(&["--nodes", "3", "--hosts", "a,b"]), "--nodes says 3"),
        (on(&["--nodes", "2", "--submit", "--folder", "file"]), "cannot meet in file: "),
        (on(&["--nodes", "2", "--submit", "--folder", "new"]), "sbatch is not installed here"),
        (on(&["--nodes", "2", "--", "no-such-mechanism"]), "no-such-mechanism"),
        // Happened: a line of the folder's name was one of the script.
        (on(&["--nodes", "2", "--folder", "a\ntouch b"]), "holds a control character"),
        (on(&["--nodes", "2", "--token-file", "a\ntouch b"]), "holds a control character"),
        (vec!["--on", "mpi", "--hosts", "a,b\ntouch c"], "holds a control character"),
        // Happened: the record was not written, and that was not said.
        (on(&["--nodes", "2", "--json", "x"]), "need --submit"),
        (on(&["--nodes", "2", "--hosepipe", ""]), "--hosepipe"),
        (vec!["--rank", "0", "--nodes", "2", "--hosepipe", "h"], "is for a job"),
        (vec!["--rank", "0", "--nodes", "2", "--toward", "127.0.0.1"], "--folder DIR"),
        (vec!["--rank", "2", "--nodes", "2", "--folder", "f"], "counted from 0"),
    ];
    for (words, sentence) in cases {
        let mut command = lab.command(&[&["fleet"], &words[..]].concat());
        command.env("PATH", "/nowhere");
        let done = lab.finish(command).expect_code(2);
        assert!(done.stderr.contains(sentence) && done.stdout.is_empty(), "{words:?}: {}", done.stderr);
    }
    // Happened: a name that is no text was not looked at, and a line of it was one of the script.
    for words in [&["--folder"][..], &["--token-file"]] {
        let mut command = lab.command(&[&["fleet", "--on", "slurm", "--nodes", "2"], words].concat());
        command.arg(OsStr::from_bytes(b"./fo\xff\ntouch PWNED\n#"));
        let done = lab.finish(command).expect_code(2);
        assert!(done.stderr.contains("is not text in UTF-8") && done.stdout.is_empty(), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
    fs::create_dir(lab.here("open")).expect("made");
    fs::set_permissions(lab.here("open"), std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("chmod");
    let done = lab.run(&["fleet", "--rank", "0", "--nodes", "2", "--folder", "open"]).expect_code(2);
    assert!(done.stderr.contains("all users may write to it"), "{}", done.stderr);
}

/// What is printed is what a shell takes.
#[test]
fn printed_jobs_are_well_formed() {
    let lab = Lab::new();
    for engine in ["slurm", "mpi"] {
        let job = ["fleet", "--nodes", "3", "--on", engine, "--folder", "it's here", "--", "pipe"];
        fs::write(lab.here("job.sh"), lab.run(&job).expect_code(0).stdout).expect("written");
        let checked = Command::new("sh").args(["-n"]).arg(lab.here("job.sh")).status().expect("sh");
        assert!(checked.success(), "{engine}");
    }
}
