//! A text in the user's own shell, whose pipelines run over a link of our choice. The shell is told nothing of it: a library that is
//! preloaded into it stands in for pipe(2), and is gone from the environment before the shell looks.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mechanism::{Folder, OpenError};
use model::{Bottleneck, LinkRecord, StageRecord, describe_errno, monotonic_ns};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::fork;
use pipes::protocol::{Config, Head, Plain, Usage, kind, mode};
use pipes::sites::Sites;
use process::signals;
use process::{Environment, Reach, Supervisor, leave, shown_status, spawn};
use rustix::process::{Resource, getrlimit, setrlimit, setsid};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::command::{Prompt, PromptPipes};
use crate::keep::Keep;
use crate::learn;
use crate::link::{Link, LinkSpec, refused};
use crate::preload::Library;
use crate::serve::{Picture, Service, serve};
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
    /// How its stages are looked at while they run; `None` where nobody wants to know.
    pub watched: Option<Watched<'a>>,
    /// What it shows, where it has a prompt.
    pub prompt: Option<Prompt<'a>>,
}

/// How stages are looked at.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// Bytes are counted, by a relay where there is no other way.
    pub meter: bool,
    /// Lines are counted, too.
    pub lines: bool,
    /// Shows what is seen, while it is seen, in the process that serves the links.
    pub show: Option<&'a Picture<'a>>,
}

/// Where a shell's functions find their server.
pub struct Names {
    /// The abstract name of its socket, for [`crate::tell`].
    pub socket: String,
    /// A file into which a line is written before a prompt.
    pub ask: String,
    /// A file that then gives a line: what the prompt says of the link.
    pub answer: String,
}

/// What a shell with a prompt begins with.
#[derive(Default)]
pub struct Begin {
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Variables of its environment that are not this program's.
    pub variables: Vec<(&'static str, OsString)>,
    /// What it reads at its start as /proc/PID/fd/N of this process.
    pub file: Option<OwnedFd>,
    /// A folder that it reads at its start.
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
    /// What a prompt begins with could not be made.
    #[error(transparent)]
    Begin(#[from] OpenError),
    /// There is no such link here, or a run that was started told why it could not be made.
    #[error("{0}")]
    Told(String),
    /// A run that was started ended with this status, and told nothing.
    #[error("hosepipe run ended with status {0} and said nothing of its links")]
    Silent(i32),
    /// The server was killed.
    #[error("the process that serves the links was killed; what flowed through them was cut short")]
    Killed,
}

/// What the stages and links of a text did: the server of the shell tells it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Every stage that has ended, pipeline by pipeline.
    pub stages: Vec<StageRecord>,
    /// Every link, pipeline by pipeline.
    pub links: Vec<LinkRecord>,
    /// What held the longest pipeline up, where somebody looked.
    pub bottleneck: Option<Bottleneck>,
    /// Some reader saw an end that was none.
    pub cut_short: bool,
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

/// Runs a text, or a shell with a prompt, whose functions can change the link at any time.
///
/// # Errors
/// The shell or a link cannot be had.
pub fn run(text: &Text<'_>) -> Result<Ran, RunError> {
    let system = |call| text.shell.refused(call);
    let library = Library::load().map_err(system("memfd_create"))?;
    // That it can be had here is better known before the shell asks for it. To another host one more login would take as long as the run.
    let link = (!text.via.leaves()).then(|| try_link(text.via, text.keep.is_some())).transpose()?;
    let socket = Socket::open().map_err(system("a socket"))?;
    let at_prompt = text.prompt.is_some();
    // Over a plain pipe nobody needs to be asked for one.
    let served = at_prompt || !text.via.is_pipe() || text.keep.is_some() || text.watched.is_some();
    let mut environment = match sites_of(text.shell, &library)? {
        None => std::env::vars_os().collect(),
        Some(sites) if served => library.asking(sites, &socket.name),
        Some(sites) => {
            let mode = if text.via.is_sized() { mode::EXACTLY } else { mode::OWN };
            let granted = link.as_ref().and_then(|link| link.record().granted.get("pipe_bytes"));
            let argument = granted.copied().unwrap_or(0);
            library.environment(Config { mode, argument, sites, ..Config::OFF })
        }
    };
    drop(link);
    let prompt_pipes = text.prompt.map(|_| PromptPipes::open()).transpose().map_err(system("pipe"))?;
    let begin = match text.prompt.zip(prompt_pipes.as_ref()) {
        Some((prompt, prompt_pipes)) => (prompt.begin)(&prompt_pipes.names(&socket))?,
        None => Begin::default(),
    };
    for (name, value) in begin.variables {
        environment.retain(|(other, _)| other != name);
        environment.push((name.into(), value));
    }
    let began_from = begin.folder.as_ref().and_then(|folder| folder.path().ok()).map(ToOwned::to_owned);
    let words = [&begin.arguments[..], &text.arguments].concat();
    let reach = if at_prompt { Reach::Child } else { Reach::AllBelow };
    let supervisor = Supervisor::new(reach).map_err(system("signalfd"))?;
    let mut running = Running::start(text, &words, environment, supervisor)?;
    drop(library);
    let service = Service { text, prompt_pipes: prompt_pipes.as_ref(), began_from };
    let server = running.serve(&service, socket).map_err(system("fork"))?;
    let _for_the_shell = prompt_pipes.map(PromptPipes::for_the_shell);
    // Without its server a shell with a prompt makes its own pipes.
    let ended = running.supervisor.wait((!at_prompt).then(|| server.as_fd()));
    let (ended, _) = ended.map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => RunError::Killed,
        _ => system("wait4")(source),
    })?;
    let wall = running.began.elapsed();
    match running.end(ended, server, served) {
        Err(_) if !at_prompt => Err(RunError::Killed),
        summary => Ok(Ran { ended, wall, summary: summary.unwrap_or_default() }),
    }
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
    fn start(
        text: &Text<'_>,
        words: &[OsString],
        mut environment: Environment,
        mut supervisor: Supervisor,
    ) -> Result<Self, RunError> {
        let shell = text.shell;
        // What posix_spawn(3) does in the new process happens inside the C library, where the library in the shell does not see it.
        let forks: &[&str] =
            if shell.kind == Kind::Fish { &["-C", "set -g fish_use_posix_spawn 0"] } else { &[] };
        let own = std::iter::once(shell.name.clone()).chain(forks.iter().map(Into::into));
        let words: Vec<OsString> = own.chain(words.iter().cloned()).collect();
        // As a shell would have it from another: `_` is the program's file (bash(1)).
        for (_, value) in environment.iter_mut().filter(|(name, _)| name == "_") {
            *value = shell.path.clone().into();
        }
        let (used, began) = (used_by_children(), Instant::now());
        let started = spawn(&shell.path, &words, &environment, &text.streams);
        let pid = started.map_err(shell.refused("posix_spawn"))?;
        supervisor.watch(pid).map_err(shell.refused("pidfd_open"))?;
        Ok(Self { supervisor, pid, began, used })
    }

