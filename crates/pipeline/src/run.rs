//! Runs a text in the user's own shell, whose pipelines get links of our choice. The shell does not notice: a library that is preloaded into
//! it replaces pipe(2), and is removed from the environment before the shell reads it.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use mechanism::{Folder, OpenError};
use model::monotonic_ns;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::TimeVal;
use nix::unistd::{ForkResult, fork};
use pipes::message::{Message, Sender, Usage};
use pipes::protocol::{Config, NO_POSIX_SPAWN, Plain, asks, mode};
use pipes::sites::Sites;
use process::signals::{self, NoSignals};
use process::{DetachedCleaner, Environment, Supervisor, become_program, leave, reap, spawn_refusing};
use rustix::io::{Errno, fcntl_getfd};
use rustix::process::{Pid, PidfdFlags, Resource, getpid, getrlimit, pidfd_open, setrlimit, setsid};

use crate::learn;
use crate::link::{Bell, Link, LinkSpec, refused};
use crate::preload::Library;
use crate::prompt_pipes::PromptPipes;
use crate::requests::RequestSocket;
use crate::serve::{Server, ShellEnd, serve, started_shell};
use crate::shell::{Kind, Shell};
use crate::shell_run::{Ran, RunError, ShellRun, ShellStartup, ShellUse, Summary};
use crate::stuck::StuckWatch;

/// How long a text over a plain pipe may run before a server is started that kills what is left if this process is killed: starting it takes
/// longer.
const UNGUARDED: Duration = Duration::from_millis(10);

/// Runs a text, or a shell with a prompt, whose functions can change the link at any time. Where this process has nothing left to do, it
/// becomes the shell: signals, jobs, descriptors and `$PPID` are then those of a shell that was started without hosepipe.
///
/// # Errors
/// The shell or a link cannot be made.
pub fn run(shell_run: &ShellRun<'_>) -> Result<Ran, RunError> {
    let system = |call| shell_run.shell.refused(call);
    shell_run.shell.allows(shell_run.via).map_err(RunError::Reported)?;
    let library = Library::load().map_err(system("memfd_create"))?;
    // A link that cannot be made here is reported before the shell starts. One to another host is not tried: a second login would take as
    // long as the run.
    let tried = (!shell_run.via.goes_through_ssh())
        .then(|| try_link(shell_run.via, shell_run.keep.is_some()))
        .transpose()?;
    let pipe_bytes = tried.and_then(|link| link.record().granted.get("pipe_bytes").copied()).unwrap_or(0);
    let sites = sites_of(shell_run.shell, &library)?;
    let watched = shell_run.keep.is_some() || shell_run.watched.is_some() || shell_run.prompt.is_some();
    // The library makes plain pipes that are not watched by itself, without the server.
    let plain = shell_run.via.is_pipe() && !watched && !shell_run.changes_programs();
    let mode = if shell_run.via.is_sized() { mode::EXACTLY } else { mode::OWN };
    let own = |sites| Config { mode, argument: pipe_bytes, sites, ..Config::OFF };
    if plain && matches!(shell_run.shell_use, ShellUse::Interactive | ShellUse::Script) {
        let program = ShellProgram::new(shell_run, ShellStartup::default(), library, sites.map(own));
        return Err(program.replace_this_process(shell_run.shell));
    }
    if plain {
        let guarded = |sites| Config { parent: getpid().as_raw_pid() as u64, ..own(sites) };
        return run_plain(shell_run, library, sites.map(guarded));
    }
    if shell_run.shell_use == ShellUse::Interactive {
        let requests = RequestSocket::open().map_err(system("a socket"))?;
        // The shell would get our cleaner as a child; the server starts one of its own.
        mechanism::end_cleaner();
        let (startup, path) = serve_interactive(shell_run, requests)?;
        let config = sites.map(|sites| asking(sites, &path, shell_run));
        return Err(
            ShellProgram::new(shell_run, startup, library, config).replace_this_process(shell_run.shell)
        );
    }
    // A library that is not used sends no messages.
    let requests = sites.as_ref().map(|_| RequestSocket::open()).transpose().map_err(system("a socket"))?;
    let server = ServerProcess::start(shell_run, requests).map_err(system("fork"))?;
    let config = sites.map(|sites| asking(sites, &server.path, shell_run));
    Running::start(shell_run, library, config)?.finish(shell_run, server)
}

