//! `hosepipe top`: real chains of real programs, as they are seen from outside.

mod joined;
mod screen;
mod shared;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::{Chain, ChainLinkKind, StageActivity, TopRecord};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::common::namespaces::unshare;
use crate::common::{Lab, another_user, skip, soon, until};

const HOSEPIPE: &str = env!("CARGO_BIN_EXE_hosepipe");

/// A script of bash, in a process group and a session of its own, which ends with it.
pub(crate) struct Scene {
    shell: Child,
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(folder.path()).env("HOSEPIPE", HOSEPIPE);
        Self::of(command, folder)
    }

    /// Of a command, with a folder that is removed with it.
    pub(crate) fn of(mut command: Command, folder: tempfile::TempDir) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self { shell: command.spawn().expect("started"), folder }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.shell.id() as i32
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether a process is of this scene.
    fn holds(&self, pid: i32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let group = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(2));
        group == Some(&self.pid().to_string())
    }

    /// Looks until the scene has one chain, and that passes.
    pub(crate) fn chain(&self, accept: impl Fn(&Chain) -> bool) -> Chain {
        let began = Instant::now();
        loop {
            let chains: Vec<Chain> = look(&[]).into_iter().filter(|chain| self.has(chain)).collect();
            match &chains[..] {
                [chain] if accept(chain) => return chain.clone(),
                _ => assert!(began.elapsed() < soon(), "{chains:#?}"),
            }
        }
    }

    fn has(&self, chain: &Chain) -> bool {
        chain.stages.iter().flat_map(|stage| &stage.processes).any(|process| self.holds(process.pid))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = Pid::from_raw(self.pid()).map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.shell.wait();
    }
}

/// The chains that are there.
fn look(arguments: &[&str]) -> Vec<Chain> {
    let words = [&["top", "--once", "--interval", "200ms", "--json", "-"], arguments].concat();
    let output = Command::new(HOSEPIPE).args(words).output().expect("hosepipe");
    let record: TopRecord = serde_json::from_slice(&output.stdout).expect("a record");
    record.seen.chains
}

fn text(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(HOSEPIPE).args([&["top"], arguments].concat()).output().expect("hosepipe");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8(said).expect("text"))
}

pub(crate) fn names(chain: &Chain) -> Vec<&str> {
    chain.stages.iter().map(|stage| stage.processes[0].name.as_str()).collect()
}

/// The name of the stage that holds a chain up.
fn culprit(chain: &Chain) -> Option<&str> {
    chain.held_up_by.map(|at| chain.stages[at].processes[0].name.as_str())
}

#[test]
fn the_stage_that_is_waited_for_is_named() {
    // A slow source.
    let scene = Scene::new("while :; do printf '%0900d' 1; sleep 0.01; done | cat > /dev/null");
    let chain = scene.chain(|chain| culprit(chain) == Some("bash") && chain.links[0].bytes_per_s.is_some());
    assert_eq!(names(&chain), ["bash", "cat"]);
    // A slow reader.
    let scene = Scene::new("yes | while read -r line; do sleep 0.01; done");
    let full = |chain: &Chain| {
        culprit(chain) == Some("bash") && chain.stages[0].doing == StageActivity::WaitsToWrite
    };
    let chain = scene.chain(full);
    assert_eq!((names(&chain), chain.stages[0].waits_at), (vec!["yes", "bash"], Some(0)));
    let link = &chain.links[0];
    assert!(link.held_bytes > Some(32 << 10) && link.capacity_bytes == Some(64 << 10), "{link:?}");
    // A slow program between two fast ones.
    let scene = Scene::new("cat /dev/zero | gzip -9 | cat > /dev/null");
    let held = |chain: &Chain| {
        culprit(chain) == Some("gzip") && chain.links[0].bytes_per_s > Some(0.0) && !chain.links[0].at_least
    };
    let chain = scene.chain(held);
    let read = chain.stages[1].read_bytes_per_s.expect("ours");
    assert!(chain.links[0].bytes_per_s.is_some_and(|rate| (rate - read).abs() < 0.2 * read), "{chain:?}");
}

