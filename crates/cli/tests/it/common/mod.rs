//! What the end-to-end tests share: the real binary, run in a folder of its own under a deadline, and the
//! proof that nothing is left of it afterwards. `HOSEPIPE_TEST_FULL=1` asks for real sizes and slow cases.

pub(crate) mod another_user;
pub(crate) mod browser;
pub(crate) mod namespaces;
pub(crate) mod programs;
pub(crate) mod pty;
pub(crate) mod sandbox;
pub(crate) mod slurm;
pub(crate) mod sshd;
mod times;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::{BenchRecord, CaseError, CaseRecord, Tasks, Wait, Workload};
use observe::endpoint::{Endpoint, IpcFile, endpoints};
use process::proc::Stat;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

pub(crate) use self::pty::CACHES;
pub(crate) use self::times::{HANGS_AFTER, busy, promptly, short_time, soon, typed};

/// The process that runs the trials of a round, as /proc/PID/comm has it.
pub(crate) const ROUND: &str = "hosepipe-round";
/// The two ends where there are two processes.
pub(crate) const ENDS: [&str; 2] = ["hosepipe-send", "hosepipe-recv"];

/// A trial that has been running for this long is no warm-up.
const LONG: Duration = Duration::from_millis(150);

/// How often a condition is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(3);

/// Whether real sizes were asked for.
pub(crate) fn full() -> bool {
    std::env::var_os("HOSEPIPE_TEST_FULL").is_some_and(|value| value == "1")
}

/// Where time is part of what is tested: no two such tests at once.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process may do anything.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says on standard error why a test proves nothing here.
pub(crate) fn skip(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}