/// Runs a text whose shell makes the pipes itself. A server is only started to kill what is left if this process is killed, once the text has
/// run for [`UNGUARDED`].
fn run_plain(shell_run: &ShellRun<'_>, library: Library, config: Option<Config>) -> Result<Ran, RunError> {
    let system = |call| shell_run.shell.refused(call);
    // With the library, the shell is killed when this process is.
    let ends_with_us = config.is_some();
    let mut running = Running::start(shell_run, library, config)?;
    if ends_with_us
        && !shell_run.recorded
        && running.supervisor.ends_within(UNGUARDED).map_err(system("poll"))?
    {
        let (ended, _) = running.supervisor.wait(None, &mut || None).map_err(system("wait4"))?;
        return Ok(Ran { ended, wall: running.began.elapsed(), summary: Summary::default(), why: None });
    }
    running.finish(shell_run, ServerProcess::start(shell_run, None).map_err(system("fork"))?)
}

/// What a shell is started with.
struct ShellProgram {
    words: Vec<OsString>,
    environment: Environment,
    /// Open until the shell has begun.
    _library: Option<Library>,
}

impl ShellProgram {
    /// `config` is `None` where the shell is to run without the library.
    fn new(
        shell_run: &ShellRun<'_>,
        startup: ShellStartup,
        library: Library,
        config: Option<Config>,
    ) -> Self {
        let shell = shell_run.shell;
        let mut environment = match config {
            Some(config) => library.environment(config),
            None => std::env::vars_os().collect(),
        };
        let mut variables = startup.variables;
        // Shells set `_` to the program's file (bash(1)).
        variables.extend(std::env::var_os("_").map(|_| ("_".to_owned(), shell.path.clone().into())));
        if shell.kind == Kind::Fish && config.is_some_and(|config| config.mode == mode::ASK) {
            // posix_spawn(3) executes the program inside the C library, which the preloaded library does not see. It removes this
            // variable from every program that fish starts.
            let no_spawn = str::from_utf8(NO_POSIX_SPAWN.0).map(str::to_owned);
            variables.extend(no_spawn.map(|name| (name, OsStr::from_bytes(NO_POSIX_SPAWN.1).to_owned())));
        }
        environment.retain(|(name, _)| variables.iter().all(|(other, _)| name != other.as_str()));
        environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value)));
        let words = [vec![shell.name.clone()], startup.arguments, shell_run.arguments.clone()].concat();
        Self { words, environment, _library: config.map(|_| library) }
    }

    /// Makes this process the shell. Returns if that fails.
    fn replace_this_process(self, shell: &Shell) -> RunError {
        shell.refused("execve")(become_program(&shell.path, &self.words, &self.environment))
    }
}

/// Starts the process that serves an interactive shell, which this process will become. Returns the shell's start-up files, and the path of the
/// server's socket.
fn serve_interactive(
    shell_run: &ShellRun<'_>,
    requests: RequestSocket,
) -> Result<(ShellStartup, String), RunError> {
    let system = |call| shell_run.shell.refused(call);
    let shell = getpid();
    let ended =
        pidfd_open(shell, PidfdFlags::empty()).map_err(io::Error::from).map_err(system("pidfd_open"))?;
    let (ours, theirs) = UnixStream::pair().map_err(system("socketpair"))?;
    let no_signals = NoSignals::block();
    // SAFETY: this program has no other thread yet that could hold a lock.
    let forked = unsafe { fork() }.map_err(io::Error::from).map_err(system("fork"))?;
    let ForkResult::Parent { child } = forked else {
        drop(ours);
        // SAFETY: as above.
        if !unsafe { fork() }.is_ok_and(ForkResult::is_child) {
            leave(0);
        }
        become_server(no_signals, || interactive_server(shell_run, requests, (shell, ended), theirs))
    };
    drop((theirs, requests, no_signals));
    let _ = Pid::from_raw(child.as_raw()).map(reap);
    let startup: Result<(ShellStartup, String), String> =
        model::from_json(io::read_to_string(ours).unwrap_or_default()).map_err(|_| RunError::Killed)?;
    startup.map_err(RunError::Reported)
}

