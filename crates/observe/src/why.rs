//! Why processes do not go on: a graph of which process waits for which, and the cause at its root.
//!
//! ```text
//!    scene      all processes, and who has which end open
//!    wait       what each thread waits for
//!    unseen     the same where its system call may not be read
//!    needs      what could end the wait, and who can give it
//!    graph      the processes behind those that were asked about; which of them can still go on
//!    causes     the table of what can be wrong, in the order of its weight
//! ```
//! Nothing is stopped or changed. Only pipes are opened, briefly: for reading, and for writing to learn whether one has lost its readers
//! (`crate::brief_pipe`).

mod causes;
mod graph;
mod locks;
mod memory;
mod needs;
mod queues;
mod scene;
mod sockets;
mod unseen;
mod wait;

use std::collections::HashSet;
use std::time::Duration;

use model::{WhyAnswer, WhyCause, WhyVerdict};

use crate::flow::Calls;
use graph::Graph;
use scene::Scene;

/// How long the threads are watched: those that get no CPU in this time wait.
const WATCH: Duration = Duration::from_millis(600);
/// Most answers.
const ANSWERS_MAX: usize = 5;

/// What a process and its descendants have done so far: the same twice means that they did nothing meanwhile.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Progress {
    processes: Vec<i32>,
    cpu_ticks: u64,
    moved_bytes: u64,
}

impl Progress {
    /// Of these processes and their descendants.
    pub fn of(roots: &[i32]) -> Self {
        let processes = process::proc::tree(roots, process::proc::children);
        let stats = processes.iter().filter_map(|pid| process::proc::Stat::of(*pid));
        let cpu_ticks = stats.map(|stat| stat.cpu_ticks + stat.children_cpu_ticks).sum();
        let calls = processes.iter().filter_map(|pid| Calls::of(*pid));
        let moved_bytes = calls.map(|calls| calls.read_bytes + calls.written_bytes).sum();
        Self { processes, cpu_ticks, moved_bytes }
    }
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A process, and what it has started.
    Process(i32),
    /// Each of these processes, alone.
    Each(Vec<i32>),
    /// The processes with this in the name of their program or in their command line.
    Named(String),
    /// Those of this user that have waited longest; `all`: also those that wait for their user, however many.
    Longest { all: bool },
}

/// The answers, and the number of processes whose open files could not be read.
pub struct Explained {
    pub answers: Vec<WhyAnswer>,
    /// Answers beyond the most that are given.
    pub left_out: usize,
    pub unseen: usize,
}

/// Looks at the machine for less than a second, and answers. There is no answer for processes that have ended meanwhile. `except`: these are not meant by a
/// name, nor by [`Asked::Longest`], as is this process.
pub fn explain(asked: &Asked, except: &[i32]) -> Explained {
    let scene = Scene::read();
    let questions = questions(&scene, asked, except);
    let graph = Graph::watch(&scene, &questions, WATCH);
    let mut answers: Vec<WhyAnswer> =
        questions.iter().filter_map(|roots| causes::answer(&graph, roots)).collect();
    match asked {
        Asked::Process(_) | Asked::Each(_) => {}
        Asked::Named(_) => {
            distinct(&mut answers);
            let is = |answer: &WhyAnswer, verdict| answer.verdict != verdict;
            model::sort_by_key(&mut answers, |answer| {
                (is(answer, WhyVerdict::Stuck), is(answer, WhyVerdict::Unknown))
            });
        }
        Asked::Longest { all } => {
            answers.retain(|answer| answer.verdict == WhyVerdict::Stuck && (*all || !is_usual(answer.cause)));
            distinct(&mut answers);
            model::sort_by_key(&mut answers, |answer| std::cmp::Reverse(answer.for_ns));
        }
    }
    let is_limited = matches!(asked, Asked::Named(_) | Asked::Longest { all: false });
    let left_out = if is_limited { answers.len().saturating_sub(ANSWERS_MAX) } else { 0 };
    answers.truncate(answers.len() - left_out);
    Explained { answers, left_out, unseen: scene.unseen }
}

/// Each with the processes that it is about, the one that was asked about first.
fn questions(scene: &Scene, asked: &Asked, except: &[i32]) -> Vec<Vec<i32>> {
    let is_meant = |pid: &i32| !except.contains(pid);
    match asked {
        Asked::Process(pid) => vec![scene.tree(*pid)],
        Asked::Each(pids) => pids.iter().map(|pid| vec![*pid]).collect(),
        Asked::Named(text) => {
            let text = text.to_lowercase();
            let has = |pid: i32, name: &str| {
                name.to_lowercase().contains(&text)
                    || process::proc::command_line(pid).to_lowercase().contains(&text)
            };
            let mut found =
                scene.processes.iter().filter(|(pid, one)| is_meant(pid) && has(**pid, &one.name));
            let exact =
                scene.processes.iter().any(|(pid, one)| is_meant(pid) && one.name.to_lowercase() == text);
            let mut all: Vec<i32> = found
                .by_ref()
                .filter(|(_, one)| !exact || one.name.to_lowercase() == text)
                .map(|(pid, _)| *pid)
                .collect();
            let within: HashSet<i32> =
                all.iter().flat_map(|pid| scene.tree(*pid).into_iter().skip(1)).collect();
            all.retain(|pid| !within.contains(pid));
            all.into_iter().map(|pid| scene.tree(pid)).collect()
        }
        Asked::Longest { .. } => {
            let own = rustix::process::geteuid().as_raw();
            let is_own = |pid: &i32| is_meant(pid) && (own == 0 || scene.processes[pid].uid == own);
            scene.processes.keys().copied().filter(is_own).map(|pid| vec![pid]).collect()
        }
    }
}

/// Of answers about the same cause and the same processes only the first stays.
fn distinct(answers: &mut Vec<WhyAnswer>) {
    let mut seen = HashSet::new();
    answers.retain(|answer| {
        let by: Vec<i32> = answer.by.iter().map(|process| process.pid).collect();
        let key = match answer.cause {
            cause if cause.is_circle() => {
                let mut all = [by, vec![answer.who.pid]].concat();
                all.sort_unstable();
                all.dedup();
                all
            }
            _ => [vec![answer.who.pid], by].concat(),
        };
        seen.insert((answer.cause, key))
    });
}

/// What programs do that wait for their user: no reason to name one that was not asked about.
fn is_usual(cause: WhyCause) -> bool {
    use WhyCause::{
        LoopInput, Stopped, StoppedInBackground, TerminalInput, TerminalKey, TerminalQuestion, Traced,
    };
    [TerminalInput, TerminalKey, TerminalQuestion, Stopped, StoppedInBackground, Traced, LoopInput]
        .contains(&cause)
}
