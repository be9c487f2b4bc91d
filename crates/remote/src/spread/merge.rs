//! Merges the records of all partitions into one: the sums of each stage, and the stage that the others waited for.

use model::{Bottleneck, Cause, RunRecord, StageRecord};
use observe::blame::stands_out;

/// The records of all partitions and of the reduce as one: times and bytes are sums, memory is the maximum. The stages of the reduce are
/// another pipeline. `None` without a record.
pub fn merged(maps: impl Iterator<Item = RunRecord>, reduce: Option<RunRecord>) -> Option<RunRecord> {
    let mut whole: Option<RunRecord> = None;
    let (mut count, mut total_ns) = (0, 0);
    for map in maps {
        count += 1;
        total_ns += map.wall_ns;
        let Some(sum) = &mut whole else {
            whole = Some(map);
            continue;
        };
        // A shell may run other stages for another input: stages that only one record has are not added.
        sum.stages.iter_mut().zip(&map.stages).for_each(|(sum, stage)| sum.add(stage));
        sum.links.iter_mut().zip(&map.links).for_each(|(sum, link)| sum.add(link));
    }
    let mut whole = whole?;
    if let Some(mut reduce) = reduce {
        let pipelines = whole.stages.iter().map(|stage| stage.pipeline + 1).max().unwrap_or(0);
        for stage in &mut reduce.stages {
            (stage.pipeline, stage.is_reduce) = (stage.pipeline + pipelines, true);
        }
        reduce.links.iter_mut().for_each(|link| link.pipeline += pipelines);
        whole.stages.append(&mut reduce.stages);
        whole.links.append(&mut reduce.links);
        (whole.status, whole.pipestatus) = (reduce.status, reduce.pipestatus);
        total_ns += reduce.wall_ns;
    }
    whole.partitions = Some(count);
    whole.bottleneck = find_bottleneck(&whole.stages, total_ns as f64);
    Some(whole)
}

fn find_bottleneck(stages: &[StageRecord], total_ns: f64) -> Option<Bottleneck> {
    let held = stages.iter().map(|stage| stage.held_up_ns.unwrap_or(0) as f64);
    let mut held: Vec<(usize, f64)> = held.enumerate().collect();
    model::sort_by(&mut held, |one, other| other.1.total_cmp(&one.1));
    let (at, longest) = *held.first()?;
    let next = held.get(1).map_or(0.0, |(_, held)| *held);
    let stage = stands_out(longest, next, total_ns).then_some(at);
    let share = stage.map(|_| (longest / total_ns).min(1.0));
    Some(Bottleneck { stage, share, cause: Some(Cause::AllPartitions), ..Bottleneck::default() })
}
