//! The stages of a run: the table of `hosepipe run --stats`, and the flow on a page.

use std::cmp::Ordering;
use std::collections::HashMap;

use model::{
    Bottleneck, ByteSize, Certainty, LatencyRecord, LinkRecord, Matched, RunRecord, Spec, StageLatency,
    StageRecord,
};

mod table;

use crate::cause::sentence;
use crate::chart::{Chart, ChartData, Flow, FlowLink, FlowStage};
use crate::document::{Block, Context, Section};
use crate::folded::Folded;
use crate::layout::shortened;
use crate::limits::COMMAND_COLUMNS;
use crate::lists::{grouped as grouped_by, joined_if_any};
use crate::numbers::{decimal_size, percent, size, time};
use crate::sheet::Sheet;
use crate::show::{Show, indexes};
use crate::statuses;
use crate::table::Table;
use crate::words::{self, AT_LEAST, NOT_KNOWN, grouped_count};
use crate::{held_back, slow_copies, why};

/// Smallest time that is shown; a shorter one is shown as absent.
const SHOWN_NS_MIN: u64 = 1_000_000;

/// The stages as a flow on a page, as a table in a text, and sentences on them.
fn section(record: &RunRecord, context: &Context) -> Section {
    let folded = Folded::new(record);
    let mut section = context.section("pipeline", "Pipeline");
    if context.is_page() {
        section.code = Some(record.pipeline.clone());
        section.blocks.push(Block::Chart(chart(&folded, context.number)));
    } else if !record.stages.is_empty() {
        section.blocks.push(Block::Table(table::table(&folded)));
    }
    let why = record.why.as_ref().map(why::at_last_look);
    let mut sentences: Vec<String> = why.into_iter().chain(sentences(record, &folded.record)).collect();
    if folded.counts.iter().any(|count| *count > 1) {
        sentences.push(
            "×: so often was the same pipeline started, by a loop for example; its row has the sums."
                .to_owned(),
        );
    }
    context.conclude(&mut section, sentences, Block::Line);
    section
}

/// Fields of a stage in CSV.
const STAGE_FIELDS: &str = "pipeline stage command status signal wall_ns user_ns system_ns queued_ns blocked_read_ns \
    blocked_write_ns max_rss_bytes read_buffer_offset write_buffer_offset";
/// Fields of the link that a stage writes to.
const LINK_FIELDS: &str = "link=spec link_bytes=bytes link_bytes_is=bytes_is link_lines=lines link_stored_bytes=stored_bytes \
    link_watched_ns=watched_ns link_full_ns=full_ns link_empty_ns=empty_ns";

impl Show for RunRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        vec![section(self, context)]
    }

    fn data(&self) -> Table {
        let rows: Vec<_> = self.stages.iter().zip(links_behind(self)).collect();
        let mut sheet = Sheet::of_data(&rows);
        sheet.fields(STAGE_FIELDS, |(stage, _)| *stage);
        sheet.fields(LINK_FIELDS, |(_, link)| *link);
        sheet.table()
    }

    fn check(&self) -> Result<(), String> {
        let (found, end) = (self.bottleneck.as_ref(), self.stages.len());
        indexes("`bottleneck.stage`", 1, found.and_then(|found| found.stage), "stages", end)?;
        indexes("a stage of `bottleneck`", 1, found.into_iter().flat_map(Bottleneck::stages), "stages", end)
    }
}

/// A stage in a sentence.
pub(crate) fn stage_name(stage: &StageRecord) -> String {
    format!("`{}` (stage {})", shortened(&stage.command, COMMAND_COLUMNS), stage.stage + 1)
}

/// The command of a stage, after the number of stages of which it is the sum.
fn command(folded: &Folded, at: usize) -> String {
    let command = &folded.record.stages[at].command;
    match folded.counts[at] {
        1 => command.clone(),
        count => format!("{count} × {command}"),
    }
}

/// The times of lines in a stage, if they were measured.
fn latency_of<'a>(record: &'a RunRecord, stage: &StageRecord) -> Option<&'a StageLatency> {
    let mut known = record.latency.iter().flatten().filter(|known| known.pipeline == stage.pipeline);
    known.find_map(|known| known.stages.iter().find(|of| of.stage == stage.stage))
}

