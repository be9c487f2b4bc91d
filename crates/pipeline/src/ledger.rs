//! What the processes of a shell did, from the reports of the preloaded library: which links connected them, which programs they executed, and
//! how they ended.

mod topology;
mod typed;
mod unread;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use model::{StageRecord, shell_line};
use observe::flow::Moved;
use pipes::message::{Sender, Usage};
use process::proc::Stat;
use process::shown_status;

use crate::tips::file_name;
pub(crate) use typed::typed_stages;

/// The name of a stage that executed no program and started none: a builtin, a function, a loop.
pub(crate) const IN_THE_SHELL: &str = "(in the shell)";

/// Most commands in the name of a subshell.
const COMMANDS_MAX: usize = 4;

/// Limit on the steps from a stage to the first stage of its pipeline, or to the shell.
const STEPS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The shell itself.
    pub(crate) shell: i32,
    /// An entry for each program or part of a shell that a process has executed.
    pub(crate) processes: Vec<Process>,
    /// The latest entry of each process number.
    latest: HashMap<i32, usize>,
    /// The entries of processes that have not been reaped.
    alive: BTreeSet<usize>,
    /// Entries by the number of their parent.
    children: HashMap<i32, Vec<usize>>,
}

/// A process while it is one stage, or executes one program. A process that is several stages, one after the other, has several entries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: Option<i32>,
    pub(crate) began_ns: u64,
    /// The link it reads, and the one it writes.
    pub(crate) reads: Option<u64>,
    pub(crate) writes: Option<u64>,
    command: Option<String>,
    /// When it executed that program, and the resources that it had used before.
    executed_ns: u64,
    used_before: Usage,
    /// Children that it had before; they do not belong to the program.
    pub(crate) earlier_children: Vec<i32>,
    ended: Option<Ended>,
    /// Bytes that it read and wrote in total, once it has ended.
    moved: Option<Moved>,
}

impl Process {
    /// The link that it writes, or the one that it reads.
    fn link(&self, writes: bool) -> Option<u64> {
        if writes { self.writes } else { self.reads }
    }
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    at_ns: u64,
    /// The status of wait4(2); `None` if the shell itself was the stage.
    status: Option<i32>,
    usage: Usage,
}

/// Processes that are connected by links, the first writer first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pipeline {
    /// Indices into [`Ledger::processes`].
    pub(crate) processes: Vec<usize>,
    /// The links between them.
    pub(crate) links: Vec<u64>,
}

impl Ledger {
    pub(crate) fn new(shell: i32) -> Self {
        Self { shell, ..Self::default() }
    }

    /// Notes that a process now has an end of a link as its standard input (0), output (1) or error stream (2).
    pub(crate) fn took(&mut self, sender: &Sender, link: u64, number: i32) {
        let Sender { pid, at_ns, usage } = *sender;
        if let Some(process) = self.own_with(pid, link, number) {
            // The shell has the end again, for example after a redirection within a loop.
            process.ended = None;
            self.alive.extend(self.latest.get(&pid));
            return;
        }
        // A shell takes a saved descriptor back after a builtin's redirection: that is the same stage.
        let has_another = |process: &Process| process.link(number > 0).is_some_and(|had| had != link);
        let again = self
            .latest(pid)
            .is_none_or(|process| process.ended.is_some() || (number != 2 && has_another(process)));
        let process = self.entry(pid, again, at_ns);
        if again {
            process.used_before = usage;
        }
        match number {
            0 => process.reads = Some(link),
            _ => process.writes = Some(link),
        }
    }

    /// Notes that a process has replaced an end of a link. If it is the shell, its own stage of a pipeline has ended, with an unknown status.
    /// Other processes do this before they execute their program.
    pub(crate) fn left(&mut self, sender: &Sender, link: u64, number: i32) {
        let own = self.own_with(sender.pid, link, number);
        let Some(process) = own.filter(|process| process.ended.is_none()) else { return };
        let usage = used_since(sender.usage, process.used_before);
        process.ended = Some(Ended { at_ns: sender.at_ns, status: None, usage });
        if let Some(index) = self.latest.get(&sender.pid) {
            self.alive.remove(index);
        }
    }

