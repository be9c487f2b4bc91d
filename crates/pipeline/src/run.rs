//! A text in the user's own shell, whose pipelines run over a link of our choice. The shell does not know: a library that is
//! preloaded into it stands in for pipe(2), and is gone from the environment before the shell reads it.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mechanism::{Folder, OpenError};
use model::{Bottleneck, LatencyRecord, LinkRecord, StageRecord, describe_errno, monotonic_ns};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::{ForkResult, fork};
use pipes::protocol::{Config, Head, NO_POSIX_SPAWN, Plain, Usage, asks, kind, mode};
use pipes::sites::Sites;
use process::{
    Environment, LeftCleaner, Reach, Refused, Supervisor, become_program, leave, reap, shown_status, signals,
    spawn_refusing,
};
use rustix::io::{Errno, fcntl_getfd};
use rustix::process::{Pid, PidfdFlags, Resource, getpid, getrlimit, pidfd_open, setrlimit, setsid};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::command::{Prompt, PromptPipes};
use crate::keep::Keep;
use crate::learn;
use crate::line_buffered::LineBuffered;
use crate::link::{Link, LinkSpec, refused};
use crate::preload::Library;
use crate::serve::{Front, Service, StagePainter, serve};
use crate::shell::{Kind, Shell};
use crate::socket::Socket;

/// What a shell is to run.
pub struct Text<'a> {
    /// The shell.
    pub shell: &'a Shell,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Descriptors that it has as others, instead of ours of that number (see [`spawn`]).
    pub streams: Vec<(OwnedFd, RawFd)>,
    /// What stands between the stages of its pipelines, at a prompt until another is chosen.
    pub via: &'a LinkSpec,
    /// Where what flows through the links is kept.
    pub keep: Option<Rc<Keep>>,
    /// How its stages are sampled while they run; `None` where they are not.
    pub watched: Option<Watched<'a>>,
    /// Which stages are made to write line by line; `None` for none.
    pub line_buffered: Option<LineBuffered>,
    /// Its stages are started so that their large buffers do not lie 16 bytes into a page.
    pub align_buffers: bool,
    /// Whether it is wanted what its stages and links did. Otherwise the [`Summary`] only says whether something was cut short.
    pub recorded: bool,
    /// System calls that the shell, and all that it starts, finds missing.
    pub without: Option<&'a Refused>,
    /// What is added to its prompt.
    pub prompt: Option<Prompt<'a>>,
    /// What the shell is used for.
    pub shell_use: ShellUse,
}

/// Decides whether this process becomes the shell, and which processes get a signal that is sent to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellUse {
    /// A person types into it: this process becomes the shell over every link, so that the terminal's signals reach it at once. Data that
    /// was cut short is no part of the status.
    Interactive,
    /// A script of `hosepipe sh`: this process becomes the shell over a plain pipe; over another link it starts the shell, and passes signals
    /// to the shell alone.
    Script,
    /// `hosepipe run`: this process starts the shell, and passes signals to all that has come from it, so that no stage is left.
    Run,
    /// The same for a trial of a comparison: asked to end a second time, it is killed.
    Trial,
}

impl ShellUse {
    fn reach(self) -> Reach {
        match self {
            Self::Interactive | Self::Script => Reach::Child,
            Self::Run => Reach::AllBelow,
            Self::Trial => Reach::Trial,
        }
    }
}

/// How stages are sampled.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// Bytes are counted, by a relay where there is no other way.
    pub meter: bool,
    /// Lines are counted, too.
    pub lines: bool,
    /// It is noted when each line comes into a link.
    pub latency: bool,
    /// Shows what is seen, while it is seen, in the process that serves the links.
    pub show: Option<&'a StagePainter<'a>>,
}

/// Where a shell's functions find their server.
pub struct Names {
    /// The abstract name of its socket, for [`crate::send_command`].
    pub socket: String,
    /// A file into which a line is written before a prompt.
    pub ask: String,
    /// A file that then gives a line: what the prompt says of the link.
    pub answer: String,
}