/// Looks until something is there; panics with `what` at the deadline.
pub(crate) fn until<T>(what: &str, deadline: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < deadline, "{what}: not within {deadline:?}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// A folder for one test: the TMPDIR of its runs, which must be empty after each, and a place to write to.
/// The path of the TMPDIR is also how processes of a run are known again, in /proc/PID/environ.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        pty::default_signals_in_children();
        let folder = tempfile::Builder::new().prefix("lab-").tempdir().expect("a folder for the test");
        // Other users may be asked to run the binary.
        for name in ["tmp", "here"] {
            fs::create_dir(folder.path().join(name)).expect("a folder in the test's folder");
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(folder.path().join(name), open).expect("chmod");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        Self { folder }
    }

    /// TMPDIR of the runs.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// A path in the folder the runs start in.
    pub(crate) fn here(&self, name: &str) -> PathBuf {
        self.folder.path().join("here").join(name)
    }

    /// `hosepipe ARGS`, with output to files of the lab.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.wrapped(&[], args)
    }

    /// `WRAPPER hosepipe ARGS`; the wrapper must become the program (exec), so that its number stays. Mechanisms are benched once,
    /// where the scheduler puts them, unless the arguments say where.
    pub(crate) fn wrapped(&self, wrapper: &[&str], args: &[&str]) -> Command {
        let said = ["--place", "--workers", "--worker", "--dry-run", "--help"];
        let placed = args.first() != Some(&"bench")
            || args.iter().any(|arg| said.iter().any(|word| arg.starts_with(word)));
        let place: &[&str] = if placed { &[] } else { &["--place", "any"] };
        let words = [wrapper, &[env!("CARGO_BIN_EXE_hosepipe")], args, place].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.here("")).env("TMPDIR", self.tmp());
        programs::in_english(&mut command).env("XDG_RUNTIME_DIR", CACHES);
        command.env_remove("COLUMNS").env_remove("NO_COLOR").env("RUST_BACKTRACE", "0");
        let file = |name| File::create(self.folder.path().join(name)).expect("a file for the output");
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        command
    }

    /// Runs `hosepipe ARGS` to its end; nothing may be left of it.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.finish(self.command(args))
    }

    /// Runs `hosepipe bench ARGS --json -` to its end.
    pub(crate) fn bench(&self, args: &[&str]) -> Done {
        self.run(&[&["bench", "--json", "-"], args].concat())
    }

    /// Runs a command of [`Lab::command`] to its end; nothing may be left of it.
    pub(crate) fn finish(&self, command: Command) -> Done {
        self.start(command).wait_within(HANGS_AFTER)
    }

    /// Starts a command of [`Lab::command`].
    pub(crate) fn start(&self, mut command: Command) -> Running<'_> {
        let child = command.spawn().expect("the command starts");
        Running { lab: self, child }
    }

    /// The processes of the runs, each with what it does.
    pub(crate) fn what_processes_do(&self) -> Vec<String> {
        self.processes().into_iter().map(|(pid, name)| format!("{name} {}", doing(pid))).collect()
    }

    /// Processes of this lab that are alive.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        // Or a folder below it, which a run gives to those it starts.
        let marker = format!("TMPDIR={}", self.tmp().display()).into_bytes();
        let of_ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(marker.len()).any(|window| window == marker)
        };
        pids().filter(of_ours).map(|pid| (pid, name_of(pid))).collect()
    }

    /// Panics unless, within `deadline`, no process, temporary file or queue is left of the run of `pid`.
    pub(crate) fn assert_nothing_left(&self, pid: u32, deadline: Duration) {
        let began = Instant::now();
        loop {
            let left = self.leftovers(pid);
            if left.is_empty() {
                return;
            }
            assert!(began.elapsed() < deadline, "left behind after {deadline:?}: {left:?}");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn leftovers(&self, pid: u32) -> Vec<String> {
        let mut left: Vec<String> =
            self.processes().into_iter().map(|(pid, name)| format!("process {pid} ({name})")).collect();
        left.extend(files_in(&self.tmp()));
        left.extend(files_in(&self.here("")).into_iter().filter(|name| name.contains("hosepipe")));
        left.extend(message_queues_of(pid).into_iter().map(|queue| format!("System V queue {queue}")));
        left.extend(
            files_in(Path::new("/dev/mqueue"))
                .into_iter()
                .filter(|name| name.contains(&format!("hosepipe-{pid}-"))),
        );
        left
    }
}

/// Entries of a folder, by path; none where there is no such folder.
pub(crate) fn files_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Keys of System V queues are 6, 12 bits of the maker's number, and 16 random ones.
fn message_queues_of(pid: u32) -> Vec<i32> {
    let first = (0x6000_0000 | ((pid & 0xfff) << 16)) as i32;
    let table = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    let of_ours = |line: &str| {
        let mut columns = line.split_whitespace().map(str::parse::<i32>);
        let (key, queue) = (columns.next()?.ok()?, columns.next()?.ok()?);
        (first..first + 0x1_0000).contains(&key).then_some(queue)
    };
    table.lines().filter_map(of_ours).collect()
}

/// Sends a signal to one process.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("a process number");
    // It may have ended by itself; who relies on the signal looks at what came of it.
    let _ = kill_process(pid, signal);
}

/// The letter of a process's state, such as `Z` for a zombie; `None` if it has gone.
pub(crate) fn state_of(pid: u32) -> Option<char> {
    Stat::of(pid as i32).map(|stat| stat.state)
}

/// Whether a process has descriptors of both ends of one pipe.
pub(crate) fn holds_both_ends(pid: u32) -> bool {
    let open: Vec<Endpoint> = endpoints(pid as i32).into_iter().flatten().collect();
    let is_other_end =
        |one: &Endpoint, other: &Endpoint| one.reads && other.writes && one.ipc_file == other.ipc_file;
    let of_pipes =
        || open.iter().filter(|end| matches!(end.ipc_file, IpcFile::Pipe(_)) && end.reads != end.writes);
    of_pipes().any(|one| of_pipes().any(|other| is_other_end(one, other)))
}

/// A run under way.
pub(crate) struct Running<'a> {
    lab: &'a Lab,
    child: Child,
}

