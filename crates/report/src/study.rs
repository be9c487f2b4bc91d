//! A published study beside what came of it here: tables with both, figures, and a paragraph on what changed since.
//! Everything shown is computed anew from the record's raw samples; published figures come from `experiment`.

mod beliefs;
mod bradford;
mod common;
mod comp517;
mod equivalence;
mod kernel_pipe;
mod stover;
mod text;

use experiment::{Head, Name, head};
use model::StudyRecord;

use crate::figure::Theme;
use crate::page::{Block, Section};
use crate::words::machine;

pub use equivalence::{Equivalence, Verdict, equivalence};
pub use text::render;

/// A study and its reproduction, ready to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyView {
    /// The study's title.
    pub title: String,
    /// What it was, what it asked, what was run here.
    pub lead: Vec<String>,
    /// Its parts, from above; the last one holds the paragraph on what changed.
    pub sections: Vec<Section>,
}

/// Computes every summary of a record anew from its raw samples.
pub fn summarise(record: &mut StudyRecord) {
    for part in &mut record.parts {
        for case in &mut part.cases {
            // A damaged histogram leaves its case without a summary; streams have none.
            let _ = stats::summarise(case, stats::Looks::Once);
        }
        stats::summarise_times(&mut part.results);
    }
}

/// What is to be shown of a record; nothing but the lead where its study is unknown.
pub fn view(record: &StudyRecord) -> StudyView {
    let mut record = record.clone();
    summarise(&mut record);
    let Ok(name) = record.study.parse::<Name>() else {
        let unknown = format!("The study `{}` is unknown to this hosepipe.", record.study);
        return StudyView { title: record.study.clone(), lead: vec![unknown], sections: Vec::new() };
    };
    let sections = match name {
        Name::Bradford => bradford::sections(&record),
        Name::Comp517 => comp517::sections(&record),
        Name::KernelPipe => kernel_pipe::sections(&record),
        Name::Stover => stover::sections(&record),
    };
    let study = head(name);
    StudyView { title: study.title.clone(), lead: lead(&study, &record), sections }
}

/// The sections of a page that shows a record among others: `number` keeps their links apart, `label` says whose they
/// are.
pub(crate) fn page_sections(record: &StudyRecord, label: &str, number: usize) -> Vec<Section> {
    let view = view(record);
    let title = if label.is_empty() { view.title } else { format!("{} · {label}", view.title) };
    let about = Section { id: "about".to_owned(), title, lead: view.lead, code: None, blocks: Vec::new() };
    let mut sections = vec![about];
    sections.extend(view.sections);
    for section in &mut sections {
        section.id = format!("study-{number}-{}", section.id);
        for block in &mut section.blocks {
            if let Block::Figure(figure) = block {
                figure.id = format!("study-{number}-{}", figure.id);
            }
        }
    }
    sections
}

/// Every figure of a record, by its name, as SVG for papers and docs.
pub fn figures(record: &StudyRecord) -> Vec<(String, String)> {
    let sections = view(record).sections;
    let figures = sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        Block::Figure(figure) => Some(figure),
        _ => None,
    });
    figures.map(|figure| (figure.id.clone(), figure.svg(Theme::Auto))).collect()
}

fn lead(study: &Head, record: &StudyRecord) -> Vec<String> {
    let mut lead = vec![
        record.host.kernel.clone(),
        format!("{}, {}. {}", study.authors, study.published, study.question),
        format!("Here: {}; {}.", machine(&record.host), scale(record.scale)),
    ];
    if record.interrupted {
        lead.push("Interrupted: what stands here is what was finished.".to_owned());
    }
    lead
}

/// How much of the study was run, in words.
fn scale(scale: f64) -> String {
    if scale == 1.0 {
        "run at the study's own size".to_owned()
    } else {
        format!(
            "run at {scale} of the study's size (--scale {scale}): amounts are that much of the study's, and there are \
             fewer repetitions"
        )
    }
}
