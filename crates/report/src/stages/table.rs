//! The table of `hosepipe run --stats`.

use model::{Delays, LinkRecord, StageRecord};

use super::{command, latency_of, links_behind, measured};
use crate::folded::Folded;
use crate::sheet::{Sheet, col};
use crate::statuses;
use crate::table::{Fit, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::words::UNKNOWN;

/// A stage in the table, and the link behind it.
struct StageRow<'a> {
    name: String,
    stage: &'a StageRecord,
    link: Option<&'a LinkRecord>,
    /// The times of lines in it, if they were measured.
    delays: Option<&'a Delays>,
}

impl StageRow<'_> {
    /// A cell on the link, which is empty behind the last stage.
    fn of_link(&self, cell: impl Fn(&LinkRecord) -> Option<Value>) -> Option<Value> {
        self.link.map_or(Some(Value::EMPTY), cell)
    }

    /// A part of the time in which the link was watched.
    fn share(&self, part: fn(&LinkRecord) -> Option<u64>) -> Option<Value> {
        self.of_link(|link| {
            let share = part(link)? as f64 / link.watched_ns.filter(|ns| *ns > 0)? as f64;
            Some(Unit::Share.of(share.min(1.0)))
        })
    }

    fn out(&self, unit: Unit, amount: fn(&Self, u64) -> f64) -> Option<Value> {
        self.of_link(|link| match link.flowed() {
            Some((bytes, is)) => Some(unit.of(amount(self, bytes)).with_certainty(is)),
            None => Some(UNKNOWN.into()),
        })
    }

    fn lines(&self, unit: Unit, amount: fn(&Self, u64) -> f64) -> Option<Value> {
        let lines = self.link.and_then(|link| link.lines);
        Some(lines.map_or(Value::EMPTY, |lines| unit.of(amount(self, lines))))
    }

    fn latency(&self, part: fn(&Delays) -> u64) -> Option<Value> {
        let time =
            |delays: &Delays| Unit::Ns.of(part(delays) as f64).with_certainty(delays.matched.certainty());
        Some(self.delays.map_or(Value::EMPTY, time))
    }

    fn per_s(&self, amount: u64) -> f64 {
        amount as f64 * 1e9 / self.stage.wall_ns.max(1) as f64
    }
}

/// A row for each stage that is shown.
fn rows(folded: &Folded) -> Vec<StageRow<'_>> {
    let record = &folded.record;
    let part = |stage: &StageRecord| match (record.partitions, stage.is_reduce) {
        (None, _) => "",
        (Some(_), false) => "map ",
        (Some(_), true) => "reduce ",
    };
    let stages = record.stages.iter().enumerate().zip(links_behind(record));
    let rows = stages.map(|((at, stage), link)| StageRow {
        name: format!("{}{} {}", part(stage), stage.stage + 1, command(folded, at)),
        stage,
        link,
        delays: latency_of(record, stage).map(|known| &known.delays),
    });
    rows.collect()
}

/// The stages with what they did and what is in the links behind them.
pub(super) fn table(folded: &Folded) -> Table {
    let rows = rows(folded);
    let held_up = folded.record.bottleneck.as_ref().and_then(|bottleneck| bottleneck.stage);
    let amount = |_: &StageRow<'_>, amount: u64| amount as f64;
    let mut sheet = Sheet::new(&rows);
    sheet.add(col("stage").fit(Fit::Cut), |row| Some((&row.name).into()));
    sheet.add("wall", |row| time_value(Some(row.stage.wall_ns)));
    sheet.add("CPU", |row| time_value(Some(row.stage.user_ns.saturating_add(row.stage.system_ns))));
    sheet.add(col("queued").drop(1), |row| Some(time_value(row.stage.queued_ns).unwrap_or(Value::Absent)));
    sheet.add(col("out").right(), |row| row.out(Unit::Amount, amount));
    sheet.add(col("out/s").right().drop(3), |row| row.out(Unit::BytesPerS, StageRow::per_s));
    sheet.add("lines", |row| row.lines(Unit::Count, amount));
    sheet.add("lines/s", |row| row.lines(Unit::Many, StageRow::per_s));
    sheet.add("line p50", |row| row.latency(|delays| delays.p50_ns));
    sheet.add("line p99", |row| row.latency(|delays| delays.p99_ns));
    sheet.add("full", |row| row.share(|link| link.full_ns));
    sheet.add("empty", |row| row.share(|link| link.empty_ns));
    sheet.add(col("memory").drop(2), |row| {
        Some(row.stage.max_rss_bytes.map_or(Value::EMPTY, |bytes| Unit::Amount.of(bytes as f64)))
    });
    sheet.add(col("exit").right(), |row| Some(statuses::shown(row.stage).into()));
    let mut table = sheet.table();
    mark(&mut table, held_up);
    table
}

/// An arrow behind the row of the stage for which the others waited.
fn mark(table: &mut Table, held_up: Option<usize>) {
    table.columns.push(col(""));
    for (at, row) in table.rows.iter_mut().enumerate() {
        row.cells.push(if held_up == Some(at) { "←" } else { "" }.into());
    }
    table.embolden(held_up);
}

fn time_value(ns: Option<u64>) -> Option<Value> {
    measured(ns).map(|ns| Unit::Ns.of(ns as f64))
}