impl Running<'_> {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its children, by number and name, and those of the process that runs the trials of a round.
    pub(crate) fn children(&self) -> Vec<(u32, String)> {
        let of = |pid| process::proc::children(pid).into_iter().map(|pid| (pid as u32, name_of(pid as u32)));
        let own: Vec<_> = of(self.pid() as i32).collect();
        let rounds = own.iter().filter(|(_, name)| name == ROUND).map(|(pid, _)| *pid as i32);
        own.iter().cloned().chain(rounds.flat_map(of)).collect()
    }

    /// The child of this name, once it has been running for long enough to be in a long trial.
    pub(crate) fn child_in_a_long_trial(&mut self, name: &str) -> u32 {
        let mut seen: HashMap<u32, Instant> = HashMap::new();
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            for (pid, _) in self.children().into_iter().filter(|(_, has)| has == name) {
                let first_seen = *seen.entry(pid).or_insert_with(Instant::now);
                if first_seen.elapsed() >= LONG {
                    return pid;
                }
            }
            let ended = self.child.try_wait().expect("wait");
            assert!(
                ended.is_none(),
                "ended ({ended:?}) before any {name} ran for {LONG:?}: {}",
                self.stderr()
            );
            assert!(Instant::now() < deadline, "no {name} runs for {LONG:?}");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// The same, stopped by SIGSTOP in its trial: who kills it then has not killed what had just ended by itself.
    pub(crate) fn child_stopped_in_a_long_trial(&mut self, name: &str) -> u32 {
        loop {
            let pid = self.child_in_a_long_trial(name);
            signal(pid, Signal::STOP);
            let state = until("a process stops or ends", soon(), || {
                [Some('T'), Some('Z'), None].into_iter().find(|state| *state == state_of(pid))
            });
            if state == Some('T') {
                return pid;
            }
        }
    }

    /// Whether it has ended, without waiting.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.lab.folder.path().join("stderr")).unwrap_or_default()
    }

    /// Waits for its end, without looking for leftovers; panics at the deadline.
    pub(crate) fn end_within(&mut self, deadline: Duration) -> Done {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                break status;
            }
            if began.elapsed() > deadline {
                let processes = self.lab.what_processes_do();
                signal(self.pid(), Signal::KILL);
                panic!(
                    "did not end within {deadline:?}; its processes: {processes:?}; it said: {}",
                    self.stderr()
                );
            }
            std::thread::sleep(LOOK_AGAIN);
        };
        let text = |name: &str| {
            let bytes = fs::read(self.lab.folder.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Done { status, stdout: text("stdout"), stderr: text("stderr"), elapsed: began.elapsed() }
    }

    /// Asks it to stop, as Ctrl-C does: at once, with status 130 and a record of what was finished, and no row failed.
    pub(crate) fn stop_as_ctrl_c_does(self, what: &str) {
        signal(self.pid(), Signal::INT);
        let done = self.wait_within(promptly()).expect_code(130);
        let record = done.record();
        assert!(record.settings.interrupted, "{what}");
        assert!(record.cases.iter().all(|case| case.error.is_none()), "{what}: {}", done.stdout);
    }

    /// Kills it: nothing is left of it.
    pub(crate) fn kill_and_look(mut self) {
        let pid = self.pid();
        signal(pid, Signal::KILL);
        self.end_within(promptly()).expect_code(137);
        self.lab.assert_nothing_left(pid, promptly());
    }

    /// Waits for its end and for nothing being left of it.
    pub(crate) fn wait_within(mut self, deadline: Duration) -> Done {
        let done = self.end_within(deadline);
        self.lab.assert_nothing_left(self.pid(), promptly());
        done.assert_no_panic();
        done
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process is at: its state, where in the kernel it sleeps, and the system call it is in (proc_pid_stat(5),
/// proc_pid_wchan(5), proc_pid_syscall(5)).
fn doing(pid: u32) -> String {
    let of = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let state = of("stat").rsplit_once(')').map(|(_, rest)| rest.chars().take(2).collect::<String>());
    format!("{pid}{}, {}, {}", state.unwrap_or_default(), of("wchan"), of("syscall").trim())
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
}

impl Done {
    /// The status a shell would show.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().or(self.status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
    }

    /// Panics unless it ended with this status.
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "status of\n{}\n{}", self.stdout, self.stderr);
        self
    }

    fn assert_no_panic(&self) {
        let crashed = ["panicked", "memory allocation of", "stack overflow", "Aborted"];
        let sign = crashed.iter().find(|sign| self.stderr.contains(**sign));
        assert!(sign.is_none() && !self.status.core_dumped(), "crashed: {}", self.stderr);
        assert_ne!(self.code(), 101, "{}", self.stderr);
    }

    /// Standard output as a record.
    pub(crate) fn record(&self) -> BenchRecord {
        read_record(&self.stdout)
    }

    /// The record's cases of one mechanism.
    pub(crate) fn cases_of(&self, mechanism: &str) -> Vec<CaseRecord> {
        self.record().cases.into_iter().filter(|case| case.mechanism == mechanism).collect()
    }

    /// The record's one case of a mechanism.
    pub(crate) fn only_case(&self, mechanism: &str) -> CaseRecord {
        let mut cases = self.cases_of(mechanism);
        assert_eq!(cases.len(), 1, "{}", self.stdout);
        cases.remove(0)
    }

    /// Panics unless all mechanisms but one have their figures.
    pub(crate) fn assert_the_others_went_on(&self, mechanism: &str) {
        self.assert_the_others(mechanism, |_| false);
    }

    /// The same for a run with a short `--time`: on a busy machine a mechanism may have had no time left.
    pub(crate) fn assert_the_others_had_their_turn(&self, mechanism: &str) {
        self.assert_the_others(mechanism, |error| error.kind == model::ErrorKind::Time);
    }

    fn assert_the_others(&self, mechanism: &str, may_have: impl Fn(&CaseError) -> bool) {
        for case in self.record().cases.iter().filter(|case| case.mechanism != mechanism) {
            let is_right = case.error.as_ref().map_or(!case.samples.is_empty(), &may_have);
            assert!(is_right, "{}: {:?}", case.spec, case.error);
        }
    }
}