    /// The latest entry of the shell itself, if it has or had this link at this descriptor.
    fn own_with(&mut self, pid: i32, link: u64, number: i32) -> Option<&mut Process> {
        let latest = *self.latest.get(&self.shell).filter(|_| pid == self.shell)?;
        let process = &mut self.processes[latest];
        let has = process.link(number > 0) == Some(link);
        (process.command.is_none() && has).then_some(process)
    }

    /// Whether this is the shell, before it executes another program.
    pub(crate) fn is_shell(&self, process: &Process) -> bool {
        process.pid == self.shell && process.command.is_none()
    }

    /// Notes that a process executes a program. There is a zero after each argument. `children` are the children that it already has, which do not
    /// belong to the program.
    pub(crate) fn executes(&mut self, sender: &Sender, parent: i32, arguments: &[u8], children: Vec<i32>) {
        let words = arguments.strip_suffix(b"\0").unwrap_or(arguments).split(|byte| *byte == 0);
        let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let again = self.latest(sender.pid).is_none_or(|process| process.ended.is_some());
        let process = self.entry(sender.pid, again, sender.at_ns);
        let is_new = process.parent.replace(parent) != Some(parent);
        process.command = Some(shell_line(&words));
        (process.executed_ns, process.used_before) = (sender.at_ns, sender.usage);
        process.earlier_children = children;
        if is_new {
            self.children.entry(parent).or_default().push(self.latest[&sender.pid]);
        }
    }

    /// Notes the number of bytes that a process has moved until its end.
    pub(crate) fn moved(&mut self, pid: i32, moved: Moved) {
        if let Some(index) = self.latest.get(&pid) {
            self.processes[*index].moved = Some(moved);
        }
    }

    /// Bytes that the writers of a link, or its readers, have moved in total; `so_far` gives the bytes of a running stage. `None` if the bytes of
    /// one of them are unknown.
    pub(crate) fn moved_at_end(
        &self,
        link: u64,
        writes: bool,
        so_far: impl Fn(usize) -> Option<Moved>,
    ) -> Option<u64> {
        let numbered = self.processes.iter().enumerate();
        let ends = numbered.filter(|(_, process)| process.link(writes) == Some(link));
        let moved = ends.map(|(index, process)| {
            let is_over = process.ended.is_some() || process.moved.is_some();
            let moved = if is_over { process.moved } else { so_far(index) }?;
            Some(if writes { moved.written } else { moved.read })
        });
        moved.sum()
    }

    /// Notes that a process was reaped.
    pub(crate) fn reaped(&mut self, sender: &Sender, status: i32) {
        let Some(index) = self.latest.get(&sender.pid) else { return };
        let process = &mut self.processes[*index];
        let mut ended = Ended { at_ns: sender.at_ns, status: Some(status), usage: sender.usage };
        if sender.pid == self.shell {
            // Excludes the resources that it used before it executed the program.
            ended.usage = used_since(sender.usage, process.used_before);
        }
        process.ended.get_or_insert(ended);
        self.alive.remove(index);
    }

