//! What is said after a pipeline: its time, what went through each link, what held it up, and who failed.

use std::time::Duration;

use model::{LinkRecord, StageRecord, signal_name};
use pipeline::{Finished, shortened};
use report::numbers::{decimal_size, time};

/// More pipelines than this in one line are not spoken of one by one.
const PIPELINES_MAX: usize = 3;

/// SIGPIPE, SIGINT and SIGTSTP have numbers that are the same on every Linux (signal(7)).
const SIGPIPE: i32 = 13;
const SIGINT: i32 = 2;

/// The lines about pipelines of two stages and more: time, bytes through each link, and the bottleneck. `stopped_for`
/// is how long one stood still, which is no part of its time.
pub(crate) fn statistics(finished: &Finished, stopped_for: Duration) -> Vec<String> {
    let mut lines: Vec<String> = pipelines(finished)
        .filter(|(_, stages)| stages.len() > 1)
        .take(PIPELINES_MAX)
        .map(|(number, stages)| {
            let links: Vec<&LinkRecord> =
                finished.links.iter().filter(|link| link.pipeline == number).collect();
            flow(&stages, &links, stopped_for)
        })
        .collect();
    let sentence = judge(&finished.stages, &finished.links).map(|bottleneck| bottleneck.sentence);
    if let (Some(last), Some(sentence)) = (lines.last_mut(), sentence) {
        last.push_str(" · ");
        last.push_str(&sentence);
    }
    lines.extend(finished.links.iter().filter_map(|link| link.trouble.clone()));
    lines
}

/// Which stages of pipelines failed, and how; nothing of one program alone that left with a status.
pub(crate) fn failures(finished: &Finished) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, stages) in pipelines(finished) {
        for (index, stage) in stages.iter().enumerate() {
            let name = match stages.len() {
                1 => format!("`{}`", shortened(&stage.command)),
                _ => format!("stage {} `{}`", index + 1, shortened(&stage.command)),
            };
            match stage.signal {
                Some(SIGINT) => {}
                Some(SIGPIPE) if index + 1 < stages.len() => lines.push(format!(
                    "{name} ended by SIGPIPE: stage {} stopped reading, which is normal",
                    index + 2
                )),
                Some(signal) => lines.push(format!("{name} ended by {}", signal_name(signal))),
                None if stage.status != 0 && stages.len() > 1 => {
                    lines.push(format!("{name} left with status {}{}", stage.status, meaning(stage)));
                }
                None => {}
            }
        }
    }
    lines
}

/// What a status is known to mean.
fn meaning(stage: &StageRecord) -> &'static str {
    let program = first_word(&stage.command);
    match (program, stage.status) {
        ("grep" | "egrep" | "fgrep", 1) => ": nothing matched",
        ("diff" | "cmp", 1) => ": there are differences",
        (_, 126) => ": it cannot be executed",
        (_, 127) => ": there is no such command",
        _ => "",
    }
}

/// The stages of each pipeline.
fn pipelines(finished: &Finished) -> impl Iterator<Item = (u32, Vec<&StageRecord>)> {
    let chunks = finished.stages.chunk_by(|one, next| one.pipeline == next.pipeline);
    chunks.filter_map(|stages| Some((stages.first()?.pipeline, stages.iter().collect())))
}

/// `1.2 s · cat →1.0 GB→ sort →133 MB→ wc · pipe`.
fn flow(stages: &[&StageRecord], links: &[&LinkRecord], stopped_for: Duration) -> String {
    let wall = stages.iter().map(|stage| stage.wall_ns).max().unwrap_or(0);
    let mut text = time(wall as f64);
    if !stopped_for.is_zero() {
        text.push_str(&format!(" (and {} stopped)", time(stopped_for.as_nanos() as f64)));
    }
    text.push_str(" · ");
    for (index, stage) in stages.iter().enumerate() {
        text.push_str(first_word(&stage.command));
        if let Some(next) = stages.get(index + 1) {
            text.push_str(&format!(" →{}→ ", carried(links.get(index).copied())));
        }
    }
    let spec = links.first().map(|link| link.spec.as_str()).unwrap_or_default();
    format!("{text} · {spec}")
}

/// What a link carried, as far as somebody counted.
fn carried(link: Option<&LinkRecord>) -> String {
    link.and_then(|link| link.bytes).map_or_else(|| "?".to_owned(), decimal_size)
}

fn first_word(command: &str) -> &str {
    let word = command.split_whitespace().next().unwrap_or(command);
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(pipeline: u32, command: &str, status: i32, signal: Option<i32>) -> StageRecord {
        StageRecord {
            pipeline,
            command: command.to_owned(),
            pid: None,
            status,
            signal,
            wall_ns: 1_000_000,
            user_ns: 0,
            system_ns: 0,
            blocked_read_ns: None,
            blocked_write_ns: None,
            queued_ns: None,
            held_up_ns: None,
            max_rss_bytes: None,
        }
    }

    fn finished(stages: Vec<StageRecord>) -> Finished {
        Finished {
            wall: Duration::ZERO,
            status: 0,
            pipestatus: vec![0],
            stages,
            links: Vec::new(),
            ended_by: None,
            in_one_shell: None,
            parked: Vec::new(),
            left: false,
        }
    }

    #[test]
    fn who_failed_and_how() {
        let of = |stages| failures(&finished(stages));
        assert_eq!(
            of(vec![stage(0, "yes", 141, Some(13)), stage(0, "head -1", 0, None)]),
            ["stage 1 `yes` ended by SIGPIPE: stage 2 stopped reading, which is normal"]
        );
        assert_eq!(
            of(vec![stage(0, "cat x", 1, None), stage(0, "grep y", 1, None)]),
            ["stage 1 `cat x` left with status 1", "stage 2 `grep y` left with status 1: nothing matched"]
        );
        assert_eq!(of(vec![stage(0, "crash", 139, Some(11))]), ["`crash` ended by SIGSEGV"]);
        assert!(of(vec![stage(0, "false", 1, None), stage(1, "sleep 9", 130, Some(2))]).is_empty());
    }

    #[test]
    fn the_flow_names_programs_and_bytes() {
        let lines = statistics(
            &finished(vec![stage(0, "/bin/cat big", 0, None), stage(0, "wc -c", 0, None)]),
            Duration::ZERO,
        );
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("1.00 ms · cat →2.00 kB→ wc · "), "{}", lines[0]);
        assert!(statistics(&finished(vec![stage(0, "ls", 0, None)]), Duration::ZERO).is_empty());
    }
}