/// Expected: a loop of short sleeps sleeps. Happened: it was said to be at work, because it ran at the moment of the last sample.
#[test]
fn a_loop_of_short_sleeps_is_not_at_work() {
    let scene = Scene::new("while sleep 0.02; do echo; done | cat > /dev/null");
    let seen: Vec<StageActivity> =
        (0..6).map(|_| scene.chain(|chain| culprit(chain) == Some("bash")).stages[0].doing).collect();
    let at_work = seen.iter().filter(|doing| **doing == StageActivity::Works).count();
    assert!(at_work <= seen.len() / 2, "{seen:?}");
}

#[test]
fn what_is_idle_is_held_up_by_nobody_and_who_waits_is_known_whatever_the_call() {
    for wait in [
        "os.read(0, 1)",
        "select.select([0], [], [])",
        "p = select.poll(); p.register(0, select.POLLIN); p.poll()",
        "p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()",
        "threading.Thread(target=lambda: os.read(0, 1)).start(); time.sleep(1000)",
    ] {
        let scene =
            Scene::new(&format!("sleep 1000 | python3 -c 'import os, select, threading, time; {wait}'"));
        // Until it waits, it does something, and the chain waits for it.
        let still =
            |chain: &Chain| chain.stages[1].waits_at == Some(0) && chain.links[0].bytes_per_s == Some(0.0);
        let chain =
            scene.chain(|chain| chain.stages.len() == 2 && still(chain) && chain.held_up_by.is_none());
        assert_eq!(chain.stages[1].doing, StageActivity::WaitsToRead, "{wait}");
        assert!(!chain.links[0].at_least, "{wait}");
    }
}

/// Expected: it waits for room. Happened: each of the two was said to wait for the other, `yes` with a full pipe and python3 for bytes in it.
#[test]
fn of_two_links_that_one_call_waits_for_the_full_or_the_empty_one_is_named() {
    let splice = "python3 -c 'import os\nwhile os.splice(0, 1, 1 << 16): pass'";
    let is_second =
        |doing: StageActivity| move |chain: &Chain| chain.stages.len() == 3 && chain.stages[1].doing == doing;
    let scene = Scene::new(&format!("yes | {splice} | sleep 1000"));
    let chain = scene.chain(is_second(StageActivity::WaitsToWrite));
    let link = &chain.links[chain.stages[1].waits_at.expect("a link")];
    assert_eq!((&link.writers[..], &link.readers[..]), (&[1][..], &[2][..]));
    let scene = Scene::new(&format!("sleep 1000 | {splice} | sleep 1001"));
    let chain = scene.chain(is_second(StageActivity::WaitsToRead));
    let link = &chain.links[chain.stages[1].waits_at.expect("a link")];
    assert_eq!((&link.writers[..], &link.readers[..]), (&[0][..], &[1][..]));
}

#[test]
fn fifos_and_socket_pairs_are_links_too() {
    let scene = Scene::new("mkfifo here; cat here > /dev/null & exec yes > here");
    let chain = scene.chain(|chain| chain.links[0].bytes_per_s > Some(0.0));
    assert_eq!((names(&chain), chain.links[0].kind), (vec!["yes", "cat"], ChainLinkKind::Fifo));
    assert_eq!(
        Path::new(&chain.links[0].name),
        scene.folder.path().canonicalize().expect("there").join("here")
    );
    let scene = Scene::new("exec \"$HOSEPIPE\" run --via socketpair 'yes | sleep 1000'");
    let full = |chain: &Chain| {
        let stages = names(chain);
        stages == ["yes", "sleep"] && culprit(chain) == Some("sleep") && chain.links[0].fullness > Some(0.5)
    };
    let chain = scene.chain(full);
    let link = &chain.links[0];
    assert_eq!((link.kind, link.capacity_bytes), (ChainLinkKind::Socketpair, None));
    assert!(link.held_bytes > Some(0) && chain.stages[0].doing == StageActivity::WaitsToWrite, "{chain:?}");
}

