//! How one stage is started: as a program, where that is the same as what bash would do, else by a shell that is
//! given the stage's text and becomes the command where it can.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, MemfdFlags, Mode, OFlags, memfd_create, open, seek, stat};
use rustix::io::fcntl_dupfd_cloexec;

use crate::builtins;
use crate::session::Session;
use crate::spawn::{FdAction, Group, spawn};
use crate::syntax::{Command, Opening, Redirection, Stage, Start};

/// Descriptors of ours that stages are given are moved up here, above the numbers that command lines use, so that
/// making one descriptor never overwrites the source of another.
const SOURCES_FROM: RawFd = 64;

/// The ends a stage is given; where there is none it has the whole pipeline's.
#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
}

/// Starts a stage and gives its process number. Both ends are closed here when this returns.
///
/// # Errors
/// The shell itself cannot be started.
pub(crate) fn launch(stage: &Stage, ends: Ends, session: &Session, group: Group) -> io::Result<i32> {
    let table = Table::new(&ends)?;
    if let Start::Direct(command) = &stage.start
        && let Some(pid) = launch_program(command, stage.stderr_too, &table, session, group)
    {
        return Ok(pid);
    }
    // `|&` stands for `2>&1 |`, which comes after the stage's own redirections; where a here-document follows, the
    // text has no end to put it at.
    let in_text = stage.stderr_too && !stage.text.contains("<<");
    let text = if in_text { format!("{} 2>&1", stage.text) } else { stage.text.clone() };
    let text = session.text_for_shell(&text, stage.line);
    launch_shell(&text, stage.stderr_too && !in_text, &table, session, group)
}

/// Starts a shell on a text, with our own standard descriptors.
///
/// # Errors
/// It cannot be started.
pub(crate) fn launch_text(text: &str, session: &Session, group: Group) -> io::Result<i32> {
    launch_shell(text, false, &Table::new(&Ends::default())?, session, group)
}

/// Runs a stage that is a builtin and over at once; gives its status. `None` where a process is needed.
///
/// # Errors
/// Its link does not take what it writes.
pub(crate) fn at_once(stage: &Stage, ends: &Ends, session: &Session) -> io::Result<Option<i32>> {
    let Start::Direct(command) = &stage.start else { return Ok(None) };
    let plain = command.redirections.is_empty() && command.assignments.is_empty();
    if !plain || session.is_function(&command.words[0]) {
        return Ok(None);
    }
    match (builtins::instant(&command.words), &ends.stdout) {
        (Some((status, output)), _) if output.is_empty() => Ok(Some(status)),
        // A link is empty yet and its reader is there; the whole pipeline's own output may be neither.
        (Some((status, output)), Some(stdout)) => {
            let written = rustix::io::retry_on_intr(|| rustix::io::write(stdout, &output))?;
            if written == output.len() { Ok(Some(status)) } else { Err(io::ErrorKind::WriteZero.into()) }
        }
        _ => Ok(None),
    }
}

/// Whether a stage needs no shell, and leaves nothing behind for what follows.
pub(crate) fn needs_no_shell(stage: &Stage, session: &Session) -> bool {
    let Start::Direct(command) = &stage.start else { return false };
    let name = &command.words[0];
    is_program(&command.words, session)
        || (builtins::instant(&command.words).is_some() && !session.is_function(name))
}

/// Whether the program of this name may be started in the shell's stead.
fn is_program(words: &[String], session: &Session) -> bool {
    words.first().is_some_and(|name| {
        !session.is_function(name) && (!builtins::is_builtin(name) || builtins::program_does_the_same(words))
    })
}

/// `None` where anything is not as it should be: bash then says so, in its own words and with its own status.
fn launch_program(
    command: &Command,
    stderr_too: bool,
    ends: &Table,
    session: &Session,
    group: Group,
) -> Option<i32> {
    if !is_program(&command.words, session) {
        return None;
    }
    let assigned_path = command.assignments.iter().any(|(name, _)| name == "PATH");
    let path = if assigned_path { None } else { session.program(&command.words[0]) }?;
    let writes =
        |redirection: &Redirection| matches!(redirection, Redirection::Open { how: Opening::Write, .. });
    if session.options.noclobber && command.redirections.iter().any(writes) {
        return None;
    }
    let mut table = ends.copy();
    for redirection in &command.redirections {
        table.redirect(redirection)?;
    }
    table.finish(stderr_too);
    let mut environment = session.environment.clone();
    for (name, value) in &command.assignments {
        environment.set(name, value);
    }
    let arguments: Option<Vec<CString>> =
        command.words.iter().map(|word| CString::new(word.as_bytes()).ok()).collect();
    let entries = environment.entries_for(path.as_os_str());
    // A script without `#!` (ENOEXEC), an argument list too long: bash knows what to do, or to say.
    spawn(&c_string(&path)?, &arguments?, &entries, &table.actions(), group).ok()
}

