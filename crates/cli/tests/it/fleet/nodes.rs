//! Nodes that are started by hand: who meets whom, what is told, and what is kept when something is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use model::Tool;
use rustix::process::Signal;

use super::{BENCH, HOW, assert_whole, read};
use crate::common::{HANGS_AFTER, Lab, signal, until};

/// Processes that no launcher of ours has started, and one of them with another hosepipe.
#[test]
fn as_pods_of_an_indexed_job_with_another_version_among_them() {
    let lab = Lab::new();
    fs::create_dir(lab.here("work")).expect("a folder");
    let node = |rank: &str| {
        let mut command = lab.command(
            &[&["fleet", "--nodes", "3", "--folder", "work", "--name"][..], &[rank], &HOW, &BENCH].concat(),
        );
        command.env("JOB_COMPLETION_INDEX", rank);
        command
    };
    let mut second = node("1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a node");
    let mut status = until("a status", Duration::from_secs(20), || {
        serde_json::from_slice::<serde_json::Value>(&fs::read(lab.here("work/node-1")).ok()?).ok()
    });
    status["tool"] =
        serde_json::to_value(Tool { version: "9.9.9".to_owned(), revision: None }).expect("a value");
    status["name"] = "2".into();
    fs::write(lab.here("work/node-2"), status.to_string()).expect("written");
    let done = lab.finish(node("0")).expect_code(1);
    assert!(second.wait().expect("waited").success());
    assert!(done.stdout.contains("– has hosepipe 9.9.9"), "{}", done.stdout);
    let record = read(&fs::read_to_string(lab.here("work/fleet")).expect("a record"));
    assert!(record.nodes[..2].iter().all(|node| node.failure.is_none()), "{}", done.stdout);
}

/// Expected: where the node that makes the secret is gone before it has made one, the next node does. Happened: it waited for it without end.
#[test]
fn a_first_node_that_is_gone_before_it_makes_the_secret_is_not_waited_for() {
    let lab = Lab::new();
    fs::create_dir(lab.here("work")).expect("a folder");
    let words = [&["fleet", "--nodes", "2", "--folder", "work", "--rank", "1"][..], &HOW, &BENCH].concat();
    let second = lab.start(lab.command(&words));
    let mut status = until("a status", Duration::from_secs(20), || {
        serde_json::from_slice::<serde_json::Value>(&fs::read(lab.here("work/node-1")).ok()?).ok()
    });
    status["failure"] = "lost its disk".into();
    fs::write(lab.here("work/node-0"), status.to_string()).expect("written");
    let done = second.wait_within(HANGS_AFTER).expect_code(1);
    assert!(done.stdout.contains("– lost its disk"), "{}", done.stdout);
    assert!(lab.here("work/token-1").exists() && !lab.here("work/token-0").exists());
}

/// As the manifest in docs/SCALE.md starts them: they meet at the first one, by the secret that all have.
#[test]
fn pods_of_an_indexed_job_meet_at_the_first_one() {
    let lab = Lab::new();
    fs::write(lab.here("token"), "0123456789abcdef").expect("written");
    fs::set_permissions(lab.here("token"), fs::Permissions::from_mode(0o600)).expect("chmod");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let meet = format!("127.0.0.1:{port}");
    let pod = |rank: &str| {
        let node = ["fleet", "--nodes", "3", "--meet", &meet, "--token-file", "token", "--name"];
        let place = ["--address", "127.0.0.1", "--json", "-"];
        let name = format!("node{rank}");
        let words = [&node[..], &[&name], &place, &HOW[2..], &BENCH].concat();
        let mut command = lab.command(&words);
        command.env("JOB_COMPLETION_INDEX", rank);
        command
    };
    let others = ["1", "2"].map(|rank| pod(rank).stdout(Stdio::null()).stderr(Stdio::null()).spawn());
    let record = read(&lab.finish(pod("0")).expect_code(0).stdout);
    assert_whole(&record, &["node0", "node1", "node2"]);
    for other in others {
        assert!(other.and_then(|mut other| other.wait()).expect("a node").success());
    }
}

