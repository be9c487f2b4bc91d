//! Ends that are killed, both of them, and ends in two containers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::time::{Duration, Instant};

use super::{BYTES, Pair, languages, messages, output, promise, well};
use crate::common::{Lab, busy, full, namespaces, skip};

/// Kills of a role in a test: a few, or as many as were promised.
fn kills() -> u32 {
    if full() { 200 } else { 6 }
}

/// A moment of up to 60 ms.
fn some_time(random: &mut fastrand::Rng) {
    std::thread::sleep(Duration::from_micros(random.u64(300..60_000)));
}

fn kill(mut child: Child) {
    child.kill().expect("it was ours");
    child.wait().expect("it was ours");
}

/// Waits until a program has ended, or sleeps whenever it is looked at for half a second; at most for a time in which it has long done its work, as one
/// that waits by looking again and again may run at any moment.
fn at_rest(mut program: Child) -> Child {
    let stat = format!("/proc/{}/stat", program.id());
    let sleeps = || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S "));
    let (began, longest) = (Instant::now(), Duration::from_secs(4) * busy());
    let mut since = began;
    while since.elapsed() < Duration::from_millis(500)
        && began.elapsed() < longest
        && program.try_wait().expect("it was ours").is_none()
    {
        std::thread::sleep(Duration::from_millis(10));
        if !sleeps() {
            since = Instant::now();
        }
    }
    program
}

/// Receivers are killed while a sender sends; the last one receives the rest, whole and in order.
fn readers_die(lab: &Lab, language: &str) {
    let mut random = fastrand::Rng::with_seed(1);
    for spec in promise("reader-crash") {
        let Some(pair) = Pair::new(lab, spec, [language; 2], BYTES, &["--must", "reader-crash"]) else {
            continue;
        };
        // It sends as long as receivers are killed, and a little longer.
        let count = 40 * u64::from(kills()) + 200;
        let sender = pair.start_sender(count, 1000);
        for _ in 0..kills() {
            let receiver = pair.start_receiver(count);
            some_time(&mut random);
            kill(receiver);
        }
        let last = pair.start_receiver(count);
        well(&pair.what(), &output(sender));
        well(&pair.what(), &output(last));
    }
}

/// Senders are killed, and the receiver goes on with the last of them.
fn writers_die(lab: &Lab, language: &str) {
    let mut random = fastrand::Rng::with_seed(2);
    for spec in promise("writer-crash") {
        let Some(pair) = Pair::new(lab, spec, [language; 2], BYTES, &["--must", "writer-crash"]) else {
            continue;
        };
        let receiver = pair.start_receiver(200);
        for _ in 0..kills() {
            let sender = pair.start_sender(1_000_000_000, 2000);
            some_time(&mut random);
            kill(sender);
        }
        well(&pair.what(), &output(pair.start_sender(200, 0)));
        let said = well(&pair.what(), &output(receiver));
        assert!(messages(&said) >= 200, "{}: {said}", pair.what());
    }
}

#[test]
fn an_end_in_c_goes_on_when_the_other_dies() {
    let lab = Lab::new();
    readers_die(&lab, "c");
    writers_die(&lab, "c");
}

#[test]
fn an_end_in_rust_goes_on_when_the_other_dies() {
    let lab = Lab::new();
    readers_die(&lab, "rust");
    writers_die(&lab, "rust");
}

#[test]
fn an_end_in_go_goes_on_when_the_other_dies() {
    if languages(&["go"]).is_empty() {
        return;
    }
    let lab = Lab::new();
    readers_die(&lab, "go");
    writers_die(&lab, "go");
}

#[test]
fn an_end_in_python_goes_on_when_the_other_dies() {
    let lab = Lab::new();
    readers_die(&lab, "python");
    writers_die(&lab, "python");
}

/// Both ends are killed; what was not read is there for the next receiver, all of it and in order.
#[test]
fn what_was_not_read_is_there_after_both_ends_were_killed() {
    let lab = Lab::new();
    for spec in promise("restart") {
        for language in languages(&["c", "rust", "python"]) {
            let pair = Pair::new(&lab, spec, [language; 2], BYTES, &["--must", "restart"]).expect("programs");
            // Both are killed in the middle.
            let (sender, receiver) = (pair.start_sender(50 * u64::from(busy()), 40), pair.start_receiver(0));
            std::thread::sleep(Duration::from_millis(250) * busy());
            kill(receiver);
            std::thread::sleep(Duration::from_millis(150) * busy());
            kill(sender);
            well(&pair.what(), &output(pair.start_receiver(1)));
            // A queue has room for ten messages: all that a sender sent that is killed where it is not gone by then.
            let sender = pair.start_sender(5, 0);
            kill(at_rest(sender));
            let said = well(&pair.what(), &output(pair.start_receiver(5)));
            assert_eq!(messages(&said), 5, "{}: {said}", pair.what());
        }
    }
}

/// Expected: the folder of the messages is on the disk before the first of them. Happened: its own name need not have been, and other users
/// could read it.
#[test]
fn the_folder_of_messages_is_on_the_disk_and_its_owners_alone() {
    if !crate::faults::strace_makes_calls_fail() {
        return skip("strace cannot be used here");
    }
    let lab = Lab::new();
    for language in languages(&["c", "rust", "python", "go", "java"]) {
        let mut pair =
            Pair::new(&lab, "file", [language; 2], BYTES, &["--must", "reboot"]).expect("programs");
        let strace = ["strace", "-f", "-y", "-o", "trace", "-e", "trace=fsync"].map(str::to_owned);
        pair.sender.splice(0..0, strace);
        well(&pair.what(), &output(pair.start_sender(1, 0)));
        let meeting = pair.folder.join("meeting");
        let trace = fs::read_to_string(pair.folder.join("trace")).expect("a trace");
        let first = trace.lines().find(|line| line.contains("fsync(")).expect("a call");
        assert!(first.contains(&format!("<{}>", pair.folder.display())), "{language}: {trace}");
        assert!(trace.contains(&format!("<{}>", meeting.display())), "{language}: {trace}");
        let mode = fs::metadata(&meeting).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{language}");
    }
}

/// Two programs in PID, IPC, network and mount namespaces of their own, with one folder in common and a /dev/shm of their own.
#[test]
fn two_containers_share_a_folder_and_no_more() {
    let options = ["--mount", "--pid", "--ipc", "--net", "--uts", "--fork"];
    let script = "mount -t tmpfs none /dev/shm && exec \"$0\" \"$@\"";
    let Some(container) = namespaces::unshare(&options, script) else { return };
    let container: Vec<String> = container.into_iter().map(str::to_owned).collect();
    let lab = Lab::new();
    for (at, spec) in promise("containers").into_iter().enumerate() {
        let code = [["c", "python"], ["python", "c"], ["rust", "rust"]][at % 3];
        let mut pair = Pair::new(&lab, spec, code, BYTES, &["--must", "containers"]).expect("programs");
        for end in [&mut pair.sender, &mut pair.receiver] {
            *end = [&container[..], end].concat();
        }
        let count = if spec == "file" { 20 } else { 2000 };
        let received = pair.expect_run(count, 1, 1, count);
        assert_eq!(messages(&received[0]), count, "{}", pair.what());
    }
}
