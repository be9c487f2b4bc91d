//! Forty constructed pipelines, twenty that hold lines back and twenty that do not, all at once under the eyes of one `top`.

use std::collections::HashSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use model::TopRecord;
use rustix::process::{Pid, Signal, kill_process_group};

use super::HOSEPIPE;
use crate::common::{alone, skip, soon};

/// A few lines at once, and nothing more; and lines again and again.
const FEW: &str = "(echo line one x; echo line two x; exec sleep 1000)";
const MANY: &str = "(while :; do echo line one x; echo line two x; sleep 0.1; done)";
/// Some kilobytes a second, in small pieces.
const FLOOD: &str = "(while :; do printf '%0400d\\n' 1; sleep 0.1; done)";

/// A source, a filter, and what else has to be installed.
type Case = (&'static str, &'static str);

const HOLD_BACK: [Case; 20] = [
    (FEW, "grep x"),
    (MANY, "grep line"),
    (MANY, "grep -v none"),
    (FEW, "sed s/x/y/"),
    (MANY, "sed -n p"),
    (FEW, "tr x y"),
    (FEW, "cut -c 1-6"),
    (FEW, "uniq"),
    (MANY, "nl"),
    (FEW, "expand"),
    (FEW, "fold -w 9"),
    (MANY, "paste - -"),
    (MANY, "od -c"),
    (FEW, "jq -R ."),
    (MANY, "xxd"),
    (FEW, "(grep x)"),
    (MANY, "grep line | cat"),
    (MANY, "nice grep line"),
    (FLOOD, "perl -ne print"),
    (FLOOD, "python3 -c 'import sys\nfor line in sys.stdin: sys.stdout.write(line)'"),
];

const DO_NOT: [Case; 20] = [
    (MANY, "sort"),
    (MANY, "tac"),
    (MANY, "wc -l"),
    (MANY, "xz"),
    (MANY, "gzip"),
    ("yes", "head -n 1000000000"),
    (MANY, "grep none"),
    (MANY, "grep -c x"),
    (MANY, "sed -n '$p'"),
    (MANY, "perl -ne '$n++'"),
    (MANY, "python3 -c 'import sys\nfor line in sys.stdin: pass'"),
    (MANY, "grep --line-buffered x"),
    (MANY, "sed -u s/x/y/"),
    (MANY, "stdbuf -oL cut -c 1-4"),
    (MANY, "tee /dev/null"),
    // Nothing would come earlier.
    (MANY, "grep line | uniq | sort"),
    ("yes", "sed s/y/x/"),
    ("yes", "grep y | (exec sleep 1000)"),
    (MANY, "while read -r line; do echo $line; done"),
    (FLOOD, "dd bs=401 status=none"),
];

struct Scene(Child);

impl Scene {
    fn new((source, filter): &Case) -> Self {
        let mut command = Command::new("bash");
        // Not a script that starts it, whose counters it would have.
        let python = "$(python3 -c 'import sys; print(sys.executable)')";
        let filter = filter.replacen("python3", python, 1);
        command.args(["-c", &format!("{source} | {filter} | cat > /dev/null")]);
        command.env_remove("PYTHONUNBUFFERED").env_remove("PERL5OPT");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(command.spawn().expect("bash"))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = Pid::from_raw(self.0.id() as i32).map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.0.wait();
    }
}

/// The process group of a process.
fn group(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(2)?.parse().ok()
}

/// The groups in which a program holds output back, with the cure.
fn held_back() -> Vec<(i32, String)> {
    let output = Command::new(HOSEPIPE).args(["top", "--once", "--json", "-"]).output().expect("hosepipe");
    let record: TopRecord = serde_json::from_slice(&output.stdout).expect("a record");
    let stages = record.seen.chains.into_iter().flat_map(|chain| chain.stages);
    let held = stages.filter_map(|stage| stage.held_back);
    held.filter_map(|held| Some((group(held.pid)?, held.cure.unwrap_or_default()))).collect()
}

/// Expected: each of the twenty that hold back is named within some looks, and none of the others in any of them.
#[test]
fn twenty_of_forty_hold_back() {
    let _alone = alone();
    let installed = |case: &&Case| {
        let missing = ["jq", "xxd", "perl", "python3", "xz"]
            .iter()
            .find(|name| case.1.starts_with(**name) && model::file_on_path(name).is_none());
        missing.map(|name| skip(&format!("{name} is not installed"))).is_none()
    };
    let start = |cases: &[Case]| -> Vec<(Scene, &'static str)> {
        cases.iter().filter(installed).map(|case| (Scene::new(case), case.1)).collect()
    };
    let (hold, do_not) = (start(&HOLD_BACK), start(&DO_NOT));
    let began = Instant::now();
    let mut named: HashSet<i32> = HashSet::new();
    let pid = |scene: &Scene| scene.0.id() as i32;
    loop {
        for (group, cure) in held_back() {
            let innocent = do_not.iter().find(|(scene, _)| pid(scene) == group);
            assert!(innocent.is_none(), "{:?} holds nothing back: {cure}", innocent.map(|(_, text)| text));
            if let Some((_, text)) = hold.iter().find(|(scene, _)| pid(scene) == group) {
                assert!(!text.contains("grep") || cure.contains("--line-buffered"), "{text}: {cure}");
                named.insert(group);
            }
        }
        let missed: Vec<_> =
            hold.iter().filter(|(scene, _)| !named.contains(&pid(scene))).map(|(_, text)| text).collect();
        if missed.is_empty() {
            break;
        }
        assert!(began.elapsed() < soon(), "not seen: {missed:?}");
    }
    // Once more, by when those that do not hold back have had time to look as if they did.
    let named = held_back();
    assert!(do_not.iter().all(|(scene, _)| named.iter().all(|(group, _)| *group != pid(scene))), "{named:?}");
}

/// Expected: the text names the program, its option and ours.
#[test]
fn top_names_the_option() {
    let scene = Scene::new(&(MANY, "grep line"));
    let began = Instant::now();
    loop {
        let which = scene.0.id().to_string();
        let output = Command::new(HOSEPIPE).args(["top", "--once", &which]).output().expect("hosepipe");
        let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        let has = |part: &str| text.contains(part);
        if has("holds its output back") && has("`grep --line-buffered`, or `hosepipe run --line-buffered`") {
            return;
        }
        assert!(began.elapsed() < soon(), "{text}");
    }
}
