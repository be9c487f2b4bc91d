//! The server of a shell: answers the library in it with links, runs their relays, and writes down what it is told. A process of
//! its own, so that programs in the background keep their links when the shell, and hosepipe with it, has ended.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mechanism::{Folder, OpenError, Order};
use model::LinkRecord;
use pipes::protocol::{HEAD_BYTES, Head, Kind, Reply, TEXT_BYTES_MAX};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recvmsg, sendmsg,
    socket_with, sockopt,
};
use rustix::process::{Signal, getuid};

use crate::command::{Bell, Chosen, Shown};
use crate::ledger::Ledger;
use crate::link::{Link, LinkReport, LinkSpec};
use crate::summary::Summary;
use crate::tell;

/// Of pipes that nobody gave a size, so many get the whole of theirs and so many a quarter: all pipes of a user may hold 64 MiB,
/// used or not (pipe(7), pipe-user-pages-soft).
const LARGE_PIPES: usize = 16;
const MIDDLING_PIPES: usize = 64;
const MIDDLING_BYTES: u64 = 256 << 10;
const SMALL_BYTES: u64 = 64 << 10;

/// Between two looks at links that tell nobody that they are over.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// With nothing to look at.
const LOOK_AGAIN_IDLE: Duration = Duration::from_millis(100);

/// How long the end of a shell waits for what its links still carry.
const LAST_BYTES: Duration = Duration::from_millis(500);

/// What is served.
pub(crate) struct Service<'a> {
    pub(crate) via: &'a LinkSpec,
    /// What there is to say before each prompt, and where that is asked for.
    pub(crate) prompt: Option<(Shown<'a>, &'a Bell)>,
    /// A folder that the shell reads at its start, and nobody afterwards.
    pub(crate) began_from: Option<PathBuf>,
}

/// Where the library in the shell finds its server.
pub(crate) struct Counter {
    socket: OwnedFd,
    /// An abstract name (unix(7)): it lives in no file system, so nothing can be left of it.
    pub(crate) name: String,
}

impl Counter {
    /// # Errors
    /// What socket(2) or bind(2) answers.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        // Whoever knows the name could call; the kernel's word says who it is.
        sockopt::set_socket_passcred(&socket, true)?;
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("hosepipe-{:032x}", u128::from_ne_bytes(random));
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(Self { socket, name })
    }
}

/// An open link and those who wait for it.
pub(crate) struct Served {
    pub(crate) link: Option<Link>,
    spec: String,
    granted: mechanism::Granted,
    order: Order,
    /// Readers that are held until the writers are done; closing one lets it go on.
    held: Vec<OwnedFd>,
    written: bool,
    report: LinkReport,
}

struct Message {
    head: Head,
    text: Vec<u8>,
    reply: Option<OwnedFd>,
}

/// Serves until the shell has ended, and its links with it. `front` is the process that waits for the shell; it says when that has
/// ended, and is then given the [`Summary`]. Where it goes without a word, it was killed, and everything it started with it.
pub(crate) fn serve(service: &Service<'_>, counter: &Counter, front: UnixStream) -> io::Result<()> {
    let mut server = Server {
        service,
        chosen: Chosen {
            via: service.via.clone(),
            keep: None,
            stats: service.prompt.is_some_and(|(shown, _)| shown.stats),
        },
        began_from: service.began_from.clone(),
        folder: Folder::private(),
        links: BTreeMap::new(),
        next: 0,
        ledger: Ledger::default(),
    };
    let mut front = Some(front);
    let bell = service.prompt.map(|(_, bell)| bell.asked());
    loop {
        server.look_at_links();
        let waiting = server.links.values().any(|served| served.link.is_some());
        if front.is_none() && !waiting {
            return Ok(());
        }
        let pause = if waiting { LOOK_AGAIN } else { LOOK_AGAIN_IDLE };
        let (asked, spoken, rung) = wait(&counter.socket, front.as_ref(), bell, pause)?;
        if asked || rung {
            while let Some(message) = receive(&counter.socket)? {
                server.answer(message);
            }
        }
        if rung {
            server.before_a_prompt();
        }
        if spoken && let Some(mut stream) = front.take() {
            let mut word = [0; 1];
            if stream.read(&mut word)? == 0 {
                server.end_everything();
                return Ok(());
            }
            // What was sent before that is there by now.
            while let Some(message) = receive(&counter.socket)? {
                server.answer(message);
            }
            server.settle();
            // A front that does not listen has no use for it.
            let _ = stream.write_all(&server.summary().to_bytes());
        }
    }
}