    /// Starts the process that serves the links, and ends what was started if this one is killed; the way to talk to it. The shell
    /// begins meanwhile: what it asks waits.
    fn serve(&self, service: &Service<'_>, socket: Socket) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: this program has no other thread yet that could hold a lock.
        if unsafe { fork() }?.is_parent() {
            return Ok(ours);
        }
        drop(ours);
        // Whoever kills all that is called hosepipe does not kill the one that then ends the rest.
        let _ = rustix::thread::set_name(c"pipe-links");
        // Whatever limit the user has for one program, this one serves many.
        let mut files = getrlimit(Resource::Nofile);
        files.current = files.maximum;
        let _ = setrlimit(Resource::Nofile, files);
        // What the terminal sends is for the shell, and the shell decides what that means.
        let _ = setsid();
        signals::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE]);
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            // Who waits for the end of what the text reads or writes does not wait for this process.
            let _ = rustix::stdio::dup2_stdin(&null).and_then(|()| rustix::stdio::dup2_stdout(&null));
        }
        let served = serve(service, &socket, self.pid, theirs);
        leave(i32::from(served.is_err()))
    }

    /// Tells the server of the shell's end, as the library tells of the ends of others; what it says to that where it is listened to.
    fn end(&self, ended: ExitStatus, mut server: UnixStream, listen: bool) -> io::Result<Summary> {
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
        if !listen {
            return Ok(Summary::default());
        }
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
    made().map_err(|error: OpenError| RunError::Told(via.refusal(&error)))
}

/// Which pipes are a shell's pipelines'; says so where nothing tells them.
fn sites_of(shell: &Shell, library: &Library) -> Result<Option<Sites>, RunError> {
    let known = learn::sites(shell, library).map_err(shell.refused("running it on examples"))?;
    if known.is_none() {
        let _ = writeln!(
            io::stderr(),
            "hosepipe: the pipelines of {} cannot be told from its other pipes: they stay its own",
            shell.path.display()
        );
    }
    Ok(known)
}
