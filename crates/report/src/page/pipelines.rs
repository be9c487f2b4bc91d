//! Runs of pipelines as flows: stages, hoses, and the stage that held the others up.

use model::{LinkRecord, RunRecord, StageRecord};

use super::section::{Block, Section};
use crate::figure::{Chart, Figure, Flow, FlowLink, FlowStage};
use crate::numbers;
use crate::stages::{link_behind, sentences};
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
    let stages = record.stages.iter().enumerate();
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
            stages: stages.map(|(at, one)| stage(record, at, one, held_up == Some(at))).collect(),
        }),
    }
}

fn stage(record: &RunRecord, at: usize, stage: &StageRecord, held_up: bool) -> FlowStage {
    FlowStage {
        command: stage.command.clone(),
        wall_s: seconds(stage.wall_ns),
        cpu_s: seconds(stage.user_ns + stage.system_ns),
        read_wait_s: stage.blocked_read_ns.map(seconds),
        write_wait_s: stage.blocked_write_ns.map(seconds),
        exit: statuses::shown(stage),
        held_up,
        link: link(record, at),
    }
}

/// What leads on from a stage; `None` behind the last one of a pipeline.
fn link(record: &RunRecord, at: usize) -> Option<FlowLink> {
    let stage = record.stages.get(at)?;
    record.stages.get(at + 1).filter(|next| next.pipeline == stage.pipeline)?;
    let link = link_behind(record, at);
    Some(FlowLink {
        spec: link.map_or_else(|| record.via.clone(), |link| link.spec.clone()),
        bytes: link.and_then(|link| link.bytes),
        note: link.map(note).unwrap_or_default(),
    })
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
