//! Sockets with a name, connections and pseudoterminals as links; jobservers; and the graph for Graphviz.

use std::process::{Command, Stdio};

use model::{ChainLinkKind, TopRecord};

use super::{HOSEPIPE, Scene, look, names, text};
use crate::common::{skip, soon, until};

/// A program in Python that connects two others: `server` and `client` are given their ends as `end`.
fn connected(family: &str, address: &str) -> String {
    let begin = format!("import os, socket, time; one = socket.socket({family})");
    format!(
        "python3 -c '{begin}; one.bind({address}); one.listen(); open(\"ready\", \"w\").write(str(one.getsockname()[-1])); \
         end, _ = one.accept(); one.close()\nwhile end.recv(65536): time.sleep(0.001)' & \
         until [ -s ready ]; do sleep 0.01; done; \
         PORT=$(cat ready) exec python3 -c '{begin}; one.connect({})\nwhile True: one.send(b\"x\" * 4096)'",
        address.replace("0)", "int(os.environ[\"PORT\"]))")
    )
}

#[test]
fn sockets_with_a_name_and_connections_are_links_too() {
    let scene = Scene::new(&connected("socket.AF_UNIX", "\"here\""));
    let chain = scene.chain(|chain| chain.links.iter().any(|link| link.kind == ChainLinkKind::UnixSocket));
    assert_eq!(names(&chain), ["python3", "python3"]);
    assert!(chain.links[0].name.ends_with("here"), "{chain:?}");
    let scene = Scene::new(&connected("socket.AF_INET", "(\"127.0.0.1\", 0)"));
    let flows = |link: &model::ChainLink| link.kind == ChainLinkKind::Tcp && link.bytes_per_s > Some(0.0);
    let chain = scene.chain(|chain| chain.links.iter().any(flows));
    // Which way bytes go is known by the bytes.
    assert_eq!((names(&chain).len(), chain.links.len()), (2, 1), "{chain:?}");
    assert!(chain.links[0].name.contains("127.0.0.1:") && !chain.links[0].at_least, "{chain:?}");
    assert!(chain.links[0].held_bytes.is_some(), "{chain:?}");
}

#[test]
fn a_pseudoterminal_is_a_link() {
    let program = "import os, pty, time; pid, master = pty.fork()\n\
                   if pid == 0: os.execvp(\"yes\", [\"yes\"])\n\
                   while os.read(master, 100): time.sleep(0.001)";
    let scene = Scene::new(&format!("exec python3 -c '{program}'"));
    let written = |link: &model::ChainLink| link.kind == ChainLinkKind::Pty && link.bytes_per_s != Some(0.0);
    let chain = scene.chain(|chain| chain.links.iter().any(written));
    assert!(names(&chain).contains(&"yes") && names(&chain).contains(&"python3"), "{chain:?}");
    assert!(chain.links.iter().all(|link| link.name.starts_with("/dev/pts/")), "{chain:?}");
}

#[test]
fn the_pipe_of_a_jobserver_is_named_and_is_no_link() {
    if model::file_on_path("make").is_none() {
        return skip("no make");
    }
    let scene = Scene::new("printf 'all: a b c\\na b c:\\n\\tsleep 1000\\n' > Makefile; make -j3 all; :");
    let jobserver = until("a jobserver", soon(), || {
        let args = ["top", "--once", "--interval", "50ms", "--json", "-"];
        let output = Command::new(HOSEPIPE).args(args).output().expect("hosepipe");
        let record: TopRecord = serde_json::from_slice(&output.stdout).expect("a record");
        let ours = |one: &model::Jobserver| one.makes.iter().any(|make| scene.holds(make.pid));
        record.seen.jobservers.into_iter().find(ours).filter(|one| one.makes[0].held_tokens == 2)
    });
    // Of three jobs two have a token; both that there were.
    assert_eq!((jobserver.makes.len(), jobserver.free_tokens), (1, Some(0)), "{jobserver:?}");
    assert!(!look(&[]).iter().any(|chain| chain.links.iter().any(|link| link.name == jobserver.name)));
    let (_, said) = text(&["--once", "--interval", "50ms"]);
    let sentence = format!("{} is the jobserver of make {}", jobserver.name, jobserver.makes[0].pid);
    assert!(said.contains(&sentence) && said.contains("holds 2 tokens"), "{said}");
}

#[test]
fn the_graph_can_be_drawn() {
    let scene = Scene::new("yes | cat | sleep 1000");
    scene.chain(|chain| chain.stages.len() == 3);
    let (status, graph) = text(&["--dot", "--interval", "50ms", "sleep"]);
    assert_eq!(status, 0, "{graph}");
    let lines: Vec<&str> = graph.lines().collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("digraph hosepipe {", "}"));
    let named = |line: &&&str| line.contains("[label=\"") && line.ends_with("];");
    let edges = lines.iter().filter(named).filter(|line| line.contains(" -> ")).count();
    let nodes = lines.iter().filter(named).filter(|line| !line.contains(" -> ")).count();
    assert!(edges >= 2 && nodes >= 3 && edges + nodes + 4 == lines.len(), "{graph}");
    // Every string ends in its line, and every node of an edge is there.
    for line in &lines {
        assert_eq!(line.replace("\\\\", "").replace("\\\"", "").matches('"').count() % 2, 0, "{line}");
        if let Some((from, rest)) = line.split_once(" -> ") {
            for node in [from.trim(), rest.split(' ').next().unwrap_or_default()] {
                assert!(graph.contains(&format!("  {node} [label=")), "{node}: {graph}");
            }
        }
    }
    let (status, said) = text(&["--dot", "--json", "-"]);
    assert!(status == 2 && said.contains("--dot prints the graph"), "{said}");
    if model::file_on_path("dot").is_some() {
        let mut dot = Command::new("dot");
        let mut dot = dot.arg("-Tsvg").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("dot");
        std::io::Write::write_all(&mut dot.stdin.take().expect("piped"), graph.as_bytes()).expect("written");
        assert!(dot.wait().expect("its end").success());
    }
}
