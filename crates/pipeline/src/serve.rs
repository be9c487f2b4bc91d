//! The server of a shell: answers the library in it with links, runs their relays, and keeps the ledger of what it reports. A process of
//! its own, so that programs in the background keep their links when the shell, and hosepipe with it, has ended.

mod links;
mod programs;
mod stages;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mechanism::{Folder, Order};
use model::monotonic_ns;
use nix::sys::signal::Signal;
use pipes::protocol::{HEAD_BYTES, Head, Plain, kind};
use process::signals;
use process::sleep_on;
use rustix::event::{PollFd, PollFlags};

use crate::command::{Chosen, PromptPipes};
use crate::keep::Keep;
use crate::ledger::Ledger;
use crate::run::Text;
use crate::socket::{self, Message, Socket};
use crate::stage_sampler::StageSampler;
use observe::flow::Moved;
use observe::read_progress::ReadProgressTracker;

use links::Served;
use programs::Programs;
pub use stages::{StagePainter, StageSnapshot};

/// Pause between two looks at open links: their end wakes no descriptor.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Without open links clients wake the server through its socket.
const IDLE: Duration = Duration::from_secs(3600);

/// How long messages are awaited from processes that the shell was starting when it was killed.
const LATECOMERS: Duration = Duration::from_millis(200);
/// Between two looks at links that are about to end.
pub(crate) const LAST_LOOKS: Duration = Duration::from_micros(200);
/// How long the end of a shell waits for what its links still carry.
const LAST_BYTES: Duration = Duration::from_millis(500);

/// Where no record is wanted, ended processes are forgotten when there are this many, or twice as many as live.
const FORGET_MIN: usize = 256;

/// What is served.
pub(crate) struct Service<'a> {
    pub(crate) text: &'a Text<'a>,
    /// Where a prompt asks what there is to say.
    pub(crate) prompt_pipes: Option<&'a PromptPipes>,
    /// A folder that the shell reads at its start.
    pub(crate) began_from: Option<PathBuf>,
}

/// How the server learns that the shell has ended.
pub(crate) enum Front {
    /// The process that waits for the shell says so, and is then given the [`Summary`]. Where it goes without a word, it was killed, and
    /// everything it started is ended.
    Waiting(UnixStream),
    /// A pidfd of the shell becomes readable.
    Shell(OwnedFd),
}

impl AsFd for Front {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Waiting(stream) => stream.as_fd(),
            Self::Shell(process) => process.as_fd(),
        }
    }
}

