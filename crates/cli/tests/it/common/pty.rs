//! A person at a terminal: a shell on a pseudo-terminal, keys typed, the screen's text waited for.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// XDG_RUNTIME_DIR of all runs: what hosepipe keeps for later runs (docs/SHELL.md, Files) is shared by them, and not in their TMPDIR.
pub(crate) const CACHES: &str = "/tmp";

/// Nothing that is waited for takes longer.
pub(crate) const SOON: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Written when a prompt begins to take keys: pastes are to be marked (xterm, "bracketed paste mode").
const PROMPT_BEGINS: &[u8] = b"\x1b[?2004h";
/// Asks where the cursor is, and an answer.
const WHERE: &[u8] = b"\x1b[6n";
const HERE: &[u8] = b"\x1b[1;1R";

/// The outer end of a terminal, which ends with it, and the inner one.
pub(crate) fn pair() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("grantpt");
    unlockpt(&master).expect("unlockpt");
    let name = ptsname(&master, Vec::new()).expect("its name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let inner = open(name.as_c_str(), flags, Mode::empty()).expect("the inner end");
    (master, inner)
}

/// A shell and who types into it.
pub(crate) struct Person {
    master: Arc<OwnedFd>,
    pub(crate) child: Child,
    seen: Arc<Screen>,
    home: PathBuf,
    /// Where in `seen` what followed the last keys begins.
    since: usize,
}

/// What has been shown so far.
#[derive(Default)]
struct Screen {
    bytes: Mutex<Vec<u8>>,
    /// Told of everything that is added.
    more: Condvar,
}

/// Lets programs that these tests start have signals as at a terminal, also where the tests were started with some of them ignored
/// (`nohup cargo test &`): an ignored signal stays ignored in a new program, and a caught one does not (execve(2)). The tests
/// themselves live on.
pub(crate) fn default_signals_in_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            if process::signals::was_ignored(signal) {
                signal_hook::flag::register(signal, Arc::default()).expect("a handler");
            }
        }
    });
}

