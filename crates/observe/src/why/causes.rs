//! The table of causes: how each is recognised. The order of weight is that of [`WhyCause`]; sentences and remedies are in `report`.

mod circle;
mod ends;
mod rest;

use model::{WhyAnswer, WhyCause, WhyEdge};
use process::proc::field_value;

use super::graph::{Graph, Watched};
use super::needs::{Need, Resource};
use super::wait::Wait;

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

/// How causes are recognised, those first that outrank others. A function may find one of several causes.
const RECOGNISERS: &[fn(&Case) -> Option<Finding>] = &[
    rest::ended,
    stopped,
    fifo_open,
    lock,
    circle::self_held,
    circle::deadlock,
    queue,
    listen_queue,
    ends::held_by_others,
    ends::reader_left,
    ends::spins,
    ends::held_in_buffer,
    tokens_lost,
    shared_memory,
    ends::blocked_writer,
    ends::loop_input,
    terminal,
    ends::two_readers,
    rest::zombie,
    rest::descriptor_leak,
    rest::silent,
    rest::not_stuck,
];

/// The answer to a question; `None` if the process has ended.
pub(super) fn answer(graph: &Graph, roots: &[i32]) -> Option<WhyAnswer> {
    let asked = *roots.first()?;
    graph.watched.get(&asked)?;
    let case = Case { graph, roots, behind: graph.behind(roots) };
    let finding = RECOGNISERS.iter().find_map(|recognise| recognise(&case));
    let finding = finding.unwrap_or_else(|| Finding::new(WhyCause::Unknown, asked));
    let Finding { cause, who, by, what, detail, edges } = finding;
    let edges = edges.unwrap_or_else(|| case.way_to(who));
    let for_ns = graph.watched.get(&who).and_then(Watched::asleep_ns);
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
    pub(super) fn waits(&self) -> impl Iterator<Item = (i32, &'a Need)> {
        self.each()
            .filter(|(_, one)| one.slept)
            .flat_map(|(pid, one)| one.needs().map(move |need| (pid, need)))
    }

    /// Who waits for whom, from the process that was asked about to this one, with the wait of this one.
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

    /// A finding about a wait: those who could end it, its name and its numbers.
    pub(super) fn of_need(&self, cause: WhyCause, who: i32, need: &Need) -> Finding {
        let by = need.wakers.iter().map(|holder| holder.pid).collect();
        Finding { by, what: need.what.clone(), detail: need.detail.clone(), ..Finding::new(cause, who) }
    }
}

/// A stopped, traced or frozen process.
fn stopped(case: &Case) -> Option<Finding> {
    let stopped =
        case.each().find(|(_, one)| one.threads.iter().any(|(thread, _)| thread.wait == Wait::Stopped));
    if let Some((pid, _)) = stopped {
        let value = |name: &str| field_value(&format!("/proc/{pid}/status"), name);
        let tracer = value("TracerPid").and_then(|tracer| tracer.parse().ok()).filter(|tracer| *tracer > 0);
        return Some(match tracer {
            Some(tracer) => Finding { by: vec![tracer], ..Finding::new(WhyCause::Traced, pid) },
            None => Finding { detail: stop_signal(case, pid), ..Finding::new(WhyCause::Stopped, pid) },
        });
    }
    let frozen = |pid: i32| {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        let is_frozen = field(&format!("/sys/fs/cgroup{group}/cgroup.events"), "frozen") == Some(1);
        is_frozen.then_some(group)
    };
    let (pid, group) = case.each().find_map(|(pid, one)| Some((pid, frozen(pid).filter(|_| one.slept)?)))?;
    Some(Finding { what: group, ..Finding::new(WhyCause::Frozen, pid) })
}

/// The number after a name in a file of lines such as cpu.stat (cgroups(7)).
pub(super) fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The signal that stopped a process. Where its parent has asked for it the kernel has forgotten it: then the terminal says which it may be.
fn stop_signal(case: &Case, pid: i32) -> String {
    let Some(job) = case.graph.process(pid).map(|process| process.job) else { return String::new() };
    match job.stopped_by {
        libc::SIGSTOP => "SIGSTOP".to_owned(),
        libc::SIGTSTP => "SIGTSTP, as by Ctrl-Z".to_owned(),
        libc::SIGTTIN => "SIGTTIN: it reads from the terminal in the background".to_owned(),
        libc::SIGTTOU => "SIGTTOU: it sets or writes to the terminal in the background".to_owned(),
        _ if job.foreground.is_some_and(|group| group != job.group) => {
            "SIGTSTP, SIGTTIN or SIGTTOU, as a job in the background of its terminal, or SIGSTOP".to_owned()
        }
        _ => "SIGSTOP or a like signal".to_owned(),
    }
}

