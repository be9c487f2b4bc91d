//! A text in the user's own shell, whose pipelines run over a link of our choice. The shell is told nothing of it: a library that is
//! preloaded into it stands in for pipe(2), and is gone from the environment before the shell looks.
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mechanism::{Folder, OpenError};
use model::describe_errno;
use pipes::protocol::{Head, Kind as Word, Usage};
use pipes::sites::Sites;
use thiserror::Error;

use crate::command::{Bell, Shown};
use crate::counter::Counter;
use crate::keep::Keep;
use crate::learn;
use crate::link::{Link, LinkSpec};
use crate::preload::Library;
use crate::serve::{Picture, Service, serve};
use crate::shell::{Kind, Shell};
use crate::spawn::spawn;
use crate::summary::Summary;
use crate::supervise::{Ending, Reach, Supervisor};

/// What a shell is to run.
pub struct Text<'a> {
    /// The shell.
    pub shell: &'a Shell,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// What stands between the stages of its pipelines.
    pub via: &'a LinkSpec,
    /// Where what flows through the links is kept.
    pub keep: Option<Rc<Keep>>,
    /// How its stages are looked at while they run; `None` where nobody wants to know.
    pub watched: Option<Watched<'a>>,
}

/// How stages are looked at.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// Bytes are counted, by a relay where there is no other way.
    pub meter: bool,
    /// Shows what is seen, while it is seen, in the process that serves the links.
    pub show: Option<&'a Picture<'a>>,
}

/// A prompt, and what stands between the stages of pipelines there at first.
pub struct AtPrompt<'a> {
    /// The shell.
    pub shell: &'a Shell,
    /// What stands between the stages of its pipelines.
    pub via: &'a LinkSpec,
    /// What is shown beside that.
    pub shown: Shown<'a>,
    /// Makes what the shell begins with.
    pub begin: &'a dyn Fn(&Names) -> Result<Begin, OpenError>,
}

/// Where a shell's functions find their server.
pub struct Names {
    /// The abstract name of its socket, for [`crate::tell`].
    pub socket: String,
    /// A file into which a line is written before a prompt.
    pub ring: String,
    /// A file that then gives a line: what the prompt says of the link.
    pub answer: String,
}

/// What a shell begins with.
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
pub enum Cannot {
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
    /// There is no such link here, for this reason.
    #[error("{0}")]
    Link(String),
    /// What a prompt begins with could not be made.
    #[error(transparent)]
    Begin(#[from] OpenError),
    /// What a run that was started told.
    #[error("{0}")]
    Told(String),
    /// A run that was started ended with this status, and told nothing.
    #[error("hosepipe run ended with status {0} and said nothing of its links")]
    Silent(i32),
    /// The server was killed.
    #[error("the process that serves the links was killed; what flowed through them was cut short")]
    Killed,
}

/// A text that has run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How the shell ended.
    pub ending: Ending,
    /// From the shell's start until it ended.
    pub wall: Duration,
    /// What its stages and links did.
    pub summary: Summary,
}

impl Ran {
    /// The status of the whole: the shell's, but data that was cut short must not look like a normal end.
    pub fn status(&self) -> i32 {
        let status = self.ending.status();
        if self.summary.cut_short { status.max(1) } else { status }
    }
}

