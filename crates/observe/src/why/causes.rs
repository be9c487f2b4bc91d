//! The table of causes: how each is recognised. The order of weight is that of [`WhyCause`]; sentences and remedies are in `report`.

mod circle;
mod ends;
mod rest;

use std::time::Duration;

use model::{WhyAnswer, WhyCause, WhyEdge, descriptor_name};
use process::is_shell;
use process::proc::field_value;

use super::graph::{Graph, Watched};
use super::memory::SEMAPHORES;
use super::needs::{Need, Resource};
use super::scene::Process;
use super::wait::{Thread, Wait};
use crate::endpoint::{Endpoint, IpcFile, path_of};
use crate::line_buffering::{self, is_filter};
use crate::waits::Call;

/// A question: the processes that it is about, and all behind them, nearest first.
pub(super) struct Case<'a> {
    pub(super) graph: &'a Graph<'a>,
    pub(super) roots: &'a [i32],
    pub(super) behind: Vec<i32>,
}

/// What was found.
pub(super) struct Finding {
    pub(super) cause: WhyCause,
    pub(super) who: i32,
    pub(super) by: Vec<i32>,
    pub(super) what: String,
    pub(super) detail: String,
    /// Instead of the way from the asked process to `who`.
    pub(super) edges: Option<Vec<WhyEdge>>,
}

impl Finding {
    pub(super) fn new(cause: WhyCause, who: i32) -> Self {
        let (by, what, detail, edges) = Default::default();
        Self { cause, who, by, what, detail, edges }
    }
}

/// Time between two counts of a jobserver's tokens.
const TOKENS_PAUSE: Duration = Duration::from_millis(250);

/// How causes are recognised, those first that outrank others. A function may find one of several causes.
const RECOGNISERS: &[fn(&Case) -> Option<Finding>] = &[
    rest::ended,
    stopped,
    fifo_open,
    lock,
    mutex_left,
    circle::self_held,
    circle::self_full,
    circle::threads,
    circle::deadlock,
    queue,
    listen_queue,
    ends::held_by_others,
    ends::reader_left,
    ends::spins,
    ends::reads_nothing,
    ends::held_in_buffer,
    tokens_lost,
    shared_memory,
    terminal,
    ends::blocked_writer,
    ends::loop_input,
    ends::two_readers,
    rest::descriptor_leak,
    ends::may_hold,
    rest::zombie,
    rest::silent,
    mutex,
    rest::hidden,
    rest::fifo_both,
    rest::dropped,
    rest::attended,
    rest::call_hidden,
    rest::not_stuck,
];

/// The answer to a question; `None` if the process has ended.
pub(super) fn answer(graph: &Graph, roots: &[i32]) -> Option<WhyAnswer> {
    let asked = *roots.first()?;
    graph.watched.get(&asked)?;
    // The jobs of a shell at its prompt, or of another program that waits for its user, are not what it waits for.
    let is_at_prompt = graph.watched[&asked]
        .needs()
        .any(|need| matches!(need.resource, Resource::Terminal { writes: false, is_master: false, .. }));
    let roots = if is_at_prompt { &roots[..1] } else { roots };
    let case = Case { graph, roots, behind: graph.behind(roots) };
    let finding = RECOGNISERS.iter().find_map(|recognise| recognise(&case));
    // What is not known is shown of the last one that waits.
    let last = || {
        case.each()
            .filter(|(_, one)| one.slept && !one.threads.is_empty())
            .last()
            .map_or(asked, |(pid, _)| pid)
    };
    let finding = finding.unwrap_or_else(|| Finding::new(WhyCause::Unknown, last()));
    let Finding { cause, who, by, what, detail, edges } = finding;
    let edges = edges.unwrap_or_else(|| case.way_to(who));
    let age_ns =
        graph.process(who).map(|process| model::monotonic_ns().saturating_sub(process.stat.started_ns()));
    let for_ns = graph
        .watched
        .get(&who)
        .and_then(Watched::asleep_ns)
        .filter(|ns| age_ns.is_some_and(|age| *ns <= age));
    Some(WhyAnswer {
        asked: graph.named(asked),
        verdict: cause.verdict(),
        cause,
        who: graph.named(who),
        by: by.into_iter().map(|pid| graph.named(pid)).collect(),
        what,
        detail,
        for_ns,
        edges,
    })
}

impl<'a> Case<'a> {
    /// All processes of the question with what was seen of them.
    pub(super) fn each(&self) -> impl Iterator<Item = (i32, &'a Watched)> {
        let graph = self.graph;
        self.behind.iter().filter_map(move |pid| Some((*pid, graph.watched.get(pid)?)))
    }

