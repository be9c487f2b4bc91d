//! The stages of a shell that is served: sampled and drawn while they run, and what the record says of them.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use mechanism::Order;
use model::{Bottleneck, Certainty, HeldBack, LinkRecord, StageRecord};
use observe::fullness::Fill;
use observe::read_progress::ReadProgress;

use super::Server;
use super::links::Served;
use crate::bottleneck::{Observed, judge};
use crate::ledger::{IN_THE_SHELL, Pipeline, typed_stages};
use crate::link::Link;
use crate::run::Summary;
use crate::stage_sampler::{Blame, FillSource};

/// What was seen of one stage so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageSnapshot {
    /// What it is called.
    pub command: String,
    /// Whether it has ended.
    pub ended: bool,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time it was ready to run without a CPU.
    pub queued_ns: u64,
    /// Time it was idle while there was nothing for it to read.
    pub blocked_read_ns: u64,
    /// Time it was idle while what it writes to was full.
    pub blocked_write_ns: u64,
    /// Whether a link is behind it.
    pub has_link: bool,
    /// Bytes that went through that, and how they are known; `None` where they are not.
    pub bytes: Option<(u64, Certainty)>,
    /// Lines that went through it; `None` where they are not counted.
    pub lines: Option<u64>,
    /// Output that it keeps in a buffer now.
    pub held_back: Option<HeldBack>,
    /// The page offset of its buffer for reads, and for writes; `None` where they were not seen.
    pub buffer_offsets: [Option<u64>; 2],
    /// How far it has come in what it reads; only of a first stage that reads a file.
    pub read_progress: Option<ReadProgress>,
}

/// Draws the stages of the pipeline that runs; at the end it is given none.
pub type StagePainter<'a> = dyn Fn(&[StageSnapshot]) + 'a;

/// Between two pictures.
const PAINT_INTERVAL: Duration = Duration::from_millis(100);

