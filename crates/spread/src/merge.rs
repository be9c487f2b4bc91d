//! One table of many runs: what the stages of all partitions did together, and which of them held the work up.

use model::{Bottleneck, LinkRecord, RunRecord, StageRecord};

/// A stage is named if the others waited for it during this share of the time.
const NAMED_SHARE: f64 = 0.5;
/// And for so many times as long as for any other.
const AHEAD: f64 = 1.4;

/// The records of all partitions, and that of the reduce, as one: times and bytes are sums, memory is the largest. The stages of the
/// reduce are those of a second pipeline. `None` where there is no record.
pub fn merged(maps: &[RunRecord], reduce: Option<&RunRecord>) -> Option<RunRecord> {
    let (first, others) = maps.split_first()?;
    let mut whole = first.clone();
    for other in others {
        // A shell may do another thing for another input: what is not alike is left out of the sums.
        for (sum, stage) in whole.stages.iter_mut().zip(&other.stages) {
            add_stage(sum, stage);
        }
        for (sum, link) in whole.links.iter_mut().zip(&other.links) {
            add_link(sum, link);
        }
    }
    let pipelines = whole.stages.iter().map(|stage| stage.pipeline + 1).max().unwrap_or(0);
    if let Some(reduce) = reduce {
        whole.stages.extend(
            reduce
                .stages
                .iter()
                .map(|stage| StageRecord { pipeline: pipelines + stage.pipeline, ..stage.clone() }),
        );
        whole.links.extend(
            reduce
                .links
                .iter()
                .map(|link| LinkRecord { pipeline: pipelines + link.pipeline, ..link.clone() }),
        );
        (whole.status, whole.pipestatus) = (reduce.status, reduce.pipestatus.clone());
    }
    whole.partitions = Some(maps.len() as u64);
    let total_ns: u64 = maps.iter().chain(reduce).map(|record| record.wall_ns).sum();
    whole.bottleneck = judge(&whole.stages, total_ns as f64);
    Some(whole)
}

fn add_stage(sum: &mut StageRecord, stage: &StageRecord) {
    sum.wall_ns += stage.wall_ns;
    sum.user_ns += stage.user_ns;
    sum.system_ns += stage.system_ns;
    sum.blocked_read_ns = both(sum.blocked_read_ns, stage.blocked_read_ns);
    sum.blocked_write_ns = both(sum.blocked_write_ns, stage.blocked_write_ns);
    sum.queued_ns = both(sum.queued_ns, stage.queued_ns);
    sum.held_up_ns = both(sum.held_up_ns, stage.held_up_ns);
    sum.max_rss_bytes = sum.max_rss_bytes.max(stage.max_rss_bytes);
    sum.pid = None;
    if sum.status == 0 {
        (sum.status, sum.signal) = (stage.status, stage.signal);
    }
}

fn add_link(sum: &mut LinkRecord, link: &LinkRecord) {
    sum.bytes = both(sum.bytes, link.bytes);
    sum.stored_bytes = both(sum.stored_bytes, link.stored_bytes);
    sum.watched_ns = both(sum.watched_ns, link.watched_ns);
    sum.full_ns = both(sum.full_ns, link.full_ns);
    sum.empty_ns = both(sum.empty_ns, link.empty_ns);
    sum.trouble = sum.trouble.take().or_else(|| link.trouble.clone());
}

/// A sum of two figures; unknown where one is.
fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

fn judge(stages: &[StageRecord], total_ns: f64) -> Option<Bottleneck> {
    let held = |stage: &StageRecord| stage.held_up_ns.unwrap_or(0) as f64;
    let longest = |but: Option<usize>| {
        let others = stages.iter().enumerate().filter(move |(at, _)| Some(*at) != but);
        others.max_by(|one, other| held(one.1).total_cmp(&held(other.1)))
    };
    let (at, stage) = longest(None)?;
    let next = longest(Some(at)).map_or(0.0, |(_, stage)| held(stage));
    let share = held(stage) / total_ns.max(1.0);
    let named = share >= NAMED_SHARE && held(stage) >= AHEAD * next;
    let sentence = if named {
        let percent = (share * 100.0).min(100.0);
        format!(
            "`{}` holds the whole up: {percent:.0} % of the time of all runs was up to it.",
            stage.command
        )
    } else {
        "No stage in particular holds the whole up, as far as runs were long enough to tell.".to_owned()
    };
    Some(Bottleneck { stage: Some(at).filter(|_| named), sentence })
}