/// Serves until the shell has ended, and its links with it.
pub(crate) fn serve(service: &Service<'_>, socket: &Socket, shell: i32, front: Front) -> io::Result<()> {
    let text = service.text;
    let mut server = Server {
        service,
        chosen: Chosen {
            via: text.via.clone(),
            keep: None,
            stats: text.prompt.is_some_and(|prompt| prompt.stats),
        },
        keep: text.keep.clone(),
        began_from: service.began_from.clone(),
        folder: Folder::private(),
        links: BTreeMap::new(),
        open: BTreeSet::new(),
        next: 0,
        cut_short: false,
        forget_at: FORGET_MIN,
        ledger: Ledger::of(shell),
        counters: HashMap::new(),
        began_ns: monotonic_ns(),
        sampler: text.watched.map(|_| StageSampler::new()),
        drawn: Instant::now(),
        read_progress: ReadProgressTracker::default(),
        programs: Programs::new(text),
    };
    let mut front = Some(front);
    loop {
        server.update_links(socket)?;
        server.answer_programs();
        let waiting = !server.open.is_empty() || server.programs.as_ref().is_some_and(Programs::is_asked);
        if front.is_none() && !waiting {
            return Ok(());
        }
        server.sample_stages();
        let mut pause = if waiting { LOOK_AGAIN } else { IDLE };
        if let Some(sampler) = server.sampler.as_ref().filter(|_| front.is_some())
            && server.ledger.running().next().is_some()
        {
            pause = pause.min(sampler.pace.left());
        }
        let prompt_pipes = service.prompt_pipes.map(|prompt_pipes| prompt_pipes.asked().as_fd());
        let from = [Some(socket.fd.as_fd()), front.as_ref().map(AsFd::as_fd), prompt_pipes];
        let [asked, spoken, prompted] = wait(from, pause)?;
        if asked || prompted {
            server.receive_all(socket)?;
        }
        if prompted {
            server.before_a_prompt(socket)?;
        }
        if spoken && let Some(mut front) = front.take() {
            let mut said = [0; HEAD_BYTES];
            let said = match &mut front {
                Front::Waiting(stream) => {
                    stream.read_exact(&mut said).ok().and_then(|()| Head::from_bytes(&said))
                }
                Front::Shell(_) => {
                    Some(Head { kind: kind::REAPED, pid: shell, at_ns: monotonic_ns(), ..Head::default() })
                }
            };
            let Some(said) = said else {
                server.draw_nothing();
                server.end_everything();
                // What the shell was about to start says so before it becomes that.
                let ended = Instant::now();
                while ended.elapsed() < LAST_BYTES
                    && wait([Some(socket.fd.as_fd()), None, None], LATECOMERS)?[0]
                {
                    server.receive_all(socket)?;
                    server.end_everything();
                }
                return Ok(());
            };
            // What was sent before that is there by now.
            server.receive_all(socket)?;
            server.ledger.reaped(&said);
            server.settle(socket)?;
            server.draw_nothing();
            let pipelines = server.ledger.pipelines();
            server.name_kept(&pipelines);
            if let Front::Waiting(mut stream) = front {
                // Where it was killed meanwhile, it has no use for it.
                let _ = serde_json::to_vec(&server.summary()).map(|summary| stream.write_all(&summary));
            }
        }
    }
}

/// Which of these have something to say, after so much time at most.
fn wait(fds: [Option<BorrowedFd<'_>>; 3], pause: Duration) -> io::Result<[bool; 3]> {
    let there = fds.iter().flatten();
    let mut polled: Vec<PollFd<'_>> = there.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    sleep_on(&mut polled, Some(pause))?;
    let mut came = polled.iter().map(|fd| !fd.revents().is_empty());
    Ok(fds.map(|fd| fd.is_some() && came.next().unwrap_or(false)))
}

pub(crate) struct Server<'a> {
    pub(crate) service: &'a Service<'a>,
    pub(crate) chosen: Chosen,
    /// Where what flows through the next link is kept.
    pub(crate) keep: Option<Rc<Keep>>,
    pub(crate) began_from: Option<PathBuf>,
    pub(crate) folder: Folder,
    pub(crate) links: BTreeMap<u64, Served>,
    /// Those of them that are not over.
    pub(crate) open: BTreeSet<u64>,
    next: u64,
    /// Some reader saw an end that was none.
    cut_short: bool,
    /// How many processes there are in the ledger when those are forgotten that have ended.
    forget_at: usize,
    pub(crate) ledger: Ledger,
    /// The /proc/PID/io of living stages. One that was opened while a process lived tells an ordinary user what it moved in all, until the
    /// process is reaped; of a zombie only root may open it.
    counters: HashMap<i32, File>,
    /// When it began to serve the shell (CLOCK_MONOTONIC).
    began_ns: u64,
    sampler: Option<StageSampler>,
    drawn: Instant,
    read_progress: ReadProgressTracker,
    programs: Option<Programs>,
}