    /// Those that have slept, each with a wait of one of its threads.
    pub(super) fn thread_waits(&self) -> impl Iterator<Item = (i32, &'a Wait, &'a Need)> {
        let slept = self.each().filter(|(_, one)| one.slept);
        slept.flat_map(|(pid, one)| {
            let threads = one.threads.iter();
            threads.flat_map(move |(thread, need)| need.each().map(move |need| (pid, &thread.wait, need)))
        })
    }

    /// The same without the call.
    pub(super) fn waits(&self) -> impl Iterator<Item = (i32, &'a Need)> {
        self.thread_waits().map(|(pid, _, need)| (pid, need))
    }

    /// Which process waits for which, from the process that was asked about to this one, with the wait of this one.
    pub(super) fn way_to(&self, who: i32) -> Vec<WhyEdge> {
        let mut edges = self.path_to(who);
        let waits = self.graph.watched.get(&who).is_some_and(|one| {
            one.slept && one.first().is_some_and(|(_, need)| need.resource != Resource::Nothing)
        });
        edges.extend(waits.then(|| self.graph.edge(who, 0, None)));
        edges
    }

    /// The same without the wait of the last one. A process that the asked one does not wait for may have been started by it.
    pub(super) fn path_to(&self, who: i32) -> Vec<WhyEdge> {
        let from_asked = self.graph.path(&self.roots[..1], who);
        if from_asked.is_empty() { self.graph.path(self.roots, who) } else { from_asked }
    }

    /// Whether two processes are workers of one server: the same program, started by the same process.
    pub(super) fn are_workers(&self, one: i32, other: i32) -> bool {
        let (one, other) = (self.graph.process(one).filter(|_| one != other), self.graph.process(other));
        let alike =
            |one: &Process, other: &Process| one.stat.parent == other.stat.parent && one.name == other.name;
        one.zip(other).is_some_and(|(one, other)| alike(one, other) && one.stat.parent > 1)
    }

    /// Whether a process waits for time to pass.
    fn sleeps(&self, pid: i32) -> bool {
        let is_time = |(thread, _): &(Thread, Need)| matches!(thread.wait, Wait::Time { .. });
        self.graph.watched.get(&pid).is_some_and(|one| one.threads.iter().any(is_time))
    }

    /// A finding about a wait: those who could end it, its name and its numbers.
    pub(super) fn of_need(&self, cause: WhyCause, who: i32, need: &Need) -> Finding {
        let by = need.wakers.iter().map(|holder| holder.pid).collect();
        Finding { by, what: need.what.clone(), detail: need.detail.clone(), ..Finding::new(cause, who) }
    }
}

/// A stopped, traced or frozen process.
fn stopped(case: &Case) -> Option<Finding> {
    let is =
        |one: &Watched, wait: &Wait| one.slept && one.threads.iter().any(|(thread, _)| thread.wait == *wait);
    let stopped = case.each().find(|(_, one)| is(one, &Wait::Stopped));
    if let Some((pid, _)) = stopped {
        let value = |name: &str| field_value(&format!("/proc/{pid}/status"), name);
        let tracer = value("TracerPid").and_then(|tracer| tracer.parse().ok()).filter(|tracer| *tracer > 0);
        return Some(match tracer {
            Some(tracer) => Finding { by: vec![tracer], ..Finding::new(WhyCause::Traced, pid) },
            None => {
                let (cause, detail) = stop_signal(case, pid);
                Finding { detail, ..Finding::new(cause, pid) }
            }
        });
    }
    let (pid, _) = case.each().find(|(_, one)| is(one, &Wait::Frozen))?;
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let group = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::").or(line.split_once(":freezer:").map(|(_, path)| path)));
    Some(Finding { what: group.unwrap_or_default().to_owned(), ..Finding::new(WhyCause::Frozen, pid) })
}

