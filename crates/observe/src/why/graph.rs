//! The processes behind those that were asked about, as far as one waits for another; and which of them can still go on.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use model::{HeldBack, NamedProcess, WhyEdge, WhyHolder, descriptor_name, monotonic_ns};

use super::needs::{Need, Needs, Resource};
use super::scene::{Process, Scene};
use super::sockets::{self, Socket};
use super::wait::{Thread, Wait, threads, threads_later};
use crate::endpoint::IpcFile;
use crate::flow::Calls;
use crate::fullness::{Fill, Gauge};
use crate::held_back::HeldBackTracker;

/// Most processes that are watched.
const WATCHED_MAX: usize = 4096;
/// How often those that may hold output back are looked at.
const ROUNDS: u32 = 3;

/// A process that is watched.
pub(super) struct Watched {
    /// Each thread with what it needs; the first that matters comes first.
    pub(super) threads: Vec<(Thread, Need)>,
    /// Whether none of its threads has got a CPU.
    pub(super) slept: bool,
    /// CPU time per second.
    pub(super) cpus: f64,
    /// The largest share of the time for which a thread was ready to run and had no CPU.
    pub(super) queued: f64,
    /// How often its threads got a CPU, per second.
    pub(super) turns_per_s: f64,
    /// What it did in the time of watching; `None` if that may not be read.
    pub(super) calls: Option<Calls>,
    /// Output that it holds back.
    pub(super) held_back: Option<HeldBack>,
}

impl Watched {
    pub(super) fn needs(&self) -> impl Iterator<Item = &Need> {
        self.threads.iter().map(|(_, need)| need)
    }

    /// The wait that matters most.
    pub(super) fn first(&self) -> Option<&(Thread, Need)> {
        self.threads.first()
    }

    /// How long it has waited, at least: since its thread ran that matters most.
    pub(super) fn asleep_ns(&self) -> Option<u64> {
        if self.slept { self.first()?.0.asleep_ns() } else { None }
    }
}

/// Which process waits for which.
pub(super) struct Graph<'a> {
    pub(super) scene: &'a Scene,
    pub(super) sockets: HashMap<u64, Socket>,
    pub(super) watched: BTreeMap<i32, Watched>,
    /// Those that can go on: they run, or something outside of the graph can wake them, or one that can go on.
    alive: HashSet<i32>,
    fills: RefCell<HashMap<(i32, i32), Option<Fill>>>,
    gauge: RefCell<Gauge>,
}

impl<'a> Graph<'a> {
    /// Watches the processes that are asked about, and those for which they wait.
    pub(super) fn watch(scene: &'a Scene, questions: &[Vec<i32>], time: Duration) -> Self {
        let sockets = sockets::read();
        let needs = Needs::new(scene, &sockets);
        let mut before: BTreeMap<i32, Vec<Thread>> = BTreeMap::new();
        let mut waiting: VecDeque<i32> = questions.iter().flatten().copied().collect();
        while let Some(pid) = waiting.pop_front() {
            if before.contains_key(&pid) || before.len() >= WATCHED_MAX || !scene.processes.contains_key(&pid)
            {
                continue;
            }
            let threads = threads(pid);
            for thread in &threads {
                waiting.extend(needs.of(pid, &thread.wait).wakers.iter().map(|holder| holder.pid));
            }
            before.insert(pid, threads);
        }
        let calls: HashMap<i32, Calls> =
            before.keys().filter_map(|pid| Some((*pid, Calls::of(*pid)?))).collect();
        let began_ns = monotonic_ns();
        let mut tracker = HeldBackTracker::default();
        let writers: Vec<i32> = before.keys().copied().filter(|pid| writes_pipe(scene, *pid)).collect();
        let mut held: HashMap<i32, HeldBack> = HashMap::new();
        for round in 0..=ROUNDS {
            for pid in &writers {
                let seen = tracker.sample(*pid, monotonic_ns(), false, || true);
                held.remove(pid);
                held.extend(seen.map(|seen| (*pid, seen)));
            }
            if round < ROUNDS {
                std::thread::sleep(time / ROUNDS);
            }
        }
        let elapsed_ns = monotonic_ns() - began_ns;
        let needs = Needs::new(scene, &sockets);
        let mut watched = BTreeMap::new();
        for (pid, before) in before {
            let after = threads_later(pid, &before);
            let started_ticks = scene.processes[&pid].stat.started_ticks;
            let is_same = |stat: process::proc::Stat| {
                stat.started_ticks == started_ticks && (!after.is_empty() || stat.state == 'Z')
            };
            if !process::proc::Stat::of(pid).is_some_and(is_same) {
                continue;
            }
            let calls = Calls::of(pid).zip(calls.get(&pid)).map(|(now, then)| now.since(*then));
            let mut one = watch_one(&needs, pid, &before, after, elapsed_ns, calls);
            one.held_back = held.remove(&pid);
            watched.insert(pid, one);
        }
        let (alive, fills, gauge) = Default::default();
        let mut graph = Self { scene, sockets, watched, alive, fills, gauge };
        graph.find_alive();
        graph
    }

