//! What the programs of a shell are started with: the server's answer, where stages are to write line by line or to have their buffers aligned.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mechanism::{OpenError, Order};
use model::StageRecord;
use pipes::protocol::{CHANGE_BYTES_MAX, Head};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::Server;
use super::links::Served;
use crate::align;
use crate::line_buffered::{LineBuffered, Means, Way, at_terminal};
use crate::link::{Link, refused};
use crate::program_file::Program;
use crate::run::Text;
use crate::socket;

/// How long the number of a stage is awaited: until the stages before it have reported.
const NUMBER_WAIT: Duration = Duration::from_millis(500);
/// Most programs whose way is printed.
const PRINTED_MAX: usize = 32;

/// The programs that are started in another way.
pub(super) struct Programs {
    /// Those that are made to write line by line.
    line_buffered: Option<(LineBuffered, Means)>,
    aligns: bool,
    asked: Vec<Asked>,
    printed: BTreeSet<String>,
    /// How each program was made to write line by line, by its PID.
    ways: HashMap<i32, String>,
    /// How its buffers were aligned.
    aligned: HashMap<i32, &'static str>,
}

impl Text<'_> {
    /// Whether it is asked what programs are started with.
    pub(crate) fn changes_programs(&self) -> bool {
        self.line_buffered.is_some() || self.align_buffers
    }
}

/// A process that waits for the answer.
struct Asked {
    head: Head,
    text: Vec<u8>,
    reply: OwnedFd,
    since: Instant,
}

impl Programs {
    /// `None` where programs are started as they are.
    pub(super) fn new(text: &Text<'_>) -> Option<Self> {
        text.changes_programs().then(|| Self {
            line_buffered: text.line_buffered.clone().map(|stages| (stages, Means::find())),
            aligns: text.align_buffers,
            asked: Vec::new(),
            printed: BTreeSet::new(),
            ways: HashMap::new(),
            aligned: HashMap::new(),
        })
    }

    pub(super) fn ask(&mut self, head: Head, text: Vec<u8>, reply: OwnedFd) {
        self.asked.push(Asked { head, text, reply, since: Instant::now() });
    }

    /// Whether a process waits for an answer.
    pub(super) fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// How a process was started, for its record.
    pub(super) fn complete(&self, record: &mut StageRecord) {
        let Some(pid) = record.pid else { return };
        record.line_buffered = self.ways.get(&pid).cloned();
        record.align_buffers = self.aligned.get(&pid).map(|words| (*words).to_owned());
    }
}

impl Server<'_> {
    /// Answers the processes whose stage is known, and those that have waited for it too long: their stage is one of those, rather than a
    /// line held back.
    pub(super) fn answer_programs(&mut self) {
        let Some(mut programs) = self.programs.take() else { return };
        for asked in std::mem::take(&mut programs.asked) {
            let is_chosen = match &programs.line_buffered {
                None => Some(false),
                Some((LineBuffered::All, _)) => Some(true),
                Some((LineBuffered::Stages(chosen), _)) => {
                    let number = self.ledger.stage_number(asked.head.pid);
                    number.map(|number| chosen.contains(&number))
                }
            };
            match is_chosen {
                None if asked.since.elapsed() < NUMBER_WAIT => programs.asked.push(asked),
                Some(false) if !programs.aligns => socket::send_bytes(&asked.reply, &[0], &[]),
                _ => self.change(&mut programs, &asked, is_chosen != Some(false)),
            }
        }
        self.programs = Some(programs);
    }

    /// Answers a process, which is to write `by_line`.
    fn change(&mut self, programs: &mut Programs, asked: &Asked, by_line: bool) {
        let pid = asked.head.pid;
        let mut words = asked.text.strip_suffix(b"\0").unwrap_or(&asked.text).split(|byte| *byte == 0);
        let path = PathBuf::from(String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned());
        // A relative path is of its folder.
        let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let arguments: Vec<&[u8]> = words.collect();
        let program = Program::read(&folder.join(&path), &arguments);
        let aligned = programs.aligns.then(|| align::way(&program));
        let way = programs.line_buffered.as_ref().filter(|_| by_line).map(|(_, means)| means.way(&program));
        let mut by_line = way.as_ref().map(|way| way.words.clone());
        let Way { mut changes, terminal, .. } = way.unwrap_or_default();
        changes.extend(aligned.as_ref().and_then(|(_, entry)| entry.clone()));
        // A terminal, or /dev/null.
        let is_shown =
            !fs::metadata(format!("/proc/{pid}/fd/1")).is_ok_and(|file| file.file_type().is_char_device());
        let mut output = None;
        if terminal && is_shown {
            match self.terminal_before_output(pid) {
                Ok(slave) => {
                    output = Some(slave);
                    changes.extend(at_terminal());
                }
                Err(why) => by_line = Some(format!("as it is: it needs a terminal, and {why}")),
            }
        }
        let mut answer = vec![0];
        for entry in &changes {
            answer.extend(entry);
            answer.push(0);
        }
        if answer.len() > CHANGE_BYTES_MAX {
            by_line = by_line.map(|_| "as it is: its variables would be too long".to_owned());
            answer.truncate(1);
        }
        let fds: Vec<_> = output.iter().map(AsFd::as_fd).collect();
        socket::send_bytes(&asked.reply, &answer, &fds);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let name = model::one_line(&name);
        let by_line = by_line.filter(|_| is_shown);
        // What is aligned is not worth a line; what is not may be.
        let as_it_is = aligned.as_ref().filter(|(_, entry)| entry.is_none());
        let lines = by_line.as_ref().map(|words| format!("line by line: {name}: {words}"));
        let lines = lines.into_iter().chain(as_it_is.map(|(words, _)| format!("buffers: {name}: {words}")));
        for line in lines {
            if programs.printed.len() < PRINTED_MAX && !programs.printed.contains(&line) {
                // That it cannot be said changes nothing.
                let _ = writeln!(io::stderr(), "hosepipe: {line}");
                programs.printed.insert(line);
            }
        }
        if self.service.text.recorded {
            programs.ways.extend(by_line.map(|words| (pid, words)));
            programs.aligned.extend(aligned.map(|(words, _)| (pid, words)));
        }
    }

    /// Puts a terminal, and a relay, before the pipe that is a process's standard output; its end for the process, or why there is none.
    fn terminal_before_output(&mut self, pid: i32) -> Result<OwnedFd, String> {
        let path = format!("/proc/{pid}/fd/1");
        let kind = fs::metadata(&path).map_err(|_| "its output cannot be opened".to_owned())?;
        if !kind.file_type().is_fifo() {
            return Err("its output is no pipe".to_owned());
        }
        let made = open_output(Path::new(&path)).and_then(Link::terminal_before);
        let mut link = made.map_err(|error| error.to_string())?;
        let slave = link.take_write().ok_or("its terminal has no end")?;
        let id = self.next;
        self.next += 1;
        self.links.insert(id, Served::relayed(link));
        self.open.insert(id);
        Ok(slave)
    }
}

/// A description of its own: what is set on it does not change the process's.
fn open_output(path: &Path) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let output = open(path, flags, Mode::empty()).map_err(io::Error::from).map_err(refused("open"))?;
    let is_pipe = fstat(&output).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if is_pipe { Ok(output) } else { Err(refused("open")(io::ErrorKind::InvalidInput.into())) }
}

impl Served {
    /// A terminal and a relay behind the program of one stage: in no pipeline of the ledger.
    fn relayed(link: Link) -> Self {
        Self::new(link, Order::Parallel, None, None)
    }
}