/// The number after a name in a file of lines such as cpu.stat (cgroups(7)).
pub(super) fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The signal that stopped a process. Where its parent has asked for it the kernel has forgotten it: then the call in which it was stopped says which it may be.
fn stop_signal(case: &Case, pid: i32) -> (WhyCause, String) {
    let job = case.graph.process(pid).map(|process| process.job).unwrap_or_default();
    let call = process::proc::read_short_file(&format!("/proc/{pid}/syscall")).unwrap_or_default();
    let is_terminal = |call: &Call| {
        let fd = call.argument(0) as i32;
        let is_slave = |end: Endpoint| matches!(end.ipc_file, IpcFile::Terminal { is_master: false, .. });
        case.graph.scene.end(pid, fd).is_some_and(is_slave)
            || path_of(pid, fd).is_some_and(|path| path == "/dev/tty")
    };
    let call = Call::parse(&String::from_utf8_lossy(&call)).filter(is_terminal).map(|call| call.number);
    let is_background = job.foreground.is_some_and(|group| group != job.group);
    let (cause, detail) = match (job.stopped_by, call) {
        (libc::SIGTTIN, _) => (WhyCause::StoppedInBackground, "SIGTTIN"),
        (libc::SIGTTOU, _) => (WhyCause::StoppedInBackground, "SIGTTOU"),
        (libc::SIGSTOP, _) => (WhyCause::Stopped, "SIGSTOP"),
        (libc::SIGTSTP, _) => (WhyCause::Stopped, "SIGTSTP"),
        (_, Some(libc::SYS_read)) if is_background => (WhyCause::StoppedInBackground, "SIGTTIN"),
        (_, Some(libc::SYS_write | libc::SYS_ioctl)) if is_background => {
            (WhyCause::StoppedInBackground, "SIGTTOU")
        }
        _ if is_background => (WhyCause::Stopped, "SIGTSTP or SIGSTOP"),
        _ => (WhyCause::Stopped, "SIGSTOP or another signal"),
    };
    (cause, detail.to_owned())
}

fn fifo_open(case: &Case) -> Option<Finding> {
    let (pid, need) = case.waits().find(|(_, need)| matches!(need.resource, Resource::Fifo { .. }))?;
    let Resource::Fifo { writes } = need.resource else { return None };
    let other = writes.map(|writes| if writes { "reading" } else { "writing" });
    let detail = other.unwrap_or_default().to_owned();
    Some(Finding { detail, ..case.of_need(WhyCause::FifoOpen, pid, need) })
}

fn lock(case: &Case) -> Option<Finding> {
    let (pid, need) = case.waits().find(|(_, need)| need.resource == Resource::Lock)?;
    let mut fds: Vec<String> =
        need.wakers.iter().filter_map(|holder| holder.fd).map(descriptor_name).collect();
    fds.dedup();
    // Who waits for a lock of one that waits for it is in a circle.
    let is_circle = !need.wakers.is_empty()
        && !case.graph.is_alive(pid)
        && need.wakers.iter().all(|holder| holder.pid != pid);
    (!is_circle && !takes_turns(case, pid, need))
        .then(|| Finding { detail: fds.join(", "), ..case.of_need(WhyCause::Lock, pid, need) })
}

/// Whether workers of one server take turns: the one that holds a lock waits for connections.
fn takes_turns(case: &Case, pid: i32, need: &Need) -> bool {
    let serves = |one: &Watched| {
        one.needs()
            .any(|need| matches!(need.resource, Resource::Connections | Resource::Several) && need.outside)
    };
    need.wakers.iter().any(|holder| {
        case.are_workers(pid, holder.pid) && case.graph.watched.get(&holder.pid).is_some_and(serves)
    })
}

/// A mutex of a thread that is not there: fork(2) copies a locked mutex, and not the thread that would unlock it; or that has ended.
fn mutex_left(case: &Case) -> Option<Finding> {
    let is_left = |need: &Need| matches!(need.resource, Resource::Mutex { .. }) && need.wakers.is_empty();
    let (pid, need) = case.waits().find(|(_, need)| is_left(need))?;
    let Resource::Mutex { owner } = need.resource else { return None };
    Some(Finding { detail: owner.to_string(), ..case.of_need(WhyCause::MutexLeft, pid, need) })
}

/// A mutex whose holder waits for something else.
fn mutex(case: &Case) -> Option<Finding> {
    let is_still = |pid: i32| case.graph.watched.get(&pid).is_some_and(|one| one.slept);
    let (pid, need) = case.waits().find(|(pid, need)| {
        matches!(need.resource, Resource::Mutex { .. })
            && need.wakers.iter().all(|holder| is_still(holder.pid))
            && !takes_turns(case, *pid, need)
    })?;
    let Resource::Mutex { owner } = need.resource else { return None };
    Some(Finding { detail: owner.to_string(), ..case.of_need(WhyCause::Mutex, pid, need) })
}

