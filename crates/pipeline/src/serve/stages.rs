//! The stages of the shell: they are sampled and drawn while they run, and their records are made at the end.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use mechanism::Order;
use model::{Certainty, LinkRecord, NoPipeline, StageRecord, UnseenEnd};
use observe::flow::{LinkCounters, Moved};
use observe::fullness::Fill;
use process::proc::Stat;

use super::served::ServedLink;
use super::server::Server;
use crate::bottleneck::{Observed, find_bottleneck};
use crate::history::{Blame, FillSource};
use crate::ledger::{Pipeline, typed_stages};
use crate::link::Link;
use crate::shell_run::{StageSnapshot, Summary};

/// Whether bytes that a reader left in a link are more than a pipe of the usual size holds, and as few as this one may hold. (The counters of
/// a writer include other files.)
fn is_more_than_usual(link: &LinkRecord, left_bytes: u64) -> bool {
    let pipe_bytes = link.granted.get("pipe_bytes").copied().unwrap_or(0);
    let pipes = if link.relay { 2 } else { 1 };
    (mechanism::default_pipe_bytes() + 1..=pipes * pipe_bytes).contains(&left_bytes)
}

fn in_parentheses(text: &str) -> String {
    if text.starts_with('(') && text.ends_with(')') { text.to_owned() } else { format!("({text})") }
}

/// Time between two drawings.
const PAINT_INTERVAL: Duration = Duration::from_millis(100);

/// What a link holds whose size is not known.
const LARGE_LINK_BYTES: u64 = 1 << 20;
/// Shortest time without a pipeline that is worth a sentence: a shell needs some to start.
const BESIDE_MIN_NS: u64 = 500_000_000;

