//! The state of the server of a shell, and what each message changes in it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mechanism::Folder;
use model::monotonic_ns;
use nix::sys::signal::Signal;
use observe::flow::Moved;
use observe::pace::Pace;
use observe::read_progress::ReadProgressTracker;
use pipes::message::{Answer, Message, Sender};
use process::{signals, sleep_on};
use rustix::event::{PollFd, PollFlags};

use super::programs::Programs;
use super::served::ServedLink;
use crate::history::History;
use crate::keep::Keep;
use crate::ledger::Ledger;
use crate::link::{Bell, LinkSpec};
use crate::prompt_pipes::PromptPipes;
use crate::requests::{self, Request, RequestSocket};
use crate::shell_run::{ShellRun, Summary};

/// Pause between two samples of stages.
const SAMPLE_PAUSE: Duration = Duration::from_millis(5);
/// How long the end of a shell waits for what its links still carry, and how long if programs in the background still run.
const DRAIN: Duration = Duration::from_millis(500);
const DRAIN_IN_BACKGROUND: Duration = Duration::from_millis(50);
/// Where no record is wanted, ended processes are forgotten at this many processes, or at twice the number that was left before.
const FORGET_MIN: usize = 256;

/// The settings for pipelines to come, which a person can change at a prompt.
pub(super) struct Settings {
    pub(super) via: LinkSpec,
    /// Where a numbered folder is made for the bytes of each typed line.
    pub(super) keep: Option<PathBuf>,
    pub(super) stats: bool,
}

pub(crate) struct Server<'a> {
    pub(super) shell_run: &'a ShellRun<'a>,
    /// Where the library sends its messages; `None` where it sends none.
    requests: Option<RequestSocket>,
    /// Where the shell asks before a prompt.
    pub(super) prompt_pipes: Option<&'a PromptPipes>,
    /// A folder that the shell reads at its start, removed once it has done so.
    pub(super) startup_folder: Option<PathBuf>,
    pub(super) settings: Settings,
    /// Where the bytes of the next link are kept.
    pub(super) keep: Option<Rc<Keep>>,
    pub(super) folder: Folder,
    pub(super) links: BTreeMap<u64, ServedLink>,
    /// Those of the links that are not over.
    pub(super) open: BTreeSet<u64>,
    /// Rung by links: one may have ended.
    pub(super) bell: Bell,
    next_id: u64,
    /// A reader saw the end of a stream that was not complete, or not all bytes could be kept.
    pub(super) lost_bytes: bool,
    /// The number of processes in the ledger at which ended ones are forgotten.
    forget_at: usize,
    pub(super) ledger: Ledger,
    /// The open /proc/PID/io of living stages. An ordinary user can read one that was opened while the process lived until the process
    /// is reaped; of a zombie only root may open it.
    pub(super) counters: HashMap<i32, File>,
    /// When it began to serve the shell (CLOCK_MONOTONIC).
    pub(super) began_ns: u64,
    pub(super) history: Option<History>,
    pub(super) pace: Pace,
    pub(super) drawn: Instant,
    pub(super) read_progress: ReadProgressTracker,
    pub(super) programs: Option<Programs>,
}

impl<'a> Server<'a> {
    /// For a shell of which nothing was reported yet.
    ///
    /// # Errors
    /// An error of eventfd(2).
    pub(crate) fn new(
        shell_run: &'a ShellRun<'a>,
        requests: Option<RequestSocket>,
        shell: i32,
        prompt_pipes: Option<&'a PromptPipes>,
        startup_folder: Option<PathBuf>,
    ) -> io::Result<Self> {
        let stats = shell_run.prompt.is_some_and(|prompt| prompt.stats);
        Ok(Self {
            shell_run,
            requests,
            prompt_pipes,
            startup_folder,
            settings: Settings { via: shell_run.via.clone(), keep: None, stats },
            keep: shell_run.keep.clone(),
            folder: Folder::private(),
            links: BTreeMap::new(),
            open: BTreeSet::new(),
            bell: Bell::new()?,
            next_id: 0,
            lost_bytes: false,
            forget_at: FORGET_MIN,
            ledger: Ledger::new(shell),
            counters: HashMap::new(),
            began_ns: monotonic_ns(),
            history: shell_run.watched.map(|_| History::default()),
            pace: Pace::new(Duration::ZERO, SAMPLE_PAUSE, SAMPLE_PAUSE),
            drawn: Instant::now(),
            read_progress: ReadProgressTracker::default(),
            programs: Programs::new(shell_run),
        })
    }

    /// The number of a new link.
    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    pub(super) fn add_link(&mut self, id: u64, link: ServedLink) {
        self.links.insert(id, link);
        self.open.insert(id);
    }

    /// Takes in all messages that have come. Returns whether there were any.
    pub(super) fn receive_all(&mut self) -> io::Result<bool> {
        let received = self.requests.as_mut().map_or(Ok(Vec::new()), RequestSocket::receive)?;
        let is_any = !received.is_empty();
        received.into_iter().for_each(|request| self.answer(request));
        self.answer_programs();
        Ok(is_any)
    }