    /// Every process that has not been reaped.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Process> {
        self.alive.iter().map(|index| &self.processes[*index])
    }

    /// The entries that are still running.
    pub(crate) fn running(&self) -> impl Iterator<Item = usize> {
        let is_latest = |index: &usize| self.latest.get(&self.processes[*index].pid) == Some(index);
        self.alive.iter().copied().filter(move |index| is_latest(index))
    }

    /// The link that a process reads.
    pub(crate) fn link_read_by(&self, pid: i32) -> Option<u64> {
        self.latest(pid)?.reads
    }

    /// The link that a process writes, or the one of the stage to which it belongs.
    pub(crate) fn link_written_by(&self, pid: i32) -> Option<u64> {
        let mut pid = pid;
        for _ in 0..STEPS_MAX {
            let process = self.latest(pid)?;
            if process.writes.is_some() || pid == self.shell {
                return process.writes;
            }
            pid = process.parent?;
        }
        None
    }

    /// A link, and all links downstream of it.
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

    /// The number, from 1, of the stage to which a process belongs. `None` while a stage before it has not reported its output.
    pub(crate) fn stage_number(&self, pid: i32) -> Option<usize> {
        let (mut number, mut pid) = (1, pid);
        for _ in 0..STEPS_MAX {
            let process = self.latest(pid);
            // The shell's own stage has ended.
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

    /// The latest entry of a process, or a new one if `another`.
    fn entry(&mut self, pid: i32, another: bool, at_ns: u64) -> &mut Process {
        if another {
            self.latest.insert(pid, self.processes.len());
            self.alive.insert(self.processes.len());
            self.processes.push(Process { pid, began_ns: at_ns, ..Process::default() });
        }
        let index = self.latest[&pid];
        &mut self.processes[index]
    }

    /// All pipelines, in the order in which they began. A command without a pipe that the shell itself started is a pipeline of one stage.
    pub(crate) fn pipelines(&self) -> Vec<Pipeline> {
        // The first process at this end of each link.
        let [readers, writers] = [false, true].map(|writes| -> HashMap<u64, usize> {
            let numbered = self.processes.iter().enumerate().rev();
            numbered.filter_map(|(index, process)| Some((process.link(writes)?, index))).collect()
        });
        let mut pipelines = Vec::new();
        for (index, process) in self.processes.iter().enumerate() {
            let first = process.reads.is_none_or(|link| !writers.contains_key(&link));
            let alone = process.reads.is_none() && process.writes.is_none();
            // A shell executes the only command of a text without a fork.
            let is_shell = process.pid == self.shell;
            let of_the_shell = is_shell || (process.parent.is_some() && process.parent == Some(self.shell));
            if !first || (alone && !of_the_shell) {
                continue;
            }
            let mut pipeline = Pipeline { processes: vec![index], links: Vec::new() };
            let mut last = Some(index);
            while let Some(link) = last.and_then(|last| self.processes[last].writes) {
                pipeline.links.push(link);
                last = readers.get(&link).copied().filter(|next| !pipeline.processes.contains(next));
                pipeline.processes.extend(last);
            }
            pipelines.push(pipeline);
        }
        pipelines
    }

    /// The pipelines that have ended. The shell's own stage ends with the others.
    pub(crate) fn ended_pipelines(&self) -> Vec<Pipeline> {
        let runs = |index: &usize| {
            let process = &self.processes[*index];
            process.ended.is_none() && process.pid != self.shell && is_there(process.pid)
        };
        let mut pipelines = self.pipelines();
        pipelines.retain(|pipeline| !pipeline.processes.iter().any(runs));
        pipelines
    }

    /// Whether an entry has this link.
    pub(crate) fn has_link(&self, link: u64) -> bool {
        self.processes.iter().any(|process| [process.reads, process.writes].contains(&Some(link)))
    }

    /// The first entry that writes to this link, or reads it.
    pub(crate) fn end_of(&self, link: u64, writes: bool) -> Option<usize> {
        self.processes.iter().position(|process| process.link(writes) == Some(link))
    }

    /// Whether a writer of this link is known.
    pub(crate) fn is_written(&self, link: u64) -> bool {
        self.processes.iter().any(|process| process.writes == Some(link))
    }

    /// Removes these pipelines, and the programs that their stages started.
    pub(crate) fn forget(&mut self, over: &[Pipeline]) {
        let gone: HashSet<usize> =
            over.iter().flat_map(|pipeline| pipeline.processes.iter().copied()).collect();
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
        self.replace_entries(kept);
    }

    /// Removes the entries that have ended and have no open link.
    pub(crate) fn forget_ended(&mut self, is_open: &dyn Fn(u64) -> bool) {
        let running: HashSet<usize> = self.running().collect();
        let entries = std::mem::take(&mut self.processes).into_iter().enumerate();
        let kept = entries.filter(|(index, process)| {
            let lives = running.contains(index) && is_there(process.pid);
            lives || [process.reads, process.writes].into_iter().flatten().any(is_open)
        });
        self.replace_entries(kept.map(|(_, process)| process).collect());
    }

    fn replace_entries(&mut self, kept: Vec<Process>) {
        self.processes = kept;
        (self.latest, self.alive, self.children) = Default::default();
        for (index, process) in self.processes.iter().enumerate() {
            self.latest.insert(process.pid, index);
            self.alive.extend(process.ended.is_none().then_some(index));
            if let Some(parent) = process.parent {
                self.children.entry(parent).or_default().push(index);
            }
        }
    }

    /// The file name of the program that a process has executed.
    pub(crate) fn program(&self, index: usize) -> Option<&str> {
        Some(file_name(self.processes[index].command.as_deref()?.split(' ').next()?))
    }

    /// The name of a stage: the program that it executed, or those that it started.
    pub(crate) fn name(&self, index: usize) -> String {
        let process = &self.processes[index];
        let is_of_it = |child: &&Process| child.began_ns >= process.began_ns;
        // A subshell may execute its last program itself, after others have ended.
        let is_over = |child: &&Process| child.ended.is_some_and(|ended| ended.at_ns <= process.executed_ns);
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
        format!("({})", without_repetitions(&names).join("; "))
    }

    /// The program that ran for the longest time and is no stage of these pipelines, with that time in ns; `seen_ns` is when one was seen last that
    /// was never reaped.
    pub(crate) fn longest_beside(
        &self,
        pipelines: &[Pipeline],
        seen_ns: impl Fn(usize) -> Option<u64>,
    ) -> Option<(String, u64)> {
        let is_stage = |index: &usize| pipelines.iter().any(|pipeline| pipeline.processes.contains(index));
        let ran = |index: usize| {
            let process = &self.processes[index];
            let end_ns = process.ended.map(|ended| ended.at_ns).or_else(|| seen_ns(index))?;
            Some((process.command.clone()?, end_ns.saturating_sub(process.began_ns)))
        };
        let beside = (0..self.processes.len()).filter(|index| !is_stage(index));
        beside.filter_map(ran).max_by_key(|(_, ns)| *ns)
    }

    /// The record of a process; `None` if it was never reaped.
    pub(crate) fn stage(&self, number: u32, pipeline: &Pipeline, index: usize) -> Option<StageRecord> {
        let process = &self.processes[index];
        let peers = pipeline.processes.iter().filter_map(|peer| self.processes[*peer].ended);
        let mut ended = process.ended;
        if self.is_shell(process) && ended.is_none_or(|ended| ended.status.is_some()) {
            // The shell did not report the end of its stage: it ends with the other stages.
            let at_ns = peers.map(|peer| peer.at_ns).max()?;
            ended = Some(Ended { at_ns, status: None, usage: Usage::default() });
        }
        Some(self.record(number, index, ended?))
    }

    /// The record of a process that was never reaped, and was seen last at `seen_ns`.
    pub(crate) fn unreaped_stage(&self, number: u32, index: usize, seen_ns: u64) -> StageRecord {
        self.record(number, index, Ended { at_ns: seen_ns, status: None, usage: Usage::default() })
    }

    fn record(&self, number: u32, index: usize, ended: Ended) -> StageRecord {
        let process = &self.processes[index];
        let status = ended.status.map(ExitStatus::from_raw);
        StageRecord {
            pipeline: number,
            command: self.name(index),
            pid: Some(process.pid),
            status: status.map(shown_status),
            signal: status.and_then(|status| status.signal()),
            wall_ns: ended.at_ns.saturating_sub(process.began_ns),
            user_ns: ended.usage.user_us * 1000,
            system_ns: ended.usage.system_us * 1000,
            max_rss_bytes: (process.pid != self.shell).then_some(ended.usage.max_rss_kib * 1024),
            ..StageRecord::default()
        }
    }
}

/// Each command once, because a loop starts the same ones again and again; if there are many, each program once.
fn without_repetitions(commands: &[&str]) -> Vec<String> {
    let mut known = HashSet::new();
    let distinct: Vec<&str> = commands.iter().copied().filter(|command| known.insert(*command)).collect();
    if distinct.len() <= COMMANDS_MAX {
        return distinct.into_iter().map(str::to_owned).collect();
    }
    let program = |command: &&str| command.split(' ').next().unwrap_or_default().to_owned();
    let several = |program: String| {
        let mut same = distinct.iter().filter(|command| command.split(' ').next() == Some(&*program));
        match (same.next(), same.next()) {
            (Some(only), None) => (*only).to_owned(),
            _ => format!("{program} …"),
        }
    };
    let mut known = HashSet::new();
    distinct.iter().map(program).filter(|program| known.insert(program.clone())).map(several).collect()
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