/// A home folder for shells, with nothing in it.
pub(crate) fn home() -> tempfile::TempDir {
    default_signals_in_children();
    tempfile::tempdir().expect("a folder")
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Person {
    /// Starts a shell in `home`, and waits for its prompt.
    pub(crate) fn at_home(home: &Path) -> Self {
        let mut person = Self::before_the_prompt(home);
        person.sees_a_prompt();
        person
    }

    /// Starts a `hosepipe sh` in `home`.
    pub(crate) fn before_the_prompt(home: &Path) -> Self {
        Self::before(home, &[env!("CARGO_BIN_EXE_hosepipe"), "sh"])
    }

    /// Starts a program in `home`.
    pub(crate) fn before(home: &Path, program: &[&str]) -> Self {
        let (master, inner) = pair();
        resize(&master, 30, 100);
        let copy = || Stdio::from(inner.try_clone().expect("a copy"));
        // setsid(1) makes the terminal the controlling one, and becomes the shell.
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(program).current_dir(home);
        // What is in a tester's environment, or cargo's, is no part of the scene.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", home).env("TMPDIR", home).env("TERM", "xterm-256color");
        command.env("SHELL", "/bin/bash").env("LC_ALL", "C.UTF-8").env("XDG_RUNTIME_DIR", CACHES);
        let child =
            command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("setsid of util-linux");
        let master = Arc::new(master);
        let seen = Arc::new(Screen::default());
        let (its_master, its_seen) = (Arc::clone(&master), Arc::clone(&seen));
        std::thread::spawn(move || watch(&its_master, &its_seen));
        Self { master, child, seen, home: home.to_owned(), since: 0 }
    }

    /// Types keys.
    pub(crate) fn types(&mut self, keys: &str) {
        self.since = self.seen.lock().len();
        write_all(&self.master, keys.as_bytes());
    }

    /// Types a line, and waits for the next prompt.
    pub(crate) fn runs(&mut self, line: &str) -> String {
        self.types(&format!("{line}\r"));
        self.sees_a_prompt()
    }

    /// Waits for a prompt; gives what stands before it since the last keys.
    pub(crate) fn sees_a_prompt(&mut self) -> String {
        self.waits("a prompt", |seen| seen.windows(PROMPT_BEGINS.len()).any(|bytes| bytes == PROMPT_BEGINS));
        self.text()
    }

    /// Types a line, waits for the next prompt, and gives what stands between the two.
    pub(crate) fn answers(&mut self, line: &str) -> String {
        self.runs(line);
        let bytes = self.bytes();
        let end = bytes.windows(PROMPT_BEGINS.len()).position(|window| window == PROMPT_BEGINS);
        let shown = plain(&bytes[..end.unwrap_or(bytes.len())]);
        shown.split_once('\n').map(|(_, after)| after.to_owned()).unwrap_or_default()
    }

    /// Types a line, and waits for a line that it prints and for the prompt behind that: where a signal may have shown more than one
    /// prompt before.
    pub(crate) fn settles(&mut self, line: &str, printed: &str) {
        // The first key after a signal may be lost with what was typed before (readline).
        self.types(&format!("\r{line}\r"));
        let printed = format!("\r{printed}\r\n").into_bytes();
        self.waits(line, |seen| {
            let at = seen.windows(printed.len()).position(|window| window == printed);
            let after = at.map(|at| &seen[at..]).unwrap_or_default();
            after.windows(PROMPT_BEGINS.len()).any(|window| window == PROMPT_BEGINS)
        });
    }

    /// Waits until a text has been shown since the last keys.
    pub(crate) fn sees(&mut self, text: &str) {
        self.waits(text, |seen| plain(seen).contains(text));
    }

    /// Waits until a text has been shown on a line of its own: printed, and not only typed.
    pub(crate) fn sees_line(&mut self, line: &str) {
        self.waits(line, |seen| plain(seen).lines().any(|shown| shown.trim_end() == line));
    }

    /// What has been shown since the last keys, without colours and movements.
    pub(crate) fn text(&self) -> String {
        plain(&self.bytes())
    }

    /// The same as it came.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.seen.lock()[self.since..].to_vec()
    }

    /// Waits until what was shown since the last keys passes `there`.
    pub(crate) fn waits(&self, what: &str, mut there: impl FnMut(&[u8]) -> bool) {
        let began = Instant::now();
        let mut seen = self.seen.lock();
        while !there(&seen[self.since..]) {
            let left = SOON.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "{what:?} does not appear:\n{}", plain(&seen[self.since..]));
            let waited = self.seen.more.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until a program with these arguments, and the last one of its pipeline, run and have the terminal.
    pub(crate) fn runs_in_front(&self, arguments: &str, last: &str) {
        self.process(arguments, true);
        self.process(last, true);
        let began = Instant::now();
        let in_front = || {
            let group = tcgetpgrp(&*self.master).map_or(0, |group| group.as_raw_nonzero().get());
            folders(&self.home)
                .iter()
                .any(|process| words(process) == last && group_of(process) == Some(group))
        };
        while !in_front() {
            assert!(began.elapsed() < SOON, "{arguments}: it does not get the terminal");
            std::thread::sleep(LOOK_AGAIN);
        }
        // What a key sends to one that is still stopped is forgotten when it goes on (signal(7), SIGCONT).
        while folders(&self.home).iter().any(|process| is_stopped(process)) {
            assert!(began.elapsed() < SOON, "{arguments}: it does not go on");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits until a process of this home with these arguments is there, or is not.
    pub(crate) fn process(&self, arguments: &str, there: bool) {
        let began = Instant::now();
        while processes(&self.home).iter().any(|found| found == arguments) != there {
            assert!(began.elapsed() < SOON, "{arguments}: there should be one: {there}");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Makes the window another size.
    pub(crate) fn resizes(&self, rows: u16, columns: u16) {
        resize(self.master.as_fd(), rows, columns);
    }

    /// Sends the shell a signal, when it waits for keys again: one that comes between its prompt and its waiting is looked at with the
    /// next key only (readline), and one that it has not yet looked at takes the next key along.
    pub(crate) fn kills(&self, signal: Signal) {
        const AT_REST: Duration = Duration::from_millis(150);
        std::thread::sleep(AT_REST);
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process");
        kill_process(pid, signal).expect("sent");
        std::thread::sleep(AT_REST);
    }

    /// What the terminal does with what is typed and printed (termios(3)).
    pub(crate) fn modes(&self) -> String {
        format!("{:?}", tcgetattr(&*self.master).expect("a terminal"))
    }

    /// Sends a signal to the program of this home with these arguments.
    pub(crate) fn kills_program(&self, arguments: &str, signal: Signal) {
        let program = folders(&self.home).into_iter().find(|process| words(process) == arguments);
        let pid =
            program.and_then(|process| process.file_name()?.to_str()?.parse().ok()).and_then(Pid::from_raw);
        kill_process(pid.expect("it runs"), signal).expect("sent");
    }

    /// Waits for the shell's end.
    pub(crate) fn leaves(mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waited for") {
                return status;
            }
            assert!(began.elapsed() < SOON, "the shell does not leave:\n{}", self.text());
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what is shown, and says where the cursor is when asked.
fn watch(master: &OwnedFd, screen: &Screen) {
    let mut file = File::from(master.try_clone().expect("a copy"));
    let mut room = vec![0; 65536];
    let mut answered = 0;
    let mut looked = 0;
    // EIO: the last one has closed the other side.
    while let Ok(read @ 1..) = file.read(&mut room) {
        let mut seen = screen.lock();
        seen.extend_from_slice(&room[..read]);
        let from = looked.max(answered);
        let asked = seen[from..].windows(WHERE.len()).filter(|bytes| *bytes == WHERE).count();
        if asked > 0 {
            answered = seen.len();
        }
        looked = seen.len().saturating_sub(WHERE.len() - 1);
        drop(seen);
        screen.more.notify_all();
        for _ in 0..asked {
            write_all(master, HERE);
        }
    }
}

fn write_all(master: &OwnedFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(master, bytes)).expect("typed");
        bytes = &bytes[written..];
    }
}

/// Sets the size of a terminal's window.
pub(crate) fn resize(master: impl AsFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("resized");
}

/// Text without control sequences (ECMA-48).
pub(crate) fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' if characters.next_if_eq(&'[').is_some() => {
                while characters.next().is_some_and(|next| !('\x40'..='\x7e').contains(&next)) {}
            }
            // A title, up to BEL; a character set, by one letter.
            '\x1b' if characters.next_if_eq(&']').is_some() => {
                while characters.next().is_some_and(|next| next != '\x07') {}
            }
            '\x1b' => {
                if characters.next() == Some('(') {
                    characters.next();
                }
            }
            '\r' => {}
            _ => plain.push(character),
        }
    }
    plain
}

/// The command lines of all processes whose HOME this is, words joined by blanks.
pub(crate) fn processes(home: &Path) -> Vec<String> {
    folders(home).iter().map(|process| words(process)).filter(|words| !words.is_empty()).collect()
}

/// The command line of the process of this folder below /proc.
fn words(process: &Path) -> String {
    let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned()
}

/// What stands behind its name in proc_pid_stat(5).
fn stat(process: &Path) -> Vec<String> {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn is_stopped(process: &Path) -> bool {
    stat(process).first().is_some_and(|state| state == "T")
}

fn group_of(process: &Path) -> Option<i32> {
    stat(process).get(2)?.parse().ok()
}

/// Ends them all.
pub(crate) fn end_all(home: &Path) {
    for process in folders(home) {
        let pid = process.file_name().and_then(|name| Pid::from_raw(name.to_str()?.parse().ok()?));
        let _ = kill_process(pid.expect("a process"), Signal::KILL);
    }
}

/// The folders below /proc of all processes whose HOME this is.
fn folders(home: &Path) -> Vec<PathBuf> {
    let marker = format!("HOME={}\0", home.display()).into_bytes();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    let of_ours = entries.filter(|process| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment.windows(marker.len()).any(|window| window == marker)
    });
    // Names that are no numbers lead to one of the others (/proc/self).
    of_ours
        .filter(|process| process.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()))
        .collect()
}
