//! The two programs that `recommend` prints for two ends: in each language with others, several of an end, an end that is killed at any
//! moment, both killed, between two containers, in one poll(2) with a socket.

mod columns;
mod crashes;
mod formatted;
mod notices;

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use model::{CaseRecord, Workload};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::programs::compiled;
use super::{case, record};
use crate::common::programs::{has, python};
use crate::common::{Lab, files_in, signal, until};

const BYTES: u64 = 200;

/// The table of promises: the mechanisms of pairs, and the row of each.
fn table() -> impl Iterator<Item = (&'static str, &'static toml::Table)> {
    static TABLE: LazyLock<toml::Table> = LazyLock::new(|| {
        toml::from_str(include_str!("../../../../programs/src/promises.toml")).expect("the table")
    });
    let rows = TABLE["mechanism"].as_array().expect("rows").iter().map(|row| row.as_table().expect("a row"));
    rows.map(|row| match row["name"].as_str().expect("a name") {
        "shm-ring" => ("shm-ring:wait=futex", row),
        name => (name, row),
    })
}

/// All mechanisms of pairs.
fn all() -> Vec<&'static str> {
    table().map(|(spec, _)| spec).collect()
}

/// The mechanisms whose programs promise this.
fn promise(must: &str) -> Vec<&'static str> {
    let keeps = |row: &toml::Table| row["keeps"].as_array().expect("words").contains(&must.into());
    let found: Vec<_> = table().filter(|(_, row)| keeps(row)).map(|(spec, _)| spec).collect();
    assert!(!found.is_empty(), "{must}");
    found
}

/// The commands of a sender and a receiver, the name at which they meet, and the folder in which they run.
struct Pair {
    spec: &'static str,
    sender: Vec<String>,
    receiver: Vec<String>,
    name: String,
    folder: PathBuf,
    /// The programs it has started.
    started: Mutex<Vec<OwnedFd>>,
}

/// What a program that has ended said on standard output, if it ended well.
#[track_caller]
fn well(what: &str, done: &Output) -> String {
    let said = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(done.status.success(), "{what}: {} {}{}", done.status, said[0], said[1]);
    assert!(said[0].contains(" ns per ") && said[0].contains(", all as sent"), "{what}: {said:?}");
    said[0].clone()
}

