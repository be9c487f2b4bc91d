//! Every program that `hosepipe recommend` can print: it compiles without a warning, sends one message and a thousand, and leaves
//! nothing behind. What was compiled stays in the target folder by what it was compiled of, so that only a change compiles it again.

use std::ffi::CString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use model::{CaseRecord, Tasks, Workload};
use rustix::process::Signal;

use super::{answer, case, record};
use crate::common::programs::python;
use crate::common::{Lab, files_in, promptly, read_record, signal, skip, until};

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
    /// The arguments for `count` messages.
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
        assert!(!self.name.starts_with("sysv") || !is_system_v_queue(&self.meeting), "{}", self.name);
    }
}

impl Printed {
    /// What is no COUNT is refused in a sentence, and what is there already is left alone.
    /// Happened: `./example 10 data.txt` removed data.txt, and `10abc` was ten.
    fn expect_refusals(&self, run: &dyn Fn(&str) -> Command, lab: &Lab) {
        let refused = |count: &str| {
            let done = run(count).current_dir(lab.here("")).output().expect("it starts");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(!said.contains("panicked") && !said.contains("Traceback"), "{}: {said}", self.name);
            (done.status.code(), said)
        };
        for count in ["10abc", "1e3", "-5", "0"] {
            let (code, said) = refused(count);
            assert!(code == Some(2) && said.contains("COUNT is a number of at least 1, not "), "{said}");
        }
        let folder = match &self.name {
            name if ["fifo", "file", "unix_stream", "unix_dgram"].iter().any(|one| name.starts_with(one)) => {
                lab.here("")
            }
            // Between threads a ring needs no name.
            name if name.starts_with("shm_ring") && name.ends_with("_stream") => "/dev/shm".into(),
            _ => return,
        };
        let own = folder.join(self.meeting.trim_start_matches('/'));
        let back = folder.join(format!("{}.back", self.meeting));
        // The second name is that of replies.
        let has_back = self.name == "fifo_reply" || self.name == "unix_dgram_reply";
        for path in std::iter::once(own).chain(has_back.then_some(back)) {
            fs::write(&path, "mine").expect("a file");
            let (code, said) = refused("10");
            let left = fs::read_to_string(&path);
            fs::remove_file(&path).expect("it is still there");
            assert_eq!((code, left.ok().as_deref()), (Some(1), Some("mine")), "{}: {said}", self.name);
        }
    }
}

/// Whether there is a queue of this name, which is a key if it is a number.
fn is_queue(name: &str) -> bool {
    if name.starts_with('/') { is_posix_queue(name) } else { is_system_v_queue(name) }
}

/// Whether there is a queue of this key, in decimal.
fn is_system_v_queue(key: &str) -> bool {
    let queues = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    queues.lines().any(|line| line.trim_start().starts_with(&format!("{key} ")))
}