/// What a shell with a prompt begins with: made by the process that serves it.
#[derive(Default, Serialize, Deserialize)]
pub struct Begin {
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Variables of its environment that are not this program's.
    pub variables: Vec<(String, OsString)>,
    /// What it reads at its start as /proc/PID/fd/N of the server.
    #[serde(skip)]
    pub file: Option<OwnedFd>,
    /// A folder that it reads at its start.
    #[serde(skip)]
    pub folder: Option<Folder>,
}

/// Why a text could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The system refused something.
    #[error("cannot run the shell {shell}: {call}: {}", describe_errno(.source))]
    System {
        /// The shell.
        shell: String,
        /// What was asked.
        call: &'static str,
        /// What it answered.
        source: io::Error,
    },
    /// There is no such link here, what a prompt begins with could not be made, or a run that was started reported a problem.
    #[error("{0}")]
    Reported(String),
    /// A run that was started ended with this status, and reported nothing.
    #[error("hosepipe run ended with status {0} and said nothing of its links")]
    Silent(i32),
    /// The server was killed.
    #[error("the process that serves the links was killed; what flowed through them was cut short")]
    Killed,
}

/// What the stages and links of a text did, as the server of the shell reports it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Every stage that has ended, pipeline by pipeline.
    pub stages: Vec<StageRecord>,
    /// Every link, pipeline by pipeline.
    pub links: Vec<LinkRecord>,
    /// How long lines took, pipeline by pipeline, where that was noted and a pipeline had two links with bytes in them.
    pub latency: Vec<LatencyRecord>,
    /// What held the longest pipeline up, where stages were sampled.
    pub bottleneck: Option<Bottleneck>,
    /// Some reader saw an end that was none.
    pub cut_short: bool,
    /// Programs in the background still hold links: the server goes on.
    pub serves_on: bool,
}

/// A text that has run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How the shell ended.
    pub ended: ExitStatus,
    /// From the shell's start until it ended.
    pub wall: Duration,
    /// What its stages and links did.
    pub summary: Summary,
}

impl Ran {
    /// The status of the whole: the shell's, but data that was cut short must not look like a normal end.
    pub fn status(&self) -> i32 {
        let status = shown_status(self.ended);
        if self.summary.cut_short { status.max(1) } else { status }
    }
}

/// How long a text over a plain pipe may run before another process is started that ends it if this one is killed: starting takes longer.
const UNGUARDED: Duration = Duration::from_millis(10);