/// Whether there are messages, whether the front has spoken or gone, and whether the shell asks what to say.
fn wait(
    socket: &OwnedFd,
    front: Option<&UnixStream>,
    bell: Option<&OwnedFd>,
    pause: Duration,
) -> io::Result<(bool, bool, bool)> {
    let mut fds = vec![PollFd::new(socket, PollFlags::IN)];
    fds.extend(bell.map(|bell| PollFd::new(bell, PollFlags::IN)));
    fds.extend(front.map(|front| PollFd::new(front, PollFlags::IN)));
    match poll(&mut fds, Timespec::try_from(pause).ok().as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok((false, false, false)),
        Err(error) => return Err(error.into()),
    }
    let came = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
    let bells = usize::from(bell.is_some());
    Ok((came(0), came(1 + bells), bells == 1 && came(1)))
}

/// The next message of this user's, if one is there.
fn receive(socket: &OwnedFd) -> io::Result<Option<Message>> {
    loop {
        let mut bytes = [0; HEAD_BYTES + TEXT_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2), ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let len = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(received) => received.bytes,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let (mut reply, mut ours) = (None, false);
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmRights(fds) => reply = fds.into_iter().next(),
                RecvAncillaryMessage::ScmCredentials(sender) => ours = sender.uid == getuid(),
                _ => {}
            }
        }
        if let Some(head) = Head::from_bytes(&bytes[..len]).filter(|_| ours) {
            return Ok(Some(Message { head, text: bytes[HEAD_BYTES..len].to_vec(), reply }));
        }
    }
}

pub(crate) struct Server<'a> {
    pub(crate) service: &'a Service<'a>,
    pub(crate) chosen: Chosen,
    pub(crate) began_from: Option<PathBuf>,
    pub(crate) folder: Folder,
    pub(crate) links: BTreeMap<u64, Served>,
    next: u64,
    pub(crate) ledger: Ledger,
}

