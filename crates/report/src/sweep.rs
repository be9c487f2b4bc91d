//! Many block sizes: a row for each size and a column for each mechanism, so that a column reads as a curve.

use model::Workload;

use crate::estimate::{quantity, shown, speed};
use crate::lists::grouped;
use crate::sheet::{Sheet, col};
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;
use crate::view::{BlockSizes, RankedRow, Ranking};
use crate::{numbers, reason};

/// The rankings of a sweep as tables: throughput, then round trips, if they were measured.
pub(crate) fn tables(rankings: &[Ranking], interrupted: bool) -> Vec<Table> {
    let mut tables: Vec<Table> =
        Workload::ALL.iter().filter_map(|workload| table(*workload, rankings)).collect();
    let reasons = reasons(rankings, interrupted);
    match tables.last_mut() {
        Some(last) => last.notes = reasons,
        None => tables.push(Table { notes: reasons, ..Table::default() }),
    }
    tables
}

/// One column for each label with a figure at any size, that with the best figure first.
fn table(workload: Workload, rankings: &[Ranking]) -> Option<Table> {
    let found = rankings.iter().enumerate().flat_map(|(place, ranking)| cells(workload, ranking, place));
    let best = |cells: &[Cell]| cells.iter().map(|cell| cell.speed).fold(0.0, f64::max);
    let mut curves = grouped(found);
    model::sort_by(&mut curves, |(_, one), (_, other)| best(other).total_cmp(&best(one)));
    let (by, the_best) = match workload {
        Workload::Stream => ("block size", "fastest"),
        Workload::PingPong => ("size", "lowest"),
    };
    let title = format!("{} by {by} (* the {the_best} of its row)", quantity(workload).name);
    let places: Vec<usize> = (0..rankings.len()).collect();
    let mut sheet = Sheet::new(&places);
    sheet.add(col("").right(), |at| Some(Unit::Bytes.of(rankings[*at].block_bytes(workload)? as f64)));
    for (label, found) in &curves {
        // Of several rows of one name the first is shown. The last place of a cell is for its star.
        let text = |at: &usize| found.iter().find(|cell| cell.place == *at).map(|cell| cell.text.clone());
        sheet.add(format!("{label} "), |at| Some(text(at).unwrap_or_else(|| Value::Absent.then(" "))));
    }
    (!curves.is_empty()).then(|| Table { title, ..sheet.table() })
}

/// "64 KiB", or "1 B to 1 MiB".
pub(crate) fn size_range(least: u64, most: u64) -> String {
    let (least_text, most_text) = (numbers::size(least), numbers::size(most));
    if least == most { most_text } else { format!("{least_text} to {most_text}") }
}

/// The block of a ranking of a sweep.
pub(crate) fn size_of(ranking: &Ranking) -> String {
    let BlockSizes { stream, round_trip } = ranking.axes.blocks;
    stream.or(round_trip).map(numbers::size).unwrap_or_default()
}

/// The figure of one mechanism at one size.
struct Cell {
    /// The place of its size among all sizes.
    place: usize,
    speed: f64,
    text: Value,
}

/// The label and the cell of each row of a ranking that has the figure.
fn cells<'a>(
    workload: Workload,
    ranking: &'a Ranking,
    place: usize,
) -> impl Iterator<Item = (&'a str, Cell)> {
    let speed_of = move |row: &RankedRow| row.case(workload, false).and_then(speed);
    let speeds = || ranking.rows.iter().filter_map(speed_of);
    // One mechanism alone is not the best of anything.
    let best = if speeds().count() > 1 { speeds().fold(0.0, f64::max) } else { f64::INFINITY };
    ranking.rows.iter().filter_map(move |row| {
        let speed = speed_of(row)?;
        let figure = Value::Estimate(shown(row.case(workload, false)?, row.by_cpus(workload))?);
        let text = figure.then(if speed >= best { "*" } else { " " });
        Some((row.label.as_str(), Cell { place, speed, text }))
    })
}

/// One line for each mechanism that has no figure at some sizes: the first reason that was given.
fn reasons(rankings: &[Ranking], interrupted: bool) -> Vec<String> {
    let gaps = rankings.iter().flat_map(|ranking| ranking.rows.iter().map(move |row| (ranking, row)));
    let reasons_and_sizes = gaps.filter_map(|(ranking, row)| {
        let reason = row.cases().find_map(|case| reason::reason(case, interrupted))?;
        Some((&row.label, (reason, size_of(ranking))))
    });
    let sentence = |(label, gaps): (&String, Vec<(String, String)>)| match gaps.as_slice() {
        [(reason, first), .., (_, last)] => format!("{label} ({first} to {last}): {reason}"),
        [(reason, only)] => format!("{label} ({only}): {reason}"),
        [] => label.clone(),
    };
    grouped(reasons_and_sizes).into_iter().map(sentence).collect()
}