/// The stage with the largest share of the times, and that share. `None` if the times of another stage are lower bounds, so that its share
/// may be larger.
fn largest_share(stages: &[StageLatency]) -> Option<(u32, String)> {
    let by_share = |one: &&StageLatency, other: &&StageLatency| one.share.partial_cmp(&other.share);
    let largest = stages.iter().max_by(|one, other| by_share(one, other).unwrap_or(Ordering::Equal))?;
    let is_bound = |of: &StageLatency| of.delays.matched.certainty() != Certainty::Exact;
    let is_certain = stages.iter().all(|of| of.stage == largest.stage || !is_bound(of));
    let at_least = if is_bound(largest) { "at least " } else { "" };
    let share = format!("{at_least}{}", percent(largest.share?));
    (stages.len() > 1 && is_certain).then_some((largest.stage, share))
}

/// The times of lines in each pipeline, and the stage with the largest share.
fn latency_sentences(record: &RunRecord) -> Vec<String> {
    let Some(known) = &record.latency else { return Vec::new() };
    if known.is_empty() {
        let none = "No latency: it is the time of a line from a pipeline's first link to its last, and no pipeline had two links with \
                    bytes in them (`| cat` behind a last stage adds one).";
        return vec![none.to_owned()];
    }
    let sentence = |LatencyRecord { pipeline, whole, stages }: &LatencyRecord| {
        let which = if known.len() > 1 { format!("Pipeline {}: ", pipeline + 1) } else { String::new() };
        let (what, how) = match whole.matched {
            Matched::Content => ("line", "matched by content"),
            Matched::Position => ("line", "the n-th out for the n-th in"),
            Matched::Block => ("block", "each to the next output"),
        };
        let matched = grouped_count(whole.count, what);
        let largest_sentence = largest_share(stages).map(|(number, share)| {
            let is_it = |stage: &&StageRecord| stage.pipeline == *pipeline && stage.stage == number;
            let command = record.stages.iter().find(is_it).map_or("", |stage| &stage.command);
            let shown = shortened(command, COMMAND_COLUMNS);
            format!(" The largest share, {share}, was in stage {}, `{shown}`.", number + 1)
        });
        let at_least = if whole.matched.certainty() == Certainty::Exact { "" } else { "at least " };
        let [p50, p99] = [whole.p50_ns, whole.p99_ns].map(|ns| format!("{at_least}{}", time(ns as f64)));
        let largest_sentence = largest_sentence.unwrap_or_default();
        format!(
            "{which}Latency from the first link to the last: p50 {p50}, p99 {p99} ({matched}, {how}).{largest_sentence}"
        )
    };
    let mut sentences: Vec<String> = known.iter().map(sentence).collect();
    let mut all_stages = known.iter().flat_map(|known| &known.stages);
    if all_stages.any(|stage| stage.delays.matched.certainty() == Certainty::AtLeast) {
        let bound = "line p50 ≥, p99 ≥: no line could be found again behind that stage: the time until its next output, at least.";
        sentences.push(bound.to_owned());
    }
    sentences
}

fn measured(ns: Option<u64>) -> Option<u64> {
    ns.filter(|ns| *ns >= SHOWN_NS_MIN)
}

/// The link that each stage writes to; `None` behind the last one of a pipeline.
fn links_behind(record: &RunRecord) -> Vec<Option<&LinkRecord>> {
    let links: HashMap<u32, Vec<&LinkRecord>> =
        grouped_by(record.links.iter().map(|link| (link.pipeline, link))).into_iter().collect();
    let behind = |(at, writer): (usize, &StageRecord)| {
        let reader = record.stages.get(at + 1)?;
        let links = links.get(&writer.pipeline).filter(|_| writer.pipeline == reader.pipeline)?;
        links.get(writer.stage as usize).copied()
    };
    record.stages.iter().enumerate().map(behind).collect()
}

