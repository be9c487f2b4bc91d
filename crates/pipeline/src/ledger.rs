//! What a shell's processes did, put together from what the preloaded library told: which of them were joined by which link, what
//! they became, and how they ended.

use std::collections::{HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use model::StageRecord;
use pipes::protocol::{Head, Usage};
use process::shown_status;

/// What a stage is called that became no program and started none: a builtin, a function, a loop.
pub(crate) const IN_THE_SHELL: &str = "(in the shell)";

/// All that was told.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The shell itself.
    pub(crate) shell: i32,
    /// Every part that some process played.
    pub(crate) processes: Vec<Process>,
    /// The latest entry of each process number.
    latest: HashMap<i32, usize>,
}

/// A process, in one part it played.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: Option<i32>,
    pub(crate) began_ns: u64,
    /// The link it reads, and the one it writes.
    pub(crate) reads: Option<u64>,
    pub(crate) writes: Option<u64>,
    command: Option<String>,
    /// When it became that.
    became_ns: u64,
    /// Children it had before: no part of the program.
    pub(crate) aside: Vec<i32>,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    at_ns: u64,
    status: i32,
    usage: Usage,
}

/// Processes joined by links, the first writer first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Joined {
    /// Their places in [`Ledger::processes`].
    pub(crate) processes: Vec<usize>,
    /// The links between them.
    pub(crate) links: Vec<u64>,
}

impl Ledger {
    /// Of this shell nothing was told yet.
    pub(crate) fn of(shell: i32) -> Self {
        Self { shell, processes: Vec::new(), latest: HashMap::new() }
    }

    /// A process has an end of a link as its standard input (0), output or error stream now.
    pub(crate) fn took(&mut self, pid: i32, link: u64, number: i64, at_ns: u64) {
        // What a shell had saved, and takes back behind a builtin's redirection, is the same part's.
        let other = |had: Option<u64>| had.is_some_and(|had| had != link);
        let taken =
            |process: &Process| if number == 0 { other(process.reads) } else { other(process.writes) };
        let again =
            self.latest(pid).is_none_or(|process| process.ended.is_some() || (taken(process) && number != 2));
        let process = self.part(pid, again, at_ns);
        match number {
            0 => process.reads = Some(link),
            _ => process.writes = Some(link),
        }
    }

    /// A process becomes another program, whose arguments have a zero behind each. It has these children, of its own and no part
    /// of the program.
    pub(crate) fn becomes(&mut self, head: &Head, arguments: &[u8], children: Vec<i32>) {
        let words = arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let again = self.latest(head.pid).is_none_or(|process| process.ended.is_some());
        let process = self.part(head.pid, again, head.at_ns);
        process.parent = Some(head.value as i32);
        process.command = Some(words.join(" "));
        process.became_ns = head.at_ns;
        process.aside = children;
    }

    /// A process was waited for.
    pub(crate) fn reaped(&mut self, head: &Head) {
        let ended = Ended { at_ns: head.at_ns, status: head.value as i32, usage: head.usage };
        let Some(index) = self.latest.get(&head.pid) else { return };
        self.processes[*index].ended.get_or_insert(ended);
    }