/// Why a case has no figures.
pub(crate) fn error_of(case: &CaseRecord) -> &CaseError {
    case.error.as_ref().unwrap_or_else(|| panic!("{} has no error: {:?}", case.spec, case.samples))
}

/// A record as it is kept.
pub(crate) fn read_record(text: &str) -> BenchRecord {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no record ({error}): {text}"))
}

/// A mechanism, as `hosepipe list --json` has it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) available: bool,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) tasks: Vec<Tasks>,
    pub(crate) waits: Vec<Wait>,
    pub(crate) options: Vec<OptionEntry>,
}

/// An option of a mechanism.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OptionEntry {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Entry {
    /// Whether two processes can hold the ends of a stream over it.
    pub(crate) fn has_two_ends(&self) -> bool {
        self.tasks.contains(&Tasks::Processes) && self.workloads.contains(&Workload::Stream)
    }

    /// Whether what it moves lies in a file.
    pub(crate) fn fills_a_disk(&self) -> bool {
        self.options.iter().any(|option| option.name == "dir")
    }

    /// A stream that ends after minutes, and neither fills a disk nor the memory: where the data is kept,
    /// it is many small blocks.
    pub(crate) fn endless_stream(&self) -> Vec<&str> {
        let amount: &[&str] = if self.fills_a_disk() {
            &["--block", "1", "--count", "100000000"]
        } else {
            &["--block", "4KiB", "--bytes", "4TiB"]
        };
        [&[self.name.as_str(), "--workload", "stream", "--trials", "1"], amount].concat()
    }
}

/// The mechanisms that are there on this machine.
pub(crate) fn registry(lab: &Lab) -> Vec<Entry> {
    let done = lab.run(&["list", "--json"]).expect_code(0);
    let all: Vec<Entry> = serde_json::from_str(&done.stdout).expect("the list is JSON");
    let (here, missing): (Vec<Entry>, Vec<Entry>) = all.into_iter().partition(|entry| entry.available);
    for entry in missing {
        skip(&format!("{} is not there on this machine", entry.name));
    }
    here
}