/// Expected: a node says that its figures are in no record. Happened: one that was stopped for a while and went on ended with status 0.
#[test]
fn who_was_taken_for_gone_says_so() {
    let lab = Lab::new();
    let node = ["fleet", "--nodes", "2", "--rank", "1", "--folder", "work"];
    let running = lab.start(lab.command(&[&node[..], &HOW, &BENCH].concat()));
    let mut status = until("a status", Duration::from_secs(20), || {
        serde_json::from_slice::<serde_json::Value>(&fs::read(lab.here("work/node-1")).ok()?).ok()
    });
    (status["step"], status["lost"]) = (9.into(), vec![1].into());
    fs::write(lab.here("work/token-0"), "\"0123456789abcdef\"").expect("written");
    fs::write(lab.here("work/node-0"), status.to_string()).expect("written");
    let done = running.wait_within(Duration::from_secs(20)).expect_code(1);
    assert!(done.stderr.contains("the other nodes had counted it as gone"), "{}", done.stderr);
    assert!(done.stdout.contains("own streams"), "{}", done.stdout);
}

/// Expected: what all have measured is shown, although the folder takes no more. Happened: only what the first node had measured itself.
#[test]
fn a_record_that_the_folder_does_not_take_is_shown() {
    let labs = [Lab::new(), Lab::new()];
    let folder = labs[0].here("work");
    let start = |rank: usize| {
        let rank_text = rank.to_string();
        let node = ["fleet", "--nodes", "2", "--rank", &rank_text, "--json", "-", "--folder"];
        let place = [folder.to_str().expect("a path")];
        labs[rank].start(labs[rank].command(&[&node[..], &place, &HOW, &BENCH].concat()))
    };
    let [first, second] = [0, 1].map(start);
    until("both", Duration::from_secs(30), || folder.join("bench-0").exists().then_some(()));
    fs::create_dir(folder.join("fleet")).expect("a folder in its place");
    let done = first.wait_within(Duration::from_secs(30)).expect_code(1);
    let record = read(&done.stdout);
    assert!(record.nodes.iter().all(|node| node.bench.is_some()), "{}", done.stdout);
    assert!(done.stderr.contains("work: E"), "{}", done.stderr);
    second.wait_within(Duration::from_secs(30));
}

/// Expected: nodes of two fleets in one folder say so. Happened: they did not get to each other.
#[test]
fn nodes_that_count_differently_are_told() {
    let lab = Lab::new();
    let node = |rank: &str, nodes: &str| {
        let node = ["fleet", "--rank", rank, "--nodes", nodes, "--folder", "work"];
        lab.command(&[&node[..], &HOW, &BENCH].concat())
    };
    let mut first = node("0", "3").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a node");
    until("the first", Duration::from_secs(20), || lab.here("work/node-0").exists().then_some(()));
    let done = lab.start(node("1", "2")).end_within(Duration::from_secs(20)).expect_code(1);
    assert!(done.stderr.contains("is one of 2 nodes, and the first one of 3"), "{}", done.stderr);
    first.kill().and_then(|()| first.wait()).expect("ended");
}

#[test]
fn nobody_meets_without_the_token() {
    let lab = Lab::new();
    for (name, text) in [("token", "0123456789abcdef"), ("other", "fedcba9876543210"), ("short", "x")] {
        fs::write(lab.here(name), text).expect("written");
        fs::set_permissions(lab.here(name), fs::Permissions::from_mode(0o600)).expect("chmod");
    }
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let meet = format!("127.0.0.1:{port}");
    fn base<'a>(meet: &'a str, rank: &'a str, token: &'a str) -> Vec<&'a str> {
        let words = ["fleet", "--nodes", "2", "--wait", "10s", "--pair-time", "500ms", "--meet", meet];
        [&words[..], &["--rank", rank, "--token-file", token]].concat()
    }
    let node = |rank, token| lab.command(&[&base(&meet, rank, token)[..], &HOW[..2], &BENCH].concat());
    // Where it is called, whatever its own address is.
    let mut first =
        lab.command(&[&base(&meet, "0", "token")[..], &["--address", "127.0.0.2"], &BENCH].concat());
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a node");
    let done = lab.start(node("1", "other")).end_within(Duration::from_secs(20)).expect_code(1);
    assert!(done.stderr.contains("does it have another token?"), "{}", done.stderr);
    // Happened: both went on, and each overwrote what the other had said.
    let other = Lab::new();
    let mut twice = node("1", "token").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a node");
    until("it is there", Duration::from_secs(20), || {
        let folders = fs::read_dir(lab.tmp()).expect("a folder").flatten();
        folders.into_iter().any(|folder| folder.path().join("bench-1").exists()).then_some(())
    });
    let token = lab.here("token");
    let words = [&base(&meet, "1", token.to_str().expect("a path"))[..], &HOW[..2], &BENCH].concat();
    let said = other.start(other.command(&words)).wait_within(Duration::from_secs(20)).expect_code(1).stderr;
    assert!(said.contains("another node is number 1 already"), "{said}");
    twice.wait().expect("ended");
    first.wait().expect("ended");
    assert!(lab.finish(node("1", "short")).expect_code(2).stderr.contains("holds 1 bytes, not 16 to 4096"));
}

