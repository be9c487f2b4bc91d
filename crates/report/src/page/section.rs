//! What a page is made of, before it is HTML.

use crate::figure::Figure;
use crate::table::Table;

/// A part of the page with its heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Names it in links, once on a page.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Paragraphs at its beginning.
    pub lead: Vec<String>,
    /// A command line that it is about.
    pub code: Option<String>,
    /// What is in it, from above.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A chart, which can be read as a table too.
    Figure(Figure),
    /// A table that is always shown.
    Table(Table),
    /// Tables that are shown when asked for, under one heading.
    Folded(String, Vec<Table>),
    /// Remarks, one after the other.
    Remarks(Vec<String>),
}
