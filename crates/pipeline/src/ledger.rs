//! What a shell's processes did, put together from what the preloaded library reported: which of them were joined by which link, what
//! they became, and how they ended.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use model::{StageRecord, shell_line};
use observe::flow::Moved;
use pipes::protocol::{Head, Usage};
use process::proc::Stat;
use process::shown_status;

/// What a stage is called that became no program and started none: a builtin, a function, a loop.
pub(crate) const IN_THE_SHELL: &str = "(in the shell)";

/// The most steps to the first stage, or to the shell.
const STEPS_MAX: usize = 10_000;

/// The stages of a text as they are typed, where it is one pipeline of so many stages and that is certain without reading it as a shell
/// does; else none.
pub(crate) fn typed_stages(text: &str, count: usize) -> Vec<&str> {
    let stages: Vec<&str> = text.split('|').map(str::trim).collect();
    let is_one = |stage: &&str| {
        let is_compound = ["done", "fi", "esac", "}", ")"].iter().any(|end| stage.ends_with(end));
        is_compound || !stage.contains([';', '&', '\n'])
    };
    if stages.len() == count && stages.iter().all(is_one) { stages } else { Vec::new() }
}

#[derive(Debug)]
pub(crate) struct Ledger {
    /// The shell itself.
    pub(crate) shell: i32,
    /// Every part that some process running.
    pub(crate) processes: Vec<Process>,
    /// The latest entry of each process number.
    latest: HashMap<i32, usize>,
    /// The entries of processes that have not been waited for.
    alive: BTreeSet<usize>,
    /// Entries by the number of their parent.
    children: HashMap<i32, Vec<usize>>,
}

/// A process, in one part it running.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: Option<i32>,
    pub(crate) began_ns: u64,
    /// The link it reads, and the one it writes.
    pub(crate) reads: Option<u64>,
    pub(crate) writes: Option<u64>,
    command: Option<String>,
    /// When it became that, and what it had used before.
    became_ns: u64,
    used_before: Usage,
    /// Children it had before: no part of the program.
    pub(crate) aside: Vec<i32>,
    ended: Option<Ended>,
    /// What it read and wrote in all, once it has ended.
    moved: Option<Moved>,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    at_ns: u64,
    /// As wait4(2) has it; `None` of what a shell did itself.
    status: Option<i32>,
    usage: Usage,
}

/// Processes joined by links, the first writer first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pipeline {
    /// Their places in [`Ledger::processes`].
    pub(crate) processes: Vec<usize>,
    /// The links between them.
    pub(crate) links: Vec<u64>,
}

impl Ledger {
    /// Of a shell of which nothing was reported yet.
    pub(crate) fn of(shell: i32) -> Self {
        let (latest, alive, children) = Default::default();
        Self { shell, processes: Vec::new(), latest, alive, children }
    }

    /// A process has an end of a link as its standard input (0), output or error stream now.
    pub(crate) fn took(&mut self, head: &Head) {
        let Head { pid, id: link, value: number, at_ns, usage, .. } = *head;
        if let Some(process) = self.own_with(head) {
            // A redirection within a loop, for example, is over.
            process.ended = None;
            self.alive.extend(self.latest.get(&pid));
            return;
        }
        // What a shell had saved, and takes back behind a builtin's redirection, is the same part's.
        let other = |had: Option<u64>| had.is_some_and(|had| had != link);
        let taken =
            |process: &Process| if number == 0 { other(process.reads) } else { other(process.writes) };
        let again =
            self.latest(pid).is_none_or(|process| process.ended.is_some() || (taken(process) && number != 2));
        let process = self.part(pid, again, at_ns);
        if again {
            process.used_before = usage;
        }
        match number {
            0 => process.reads = Some(link),
            _ => process.writes = Some(link),
        }
    }

    /// A process has something else than an end of a link now. The shell has done what it did itself of a pipeline; how that ended
    /// is not known. Others do so before they begin.
    pub(crate) fn left(&mut self, head: &Head) {
        let Some(process) = self.own_with(head).filter(|process| process.ended.is_none()) else { return };
        let usage = used_since(head.usage, process.used_before);
        process.ended = Some(Ended { at_ns: head.at_ns, status: None, usage });
        if let Some(index) = self.latest.get(&head.pid) {
            self.alive.remove(index);
        }
    }