/// Expected: what is finished is kept. Happened: nodes without a job that follows them left no record.
#[test]
fn ctrl_c_on_nodes_started_by_hand_keeps_what_there_is() {
    let (lab, other) = (Lab::new(), Lab::new());
    let folder = lab.here("work");
    let start = |lab: &'_ Lab, rank: &str| {
        let node =
            ["fleet", "--nodes", "2", "--rank", rank, "--address", "127.0.0.1", "--json", "-", "--folder"];
        let bench = [
            folder.to_str().expect("a path"),
            "--pair-time",
            "60s",
            "--",
            "pipe",
            "--count",
            "10",
            "--trials",
            "1",
        ];
        lab.command(&[&node[..], &bench].concat())
    };
    let running = [lab.start(start(&lab, "0")), other.start(start(&other, "1"))];
    until("both benches", Duration::from_secs(30), || {
        ["bench-0", "bench-1"].iter().all(|file| folder.join(file).exists()).then_some(())
    });
    running.iter().for_each(|node| signal(node.pid(), Signal::INT));
    let [first, second] = running.map(|node| node.wait_within(Duration::from_secs(20)).expect_code(130));
    let record = read(&first.stdout);
    assert!(record.nodes.iter().all(|node| node.bench.is_some()), "{}", first.stdout);
    // On a loaded machine the first may see that the other was stopped before it hears the signal: it has done its part then.
    assert!(record.nodes[1].failure.is_some(), "{}", first.stdout);
    assert!(record.meetings.iter().all(|meeting| meeting.failure.is_some()), "{}", first.stdout);
    // On a loaded machine it may hear of the first one's end before it hears the signal, and is the first that is left then.
    assert!(second.stdout.is_empty() || read(&second.stdout).nodes.len() == 2, "{}", second.stdout);
}

/// Expected: what a node has measured is its own. Happened: where the first node died, or the folder was lost, everything was.
#[test]
fn what_a_node_has_measured_is_not_lost_with_the_others() {
    let labs = [Lab::new(), Lab::new()];
    let (token, folder, moved) = (labs[0].here("token"), labs[0].here("work"), labs[0].here("moved"));
    fs::write(&token, "0123456789abcdef").expect("written");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("chmod");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let meet = format!("--meet=127.0.0.1:{port}");
    let [token, folder_text] = [("token-file", &token), ("folder", &folder)]
        .map(|(option, path)| format!("--{option}={}", path.display()));
    for (is_meeting, place) in [(true, vec![&meet[..], &token]), (false, vec![&folder_text[..]])] {
        let start = |rank: usize| {
            let rank_text = rank.to_string();
            let node = [
                "fleet",
                "--nodes",
                "2",
                "--rank",
                &rank_text,
                "--address",
                "127.0.0.1",
                "--pair-time",
                "60s",
            ];
            let bench = ["--json", "-", "--", "pipe", "--count", "10", "--trials", "1"];
            labs[rank].start(labs[rank].command(&[&node[..], &place, &bench].concat()))
        };
        let [first, second] = [0, 1].map(start);
        until("both benches", Duration::from_secs(30), || {
            let of_the_first =
                fs::read_dir(labs[0].tmp()).expect("a folder").flatten().map(|entry| entry.path());
            let has_both = |board: std::path::PathBuf| {
                ["bench-0", "bench-1"].iter().all(|file| board.join(file).exists())
            };
            of_the_first.chain([folder.clone()]).any(has_both).then_some(())
        });
        if is_meeting {
            first.kill_and_look();
        } else {
            fs::rename(&folder, &moved).expect("renamed");
            first.wait_within(Duration::from_secs(30)).expect_code(1);
        }
        let done = second.wait_within(Duration::from_secs(30)).expect_code(1);
        let record = read(&done.stdout);
        assert!(record.nodes[1].bench.is_some() && record.nodes[1].failure.is_some(), "{}", done.stdout);
        assert!(done.stderr.contains("this node, "), "{}", done.stderr);
    }
}