impl Server<'_> {
    /// Time until the next sample of stages; `None` if no stage runs or stages are not sampled.
    pub(super) fn until_next_sample(&self) -> Option<Duration> {
        let samples = self.history.is_some() && self.ledger.running().next().is_some();
        samples.then(|| self.pace.left())
    }

    /// Samples the stages if that is due, and draws them.
    pub(super) fn sample_stages(&mut self) {
        let Some(history) = &mut self.history else { return };
        let source = |id| {
            let served = self.links.get(&id)?;
            match served.order {
                Order::Sequential if served.written => Some(FillSource::Known(Fill::ALL_THERE)),
                Order::Sequential => Some(FillSource::Known(Fill::NOTHING_YET)),
                Order::Parallel => served.fill_source,
            }
        };
        self.pace.sample(|| {
            history.sample(&self.ledger, &source);
            true
        });
        self.draw();
    }

    /// Draws the pipeline that was started last, of those that still run.
    fn draw(&mut self) {
        let Some(show) = self.shell_run.watched.and_then(|watched| watched.show) else { return };
        if self.drawn.elapsed() < PAINT_INTERVAL {
            return;
        }
        self.drawn = Instant::now();
        let running: Vec<usize> = self.ledger.running().collect();
        let pipelines = self.ledger.pipelines();
        let runs = |pipeline: &&Pipeline| pipeline.processes.iter().any(|index| running.contains(index));
        let Some(pipeline) = pipelines.iter().rev().find(runs) else { return };
        let Some(history) = &self.history else { return };
        let snapshot = |(at, index): (usize, &usize)| {
            let (command, ended) = (self.ledger.name(*index), !running.contains(index));
            let behind = pipeline.links.get(at).and_then(|id| Some((*id, self.links.get(id)?)));
            let lines = |served: &ServedLink| served.link().map_or(served.record.lines, Link::lines);
            StageSnapshot {
                command,
                ended,
                has_link: behind.is_some(),
                bytes: behind.and_then(|(id, served)| self.flowed(id, served, false)),
                lines: behind.and_then(|(_, served)| lines(served)),
                ..history.so_far(*index)
            }
        };
        let mut stages: Vec<StageSnapshot> = pipeline.processes.iter().enumerate().map(snapshot).collect();
        if let ([first, ..], [stage, ..]) = (&pipeline.processes[..], &mut stages[..]) {
            let pids = if stage.ended { &[] } else { history.pids(*first) };
            stage.read_progress = self.read_progress.sample(pids);
        }
        show(&stages);
    }

    pub(super) fn draw_nothing(&self) {
        if let Some(show) = self.shell_run.watched.and_then(|watched| watched.show) {
            show(&[]);
        }
    }

    /// The shell has ended at this time, with this status.
    pub(super) fn summary(&self, ended_ns: u64, status: i32) -> Summary {
        let serves_on = !self.open.is_empty();
        let mut summary = Summary { lost_bytes: self.lost_bytes, serves_on, ..Summary::default() };
        if !self.shell_run.recorded {
            return summary;
        }
        // What a shell leaves in the background when it exits by itself is judged only if there is nothing else.
        let was_killed = status & 0x7f != 0;
        let mut judged_last = (false, 0);
        let mut pipelines_ns = 0;
        let pipelines = self.ledger.pipelines();
        let text = self.shell_run.arguments.last().map_or_else(Cow::default, |text| text.to_string_lossy());
        let typed = match &pipelines[..] {
            [pipeline] => typed_stages(&text, pipeline.processes.len()),
            _ => Vec::new(),
        };
        for (number, pipeline) in pipelines.iter().enumerate() {
            let links = self.link_records(number as u32, pipeline);
            let first = summary.stages.len();
            let mut locales = Vec::new();
            let stages = pipeline.processes.iter().enumerate().filter_map(|(place, index)| {
                let stage = self.ledger.stage(number as u32, pipeline, *index);
                let mut stage = stage.or_else(|| self.unreaped_stage(number as u32, *index, ended_ns))?;
                stage.stage = place as u32;
                // Of a subshell.
                if let Some(typed) = typed.get(place).filter(|_| stage.command.starts_with('(')) {
                    stage.command = in_parentheses(&typed.replace('\n', " "));
                }
                if let Some(programs) = &self.programs {
                    programs.complete(&mut stage);
                }
                let Some(history) = &self.history else { return Some((stage, Blame::default())) };
                history.complete_stage(*index, &mut stage);
                locales.push(history.locale(*index));
                Some((stage, history.blame(*index)))
            });
            let stages: Vec<(StageRecord, Blame)> = stages.collect();
            let wall_ns = stages.iter().map(|(stage, _)| stage.wall_ns).max().unwrap_or(0);
            let has_ended = was_killed || stages.iter().all(|(stage, _)| stage.unseen_end.is_none());
            if self.history.is_some() && (has_ended, wall_ns) > judged_last {
                judged_last = (has_ended, wall_ns);
                let is_sequential = self.shell_run.via.order() == Order::Sequential && stages.len() > 1;
                summary.bottleneck = find_bottleneck(&Observed {
                    stages: &stages,
                    first,
                    locales: &locales,
                    links: &links,
                    is_sequential,
                });
            }
            let lines: Vec<_> =
                pipeline.links.iter().filter_map(|id| self.links.get(id)?.lines.stamps()).collect();
            summary.latency.extend(crate::latency::of_pipeline(number as u32, &lines));
            pipelines_ns += wall_ns;
            summary.stages.extend(stages.into_iter().map(|(stage, _)| stage));
            summary.links.extend(links);
        }
        if let Some(bottleneck) = &mut summary.bottleneck {
            bottleneck.no_pipeline = self.no_pipeline(&pipelines, ended_ns, pipelines_ns);
        }
        summary
    }

    /// The time in which no pipeline ran, if that is most of it. `pipelines_ns` is the sum of their times.
    fn no_pipeline(
        &self,
        pipelines: &[Pipeline],
        shell_ended_ns: u64,
        pipelines_ns: u64,
    ) -> Option<NoPipeline> {
        let whole_ns = shell_ended_ns.saturating_sub(self.began_ns);
        let rest_ns = whole_ns.saturating_sub(pipelines_ns);
        if rest_ns < BESIDE_MIN_NS || rest_ns < whole_ns / 2 {
            return None;
        }
        let history = self.history.as_ref()?;
        let longest = self.ledger.longest_beside(pipelines, |index| history.last_seen_ns(index));
        let command = longest.filter(|(_, ns)| *ns >= rest_ns / 2).map(|(command, _)| command.to_string());
        Some(NoPipeline { share: rest_ns as f64 / whole_ns.max(1) as f64, command })
    }

    /// The record of a stage for whose end the shell did not wait; `None` if no sample shows it.
    fn unreaped_stage(&self, number: u32, index: usize, shell_ended_ns: u64) -> Option<StageRecord> {
        let seen_ns = self.history.as_ref()?.last_seen_ns(index)?;
        let (seen_ns, unseen_end) = match Stat::of(self.ledger.processes[index].pid).map(|stat| stat.state) {
            None | Some('Z' | 'X') => (seen_ns, UnseenEnd::Ended),
            Some('T') => (shell_ended_ns, UnseenEnd::Stopped),
            Some(_) => (shell_ended_ns, UnseenEnd::Runs),
        };
        let stage = self.ledger.unreaped_stage(number, index, seen_ns);
        Some(StageRecord { unseen_end: Some(unseen_end), ..stage })
    }

    fn link_records(&self, number: u32, pipeline: &Pipeline) -> Vec<LinkRecord> {
        let record = |id: &u64| {
            let served = self.links.get(id)?;
            let (bytes, bytes_is) = self.flowed(*id, served, true).unzip();
            // A program in the background may still hold it, or the machine may be so busy that its relay has not ended.
            let record = served.link().map_or_else(|| served.record.clone(), Link::record_so_far);
            let mut record = LinkRecord { pipeline: number, bytes, bytes_is, ..record };
            record.left_bytes = self.ledger.left_in(*id).filter(|bytes| is_more_than_usual(&record, *bytes));
            if let Some(history) = &self.history {
                history.complete_link(*id, &mut record);
            }
            Some(record)
        };
        pipeline.links.iter().filter_map(record).collect()
    }

    /// Bytes that went through a link so far: counted by a relay, or estimated from what its ends have read and written. `has_ended`: the shell
    /// has ended.
    fn flowed(&self, id: u64, served: &ServedLink, has_ended: bool) -> Option<(u64, Certainty)> {
        let counted = match served.link() {
            Some(link) => link.bytes().map(|bytes| (bytes, Certainty::Exact)),
            None => served.record.bytes.zip(served.record.bytes_is),
        };
        if counted.is_some() {
            return counted;
        }
        let history = self.history.as_ref()?;
        let [written, read] = [true, false]
            .map(|writes| self.ledger.moved_at_end(id, writes, |index| self.moved_so_far(index)));
        let seen_read = history.seen_read(id) + self.ledger.moved_after(id, history.last_of_reader(id));
        let room = served.record.granted.get("pipe_bytes").copied().unwrap_or(LARGE_LINK_BYTES);
        let counters = LinkCounters { written, read, seen_read, room: if has_ended { room } else { 0 } };
        served.total.estimate(&counters, has_ended)
    }

    /// Bytes that the processes of a stage which still runs, or was not reaped, have moved.
    fn moved_so_far(&self, index: usize) -> Option<Moved> {
        let sampled = self.history.as_ref()?.moved(index);
        let counters = self.counters.get(&self.ledger.processes[index].pid);
        let now = counters.and_then(process::proc::read_at).and_then(|bytes| Moved::parse(&bytes));
        let (Some(sampled), Some(now)) = (sampled, now) else { return sampled.or(now) };
        // The sample includes children that have not ended.
        Some(Moved { read: sampled.read.max(now.read), written: sampled.written.max(now.written) })
    }
}
