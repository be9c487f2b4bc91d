//! How a published study is shown beside what came of it here: sections with tables and figures, in a terminal, on a
//! page, as files. What is in the sections is decided elsewhere: this room knows no study.

mod text;

use model::StudyRecord;

use crate::figure::Theme;
use crate::page::{Block, Section};

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

/// What is to be shown of a record of a study.
pub type ViewOf = fn(&StudyRecord) -> StudyView;

impl StudyView {
    /// The view of a record whose study nobody here knows.
    pub fn unknown(record: &StudyRecord) -> Self {
        let unknown = format!("The study `{}` is unknown to this hosepipe.", record.study);
        Self { title: record.study.clone(), lead: vec![unknown], sections: Vec::new() }
    }

    /// Every figure, by its name, as SVG for papers and docs.
    pub fn figures(&self) -> Vec<(String, String)> {
        let figures =
            self.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
                Block::Figure(figure) => Some(figure),
                _ => None,
            });
        figures.map(|figure| (figure.id.clone(), figure.svg(Theme::Auto))).collect()
    }

    /// The sections of a page that shows a record among others: `number` keeps their links apart, `label` says whose
    /// they are.
    pub(crate) fn page_sections(self, label: &str, number: usize) -> Vec<Section> {
        let title = if label.is_empty() { self.title } else { format!("{} · {label}", self.title) };
        let about =
            Section { id: "about".to_owned(), title, lead: self.lead, code: None, blocks: Vec::new() };
        let mut sections = vec![about];
        sections.extend(self.sections);
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
}
