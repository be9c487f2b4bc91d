//! Every program that `hosepipe recommend` can print: it compiles without a warning, sends one message and a thousand, and leaves
//! nothing behind.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use model::{CaseRecord, Tasks, Workload};
use rustix::process::Signal;

use super::{answer, case, record};
use crate::common::{Lab, PROMPTLY, files_in, signal, skip, until};

/// Everything that can be recommended, and what must be asked for so that it is.
const ALL: [(&str, &[&str]); 13] = [
    ("pipe", &[]),
    ("pipe:size=1MiB", &[]),
    ("socketpair", &[]),
    ("fifo", &["--between", "processes", "--must", "filter"]),
    ("unix-stream", &["--between", "processes"]),
    ("unix-seqpacket", &["--must", "boundaries"]),
    ("unix-dgram", &["--must", "boundaries", "--must", "many-senders"]),
    ("tcp", &["--must", "cross-host"]),
    ("file", &["--must", "persistent", "--must", "filter"]),
    ("posix-mq", &["--must", "persistent", "--must", "boundaries"]),
    ("sysv-msgq", &["--between", "processes"]),
    ("shm-ring:wait=futex", &["--between", "processes"]),
    ("shm-ring:wait=spin", &["--cpu-budget", "300"]),
];

/// A program under test: its name in a language that allows no hyphens, its text, and where its ends meet.
struct Printed {
    name: String,
    text: String,
    meeting: String,
}

impl Printed {
    /// The arguments for so many messages.
    fn arguments(&self, count: usize) -> [String; 2] {
        // Each is on the disk before the next.
        let count = if self.name.starts_with("file") { count.min(20) } else { count };
        [count.to_string(), self.meeting.clone()]
    }

    /// Runs it, and looks for what it might have left.
    fn expect_success(&self, command: &mut Command, lab: &Lab) {
        let before = files(lab);
        let done = command.current_dir(lab.here("")).output().expect("it starts");
        let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(done.status.success(), "{}: {} {}{}", self.name, done.status, said[0], said[1]);
        assert!(
            said[0].contains(" ns per ") && said[0].ends_with(", all as sent\n"),
            "{}: {}",
            self.name,
            said[0]
        );
        assert_eq!(said[1], "", "{}", self.name);
        assert_eq!(files(lab), before, "{}", self.name);
        assert!(
            !PathBuf::from("/dev/shm").join(self.meeting.trim_start_matches('/')).exists(),
            "{}",
            self.name
        );
        // ftok(3)
        let folder = lab.here("").metadata().expect("a folder");
        let key = u64::from(b'h') << 24 | (folder.dev() & 0xff) << 16 | folder.ino() & 0xffff;
        let queues = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
        assert!(
            !queues.lines().any(|line| line.trim_start().starts_with(&format!("{key} "))),
            "{}",
            self.name
        );
    }
}

fn files(lab: &Lab) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(lab.here("")).expect("a folder").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The programs of a language: each mechanism one way, and there and back between threads.
fn programs(lab: &Lab, language: &str) -> Vec<Printed> {
    let port = || TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let mut all = Vec::new();
    for (spec, words) in ALL {
        for is_stream in [true, false] {
            if spec == "file" && !is_stream {
                continue;
            }
            let there_and_back = ["--pattern", "request-reply", "--between", "threads"];
            let words: Vec<&str> = match is_stream {
                true => words.to_vec(),
                // A FIFO and the like are asked for by what threads do not need.
                false => words
                    .iter()
                    .filter(|word| !["--between", "processes"].contains(word))
                    .chain(&there_and_back)
                    .copied()
                    .collect(),
            };
            let one_way = case(spec, 900, 900);
            let figures = match is_stream {
                true => one_way,
                false => CaseRecord { workload: Workload::PingPong, tasks: Tasks::Threads, ..one_way },
            };
            record(lab, "run.json", vec![figures]);
            let said = answer(lab, &[&words[..], &["--code", language]].concat(), 0);
            let (_, after) = said.split_once("\nhosepipe bench ").expect("the proof");
            let (_, program) = after.split_once("\n\n").expect("a program below it");
            let name = format!("{spec}-{}", if is_stream { "stream" } else { "reply" })
                .replace([':', '=', '-'], "_");
            let own = format!("hosepipe-test-{language}-{}-{name}", std::process::id());
            let meeting = match spec {
                "tcp" => port().to_string(),
                _ if program.contains("\"/hosepipe-example\"") => format!("/{own}"),
                _ => own,
            };
            all.push(Printed { name: name.to_lowercase(), text: program.to_owned(), meeting });
        }
    }
    fs::remove_file(lab.here("run.json")).expect("the record");
    all
}

pub(super) fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    if !found {
        skip(&format!("there is no {program}"));
    }
    found
}