fn queue(case: &Case) -> Option<Finding> {
    let is_queue = |need: &Need| matches!(need.resource, Resource::MessageQueue { .. } | Resource::Semaphore);
    let (pid, need) = case.waits().find(|(_, need)| is_queue(need) || is_named_semaphore(need))?;
    if is_named_semaphore(need) {
        let what = format!("POSIX semaphore {}", need.what.trim_start_matches(SEMAPHORES));
        return Some(Finding { what, ..case.of_need(WhyCause::Semaphore, pid, need) });
    }
    if need.resource == Resource::Semaphore {
        let is_worker = case.graph.watched.keys().any(|other| case.are_workers(pid, *other));
        let is_turn = if need.wakers.is_empty() { is_worker } else { takes_turns(case, pid, need) };
        return (!is_turn).then(|| case.of_need(WhyCause::Semaphore, pid, need));
    }
    let sends = need.resource == Resource::MessageQueue { sends: true };
    let state = if sends { "full" } else { "empty" };
    let detail = if need.detail.is_empty() { state.to_owned() } else { format!("{state}: {}", need.detail) };
    let mut finding = case.of_need(WhyCause::MessageQueue, pid, need);
    // Others that wait for it cannot help.
    let waits =
        |other: &i32| case.graph.watched.get(other).is_some_and(|one| one.slept && one.needs().any(is_queue));
    finding.by.retain(|other| !waits(other));
    // A queue that has had no message yet may have a sender that lives.
    let is_there = |other: &i32| case.graph.process(*other).is_some();
    let is_system_v = need.what.starts_with("System V");
    let has_sender = finding.by.iter().any(is_there) || (is_system_v && finding.by.is_empty());
    if !sends && has_sender {
        finding.cause = WhyCause::QueueEmpty;
    }
    Some(Finding { detail, ..finding })
}

/// A POSIX semaphore that programs find by its name (sem_overview(7)), as they do to keep each other out. Others are mostly for orders.
fn is_named_semaphore(need: &Need) -> bool {
    let is_named = need.what.starts_with(SEMAPHORES) && !need.what.ends_with("(deleted)");
    need.resource == Resource::Memory { is_shared: true } && !need.wakers.is_empty() && is_named
}

fn listen_queue(case: &Case) -> Option<Finding> {
    let is_it = |need: &Need| [Resource::ListenQueue, Resource::Datagrams].contains(&need.resource);
    let (pid, need) = case.waits().find(|(_, need)| is_it(need))?;
    let is_listening = need.resource == Resource::ListenQueue;
    Some(case.of_need(if is_listening { WhyCause::ListenQueue } else { WhyCause::DatagramQueue }, pid, need))
}

/// Tokens of make's jobserver that neither the pipe nor a make has.
fn tokens_lost(case: &Case) -> Option<Finding> {
    let is_make = |pid: &i32| {
        case.graph.process(*pid).is_some_and(|one| ["make", "gmake"].contains(&one.name.as_str()))
    };
    let make = case.behind.iter().copied().find(is_make)?;
    let lost = || {
        let jobservers = crate::machine::jobserver::jobservers();
        let jobserver = jobservers.into_iter().find(|one| one.makes.iter().any(|one| one.pid == make))?;
        let jobs = jobserver.makes.iter().find_map(|make| jobs_of(make.pid))?;
        let held: u64 = jobserver.makes.iter().map(|make| make.held_tokens).sum();
        let lost = (jobs - 1).checked_sub(held + jobserver.free_tokens?).filter(|lost| *lost > 0)?;
        Some((format!("{lost} of {}", jobs - 1), jobserver.name))
    };
    // A token may be on its way from one to another.
    let first = lost()?;
    std::thread::sleep(TOKENS_PAUSE);
    let (detail, what) = lost().filter(|second| *second == first)?;
    // A program that still runs may give its tokens back, but for those that inherit the descriptors and know nothing of jobservers.
    let holds = |pid: i32| {
        let files = case.graph.process(pid).and_then(|one| one.files.as_ref());
        let mut ends = files.into_iter().flat_map(|files| &files.endpoints).filter(|end| end.fd > 2);
        ends.any(|end| path_of(pid, end.fd).as_ref() == Some(&what))
    };
    let knows_none = |pid: i32| {
        let name = case.graph.process(pid).map_or("", |one| one.name.as_str());
        name == "sleep" || is_filter(name) || case.graph.is_shell(pid)
    };
    let is_user = |pid: &i32| !is_make(pid) && holds(*pid) && !knows_none(*pid);
    if case.graph.scene.processes.keys().any(is_user) {
        return None;
    }
    Some(Finding { what, detail, ..Finding::new(WhyCause::TokensLost, make) })
}

/// The number after `-j` in the command line of the first make.
fn jobs_of(pid: i32) -> Option<u64> {
    let line = process::proc::command_line(pid);
    let mut words = line.split(' ');
    let word = words.by_ref().find(|word| word.starts_with("-j") || word.starts_with("--jobs"))?;
    let number = word.trim_start_matches("--jobs").trim_start_matches("-j").trim_start_matches('=');
    let number = if number.is_empty() { words.next()? } else { number };
    number.parse().ok().filter(|jobs| *jobs > 1)
}

