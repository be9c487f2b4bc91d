//! The history of a run: what is kept of the samples of its stages and links. The time between two samples is attributed to the stages for which
//! the others waited, as `observe::blame` assigned it.

mod blame;
mod link;
mod side_pipes;

use std::collections::HashMap;

use model::{HeldBack, LinkRecord, StageRecord};
use observe::activity::{StdinWait, peak_memory};
use observe::buffers::BufferOffsets;
use observe::flow::Moved;
use observe::fullness::Fill;
use observe::locale::Locale;
use observe::sampler::{Sample, Sampler};
pub(crate) use observe::topology::FillSource;
use observe::topology::{LinkId, Stage, Topology};

use crate::ledger::Ledger;
use crate::shell_run::StageSnapshot;
use crate::tips;
pub(crate) use blame::Blame;
use link::LinkHistory;
use side_pipes::program_at_side_pipe;

/// Longest time before a sample for which it is evidence where the previous sample showed another stage: on a busy machine samples may be half a
/// second apart, and the stage that is waited for now was then waited for during an unknown part of that.
const SPEAKS_FOR_NS: f64 = 100_000_000.0;

/// Finds the source of a link; `None` if it is not known how full the link is.
pub(crate) type FillSources<'a> = dyn Fn(u64) -> Option<FillSource> + 'a;

#[derive(Default)]
struct StageHistory {
    /// Its processes at the last sample; the one that was started for it is the first.
    pids: Vec<i32>,
    /// Time of the last sample in which it lived.
    seen_ns: u64,
    /// Its times until the last sample, and the output that one of its programs holds back now.
    so_far: StageSnapshot,
    peak_bytes: u64,
    /// Bytes that its processes and their ended children have moved; only for a stage with a link.
    moved: Option<Moved>,
    /// The page offsets of its buffers.
    buffers: BufferOffsets,
    /// Whether its standard input is not a link and had bytes.
    has_input: bool,
    blame: Blame,
    /// The locale of its program, where a tip may depend on that.
    locale: Option<Locale>,
    /// The share of the waiting that the last sample assigned to it.
    last_share: f64,
    /// The output that was held back for the longest time.
    longest_held_back: Option<HeldBack>,
}

/// What is kept of the samples of all stages and links of a run.
#[derive(Default)]
pub(crate) struct History {
    sampler: Sampler,
    stages: HashMap<usize, StageHistory>,
    links: HashMap<u64, LinkHistory>,
    shell_peak_bytes: u64,
}

/// One round of samples of the running stages.
struct Round<'a> {
    now_ns: u64,
    ledger: &'a Ledger,
    /// The entry of each stage in the ledger.
    entries: Vec<usize>,
    topology: Topology,
    sample: Sample,
}

impl History {
    /// Takes a sample of all running stages.
    pub(crate) fn sample(&mut self, ledger: &Ledger, source: &FillSources<'_>) {
        let now_ns = model::monotonic_ns();
        let (entries, topology) = ledger.topology(&mut self.sampler, source);
        let Some(sample) = self.sampler.sample(std::slice::from_ref(&topology)).pop() else { return };
        let round = Round { now_ns, ledger, entries, topology, sample };
        self.stages.values_mut().for_each(|stage| stage.pids.clear());
        for at in 0..round.entries.len() {
            self.note_stage(&round, at);
            self.attribute(&round, at);
        }
        for at in 0..round.topology.links.len() {
            self.note_link(&round, at);
        }
    }