/// Runs a text, or a shell with a prompt, whose functions can change the link at any time. Where this process has nothing left to do, it
/// becomes the shell: signals, jobs, descriptors and `$PPID` are then those of a shell that was started without hosepipe.
///
/// # Errors
/// The shell or a link cannot be had.
pub fn run(text: &Text<'_>) -> Result<Ran, RunError> {
    let system = |call| text.shell.refused(call);
    text.shell.allows(text.via).map_err(RunError::Reported)?;
    let library = Library::load().map_err(system("memfd_create"))?;
    // That it can be had here is better known before the shell asks for it. To another host one more login would take as long as the run.
    let link = (!text.via.leaves()).then(|| try_link(text.via, text.keep.is_some())).transpose()?;
    let granted = link.as_ref().and_then(|link| link.record().granted.get("pipe_bytes").copied());
    drop(link);
    let sites = sites_of(text.shell, &library)?;
    let watched = text.keep.is_some() || text.watched.is_some() || text.prompt.is_some();
    // Over a plain pipe that is not watched the library asks for nothing.
    let plain = text.via.is_pipe() && !watched && !text.changes_programs();
    let mode = if text.via.is_sized() { mode::EXACTLY } else { mode::OWN };
    let own = |sites| Config { mode, argument: granted.unwrap_or(0), sites, ..Config::OFF };
    if plain && matches!(text.shell_use, ShellUse::Interactive | ShellUse::Script) {
        return Err(Start::new(text, Begin::default(), library, sites.map(own)).become_shell(text.shell));
    }
    let socket = Socket::open().map_err(system("a socket"))?;
    let guarded = |sites| Config { parent: getpid().as_raw_pid() as u64, ..own(sites) };
    let config = sites.map(|sites| if plain { guarded(sites) } else { asking(sites, &socket.name, text) });
    if text.shell_use == ShellUse::Interactive {
        // The shell would have it for a child; the server starts one of its own.
        mechanism::end_cleaner();
        let begin = serve_interactive(text, socket)?;
        return Err(Start::new(text, begin, library, config).become_shell(text.shell));
    }
    let supervisor = Supervisor::new(text.shell_use.reach()).map_err(system("signalfd"))?;
    let mut running = Running::start(text, Start::new(text, Begin::default(), library, config), supervisor)?;
    // Over a plain pipe the server only ends what is left when this process is killed; a shell with the library ends by itself.
    let ends_with_us = plain && config.is_some();
    if ends_with_us && !text.recorded && running.supervisor.ends_within(UNGUARDED).map_err(system("poll"))? {
        let (ended, _) = running.supervisor.wait(None, &mut || None).map_err(system("wait4"))?;
        return Ok(Ran { ended, wall: running.began.elapsed(), summary: Summary::default() });
    }
    let (its_pid, server, cleaner) = running.serve(text, socket).map_err(system("fork"))?;
    // Where the text writes elsewhere, standard output is for the record.
    release_descriptors(!text.streams.is_empty());
    let ended = running.supervisor.wait(Some(server.as_fd()), &mut || None);
    let (ended, _) = ended.map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => RunError::Killed,
        _ => system("wait4")(source),
    })?;
    let wall = running.began.elapsed();
    let summary = running.end(ended, server).map_err(|_| RunError::Killed)?;
    if summary.serves_on {
        std::mem::forget(cleaner);
    } else {
        // Process 1 may reap nothing.
        let _ = reap(its_pid);
        drop(cleaner);
    }
    Ok(Ran { ended, wall, summary })
}

/// What a shell is started with.
struct Start {
    words: Vec<OsString>,
    environment: Environment,
    /// Open until the shell has begun.
    _library: Option<Library>,
}

impl Start {
    /// `config` is `None` where the shell is to run without the library.
    fn new(text: &Text<'_>, begin: Begin, library: Library, config: Option<Config>) -> Self {
        let shell = text.shell;
        let mut environment = match config {
            Some(config) => library.environment(config),
            None => std::env::vars_os().collect(),
        };
        let mut variables = begin.variables;
        // As a shell would have it from another: `_` is the program's file (bash(1)).
        variables.extend(std::env::var_os("_").map(|_| ("_".to_owned(), shell.path.clone().into())));
        if shell.kind == Kind::Fish && config.is_some_and(|config| config.mode == mode::ASK) {
            // What posix_spawn(3) does in the new process happens inside the C library, where the library in the shell does not see
            // it. No program that fish starts has this variable: the library takes it away.
            let no_spawn = str::from_utf8(NO_POSIX_SPAWN.0).map(str::to_owned);
            variables.extend(no_spawn.map(|name| (name, OsStr::from_bytes(NO_POSIX_SPAWN.1).to_owned())));
        }
        environment.retain(|(name, _)| variables.iter().all(|(other, _)| name != other.as_str()));
        environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value)));
        let words = [vec![shell.name.clone()], begin.arguments, text.arguments.clone()].concat();
        Self { words, environment, _library: config.map(|_| library) }
    }

    /// This process becomes the shell. Returns where that fails.
    fn become_shell(self, shell: &Shell) -> RunError {
        shell.refused("execve")(become_program(&shell.path, &self.words, &self.environment))
    }
}