    fn answer(&mut self, request: Request) {
        let Some((sender, message)) = request.read() else { return };
        match message {
            // It comes on another connection.
            Message::Shell => {}
            Message::Link => self.make_link(&request.connection),
            Message::Took { link, fd, waits } => {
                self.ledger.took(&sender, link, fd);
                match self.links.get_mut(&link).filter(|_| waits) {
                    Some(served) => served.hold(request.connection),
                    None => drop(request.with.map(|file| self.counters.insert(sender.pid, file.into()))),
                }
            }
            // The shell waits until the connection is closed, which is at the end of this function.
            Message::Ended => {
                let counters = self.counters.get(&sender.pid).and_then(process::proc::read_at);
                if let Some(moved) = counters.and_then(|bytes| Moved::parse(&bytes)) {
                    self.ledger.moved(sender.pid, moved);
                }
            }
            Message::Exec { parent, text } => {
                let mut words = text.splitn(2, |byte| *byte == 0);
                let children = String::from_utf8_lossy(words.next().unwrap_or_default());
                let children = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
                self.ledger.executes(&sender, parent, words.next().unwrap_or_default(), children);
            }
            Message::Limit { link, bytes } => {
                if let Some(served) = self.links.get_mut(&link) {
                    served.writers.limits.push(bytes);
                }
            }
            Message::Changes(text) => {
                let text = text.to_vec();
                if let Some(programs) = &mut self.programs {
                    programs.ask(sender.pid, text, request.connection);
                }
            }
            Message::Left { link, fd } => self.ledger.left(&sender, link, fd),
            Message::Reaped { status } => self.reaped(&sender, status),
            Message::Command(text) => {
                let text = String::from_utf8_lossy(text);
                let words: Vec<&str> = text.split_terminator('\0').collect();
                let done = self.command(&words);
                let answer = match &done {
                    Ok(text) => Answer::Done(text.as_bytes()),
                    Err(text) => Answer::NotDone(text.as_bytes()),
                };
                requests::answer(&request.connection, answer, &[]);
            }
        }
    }

    fn reaped(&mut self, sender: &Sender, status: i32) {
        let ended = ExitStatus::from_raw(status);
        if !ended.success() {
            self.failed(sender.pid, ended);
        }
        if let Some(link) = self.ledger.link_read_by(sender.pid) {
            self.reader_ended(link);
        }
        self.ledger.reaped(sender, status);
        self.counters.remove(&sender.pid);
        self.forget();
    }

    /// Waits until a message has come or one of these descriptors can be read, at most for this pause. Returns which of them can.
    pub(super) fn wait(&self, fds: [Option<BorrowedFd<'_>>; 3], pause: Duration) -> io::Result<[bool; 3]> {
        let requests = self.requests.iter().flat_map(RequestSocket::fds);
        let all = fds.iter().flatten().copied().chain(requests);
        let mut polled: Vec<PollFd<'_>> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        sleep_on(&mut polled, Some(pause))?;
        let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
        Ok(fds.map(|fd| fd.is_some() && ready.next().unwrap_or(false)))
    }

    /// Where no record is wanted: forgets what has ended, so that a long script needs neither more time nor more memory.
    fn forget(&mut self) {
        let is_wanted = self.shell_run.recorded || self.shell_run.prompt.is_some() || self.keep.is_some();
        if is_wanted || self.ledger.processes.len() < self.forget_at {
            return;
        }
        self.judge_limits();
        let open = &self.open;
        self.ledger.forget_ended(&|link| open.contains(&link));
        let named =
            self.ledger.processes.iter().flat_map(|process| [process.reads, process.writes]).flatten();
        let named: HashSet<u64> = named.collect();
        self.links.retain(|id, _| open.contains(id) || named.contains(id));
        self.forget_at = FORGET_MIN.max(2 * self.ledger.processes.len());
    }

    /// The shell has ended: waits for what its links still carry; what its stages and links did.
    pub(super) fn shell_ended(&mut self, sender: &Sender, status: i32) -> io::Result<Summary> {
        // All messages that were sent before the end have come by now.
        self.receive_all()?;
        self.ledger.reaped(sender, status);
        self.drain()?;
        // The shell itself may be the reader.
        for id in self.links.keys().copied().collect::<Vec<u64>>() {
            self.reader_ended(id);
        }
        self.judge_limits();
        self.draw_nothing();
        let pipelines = self.ledger.pipelines();
        self.name_kept(&pipelines);
        if let Some(programs) = self.programs.as_mut().filter(|_| self.shell_run.prompt.is_none()) {
            let stages = pipelines.iter().map(|pipeline| pipeline.processes.len());
            programs.report_absent(stages.max().unwrap_or(0));
        }
        Ok(self.summary(sender.at_ns, status))
    }

    fn drain(&mut self) -> io::Result<()> {
        let began = Instant::now();
        while !self.open.is_empty() {
            self.update_links()?;
            let most = if self.ledger.living().next().is_some() { DRAIN_IN_BACKGROUND } else { DRAIN };
            let open: Vec<u64> = self.open.iter().copied().collect();
            if !open.is_empty() && !self.wait_for_links(&open, began, most)? {
                self.finish_cut_short();
                break;
            }
        }
        if self.open.is_empty() {
            // The old folder is removed now, before the parent of this program goes on.
            self.folder = Folder::private();
        }
        Ok(())
    }

    /// Kills the processes that have links before their links end, so that data cut short does not look like a normal end.
    pub(super) fn kill_all(&mut self) {
        // The shell first: it would continue behind stages that were killed.
        let shell = std::iter::once((self.ledger.shell, self.began_ns));
        let living = self.ledger.living().map(|process| (process.pid, process.began_ns));
        for (pid, known_since_ns) in shell.chain(living) {
            signals::send_if_known_since(pid, known_since_ns, Signal::SIGKILL);
        }
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if let Some(folder) = &self.startup_folder {
            // The process that waited for the shell removes it, too, and may have been first.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
