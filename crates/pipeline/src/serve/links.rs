//! The links of a shell that is served: made when its library asks for one, looked at while they are open, and their books closed.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use mechanism::{OpenError, Order};
use model::LinkRecord;
use observe::open_file::{OpenFile, identity};
use pipes::protocol::{Reply, share_in_burst};
use process::spawn_thread;
use rustix::fs::{FileType, fstat};

use super::Server;
use crate::keep::{Keep, KeepProblem};
use crate::ledger::Pipeline;
use crate::link::lines::Lines;
use crate::link::{Link, limit_trouble};
use crate::run::ShellUse;
use crate::socket::{self, Socket};
use crate::stage_sampler::FillSource;

/// A link that was given to a shell, and those who wait for it.
pub(crate) struct Served {
    state: State,
    /// What is known of it; complete when it is over.
    pub(crate) record: LinkRecord,
    pub(super) order: Order,
    /// Readers that are held until the writers are done; closing one lets it go on.
    held: Vec<OwnedFd>,
    pub(super) written: bool,
    /// Where it shows how full it is.
    pub(super) fill_source: Option<FillSource>,
    /// Where what flows is kept.
    keep: Option<Rc<Keep>>,
    /// When its lines came, where that is noted.
    pub(super) lines: Arc<Lines>,
}

enum State {
    Open(Box<Link>),
    /// What it stored is read once more, for as long as that takes: what comes of it is its record, and whether it was cut short.
    Finishing(JoinHandle<(LinkRecord, bool)>),
    Over,
}

impl Served {
    pub(super) fn new(
        link: Link,
        order: Order,
        fill_source: Option<FillSource>,
        keep: Option<Rc<Keep>>,
    ) -> Self {
        Self {
            record: link.record().clone(),
            lines: link.shared_lines(),
            state: State::Open(Box::new(link)),
            order,
            held: Vec::new(),
            written: order == Order::Parallel,
            fill_source,
            keep,
        }
    }

    pub(super) fn link(&self) -> Option<&Link> {
        if let State::Open(link) = &self.state { Some(link.as_ref()) } else { None }
    }

    /// Lets a reader go on at once where the writers are done, and later where they are not.
    pub(super) fn hold(&mut self, reader: OwnedFd) {
        if self.written { release(&reader) } else { self.held.push(reader) }
    }

    /// A writer may make no file larger than this.
    pub(super) fn limit(&mut self, bytes: u64) {
        if let State::Open(link) = &mut self.state {
            link.limit(bytes);
        }
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

/// Lets a held reader go on.
fn release(reader: &OwnedFd) {
    socket::send(reader, &Reply::default(), &[]);
}

/// Finishes a link in a thread of its own, so that others are answered meanwhile; in this one where there is none to be had.
fn finish(link: Box<Link>) -> State {
    let (links, finishes) = sync_channel::<Box<Link>>(1);
    let finish = move || finishes.recv().map(|link| link.finish()).unwrap_or_default();
    match spawn_thread("hosepipe-copy", finish) {
        Ok(thread) => match links.send(link) {
            Ok(()) => State::Finishing(thread),
            Err(_) => State::Over,
        },
        Err(_) => State::Open(link),
    }
}

/// How it can be seen from outside how full a link is, by its reading end.
fn fill_source(read: &OwnedFd) -> Option<FillSource> {
    let stat = fstat(read).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Some(FillSource::Pipe(identity(&stat))),
        FileType::Socket => Some(FillSource::Sockets),
        _ => None,
    }
}

/// Says on standard error what went wrong with a link.
fn complain(what: &str) {
    // That it cannot be said changes nothing.
    let _ = writeln!(io::stderr(), "hosepipe: {}", model::one_line(what));
}

impl Server<'_> {
    pub(super) fn make_link(&mut self, reply: Option<OwnedFd>) {
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
                let served = Served::new(link, order, fill_source(&read), self.keep.clone());
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
        if watched.is_some_and(|watched| watched.latency) {
            link.stamp()?;
        }
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
    pub(crate) fn update_links(&mut self, socket: &Socket) -> io::Result<()> {
        self.end_readers_of_failed();
        let links = &mut self.links;
        let is_over = |id: &u64| links.get_mut(id).is_none_or(Served::look);
        let over: Vec<u64> = self.open.iter().copied().filter(is_over).collect();
        if !over.is_empty() {
            // What their writers said before they ended is there by now.
            self.receive_all(socket)?;
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
    pub(super) fn ended_by_limit(&mut self, pid: i32) {
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

    /// Data that was cut short must not look complete: its readers, and those of what they make of it, are killed before the end comes.
    fn end_readers_of_failed(&self) {
        let has_failed = |id: &&u64| self.links.get(id).and_then(Served::link).is_some_and(Link::has_failed);
        let failed = self.open.iter().filter(has_failed);
        let mut links: Vec<u64> = failed.flat_map(|id| self.ledger.downstream(*id)).collect();
        // The last ones first, so that they do not see the end of those before them.
        links.reverse();
        let at_prompt = self.service.text.shell_use == ShellUse::Interactive;
        for source in links.iter().filter_map(|id| self.links.get(id)?.fill_source) {
            if let FillSource::Pipe(identity) = source {
                OpenFile::pipe(identity).end_readers(self.ledger.shell, at_prompt);
            }
        }
    }

    /// Whether one of these is still read for its copy.
    pub(crate) fn is_copying(&self, links: impl IntoIterator<Item = u64>) -> bool {
        let is_copying = |served: &Served| matches!(served.state, State::Finishing(_));
        links.into_iter().any(|id| self.links.get(&id).is_some_and(is_copying))
    }

    /// Gives what was kept its names, once it is known what wrote it.
    pub(crate) fn name_kept(&mut self, pipelines: &[Pipeline]) {
        let keep = |id: &u64| self.links.get(id)?.keep.clone();
        let kept = pipelines.iter().filter_map(|joined| Some((joined, joined.links.iter().find_map(keep)?)));
        let kept: Vec<(&Pipeline, Rc<Keep>)> = kept.collect();
        for (joined, keep) in &kept {
            let alone = kept.iter().filter(|(_, other)| Rc::ptr_eq(other, keep)).count() == 1;
            let number = keep.next_number(alone);
            for (stage, (link, writer)) in joined.links.iter().zip(&joined.processes).enumerate() {
                self.name_file(*link, number, stage, &self.ledger.name(*writer));
            }
        }
        // The writers of these are not known: fish starts some programs without a fork(2) of its own, and does some things itself.
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
}