    /// Notes what a stage did since the last sample.
    fn note_stage(&mut self, round: &Round<'_>, at: usize) {
        let (ledger, index, sample) = (round.ledger, round.entries[at], &round.sample.stages[at]);
        let Stage { pids, is_shell, .. } = &round.topology.stages[at];
        let (process, slice) = (&ledger.processes[index], sample.slice);
        let processes = self.sampler.stage(pids);
        let stage = self.stages.entry(index).or_default();
        (stage.seen_ns, stage.pids) = (round.now_ns, pids.clone());
        if slice.cpu > 0.0 || stage.peak_bytes == 0 {
            stage.peak_bytes = stage.peak_bytes.max(peak_memory(process.pid).unwrap_or(0));
        }
        if *is_shell {
            self.shell_peak_bytes = self.shell_peak_bytes.max(stage.peak_bytes);
        } else if process.reads.is_some() || process.writes.is_some() {
            stage.moved = processes.moved();
        }
        processes.each().for_each(|process| stage.buffers.add(&process.large_calls));
        // The sum over several threads may exceed the elapsed time.
        stage.so_far.queued_ns += (slice.ns * slice.queued) as u64;
        stage.so_far.cpu_ns = processes.cpu_ns(!is_shell);
        if stage.locale.is_none()
            && slice.cpu > 0.0
            && let Some(program) = ledger.program(index).filter(|program| tips::needs_locale(program))
        {
            stage.locale = processes.locale_of(program);
        }
        if slice.idle {
            let ns = if round.fill(process.reads).is_some_and(|fill| fill.is_empty() && !fill.holds) {
                &mut stage.so_far.blocked_read_ns
            } else if round.fill(process.writes).is_some_and(Fill::is_full) || processes.awaits_room() {
                &mut stage.so_far.blocked_write_ns
            } else {
                &mut stage.so_far.asleep_ns
            };
            *ns += slice.ns as u64;
        }
        if sample.state.is_unread {
            stage.blame.unread_ns += slice.ns;
        }
        let for_ns = |held: &Option<HeldBack>| held.as_ref().map_or(0, |held| held.for_ns);
        if for_ns(&sample.held_back) > for_ns(&stage.longest_held_back) {
            stage.longest_held_back.clone_from(&sample.held_back);
        }
        stage.so_far.held_back.clone_from(&sample.held_back);
    }

    /// Notes how full a link was since the last sample, if that is sampled, and what its reader read.
    fn note_link(&mut self, round: &Round<'_>, at: usize) {
        let link = &round.topology.links[at];
        let reader = link.readers.first().filter(|_| link.fill.is_sampled());
        let (Some(id), Some(reader)) = (link.id.given(), reader) else { return };
        let ns = round.sample.stages[*reader].slice.ns as u64;
        let seen = self.links.entry(id).or_default();
        let stage = &round.topology.stages[*reader];
        seen.note_read(self.sampler.stage(&stage.pids), stage.is_shell);
        if let Some(fill) = round.sample.fills[at] {
            let has_writer = !fill.holds || !link.writers.is_empty();
            seen.watched_ns += ns;
            seen.full_ns += if fill.is_full() { ns } else { 0 };
            seen.empty_ns += if fill.is_empty() && has_writer { ns } else { 0 };
        }
    }

    /// Attributes its share of the time since the last sample to a stage, or to what it waited for beside, before or behind the pipeline.
    fn attribute(&mut self, round: &Round<'_>, at: usize) {
        let (slice, share) = (round.sample.stages[at].slice, round.sample.waiting.stages[at]);
        let process = &round.ledger.processes[round.entries[at]];
        let Some(stage) = self.stages.get_mut(&round.entries[at]) else { return };
        let behind_ns = slice.ns * round.waited_behind(at);
        stage.blame.after_ns += behind_ns;
        stage.so_far.blocked_write_ns += behind_ns as u64;
        let before = std::mem::replace(&mut stage.last_share, share);
        let ns = slice.ns * share.min(before) + slice.ns.min(SPEAKS_FOR_NS) * (share - before).max(0.0);
        stage.blame.samples += 1;
        if ns <= 0.0 {
            return;
        }
        if slice.idle || slice.rests() {
            if let Some(name) =
                program_at_side_pipe(&mut self.sampler, round.ledger, process.pid, &stage.pids)
            {
                *stage.blame.waited_elsewhere_ns.entry(name).or_default() += ns;
            } else if slice.idle
                && !slice.is_stopped
                && process.reads.is_none()
                && let Some(input) = self.sampler.pipe(process.pid, 0, None)
            {
                stage.has_input |= input.share > 0.0 || input.over;
                let waits = || self.sampler.stage(&stage.pids).awaits_input();
                match if input.is_empty() { waits() } else { StdinWait::No } {
                    StdinWait::Certain => {
                        stage.blame.before_ns += ns;
                        stage.so_far.blocked_read_ns += ns as u64;
                        return;
                    }
                    StdinWait::Possible => return stage.blame.perhaps_before_ns += ns,
                    StdinWait::No => {}
                }
            }
        }
        stage.blame.add(&slice, ns);
    }

