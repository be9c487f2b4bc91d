//! One run of a command, bounded in time and output, in a process group of its own; and what came of it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, test_kill_process_group};

use super::fixture::{Fixture, Snapshot};
use crate::common::{CACHES, busy};

/// What takes longer, hangs.
pub(crate) fn hangs_after() -> Duration {
    Duration::from_secs(20) * busy()
}

/// What writes more has lost its end.
const OUTPUT_MAX: usize = 4 << 20;

/// How long what was started may outlive the command.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    /// The status as a shell shows it.
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// What it changed in its folder.
    pub(crate) changes: Snapshot,
    /// What no run may do: hang, write without end, leave something behind.
    pub(crate) trouble: Option<String>,
    /// Whether the trouble is that it had to be stopped.
    pub(crate) hung: bool,
}

/// A folder to run commands in, one after the other: the same path for all runs of a case.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(fixture: &Fixture) -> Self {
        let folder = tempfile::Builder::new().prefix("differential-").tempdir().expect("a folder");
        let place = Self { folder };
        fixture.lay_out(&place.here());
        place
    }

    fn here(&self) -> PathBuf {
        self.folder.path().join("here")
    }

    /// Runs a command in the fixture, as it was laid out.
    pub(crate) fn run(&self, fixture: &Fixture, words: &[&str], limit: Duration) -> Done {
        let tmp = self.folder.path().join("tmp");
        fs::create_dir_all(&tmp).expect("mkdir");
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.here()).env_clear().process_group(0);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C.UTF-8").env("TERM", "dumb");
        command.env("HOME", self.here()).env("TMPDIR", &tmp).env("RUST_BACKTRACE", "0");
        command.env("XDG_RUNTIME_DIR", CACHES);
        let input = File::open(self.here().join("small.txt")).expect("the standard input");
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the command starts");
        let mut done = Watched::new(child, limit).until_it_ends();
        done.changes = fixture.changes(&self.here());
        // A folder as it was serves the next run as well.
        if !done.changes.is_empty() {
            fixture.lay_out(&self.here());
        }
        let left = names_in(&tmp);
        if !left.is_empty() {
            done.trouble.get_or_insert(format!("left behind in TMPDIR: {}", left.join(" ")));
            fs::remove_dir_all(&tmp).expect("the leftovers go away");
        }
        done
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a readable folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A running command and what it wrote so far.
struct Watched {
    child: Child,
    group: Pid,
    began: Instant,
    limit: Duration,
    hung: bool,
}

impl Watched {
    fn new(child: Child, limit: Duration) -> Self {
        let group = Pid::from_child(&child);
        Self { child, group, began: Instant::now(), limit, hung: false }
    }

    fn until_it_ends(mut self) -> Done {
        let mut outputs = [
            Output::new(self.child.stdout.take().expect("piped")),
            Output::new(self.child.stderr.take().expect("piped")),
        ];
        let mut trouble = self.read_all(&mut outputs).err();
        if trouble.is_some() {
            self.kill();
        }
        let status = self.child.wait().expect("wait");
        if trouble.is_none() && self.others_stay() {
            trouble = Some("left processes behind".to_owned());
            self.kill();
        }
        let [stdout, stderr] = outputs.map(|output| output.bytes);
        let status = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        Done { status, stdout, stderr, changes: Snapshot::new(), trouble, hung: self.hung }
    }

    /// Reads until both outputs end and the command has ended; an error is what went wrong.
    fn read_all(&mut self, outputs: &mut [Output; 2]) -> Result<(), String> {
        let ended = pidfd_open(self.group, PidfdFlags::empty()).expect("pidfd_open");
        let mut running = true;
        let mut deadline = self.began + self.limit;
        while running || outputs.iter().any(|output| output.open) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.hung = running;
                let what = if running { "hangs" } else { "left something that holds its output open" };
                return Err(format!("{what}: stopped after {:.0?}", self.began.elapsed()));
            }
            let mut fds: Vec<PollFd<'_>> = Vec::new();
            fds.extend(running.then(|| PollFd::new(&ended, PollFlags::IN)));
            let open = outputs.iter().filter(|output| output.open);
            fds.extend(open.map(|output| PollFd::new(&output.pipe, PollFlags::IN)));
            let timeout = Timespec::try_from(left).expect("a short time");
            let Ok(_) = poll(&mut fds, Some(&timeout)) else { continue };
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut ready = ready.into_iter();
            if running && ready.next() == Some(true) {
                running = false;
                deadline = deadline.min(Instant::now() + LEAVES_WITHIN);
            }
            for output in outputs.iter_mut().filter(|output| output.open) {
                if ready.next() == Some(true) {
                    output.read_some();
                }
                if output.bytes.len() > OUTPUT_MAX {
                    return Err(format!("wrote more than {OUTPUT_MAX} bytes"));
                }
            }
        }
        Ok(())
    }

    /// Whether something of the group is alive for long after the command has ended.
    fn others_stay(&self) -> bool {
        let deadline = Instant::now() + LEAVES_WITHIN;
        // A group of zombies exists, too.
        while test_kill_process_group(self.group).is_ok() && alive_in(self.group) {
            if Instant::now() > deadline {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    fn kill(&self) {
        // Those that ended in the meantime need no signal.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

/// Whether the group has a process that is no zombie: those may wait for long for their new parent.
fn alive_in(group: Pid) -> bool {
    let stats = fs::read_dir("/proc").into_iter().flatten().flatten();
    stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok()).any(|stat| {
        // proc_pid_stat(5): after the name in parentheses come the state, the parent and the group.
        let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
        let state = fields.next();
        let of_group =
            fields.nth(1).and_then(|field| field.parse().ok()) == Some(group.as_raw_nonzero().get());
        of_group && state != Some("Z")
    })
}

struct Output {
    pipe: Box<dyn Pipe>,
    bytes: Vec<u8>,
    open: bool,
}

trait Pipe: Read + AsFd {}
impl<T: Read + AsFd> Pipe for T {}

impl Output {
    fn new(pipe: impl Pipe + 'static) -> Self {
        Self { pipe: Box::new(pipe), bytes: Vec::new(), open: true }
    }

    fn read_some(&mut self) {
        let mut room = [0; 65536];
        match self.pipe.read(&mut room) {
            Ok(0) => self.open = false,
            Ok(count) => self.bytes.extend_from_slice(&room[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("reading a pipe: {error}"),
        }
    }
}