fn interactive_server(
    shell_run: &ShellRun<'_>,
    requests: RequestSocket,
    (shell, ended): (Pid, OwnedFd),
    starter: UnixStream,
) -> io::Result<()> {
    let prompt_pipes = shell_run.prompt.map(|_| PromptPipes::open()).transpose()?;
    let startup = match (&shell_run.prompt, &prompt_pipes) {
        (Some(prompt), Some(pipes)) => {
            (prompt.begin)(&pipes.names(&requests)).map_err(|problem| problem.to_string())
        }
        _ => Ok(ShellStartup::default()),
    };
    let path = requests.path_in(std::process::id());
    serde_json::to_writer(&starter, &startup.as_ref().map(|startup| (startup, path)))?;
    drop(starter);
    let Ok(startup) = startup else { return Ok(()) };
    let folder = startup.folder.as_ref().and_then(|folder| folder.path().ok());
    let server = Server::new(shell_run, Some(requests), shell.as_raw_pid(), prompt_pipes.as_ref(), folder)?;
    serve(server, ShellEnd::Pidfd(ended))
}

/// Makes this process, just forked, one that serves links, until `serve` returns. Signals are blocked since before the fork: those to the process
/// group, which it only leaves here, must not end it.
fn become_server(no_signals: NoSignals, serve: impl FnOnce() -> io::Result<()>) -> ! {
    // `killall hosepipe` does not kill this process, which then ends the rest.
    let _ = rustix::thread::set_name(c"pipe-links");
    // The limit of one program may be too low for the server of many.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let _ = setrlimit(Resource::Nofile, files);
    // Signals of the terminal are for the shell.
    let _ = setsid();
    signals::ignore_others();
    drop(no_signals);
    release_descriptors(false);
    let served = serve();
    mechanism::end_cleaner();
    leave(i32::from(served.is_err()))
}

/// Closes the inherited descriptors, which are the shell's now: a lock or the end of a pipe must not stay open until this process ends.
/// Standard error stays, for messages.
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
        // SAFETY: all descriptors of our own are closed by execve(2); this one is not, so it was inherited, and no value here owns it.
        unsafe {
            if fcntl_getfd(BorrowedFd::borrow_raw(number)).is_ok_and(|flags| flags.is_empty()) {
                rustix::io::close(number);
            }
        }
    }
}

/// The configuration of a library that asks the server whose socket has this path for each link, and, where a text needs it, reports usage and asks how
/// programs are to be started.
fn asking(sites: Sites, path: &str, shell_run: &ShellRun<'_>) -> Config {
    let usage = if shell_run.watched.is_some() { asks::USAGE } else { 0 };
    let changes = if shell_run.changes_programs() { asks::CHANGES } else { 0 };
    let mut config = Config { mode: mode::ASK, argument: usage | changes, sites, ..Config::OFF };
    config.path[..path.len()].copy_from_slice(path.as_bytes());
    config
}

/// The process that serves the links of a shell that this process is going to start, and kills what was started if this process is killed.
struct ServerProcess {
    pid: Pid,
    /// A connection to it: the shell's PID and its end are reported there, and its end is the end of this process.
    stream: UnixStream,
    /// The path of the socket for requests.
    path: String,
    cleaner: Option<DetachedCleaner>,
}

