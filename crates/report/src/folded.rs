//! A loop starts the same pipeline again and again: those of the same programs are shown as one, whose times and bytes are sums. The record
//! itself keeps each.

use std::collections::HashMap;

use model::{LinkRecord, RunRecord, StageRecord};

use crate::lists::grouped;

/// Fewest pipelines of the same programs that are shown as one: fewer were probably typed one by one.
const FOLDED_MIN: usize = 4;

/// One pipeline of a run.
struct Pipeline<'a> {
    stages: Vec<&'a StageRecord>,
    links: Vec<&'a LinkRecord>,
}

/// Where the stages and the links of a pipeline begin in the shown record.
#[derive(Clone, Copy)]
struct Place {
    stage: usize,
    link: usize,
}

/// A run whose equal pipelines are one.
pub(crate) struct Folded {
    pub(crate) record: RunRecord,
    /// How many stages each stage is the sum of.
    pub(crate) counts: Vec<usize>,
}

impl Folded {
    pub(crate) fn new(record: &RunRecord) -> Self {
        let mut links: HashMap<u32, Vec<&LinkRecord>> =
            grouped(record.links.iter().map(|link| (link.pipeline, link))).into_iter().collect();
        let stages = grouped(record.stages.iter().map(|stage| (stage.pipeline, stage))).into_iter();
        let pipeline =
            |(number, stages)| Pipeline { stages, links: links.remove(&number).unwrap_or_default() };
        let pipelines: Vec<Pipeline> = stages.map(pipeline).collect();
        let mut repeats: HashMap<_, usize> = HashMap::new();
        pipelines.iter().for_each(|pipeline| *repeats.entry(programs(pipeline)).or_default() += 1);
        let empty = RunRecord { stages: Vec::new(), links: Vec::new(), ..record.clone() };
        let (mut folded, mut first_of) = (Self { record: empty, counts: Vec::new() }, HashMap::new());
        // Where each stage of the record is shown.
        let mut shown_at = Vec::new();
        for pipeline in &pipelines {
            let end = Place { stage: folded.record.stages.len(), link: folded.record.links.len() };
            let kind = programs(pipeline);
            let is_loop = repeats[&kind] >= FOLDED_MIN;
            let first = *first_of.entry(kind).or_insert(end);
            let place = if is_loop { first } else { end };
            shown_at.extend(place.stage..place.stage + pipeline.stages.len());
            if place.stage < end.stage {
                folded.add(place, pipeline);
            } else {
                folded.record.stages.extend(pipeline.stages.iter().copied().cloned());
                folded.record.links.extend(pipeline.links.iter().copied().cloned());
                folded.counts.resize(folded.record.stages.len(), 1);
            }
        }
        if let Some(bottleneck) = &mut folded.record.bottleneck {
            bottleneck.stage = bottleneck.stage.and_then(|at| shown_at.get(at)).copied();
        }
        folded
    }

    /// Adds a pipeline to the one that begins at this place.
    fn add(&mut self, first: Place, pipeline: &Pipeline) {
        let sums = self.record.links[first.link..].iter_mut();
        sums.zip(&pipeline.links).for_each(|(sum, link)| sum.add(link));
        for (at, other) in (first.stage..).zip(&pipeline.stages) {
            let sum = &mut self.record.stages[at];
            sum.add(other);
            if sum.command != other.command {
                sum.command = format!("{} …", program(&other.command));
            }
            self.counts[at] += 1;
        }
    }
}

/// The programs of a pipeline's stages, and the number of its links.
fn programs<'a>(pipeline: &Pipeline<'a>) -> (Vec<&'a str>, usize) {
    (pipeline.stages.iter().map(|stage| program(&stage.command)).collect(), pipeline.links.len())
}

/// The program of a command; of a subshell all that it did.
fn program(command: &str) -> &str {
    if command.starts_with('(') { command } else { command.split(' ').next().unwrap_or(command) }
}

#[cfg(test)]
mod tests {
    use model::Bottleneck;

    use super::*;

    fn record(pipelines: &[&[&str]]) -> RunRecord {
        let mut record = RunRecord::default();
        for (pipeline, commands) in (0..).zip(pipelines) {
            let stage = |(stage, command): (u32, &&str)| {
                let command = (*command).to_owned();
                StageRecord { pipeline, stage, command, wall_ns: 10, user_ns: 1, ..StageRecord::default() }
            };
            record.stages.extend((0..).zip(*commands).map(stage));
            let link = LinkRecord { pipeline, bytes: Some(100), ..LinkRecord::default() };
            record.links.extend(std::iter::repeat_n(link, commands.len() - 1));
        }
        record
    }

    /// Expected: a row for what a loop starts. Happened: 600 rows, for 300 times `echo $l | cut -c1`.
    #[test]
    fn what_a_loop_starts_is_one_row_of_sums() {
        let body: &[&str] = &["(in the shell)", "cut -c1"];
        let twice: &[&str] = &["seq 3", "wc -l"];
        let mut pipelines = vec![["cat f", "(cut -c1)"].as_slice(), twice, body, twice];
        pipelines.extend(vec![body; 299]);
        pipelines.extend([["sleep 1"].as_slice(), &["sleep 2"], &["sleep 3"], &["sleep 4"]]);
        let mut run = record(&pipelines);
        let last = run.stages.len() - 5;
        run.bottleneck = Some(Bottleneck { stage: Some(last), ..Bottleneck::default() });
        let Folded { record, counts } = Folded::new(&run);
        let shown: Vec<(usize, &str, u64)> = counts
            .iter()
            .zip(&record.stages)
            .map(|(n, stage)| (*n, &*stage.command, stage.wall_ns))
            .collect();
        let once = |command| (1, command, 10);
        assert_eq!(
            shown,
            [
                once("cat f"),
                once("(cut -c1)"),
                once("seq 3"),
                once("wc -l"),
                (300, "(in the shell)", 3000),
                (300, "cut -c1", 3000),
                once("seq 3"),
                once("wc -l"),
                (4, "sleep …", 40),
            ]
        );
        assert_eq!(
            record.links.iter().map(|link| link.bytes).collect::<Vec<_>>(),
            [Some(100), Some(100), Some(30_000), Some(100)]
        );
        assert_eq!(record.bottleneck.and_then(|bottleneck| bottleneck.stage), Some(5));
    }
}