/// Whether there is a queue of this name. (Their file system need not be mounted.)
#[allow(unsafe_code)]
fn is_posix_queue(name: &str) -> bool {
    let name = CString::new(name).expect("no NUL");
    // SAFETY: a C string; the descriptor is closed here, and nowhere else.
    let found = unsafe { libc::mq_open(name.as_ptr(), libc::O_RDONLY) };
    // SAFETY: as above.
    found >= 0 && unsafe { libc::mq_close(found) } == 0
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
                // Positive, and no other test's: this one makes one program after the other.
                "sysv-msgq" => format!(
                    "{}",
                    0x5000_0000 | std::process::id() << 2 | u32::from(language.as_bytes()[0] % 4)
                ),
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

/// What a command line of a compiler makes of these files, under `-o`: as it was made of the same before, or made now.
pub(super) fn compiled(what: &str, words: &[&str], files: &[(String, String)], lab: &Lab) -> PathBuf {
    let version = Command::new(words[0]).arg("--version").output().expect("it starts").stdout;
    let mut hasher = DefaultHasher::new();
    (words, files, version).hash(&mut hasher);
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let made = kept.join(format!("recommended-{what}-{:016x}", hasher.finish()));
    if let Ok(file) = File::open(&made) {
        file.set_modified(SystemTime::now()).expect("its time");
        return made;
    }
    for (file, text) in files {
        fs::write(lab.here(file), text).expect("a file");
    }
    let done = Command::new(words[0])
        .args(&words[1..])
        .args(["-o", "made"])
        .current_dir(lab.here(""))
        .output()
        .expect("it starts");
    assert!(done.status.success(), "{what}: {}", String::from_utf8_lossy(&done.stderr));
    remove_old(kept);
    // A name of its own first: no other test runs half a program.
    let part = tempfile::NamedTempFile::new_in(kept).expect("a file").into_temp_path();
    fs::copy(lab.here("made"), &part).expect("a file");
    part.persist(&made).expect("a file");
    made
}

/// Removes what no test has run for a day.
fn remove_old(kept: &Path) {
    for entry in fs::read_dir(kept).expect("a folder").flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with("recommended-");
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > Duration::from_secs(24 * 3600)) {
            // Another run of these tests may have removed it.
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// All programs of a language as one, which takes seconds and not minutes: the third argument says which runs.
fn expect_all_to_run(programs: &[Printed], all: &Path, lab: &Lab) {
    for (program, count) in programs.iter().flat_map(|program| [(program, 1), (program, 1000)]) {
        let arguments = program.arguments(count);
        program.expect_success(Command::new(all).args(arguments).arg(&program.name), lab);
    }
    for program in programs {
        let run = |count: &str| {
            let mut command = Command::new(all);
            command.args([count, &program.meeting, &program.name]);
            command
        };
        program.expect_refusals(&run, lab);
    }
}

#[test]
fn every_program_in_c_sends_and_receives() {
    let lab = Lab::new();
    if !is_there("cc") {
        return;
    }
    let programs = programs(&lab, "c");
    let (mut declared, mut arms) = ("#include <string.h>\n".to_owned(), String::new());
    for Printed { name, .. } in &programs {
        declared += &format!("int main_{name}(int, char **);\n");
        arms += &format!("    if (!strcmp(argv[3], \"{name}\")) return main_{name}(3, argv);\n");
    }
    let main = format!("{declared}int main(int argc, char **argv) {{\n{arms}    return argc;\n}}\n");
    let file = |program: &Printed| {
        let Printed { name, text, .. } = program;
        (format!("{name}.c"), text.replace("\nint main(", &format!("\nint main_{name}(")))
    };
    let files: Vec<(String, String)> =
        programs.iter().map(file).chain([("main.c".to_owned(), main)]).collect();
    let sources = files.iter().map(|(name, _)| name.as_str());
    let words: Vec<&str> = ["cc", "-Wall", "-Wextra", "-Werror", "-pthread"]
        .into_iter()
        .chain(sources)
        .chain(["-lrt"])
        .collect();
    expect_all_to_run(&programs, &compiled("c", &words, &files, &lab), &lab);
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
    answer(&lab, &["--between", "threads", "--code-to", "own.c"], 0);
    let files = ["own.c", "ring.h"]
        .map(|name| (name.to_owned(), fs::read_to_string(lab.here(name)).expect("what was written")));
    let words: Vec<&str> = ["gcc"].into_iter().chain(sanitizer).chain(["own.c", "-lrt"]).collect();
    let done = Command::new(compiled("race", &words, &files, &lab)).arg("30000").output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_program_in_rust_sends_and_receives() {
    let lab = Lab::new();
    if !is_there("rustc") {
        return;
    }
    let programs = programs(&lab, "rust");
    let (mut modules, mut arms, mut files) = (String::new(), String::new(), Vec::new());
    for Printed { name, text, .. } in &programs {
        files.push((format!("{name}.rs"), text.replace("\nfn main", "\npub fn main")));
        modules += &format!("mod {name};\n");
        arms += &format!("        Some(\"{name}\") => {name}::main(),\n");
    }
    let main = format!(
        "{modules}fn main() -> std::io::Result<()> {{\n    match std::env::args().nth(3).as_deref() {{\n{arms}        _ => unreachable!(),\n    }}\n}}\n"
    );
    files.push(("all.rs".to_owned(), main));
    let words = ["rustc", "--edition=2021", "-Dwarnings", "all.rs"];
    expect_all_to_run(&programs, &compiled("rust", &words, &files, &lab), &lab);
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
            let mut python = Command::new(python());
            python.args(["-W", "error", "program.py"]).args(program.arguments(count));
            program.expect_success(&mut python, &lab);
        }
        let run = |count: &str| {
            let mut python = Command::new(python());
            python.args(["-W", "error", "program.py", count, &program.meeting]);
            python
        };
        program.expect_refusals(&run, &lab);
    }
}

#[test]
fn a_program_is_written_with_its_ring_beside_it() {
    let lab = Lab::new();
    record(&lab, "run.json", vec![case("shm-ring:wait=futex", 900, 900)]);
    let said = answer(&lab, &["--code-to", "own.c"], 0);
    assert!(!said.contains("int main"), "{said}");
    let own_line = "-o own own.c -lrt && ./own 1000000\n";
    assert!(fs::read_to_string(lab.here("own.c")).expect("the program").contains(own_line));
    let own = fs::read_to_string(lab.here("own.c")).expect("the program");
    assert!(own.contains("\n#include \"ring.h\"\n") && !own.contains("SYS_futex"), "{own}");
    assert!(fs::read_to_string(lab.here("ring.h")).expect("the ring").starts_with("/* ring.h:"));
    answer(&lab, &["--code", "rust", "--code-to", "own.rs"], 0);
    assert!(fs::read_to_string(lab.here("own.rs")).expect("the program").contains("\nmod ring;\n"));
    assert!(answer(&lab, &["--code-to", "/dev/null"], 2).contains("`/dev/null` is not a regular file"));
}

/// Expected: a compiler's own files are gone with the rest. Happened: gcc left one in TMPDIR where hosepipe was killed while it ran.
#[test]
fn a_kill_while_a_program_is_compiled_leaves_nothing() {
    let lab = Lab::new();
    let (compiler, ready) = (lab.here("bin/cc"), lab.here("ready"));
    fs::create_dir(lab.here("bin")).expect("mkdir");
    fs::write(&compiler, format!("#!/bin/sh\n>\"$TMPDIR/own.s\"; >{}; exec sleep 60\n", ready.display()))
        .expect("written");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).expect("chmod");
    let mut command = lab.command(&["recommend", "--message", "64B", "--time", "600ms", "--place", "any"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", lab.here("bin").display()));
    let mut running = lab.start(command);
    let pid = running.pid();
    until("a program is compiled", Duration::from_secs(60), || ready.exists().then_some(()));
    signal(pid, Signal::KILL);
    running.end_within(promptly());
    lab.assert_nothing_left(pid, promptly());
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
            running.children().into_iter().find(|(_, name)| name.starts_with("example"))
        });
        signal(pid, stop);
        running.end_within(promptly()).expect_code(code);
        lab.assert_nothing_left(pid, promptly());
        let own = format!("hosepipe-{pid}-");
        assert!(!files_in(Path::new("/dev/shm")).iter().any(|name| name.contains(&own)));
    }
}

