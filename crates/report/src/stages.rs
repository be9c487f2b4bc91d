//! What a run did, stage by stage: the table of `hosepipe run --stats`.

use model::{ByteSize, LinkRecord, RunRecord, signal_name};

use crate::columns::ABSENT;
use crate::grid::{Heading, lay_out};
use crate::layout::{Line, Tone, print, width, wrap};
use crate::numbers::{decimal_size, percent, time};
use crate::table::Style;

/// Below this a time asleep is not told from none.
const SEEN_NS: u64 = 1_000_000;
/// A command keeps at least so many columns; where there is less room, figures go.
const COMMAND_COLUMNS_MIN: usize = 12;
/// Which figures go first, as places among [`HEADINGS`].
const DISPENSABLE: [usize; 2] = [MEMORY, QUEUED];
const QUEUED: usize = 3;
const MEMORY: usize = 7;

const HEADINGS: &[Heading] = &[
    Heading::left("stage"),
    Heading::right("wall"),
    Heading::right("CPU"),
    Heading::right("queued"),
    Heading::right("out"),
    Heading::right("full"),
    Heading::right("empty"),
    Heading::right("memory"),
    Heading::right("exit"),
    Heading::left(""),
];

/// Renders the table, the links' remarks and the sentence on what held the run up.
pub fn render(record: &RunRecord, style: &Style) -> String {
    let held_up = record.bottleneck.as_ref().and_then(|bottleneck| bottleneck.stage);
    let mut rows = Vec::new();
    let mut number = 0;
    for (index, stage) in record.stages.iter().enumerate() {
        let first = index == 0 || record.stages[index - 1].pipeline != stage.pipeline;
        number = if first { 1 } else { number + 1 };
        let tone = if held_up == Some(index) { Tone::Bold } else { Tone::Plain };
        let mut cells = vec![number.to_string()];
        cells.extend(figures(record, index));
        cells.push(if held_up == Some(index) { "←".to_owned() } else { String::new() });
        rows.push((tone, cells));
    }
    let mut dispensable = DISPENSABLE.iter();
    let mut room = room_for_commands(&rows, style.width);
    while room < COMMAND_COLUMNS_MIN
        && let Some(&column) = dispensable.next()
    {
        rows.iter_mut().for_each(|(_, cells)| cells[column].clear());
        room = room_for_commands(&rows, style.width);
    }
    for ((_, cells), stage) in rows.iter_mut().zip(&record.stages) {
        let command = shortened(&stage.command, room.max(COMMAND_COLUMNS_MIN));
        cells[0] = format!("{} {command}", cells[0]);
    }
    let mut lines = lay_out(HEADINGS, &rows);
    for sentence in sentences(record) {
        lines.extend(wrap(&sentence, style.width).into_iter().map(|line| Line::new(Tone::Plain, line)));
    }
    print(&lines, style.color, style.unicode)
}

/// Columns that are left for the commands, once the figures and the stages' numbers have theirs.
fn room_for_commands(rows: &[(Tone, Vec<String>)], columns: usize) -> usize {
    let taken = lay_out(HEADINGS, rows).iter().map(Line::width).max().unwrap_or(0);
    // The heading of the commands' column is as wide as the widest number, and more.
    columns.saturating_sub(taken) + HEADINGS[0].title.len() - 3
}

/// The cells behind the command.
fn figures(record: &RunRecord, index: usize) -> Vec<String> {
    let stage = &record.stages[index];
    let link = link_behind(record, index);
    let measured = |ns: Option<u64>| match ns {
        Some(ns) if ns >= SEEN_NS => time(ns as f64),
        _ => ABSENT.to_owned(),
    };
    let share = |part: fn(&LinkRecord) -> Option<u64>| {
        let Some(link) = link else { return String::new() };
        let watched = link.watched_ns.filter(|ns| *ns > 0);
        let share = watched.and_then(|watched| Some(part(link)? as f64 / watched as f64));
        share.map_or_else(|| ABSENT.to_owned(), |share| percent(share.min(1.0)))
    };
    vec![
        measured(Some(stage.wall_ns)),
        measured(Some(stage.user_ns + stage.system_ns)),
        measured(stage.queued_ns),
        link.and_then(|link| link.bytes).map(decimal_size).unwrap_or_default(),
        share(|link| link.full_ns),
        share(|link| link.empty_ns),
        stage.max_rss_bytes.map(decimal_size).unwrap_or_default(),
        match stage.signal {
            Some(signal) => signal_name(signal),
            None => stage.status.to_string(),
        },
    ]
}