/// What a program printed. It is killed after a minute: no test waits for ever for an end that waits for another.
fn output(child: Child) -> Output {
    let (pid, (ended, waits)) = (child.id(), std::sync::mpsc::channel::<()>());
    let watch = std::thread::spawn(move || {
        if waits.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            signal(pid, Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("its output");
    drop(ended);
    watch.join().expect("the watch");
    output
}

/// The messages of a line such as "812.4 ns per message: 1000 of 200 bytes, all as sent".
fn messages(line: &str) -> u64 {
    let number = line.split_once(": ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{line}"))
}

impl Pair {
    /// Writes and compiles the programs of two languages; `None` where one of them cannot be had with this mechanism.
    fn new(lab: &Lab, spec: &'static str, code: [&str; 2], bytes: u64, words: &[&str]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let is_reply = words.contains(&"request-reply");
        let figures = CaseRecord { block_bytes: bytes, ..case(spec, 900, 900) };
        let figures = if is_reply { CaseRecord { workload: Workload::PingPong, ..figures } } else { figures };
        let saved = format!("run{number}.json");
        record(lab, &saved, vec![figures]);
        let (folder, message) = (format!("pair{number}"), bytes.to_string());
        let languages = code.join(",");
        let question = ["recommend", "--message", &message, "--from", &saved, "--code", &languages];
        let done = lab.run(&[&question[..], &["--code-to", &folder], words].concat());
        if done.status.code() == Some(2) {
            return None;
        }
        assert_eq!(done.status.code(), Some(0), "{spec} {languages}: {}", done.stderr);
        let folder = lab.here(&folder);
        let [sender, receiver] = [("sender", code[0]), ("receiver", code[1])]
            .map(|(role, language)| command(lab, &folder, role, language));
        let own = format!("hosepipe-pair-{}-{number}", std::process::id());
        // Ports and keys are few.
        let number = number % 64;
        let name = match spec {
            // Ports below those that the system gives out, with room for links.
            "tcp" => (20_000 + std::process::id() % 20 * 512 + number * 8).to_string(),
            "sysv-msgq" => (0x3000_0000 | std::process::id() << 8 | number << 2).to_string(),
            "posix-mq" => format!("/{own}"),
            _ => "meeting".to_owned(),
        };
        Some(Self { spec, sender, receiver, name, folder, started: Mutex::default() })
    }

    fn start(&self, command: &[String], count: u64, rate: u64) -> Child {
        let mut start = Command::new(&command[0]);
        start.args(&command[1..]).args([count.to_string(), rate.to_string(), self.name.clone()]);
        start.current_dir(&self.folder);
        start.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        // A program that was just copied is busy while another test forks.
        let child = until("it starts", Duration::from_secs(5), || match start.spawn() {
            Err(busy) if busy.kind() == ErrorKind::ExecutableFileBusy => None,
            started => Some(started.expect("it starts")),
        });
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("it was started");
        self.started.lock().expect("no panic").push(pidfd);
        child
    }

    fn start_sender(&self, count: u64, rate: u64) -> Child {
        self.start(&self.sender, count, rate)
    }

    fn start_receiver(&self, count: u64) -> Child {
        self.start(&self.receiver, count, 0)
    }

    fn what(&self) -> String {
        format!("{} from {} to {}", self.spec, self.sender.join(" "), self.receiver.join(" "))
    }

    /// One run; what is left in the folder is what was written.
    fn expect_run(&self, count: u64, senders: u32, receivers: u32, expected: u64) -> Vec<String> {
        let before = files_in(&self.folder);
        let mut receives: Vec<Child> = (0..receivers).map(|_| self.start_receiver(expected)).collect();
        let sends: Vec<Child> = (0..senders).map(|_| self.start_sender(count, 0)).collect();
        let what = self.what();
        for child in sends {
            let said = well(&what, &output(child));
            assert_eq!(messages(&said), count, "{what}: {said}");
        }
        let received = receives.drain(..).map(|child| well(&what, &output(child)));
        let received = received.collect();
        assert_eq!(files_in(&self.folder), before, "{what}");
        received
    }

    /// Both ends killed in this test may have left a queue.
    fn remove(&self) {
        let script = match self.spec {
            "posix-mq" => "import ctypes,sys; ctypes.CDLL(None).mq_unlink(sys.argv[1].encode())",
            "sysv-msgq" => {
                "import ctypes,sys; c=ctypes.CDLL(None); c.msgctl(c.msgget(int(sys.argv[1]),0),0,None)"
            }
            _ => return,
        };
        let _ = Command::new(python()).args(["-c", script, &self.name]).status();
    }
}

impl Drop for Pair {
    /// A test that failed leaves no program: one that waits for another would do so for ever.
    fn drop(&mut self) {
        for pidfd in self.started.lock().iter().flat_map(|started| started.iter()) {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        self.remove();
    }
}

/// The command that runs an end, compiled if its language is.
fn command(lab: &Lab, folder: &Path, role: &str, language: &str) -> Vec<String> {
    let file = |name: &str| {
        (
            name.to_owned(),
            fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")),
        )
    };
    let mut files = Vec::new();
    for name in fs::read_dir(folder).expect("the folder").flatten() {
        let name = name.file_name().to_string_lossy().into_owned();
        // The ring is a file beside the program.
        if name.starts_with(role) || name.starts_with("ring") {
            files.push(file(&name));
        }
    }
    let source = |extension: &str| format!("{role}.{extension}");
    files.sort();
    let words: Vec<String> = match language {
        "python" => return vec![python().to_owned(), source("py")],
        "java" => {
            let mut class = role.to_owned();
            class[..1].make_ascii_uppercase();
            let done = Command::new("javac")
                .args(["-Xlint:all", "-Werror", &format!("{class}.java")])
                .current_dir(folder)
                .output()
                .expect("javac");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            // Names of files and figures are the same where digits are others.
            let options = ["java", "-XX:TieredStopAtLevel=1", "-Duser.language=ar", "-Duser.country=EG"];
            return options.map(str::to_owned).into_iter().chain([class]).collect();
        }
        "c" => ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", &source("c"), "-lrt"]
            .map(str::to_owned)
            .into(),
        "rust" => ["rustc", "--edition=2021", "-Dwarnings", &source("rs")].map(str::to_owned).into(),
        "go" => {
            ["sh", "-c", &format!("exec go build \"$@\" {}", source("go")), "sh"].map(str::to_owned).into()
        }
        other => panic!("no {other}"),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    vec![compiled(&format!("{language}-{role}"), &words, &files, lab).display().to_string()]
}

/// Those of these languages whose compilers are here.
fn languages<'a>(all: &[&'a str]) -> Vec<&'a str> {
    let program = |language: &str| match language {
        "c" => "cc",
        "rust" => "rustc",
        "java" => "javac",
        "python" => "python3",
        _ => "go",
    };
    all.iter().copied().filter(|language| has(program(language))).collect()
}

/// Each language is a sender and a receiver, of each mechanism that it can use.
#[test]
fn the_ends_are_of_any_two_languages() {
    let lab = Lab::new();
    let here = languages(&["c", "rust", "python", "go", "java"]);
    for spec in all() {
        let mut tried = 0;
        for (at, sends) in here.iter().enumerate() {
            let receives = here[(at + 1) % here.len()];
            // A language that does not have the mechanism leaves its neighbours to each other.
            let code = if Pair::has(&lab, spec, receives) { [*sends, receives] } else { [*sends, here[0]] };
            let Some(pair) = Pair::new(&lab, spec, code, BYTES, &[]) else { continue };
            for count in [1, 300] {
                let received =
                    pair.expect_run(if spec == "file" { count.min(20) } else { count }, 1, 1, count.min(20));
                assert_eq!(messages(&received[0]), if spec == "file" { count.min(20) } else { count });
            }
            tried += 1;
        }
        assert!(tried >= here.len().min(3), "{spec} in {tried} languages");
    }
}

impl Pair {
    /// Whether a language has programs with a mechanism.
    fn has(lab: &Lab, spec: &str, language: &str) -> bool {
        record(lab, "has.json", vec![case(spec, 900, 900)]);
        let message = BYTES.to_string();
        let code = format!("{language},{language}");
        let asked = ["recommend", "--message", &message, "--from", "has.json", "--code", &code];
        lab.run(&asked).status.code() == Some(0)
    }
}

#[test]
fn there_and_back_each_reply_is_its_request() {
    let lab = Lab::new();
    for spec in all() {
        for code in [["c", "python"], ["rust", "c"], ["python", "rust"]] {
            let words = ["--pattern", "request-reply"];
            if let Some(pair) = Pair::new(&lab, spec, code, BYTES, &words) {
                pair.expect_run(if spec == "file" { 10 } else { 200 }, 1, 1, 0);
            }
        }
    }
}

#[test]
fn messages_of_any_size_are_whole() {
    let lab = Lab::new();
    for spec in all() {
        for bytes in [1, 3, 8, 4096, 6000] {
            let code = if bytes == 3 { ["python", "c"] } else { ["c", "python"] };
            let pair = Pair::new(&lab, spec, code, bytes, &[]).expect("programs");
            let received = pair.expect_run(if spec == "file" { 20 } else { 600 }, 1, 1, 0);
            assert_eq!(messages(&received[0]), if spec == "file" { 20 } else { 600 }, "{spec} {bytes}");
        }
    }
}

/// Each message comes to one of the receivers, or to all of them; of several senders none is lost or mixed.
#[test]
fn several_ends_share_the_messages_as_asked() {
    let lab = Lab::new();
    let languages = [["c", "python"], ["python", "c"], ["rust", "rust"]];
    for (at, spec) in all().into_iter().enumerate() {
        let code = languages[at % 3];
        let count = if spec == "file" { 12 } else { 400 };
        let ask = |words: &[&str]| Pair::new(&lab, spec, code, BYTES, words).expect("programs");
        let all = ask(&["--receivers", "3", "--share", "broadcast"]).expect_run(count, 1, 3, count);
        assert!(all.iter().all(|line| messages(line) == count), "{spec}: {all:?}");
        let one = ask(&["--receivers", "3", "--share", "compete"]).expect_run(count, 1, 3, 0);
        assert_eq!(one.iter().map(|line| messages(line)).sum::<u64>(), count, "{spec}: {one:?}");
        if spec.starts_with("shm-ring") {
            continue;
        }
        let many = ask(&["--senders", "3"]).expect_run(count, 3, 1, 3 * count);
        assert_eq!(messages(&many[0]), 3 * count, "{spec}: {many:?}");
    }
}

/// The receiver waits for its link and for another socket in one call of poll(2).
#[test]
fn an_end_that_polls_answers_on_another_socket() {
    let lab = Lab::new();
    let here = languages(&["c", "rust", "python"]);
    for (at, spec) in promise("poll").into_iter().enumerate() {
        // Of tcp the other socket is a UDP port.
        if spec == "tcp" {
            continue;
        }
        // Only the receiver waits in poll(2).
        let receives = here[at % here.len()];
        let code = languages(&["go", receives]).into_iter().map(|sends| [sends, receives]);
        let mut pairs = code.filter_map(|code| Pair::new(&lab, spec, code, BYTES, &["--must", "poll"]));
        let pair = pairs.next().expect("programs");
        let mut receiver = pair.start_receiver(0);
        let asks = UnixDatagram::unbound().expect("a socket");
        let ask = pair.folder.join(format!("{}.ask", pair.name.trim_start_matches('/')));
        until("the other socket", Duration::from_secs(20), || asks.send_to(b"?", &ask).ok());
        // In the middle of the messages as well.
        let sender = pair.start_sender(300, 1000);
        std::thread::sleep(Duration::from_millis(100));
        asks.send_to(b"?", &ask).expect("sent");
        well(&pair.what(), &output(sender));
        let mut errors = receiver.stderr.take().expect("a pipe");
        well(&pair.what(), &output(receiver));
        let mut said = String::new();
        std::io::Read::read_to_string(&mut errors, &mut said).expect("text");
        assert!(said.contains("0 messages\n") && said.matches(" messages\n").count() == 2, "{said}");
    }
}

/// Expected: a sentence, and the file stays. What is there already and is not a meeting place is not ours.
#[test]
fn what_is_no_meeting_place_is_left_alone() {
    let lab = Lab::new();
    for spec in ["fifo", "unix-stream", "unix-dgram", "file"] {
        for language in languages(&["c", "rust", "python"]) {
            let pair = Pair::new(&lab, spec, [language; 2], BYTES, &[]).expect("programs");
            fs::write(pair.folder.join("meeting"), "mine").expect("a file");
            let done = output(pair.start_receiver(1));
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(1), "{}: {said}", pair.what());
            assert!(!said.contains("panicked") && !said.contains("Traceback"), "{said}");
            assert_eq!(fs::read_to_string(pair.folder.join("meeting")).expect("it is there"), "mine");
            for count in ["10abc", "-5"] {
                let mut command = Command::new(&pair.sender[0]);
                command.args(&pair.sender[1..]).arg(count).current_dir(&pair.folder);
                let done = command.output().expect("it starts");
                let said = String::from_utf8_lossy(&done.stderr).into_owned();
                assert!(done.status.code() == Some(2) && said.contains("COUNT is a number"), "{said}");
            }
        }
    }
}