impl Server<'_> {
    /// Takes in all messages that have come.
    pub(crate) fn receive_all(&mut self, socket: &Socket) -> io::Result<()> {
        while let Some(message) = socket.receive()? {
            self.answer(message);
        }
        self.answer_programs();
        Ok(())
    }

    fn answer(&mut self, message: Message) {
        let Message { head, text, reply } = message;
        match head.kind {
            kind::LINK => self.make_link(reply),
            kind::TOOK => {
                self.ledger.took(&head);
                if let (Some(reply), Some(served)) = (reply, self.links.get_mut(&head.id)) {
                    match served.order {
                        Order::Sequential if head.value == 0 => served.hold(reply),
                        _ => drop(self.counters.insert(head.pid, reply.into())),
                    }
                }
            }
            // The shell waits until `reply` is closed.
            kind::ENDED => {
                let counters = self.counters.get(&head.pid).and_then(process::proc::read_at);
                if let Some(moved) = counters.and_then(|bytes| Moved::parse(&bytes)) {
                    self.ledger.moved(head.pid, moved);
                }
            }
            kind::EXEC => {
                let mut words = text.splitn(2, |byte| *byte == 0);
                let children = String::from_utf8_lossy(words.next().unwrap_or_default());
                let children = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
                self.ledger.becomes(&head, words.next().unwrap_or_default(), children);
            }
            kind::LIMIT => {
                if let Some(served) = self.links.get_mut(&head.id) {
                    served.limit(head.value as u64);
                }
            }
            kind::CHANGES => {
                if let (Some(programs), Some(reply)) = (&mut self.programs, reply) {
                    programs.ask(head, text, reply);
                }
            }
            kind::LEFT => self.ledger.left(&head),
            kind::REAPED => {
                if head.value as i32 & 0x7f == libc::SIGXFSZ {
                    self.ended_by_limit(head.pid);
                }
                self.ledger.reaped(&head);
                self.counters.remove(&head.pid);
                self.forget();
            }
            kind::COMMAND => {
                let text = String::from_utf8_lossy(&text);
                let words: Vec<&str> = text.split_terminator('\0').collect();
                let done = self.command(&words);
                if let Some(reply) = reply {
                    socket::answer(reply, &done);
                }
            }
            _ => {}
        }
    }

    /// Where no record is wanted: forgets what has ended, so that neither time nor memory grows with what was done before.
    fn forget(&mut self) {
        let text = self.service.text;
        let is_wanted = text.recorded || text.prompt.is_some() || self.keep.is_some();
        if is_wanted || self.ledger.processes.len() < self.forget_at {
            return;
        }
        let open = &self.open;
        self.ledger.forget_ended(&|link| open.contains(&link));
        let named =
            self.ledger.processes.iter().flat_map(|process| [process.reads, process.writes]).flatten();
        let named: HashSet<u64> = named.collect();
        self.links.retain(|id, _| open.contains(id) || named.contains(id));
        self.forget_at = FORGET_MIN.max(2 * self.ledger.processes.len());
    }

    /// The shell has ended: what is on its way arrives.
    fn settle(&mut self, socket: &Socket) -> io::Result<()> {
        let began = Instant::now();
        while !self.open.is_empty() {
            self.update_links(socket)?;
            // Whatever still lives, in the background, keeps its link.
            let most = if self.ledger.living().next().is_some() { LAST_BYTES / 10 } else { LAST_BYTES };
            if began.elapsed() > most && !self.is_copying(self.open.iter().copied()) {
                break;
            }
            self.receive_all(socket)?;
            std::thread::sleep(LAST_LOOKS);
        }
        if self.open.is_empty() {
            // It is gone before the parent of this program goes on.
            self.folder = Folder::private();
        }
        Ok(())
    }

    /// hosepipe was killed: those whom it gave links go with it, before their links do, so that data cut short does not look like
    /// a normal end.
    fn end_everything(&mut self) {
        // The shell first: it would go on behind stages that were ended.
        let shell = std::iter::once((self.ledger.shell, self.began_ns));
        let living = self.ledger.living().map(|process| (process.pid, process.began_ns));
        for (pid, known_since_ns) in shell.chain(living) {
            signals::send_if_known_since(pid, known_since_ns, Signal::SIGKILL);
        }
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if let Some(folder) = &self.began_from {
            // The process that waited for the shell removes it, too, and may have been first.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
