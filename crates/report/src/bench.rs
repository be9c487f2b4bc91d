//! The output of `hosepipe bench`: a heading, rankings or sweeps, the floor and the ceiling, recommendations, and remarks.

mod data;
mod highlights;
mod page;
mod round_trips;
mod throughput;

use model::{BenchRecord, Recommendation};

pub(crate) use data::{CaseRow, cases_table};
pub(crate) use highlights::highlights;
pub(crate) use page::sections;

use crate::advice::findings;
use crate::crossings::crossings;
use crate::document::{Block, Context, Medium, Section};
use crate::lists::joined;
use crate::show::{Show, histograms};
use crate::table::Table;
use crate::verdict::Findings;
use crate::view::{Ranking, View};
use crate::{columns, data_costs, languages, load, offsets, remarks, sweep};

impl Show for BenchRecord {
    /// Those on a page are made of all records together ([`sections`]).
    fn sections(&self, context: &Context) -> Vec<Section> {
        match context.is_page() {
            true => Vec::new(),
            false => vec![Section { blocks: blocks(self, context.medium), ..Section::default() }],
        }
    }

    fn data(&self) -> Table {
        data::table(self)
    }

    fn check(&self) -> Result<(), String> {
        histograms(&self.cases)
    }
}

/// The text of a record. A sweep over block sizes is one table in a terminal, and in Markdown one for each size.
fn blocks(record: &BenchRecord, medium: Medium) -> Vec<Block> {
    let view = View::from_record(record);
    let of_workers = languages::is_of_workers(record);
    let mut tables: Vec<Table> = if of_workers {
        languages::tables(record)
    } else if offsets::are_swept(record) {
        offsets::tables(offsets::labelled_cases(record).collect::<Vec<_>>().into_iter())
    } else {
        let groups =
            if medium == Medium::Terminal { view.groups() } else { view.rankings.chunks(1).collect() };
        groups.into_iter().flat_map(|group| group_tables(&view, group)).collect()
    };
    // Notes that are the same below all tables are shown once.
    if tables.windows(2).all(|pair| pair[0].notes == pair[1].notes) {
        let count = tables.len();
        tables.iter_mut().take(count.saturating_sub(1)).for_each(|table| table.notes.clear());
    }
    tables.extend(load::tables(record));
    tables.extend(data_costs::table(record));
    let heading = if of_workers { languages::heading(record) } else { remarks::heading(&view) };
    let mut blocks = vec![Block::Heading(heading)];
    if let Some(recommendation) = &record.recommendation {
        blocks.push(Block::Title(recommendation.title.clone()));
        blocks.extend(recommended(recommendation));
    }
    blocks.extend(
        remarks::interruption(record).into_iter().chain(remarks::other_load(record)).map(Block::Notice),
    );
    blocks.extend(tables.into_iter().map(Block::Table));
    let of_sizes = if of_workers { Vec::new() } else { view.groups() };
    blocks.extend(of_sizes.into_iter().flat_map(|group| sizes_compared(&view, group)).map(Block::Note));
    blocks.extend(languages::failures(record).into_iter().map(Block::Note));
    blocks.extend(
        remarks::references(record).into_iter().chain(remarks::interval_legend(record)).map(Block::Note),
    );
    let Findings { answers, further } = findings(record);
    let remarks = if of_workers { languages::remarks(record) } else { remarks::remarks(&view) };
    blocks.push(Block::Remarks(further.into_iter().chain(remarks).collect()));
    // The answers are last, because a terminal shows the end of the output.
    let answer = |(number, text)| if number == 0 { Block::Paragraph(text) } else { Block::Line(text) };
    blocks.extend(answers.into_iter().enumerate().map(answer));
    blocks
}

/// The answer of `hosepipe recommend`, below its title.
pub(crate) fn recommended(recommendation: &Recommendation) -> Vec<Block> {
    let sentences = recommendation.sentences.iter().cloned().map(Block::Line);
    let programs = [&recommendation.program, &recommendation.receiver].into_iter().flatten().cloned();
    sentences.chain(programs.map(Block::Code)).collect()
}

/// A ranking, or the rankings of a sweep, as tables with their floors and ceilings.
fn group_tables(view: &View, group: &[Ranking]) -> Vec<Table> {
    let interrupted = view.record().settings.interrupted;
    let mut tables = match group {
        [ranking] => vec![columns::table(ranking, interrupted)],
        rankings => sweep::tables(rankings, interrupted),
    };
    if let Some(first) = tables.first_mut() {
        first.title = joined([view.title(group).as_str(), &first.title]);
    }
    if let Some(last) = tables.last_mut() {
        last.notes.extend(footers(view, group));
    }
    tables
}

/// Where the mechanisms of a sweep cross.
fn sizes_compared(view: &View, group: &[Ranking]) -> Vec<String> {
    let rows = group.iter().flat_map(|ranking| &ranking.rows);
    let found = crossings(rows.filter_map(|row| Some((row.label.clone(), row.stream()?))));
    let title = view.title(group);
    found.into_iter().map(|line| if title.is_empty() { line } else { format!("{title}: {line}") }).collect()
}

/// The floor and the ceiling of a ranking; of a sweep those of its first and last size, if they differ.
fn footers(view: &View, group: &[Ranking]) -> Vec<String> {
    let ends = group.iter().take(1).chain(group.last().filter(|_| group.len() > 1));
    let footers: Vec<(&Ranking, String)> =
        ends.filter_map(|ranking| Some((ranking, remarks::footer(view, ranking)?))).collect();
    match footers.as_slice() {
        [(_, first), rest @ ..] if group.len() == 1 || rest.iter().any(|(_, last)| last == first) => {
            vec![first.clone()]
        }
        several => {
            several.iter().map(|(one, footer)| format!("{}:  {footer}", sweep::size_of(one))).collect()
        }
    }
}
