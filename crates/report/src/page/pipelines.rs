//! Runs of pipelines as flows: stages, hoses, and the stage that held the others up.

use model::{LinkRecord, RunRecord};

use super::section::{Block, Section};
use crate::figure::{Chart, Figure, Flow, FlowLink, FlowStage};
use crate::numbers;
use crate::stages::{links_behind, sentences};
use crate::statuses;

/// A section for one run.
pub(super) fn section(record: &RunRecord, label: &str, number: usize) -> Section {
    let title = if label.is_empty() { "Pipeline".to_owned() } else { format!("Pipeline · {label}") };
    Section {
        id: format!("pipeline-{number}"),
        title,
        lead: sentences(record),
        code: Some(record.pipeline.clone()),
        blocks: vec![Block::Figure(figure(record, number))],
    }
}

fn figure(record: &RunRecord, number: usize) -> Figure {
    let held_up = record.bottleneck.as_ref().and_then(|bottleneck| bottleneck.stage);
    let flows = links_behind(record).into_iter().enumerate();
    Figure {
        id: format!("flow-{number}"),
        title: "Stages and what flowed between them".to_owned(),
        caption: format!(
            "Time runs to the right, {} in all; a link is as thick as the bytes that went through it. Waits are \
                sampled; bytes are known where a relay or a file counts them (--meter).",
            numbers::time(record.wall_ns as f64)
        ),
        chart: Chart::Flow(Flow {
            wall_s: seconds(record.wall_ns),
            stages: flows.map(|(at, behind)| stage(record, at, behind, held_up == Some(at))).collect(),
        }),
    }
}

fn stage(record: &RunRecord, at: usize, behind: Option<&LinkRecord>, held_up: bool) -> FlowStage {
    let stage = &record.stages[at];
    let next = record.stages.get(at + 1).filter(|next| next.pipeline == stage.pipeline);
    FlowStage {
        command: stage.command.clone(),
        wall_s: seconds(stage.wall_ns),
        cpu_s: seconds(stage.user_ns.saturating_add(stage.system_ns)),
        read_wait_s: stage.blocked_read_ns.map(seconds),
        write_wait_s: stage.blocked_write_ns.map(seconds),
        queued_s: stage.queued_ns.map(seconds),
        exit: statuses::shown(stage),
        held_up,
        link: next.map(|_| flow_link(behind, &record.via)),
    }
}

/// What leads on from a stage to the next one.
fn flow_link(link: Option<&LinkRecord>, via: &str) -> FlowLink {
    FlowLink {
        spec: link.map_or(via, |link| &link.spec).to_owned(),
        bytes: link.and_then(|link| link.bytes),
        note: link.map(note).unwrap_or_default(),
    }
}

fn note(link: &LinkRecord) -> String {
    let granted = link.granted.iter().map(|(name, bytes)| {
        format!("{} {}", name.trim_end_matches("_bytes").replace('_', " "), numbers::size(*bytes))
    });
    let parts = granted
        .chain(link.stored_bytes.map(|bytes| format!("stored {}", numbers::decimal_size(bytes))))
        .chain(link.lines.map(|lines| format!("{} lines", numbers::grouped(lines as f64, 0))))
        .chain(link.relay.then(|| "through a relay of ours".to_owned()))
        .chain(link.kept.as_ref().map(|path| format!("kept in {path}")))
        .chain(link.trouble.clone());
    parts.collect::<Vec<String>>().join("; ")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