    /// The latest part of the shell itself, where it has, or had, this link there.
    fn own_with(&mut self, head: &Head) -> Option<&mut Process> {
        let latest = *self.latest.get(&self.shell).filter(|_| head.pid == self.shell)?;
        let process = &mut self.processes[latest];
        let has = if head.value == 0 { process.reads } else { process.writes };
        (process.command.is_none() && has == Some(head.id)).then_some(process)
    }

    /// Whether this is the shell, as long as it has become no other program.
    pub(crate) fn is_shell(&self, process: &Process) -> bool {
        process.pid == self.shell && process.command.is_none()
    }

    /// A process becomes another program, whose arguments have a zero behind each. It has these children, of its own and no part
    /// of the program.
    pub(crate) fn becomes(&mut self, head: &Head, arguments: &[u8], children: Vec<i32>) {
        let words = arguments.strip_suffix(b"\0").unwrap_or(arguments).split(|byte| *byte == 0);
        let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let again = self.latest(head.pid).is_none_or(|process| process.ended.is_some());
        let parent = head.value as i32;
        let process = self.part(head.pid, again, head.at_ns);
        let is_new = process.parent.replace(parent) != Some(parent);
        process.command = Some(shell_line(&words));
        (process.became_ns, process.used_before) = (head.at_ns, head.usage);
        process.aside = children;
        if is_new {
            self.children.entry(parent).or_default().push(self.latest[&head.pid]);
        }
    }

    /// A process has ended, and has moved so much.
    pub(crate) fn moved(&mut self, pid: i32, moved: Moved) {
        if let Some(index) = self.latest.get(&pid) {
            self.processes[*index].moved = Some(moved);
        }
    }

    /// What the writers of a link, or its readers, have moved in all; of those that still run, so far. `None` where that is not known of
    /// one.
    pub(crate) fn moved_at_end(
        &self,
        link: u64,
        writes: bool,
        so_far: impl Fn(usize) -> Option<Moved>,
    ) -> Option<u64> {
        let has = |process: &Process| if writes { process.writes } else { process.reads } == Some(link);
        let ends = self.processes.iter().enumerate().filter(|(_, process)| has(process));
        let moved = ends.map(|(index, process)| {
            let is_over = process.ended.is_some() || process.moved.is_some();
            let moved = if is_over { process.moved } else { so_far(index) }?;
            Some(if writes { moved.written } else { moved.read })
        });
        moved.sum()
    }

    /// A process was waited for.
    pub(crate) fn reaped(&mut self, head: &Head) {
        let Some(index) = self.latest.get(&head.pid) else { return };
        let process = &mut self.processes[*index];
        let mut ended = Ended { at_ns: head.at_ns, status: Some(head.value as i32), usage: head.usage };
        if head.pid == self.shell {
            // What it did before it became the program is not the program's.
            ended.usage = used_since(head.usage, process.used_before);
        }
        process.ended.get_or_insert(ended);
        self.alive.remove(index);
    }