    /// Least fixed point: a process goes on if one of its threads does.
    fn find_alive(&mut self) {
        let mut alive: HashSet<i32> = HashSet::new();
        loop {
            let before = alive.len();
            for (pid, one) in &self.watched {
                if !alive.contains(pid) && self.goes_on(one, &alive) {
                    alive.insert(*pid);
                }
            }
            if alive.len() == before {
                break;
            }
        }
        self.alive = alive;
    }

    fn goes_on(&self, one: &Watched, alive: &HashSet<i32>) -> bool {
        if one.threads.is_empty() {
            // A zombie does nothing any more.
            return false;
        }
        if one.threads.iter().any(|(thread, _)| matches!(thread.wait, Wait::Stopped | Wait::Frozen)) {
            return false;
        }
        if !one.slept {
            return true;
        }
        let is_own = |need: &Need| match need.resource {
            Resource::Memory { is_shared } => !is_shared,
            Resource::Mutex { owner } => one.threads.iter().any(|(thread, _)| thread.id == owner),
            _ => false,
        };
        let is_idle = |thread: &Thread| matches!(thread.wait, Wait::Signal | Wait::Futex { timed: true, .. });
        // Threads that only wait for a signal or for each other do not end what another one waits for.
        let waits = |(thread, need): &&(Thread, Need)| !is_own(need) && !is_idle(thread);
        let mut others = one.threads.iter().filter(waits).peekable();
        others.peek().is_none()
            || others.any(|(_, need)| {
                let can = |pid: i32| !self.watched.contains_key(&pid) || alive.contains(&pid);
                need.outside || need.timed || need.wakers.iter().any(|holder| can(holder.pid))
            })
    }

    pub(super) fn is_alive(&self, pid: i32) -> bool {
        self.alive.contains(&pid)
    }

    pub(super) fn process(&self, pid: i32) -> Option<&Process> {
        self.scene.processes.get(&pid)
    }

    /// The program that a process runs: the interpreter of a script.
    pub(super) fn program(&self, pid: i32) -> Option<String> {
        Some(process::proc::program(pid, &self.process(pid)?.name))
    }

    pub(super) fn is_shell(&self, pid: i32) -> bool {
        self.program(pid).is_some_and(|program| process::is_shell(&program))
    }

    pub(super) fn named(&self, pid: i32) -> NamedProcess {
        self.scene.named(pid)
    }

    /// The processes behind these, nearest first, each once: those for which one of them waits.
    pub(super) fn behind(&self, roots: &[i32]) -> Vec<i32> {
        let mut seen: BTreeSet<i32> = roots.iter().copied().collect();
        let mut order: Vec<i32> =
            roots.iter().copied().filter(|pid| self.watched.contains_key(pid)).collect();
        let mut at = 0;
        while let Some(one) = order.get(at).and_then(|pid| self.watched.get(pid)) {
            // What something outside can end does not wait for those who could end it, too: the clients of a server, the programs of a terminal.
            for holder in one.needs().filter(|need| !need.outside).flat_map(|need| &need.wakers) {
                if seen.insert(holder.pid) && self.watched.contains_key(&holder.pid) {
                    order.push(holder.pid);
                }
            }
            at += 1;
        }
        order
    }