/// Starts the process that serves an interactive shell, which this process becomes. Gives what the shell begins with.
fn serve_interactive(text: &Text<'_>, socket: Socket) -> Result<Begin, RunError> {
    let system = |call| text.shell.refused(call);
    let shell = getpid();
    let ended =
        pidfd_open(shell, PidfdFlags::empty()).map_err(io::Error::from).map_err(system("pidfd_open"))?;
    let (ours, theirs) = UnixStream::pair().map_err(system("socketpair"))?;
    // SAFETY: this program has no other thread yet that could hold a lock.
    let forked = unsafe { fork() }.map_err(io::Error::from).map_err(system("fork"))?;
    let ForkResult::Parent { child } = forked else {
        drop(ours);
        // SAFETY: as above.
        if !unsafe { fork() }.is_ok_and(ForkResult::is_child) {
            leave(0);
        }
        become_server();
        let served = interactive_server(text, &socket, (shell, ended), theirs);
        mechanism::end_cleaner();
        leave(i32::from(served.is_err()))
    };
    drop((theirs, socket));
    let _ = Pid::from_raw(child.as_raw()).map(reap);
    let begin: Result<Begin, String> = serde_json::from_reader(ours).map_err(|_| RunError::Killed)?;
    begin.map_err(RunError::Reported)
}

fn interactive_server(
    text: &Text<'_>,
    socket: &Socket,
    (shell, ended): (Pid, OwnedFd),
    front: UnixStream,
) -> io::Result<()> {
    let prompt_pipes = text.prompt.map(|_| PromptPipes::open()).transpose()?;
    let begin = match (&text.prompt, &prompt_pipes) {
        (Some(prompt), Some(pipes)) => {
            (prompt.begin)(&pipes.names(socket)).map_err(|problem| problem.to_string())
        }
        _ => Ok(Begin::default()),
    };
    serde_json::to_writer(&front, &begin)?;
    drop(front);
    let Ok(begin) = begin else { return Ok(()) };
    let began_from = begin.folder.as_ref().and_then(|folder| folder.path().ok());
    let service = Service { text, prompt_pipes: prompt_pipes.as_ref(), began_from };
    serve(&service, socket, shell.as_raw_pid(), Front::Shell(ended))
}

/// Makes this process, just forked, one that serves links.
fn become_server() {
    // `killall hosepipe` does not kill this process, which then ends the rest.
    let _ = rustix::thread::set_name(c"pipe-links");
    // Whatever limit the user has for one program, this one serves many.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let _ = setrlimit(Resource::Nofile, files);
    // What the terminal sends is for the shell, and the shell decides what that means.
    let _ = setsid();
    signals::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE]);
    release_descriptors(false);
}

/// Closes the copies of descriptors that were inherited and are now the shell's: a lock, or the end of a pipe, does not last until this
/// process ends. Standard error stays, for what there is to say.
pub(crate) fn release_descriptors(keep_output: bool) {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        if !keep_output {
            let _ = rustix::stdio::dup2_stdout(&null);
        }
    }
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|number| *number > 2).collect::<Vec<i32>>() {
        // SAFETY: what is not closed by execve(2) was inherited: every descriptor of our own is, and no value here owns this one.
        unsafe {
            if fcntl_getfd(BorrowedFd::borrow_raw(number)).is_ok_and(|flags| flags.is_empty()) {
                rustix::io::close(number);
            }
        }
    }
}

/// A library that asks the server at this socket for each link, and, where a text needs it, reports usage and asks about programs.
fn asking(sites: Sites, socket: &str, text: &Text<'_>) -> Config {
    let usage = if text.watched.is_some() { asks::USAGE } else { 0 };
    let changes = if text.changes_programs() { asks::CHANGES } else { 0 };
    let mut config = Config { mode: mode::ASK, argument: usage | changes, sites, ..Config::OFF };
    config.name[..socket.len()].copy_from_slice(socket.as_bytes());
    config
}

/// A shell that was started.
struct Running {
    supervisor: Supervisor,
    pid: i32,
    began: Instant,
    /// What children of this process had used before.
    used: Usage,
}

impl Running {
    fn start(text: &Text<'_>, start: Start, mut supervisor: Supervisor) -> Result<Self, RunError> {
        let shell = text.shell;
        let (used, began) = (used_by_children(), Instant::now());
        let started =
            spawn_refusing(&shell.path, &start.words, &start.environment, &text.streams, text.without);
        let pid = started.map_err(shell.refused("posix_spawn"))?;
        supervisor.watch(pid).map_err(shell.refused("pidfd_open"))?;
        Ok(Self { supervisor, pid, began, used })
    }