/// Expected: whatever ends hosepipe, no queue of a program that it ran stays. Happened: after SIGKILL one did, for ever.
#[test]
fn no_queue_of_a_program_stays_after_a_kill() {
    let lab = Lab::new();
    if !is_there("cc") {
        return;
    }
    let question = ["recommend", "--message", "64B", "--must", "persistent", "--must", "boundaries"];
    for posix in [false, true] {
        let mut running =
            lab.start(lab.command(&[&question[..], &["--time", "600ms", "--place", "any"]].concat()));
        let pid = running.pid();
        // A program's last argument names its queue.
        let name = until("a program has its queue", Duration::from_secs(60), || {
            let children = running.children();
            let (program, _) = children.iter().find(|(_, name)| name.starts_with("example"))?;
            let words = fs::read_to_string(format!("/proc/{program}/cmdline")).ok()?;
            let name = words.trim_end_matches('\0').rsplit('\0').next()?.to_owned();
            (name.starts_with('/') == posix && is_queue(&name)).then_some(name)
        });
        signal(pid, Signal::KILL);
        running.end_within(promptly()).expect_code(137);
        lab.assert_nothing_left(pid, promptly());
        until("no queue", promptly(), || (!is_queue(&name)).then_some(()));
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
    assert!(said.contains("The program below was not timed: there is no `cc` on PATH."), "{said}");
    assert!(said.contains("int main("), "{said}");
}

/// What starting a program takes more than another time, on a busy machine.
const STARTS: Duration = Duration::from_millis(1);

/// Expected: the programs run where their rows ran. Happened: with --place same they ran on two CPUs.
#[test]
fn programs_keep_to_the_cpus_of_their_rows() {
    if !is_there("cc") {
        return skip("cc is missing");
    }
    let lab = Lab::new();
    let question = ["recommend", "--message", "64B", "--between", "processes", "--place", "same"];
    lab.run(&[&question[..], &["--time", "2s", "--json", "run.json"]].concat()).expect_code(0);
    let text = fs::read_to_string(lab.here("run.json")).expect("a file");
    let programs = read_record(&text).recommendation.expect("an answer").programs;
    assert!(programs.iter().any(|program| !program.cpu_ns.is_empty()));
    for program in &programs {
        for (time_ns, cpu_ns) in program.time_ns.iter().zip(&program.cpu_ns) {
            // Two ends on one CPU use no more CPU time than passes; the rest is what starting a program takes more than another time.
            let starts = STARTS.as_nanos() as f64 / program.messages as f64;
            assert!(
                *cpu_ns < 1.3 * time_ns + starts,
                "{}: {cpu_ns} ns of CPU time in {time_ns} ns: {text}",
                program.spec
            );
        }
    }
}