/// The link that a stage writes to; `None` behind the last one of a pipeline.
pub(crate) fn link_behind(record: &RunRecord, index: usize) -> Option<&LinkRecord> {
    let (writer, reader) = (record.stages.get(index)?, record.stages.get(index + 1)?);
    if writer.pipeline != reader.pipeline {
        return None;
    }
    let place = record.stages[..index].iter().filter(|stage| stage.pipeline == writer.pipeline).count();
    record.links.iter().filter(|link| link.pipeline == writer.pipeline).nth(place)
}

pub(crate) fn sentences(record: &RunRecord) -> Vec<String> {
    let mut sentences = Vec::new();
    let bottleneck = record.bottleneck.as_ref().map(|bottleneck| of_which(record) + &bottleneck.sentence);
    let over = record.links.first().map(|link| format!(" over {}", link_text(link))).unwrap_or_default();
    let whole = format!("{}{over}.", time(record.wall_ns as f64));
    sentences.push([Some(whole), bottleneck].into_iter().flatten().collect::<Vec<_>>().join(" "));
    if record.links.iter().any(|link| link.watched_ns.is_some()) {
        sentences.push("full, empty: for what share of its time the link behind a stage was so.".to_owned());
    }
    sentences.extend(stopped_reading(record));
    if record.links.iter().any(|link| link.relay) {
        sentences
            .push("A relay of ours stood in each link; it moves pages and never looks at them.".to_owned());
    }
    let stored: u64 = record.links.iter().filter_map(|link| link.stored_bytes).sum();
    if stored > 0 {
        sentences.push(format!("The links stored {} in a file system.", decimal_size(stored)));
    }
    sentences.extend(record.links.iter().filter_map(|link| link.trouble.clone()));
    sentences
}

/// Where a text has several pipelines, which one the judgement is of.
fn of_which(record: &RunRecord) -> String {
    let longest = record.stages.iter().max_by_key(|stage| stage.wall_ns);
    let several = record.stages.iter().any(|stage| stage.pipeline > 0);
    let Some(stage) = longest.filter(|_| several) else { return String::new() };
    let of_it: Vec<&str> = record
        .stages
        .iter()
        .filter(|other| other.pipeline == stage.pipeline)
        .map(|other| other.command.as_str())
        .collect();
    format!(
        "The longest pipeline, `{}`, took {}. ",
        shortened(&of_it.join(" | "), 40),
        time(stage.wall_ns as f64)
    )
}

/// A stage that SIGPIPE ended is nothing to worry about, and looks as if it were.
fn stopped_reading(record: &RunRecord) -> Option<String> {
    let (index, stage) = record.stages.iter().enumerate().find(|(_, stage)| stage.signal == Some(SIGPIPE))?;
    let next = record.stages.get(index + 1).filter(|next| next.pipeline == stage.pipeline)?;
    Some(format!(
        "`{}` ended by SIGPIPE because `{}` stopped reading, which is normal.",
        shortened(&stage.command, 40),
        shortened(&next.command, 40)
    ))
}

fn link_text(link: &LinkRecord) -> String {
    match link.granted.get("pipe_bytes") {
        Some(bytes) if !link.spec.contains("size=") => format!("{} ({})", link.spec, ByteSize(*bytes)),
        _ => link.spec.clone(),
    }
}

/// A command in one line, of at most so many columns.
pub(crate) fn shortened(command: &str, columns: usize) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    if width(&line) <= columns {
        return line;
    }
    let mut kept = String::new();
    for character in line.chars() {
        if width(&kept) + 2 > columns {
            break;
        }
        kept.push(character);
    }
    kept + "…"
}

/// The number of SIGPIPE, everywhere.
const SIGPIPE: i32 = 13;