    /// Starts the process that serves the links, and ends what was started if this one is killed; its number, and the way to talk to it.
    /// The shell begins meanwhile: what it asks waits.
    fn serve(&self, text: &Text<'_>, socket: Socket) -> io::Result<(Pid, UnixStream, Option<LeftCleaner>)> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: this program has no other thread yet that could hold a lock.
        if let ForkResult::Parent { child } = unsafe { fork() }? {
            // What is made from now on, the server makes. Should it be killed, the cleaner need not wait for this process.
            let cleaner = mechanism::leave_cleaner();
            return Ok((Pid::from_raw(child.as_raw()).ok_or(Errno::SRCH)?, ours, cleaner));
        }
        drop(ours);
        become_server();
        let service = Service { text, prompt_pipes: None, began_from: None };
        let served = serve(&service, &socket, self.pid, Front::Waiting(theirs));
        mechanism::end_cleaner();
        leave(i32::from(served.is_err()))
    }

    /// Tells the server of the shell's end, as the library tells of the ends of others; what it says to that.
    fn end(&self, ended: ExitStatus, mut server: UnixStream) -> io::Result<Summary> {
        let now = used_by_children();
        let usage = Usage {
            user_us: now.user_us - self.used.user_us,
            system_us: now.system_us - self.used.system_us,
            max_rss_kib: now.max_rss_kib,
        };
        let value = i64::from(ended.into_raw());
        let head = Head {
            kind: kind::REAPED,
            pid: self.pid,
            at_ns: monotonic_ns(),
            value,
            usage,
            ..Head::default()
        };
        server.write_all(head.as_bytes())?;
        Ok(serde_json::from_reader(io::BufReader::new(server))?)
    }
}

fn used_by_children() -> Usage {
    let microseconds = |time: TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    // It fails only for bad arguments.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Usage::default(), |used| Usage {
        user_us: microseconds(used.user_time()),
        system_us: microseconds(used.system_time()),
        max_rss_kib: used.max_rss() as u64,
    })
}

impl Shell {
    /// What to say where a system call was refused.
    pub(crate) fn refused(&self, call: &'static str) -> impl FnOnce(io::Error) -> RunError + use<> {
        let shell = self.path.display().to_string();
        move |source| RunError::System { shell, call, source }
    }
}

/// The arguments with which a shell runs a text.
pub fn text_arguments(shell: &Shell, text: &OsStr) -> Vec<OsString> {
    // What looks like an option is none behind this; fish would take it for the text.
    let looks_like_one = matches!(text.as_bytes().first(), Some(b'-' | b'+'));
    let end_of_options = (looks_like_one && shell.kind != Kind::Fish).then_some("--");
    let mut text = text.to_owned();
    if shell.kind == Kind::Yash {
        // It would become the last program, and wait for none of the others, if it saw the end behind that.
        text.push("\n");
    }
    ["-c"].into_iter().chain(end_of_options).map(OsString::from).chain([text]).collect()
}

/// A link, to see that one can be had here, and that what flows through it can be kept where that is wanted.
fn try_link(via: &LinkSpec, keep: bool) -> Result<Link, RunError> {
    let made = || {
        let mut link = via.connect(&Folder::private())?;
        if keep {
            link.keep(File::options().write(true).open("/dev/null").map_err(refused("/dev/null"))?)?;
        }
        Ok(link)
    };
    made().map_err(|error: OpenError| RunError::Reported(via.refusal(&error)))
}

/// Which pipes are a shell's pipelines'; says so where nothing tells them.
fn sites_of(shell: &Shell, library: &Library) -> Result<Option<Sites>, RunError> {
    let known = match library.is_reachable() {
        true => learn::sites(shell, library).map_err(shell.refused("running it on examples"))?,
        false => None,
    };
    if known.is_none() {
        let _ = writeln!(
            io::stderr(),
            "hosepipe: the pipelines of {} cannot be told from its other pipes: they stay its own",
            shell.path.display()
        );
    }
    Ok(known)
}