#[test]
fn what_goes_round_or_branches_is_drawn_once() {
    let scene = Scene::new("coproc cat; read -u ${COPROC[0]}");
    scene.chain(|chain| chain.links.len() == 2 && chain.stages.len() == 2);
    let (status, said) = text(&["--once", "--interval", "50ms", &scene.pid().to_string()]);
    assert!(status == 0 && said.matches("(above)").count() == 1 && said.matches("→").count() == 2, "{said}");
    let script = "mkfifo here; sleep 1000 < here & { yes | cat > here & yes | cat > here & wait; }";
    let scene = Scene::new(script);
    let chain = scene.chain(|chain| chain.links.len() == 3);
    let gather = chain.links.iter().find(|link| link.writers.len() == 2).expect("two writers");
    assert_eq!((gather.kind, chain.stages.len()), (ChainLinkKind::Fifo, 5));
    assert!(chain.stages[gather.readers[0]].processes[0].name == "sleep", "{chain:?}");
    // Many stages, and more than fit a line.
    let scene = Scene::new(&format!("sleep 1000{}", " | cat".repeat(200)));
    scene.chain(|chain| chain.stages.len() == 201 && chain.links.len() == 200);
    let (status, said) = text(&["--once", "--interval", "50ms", &(scene.pid() + 1).to_string()]);
    assert!(status == 0 || said.contains("there is no process"), "{said}");
}

/// Expected: the chain. Happened: none, where a child of xargs ended between two steps of a look.
#[test]
fn a_stage_whose_children_come_and_go_is_in_its_chain() {
    let scene = Scene::new("seq 100000 | xargs -n 1 sh -c 'sleep 0.01; echo $0' | cat > /dev/null");
    let chain = scene.chain(|chain| names(chain).contains(&"xargs"));
    let xargs = chain.stages.iter().flat_map(|stage| &stage.processes).find(|one| one.name == "xargs");
    let pid = xargs.expect("xargs").pid.to_string();
    for _ in 0..12 {
        let (status, said) = text(&["--once", "--interval", "100ms", &pid]);
        assert!(status == 0 && said.contains("→ cat"), "{said}");
    }
}

/// Expected: what `boost --pid` follows. Happened: a pipeline's shell was in no chain.
#[test]
fn the_chains_of_a_process_are_those_of_what_it_has_started() {
    let scene = Scene::new("sh -c 'sleep 1000 | sleep 1001; :'; :");
    scene.chain(|chain| names(chain) == ["sleep", "sleep"]);
    let (status, said) = text(&["--once", "--interval", "50ms", &scene.pid().to_string()]);
    assert!(status == 0 && said.contains("1 chain"), "{said}");
}

/// Expected: why it is in no chain. Happened: no pair of sockets joins it, it was said.
#[test]
fn a_pair_of_sockets_without_a_direction_is_said_to_be_so() {
    let ends = std::os::unix::net::UnixStream::pair().expect("a pair");
    let sleeps = [ends.0, ends.1].map(|end| {
        let mut command = Command::new("sh");
        command.args(["-c", "exec sleep 1000 3<&0 < /dev/null"]).process_group(0);
        command.stdin(std::os::fd::OwnedFd::from(end)).stdout(Stdio::null()).spawn().expect("sh")
    });
    let [one, other] = sleeps.map(|shell| Scene { shell, folder: tempfile::tempdir().expect("a folder") });
    for scene in [&one, &other] {
        let pid = scene.pid();
        until("sleep", soon(), || process::proc::named(pid).filter(|named| named.command == "sleep"));
        let (_, said) = text(&["--once", "--interval", "50ms", &pid.to_string()]);
        assert!(said.contains("the direction of bytes in its pair of sockets is unknown"), "{said}");
    }
}

#[test]
fn names_do_not_steer_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("a\u{1b}[31m\nb");
    std::os::unix::fs::symlink("/bin/sleep", &name).expect("made");
    let scene = Scene::new(&format!("'{}' 1000 | cat", name.display()));
    let chain = scene.chain(|chain| names(chain).len() == 2 && names(chain)[0].starts_with('a'));
    let pid = chain.stages[0].processes[0].pid.to_string();
    for option in [&[][..], &["--md", "-"], &["--csv", "-"], &["--html", "-"]] {
        let (status, said) = text(&[&["--once", "--interval", "50ms", &pid], option].concat());
        let steers = said.contains('\u{1b}') && option != ["--csv", "-"];
        assert!(status == 0 && !steers && said.contains("cat"), "{option:?}: {said}");
    }
    let (_, said) = text(&["--once", "--interval", "50ms", &pid]);
    assert!(said.contains("a␛[31m␊b"), "{said}");
}