fn fifo_open(case: &Case) -> Option<Finding> {
    let (pid, need) = case.waits().find(|(_, need)| matches!(need.resource, Resource::Fifo { .. }))?;
    let writes = need.resource == Resource::Fifo { writes: true };
    let detail = if writes { "reading" } else { "writing" }.to_owned();
    Some(Finding { detail, ..case.of_need(WhyCause::FifoOpen, pid, need) })
}

fn lock(case: &Case) -> Option<Finding> {
    let (pid, need) = case.waits().find(|(_, need)| need.resource == Resource::Lock)?;
    let fds: Vec<String> =
        need.wakers.iter().filter_map(|holder| holder.fd).map(super::graph::stream).collect();
    // Who waits for a lock of one that waits for it is in a circle.
    let is_circle = !need.wakers.is_empty() && !case.graph.is_alive(pid);
    (!is_circle).then(|| Finding { detail: fds.join(", "), ..case.of_need(WhyCause::Lock, pid, need) })
}

fn queue(case: &Case) -> Option<Finding> {
    let is_queue = |need: &Need| matches!(need.resource, Resource::MessageQueue { .. } | Resource::Semaphore);
    let (pid, need) = case.waits().find(|(_, need)| is_queue(need))?;
    if need.resource == Resource::Semaphore {
        return Some(case.of_need(WhyCause::Semaphore, pid, need));
    }
    let sends = need.resource == Resource::MessageQueue { sends: true };
    let state = if sends { "full" } else { "empty" };
    let detail = if need.detail.is_empty() { state.to_owned() } else { format!("{state}: {}", need.detail) };
    let mut finding = case.of_need(WhyCause::MessageQueue, pid, need);
    // Others that wait for it cannot help.
    let waits =
        |other: &i32| case.graph.watched.get(other).is_some_and(|one| one.slept && one.needs().any(is_queue));
    finding.by.retain(|other| !waits(other));
    Some(Finding { detail, ..finding })
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
    let jobserver = crate::machine::jobserver::jobservers();
    let jobserver = jobserver.iter().find(|one| one.makes.iter().any(|one| one.pid == make))?;
    let jobs = jobserver.makes.iter().find_map(|make| jobs_of(make.pid))?;
    let held: u64 = jobserver.makes.iter().map(|make| make.held_tokens).sum();
    let lost = (jobs - 1).checked_sub(held + jobserver.free_tokens?).filter(|lost| *lost > 0)?;
    let detail = format!("{lost} of {}", jobs - 1);
    Some(Finding { what: jobserver.name.clone(), detail, ..Finding::new(WhyCause::TokensLost, make) })
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
/// Programs that a person talks to: to wait is what they do.
const INTERACTIVE: [&str; 22] = [
    "bash", "sh", "dash", "zsh", "fish", "ksh", "mksh", "ash", "tcsh", "login", "python3", "python",
    "ipython", "node", "irb", "gdb", "psql", "sqlite3", "vi", "ed", "bc", "dc",
];

/// Something that only a person at the terminal ends.
fn terminal(case: &Case) -> Option<Finding> {
    let reads_terminal =
        |need: &&Need| matches!(need.resource, Resource::Terminal { writes: false, is_master: false, .. });
    for (pid, one) in case.each().filter(|(_, one)| one.slept) {
        let name = case.graph.process(pid).map_or("", |process| process.name.as_str());
        let is_pager = PAGERS.contains(&name);
        let has_terminal = case.graph.process(pid).is_some_and(|process| process.job.foreground.is_some());
        let several = |need: &&Need| is_pager && has_terminal && need.resource == Resource::Several;
        let Some((thread, need)) =
            one.threads.iter().find(|(_, need)| reads_terminal(&need) || several(&need))
        else {
            continue;
        };
        let is_read = matches!(thread.wait, Wait::Stream(_));
        if is_pager {
            return Some(case.of_need(WhyCause::TerminalKey, pid, need));
        }
        if is_read && !INTERACTIVE.contains(&name) {
            return Some(case.of_need(WhyCause::TerminalInput, pid, need));
        }
    }
    None
}
