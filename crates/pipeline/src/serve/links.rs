//! The links of the shell: made when its library requests one, checked while they are open, and finished.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mechanism::{OpenError, Order};
use model::LinkRecord;
use observe::open_file::OpenFile;
use pipes::message::Answer;
use pipes::protocol::share_in_burst;

use super::IDLE;
use super::served::{ServedLink, State, fill_source, finish};
use super::server::Server;
use crate::history::FillSource;
use crate::keep::{Keep, KeepProblem};
use crate::ledger::Pipeline;
use crate::link::{Cut, Link, Moved, refused};
use crate::requests;
use crate::shell_run::ShellUse;

/// Prints a problem of a link on standard error.
fn print_trouble(what: &str) {
    // An error of writing to standard error is ignored.
    let _ = writeln!(io::stderr(), "hosepipe: {}", model::one_line(what));
}

impl Server<'_> {
    pub(super) fn make_link(&mut self, connection: &OwnedFd) {
        let id = self.new_id();
        let made = self.connect(id).and_then(|mut link| {
            let given = connection.try_clone();
            let awaited = given.and_then(|given| link.await_writers(Some(given)));
            awaited.map(|()| link).map_err(refused("a thread that waits for the writers"))
        });
        match made {
            Ok(mut link) => {
                let order = self.settings.via.order();
                let (Some(read), Some(write)) = (link.take_read(), link.take_write()) else { return };
                let answer = Answer::Link { id, waits: order == Order::Sequential };
                requests::answer(connection, answer, &[read.as_fd(), write.as_fd()]);
                self.add_link(id, ServedLink::new(link, order, fill_source(&read), self.keep.clone()));
            }
            Err(error) => {
                print_trouble(&self.settings.via.refusal(&error));
                let errno = error.source.and_then(|source| source.raw_os_error()).unwrap_or(libc::EIO);
                requests::answer(connection, Answer::Refused { error: errno as u32 }, &[]);
            }
        }
    }

    fn connect(&mut self, id: u64) -> Result<Link, OpenError> {
        let mut link = self.settings.via.connect(&self.folder, &self.bell)?;
        let watched = self.shell_run.watched;
        if watched.is_some_and(|watched| watched.latency) {
            link.stamp()?;
        }
        if watched.is_some_and(|watched| watched.lines) {
            link.lines.want();
        }
        // The relay that keeps a copy also counts.
        let keeps = self.keep.is_some() || self.settings.keep.is_some();
        if watched.is_some_and(|watched| watched.meter || watched.lines) && !keeps {
            link.meter()?;
        }
        link.shrink(share_in_burst(self.open.len()));
        let not_kept = |problem: KeepProblem| OpenError::unsupported(problem.to_string(), "another folder");
        if let (None, Some(folder)) = (&self.keep, &self.settings.keep) {
            self.keep = Some(Rc::new(Keep::numbered(folder).map_err(not_kept)?));
        }
        if let Some(keep) = &self.keep {
            link.keep(keep.file(id).map_err(not_kept)?)?;
        }
        Ok(link)
    }

    /// Releases held readers whose writers are done, kills readers whose data is incomplete, and finishes the links that have ended.
    pub(super) fn update_links(&mut self) -> io::Result<()> {
        self.end_readers_of_failed();
        let links = &mut self.links;
        let is_over = |id: &u64| links.get_mut(id).is_none_or(ServedLink::update);
        let over: Vec<u64> = self.open.iter().copied().filter(is_over).collect();
        if !over.is_empty() {
            // The messages that their writers sent before they ended have arrived by now.
            self.receive_all()?;
        }
        over.into_iter().for_each(|id| self.finish(id));
        Ok(())
    }

    fn finish(&mut self, id: u64) {
        let Some(served) = self.links.get_mut(&id) else { return };
        let mut state = std::mem::replace(&mut served.state, State::Over);
        if let State::Open(link) = state {
            state =
                if link.is_slow_to_finish() { finish(link, self.bell.clone()) } else { State::Open(link) };
        }
        let (record, loss) = match state {
            State::Open(link) => link.finish(),
            State::Finishing(copying) if copying.is_over() => copying.join().unwrap_or_default(),
            unfinished => return served.state = unfinished,
        };
        // At a prompt the file of the link may already have its final name.
        served.record = LinkRecord { kept: served.record.kept.take(), ..record };
        self.lost_bytes |= loss.cut_short || loss.not_kept;
        served.loss = loss;
        self.open.remove(&id);
        self.find_cut(id);
        if let Some(trouble) = self.links.get(&id).and_then(|served| served.record.trouble.as_ref()) {
            print_trouble(trouble);
        }
    }

    /// The links for which this is true, of those that are not over.
    fn open_links(&self, is: fn(&Link) -> bool) -> Vec<u64> {
        let is_one = |id: &u64| self.links.get(id).and_then(ServedLink::link).is_some_and(is);
        self.open.iter().copied().filter(is_one).collect()
    }

    /// Finishes the links whose readers did not get all data, although their relays still run: the shell has ended, and its exit status must
    /// show that data is missing.
    pub(super) fn finish_cut_short(&mut self) {
        self.open_links(Link::is_cut_short).into_iter().for_each(|id| self.finish(id));
    }

    /// Notes that a process has failed. Its output may have been the file of a link: it may have reached the limit of file sizes (SIGXFSZ), or
    /// there was no more room.
    pub(super) fn failed(&mut self, pid: i32, status: ExitStatus) {
        let signal = status.signal().or(status.code().map(|code| code - 128));
        if signal == Some(libc::SIGPIPE) {
            return;
        }
        let Some(id) = self.ledger.link_written_by(pid) else { return };
        let Some(served) = self.links.get_mut(&id) else { return };
        served.writers.failed = true;
        served.writers.limited |= signal == Some(libc::SIGXFSZ);
        if let Some(trouble) = self.find_cut(id) {
            print_trouble(&trouble);
        }
    }

    /// Finds out whether what was written to the file of a link in sequential order, which has ended, was cut off. Returns the message the first time.
    fn find_cut(&mut self, id: u64) -> Option<String> {
        let served = self.links.get_mut(&id)?;
        let is_over = matches!(served.state, State::Over);
        if !is_over || served.order != Order::Sequential || served.cut.is_some() {
            return None;
        }
        let (by, trouble) = served.find_cut()?;
        served.cut = Some(by);
        served.record.trouble = Some(trouble.clone());
        // Its reader may have ended already.
        self.lost_bytes |= served.loss.unread.is_none();
        Some(trouble)
    }

    /// Notes that the reader of a link has ended, which may have read the link's file by itself. One that has not moved its position may have
    /// looked at the file's size, as `wc -c` does.
    pub(super) fn reader_ended(&mut self, link: u64) {
        let Some(served) = self.links.get_mut(&link) else { return };
        let Some(unread) = served.loss.unread.take() else { return };
        let moved = unread.moved();
        self.lost_bytes |= served.cut == Some(Cut::NoRoom) && moved != Moved::Within;
        served.reader_stopped = moved == Moved::Within;
        served.read_to_limit = served.cut == Some(Cut::Limit) && moved == Moved::ToTheEnd;
    }

    /// Decides whether bytes are missing that a limit for the size of files has cut off. The limit is also what ends a writer that would write
    /// for ever (`yes | cat | head -n1`): then a later reader has stopped within its file, or none has read.
    pub(super) fn judge_limits(&mut self) {
        let stopped = |id: &u64| self.links.get(id).is_some_and(|served| served.reader_stopped);
        let mut limited = self.links.iter().filter(|(_, served)| served.read_to_limit);
        self.lost_bytes |= limited.any(|(id, _)| !self.ledger.downstream(*id).iter().any(stopped));
    }

    /// The links whose relays wait until their readers are killed.
    pub(super) fn failed_links(&self) -> Vec<u64> {
        self.open_links(Link::has_failed)
    }

    /// Kills the readers of links that have failed, and the stages downstream, before they read end-of-file: incomplete data must not look
    /// complete.
    fn end_readers_of_failed(&self) {
        let failed = self.failed_links().into_iter();
        let mut links: Vec<u64> = failed.flat_map(|id| self.ledger.downstream(id)).collect();
        // The last stage first, so that no stage reads end-of-file because the stage before it was killed.
        links.reverse();
        let at_prompt = self.shell_run.shell_use == ShellUse::Interactive;
        for source in links.iter().filter_map(|id| self.links.get(id)?.fill_source) {
            if let FillSource::Pipe(identity) = source {
                OpenFile::pipe(identity).end_readers(self.ledger.shell, at_prompt);
            }
        }
    }

    /// Waits until one of these links may have ended, or a message has come, and takes in all messages. Returns false if that has taken too long
    /// since `began`; copies that are still being made are waited for as long as it takes.
    pub(super) fn wait_for_links(
        &mut self,
        links: &[u64],
        began: Instant,
        most: Duration,
    ) -> io::Result<bool> {
        let left = most.saturating_sub(began.elapsed());
        let is_late = left.is_zero();
        if is_late && !self.is_copying(links.iter().copied()) {
            return Ok(false);
        }
        self.wait([self.bell.fd(), None, None], if is_late { IDLE } else { left })?;
        self.bell.silence();
        self.receive_all()?;
        Ok(true)
    }

    /// Whether the copy of one of these links is still being made.
    fn is_copying(&self, links: impl IntoIterator<Item = u64>) -> bool {
        let is_copying = |served: &ServedLink| matches!(served.state, State::Finishing(_));
        links.into_iter().any(|id| self.links.get(&id).is_some_and(is_copying))
    }

    /// Gives the files of links their final names, which contain the names of the writers. These are known when the writers have ended.
    pub(super) fn name_kept(&mut self, pipelines: &[Pipeline]) {
        let keep = |id: &u64| self.links.get(id)?.keep.clone();
        let kept =
            pipelines.iter().filter_map(|pipeline| Some((pipeline, pipeline.links.iter().find_map(keep)?)));
        let kept: Vec<(&Pipeline, Rc<Keep>)> = kept.collect();
        for (pipeline, keep) in &kept {
            let alone = kept.iter().filter(|(_, other)| Rc::ptr_eq(other, keep)).count() == 1;
            let number = keep.next_number(alone);
            for (stage, (link, writer)) in pipeline.links.iter().zip(&pipeline.processes).enumerate() {
                self.name_file(*link, number, stage, &self.ledger.name(*writer));
            }
        }
        // The writers of some links are not known: fish starts some programs without a fork(2) of its own, and executes builtins itself.
        let unnamed = self.links.iter().filter(|(id, served)| {
            let is_unnamed = served.keep.is_some() && served.record.kept.is_none();
            is_unnamed && matches!(served.state, State::Over) && !self.ledger.is_written(**id)
        });
        for id in unnamed.map(|(id, _)| *id).collect::<Vec<u64>>() {
            let number = self.links[&id].keep.as_ref().and_then(|keep| keep.next_number(false));
            self.name_file(id, number, 0, "");
        }
    }

    fn name_file(&mut self, link: u64, number: Option<usize>, stage: usize, command: &str) {
        let Some(served) = self.links.get_mut(&link) else { return };
        let Some(keep) = &served.keep else { return };
        match keep.name(link, number, stage, command, served.record.trouble.is_none()) {
            Ok(path) => served.record.kept = Some(path.to_string_lossy().into_owned()),
            Err(problem) => print_trouble(&problem.to_string()),
        }
    }
}
