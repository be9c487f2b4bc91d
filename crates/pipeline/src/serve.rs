//! The server of a shell: answers the library in it with links, runs their relays, and writes down what it is told. A process of
//! its own, so that programs in the background keep their links when the shell, and hosepipe with it, has ended.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mechanism::{Folder, OpenError, Order};
use model::{Bottleneck, LinkRecord, StageRecord, monotonic_ns};
use nix::sys::signal::Signal;
use pipes::protocol::{HEAD_BYTES, Head, Plain, Reply, kind, share_in_burst};
use process::signals::{self, NoSignals};
use process::sleep_on;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, fstat};

use crate::attention::{Attention, Held, Sight};
use crate::bottleneck::{Observed, judge};
use crate::command::{Chosen, PromptPipes};
use crate::keep::{Keep, KeepProblem};
use crate::ledger::{IN_THE_SHELL, Joined, Ledger, typed_stages};
use crate::link::{Link, limit_trouble};
use crate::run::{Summary, Text};
use crate::socket::{self, Message, Socket};
use observe::fullness::Fill;
use observe::headway::{Headway, Headways};
use observe::open_file::{OpenFile, identity};

/// Between two looks at links that tell nobody that they are over.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// With nothing to look at: whoever wants something says so.
const IDLE: Duration = Duration::from_secs(3600);

/// For how long somebody may still be heard whom the shell started in the moment it was killed.
const LATECOMERS: Duration = Duration::from_millis(200);
/// Between two looks at links that are about to end.
pub(crate) const LAST_LOOKS: Duration = Duration::from_micros(200);
/// How long the end of a shell waits for what its links still carry.
const LAST_BYTES: Duration = Duration::from_millis(500);

/// Where no record is wanted, processes are forgotten that have ended when there are so many, or twice as many as live.
const FORGET_MIN: usize = 256;

/// What is served.
pub(crate) struct Service<'a> {
    pub(crate) text: &'a Text<'a>,
    /// Where a prompt asks what there is to say.
    pub(crate) prompt_pipes: Option<&'a PromptPipes>,
    /// A folder that the shell reads at its start, and nobody afterwards.
    pub(crate) began_from: Option<PathBuf>,
}

/// What was seen of one stage so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// What it is called.
    pub command: String,
    /// Whether it has ended.
    pub ended: bool,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time it was ready to run without a CPU.
    pub queued_ns: u64,
    /// Time it was idle while nothing was there for it to read.
    pub blocked_read_ns: u64,
    /// Time it was idle while what it writes to was full.
    pub blocked_write_ns: u64,
    /// Lines that went through the link behind it; `None` where nobody counts.
    pub lines: Option<u64>,
    /// How far it has come in what it reads; only of a first stage that reads a file.
    pub headway: Option<Headway>,
}

/// Draws the stages of the pipeline that runs; at the end it is given none.
pub type Picture<'a> = dyn Fn(&[Glance]) + 'a;

/// Between two pictures.
const PICTURE_EVERY: Duration = Duration::from_millis(100);

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
        began_ns: monotonic_ns(),
        attention: text.watched.map(|_| Attention::new()),
        drawn: Instant::now(),
        headways: Headways::default(),
    };
    let mut front = Some(front);
    loop {
        server.look_at_links(socket)?;
        let waiting = !server.open.is_empty();
        if front.is_none() && !waiting {
            return Ok(());
        }
        server.look_at_stages();
        let mut pause = if waiting { LOOK_AGAIN } else { IDLE };
        if let Some(attention) = server.attention.as_ref().filter(|_| front.is_some())
            && server.ledger.played().next().is_some()
        {
            pause = pause.min(attention.pause());
        }
        let prompt_pipes = service.prompt_pipes.map(|prompt_pipes| prompt_pipes.asked().as_fd());
        let from = [Some(socket.fd.as_fd()), front.as_ref().map(AsFd::as_fd), prompt_pipes];
        let [asked, spoken, prompted] = wait(from, pause)?;
        if asked || prompted {
            server.hear(socket)?;
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
                    server.hear(socket)?;
                    server.end_everything();
                }
                return Ok(());
            };
            // What was sent before that is there by now.
            server.hear(socket)?;
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

