//! What `hosepipe bench` shows: a heading, ranked lists or sweeps, the floor and the ceiling, what to do, and remarks.

use model::BenchRecord;

use crate::costs::Costs;
use crate::sheet::{Sheet, SheetPart};
use crate::table::Table;
use crate::view::{Group, Ranking, View};
use crate::{advice, columns, languages, load, remarks, sweep};

/// The sheet of a record. Many block sizes are shown as grids where `grids` is true, else as a list for each.
pub fn sheet(record: &BenchRecord, grids: bool) -> Sheet {
    if languages::is_of_workers(record) {
        return languages::sheet(record);
    }
    let view = View::of(record);
    let groups = match grids {
        true => view.groups(),
        false => view.rankings.iter().map(Group::Ranked).collect(),
    };
    let mut tables: Vec<Table> = Vec::new();
    let mut models: Vec<Table> = view.groups().iter().filter_map(|group| costs(&view, group)).collect();
    for group in &groups {
        let mut of_group = match group {
            Group::Ranked(ranking) => vec![columns::table(ranking, record.settings.interrupted)],
            Group::Sweep(rankings) => sweep::tables(rankings, record.settings.interrupted),
        };
        let title = match group {
            Group::Ranked(ranking) => view.title(ranking, true),
            Group::Sweep(rankings) => view.title(rankings[0], false),
        };
        if let Some(first) = of_group.first_mut().filter(|_| !title.is_empty()) {
            first.title = if first.title.is_empty() { title } else { format!("{title} · {}", first.title) };
        }
        if let Some(last) = of_group.last_mut() {
            last.notes.extend(beside(&view, group));
        }
        tables.append(&mut of_group);
    }
    tables.append(&mut models);
    // What stands below every table is said once.
    if tables.windows(2).all(|pair| pair[0].notes == pair[1].notes) {
        let count = tables.len();
        tables.iter_mut().take(count.saturating_sub(1)).for_each(|table| table.notes.clear());
    }
    tables.extend(load::tables(record));
    let mut parts = vec![SheetPart::Heading(remarks::heading(&view))];
    parts.extend(remarks::interruption(&view).map(SheetPart::Notice));
    parts.extend(tables.into_iter().map(SheetPart::Table));
    parts.extend(remarks::references(&view).map(SheetPart::Note));
    parts.extend(remarks::noise_legend(record).map(SheetPart::Note));
    parts.push(SheetPart::Remarks(advice(record).into_iter().chain(remarks::remarks(&view)).collect()));
    Sheet { parts }
}

/// What a block costs in a sweep.
fn costs(view: &View, group: &Group) -> Option<Table> {
    let Group::Sweep(rankings) = group else { return None };
    let rows = rankings.iter().flat_map(|ranking| &ranking.rows);
    let mut table = Costs::of(rows.filter_map(|row| Some((row.label.clone(), row.stream?))))?.table();
    let apart = view.title(rankings[0], false);
    if !apart.is_empty() {
        table.title = format!("{apart} · {}", table.title);
    }
    Some(table)
}

/// The floor and the ceiling of a group; of a sweep those of its ends, where they are not the same.
fn beside(view: &View, group: &Group) -> Vec<String> {
    let ends = match group {
        Group::Ranked(ranking) => return remarks::footer(view, ranking).into_iter().collect(),
        Group::Sweep(rankings) => rankings.first().into_iter().chain(rankings.last()),
    };
    let footers: Vec<(&Ranking, String)> =
        ends.filter_map(|ranking| Some((*ranking, remarks::footer(view, ranking)?))).collect();
    match footers.as_slice() {
        [(_, first), (_, last)] if first == last => vec![first.clone()],
        several => several
            .iter()
            .map(|(ranking, footer)| format!("{}:  {footer}", sweep::size_of(ranking)))
            .collect(),
    }
}