    /// Every process that has not been waited for.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Process> {
        self.alive.iter().map(|index| &self.processes[*index])
    }

    /// The parts that are still being running.
    pub(crate) fn running(&self) -> impl Iterator<Item = usize> {
        let is_latest = |index: &usize| self.latest.get(&self.processes[*index].pid) == Some(index);
        self.alive.iter().copied().filter(move |index| is_latest(index))
    }

    /// A link, and those behind it that carry what its readers make of it.
    pub(crate) fn downstream(&self, link: u64) -> Vec<u64> {
        let mut links = vec![link];
        for at in 0.. {
            let Some(link) = links.get(at).copied() else { break };
            let readers = self.processes.iter().filter(|process| process.reads == Some(link));
            for behind in readers.filter_map(|process| process.writes) {
                if !links.contains(&behind) {
                    links.push(behind);
                }
            }
        }
        links
    }

    /// The number of the stage that a process is, or that it is a part of, from 1. `None` while a stage before it has not reported what it
    /// writes to.
    pub(crate) fn stage_number(&self, pid: i32) -> Option<usize> {
        let (mut number, mut pid) = (1, pid);
        for _ in 0..STEPS_MAX {
            let process = self.latest(pid);
            // What the shell itself read is over.
            let is_over = |process: &&Process| self.is_shell(process) && process.ended.is_some();
            if let Some(link) = process.filter(|process| !is_over(process)).and_then(|process| process.reads)
            {
                number += 1;
                pid = self.processes.iter().find(|process| process.writes == Some(link))?.pid;
                continue;
            }
            let parent =
                || process.and_then(|process| process.parent).or_else(|| Some(Stat::of(pid)?.parent));
            match parent().filter(|parent| pid != self.shell && *parent > 1) {
                Some(parent) => pid = parent,
                None => break,
            }
        }
        Some(number)
    }

    fn latest(&self, pid: i32) -> Option<&Process> {
        self.latest.get(&pid).map(|index| &self.processes[*index])
    }

    /// The part that a process plays, or another one that it begins now.
    fn part(&mut self, pid: i32, another: bool, at_ns: u64) -> &mut Process {
        if another {
            self.latest.insert(pid, self.processes.len());
            self.alive.insert(self.processes.len());
            self.processes.push(Process { pid, began_ns: at_ns, ..Process::default() });
        }
        let index = self.latest[&pid];
        &mut self.processes[index]
    }

    /// Processes that were joined by links, in the order in which they began; a command without a pipe, that the shell itself
    /// started, is alone.
    pub(crate) fn pipelines(&self) -> Vec<Pipeline> {
        let by = |link: fn(&Process) -> Option<u64>| {
            let numbered = self.processes.iter().enumerate().rev();
            numbered
                .filter_map(|(index, process)| Some((link(process)?, index)))
                .collect::<HashMap<u64, usize>>()
        };
        let (readers, writers) = (by(|process| process.reads), by(|process| process.writes));
        let reader = |link: u64| readers.get(&link).copied();
        let has_writer = |link: u64| writers.contains_key(&link);
        let mut pipelines = Vec::new();
        for (index, process) in self.processes.iter().enumerate() {
            let first = process.reads.is_none_or(|link| !has_writer(link));
            let alone = process.reads.is_none() && process.writes.is_none();
            // A shell whose text is one command becomes that.
            let is_it = process.pid == self.shell;
            let of_the_shell = is_it || (process.parent.is_some() && process.parent == Some(self.shell));
            if !first || (alone && !of_the_shell) {
                continue;
            }
            let mut joined = Pipeline { processes: vec![index], links: Vec::new() };
            let mut last = index;
            while let Some(link) = self.processes[last].writes {
                joined.links.push(link);
                match reader(link).filter(|next| !joined.processes.contains(next)) {
                    Some(next) => joined.processes.push(next),
                    None => break,
                }
                last = joined.processes[joined.processes.len() - 1];
            }
            pipelines.push(joined);
        }
        pipelines
    }

    /// The pipelines of which nothing runs any more. The shell's own part is over with the others'.
    pub(crate) fn over(&self) -> Vec<Pipeline> {
        let runs = |index: &usize| {
            let process = &self.processes[*index];
            process.ended.is_none() && process.pid != self.shell && is_there(process.pid)
        };
        let mut pipelines = self.pipelines();
        pipelines.retain(|joined| !joined.processes.iter().any(runs));
        pipelines
    }

    /// Whether an entry speaks of this link.
    pub(crate) fn knows(&self, link: u64) -> bool {
        self.processes.iter().any(|process| [process.reads, process.writes].contains(&Some(link)))
    }

    /// Whether a writer of this link is known.
    pub(crate) fn is_written(&self, link: u64) -> bool {
        self.processes.iter().any(|process| process.writes == Some(link))
    }

    /// Takes pipelines out, and what their stages started.
    pub(crate) fn forget(&mut self, over: &[Pipeline]) {
        let gone: HashSet<usize> = over.iter().flat_map(|joined| joined.processes.iter().copied()).collect();
        let mut known: HashSet<i32> = HashSet::new();
        let mut kept = Vec::new();
        for (index, process) in std::mem::take(&mut self.processes).into_iter().enumerate() {
            let of_another =
                process.reads.is_none() && process.writes.is_none() && process.parent != Some(self.shell);
            let stays = if of_another {
                process.parent.is_some_and(|parent| known.contains(&parent))
            } else {
                !gone.contains(&index)
            };
            if stays {
                known.insert(process.pid);
                kept.push(process);
            }
        }
        self.put(kept);
    }

    /// Takes out what has ended and is joined by no link that is open.
    pub(crate) fn forget_ended(&mut self, is_open: &dyn Fn(u64) -> bool) {
        let running: HashSet<usize> = self.running().collect();
        let mut index = 0;
        let mut kept = std::mem::take(&mut self.processes);
        kept.retain(|process| {
            index += 1;
            let lives = running.contains(&(index - 1)) && is_there(process.pid);
            lives || [process.reads, process.writes].into_iter().flatten().any(is_open)
        });
        self.put(kept);
    }

    fn put(&mut self, kept: Vec<Process>) {
        self.processes = kept;
        let numbered = || self.processes.iter().enumerate();
        self.latest = numbered().map(|(index, process)| (process.pid, index)).collect();
        self.alive =
            numbered().filter(|(_, process)| process.ended.is_none()).map(|(index, _)| index).collect();
        self.children.clear();
        for (index, process) in self.processes.iter().enumerate() {
            if let Some(parent) = process.parent {
                self.children.entry(parent).or_default().push(index);
            }
        }
    }

    /// What a process is called: the program it became, or those that it started.
    pub(crate) fn name(&self, index: usize) -> String {
        let process = &self.processes[index];
        let is_of_it = |child: &&Process| child.began_ns >= process.began_ns;
        // What ran before the last program of a subshell took its place.
        let is_over = |child: &&Process| child.ended.is_some_and(|ended| ended.at_ns <= process.became_ns);
        let children = self.children.get(&process.pid).into_iter().flatten();
        let below = children.map(|child| &self.processes[*child]).filter(is_of_it);
        let below = below.filter(|child| process.command.is_none() || is_over(child)).chain([process]);
        let names: Vec<&str> = below.filter_map(|child| child.command.as_deref()).collect();
        if let (Some(command), [_]) = (&process.command, &names[..]) {
            return command.clone();
        }
        if process.pid == self.shell || names.is_empty() {
            return IN_THE_SHELL.to_owned();
        }
        format!("({})", names.join("; "))
    }

    /// The record of a process; `None` of one that was never waited for.
    pub(crate) fn stage(&self, pipeline: u32, joined: &Pipeline, index: usize) -> Option<StageRecord> {
        let process = &self.processes[index];
        let peers = joined.processes.iter().filter_map(|peer| self.processes[*peer].ended);
        let mut ended = process.ended;
        if self.is_shell(process) && ended.is_none_or(|ended| ended.status.is_some()) {
            // It has not said so: its own part is over with the others'.
            let at_ns = peers.map(|peer| peer.at_ns).max()?;
            ended = Some(Ended { at_ns, status: None, usage: Usage::default() });
        }
        let ended = ended?;
        let status = ended.status.map(ExitStatus::from_raw);
        Some(StageRecord {
            pipeline,
            command: self.name(index),
            pid: Some(process.pid),
            status: status.map(shown_status),
            signal: status.and_then(|status| status.signal()),
            wall_ns: ended.at_ns.saturating_sub(process.began_ns),
            user_ns: ended.usage.user_us * 1000,
            system_ns: ended.usage.system_us * 1000,
            max_rss_bytes: (process.pid != self.shell).then_some(ended.usage.max_rss_kib * 1024),
            ..StageRecord::default()
        })
    }
}

fn used_since(now: Usage, before: Usage) -> Usage {
    Usage {
        user_us: now.user_us.saturating_sub(before.user_us),
        system_us: now.system_us.saturating_sub(before.system_us),
        ..now
    }
}

fn is_there(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests;