impl Server<'_> {
    fn answer(&mut self, message: Message) {
        let Message { head, text, reply } = message;
        match head.kind {
            kind if kind == Kind::Hello as u32 => self.ledger.hello(head.pid),
            kind if kind == Kind::Link as u32 => self.make_link(reply),
            kind if kind == Kind::Took as u32 => {
                self.ledger.took(head.pid, head.id, head.value, head.at_ns);
                if let (Some(reply), Some(served)) = (reply, self.links.get_mut(&head.id)) {
                    // Dropped otherwise, which lets it go on.
                    if !served.written {
                        served.held.push(reply);
                    }
                }
            }
            kind if kind == Kind::Exec as u32 => {
                self.ledger.becomes(head.pid, head.value as i32, &text, head.at_ns);
            }
            kind if kind == Kind::Reaped as u32 => self.ledger.reaped(&head),
            kind if kind == Kind::Command as u32 => {
                let text = String::from_utf8_lossy(&text);
                let words: Vec<&str> = text.split_terminator('\0').collect();
                let done = self.command(&words);
                if let Some(reply) = reply {
                    tell::answer(reply, &done);
                }
            }
            _ => {}
        }
    }

    fn make_link(&mut self, reply: Option<OwnedFd>) {
        let Some(reply) = reply else { return };
        let id = self.next;
        self.next += 1;
        match self.connect() {
            Ok(mut link) => {
                let order = self.chosen.via.order();
                let hold = order == Order::Sequential;
                let (Some(read), Some(write)) = (link.take_read(), link.take_write()) else { return };
                let answer = Reply { id, hold_reader: u64::from(hold), error: 0 };
                send(&reply, &answer, &[read.as_fd(), write.as_fd()]);
                drop((read, write));
                let granted = link.granted().clone();
                let served = Served {
                    link: Some(link),
                    spec: self.chosen.via.to_string(),
                    granted,
                    order,
                    held: Vec::new(),
                    written: !hold,
                    report: LinkReport::default(),
                };
                self.links.insert(id, served);
            }
            Err(error) => {
                complain(&error.to_string());
                let errno = match &error {
                    OpenError::System { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
                    _ => libc::EIO,
                };
                send(&reply, &Reply { id, hold_reader: 0, error: errno as u64 }, &[]);
            }
        }
    }

    fn connect(&self) -> Result<Link, OpenError> {
        let mut link = self.chosen.via.connect(&self.folder)?;
        let open = self.links.values().filter(|served| served.link.is_some()).count();
        match open {
            ..LARGE_PIPES => {}
            LARGE_PIPES..MIDDLING_PIPES => link.hold_at_most(MIDDLING_BYTES),
            _ => link.hold_at_most(SMALL_BYTES),
        }
        Ok(link)
    }

    /// Lets held readers go on whose writers are done, and closes the books of links that are over.
    pub(crate) fn look_at_links(&mut self) {
        for served in self.links.values_mut() {
            let Some(link) = &served.link else { continue };
            if !served.written && link.is_written().unwrap_or(true) {
                served.written = true;
                served.held.clear();
            }
            if served.written && (served.order == Order::Sequential || link.is_over()) {
                served.close();
            }
        }
    }

    /// The shell has ended: what is on its way arrives.
    fn settle(&mut self) {
        let began = Instant::now();
        while self.links.values().any(|served| served.link.is_some()) && began.elapsed() < LAST_BYTES {
            self.look_at_links();
            std::thread::sleep(Duration::from_micros(200));
            // Whoever still lives, in the background, keeps its link.
            if self.ledger.living().next().is_some() && began.elapsed() > LAST_BYTES / 10 {
                break;
            }
        }
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for (number, joined) in self.ledger.pipelines().iter().enumerate() {
            let pipeline = number as u32;
            let stages =
                joined.processes.iter().filter_map(|index| self.ledger.stage(pipeline, joined, *index));
            summary.stages.extend(stages);
            for id in &joined.links {
                let Some(served) = self.links.get(id) else { continue };
                summary.cut_short |= served.report.cut_short || served.report.full;
                summary.links.push(served.record(pipeline));
            }
        }
        summary
    }

    /// hosepipe was killed: those whom it gave links go with it, before their links do, so that data cut short does not look like
    /// a normal end.
    fn end_everything(&mut self) {
        if let Some(shell) = self.ledger.shell() {
            crate::signals::send(shell, Signal::KILL.as_raw());
        }
        for process in self.ledger.living() {
            crate::signals::send(process.pid, Signal::KILL.as_raw());
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

impl Served {
    fn close(&mut self) {
        if let Some(link) = self.link.take() {
            self.report = link.finish();
            if let Some(trouble) = &self.report.trouble {
                complain(trouble);
            }
        }
    }

    pub(crate) fn record(&self, pipeline: u32) -> LinkRecord {
        let report = self.report.clone();
        LinkRecord {
            pipeline,
            spec: self.spec.clone(),
            granted: self.granted.clone(),
            bytes: report.bytes,
            stored_bytes: report.stored_bytes,
            path: report.path.map(|path| path.to_string_lossy().into_owned()),
            relay: report.relay,
            kept: None,
            trouble: report.trouble,
        }
    }
}

/// Says on standard error what went wrong with a link.
fn complain(what: &str) {
    // That it cannot be said changes nothing.
    let _ = writeln!(io::stderr(), "hosepipe: {what}");
}

fn send(to: &OwnedFd, reply: &Reply, fds: &[std::os::fd::BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    // A shell that was killed meanwhile needs no answer.
    let _ = sendmsg(to, &[IoSlice::new(&reply.to_bytes())], &mut control, SendFlags::NOSIGNAL);
}
