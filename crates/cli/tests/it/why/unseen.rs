//! System calls that may not be read, as where Yama lets only parents do so: here another file lies above `syscall` and `mem` of /proc, which no user may read
//! without CAP_DAC_OVERRIDE.

use super::*;
use crate::common::full;
use crate::common::namespaces::unshare;

/// Hides the system calls and the memory of the processes `PIDS`.
const HIDES: &str = "touch no && chmod 0 no
for pid in $PIDS; do for folder in /proc/$pid /proc/$pid/task/*; do for name in syscall mem; do
mount --bind no $folder/$name; done; done; done
exec setpriv --bounding-set=-dac_override,-dac_read_search -- \"$0\" \"$@\"";

/// Causes for which an argument or the memory has to be read. What is said instead.
const LESS_KNOWN: &[(WhyCause, &[WhyCause])] = &[
    (WhyCause::MutexLeft, &[WhyCause::CallHidden]),
    (WhyCause::DeadlockThreads, &[WhyCause::CallHidden, WhyCause::Sleeps]),
    (WhyCause::Mutex, &[WhyCause::Sleeps]),
];

/// Asks, with all system calls of the scene hidden, until this is the cause.
fn is_found(scene: &Scene, causes: &[WhyCause]) -> Option<()> {
    let wrapper = unshare(&["--mount"], HIDES)?;
    let began = Instant::now();
    loop {
        let tree = process::proc::tree(&[scene.pid()], process::proc::children);
        let pids: Vec<String> = tree.iter().map(i32::to_string).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).args([HOSEPIPE, "why", "--json", "-", &pids[0]]);
        let output = command.current_dir(folder.path()).env("PIDS", pids.join(" ")).output();
        let output = output.expect("why runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let record: WhyRecord = serde_json::from_slice(&output.stdout).expect(&said);
        let answer = record.answers.first().expect("an answer");
        if causes.contains(&answer.cause) {
            return Some(());
        }
        assert!(began.elapsed() < soon(), "{causes:?}: {answer:#?}");
    }
}

/// Expected: the cause is named, or that the system call may not be read. Happened: of a daemon whose reader is in poll(2), and of a parent that reads one of two pipes, that
/// nothing is stuck.
#[test]
fn causes_are_named_where_the_system_call_is_hidden() {
    if !is_root() {
        return skip("only root can hide files of /proc");
    }
    // What is in a buffer is in memory; a reader that is loaded slowly, on a busy machine, is not known to have got nothing.
    let is_seen = |hangs: &&hangs::Hangs| ![WhyCause::HeldInBuffer, WhyCause::MayHold].contains(&hangs.0);
    let hangs = hangs::PROGRAMS.iter().filter(is_seen).map(|hangs| (hangs.0, hangs.3));
    // A mount for each thread of each program: all of them at once are a load of their own.
    let step = if full() { 1 } else { 4 };
    std::thread::scope(|threads| {
        for (cause, script) in hangs.chain(healthy::PROGRAMS.iter().copied()).step_by(step) {
            threads.spawn(move || {
                if let Some(program) = missing(script) {
                    return skip(&format!("no {program}: {}", cause.name()));
                }
                let less = LESS_KNOWN.iter().find(|(known, _)| *known == cause);
                let found = is_found(&Scene::new(script), less.map_or(&[cause], |(_, instead)| *instead));
                if found.is_none() {
                    skip("no mount namespace");
                }
            });
        }
    });
}