/// A link that was given to a shell, and those who wait for it.
pub(crate) struct Served {
    state: State,
    /// What is known of it; complete when it is over.
    pub(crate) record: LinkRecord,
    order: Order,
    /// Readers that are held until the writers are done; closing one lets it go on.
    held: Vec<OwnedFd>,
    written: bool,
    /// How it can be seen from outside how full it is.
    sight: Option<Sight>,
    /// Where what flows is kept.
    keep: Option<Rc<Keep>>,
}

enum State {
    Open(Box<Link>),
    /// What it stored is read once more, for as long as that takes: what comes of it is its record, and whether it was cut short.
    Finishing(JoinHandle<(LinkRecord, bool)>),
    Over,
}

impl Served {
    fn link(&self) -> Option<&Link> {
        if let State::Open(link) = &self.state { Some(link.as_ref()) } else { None }
    }

    /// Lets held readers go on whose writers are done; says whether nothing is left to wait for.
    fn look(&mut self) -> bool {
        let link = match &mut self.state {
            State::Open(link) => link,
            State::Finishing(copying) => return copying.is_finished(),
            State::Over => return true,
        };
        if !self.written && link.is_written().unwrap_or(false) {
            self.written = true;
            self.held.drain(..).for_each(|reader| release(&reader));
        }
        self.written && (self.order == Order::Sequential || link.is_over())
    }
}

/// Lets a held reader go on. One that is not told so reads nothing.
fn release(reader: &OwnedFd) {
    socket::send(reader, &Reply::default(), &[]);
}

/// Finishes a link in a thread of its own, so that others are answered meanwhile; in this one where there is none to be had.
fn finish(link: Box<Link>) -> State {
    let (links, finishes) = sync_channel::<Box<Link>>(1);
    let _held = NoSignals::hold();
    let finish = move || finishes.recv().map(|link| link.finish()).unwrap_or_default();
    match thread::Builder::new().name("hosepipe-copy".to_owned()).spawn(finish) {
        Ok(thread) => match links.send(link) {
            Ok(()) => State::Finishing(thread),
            Err(_) => State::Over,
        },
        Err(_) => State::Open(link),
    }
}

/// How it can be seen from outside how full a link is, by its reading end.
fn sight(read: &OwnedFd) -> Option<Sight> {
    let stat = fstat(read).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Some(Sight::Pipe(identity(&stat))),
        FileType::Socket => Some(Sight::Sockets),
        _ => None,
    }
}

/// Says on standard error what went wrong with a link.
fn complain(what: &str) {
    // That it cannot be said changes nothing.
    let _ = writeln!(io::stderr(), "hosepipe: {}", model::one_line(what));
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
    /// When it began to serve the shell (CLOCK_MONOTONIC).
    began_ns: u64,
    attention: Option<Attention>,
    drawn: Instant,
    headways: Headways,
}