impl Server<'_> {
    pub(super) fn sample_stages(&mut self) {
        let Some(sampler) = &mut self.sampler else { return };
        let links = &self.links;
        sampler.sample(&self.ledger, &|id| {
            let served = links.get(&id)?;
            match served.order {
                Order::Sequential if served.written => Some(FillSource::Known(Fill::ALL_THERE)),
                Order::Sequential => Some(FillSource::Known(Fill::NOTHING_YET)),
                Order::Parallel => served.fill_source,
            }
        });
        self.draw();
    }

    /// Shows the latest pipeline that still runs.
    fn draw(&mut self) {
        let Some(show) = self.service.text.watched.and_then(|watched| watched.show) else { return };
        if self.drawn.elapsed() < PAINT_INTERVAL {
            return;
        }
        self.drawn = Instant::now();
        let running: Vec<usize> = self.ledger.running().collect();
        let pipelines = self.ledger.pipelines();
        let lives = |joined: &&Pipeline| joined.processes.iter().any(|index| running.contains(index));
        let Some(joined) = pipelines.iter().rev().find(lives) else { return };
        let Some(sampler) = &self.sampler else { return };
        let snapshot = |(at, index): (usize, &usize)| {
            let (command, ended) = (self.ledger.name(*index), !running.contains(index));
            let behind = joined.links.get(at).and_then(|id| Some((*id, self.links.get(id)?)));
            let lines = |served: &Served| served.link().map_or(served.record.lines, Link::lines);
            StageSnapshot {
                command,
                ended,
                has_link: behind.is_some(),
                bytes: behind.and_then(|(id, served)| self.flowed(id, served)),
                lines: behind.and_then(|(_, served)| lines(served)),
                ..sampler.so_far(*index)
            }
        };
        let mut stages: Vec<StageSnapshot> = joined.processes.iter().enumerate().map(snapshot).collect();
        if let ([first, ..], [stage, ..]) = (&joined.processes[..], &mut stages[..]) {
            let pids = if stage.ended { &[] } else { sampler.pids(*first) };
            stage.read_progress = self.read_progress.sample(pids);
        }
        show(&stages);
    }

    pub(super) fn draw_nothing(&self) {
        if let Some(show) = self.service.text.watched.and_then(|watched| watched.show) {
            show(&[]);
        }
    }

    pub(super) fn summary(&self) -> Summary {
        let serves_on = !self.open.is_empty();
        let mut summary = Summary { cut_short: self.cut_short, serves_on, ..Summary::default() };
        if !self.service.text.recorded {
            return summary;
        }
        let mut longest_ns = 0;
        let pipelines = self.ledger.pipelines();
        let text =
            self.service.text.arguments.last().map_or_else(Cow::default, |text| text.to_string_lossy());
        let typed = match &pipelines[..] {
            [joined] => typed_stages(&text, joined.processes.len()),
            _ => Vec::new(),
        };
        for (number, joined) in pipelines.iter().enumerate() {
            let links = self.link_records(number as u32, joined);
            let first = summary.stages.len();
            let stages = joined.processes.iter().enumerate().filter_map(|(place, index)| {
                let mut stage = self.ledger.stage(number as u32, joined, *index)?;
                stage.stage = place as u32;
                if stage.command == IN_THE_SHELL
                    && let Some(typed) = typed.get(place)
                {
                    stage.command = format!("({})", typed.replace('\n', " "));
                }
                if let Some(programs) = &self.programs {
                    programs.complete(&mut stage);
                }
                let Some(sampler) = &self.sampler else { return Some((stage, Blame::default())) };
                sampler.complete_stage(*index, &mut stage);
                Some((stage, sampler.blame(*index)))
            });
            let stages: Vec<(StageRecord, Blame)> = stages.collect();
            let wall_ns = stages.iter().map(|(stage, _)| stage.wall_ns).max().unwrap_or(0);
            if self.sampler.is_some() && wall_ns > longest_ns {
                longest_ns = wall_ns;
                let is_sequential = self.service.text.via.order() == Order::Sequential && stages.len() > 1;
                let judged = judge(&Observed { stages: &stages, links: &links, is_sequential });
                summary.bottleneck = judged
                    .map(|judged| Bottleneck { stage: judged.stage.map(|stage| first + stage), ..judged });
            }
            let lines: Vec<_> =
                joined.links.iter().filter_map(|id| self.links.get(id)?.lines.stamps()).collect();
            summary.latency.extend(crate::latency::of_pipeline(number as u32, &lines));
            summary.stages.extend(stages.into_iter().map(|(stage, _)| stage));
            summary.links.extend(links);
        }
        summary
    }

    fn link_records(&self, pipeline: u32, joined: &Pipeline) -> Vec<LinkRecord> {
        let record = |id: &u64| {
            let served = self.links.get(id)?;
            let (bytes, bytes_is) = self.flowed(*id, served).unzip();
            let mut record = LinkRecord { pipeline, bytes, bytes_is, ..served.record.clone() };
            if let Some(sampler) = &self.sampler {
                sampler.complete_link(*id, &mut record);
            }
            Some(record)
        };
        joined.links.iter().filter_map(record).collect()
    }

    /// Bytes that went through a link so far: counted where something of ours sees them, else by what is known of both ends.
    fn flowed(&self, id: u64, served: &Served) -> Option<(u64, Certainty)> {
        let counted = match served.link() {
            Some(link) => link.bytes().map(|bytes| (bytes, Certainty::Exact)),
            None => served.record.bytes.zip(served.record.bytes_is),
        };
        if counted.is_some() {
            return counted;
        }
        let sampler = self.sampler.as_ref()?;
        let [written, read] =
            [true, false].map(|writes| self.ledger.moved_at_end(id, writes, |index| sampler.moved(index)));
        observe::flow::total(written, read, sampler.seen_read(id))
    }
}
