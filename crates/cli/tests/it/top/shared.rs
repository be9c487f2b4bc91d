//! Links that several processes have whole, or share.

use model::{ChainLinkKind, StageActivity};

use super::{Scene, names, text};

/// A scene in Python: `fork` gives a child that runs this function, and `rest` does nothing.
fn python(script: &str) -> Scene {
    let begin = "import os, pty, threading, time\ndef rest(): time.sleep(1000)\n\
                 def fork(run):\n if os.fork() == 0: run()\n";
    Scene::new(&format!("exec python3 -c '{begin}{script}'"))
}

/// Expected: who writes and who reads. Happened: "is in no chain: no pipe joins it to another process", as each process has both ends.
#[test]
fn a_pipe_that_both_have_whole_is_a_link_once_one_waits_at_it() {
    // A thread other than the first one waits for room, as in multiprocessing.Queue.
    let writes = "def fill():\n while True: os.write(w, bytes(4096))\n\
                  def child():\n threading.Thread(target=fill).start(); rest()\nr, w = os.pipe()\nfork(child)\nrest()";
    let full = python(writes);
    let chain = full.chain(|chain| chain.stages[0].doing == StageActivity::WaitsToWrite);
    assert_eq!(
        (chain.stages.len(), chain.stages[0].waits_at, chain.links[0].fullness),
        (2, Some(0), Some(1.0))
    );
    assert_eq!(chain.stages[1].processes[0].pid, full.pid());
    // The parent waits for its child, which waits for itself, too.
    let reads = "r, w = os.pipe()\nfork(lambda: os.read(r, 1))\nos.wait()";
    let empty = python(reads);
    let chain = empty.chain(|chain| {
        // python3 may be started by a shell script.
        names(chain) == ["python3"; 2] && chain.stages[1].doing == StageActivity::WaitsToRead
    });
    assert_eq!(chain.stages[0].processes[0].pid, empty.pid());
}

/// Expected: what is true where the direction is not known.
#[test]
fn a_pipe_without_a_direction_is_said_to_be_so() {
    let scene = python("r, w = os.pipe()\nfork(rest)\nopen(\"ready\", \"w\")\nrest()");
    crate::common::until("the child", crate::common::soon(), || {
        scene.folder.path().join("ready").exists().then_some(())
    });
    let (status, said) = text(&["--once", "--interval", "50ms", &scene.pid().to_string()]);
    assert!(status == 0 && said.contains("has a pipe in common with other processes"), "{said}");
}

/// Expected: the chain. Happened: a terminal through which nothing goes was not shown, also where its program waits for room.
#[test]
fn a_full_terminal_is_shown() {
    let scene = python(
        "master, slave = pty.openpty()\ndef child():\n os.dup2(slave, 1)\n while True: os.write(1, bytes(4096))\n\
         fork(child)\nos.close(slave)\nrest()",
    );
    let chain =
        scene.chain(|chain| chain.stages.iter().any(|stage| stage.doing == StageActivity::WaitsToWrite));
    assert!(chain.links.iter().all(|link| link.kind == ChainLinkKind::Pty), "{chain:?}");
}

/// Expected: what goes to two readers is drawn as parts. Happened: each line had the whole rate.
#[test]
fn two_readers_get_parts() {
    let scene = Scene::new(
        "mkfifo here; cat here > /dev/null & cat here | wc -l > /dev/null & while :; do echo; sleep 0.01; done > here",
    );
    scene.chain(|chain| {
        chain.links.iter().any(|link| link.readers.len() == 2 && link.bytes_per_s > Some(0.0))
    });
    let (_, said) = text(&["--once", "--interval", "500ms", &scene.pid().to_string()]);
    assert_eq!(said.matches("─part of ").count(), 2, "{said}");
    assert!(!said.contains("--explain"), "an option that top does not have: {said}");
}