    /// The time for which the pipeline waited for a stage.
    pub(crate) fn blame(&self, index: usize) -> Blame {
        self.stages.get(&index).map_or_else(Blame::default, |stage| stage.blame.whole(stage.has_input))
    }

    /// The locale of a stage's program; `None` if it is not known.
    pub(crate) fn locale(&self, index: usize) -> Option<Locale> {
        self.stages.get(&index)?.locale
    }

    /// Completes the record of a stage.
    pub(crate) fn complete_stage(&self, index: usize, record: &mut StageRecord) {
        // The maximum includes the time before the program was executed, when the process was a copy of the shell. So only a figure above the
        // shell's is the program's own.
        record.max_rss_bytes = record.max_rss_bytes.filter(|bytes| *bytes > self.shell_peak_bytes);
        let Some(stage) = self.stages.get(&index) else { return };
        record.max_rss_bytes = record.max_rss_bytes.max(Some(stage.peak_bytes).filter(|bytes| *bytes > 0));
        if record.unseen_end.is_some() {
            record.user_ns = stage.so_far.cpu_ns;
        }
        record.queued_ns = Some(stage.so_far.queued_ns.min(record.wall_ns));
        record.blocked_read_ns = Some(stage.so_far.blocked_read_ns.min(record.wall_ns));
        record.blocked_write_ns = Some(stage.so_far.blocked_write_ns.min(record.wall_ns));
        record.held_up_ns = Some((stage.blame.total_ns as u64).min(record.wall_ns));
        record.held_back.clone_from(&stage.longest_held_back);
        record.read_buffer_offset = stage.buffers.of_reads();
        record.write_buffer_offset = stage.buffers.of_writes();
    }

    /// Time of the last sample in which a stage lived; `None` if there was none.
    pub(crate) fn last_seen_ns(&self, index: usize) -> Option<u64> {
        self.stages.get(&index).map(|stage| stage.seen_ns).filter(|ns| *ns > 0)
    }

    /// Completes the record of a link.
    pub(crate) fn complete_link(&self, id: u64, record: &mut LinkRecord) {
        let Some(link) = self.links.get(&id) else { return };
        record.watched_ns = Some(link.watched_ns);
        record.full_ns = Some(link.full_ns);
        record.empty_ns = Some(link.empty_ns);
    }

    /// Bytes that a running stage has read and written so far.
    pub(crate) fn moved(&self, index: usize) -> Option<Moved> {
        self.stages.get(&index)?.moved
    }

    /// Lower bound of the bytes that were read from a link.
    pub(crate) fn seen_read(&self, link: u64) -> u64 {
        self.links.get(&link).map_or(0, |link| link.read_bytes)
    }

    /// The reader of a link that had no other file open at the last sample, and what it had moved by then.
    pub(crate) fn last_of_reader(&self, link: u64) -> Option<(i32, Moved)> {
        self.links.get(&link)?.last_moved
    }

    /// The processes of a stage at the last sample.
    pub(crate) fn pids(&self, index: usize) -> &[i32] {
        self.stages.get(&index).map_or(&[], |stage| &stage.pids)
    }

    /// What a stage has done so far.
    pub(crate) fn so_far(&self, index: usize) -> StageSnapshot {
        self.stages.get(&index).map_or(StageSnapshot::default(), |stage| StageSnapshot {
            buffer_offsets: [stage.buffers.of_reads(), stage.buffers.of_writes()],
            ..stage.so_far.clone()
        })
    }
}

impl Round<'_> {
    /// How full a link is that a shell was given.
    fn fill(&self, link: Option<u64>) -> Option<Fill> {
        let id = LinkId::Given(link?);
        let at = self.topology.links.iter().position(|link| link.id == id)?;
        self.sample.fills[at]
    }

    /// The share of the time for which a stage waited for room in its output, where no stage reads that.
    fn waited_behind(&self, at: usize) -> f64 {
        let links = self.topology.links.iter().zip(&self.sample.waiting.outside);
        let behind = links.filter(|(link, _)| link.id.given().is_none() && link.writers.contains(&at));
        behind.map(|(_, share)| share).sum()
    }
}
