//! Limits of what a page shows, so that a browser can open it: a record may have a hundred thousand cases. A sentence names what is
//! left out; `hosepipe report` prints all.

use crate::chart::{BarGroup, Bars, Chart, ChartData, Heat, Lines, Series, SeriesStyle};
use crate::document::{Block, Document};
use crate::table::Table;

/// Most bars of a chart.
const BARS_MAX: usize = 80;
/// Most lines of a chart, without references.
pub(crate) const LINES_MAX: usize = 24;
/// Most points of a line.
const POINTS_MAX: usize = 160;
/// Most rows, and most columns, of a matrix.
const CELLS_MAX: usize = 80;
/// Most stages of a flow.
const STAGES_MAX: usize = 600;
/// Most rows of all tables of a block together.
const ROWS_MAX: usize = 1_000;
/// Most charts, tables and remarks of a section.
const BLOCKS_MAX: usize = 60;

/// Limits every section of a page.
pub(crate) fn bounded(mut page: Document) -> Document {
    for section in &mut page.sections {
        let left_out = truncated("figures", &mut section.blocks, BLOCKS_MAX);
        section.blocks.iter_mut().for_each(bound);
        section.blocks.extend(left_out.map(|sentence| Block::Remarks(vec![sentence])));
    }
    page
}

fn bound(block: &mut Block) {
    match block {
        Block::Chart(chart) => bound_chart(chart),
        Block::Table(table) => _ = bound_rows(table, ROWS_MAX),
        Block::Folded(_, tables) => bound_tables(tables),
        Block::Remarks(lines) => {
            let left_out = truncated("remarks", lines, ROWS_MAX);
            lines.extend(left_out);
        }
        _ => {}
    }
}

fn bound_chart(chart: &mut Chart) {
    let left_out = match &mut chart.data {
        ChartData::Bars(bars) => bound_bars(bars),
        ChartData::Lines(lines) => bound_lines(lines),
        ChartData::Heat(heat) => bound_heat(heat),
        ChartData::Flow(flow) => truncated("stages", &mut flow.stages, STAGES_MAX).into_iter().collect(),
    };
    left_out.iter().for_each(|sentence| chart.caption += &format!(" {sentence}"));
}

/// "The first 80 of 50000 bars are shown; hosepipe report prints all."; `None` if all are shown.
pub(crate) fn cut(what: &str, most: usize, all: usize) -> Option<String> {
    (all > most).then(|| format!("The first {most} of {all} {what} are shown; hosepipe report prints all."))
}

/// Shortens a list; the sentence names how much is left out.
fn truncated<T>(what: &str, list: &mut Vec<T>, most: usize) -> Option<String> {
    let all = list.len();
    list.truncate(most);
    cut(what, most, all)
}

fn bound_bars(bars: &mut Bars) -> Vec<String> {
    let groups = std::mem::take(&mut bars.groups).into_iter().map(|group| (group.name, group.bars));
    let (groups, left_out) = bars_of(groups.collect());
    bars.groups = groups.into_iter().map(|(name, bars)| BarGroup { name, bars }).collect();
    left_out.into_iter().collect()
}

/// The first bars, at most as many as a chart shows, or the items that they are made of; and a sentence on the others.
pub(crate) fn bars_of<T>(mut groups: Vec<(String, Vec<T>)>) -> (Vec<(String, Vec<T>)>, Option<String>) {
    let all = groups.iter().map(|(_, bars)| bars.len()).sum();
    let mut room = BARS_MAX;
    for (_, bars) in &mut groups {
        bars.truncate(room);
        room -= bars.len();
    }
    groups.retain(|(_, bars)| !bars.is_empty());
    (groups, cut("bars", BARS_MAX, all))
}

fn bound_lines(lines: &mut Lines) -> Vec<String> {
    let is_reference = |series: &Series| series.style == SeriesStyle::Reference;
    let (references, mut series): (Vec<Series>, _) = lines.series.drain(..).partition(is_reference);
    let left_out = truncated("lines", &mut series, LINES_MAX);
    lines.series = series.into_iter().chain(references).collect();
    let longest = lines.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let step = longest.div_ceil(POINTS_MAX).max(1);
    for series in &mut lines.series {
        let last = series.points.len().saturating_sub(1);
        let points = std::mem::take(&mut series.points).into_iter().enumerate();
        series.points =
            points.filter(|(at, _)| at % step == 0 || *at == last).map(|(_, point)| point).collect();
    }
    let thinned = (step > 1).then(|| format!("One of every {step} points of a line is drawn."));
    left_out.into_iter().chain(thinned).collect()
}

fn bound_heat(heat: &mut Heat) -> Vec<String> {
    heat.cells.truncate(CELLS_MAX);
    heat.cells.iter_mut().for_each(|row| row.truncate(CELLS_MAX));
    let names = [("rows", &mut heat.rows), ("columns", &mut heat.columns)];
    names.into_iter().filter_map(|(what, names)| truncated(what, names, CELLS_MAX)).collect()
}

/// Limits the rows of several tables together.
fn bound_tables(tables: &mut Vec<Table>) {
    let (mut room, mut kept, all) = (ROWS_MAX, 0, tables.len());
    while let Some(table) = tables.get_mut(kept).filter(|_| room > 0) {
        room -= bound_rows(table, room);
        kept += 1;
    }
    tables.truncate(kept);
    if let Some((sentence, last)) = cut("tables", kept, all).zip(tables.last_mut()) {
        last.title = format!("{}. {sentence}", last.title);
    }
}

/// Keeps at most `most` rows, and returns how many are kept.
fn bound_rows(table: &mut Table, most: usize) -> usize {
    if let Some(sentence) = cut("rows", most, table.rows.len()) {
        table.title = format!("{}. {sentence}", table.title);
    }
    table.rows.truncate(most);
    table.rows.len()
}