#[test]
fn what_cannot_be_shown_is_said() {
    let lab = Lab::new();
    for missing in ["2147483647", "0", "-5"] {
        let done = lab.run(&["top", "--once", "--", missing]).expect_code(2);
        assert!(done.stderr.contains(&format!("there is no process {missing}")), "{}", done.stderr);
    }
    for wrong in [&["--interval", "0s"][..], &["--interval", "soon"], &["1", "2"]] {
        lab.run(&[&["top", "--once"], wrong].concat()).expect_code(2);
    }
    let (status, said) = text(&["--once", "--interval", "50ms", "no such program"]);
    assert!(
        status == 0 && said.contains("No chain has `no such program` in the name of a program."),
        "{said}"
    );
    // One that is joined to no other process, and one that ends meanwhile.
    let scene = Scene::new("exec sleep 1000");
    let pid = scene.pid().to_string();
    let (status, said) = text(&["--once", "--interval", "50ms", &pid]);
    assert!(status == 0 && said.contains(&format!("Process {pid} is in no chain")), "{said}");
    let scene = Scene::new("sleep 1000 | exec sleep 1001");
    let chain = scene.chain(|chain| names(chain) == ["sleep", "sleep"]);
    let pid = chain.stages[0].processes[0].pid;
    let run = lab.start(lab.command(&["top", "--interval", "2s", &pid.to_string()]));
    let looked_at = |fd: fs::DirEntry| {
        fs::read_link(fd.path()).is_ok_and(|path| path == Path::new(&format!("/proc/{pid}/stat")))
    };
    let began = Instant::now();
    while !fs::read_dir(format!("/proc/{}/fd", run.pid())).expect("it runs").flatten().any(looked_at) {
        assert!(began.elapsed() < soon(), "it does not look");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(scene);
    let done = run.wait_within(soon()).expect_code(0);
    assert!(done.stdout.contains(&format!("Process {pid} has ended.")), "{}", done.stdout);
    // Happened: a zombie, as in a container whose first process reaps none, was said to be in no chain, and later not to exist.
    let mut ended = std::process::Command::new("true").spawn().expect("true");
    let pid = ended.id();
    until("its end", soon(), || {
        let stat = process::proc::Stat::of(pid.cast_signed()).expect("not waited for");
        stat.has_ended().then_some(())
    });
    let done = lab.run(&["top", "--once", &pid.to_string()]).expect_code(2);
    let said = format!(
        "process {pid} has ended and has nothing open: it is a zombie, because process {}",
        std::process::id()
    );
    assert!(done.stderr.replace('\n', " ").contains(&said), "{}", done.stderr);
    ended.wait().expect("ended");
}

#[test]
fn processes_of_other_users_are_said_to_be_so() {
    if !another_user::are_seen() {
        return skip("to run as another user and to see its files takes root with CAP_SYS_PTRACE");
    }
    let lab = Lab::new();
    let scene = Scene::new("sleep 1000 | setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1001");
    let chain = scene.chain(|chain| names(chain) == ["sleep", "sleep"]);
    let [ours, theirs] = [0, 1].map(|at| chain.stages[at].processes[0].pid.to_string());
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let look = |pid: &str| lab.finish(lab.wrapped(&nobody, &["top", "--once", "--interval", "50ms", pid]));
    let refused = look(&ours).expect_code(2);
    assert!(
        refused.stderr.contains("another user") && refused.stderr.contains(&format!("hosepipe top {ours}")),
        "{}",
        refused.stderr
    );
    // Where nothing is seen of it but that it is there. The first process of the namespace is root's.
    let hidden = "mount -t proc -o hidepid=1 proc /proc; setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" \"$@\"; exit $?";
    if let Some(wrapper) = unshare(&["--mount", "--pid", "--fork"], hidden) {
        let refused = lab.finish(lab.wrapped(&wrapper, &["top", "--once", "1"])).expect_code(2);
        assert!(refused.stderr.contains("another user"), "{}", refused.stderr);
    }
    // Root that lacks the right, as in a container.
    let bound = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"];
    for verb in [&["top", "--once"][..], &["boost", "--pid"]] {
        let refused = lab.finish(lab.wrapped(&bound, &[verb, &[&theirs]].concat())).expect_code(2);
        let said = refused.stderr.replace('\n', " ");
        assert!(said.contains("another user") && said.contains("CAP_SYS_PTRACE"), "{said}");
    }
    let done = look(&theirs).expect_code(0);
    let drawn = format!("(outside) ─0 B/s→ sleep {theirs}");
    assert!(done.stdout.contains(&drawn) && done.stdout.contains("not show what"), "{}", done.stdout);
}
