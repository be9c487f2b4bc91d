//! A published study beside its reproduction: sections with tables and charts, in a terminal, on a page, as files. Their contents
//! come from the crate `study`.

use model::{CompareResult, Measure, StudyRecord};
use stats::Estimate;

use crate::bench::{CaseRow, cases_table};
use crate::chart::Theme;
use crate::compare;
use crate::document::{Block, Context, Medium, Section, labelled};
use crate::sheet::Sheet;
use crate::show::{Show, histograms};
use crate::table::Table;
use crate::unit::Unit;

/// A study and its reproduction, ready to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyView {
    /// The study's title.
    pub title: String,
    /// Its authors, its question, and what was run here.
    pub lead: Vec<String>,
    /// Its parts, in their order; the last one has the paragraph on what changed since.
    pub sections: Vec<Section>,
}

/// A row of CSV: one of the three is known.
struct StudyRow<'a> {
    part: &'a str,
    case: Option<CaseRow<'a>>,
    result: Option<&'a CompareResult>,
    measure: Option<&'a Measure>,
}

impl Show for StudyRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        (context.view_of)(self).sections(context)
    }

    /// One row for each case, result and measure of each part: the columns of the others are empty.
    fn data(&self) -> Table {
        let rows = self.parts.iter().flat_map(|part| {
            let row = |case, result, measure| StudyRow { part: &part.name, case, result, measure };
            let cases = part.cases.iter().map(move |case| row(Some(CaseRow::of(case)), None, None));
            let results = part.results.iter().map(move |result| row(None, Some(result), None));
            let measures = part.measures.iter().map(move |measure| row(None, None, Some(measure)));
            cases.chain(results).chain(measures)
        });
        let rows: Vec<StudyRow> = rows.collect();
        let cases: Vec<_> = rows.iter().map(|row| row.case).collect();
        let mut parts = Sheet::of_data(&rows);
        parts.data("part", |row| Some(row.part.into()));
        let mut others = Sheet::of_data(&rows);
        others.fields(compare::FIELDS, |row| row.result);
        others.fields("measure=name measure_samples=samples", |row| row.measure);
        others.data("measure_median", |row| {
            Some(Unit::Decimals(4).of(Estimate::of(&row.measure?.samples)?.median))
        });
        others.fields("measure_error=error", |row| row.measure);
        parts.table().with(cases_table(&cases, false)).with(others.table())
    }

    fn check(&self) -> Result<(), String> {
        self.parts.iter().try_for_each(|part| histograms(&part.cases))
    }
}

/// Makes the view of a record of a study.
pub type ViewOf = fn(&StudyRecord) -> StudyView;

impl StudyView {
    /// The view of a record whose study is unknown.
    pub fn unknown(record: &StudyRecord) -> Self {
        let unknown = format!("The study `{}` is unknown to this hosepipe.", record.study);
        Self { title: record.study.clone(), lead: vec![unknown], sections: Vec::new() }
    }

    /// Every chart, by its name, as SVG for papers and docs.
    pub fn charts(&self) -> Vec<(String, String)> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        let charts = blocks.filter_map(|block| match block {
            Block::Chart(chart) => Some((chart.id.clone(), chart.svg(Theme::Auto))),
            _ => None,
        });
        charts.collect()
    }

    /// Its sections in a document.
    pub(crate) fn sections(self, context: &Context) -> Vec<Section> {
        match context.medium {
            Medium::Page => self.on_page(context),
            Medium::Markdown => self.titled(""),
            Medium::Terminal => self.in_terminal(),
        }
    }

    /// Its sections after one with its title and its lead.
    fn titled(self, label: &str) -> Vec<Section> {
        let title = labelled(&self.title, label);
        let about = Section { id: "about".to_owned(), title, lead: self.lead, ..Section::default() };
        std::iter::once(about).chain(self.sections).collect()
    }

    fn on_page(self, context: &Context) -> Vec<Section> {
        let mut sections = self.titled(context.label);
        for section in &mut sections {
            section.id = format!("study-{}-{}", context.number, section.id);
            for block in &mut section.blocks {
                if let Block::Chart(chart) = block {
                    chart.id = format!("study-{}-{}", context.number, chart.id);
                }
            }
        }
        sections
    }

    /// The first sentence of the lead is above the title, like the output of `uname -s -r` in a study of kernels. All remarks are
    /// shown, and the section's heading is the title of its tables.
    fn in_terminal(mut self) -> Vec<Section> {
        let first = if self.lead.is_empty() { None } else { Some(Block::Line(self.lead.remove(0))) };
        let above = Section { blocks: first.into_iter().collect(), ..Section::default() };
        let untitled = |table: Table| Block::Table(Table { title: String::new(), ..table });
        let plain = |block: Block| match block {
            Block::Table(table) => vec![untitled(table)],
            Block::Folded(_, tables) => tables.into_iter().map(untitled).collect(),
            Block::Remarks(remarks) => remarks.into_iter().map(Block::Note).collect(),
            block => vec![block],
        };
        let mut sections = self.titled("");
        for section in &mut sections {
            section.blocks = std::mem::take(&mut section.blocks).into_iter().flat_map(plain).collect();
        }
        std::iter::once(above).chain(sections).collect()
    }
}