/// Runs a text.
///
/// # Errors
/// The shell or a link cannot be had.
pub fn run(text: &Text<'_>) -> Result<Ran, Cannot> {
    let system = |call| text.shell.refused(call);
    let library = Library::load().map_err(system("memfd_create"))?;
    // That it can be had here is better known before the shell asks for it.
    let link = had(text.via, text.keep.is_some())?;
    let counter = Counter::open().map_err(system("a socket"))?;
    // Over a plain pipe nobody needs to be asked for one.
    let served = !text.via.is_pipe() || text.keep.is_some() || text.watched.is_some();
    let environment = match learnt(text.shell, &library)? {
        None => own_environment(),
        Some(sites) if !served => {
            let bytes = link.granted().get("pipe_bytes").copied().unwrap_or(0);
            let mode = format!("{}:{bytes}", if text.via.is_sized() { "exactly" } else { "own" });
            library.environment(&mode, sites, None)
        }
        Some(sites) => library.environment("ask", sites, Some(&counter.name)),
    };
    drop(link);
    let service = Service {
        via: text.via,
        keep: text.keep.clone(),
        watched: text.watched,
        prompt: None,
        began_from: None,
    };
    let mut supervisor = Supervisor::new(Reach::AllBelow).map_err(system("signalfd"))?;
    let (used, began) = (used_by_children(), Instant::now());
    let pid = start(text.shell, &text.arguments, environment).map_err(system("posix_spawn"))?;
    supervisor.watch(pid);
    drop(library);
    // While the shell begins: what it asks meanwhile waits.
    let mut server = start_server(&service, counter, pid).map_err(system("fork"))?;
    let ended = supervisor.wait(Some(server.as_fd()));
    let (ending, _) = ended.map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => Cannot::Killed,
        _ => text.shell.refused("wait4")(source),
    })?;
    let wall = began.elapsed();
    server.write_all(&farewell(pid, ending, used).to_bytes()).map_err(|_| Cannot::Killed)?;
    let summary = match served {
        true => Summary::read(&mut server).map_err(|_| Cannot::Killed)?,
        false => Summary::default(),
    };
    Ok(Ran { ending, wall, summary })
}

/// What the server is told of the shell's end, as the library tells of the ends of others. `before` is what children had used.
fn farewell(pid: i32, ending: Ending, before: Usage) -> Head {
    let status = match ending {
        Ending::Left(status) => status << 8,
        Ending::Killed(signal) => signal,
    };
    let now = used_by_children();
    let usage = Usage {
        user_us: now.user_us - before.user_us,
        system_us: now.system_us - before.system_us,
        max_rss_kib: now.max_rss_kib,
    };
    let (kind, value) = (Word::Reaped as u32, i64::from(status));
    Head { kind, pid, at_ns: model::monotonic_ns(), value, usage, ..Head::default() }
}

fn used_by_children() -> Usage {
    let mut used = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: fills the memory it is given, which is a sound value as zeros, too.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, used.as_mut_ptr());
        used.assume_init()
    };
    let microseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Usage {
        user_us: microseconds(used.ru_utime),
        system_us: microseconds(used.ru_stime),
        max_rss_kib: used.ru_maxrss as u64,
    }
}

