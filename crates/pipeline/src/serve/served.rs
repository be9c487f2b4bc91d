//! A link that the server has given to a shell, until its record is complete.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use mechanism::Order;
use model::LinkRecord;
use observe::flow::LinkTotal;
use observe::open_file::identity;
use pipes::message::Answer;
use rustix::fs::{FileType, fstat};

use crate::history::FillSource;
use crate::keep::Keep;
use crate::link::lines::Lines;
use crate::link::wait::RingingThread;
use crate::link::{Bell, Cut, Link, Loss, limit_trouble};
use crate::requests;

/// A link, and the readers that are held until its writers are done.
pub(super) struct ServedLink {
    pub(super) state: State,
    /// Its record, which is complete when the link has ended.
    pub(super) record: LinkRecord,
    pub(super) order: Order,
    /// The connections of readers that wait until the writers are done.
    held: Vec<OwnedFd>,
    /// Whether all writers are done; always true for a link in parallel order, whose readers do not wait.
    pub(super) written: bool,
    pub(super) writers: Writers,
    /// What it has lost, once it has ended.
    pub(super) loss: Loss,
    /// What has cut off the output of its writers.
    pub(super) cut: Option<Cut>,
    /// Its reader has ended, with its position within the link's file.
    pub(super) reader_stopped: bool,
    /// Its reader has read the file to its end, where a limit for the size of files has cut it off.
    pub(super) read_to_limit: bool,
    /// Its bytes, where no relay counts them.
    pub(super) total: LinkTotal,
    /// How to find out how full it is.
    pub(super) fill_source: Option<FillSource>,
    /// The folder for its kept bytes.
    pub(super) keep: Option<Rc<Keep>>,
    /// The times of its lines, if they are measured.
    pub(super) lines: Arc<Lines>,
}

/// What is known of the writers of a link.
#[derive(Default)]
pub(super) struct Writers {
    /// One has failed, other than by SIGPIPE.
    pub(super) failed: bool,
    /// One was ended by its limit for the size of files.
    pub(super) limited: bool,
    /// Their limits for the size of files, in bytes.
    pub(super) limits: Vec<u64>,
}

pub(super) enum State {
    Open(Box<Link>),
    /// A thread copies the stored data.
    Finishing(RingingThread<(LinkRecord, Loss)>),
    Over,
}

impl ServedLink {
    pub(super) fn new(
        link: Link,
        order: Order,
        fill_source: Option<FillSource>,
        keep: Option<Rc<Keep>>,
    ) -> Self {
        Self {
            record: link.record().clone(),
            lines: Arc::clone(&link.lines),
            state: State::Open(Box::new(link)),
            order,
            held: Vec::new(),
            written: order == Order::Parallel,
            writers: Writers::default(),
            loss: Loss::default(),
            cut: None,
            reader_stopped: false,
            read_to_limit: false,
            total: LinkTotal::default(),
            fill_source,
            keep,
        }
    }

    pub(super) fn link(&self) -> Option<&Link> {
        if let State::Open(link) = &self.state { Some(link.as_ref()) } else { None }
    }

    /// What has cut off the file of a link in sequential order, to which its writers write themselves, with the message.
    pub(super) fn find_cut(&mut self) -> Option<(Cut, String)> {
        let is_full = self.loss.is_cut || self.writers.failed;
        if let Some(no_room) = self.loss.no_room.take_if(|_| is_full) {
            return Some((Cut::NoRoom, no_room));
        }
        let stored_bytes = self.record.stored_bytes.unwrap_or(0);
        let is_at_limit = self.writers.limits.contains(&stored_bytes);
        let is_limited = is_at_limit || self.writers.limited && stored_bytes > 0;
        is_limited.then(|| (Cut::Limit, limit_trouble(&self.record.spec, stored_bytes)))
    }

    /// Holds a reader until the writers are done.
    pub(super) fn hold(&mut self, reader: OwnedFd) {
        if self.written { release(&reader) } else { self.held.push(reader) }
    }

    /// Releases held readers if the writers are done. Returns whether the link has ended.
    pub(super) fn update(&mut self) -> bool {
        let link = match &mut self.state {
            State::Open(link) => link,
            State::Finishing(copying) => return copying.is_over(),
            State::Over => return true,
        };
        if !self.written && link.is_written() {
            self.written = true;
            self.held.drain(..).for_each(|reader| release(&reader));
        }
        self.written && (self.order == Order::Sequential || link.is_over())
    }
}

/// Releases a held reader.
fn release(reader: &OwnedFd) {
    requests::answer(reader, Answer::Written, &[]);
}

/// Finishes a link in a thread of its own, which rings at its end, so that messages are answered meanwhile. If no thread can be started, the link
/// stays open.
pub(super) fn finish(link: Box<Link>, bell: Bell) -> State {
    let (links, finishes) = sync_channel::<Box<Link>>(1);
    let finish = move || finishes.recv().map(|link| link.finish()).unwrap_or_default();
    match RingingThread::start("hosepipe-copy", bell, finish) {
        Ok(thread) => match links.send(link) {
            Ok(()) => State::Finishing(thread),
            Err(_) => State::Over,
        },
        Err(_) => State::Open(link),
    }
}

/// How to find out how full a link is, by its reading end.
pub(super) fn fill_source(read: &OwnedFd) -> Option<FillSource> {
    let stat = fstat(read).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Some(FillSource::Pipe(identity(&stat))),
        FileType::Socket => Some(FillSource::Sockets),
        _ => None,
    }
}