impl ServerProcess {
    /// It is started before the shell, which must know its PID.
    fn start(shell_run: &ShellRun<'_>, requests: Option<RequestSocket>) -> io::Result<Self> {
        let (stream, mut theirs) = UnixStream::pair()?;
        let no_signals = NoSignals::block();
        // SAFETY: this program has no other thread yet that could hold a lock.
        if let ForkResult::Parent { child } = unsafe { fork() }? {
            // From now on only the server makes files. If it is killed, the cleaner need not wait for this process.
            let cleaner = mechanism::leave_cleaner();
            let pid = Pid::from_raw(child.as_raw()).ok_or(Errno::SRCH)?;
            let path = requests.map(|requests| requests.path_in(child.as_raw() as u32)).unwrap_or_default();
            return Ok(Self { pid, stream, path, cleaner });
        }
        drop(stream);
        become_server(no_signals, || {
            let Some(shell) = started_shell(&mut theirs) else { return Ok(()) };
            serve(Server::new(shell_run, requests, shell, None, None)?, ShellEnd::Report(theirs))
        })
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
    fn start(shell_run: &ShellRun<'_>, library: Library, config: Option<Config>) -> Result<Self, RunError> {
        let shell = shell_run.shell;
        let mut supervisor =
            Supervisor::new(shell_run.shell_use.reach()).map_err(shell.refused("signalfd"))?;
        let program = ShellProgram::new(shell_run, ShellStartup::default(), library, config);
        let (used, began) = (used_by_children(), Instant::now());
        let started = spawn_refusing(
            &shell.path,
            &program.words,
            &program.environment,
            &shell_run.streams,
            shell_run.without,
        );
        let pid = started.map_err(shell.refused("posix_spawn"))?;
        supervisor.watch(pid).map_err(shell.refused("pidfd_open"))?;
        Ok(Self { supervisor, pid, began, used })
    }

    /// Waits for the shell, which the server serves.
    fn finish(mut self, shell_run: &ShellRun<'_>, server: ServerProcess) -> Result<Ran, RunError> {
        let system = |call| shell_run.shell.refused(call);
        let ServerProcess { pid, mut stream, cleaner, .. } = server;
        let started = Sender { pid: self.pid, ..Sender::default() };
        stream.write_all(Message::Shell.packet(started).0.as_bytes()).map_err(|_| RunError::Killed)?;
        // Where the text writes elsewhere, standard output is for the record.
        release_descriptors(!shell_run.streams.is_empty());
        let mut stuck = shell_run.watched.is_some().then(|| StuckWatch::new(Some(self.pid)));
        let ended = self.supervisor.wait(Some(stream.as_fd()), &mut || stuck.as_mut().map(StuckWatch::look));
        let why = stuck.and_then(StuckWatch::finish);
        let (ended, _) = ended.map_err(|source| match source.kind() {
            io::ErrorKind::BrokenPipe => RunError::Killed,
            _ => system("wait4")(source),
        })?;
        // One that ended well went on after the last look.
        let why = why.filter(|_| !ended.success());
        let wall = self.began.elapsed();
        let summary = self.report_end(ended, stream, pid).map_err(|_| RunError::Killed)?;
        if summary.serves_on {
            std::mem::forget(cleaner);
        } else {
            // Process 1 may not reap it.
            let _ = reap(pid);
            drop(cleaner);
        }
        Ok(Ran { ended, wall, summary, why })
    }

    /// Reports the shell's end to the server, as the library reports the ends of others. Returns the summary. A second signal that requests the
    /// end kills the server, which may be in a system call that does not return.
    fn report_end(&mut self, ended: ExitStatus, mut server: UnixStream, pid: Pid) -> io::Result<Summary> {
        let now = used_by_children();
        let usage = Usage {
            user_us: now.user_us - self.used.user_us,
            system_us: now.system_us - self.used.system_us,
            max_rss_kib: now.max_rss_kib,
        };
        let sender = Sender { pid: self.pid, at_ns: monotonic_ns(), usage };
        let (head, _) = Message::Reaped { status: ended.into_raw() }.packet(sender);
        server.write_all(head.as_bytes())?;
        if !self.supervisor.wait_for_data(server.as_fd())? {
            signals::send(pid.as_raw_pid(), Signal::SIGKILL);
        }
        Ok(model::from_json(io::read_to_string(server)?)?)
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

/// Makes a link, to find out whether that works here, and whether its bytes can be kept if that is wanted.
fn try_link(via: &LinkSpec, keep: bool) -> Result<Link, RunError> {
    let made = || {
        let mut link = via.connect(&Folder::private(), &Bell::default())?;
        if keep {
            link.keep(File::options().write(true).open("/dev/null").map_err(refused("/dev/null"))?)?;
        }
        Ok(link)
    };
    made().map_err(|error: OpenError| RunError::Reported(via.refusal(&error)))
}

/// The calls with which a shell makes the pipes of pipelines; prints a message if they cannot be found.
fn sites_of(shell: &Shell, library: &Library) -> Result<Option<Sites>, RunError> {
    let known = match library.is_reachable() {
        true => learn::sites(shell, library).map_err(shell.refused("running it on examples"))?,
        false => None,
    };
    if known.is_none() {
        let _ = writeln!(
            io::stderr(),
            "hosepipe: the pipelines of {} cannot be distinguished from its other pipes: they stay its own",
            shell.path.display()
        );
    }
    Ok(known)
}