impl Shell {
    /// What to say where a system call was refused.
    pub(crate) fn refused(&self, call: &'static str) -> impl FnOnce(io::Error) -> Cannot + use<> {
        let shell = self.path.display().to_string();
        move |source| Cannot::System { shell, call, source }
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

/// Runs a shell with a prompt, whose functions can change the link at any time.
///
/// # Errors
/// The shell or the link cannot be had.
pub fn run_at_prompt(prompt: &AtPrompt<'_>) -> Result<Ending, Cannot> {
    let system = |call| prompt.shell.refused(call);
    let library = Library::load().map_err(system("memfd_create"))?;
    drop(had(prompt.via, false)?);
    let counter = Counter::open().map_err(system("a socket"))?;
    let bell = Bell::open().map_err(system("pipe"))?;
    let [ring, answer] = bell.paths();
    let begin = (prompt.begin)(&Names { socket: counter.name.clone(), ring, answer })?;
    let began_from = begin.folder.as_ref().and_then(|folder| folder.path().ok());
    let service = Service {
        via: prompt.via,
        keep: None,
        watched: None,
        prompt: Some((prompt.shown, &bell)),
        began_from: began_from.map(ToOwned::to_owned),
    };
    let mut environment = match learnt(prompt.shell, &library)? {
        None => own_environment(),
        Some(sites) => library.environment("ask", sites, Some(&counter.name)),
    };
    for (name, value) in &begin.variables {
        let prefix = [name.as_bytes(), b"="].concat();
        environment.retain(|entry| !entry.to_bytes().starts_with(&prefix));
        environment.push(c_string([&prefix, value.as_bytes()].concat()));
    }
    let mut supervisor = Supervisor::new(Reach::Child).map_err(system("signalfd"))?;
    let used = used_by_children();
    let pid = start(prompt.shell, &begin.arguments, environment).map_err(system("posix_spawn"))?;
    supervisor.watch(pid);
    drop(library);
    let mut server = start_server(&service, counter, pid).map_err(system("fork"))?;
    let _for_the_shell = bell.for_the_shell();
    let (ending, _) = supervisor.wait(None).map_err(system("waitpid"))?;
    // A server that was killed has left nothing to wait for: the shell then made its own pipes.
    if server.write_all(&farewell(pid, ending, used).to_bytes()).is_ok() {
        let _ = Summary::read(&mut server);
    }
    Ok(ending)
}

/// A link, to see that one can be had here, and that what flows through it can be kept where that is wanted.
fn had(via: &LinkSpec, keep: bool) -> Result<Link, Cannot> {
    let had = || {
        let mut link = via.connect(&Folder::private())?;
        if keep {
            let nowhere = File::options()
                .write(true)
                .open("/dev/null")
                .map_err(|source| OpenError::System { call: "/dev/null".to_owned(), source, remedy: None })?;
            link.keep(nowhere)?;
        }
        Ok(link)
    };
    had().map_err(|error: OpenError| Cannot::Link(via.refusal(&error)))
}

/// Which pipes are a shell's pipelines'; says so where nothing tells them.
fn learnt(shell: &Shell, library: &Library) -> Result<Option<Sites>, Cannot> {
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

/// Starts the shell.
fn start(shell: &Shell, words: &[OsString], environment: Vec<CString>) -> io::Result<i32> {
    let path = c_string(shell.path.as_os_str().as_bytes());
    spawn(&path, &arguments(shell, words), &named(environment, shell), &[])
}

/// Starts the process that serves the links, and ends what was started if this one is killed; the way to talk to it.
fn start_server(service: &Service<'_>, counter: Counter, shell: i32) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    // SAFETY: this program has no other thread yet that could hold a lock.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        _ => return Ok(ours),
    }
    drop(ours);
    // Whoever kills all that is called hosepipe does not kill the one that then ends the rest.
    let _ = rustix::thread::set_name(c"pipe-links");
    // Whatever limit the user has for one program, this one serves many.
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, files);
    // What the terminal sends is for the shell, and the shell decides what that means.
    let _ = rustix::process::setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: ignoring is always a valid action.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        // Who waits for the end of what the text reads or writes does not wait for this process.
        let _ = rustix::stdio::dup2_stdin(&null).and_then(|()| rustix::stdio::dup2_stdout(&null));
    }
    let served = serve(service, &counter, shell, theirs);
    std::process::exit(i32::from(served.is_err()));
}

fn arguments(shell: &Shell, words: &[OsString]) -> Vec<CString> {
    // What posix_spawn(3) does in the new process happens inside the C library, where the library in the shell does not see it.
    let forks: &[&str] =
        if shell.kind == Kind::Fish { &["-C", "set -g fish_use_posix_spawn 0"] } else { &[] };
    let own = std::iter::once(shell.name.as_bytes()).chain(forks.iter().map(|word| word.as_bytes()));
    own.chain(words.iter().map(|word| word.as_bytes())).map(c_string).collect()
}

/// The environment as a shell would have it from another: `_` is the program's file (bash(1)).
fn named(mut environment: Vec<CString>, shell: &Shell) -> Vec<CString> {
    for entry in environment.iter_mut().filter(|entry| entry.to_bytes().starts_with(b"_=")) {
        *entry = c_string([b"_=", shell.path.as_os_str().as_bytes()].concat());
    }
    environment
}

/// This process's environment.
pub(crate) fn own_environment() -> Vec<CString> {
    let entry = |(name, value): (OsString, OsString)| {
        c_string([&name.into_vec()[..], b"=", &value.into_vec()].concat())
    };
    std::env::vars_os().map(entry).collect()
}

/// What comes from a command line, or from the environment, has no NUL in it.
pub(crate) fn c_string(bytes: impl AsRef<[u8]>) -> CString {
    CString::new(bytes.as_ref()).unwrap_or_default()
}
