//! What is shown of records, before it is a text or a page: sections of sentences, tables and charts. This file has only the types.
//! Each kind of record makes its sections, and `render` has a file for each medium.

use crate::chart::Chart;
use crate::study::ViewOf;
use crate::table::Table;

/// Everything that is shown of some records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// The heading of a page.
    pub title: String,
    /// Below it: the machine, or that there are several.
    pub subtitle: String,
    /// The commands whose records it shows.
    pub commands: Vec<&'static str>,
    /// The main figures, at the top of a page.
    pub highlights: Vec<Highlight>,
    /// Above everything on a page: records that were cut short, or have nothing in common.
    pub notices: Vec<String>,
    /// The parts, from top to bottom.
    pub sections: Vec<Section>,
}

/// A main figure with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Highlight {
    /// The figure, as in "24.1 GB/s".
    pub figure: String,
    /// Its interval, as in " ±12 %" or " (9.8 GB/s–31.2 GB/s)". Empty for too few trials.
    pub interval: String,
    /// Its label, as in "fastest stream, every byte checked".
    pub what: String,
    /// The spec that was measured, as in "shm-ring:wait=spin".
    pub spec: String,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Its anchor in links, unique on a page.
    pub id: String,
    /// Its heading; empty for none.
    pub title: String,
    /// Paragraphs at its beginning.
    pub lead: Vec<String>,
    /// A command line that it is about.
    pub code: Option<String>,
    /// Its contents, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The machine and what all figures have in common, in pieces.
    Heading(Vec<String>),
    /// A warning, such as that the run was interrupted.
    Notice(String),
    /// What the blocks after it have in common.
    Title(String),
    /// A command line that the blocks after it are about.
    Command(String),
    /// A program, line by line.
    Code(String),
    /// A chart, which can be read as a table too.
    Chart(Chart),
    /// A table that is always shown.
    Table(Table),
    /// Tables under one heading that Markdown and a page unfold when asked.
    Folded(String, Vec<Table>),
    /// A line under the tables that is always shown.
    Note(String),
    /// Remarks, the most important first. A terminal shows a few lines of them.
    Remarks(Vec<String>),
    /// A sentence right below what is above it.
    Line(String),
    /// A sentence with a blank line above it.
    Paragraph(String),
}

/// Where a document is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A terminal.
    Terminal,
    /// Markdown, for an issue or a README.
    Markdown,
    /// A page in a browser.
    Page,
}

/// How one record is shown among others.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) medium: Medium,
    /// Makes the view of a study.
    pub(crate) view_of: ViewOf,
    /// Distinguishes its sections from those of other records of its kind; empty if it is the only one.
    pub(crate) label: &'a str,
    /// Its number among the records, which makes anchors unique.
    pub(crate) number: usize,
}

impl Context<'_> {
    /// The only record of a text.
    pub(crate) fn of_text(medium: Medium, view_of: ViewOf) -> Self {
        Self { medium, view_of, label: "", number: 0 }
    }

    pub(crate) fn is_page(&self) -> bool {
        self.medium == Medium::Page
    }

    /// An empty section. A text of one record needs no heading.
    pub(crate) fn section(&self, id: &str, title: &str) -> Section {
        let title = if self.is_page() { labelled(title, self.label) } else { String::new() };
        Section { id: format!("{id}-{}", self.number), title, ..Section::default() }
    }

    /// Adds the conclusions from the figures: on a page above them, in a text below.
    pub(crate) fn conclude(&self, section: &mut Section, sentences: Vec<String>, block: fn(String) -> Block) {
        match self.is_page() {
            true => section.lead.extend(sentences),
            false => section.blocks.extend(sentences.into_iter().map(block)),
        }
    }
}

/// A title, and which record it is about.
pub(crate) fn labelled(title: &str, label: &str) -> String {
    if label.is_empty() { title.to_owned() } else { format!("{title} · {label}") }
}

impl Document {
    /// One section without a heading.
    pub fn from_blocks(blocks: Vec<Block>) -> Self {
        Self { sections: vec![Section { blocks, ..Section::default() }], ..Self::default() }
    }
}