/// The sentences on a run; what explains the table is of its rows, `shown`.
fn sentences(record: &RunRecord, shown: &RunRecord) -> Vec<String> {
    let over = record.links.first().map(|link| format!(" over {}", link_text(link))).unwrap_or_default();
    let sums = record
        .partitions
        .map(|count| format!(", of {} together", words::count(count as usize, "partition")))
        .unwrap_or_default();
    let bottleneck = record.bottleneck.as_ref();
    let bottleneck_sentence =
        bottleneck.map(|found| format!(" {}{}", longest_pipeline(record), sentence(record, found)));
    let whole = time(record.wall_ns as f64);
    let mut sentences = vec![format!("{whole}{over}{sums}.{}", bottleneck_sentence.unwrap_or_default())];
    for stage in &record.stages {
        let name = stage_name(stage);
        sentences.extend(stage.held_back.as_ref().map(|held| held_back::past(&name, held)));
        sentences.extend(stage.slow_copies.as_ref().map(|slow| slow_copies::past(&name, slow)));
    }
    sentences.extend(ways("Line by line", record, |stage| stage.line_buffered.as_ref()));
    sentences.extend(ways("Buffers aligned", record, |stage| stage.align_buffers.as_ref()));
    if record.stages.is_empty() {
        let none =
            "No stage was seen to its end: the shell did everything itself, or ended before its programs.";
        sentences.push(none.to_owned());
        return sentences;
    }
    sentences.extend(record.without.as_ref().map(|calls| format!("Refused to all programs: {calls}.")));
    sentences.extend(latency_sentences(record));
    if shown.links.iter().any(|link| link.watched_ns.is_some()) {
        sentences.push(
            "full, empty: the share of its time in which the link behind a stage was full or empty."
                .to_owned(),
        );
    }
    sentences.extend(bytes_notes(links_behind(shown).into_iter().flatten()));
    if shown.stages.iter().any(|stage| measured(stage.queued_ns).is_some()) {
        sentences.push("queued: how long a stage was ready to run while no CPU was free.".to_owned());
    }
    sentences.extend(statuses::sentences(record));
    sentences.extend(relays(record));
    let stored: u64 = record.links.iter().filter_map(|link| link.stored_bytes).sum();
    if stored > 0 {
        sentences.push(format!("The links stored {} in a file system.", decimal_size(stored)));
    }
    sentences.extend(record.links.iter().filter_map(|link| link.trouble.clone()));
    sentences.extend(saved_by_size(record));
    sentences
}

/// The first writer that may have got no SIGPIPE only because its pipe is larger than those of shells: a fault of the text is not seen.
fn saved_by_size(record: &RunRecord) -> Option<String> {
    let mut links = links_behind(record).into_iter().enumerate();
    let (at, left_bytes) = links.find_map(|(at, link)| Some((at, link?.left_bytes?)))?;
    let [writer, reader] = [at, at + 1].map(|at| stage_name(&record.stages[at]));
    let left = decimal_size(left_bytes);
    Some(format!(
        "{writer} wrote {left} more than {reader} read, and ended well, as the link holds more than a shell's own pipe. If the reader left \
         early, the writer gets SIGPIPE (status 141) in a pipe of 64KiB: see with --via pipe:size=64KiB."
    ))
}

/// What the relays did, if there were any.
fn relays(record: &RunRecord) -> Option<String> {
    let link = record.links.iter().find(|link| link.relay)?;
    let does = if record.latency.is_some() {
        "read every byte to note when each line came: lines/s is over the time of the stage that wrote them"
    } else if record.links.iter().any(|link| link.lines.is_some()) {
        "read every byte to count the lines: lines/s is over the time of the stage that wrote them"
    } else if link.spec.parse::<Spec>().is_ok_and(|spec| spec.mechanism == "pty") {
        "copied every byte out of the terminal"
    } else {
        "passed bytes on by splice(2), without looking at them"
    };
    let relays = if Spec::has_option(&link.spec, "ends", "pipe") { "Two relays" } else { "A relay" };
    Some(format!("{relays} of hosepipe's in each link {does}."))
}

/// The stages that were started in a special way, if there are any, and how.
fn ways(what: &str, record: &RunRecord, way: impl Fn(&StageRecord) -> Option<&String>) -> Option<String> {
    let each = record.stages.iter().filter_map(|stage| Some(format!("{} {}", stage.stage + 1, way(stage)?)));
    Some(format!("{what}, by stage: {}.", joined_if_any(each, "; ")?))
}