/// What is asked for is repeated first, each loser has its reason in a word, and both programs are in the record.
#[test]
fn the_answer_says_what_was_asked_and_why_others_lost() {
    let lab = Lab::new();
    let own = |spec, time| CaseRecord { block_bytes: 64, ..case(spec, time, time) };
    record(&lab, "run.json", vec![own("fifo", 900), own("unix-stream", 2000), own("posix-mq", 1000)]);
    record(&lab, "queues.json", vec![own("posix-mq", 900), own("shm-ring:wait=futex", 100)]);
    let ask = |words: &[&str], code: i32| {
        let from = if words.contains(&"--from") { &[][..] } else { &["--from", "run.json"] };
        let done = lab.run(&[&["recommend", "--message", "64B"], from, words].concat());
        let done = done.expect_code(code);
        if code == 2 { done.stderr } else { done.stdout }.replace("\n   ", " ")
    };
    let said = ask(&["--must", "reader-crash", "--must", "containers", "--code", "rust,python"], 0);
    assert!(
        said.replace('\n', " ").starts_with(
            "Streams of 64 B, from a sender in Rust to a receiver in Python, placed by the scheduler, must: reader-crash, containers"
        ),
        "{said}"
    );
    assert!(said.contains("Take `fifo`"), "{said}");
    for why in ["`tcp` (not in containers)", "`posix-mq`, `sysv-msgq` (does not notice that a reader died)"] {
        assert!(said.contains(why), "{why}: {said}");
    }
    for heading in ["\n==> sender.rs <==\n", "\n==> receiver.py <==\n"] {
        assert!(said.contains(heading), "{said}");
    }
    // The sender and the receiver of a ring in C and Rust copy nothing; a message keeps its length, and outlives its sender.
    for (code, copies) in [("c,rust", false), ("c,python", true)] {
        let must = ["no-copy", "boundaries", "persistent"].map(|must| ["--must", must]).concat();
        let said = ask(&[&must[..], &["--code", code, "--from", "queues.json"]].concat(), 0);
        assert!(said.contains("Take `shm-ring") && said.contains("copy each one") == copies, "{said}");
    }
    let words = ["--receivers", "4", "--share", "compete", "--json", "-"];
    let answered = crate::common::read_record(&ask(&words, 0)).recommendation.expect("an answer");
    assert!(answered.title.contains("to 4 receivers in C that compete"), "{}", answered.title);
    fs::create_dir(lab.here("mine"))
        .and_then(|()| fs::write(lab.here("mine/README.md"), "mine"))
        .expect("mine");
    let texts = [answered.program, answered.receiver].map(Option::unwrap_or_default);
    assert!(texts.iter().all(|text| text.contains("int main(")) && texts[0] != texts[1]);
    for (words, why) in [
        (&["--share", "compete"][..], "give --receivers N as well"),
        (&["--receivers", "2"], "--share compete (each message is for one of them)"),
        (&["--code", "c,rust", "--between", "threads"], "two programs, which are processes"),
        (&["--senders", "2", "--pattern", "request-reply"], "leave --senders and --receivers out"),
        (&["--senders", "2", "--must", "reader-crash"], "leave --senders and --receivers out, or the crash"),
        (&["--must", "reboot", "--must", "poll"], "--must reboot leaves file; --must poll leaves"),
        (&["--code", "cobol"], "`cobol` is no language that --code knows: c, rust, python, go, java"),
        (&["--code", "c,rust", "--must", "many-senders"], "asked for by --senders N"),
        (&["--code", "c,rust", "--must", "filter"], "two programs that meet at a name"),
        (
            &["--code", "python,go", "--must", "poll"],
            "receivers that wait in poll(2) are in C, Rust and Python",
        ),
        (
            &["--code", "java", "--receivers", "2", "--share", "compete", "--must", "reboot"],
            "`posix-mq` (not in Java); measure without",
        ),
        (
            &["--code", "java,go", "--from", "queues.json"],
            "no mechanism of the record is an answer to this: `posix-mq`, `shm-ring` (not in Java); measure without --from",
        ),
        (
            &["--code", "c,rust", "--code-to", "mine"],
            "`mine/README.md` is there and not of `hosepipe recommend`",
        ),
        (&["--code", "c,rust", "--code-to", "no/own"], "cannot make the folder `no/own`: `no` is no folder"),
        (&["--code", "c,rust", "--code-to", "run.json"], "`run.json` is not a folder"),
        (&["--must", "reader-crash", "--message", "5000"], "cannot be used multiple times"),
    ] {
        let said = ask(words, 2);
        assert!(said.replace('\n', " ").contains(why), "{words:?}: {said}");
    }
    let done = lab.run(&["recommend", "--message", "5000", "--from", "run.json", "--must", "writer-crash"]);
    let said = done.expect_code(2).stderr.replace('\n', " ");
    assert!(!said.contains("panicked"), "{said}");
}
