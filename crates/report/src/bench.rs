//! What `hosepipe bench` shows: a heading, ranked lists or sweeps, the floor and the ceiling, what to do, and remarks.

mod cases;
mod highlights;
mod page;
mod round_trips;
mod throughput;

use model::{BenchRecord, Recommendation};

pub(crate) use cases::Source;
pub(crate) use highlights::highlights;
pub(crate) use page::sections;

use crate::advice::{Findings, findings};
use crate::costs::Costs;
use crate::document::{Block, Medium};
use crate::table::Table;
use crate::view::{Group, Ranking, View};
use crate::{columns, data_costs, languages, load, offsets, remarks, sweep};

/// What a text shows of a record. Many block sizes are grids in a terminal, in Markdown a list for each.
pub(crate) fn blocks(record: &BenchRecord, medium: Medium) -> Vec<Block> {
    if languages::is_of_workers(record) {
        return languages::blocks(record);
    }
    let view = View::of(record);
    let groups = match medium {
        _ if offsets::are_swept(record) => Vec::new(),
        Medium::Terminal => view.groups(),
        Medium::Markdown | Medium::Page => view.rankings.iter().map(Group::Ranked).collect(),
    };
    let mut tables =
        if groups.is_empty() && !view.rankings.is_empty() { offsets::tables(record) } else { Vec::new() };
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
    // The same notes below every table are shown once.
    if tables.windows(2).all(|pair| pair[0].notes == pair[1].notes) {
        let count = tables.len();
        tables.iter_mut().take(count.saturating_sub(1)).for_each(|table| table.notes.clear());
    }
    tables.extend(load::tables(record));
    tables.extend(data_costs::table(record));
    let mut blocks = vec![Block::Heading(remarks::heading(&view))];
    if let Some(recommendation) = &record.recommendation {
        blocks.push(Block::Title(recommendation.title.clone()));
        blocks.extend(recommended(recommendation));
    }
    blocks.extend(remarks::interruption(&view).map(Block::Notice));
    blocks.extend(remarks::other_load(record).map(Block::Notice));
    blocks.extend(tables.into_iter().map(Block::Table));
    blocks.extend(remarks::references(&view).map(Block::Note));
    blocks.extend(remarks::interval_legend(record).map(Block::Note));
    let Findings { answers, further } = findings(record);
    blocks.push(Block::Remarks(further.into_iter().chain(remarks::remarks(&view)).collect()));
    // What was asked stands last, where a terminal shows it.
    let answer = |(number, text)| if number == 0 { Block::Paragraph(text) } else { Block::Line(text) };
    blocks.extend(answers.into_iter().enumerate().map(answer));
    blocks
}

/// The answer of `hosepipe recommend`, below its title.
pub(crate) fn recommended(recommendation: &Recommendation) -> Vec<Block> {
    let sentences = recommendation.sentences.iter().cloned().map(Block::Line);
    sentences.chain(recommendation.program.clone().map(Block::Code)).collect()
}

/// What a block costs in a sweep.
fn costs(view: &View, group: &Group) -> Option<Table> {
    let Group::Sweep(rankings) = group else { return None };
    let rows = rankings.iter().flat_map(|ranking| &ranking.rows);
    let mut table = Costs::from_cases(rows.filter_map(|row| Some((row.label.clone(), row.stream?))))?.table();
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