impl Server<'_> {
    /// Everything that was said so far.
    pub(crate) fn hear(&mut self, socket: &Socket) -> io::Result<()> {
        while let Some(message) = socket.receive()? {
            self.answer(message);
        }
        Ok(())
    }

    fn answer(&mut self, message: Message) {
        let Message { head, text, reply } = message;
        match head.kind {
            kind::LINK => self.make_link(reply),
            kind::TOOK => {
                self.ledger.took(&head);
                if let (Some(reply), Some(served)) = (reply, self.links.get_mut(&head.id)) {
                    if served.written {
                        release(&reply);
                    } else {
                        served.held.push(reply);
                    }
                }
            }
            kind::EXEC => {
                let mut words = text.splitn(2, |byte| *byte == 0);
                let children = String::from_utf8_lossy(words.next().unwrap_or_default());
                let children = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
                self.ledger.becomes(&head, words.next().unwrap_or_default(), children);
            }
            kind::LIMIT => {
                if let Some(State::Open(link)) = self.links.get_mut(&head.id).map(|served| &mut served.state)
                {
                    link.limit(head.value as u64);
                }
            }
            kind::LEFT => self.ledger.left(&head),
            kind::REAPED => {
                if head.value as i32 & 0x7f == libc::SIGXFSZ {
                    self.ended_by_limit(head.pid);
                }
                self.ledger.reaped(&head);
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

    fn make_link(&mut self, reply: Option<OwnedFd>) {
        let Some(reply) = reply else { return };
        let id = self.next;
        self.next += 1;
        match self.connect(id) {
            Ok(mut link) => {
                let order = self.chosen.via.order();
                let hold = order == Order::Sequential;
                let (Some(read), Some(write)) = (link.take_read(), link.take_write()) else { return };
                let answer = Reply { id, hold_reader: u64::from(hold), error: 0 };
                socket::send(&reply, &answer, &[read.as_fd(), write.as_fd()]);
                let served = Served {
                    record: link.record().clone(),
                    state: State::Open(Box::new(link)),
                    order,
                    held: Vec::new(),
                    written: !hold,
                    sight: sight(&read),
                    keep: self.keep.clone(),
                };
                self.links.insert(id, served);
                self.open.insert(id);
            }
            Err(error) => {
                complain(&self.chosen.via.refusal(&error));
                let errno = match &error {
                    OpenError::System { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
                    _ => libc::EIO,
                };
                socket::send(&reply, &Reply { id, hold_reader: 0, error: errno as u64 }, &[]);
            }
        }
    }

    fn connect(&mut self, id: u64) -> Result<Link, OpenError> {
        let mut link = self.chosen.via.connect(&self.folder)?;
        let watched = self.service.text.watched;
        if watched.is_some_and(|watched| watched.lines) {
            link.count_lines();
        }
        // The relay that keeps a copy counts as well.
        let keeps = self.keep.is_some() || self.chosen.keep.is_some();
        if watched.is_some_and(|watched| watched.meter || watched.lines) && !keeps {
            link.meter()?;
        }
        link.shrink(share_in_burst(self.open.len()));
        let not_kept = |problem: KeepProblem| OpenError::Unsupported {
            message: problem.to_string(),
            remedy: "another folder".to_owned(),
        };
        if let (None, Some(folder)) = (&self.keep, &self.chosen.keep) {
            self.keep = Some(Rc::new(Keep::numbered(folder).map_err(not_kept)?));
        }
        if let Some(keep) = &self.keep {
            link.keep(keep.file(id).map_err(not_kept)?)?;
        }
        Ok(link)
    }

    /// Lets held readers go on whose writers are done, ends those whose data was cut short, and closes the books of links that are
    /// over.
    pub(crate) fn look_at_links(&mut self, socket: &Socket) -> io::Result<()> {
        self.end_readers_of_failed();
        let links = &mut self.links;
        let is_over = |id: &u64| links.get_mut(id).is_none_or(Served::look);
        let over: Vec<u64> = self.open.iter().copied().filter(is_over).collect();
        if !over.is_empty() {
            // What their writers said before they ended is there by now.
            self.hear(socket)?;
        }
        over.into_iter().for_each(|id| self.finish(id));
        Ok(())
    }

    fn finish(&mut self, id: u64) {
        let Some(served) = self.links.get_mut(&id) else { return };
        let mut state = std::mem::replace(&mut served.state, State::Over);
        if let State::Open(link) = state {
            state = if link.is_slow_to_finish() { finish(link) } else { State::Open(link) };
        }
        let (record, cut_short) = match state {
            State::Open(link) => link.finish(),
            State::Finishing(copying) if copying.is_finished() => copying.join().unwrap_or_default(),
            under_way => return served.state = under_way,
        };
        if let Some(trouble) = &record.trouble {
            complain(trouble);
        }
        // At a prompt it may have been named meanwhile.
        served.record = LinkRecord { kept: served.record.kept.take(), ..record };
        self.cut_short |= cut_short;
        self.open.remove(&id);
    }

    /// A process was ended because it wanted to make a file larger than it may: behind its output may be the file of a link.
    fn ended_by_limit(&mut self, pid: i32) {
        let written =
            self.ledger.living().find(|process| process.pid == pid).and_then(|process| process.writes);
        let Some(served) = written.and_then(|link| self.links.get_mut(&link)) else { return };
        if let State::Open(link) = &mut served.state {
            link.note_limit_ended_writer();
        } else if served.record.trouble.is_none() && served.record.stored_bytes.is_some_and(|bytes| bytes > 0)
        {
            let trouble = limit_trouble(&served.record);
            complain(&trouble);
            served.record.trouble = Some(trouble);
            self.cut_short |= served.order == Order::Parallel;
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

    /// An end that is none must not look like one: whoever would read it, or what is made of it, is killed before it comes.
    fn end_readers_of_failed(&self) {
        let has_failed = |id: &&u64| self.links.get(id).and_then(Served::link).is_some_and(Link::has_failed);
        let failed = self.open.iter().filter(has_failed);
        let mut links: Vec<u64> = failed.flat_map(|id| self.ledger.downstream(*id)).collect();
        // The last ones first, so that they do not see the end of those before them.
        links.reverse();
        let at_prompt = self.service.text.prompt.is_some();
        for sight in links.iter().filter_map(|id| self.links.get(id)?.sight) {
            if let Sight::Pipe(identity) = sight {
                OpenFile::pipe(identity).end_readers(self.ledger.shell, at_prompt);
            }
        }
    }

    fn look_at_stages(&mut self) {
        let Some(attention) = &mut self.attention else { return };
        let links = &self.links;
        attention.look(&self.ledger, &|id| {
            let served = links.get(&id)?;
            match served.order {
                Order::Sequential if served.written => Some(Sight::Known(Fill::ALL_THERE)),
                Order::Sequential => Some(Sight::Known(Fill::NOTHING_YET)),
                Order::Parallel => served.sight,
            }
        });
        self.draw();
    }

    /// Shows the latest pipeline of which something lives.
    fn draw(&mut self) {
        let Some(show) = self.service.text.watched.and_then(|watched| watched.show) else { return };
        if self.drawn.elapsed() < PICTURE_EVERY {
            return;
        }
        self.drawn = Instant::now();
        let played: Vec<usize> = self.ledger.played().collect();
        let pipelines = self.ledger.pipelines();
        let lives = |joined: &&Joined| joined.processes.iter().any(|index| played.contains(index));
        let Some(joined) = pipelines.iter().rev().find(lives) else { return };
        let Some(attention) = &self.attention else { return };
        let glance = |(at, index): (usize, &usize)| {
            let (command, ended) = (self.ledger.name(*index), !played.contains(index));
            let behind = joined.links.get(at).and_then(|link| self.links.get(link));
            let lines = behind.and_then(|served| served.link().map_or(served.record.lines, Link::lines));
            Glance { command, ended, lines, ..attention.so_far(*index) }
        };
        let mut stages: Vec<Glance> = joined.processes.iter().enumerate().map(glance).collect();
        if let ([first, ..], [stage, ..]) = (&joined.processes[..], &mut stages[..]) {
            let pids = if stage.ended { &[] } else { attention.pids(*first) };
            stage.headway = self.headways.look(pids);
        }
        show(&stages);
    }

    fn draw_nothing(&self) {
        if let Some(show) = self.service.text.watched.and_then(|watched| watched.show) {
            show(&[]);
        }
    }

    /// Whether one of these is still read for its copy.
    pub(crate) fn is_copying(&self, links: impl IntoIterator<Item = u64>) -> bool {
        let is_copying = |served: &Served| matches!(served.state, State::Finishing(_));
        links.into_iter().any(|id| self.links.get(&id).is_some_and(is_copying))
    }

    /// The shell has ended: what is on its way arrives.
    fn settle(&mut self, socket: &Socket) -> io::Result<()> {
        let began = Instant::now();
        while !self.open.is_empty() {
            self.look_at_links(socket)?;
            // Whatever still lives, in the background, keeps its link.
            let most = if self.ledger.living().next().is_some() { LAST_BYTES / 10 } else { LAST_BYTES };
            if began.elapsed() > most && !self.is_copying(self.open.iter().copied()) {
                break;
            }
            self.hear(socket)?;
            std::thread::sleep(LAST_LOOKS);
        }
        if self.open.is_empty() {
            // Nothing is left of it when whoever waits for this program goes on.
            self.folder = Folder::private();
        }
        Ok(())
    }

    /// Gives what was kept its names, once it is known what wrote it.
    pub(crate) fn name_kept(&mut self, pipelines: &[Joined]) {
        let keep = |id: &u64| self.links.get(id)?.keep.clone();
        let kept = pipelines.iter().filter_map(|joined| Some((joined, joined.links.iter().find_map(keep)?)));
        let kept: Vec<(&Joined, Rc<Keep>)> = kept.collect();
        for (joined, keep) in &kept {
            let alone = kept.iter().filter(|(_, other)| Rc::ptr_eq(other, keep)).count() == 1;
            let number = keep.next_number(alone);
            for (stage, (link, writer)) in joined.links.iter().zip(&joined.processes).enumerate() {
                self.name_file(*link, number, stage, &self.ledger.name(*writer));
            }
        }
        // Who wrote these was not told: fish starts some programs without a fork(2) of its own, and does some things itself.
        let nameless = self.links.iter().filter(|(id, served)| {
            let nameless = served.keep.is_some() && served.record.kept.is_none();
            nameless && matches!(served.state, State::Over) && !self.ledger.is_written(**id)
        });
        for id in nameless.map(|(id, _)| *id).collect::<Vec<u64>>() {
            let number = self.links[&id].keep.as_ref().and_then(|keep| keep.next_number(false));
            self.name_file(id, number, 0, "");
        }
    }

    fn name_file(&mut self, link: u64, number: Option<usize>, stage: usize, command: &str) {
        let Some(served) = self.links.get_mut(&link) else { return };
        let Some(keep) = &served.keep else { return };
        match keep.name(link, number, stage, command, served.record.trouble.is_none()) {
            Ok(path) => served.record.kept = Some(path.to_string_lossy().into_owned()),
            Err(problem) => complain(&problem.to_string()),
        }
    }

    fn summary(&self) -> Summary {
        let serves_on = !self.open.is_empty();
        let mut summary = Summary { cut_short: self.cut_short, serves_on, ..Summary::default() };
        if !self.service.text.recorded {
            return summary;
        }
        let mut longest_ns = 0;
        let pipelines = self.ledger.pipelines();
        let text =
            self.service.text.arguments.last().map_or_else(Cow::default, |text| text.to_string_lossy());
        let typed = match &pipelines[..] {
            [joined] => typed_stages(&text, joined.processes.len()),
            _ => Vec::new(),
        };
        for (number, joined) in pipelines.iter().enumerate() {
            let links = self.link_records(number as u32, joined);
            let first = summary.stages.len();
            let stages = joined.processes.iter().enumerate().filter_map(|(place, index)| {
                let mut stage = self.ledger.stage(number as u32, joined, *index)?;
                if stage.command == IN_THE_SHELL
                    && let Some(typed) = typed.get(place)
                {
                    stage.command = format!("({})", typed.replace('\n', " "));
                }
                let Some(attention) = &self.attention else { return Some((stage, Held::default())) };
                attention.complete_stage(*index, &mut stage);
                Some((stage, attention.held(*index)))
            });
            let stages: Vec<(StageRecord, Held)> = stages.collect();
            let wall_ns = stages.iter().map(|(stage, _)| stage.wall_ns).max().unwrap_or(0);
            if self.attention.is_some() && wall_ns > longest_ns {
                longest_ns = wall_ns;
                let is_sequential = self.service.text.via.order() == Order::Sequential && stages.len() > 1;
                let judged = judge(&Observed { stages: &stages, links: &links, is_sequential });
                summary.bottleneck = judged
                    .map(|judged| Bottleneck { stage: judged.stage.map(|stage| first + stage), ..judged });
            }
            summary.stages.extend(stages.into_iter().map(|(stage, _)| stage));
            summary.links.extend(links);
        }
        summary
    }

    fn link_records(&self, pipeline: u32, joined: &Joined) -> Vec<LinkRecord> {
        let record = |id: &u64| {
            let mut record = LinkRecord { pipeline, ..self.links.get(id)?.record.clone() };
            if let Some(attention) = &self.attention {
                attention.complete_link(*id, &mut record);
            }
            Some(record)
        };
        joined.links.iter().filter_map(record).collect()
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
            // Whoever waited for the shell removes it, too, and may have been first.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