/// A wait at an address of shared memory that no other process has any more.
fn shared_memory(case: &Case) -> Option<Finding> {
    let is_left =
        |need: &Need| need.resource == Resource::Memory { is_shared: true } && need.wakers.is_empty();
    let (pid, need) = case.waits().find(|(_, need)| is_left(need))?;
    Some(case.of_need(WhyCause::SharedMemory, pid, need))
}

/// Programs that show a page and wait for a key.
const PAGERS: [&str; 4] = ["less", "more", "most", "pg"];
/// Programs that wait for commands at a terminal, as a shell does.
const COMMAND_TAKERS: &[&str] = &[
    "bc",
    "dc",
    "ed",
    "emacs",
    "expect",
    "ftp",
    "gdb",
    "ghci",
    "irb",
    "lftp",
    "lua",
    "mysql",
    "nano",
    "node",
    "octave",
    "php",
    "psql",
    "R",
    "redis-cli",
    "sftp",
    "sqlite",
    "ssh",
    "tclsh",
    "telnet",
    "vi",
    "vim",
];
/// Whether a program is a shell or an interpreter without a script: it takes commands from its terminal.
fn is_bare_interpreter(pid: i32, name: &str) -> bool {
    let line = process::proc::command_line(pid);
    let is_script =
        |word: &str| ["-c", "-e"].contains(&word) || !(word.is_empty() || word.starts_with(['-', '+']));
    let mut words = line.split(' ').skip(1);
    // The debugger of perl has commands of its own, -d:NAME is another one.
    let is_debugger = |word: &str| name == "perl" && word.starts_with("-d") && !word.contains(':');
    (is_shell(name) || line_buffering::is_interpreter(name))
        && (words.clone().any(is_debugger) || !words.any(is_script))
}

/// Whether a program that is no interpreter takes commands from its standard input. It may run by another name: `editor`, that is nano, vim.basic, or another one.
fn takes_commands(pid: i32, name: &str) -> bool {
    let is_interpreter = is_shell(name) || line_buffering::is_interpreter(name);
    let is_known = |file: &str| {
        let short = file.split('.').next().unwrap_or_default();
        COMMAND_TAKERS
            .contains(&short.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-'))
    };
    let is_its_file = || {
        let file = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        file.is_some_and(|path| path.file_name().is_some_and(|file| is_known(&file.to_string_lossy())))
    };
    !is_interpreter && (is_known(name) || is_its_file() || fills_screen(pid, name))
}

/// Programs that ask a question on a screen of their own.
const SCREEN_QUESTIONS: [&str; 3] = ["dialog", "pinentry", "whiptail"];

/// Whether a program shows a whole screen, and takes keys as commands: it has a library for that.
fn fills_screen(pid: i32, name: &str) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let has_library = ["/libncurses", "/libslang"].iter().any(|library| maps.contains(library));
    has_library && !SCREEN_QUESTIONS.iter().any(|asks| name.starts_with(asks))
}

/// Something that only a person at the terminal ends.
fn terminal(case: &Case) -> Option<Finding> {
    let reads =
        |need: &Need| matches!(need.resource, Resource::Terminal { writes: false, is_master: false, .. });
    for (pid, wait, need) in case.thread_waits() {
        let name = case.graph.process(pid).map_or("", |process| process.name.as_str());
        let has_terminal = case.graph.process(pid).is_some_and(|process| process.job.foreground.is_some());
        let is_pager = PAGERS.contains(&name) && has_terminal;
        if is_pager && (reads(need) || need.resource == Resource::Several) {
            return Some(case.of_need(WhyCause::TerminalKey, pid, need));
        }
        let Resource::Terminal { fd, .. } = need.resource else { continue };
        let is_call = matches!(wait, Wait::Stream(_)) && reads(need);
        // It may write instead, and its terminal be full.
        let is_full = wait.is_unclear() && need.wakers.iter().any(|holder| case.sleeps(holder.pid));
        if is_call && is_filter(name) {
            return Some(case.of_need(WhyCause::TerminalInput, pid, need));
        }
        // A question is asked at the terminal itself, wherever standard input comes from, or is one of a program that does not take commands.
        let asks =
            fd > 2 || need.what == "/dev/tty" || (fd == 0 && has_terminal && !takes_commands(pid, name));
        if is_call && asks && !is_full && !is_bare_interpreter(pid, name) {
            return Some(case.of_need(WhyCause::TerminalQuestion, pid, need));
        }
    }
    None
}
