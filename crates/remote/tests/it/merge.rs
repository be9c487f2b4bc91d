//! One record of many runs.

use model::{LinkRecord, RunRecord, StageRecord};
use remote::spread::merged;

fn stage(command: &str, held_up_ns: u64, rss: u64) -> StageRecord {
    StageRecord {
        command: command.to_owned(),
        wall_ns: 10,
        user_ns: held_up_ns,
        held_up_ns: Some(held_up_ns),
        max_rss_bytes: Some(rss),
        ..StageRecord::default()
    }
}

#[test]
fn sums_largest_and_the_slowest() {
    let run = |sort, rss| {
        let stages = vec![stage("cut", 100, 1), stage("sort", sort, rss)];
        let links = vec![LinkRecord { bytes: Some(7), ..LinkRecord::default() }];
        RunRecord { stages, links, wall_ns: 600, ..RunRecord::default() }
    };
    let reduce = RunRecord { stages: vec![stage("uniq", 50, 1)], status: 3, ..RunRecord::default() };
    let whole = merged([run(400, 5), run(500, 9)].into_iter(), Some(reduce)).expect("records");
    assert_eq!(whole.stages[1].held_up_ns, Some(900));
    assert_eq!((whole.stages[1].max_rss_bytes, whole.stages[2].pipeline, whole.status), (Some(9), 1, 3));
    assert_eq!(whole.stages.iter().map(|stage| stage.is_reduce).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(whole.links[0].bytes, Some(14));
    let judged = whole.bottleneck.expect("a judgement");
    assert_eq!((judged.stage, judged.share), (Some(1), Some(0.75)));
    assert_eq!(merged(std::iter::empty(), None), None);
}