    /// How full the pipe is that a process has as this descriptor.
    pub(super) fn fill(&self, pid: i32, fd: i32) -> Option<Fill> {
        let key = (pid, fd);
        if let Some(known) = self.fills.borrow().get(&key) {
            return *known;
        }
        let end = self.scene.end(pid, fd)?;
        let IpcFile::Pipe(pipe) = end.ipc_file else { return None };
        // A FIFO without a reader is not opened: that would wake one who waits for a reader.
        let has_reader = !self.scene.holders(end.ipc_file, false).is_empty();
        let is_fifo = Some(pipe.0) != crate::endpoint::nameless();
        let found =
            (has_reader || !is_fifo).then(|| self.gauge.borrow_mut().pipe(pid, fd, Some(pipe))).flatten();
        self.fills.borrow_mut().insert(key, found);
        found
    }

    /// The shortest way from one of these processes to another, over what each waits for.
    pub(super) fn path(&self, roots: &[i32], to: i32) -> Vec<WhyEdge> {
        let mut came: HashMap<i32, (i32, usize)> = HashMap::new();
        let mut queue: VecDeque<i32> = roots.iter().copied().collect();
        let starts: HashSet<i32> = queue.iter().copied().collect();
        while let Some(pid) = queue.pop_front() {
            if pid == to {
                break;
            }
            let Some(one) = self.watched.get(&pid) else { continue };
            let waits = one.threads.iter().enumerate().filter(|(_, (_, need))| !need.outside);
            for (at, (_, need)) in waits {
                for holder in &need.wakers {
                    if !starts.contains(&holder.pid) && !came.contains_key(&holder.pid) {
                        came.insert(holder.pid, (pid, at));
                        queue.push_back(holder.pid);
                    }
                }
            }
        }
        let mut edges: Vec<WhyEdge> = Vec::new();
        let mut at = to;
        while let Some((from, thread)) = came.get(&at) {
            edges.insert(0, self.edge(*from, *thread, Some(at)));
            at = *from;
        }
        edges
    }

    /// One wait of a process. `only`: of those who could end it only this one is shown.
    pub(super) fn edge(&self, pid: i32, thread: usize, only: Option<i32>) -> WhyEdge {
        let (_, need) = &self.watched[&pid].threads[thread];
        let to = need.wakers.iter().filter(|holder| only.is_none_or(|only| only == holder.pid));
        let to = to.map(|holder| WhyHolder { process: self.named(holder.pid), fd: holder.fd }).collect();
        WhyEdge { from: self.named(pid), does: self.describe(pid, need), to }
    }