    /// Every process that has not been waited for.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|process| process.ended.is_none())
    }

    /// The parts that are still being played.
    pub(crate) fn played(&self) -> impl Iterator<Item = usize> {
        let is_latest = |index: &usize| self.latest.get(&self.processes[*index].pid) == Some(index);
        (0..self.processes.len())
            .filter(move |index| self.processes[*index].ended.is_none() && is_latest(index))
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

    fn latest(&self, pid: i32) -> Option<&Process> {
        self.latest.get(&pid).map(|index| &self.processes[*index])
    }

    /// The part that a process plays, or another one that it begins now.
    fn part(&mut self, pid: i32, another: bool, at_ns: u64) -> &mut Process {
        if another {
            self.latest.insert(pid, self.processes.len());
            self.processes.push(Process { pid, began_ns: at_ns, ..Process::default() });
        }
        let index = self.latest[&pid];
        &mut self.processes[index]
    }

    /// Processes that were joined by links, in the order in which they began; a command without a pipe, that the shell itself
    /// started, is alone.
    pub(crate) fn pipelines(&self) -> Vec<Joined> {
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
            let mut joined = Joined { processes: vec![index], links: Vec::new() };
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
    pub(crate) fn over(&self) -> Vec<Joined> {
        let runs = |index: &usize| {
            let process = &self.processes[*index];
            let is_there = || Path::new(&format!("/proc/{}", process.pid)).exists();
            process.ended.is_none() && process.pid != self.shell && is_there()
        };
        let mut pipelines = self.pipelines();
        pipelines.retain(|joined| !joined.processes.iter().any(runs));
        pipelines
    }

    /// Whether an entry speaks of this link.
    pub(crate) fn knows(&self, link: u64) -> bool {
        self.processes.iter().any(|process| [process.reads, process.writes].contains(&Some(link)))
    }

    /// Whether somebody is known who writes to this link.
    pub(crate) fn is_written(&self, link: u64) -> bool {
        self.processes.iter().any(|process| process.writes == Some(link))
    }

    /// Takes pipelines out, and what their stages started.
    pub(crate) fn forget(&mut self, over: &[Joined]) {
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
        self.latest = kept.iter().enumerate().map(|(index, process)| (process.pid, index)).collect();
        self.processes = kept;
    }

    /// What a process is called: the program it became, or those that it started.
    pub(crate) fn name(&self, index: usize) -> String {
        let process = &self.processes[index];
        let is_of_it =
            |child: &&Process| child.parent == Some(process.pid) && child.began_ns >= process.began_ns;
        // What ran before the last program of a subshell took its place.
        let is_over = |child: &&Process| child.ended.is_some_and(|ended| ended.at_ns <= process.became_ns);
        let below = self.processes.iter().filter(is_of_it);
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
    pub(crate) fn stage(&self, pipeline: u32, joined: &Joined, index: usize) -> Option<StageRecord> {
        let process = &self.processes[index];
        let peers = joined.processes.iter().filter_map(|peer| self.processes[*peer].ended);
        // The shell's own part is over with the others'.
        let with_the_others =
            || Some(Ended { at_ns: peers.map(|peer| peer.at_ns).max()?, status: 0, usage: Usage::default() });
        let own = process.pid == self.shell;
        let ended = if own { with_the_others() } else { process.ended }?;
        let status = ExitStatus::from_raw(ended.status);
        Some(StageRecord {
            pipeline,
            command: self.name(index),
            pid: Some(process.pid),
            status: shown_status(status),
            signal: status.signal(),
            wall_ns: ended.at_ns.saturating_sub(process.began_ns),
            user_ns: ended.usage.user_us * 1000,
            system_ns: ended.usage.system_us * 1000,
            max_rss_bytes: (!own).then_some(ended.usage.max_rss_kib * 1024),
            ..StageRecord::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaped(ledger: &mut Ledger, pid: i32, at_ns: u64, status: i64) {
        ledger.reaped(&Head { pid, at_ns, value: status, ..Head::default() });
    }

    fn becomes(ledger: &mut Ledger, pid: i32, parent: i64, arguments: &[u8], at_ns: u64) {
        ledger.becomes(&Head { pid, value: parent, at_ns, ..Head::default() }, arguments, Vec::new());
    }

    fn names(ledger: &Ledger) -> Vec<Vec<String>> {
        let name = |joined: Joined| joined.processes.iter().map(|index| ledger.name(*index)).collect();
        ledger.pipelines().into_iter().map(name).collect()
    }

    #[test]
    fn what_is_taken_back_is_no_other_part() {
        let mut ledger = Ledger::of(1);
        ledger.took(11, 7, 1, 1);
        for _ in 0..2 {
            ledger.took(12, 7, 0, 2);
            ledger.took(12, 8, 1, 2);
        }
        ledger.took(13, 8, 0, 3);
        assert_eq!(ledger.pipelines()[0].processes, [0, 1, 2]);
        assert_eq!(ledger.processes.len(), 3);
    }

    #[test]
    fn processes_are_joined_by_their_links() {
        let mut ledger = Ledger::of(1);
        // The last one may come first.
        ledger.took(12, 8, 0, 5);
        ledger.took(10, 7, 1, 6);
        ledger.took(11, 7, 0, 7);
        ledger.took(11, 8, 1, 8);
        becomes(&mut ledger, 10, 1, b"seq\x0010\0", 9);
        becomes(&mut ledger, 11, 1, b"sort\0", 9);
        becomes(&mut ledger, 12, 1, b"wc\0-l\0", 9);
        becomes(&mut ledger, 13, 1, b"ls\0", 20);
        assert_eq!(names(&ledger), [vec!["seq 10", "sort", "wc -l"], vec!["ls"]]);
        reaped(&mut ledger, 11, 30, 2 << 8);
        reaped(&mut ledger, 10, 31, 13);
        let joined = &ledger.pipelines()[0];
        let stage = |at: usize| ledger.stage(0, joined, joined.processes[at]);
        assert_eq!(stage(1).map(|stage| (stage.status, stage.wall_ns)), Some((2, 23)));
        assert_eq!(stage(0).map(|stage| (stage.status, stage.signal)), Some((141, Some(13))));
        assert_eq!(stage(2), None, "not waited for");
        assert_eq!((ledger.downstream(7), ledger.downstream(8)), (vec![7, 8], vec![8]));
    }

    #[test]
    fn what_a_shell_does_itself_has_no_program() {
        let mut ledger = Ledger::of(1);
        ledger.took(10, 7, 1, 1);
        ledger.took(1, 7, 0, 2);
        becomes(&mut ledger, 20, 10, b"echo\0a\0", 3);
        becomes(&mut ledger, 21, 10, b"sleep\x001\0", 4);
        // The shell reads the next pipeline, too.
        ledger.took(30, 9, 1, 9);
        ledger.took(1, 9, 0, 9);
        assert_eq!(
            names(&ledger),
            [["(echo a; sleep 1)", "(in the shell)"], ["(in the shell)", "(in the shell)"]]
        );
    }

    #[test]
    fn what_is_over_is_forgotten_with_all_that_it_started() {
        let mut ledger = Ledger::of(1);
        // No process has a number as large (proc_sys_kernel(5), pid_max).
        let own = std::process::id() as i32;
        let [writer, child, reader] = [i32::MAX - 3, i32::MAX - 2, i32::MAX - 1];
        ledger.took(writer, 7, 1, 1);
        becomes(&mut ledger, child, writer.into(), b"echo\0", 2);
        ledger.took(reader, 7, 0, 3);
        ledger.took(own, 8, 1, 4);
        ledger.took(1, 8, 0, 4);
        reaped(&mut ledger, child, 5, 0);
        reaped(&mut ledger, writer, 6, 0);
        reaped(&mut ledger, reader, 6, 0);
        let over = ledger.over();
        assert_eq!(over.len(), 1, "the other one's writer, which is this test, lives");
        ledger.forget(&over);
        assert!(!ledger.knows(7) && ledger.knows(8));
        assert_eq!(ledger.processes.len(), 2);
        reaped(&mut ledger, own, 9, 0);
        let over = ledger.over();
        ledger.forget(&over);
        assert!(ledger.processes.is_empty() && ledger.latest.is_empty());
    }

    #[test]
    fn a_number_that_comes_again_is_another_process() {
        let mut ledger = Ledger::of(1);
        becomes(&mut ledger, 10, 1, b"a\0", 1);
        reaped(&mut ledger, 10, 2, 0);
        becomes(&mut ledger, 10, 1, b"b\0", 3);
        assert_eq!(names(&ledger), [["a"], ["b"]]);
    }
}