fn launch_shell(
    text: &str,
    stderr_too: bool,
    ends: &Table,
    session: &Session,
    group: Group,
) -> io::Result<i32> {
    let mut table = ends.copy();
    table.finish(stderr_too);
    let path = &session.shell.path;
    let name = path.file_name().unwrap_or(path.as_os_str());
    // The text may begin with a dash.
    let pipefail: &[&[u8]] = if session.options.pipefail { &[b"-o", b"pipefail"] } else { &[] };
    let arguments = [&[name.as_bytes()], pipefail, &[b"-c", b"--", text.as_bytes()]].concat();
    let arguments = arguments.into_iter().map(CString::new);
    let arguments: Result<Vec<CString>, _> = arguments.collect();
    let mut environment = session.environment.clone();
    // The shell counts itself in again.
    environment.set("SHLVL", environment.depth().saturating_sub(1).to_string());
    let program = c_string(path).ok_or(io::ErrorKind::InvalidInput)?;
    spawn(&program, &arguments?, &environment.entries_for(path.as_os_str()), &table.actions(), group)
}

fn c_string(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// What the stage's descriptors will be, by number.
struct Table {
    slots: BTreeMap<RawFd, Slot>,
    /// Descriptors of ours that live until the stage has started.
    held: Vec<std::rc::Rc<OwnedFd>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// A copy of this descriptor of ours.
    Of(RawFd),
    Closed,
}

impl Table {
    fn new(ends: &Ends) -> io::Result<Self> {
        let mut table = Self { slots: BTreeMap::new(), held: Vec::new() };
        let links = [(0, &ends.stdin), (1, &ends.stdout)];
        let links = links.into_iter().filter_map(|(number, end)| Some((number, end.as_ref()?.as_fd())));
        for (number, end) in links {
            table.hold(number, fcntl_dupfd_cloexec(end, SOURCES_FROM)?);
        }
        Ok(table)
    }

    fn copy(&self) -> Self {
        Self { slots: self.slots.clone(), held: self.held.clone() }
    }

    fn hold(&mut self, number: RawFd, fd: OwnedFd) {
        self.slots.insert(number, Slot::Of(fd.as_raw_fd()));
        self.held.push(std::rc::Rc::new(fd));
    }

    /// Makes a redirection; `None` where it fails or where opening could wait.
    fn redirect(&mut self, redirection: &Redirection) -> Option<()> {
        match redirection {
            Redirection::Open { fd, path, how } => {
                // Opening a FIFO waits for its other end, which must not hold the other stages up.
                let waits = stat(path.as_str())
                    .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo);
                if waits || path.is_empty() || means_the_stages_own(path) {
                    return None;
                }
                let opened = open(path.as_str(), flags(*how) | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
                self.hold_high(*fd, opened.ok()?)
            }
            Redirection::Text { fd, text } => {
                let file = memfd_create("here-document", MemfdFlags::CLOEXEC).ok()?;
                std::fs::File::from(file.try_clone().ok()?).write_all(text.as_bytes()).ok()?;
                seek(&file, rustix::fs::SeekFrom::Start(0)).ok()?;
                self.hold_high(*fd, file)
            }
            Redirection::Duplicate { fd, from } => {
                let slot = self.slots.get(from).copied().or_else(|| self.inherited(*from))?;
                (slot != Slot::Closed).then(|| {
                    self.slots.insert(*fd, slot);
                })
            }
            Redirection::Close { fd } => {
                self.slots.insert(*fd, Slot::Closed);
                Some(())
            }
        }
    }

    /// A standard descriptor this whole program was given. Whether a higher one is the user's or ours, a shell
    /// that is given only the user's can tell.
    fn inherited(&mut self, number: RawFd) -> Option<Slot> {
        let moved = match number {
            0 => fcntl_dupfd_cloexec(rustix::stdio::stdin(), SOURCES_FROM),
            1 => fcntl_dupfd_cloexec(rustix::stdio::stdout(), SOURCES_FROM),
            2 => fcntl_dupfd_cloexec(rustix::stdio::stderr(), SOURCES_FROM),
            _ => return None,
        };
        let moved = moved.ok()?;
        let slot = Slot::Of(moved.as_raw_fd());
        self.held.push(std::rc::Rc::new(moved));
        Some(slot)
    }

    fn hold_high(&mut self, number: RawFd, fd: OwnedFd) -> Option<()> {
        let moved = fcntl_dupfd_cloexec(&fd, SOURCES_FROM).ok()?;
        self.hold(number, moved);
        Some(())
    }

    /// `|&` comes after all redirections of the command (bash(1), Pipelines).
    fn finish(&mut self, stderr_too: bool) {
        if stderr_too && let Some(slot) = self.slots.get(&1).copied() {
            self.slots.insert(2, slot);
        }
    }

    fn actions(&self) -> Vec<FdAction> {
        let action = |(number, slot): (&RawFd, &Slot)| match slot {
            Slot::Of(source) => FdAction::Copy { source: *source, number: *number },
            Slot::Closed => FdAction::Close { number: *number },
        };
        self.slots.iter().map(action).collect()
    }
}

/// Names that lead to the opener's own descriptors: opened here they would be ours.
fn means_the_stages_own(path: &str) -> bool {
    ["/dev/fd", "/dev/std", "/dev/tcp/", "/dev/udp/", "/proc/self", "/proc/thread-self"]
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

fn flags(how: Opening) -> OFlags {
    match how {
        Opening::Read => OFlags::RDONLY,
        Opening::Write => OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC,
        Opening::Append => OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND,
        Opening::ReadWrite => OFlags::RDWR | OFlags::CREATE,
    }
}