    /// What a process does that needs something: "reads stdin (pipe:[4711], empty)".
    pub(super) fn describe(&self, pid: i32, need: &Need) -> String {
        let about = |first: &str| match (need.what.as_str(), first) {
            ("", "") => String::new(),
            ("", first) => format!(" ({first})"),
            (what, "") => format!(" ({what})"),
            (what, first) => format!(" ({what}, {first})"),
        };
        match &need.resource {
            Resource::Pipe { fd, writes, .. } => {
                let held = self.fill(pid, *fd).map(|fill| match writes {
                    true => format!("{} of {} bytes", fill.held_bytes, fill.capacity_bytes),
                    false if fill.held_bytes == 0 => "empty".to_owned(),
                    false => format!("{} bytes", fill.held_bytes),
                });
                format!("{} {}{}", verb(*writes), descriptor_name(*fd), about(&held.unwrap_or_default()))
            }
            Resource::Socket { fd, writes, .. } => {
                format!("{} {}{}", verb(*writes), descriptor_name(*fd), about(""))
            }
            Resource::Terminal { fd, writes, .. } => {
                format!("{} {}{}", verb(*writes), descriptor_name(*fd), about("terminal"))
            }
            Resource::Several => "waits until one of several descriptors is ready".to_owned(),
            Resource::Fifo { writes } => {
                let way = writes.map_or("", |writes| if writes { " for writing" } else { " for reading" });
                format!("opens a FIFO{way}{}", about(""))
            }
            Resource::Lock => format!("waits for a lock{}", about("")),
            Resource::ListenQueue => format!("connects{}", about(&need.detail)),
            Resource::Datagrams => format!("sends a datagram{}", about("queue full")),
            Resource::Connections => format!("waits for connections{}", about("")),
            Resource::MessageQueue { sends } => {
                format!(
                    "{} a message queue{}",
                    if *sends { "sends to" } else { "receives from" },
                    about(&need.detail)
                )
            }
            Resource::Semaphore => format!("waits for a semaphore{}", about("")),
            Resource::Mutex { owner } => format!("waits for a mutex that thread {owner} holds"),
            Resource::Memory { is_shared: true } => {
                format!("waits at an address of shared memory{}", about(""))
            }
            Resource::Memory { .. } => "waits for another of its threads".to_owned(),
            Resource::Child => "waits for the end of its child".to_owned(),
            Resource::Nothing => "waits".to_owned(),
        }
    }
}

fn verb(writes: bool) -> &'static str {
    if writes { "writes to" } else { "reads" }
}

fn watch_one(
    needs: &Needs,
    pid: i32,
    before: &[Thread],
    after: Vec<Thread>,
    elapsed_ns: u64,
    calls: Option<Calls>,
) -> Watched {
    let then: HashMap<i32, &Thread> = before.iter().map(|thread| (thread.id, thread)).collect();
    let moved_nothing = calls.is_some_and(|calls| calls.read_bytes + calls.written_bytes == 0);
    let has_slept = |now: &Thread, then: &Thread| {
        now.slept_since(then)
            || (moved_nothing && now.waits_since(then, elapsed_ns))
            || (after.len() > 1 && now.ticks_since(then, elapsed_ns))
    };
    let slept = after.iter().all(|now| then.get(&now.id).is_some_and(|then| has_slept(now, then)));
    let pairs = || after.iter().filter_map(|now| Some((now, *then.get(&now.id)?)));
    let cpus = pairs().map(|(now, then)| now.cpu_since(then, elapsed_ns)).sum();
    let queued = pairs().map(|(now, then)| now.queued_since(then, elapsed_ns)).fold(0.0, f64::max);
    let turns: u64 = pairs().map(|(now, then)| now.turns_since(then)).sum();
    let mut threads: Vec<(Thread, Need)> = after
        .into_iter()
        .map(|thread| {
            let need = needs.of(pid, &thread.wait);
            (thread, need)
        })
        .collect();
    model::sort_by_key(&mut threads, |(_, need)| weight(need));
    let turns_per_s = turns as f64 * 1e9 / elapsed_ns.max(1) as f64;
    Watched { threads, slept, cpus, queued, turns_per_s, calls, held_back: None }
}

/// Which of a process's waits says most: one that a single other process can end.
fn weight(need: &Need) -> usize {
    match need.resource {
        Resource::Lock | Resource::Fifo { .. } | Resource::MessageQueue { .. } | Resource::ListenQueue => 0,
        Resource::Datagrams | Resource::Memory { is_shared: true } | Resource::Semaphore => 0,
        Resource::Mutex { .. } => 0,
        Resource::Pipe { writes: true, .. } => 1,
        Resource::Socket { writes: true, .. } | Resource::Terminal { writes: true, .. } => 1,
        Resource::Pipe { .. } => 2,
        Resource::Socket { .. } | Resource::Terminal { .. } | Resource::Connections => 3,
        Resource::Child => 4,
        Resource::Several => 5,
        Resource::Nothing => 6,
        Resource::Memory { .. } => 7,
    }
}

fn writes_pipe(scene: &Scene, pid: i32) -> bool {
    scene.end(pid, 1).is_some_and(|end| end.writes && end.ipc_file.pipe().is_some())
}