/// The meaning of the signs before the bytes of these links.
fn bytes_notes<'a>(links: impl Iterator<Item = &'a LinkRecord>) -> Vec<String> {
    let known: Vec<Option<Certainty>> = links.map(|link| Some(link.flowed()?.1)).collect();
    let notes = [
        (Some(Certainty::AtLeast), AT_LEAST),
        (
            Some(Certainty::AtMost),
            "≤: from the totals of its ends, which include bytes of other files (--meter counts).",
        ),
        (None, NOT_KNOWN),
    ];
    notes.into_iter().filter(|(is, _)| known.contains(is)).map(|(_, note)| note.to_owned()).collect()
}

/// The longest pipeline of a text with several, to which the bottleneck belongs.
fn longest_pipeline(record: &RunRecord) -> String {
    let longest = record.stages.iter().max_by_key(|stage| stage.wall_ns);
    let several = record.partitions.is_none() && record.stages.iter().any(|stage| stage.pipeline > 0);
    let Some(stage) = longest.filter(|_| several) else { return String::new() };
    let stages = record.stages.iter().filter(|other| other.pipeline == stage.pipeline);
    let text = stages.map(|other| other.command.as_str()).collect::<Vec<_>>().join(" | ");
    let (text, wall) = (shortened(&text, COMMAND_COLUMNS), time(stage.wall_ns as f64));
    format!("The longest pipeline, `{text}`, took {wall}. ")
}

/// The spec of a link, with the size of its pipe if the spec does not name it.
fn link_text(link: &LinkRecord) -> String {
    let has_size = link.spec.parse::<Spec>().is_ok_and(|spec| spec.options.contains_key("size"));
    match link.granted.get("pipe_bytes") {
        Some(bytes) if !has_size => format!("{} ({})", link.spec, ByteSize(*bytes)),
        _ => link.spec.clone(),
    }
}

/// The stages, the bytes between them, and the stage that held the others up.
fn chart(folded: &Folded, number: usize) -> Chart {
    let record = &folded.record;
    let held_up = record.bottleneck.as_ref().and_then(|bottleneck| bottleneck.stage);
    let flows = links_behind(record).into_iter().enumerate();
    Chart {
        id: format!("flow-{number}"),
        title: "Stages and what flowed between them".to_owned(),
        caption: format!(
            "Time runs to the right, {} in all; a link is as thick as the bytes that went through it. Waits are \
                sampled; a relay or a file counts bytes (--meter), else ≥, ≤ or ? marks what the two ends show.",
            time(record.wall_ns as f64)
        ),
        data: ChartData::Flow(Flow {
            wall_s: seconds(record.wall_ns),
            stages: flows.map(|(at, behind)| flow_stage(folded, at, behind, held_up == Some(at))).collect(),
        }),
    }
}

fn flow_stage(folded: &Folded, at: usize, behind: Option<&LinkRecord>, held_up: bool) -> FlowStage {
    let record = &folded.record;
    let stage = &record.stages[at];
    let next = record.stages.get(at + 1).filter(|next| next.pipeline == stage.pipeline);
    FlowStage {
        command: command(folded, at),
        wall_s: seconds(stage.wall_ns),
        cpu_s: seconds(stage.user_ns.saturating_add(stage.system_ns)),
        read_wait_s: stage.blocked_read_ns.map(seconds),
        write_wait_s: stage.blocked_write_ns.map(seconds),
        queued_s: stage.queued_ns.map(seconds),
        exit: statuses::shown(stage),
        held_up,
        link: next.map(|_| FlowLink {
            spec: behind.map_or(&record.via, |link| &link.spec).clone(),
            bytes: behind.and_then(LinkRecord::flowed),
            note: behind.map(link_note).unwrap_or_default(),
        }),
    }
}

fn link_note(link: &LinkRecord) -> String {
    let granted = link.granted.iter().map(|(name, bytes)| {
        format!("{} {}", name.trim_end_matches("_bytes").replace('_', " "), size(*bytes))
    });
    let parts = granted
        .chain(link.stored_bytes.map(|bytes| format!("stored {}", decimal_size(bytes))))
        .chain(link.lines.map(|lines| grouped_count(lines, "line")))
        .chain(link.relay.then(|| "through a relay of hosepipe's".to_owned()))
        .chain(link.kept.as_ref().map(|path| format!("kept in {path}")))
        .chain(link.trouble.clone());
    parts.collect::<Vec<String>>().join("; ")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