fn compile(what: &str, command: &mut Command, lab: &Lab) {
    let done = command.current_dir(lab.here("")).output().expect("it starts");
    assert!(done.status.success(), "{what}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_program_in_c_sends_and_receives() {
    let lab = Lab::new();
    if !is_there("cc") {
        return;
    }
    for program in programs(&lab, "c") {
        let source = format!("{}.c", program.name);
        fs::write(lab.here(&source), &program.text).expect("a file");
        let options = ["-Wall", "-Wextra", "-Werror", "-pthread", "-o", &program.name, &source, "-lrt"];
        compile(&program.name, Command::new("cc").args(options), &lab);
        for count in [1, 1000] {
            program
                .expect_success(Command::new(lab.here(&program.name)).args(program.arguments(count)), &lab);
        }
    }
}

/// ThreadSanitizer knows the order that atomics make, whatever this CPU would keep: no byte of a message is read before it is written.
#[test]
fn the_ring_in_c_has_no_data_race() {
    let lab = Lab::new();
    let sanitizer = ["-fsanitize=thread", "-Wno-tsan", "-g", "-O1", "-pthread"];
    fs::write(lab.here("empty.c"), "int main(void) { return 0; }\n").expect("a file");
    let has_sanitizer = Command::new("gcc")
        .args(sanitizer)
        .args(["-o", "empty", "empty.c"])
        .current_dir(lab.here(""))
        .output();
    let runs = || Command::new(lab.here("empty")).output().is_ok_and(|done| done.status.success());
    if !has_sanitizer.is_ok_and(|done| done.status.success()) || !runs() {
        return skip("there is no gcc with ThreadSanitizer");
    }
    record(
        &lab,
        "run.json",
        vec![CaseRecord { tasks: Tasks::Threads, ..case("shm-ring:wait=futex", 900, 900) }],
    );
    answer(&lab, &["--between", "threads", "--code-to", "ring.c"], 0);
    compile("ring", Command::new("gcc").args(sanitizer).args(["-o", "ring", "ring.c", "-lrt"]), &lab);
    let done = Command::new(lab.here("ring")).arg("30000").output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Compiled as one program, which takes seconds and not minutes: each is a module of it, and the third argument says which runs.
#[test]
fn every_program_in_rust_sends_and_receives() {
    let lab = Lab::new();
    if !is_there("rustc") {
        return;
    }
    let programs = programs(&lab, "rust");
    let (mut modules, mut arms) = (String::new(), String::new());
    for Printed { name, text, .. } in &programs {
        fs::write(lab.here(&format!("{name}.rs")), text.replace("\nfn main", "\npub fn main"))
            .expect("a file");
        modules += &format!("mod {name};\n");
        arms += &format!("        Some(\"{name}\") => {name}::main(),\n");
    }
    let main = format!(
        "{modules}fn main() -> std::io::Result<()> {{\n    match std::env::args().nth(3).as_deref() {{\n{arms}        _ => unreachable!(),\n    }}\n}}\n"
    );
    fs::write(lab.here("all.rs"), main).expect("a file");
    compile("rustc", Command::new("rustc").args(["--edition=2021", "-Dwarnings", "all.rs"]), &lab);
    for (program, count) in programs.iter().flat_map(|program| [(program, 1), (program, 1000)]) {
        let arguments = program.arguments(count);
        program.expect_success(Command::new(lab.here("all")).args(arguments).arg(&program.name), &lab);
    }
}

#[test]
fn every_program_in_python_sends_and_receives() {
    let lab = Lab::new();
    if !is_there("python3") {
        return;
    }
    for program in programs(&lab, "python") {
        fs::write(lab.here("program.py"), &program.text).expect("a file");
        for count in [1, 1000] {
            let mut python = Command::new("python3");
            python.args(["-W", "error", "program.py"]).args(program.arguments(count));
            program.expect_success(&mut python, &lab);
        }
    }
}

#[test]
fn a_program_is_written_with_its_ring_beside_it() {
    let lab = Lab::new();
    record(&lab, "run.json", vec![case("shm-ring:wait=futex", 900, 900)]);
    let said = answer(&lab, &["--code-to", "own.c"], 0);
    assert!(!said.contains("int main"), "{said}");
    let own = fs::read_to_string(lab.here("own.c")).expect("the program");
    assert!(own.contains("\n#include \"ring.h\"\n") && !own.contains("SYS_futex"), "{own}");
    assert!(fs::read_to_string(lab.here("ring.h")).expect("the ring").starts_with("/* ring.h:"));
    answer(&lab, &["--code", "rust", "--code-to", "own.rs"], 0);
    assert!(fs::read_to_string(lab.here("own.rs")).expect("the program").contains("\nmod ring;\n"));
    assert!(answer(&lab, &["--code-to", "/dev/null"], 2).contains("`/dev/null` is no regular file"));
}

/// The compiled programs run in a folder and a process group of their own; names outside of it are removed, too.
#[test]
fn a_stop_while_programs_run_leaves_nothing() {
    let lab = Lab::new();
    if !is_there("cc") {
        return;
    }
    let words =
        ["recommend", "--message", "64B", "--between", "processes", "--time", "600ms", "--place", "any"];
    for (stop, code) in [(Signal::INT, 130), (Signal::KILL, 137)] {
        let mut running = lab.start(lab.command(&words));
        let pid = running.pid();
        until("a program runs", Duration::from_secs(60), || {
            running.children().into_iter().find(|(_, name)| name.starts_with("program"))
        });
        signal(pid, stop);
        running.end_within(PROMPTLY).expect_code(code);
        lab.assert_nothing_left(pid, PROMPTLY);
        let own = format!("hosepipe-{pid}-");
        assert!(!files_in(Path::new("/dev/shm")).iter().any(|name| name.contains(&own)));
    }
}

#[test]
fn without_a_compiler_the_reason_is_a_sentence() {
    let lab = Lab::new();
    let words =
        ["recommend", "--message", "64B", "--between", "processes", "--must", "filter", "--time", "600ms"];
    let mut command = lab.command(&[&words[..], &["--place", "any"]].concat());
    command.env("PATH", "/nonexistent");
    let said = lab.finish(command).expect_code(0).stdout;
    assert!(said.contains("The program below was not timed: there is no `cc` on this machine."), "{said}");
    assert!(said.contains("int main("), "{said}");
}
