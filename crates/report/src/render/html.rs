//! A document as HTML: one file with its style and its script in it, and nothing that a browser would have to fetch.
//! Texts from records are escaped by the template; none is inserted unescaped.

mod glossary;

use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::visible;
use sha2::{Digest, Sha256};

use crate::chart::{Chart, Palette, Theme, page_style};
use crate::document::{Block, Document, Highlight, Section};
use crate::table::{Row, Table};
use crate::value::Value;

/// Most columns of a table, so that its last one is seen in a window of 1280 pixels.
const COLUMNS_MAX: usize = 10;
/// Most characters of a figure that is never wrapped.
const WHOLE_MAX: usize = 8;
/// The page's own style.
const STYLE: &str = include_str!("html/style.css");
/// The page's script: one file for each thing it does.
const SCRIPTS: &[&str] = &[
    include_str!("html/script/theme.js"),
    include_str!("html/script/tip.js"),
    include_str!("html/script/plot.js"),
    include_str!("html/script/legend.js"),
    include_str!("html/script/walk.js"),
    include_str!("html/script/save.js"),
];

/// Content Security Policy: the page fetches nothing and runs only its own script, even if a record contained one.
fn policy(script: &str) -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(script));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}

impl Document {
    /// The page as text.
    pub fn html(&self) -> String {
        // One function, so that nothing of the scripts can be reached from outside.
        let script = format!("(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.concat());
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        let palette = Palette::of(blocks.filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        }));
        let markup = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy(&script));
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · " (self.subtitle) }
                    link rel="icon" href="data:,";
                    style { (PreEscaped(variables())) (PreEscaped(STYLE)) }
                    style id="figure-style" { (PreEscaped(page_style())) }
                }
                body {
                    a.skip href="#main" { "Skip to the figures" }
                    (header(self))
                    div.columns {
                        (contents(self))
                        main id="main" {
                            @for notice in &self.notices { p.notice role="note" { (notice) } }
                            @if !self.highlights.is_empty() { (highlights(&self.highlights)) }
                            @for section in &self.sections { (self::section(section, &palette)) }
                            (method(&self.commands))
                        }
                    }
                    div id="tip" role="status" aria-live="polite" hidden {}
                    script { (PreEscaped(&script)) }
                }
            }
        };
        format!("{}\n", visible(&markup.into_string()))
    }
}

/// The colours of both themes: the reader's setting decides until the button does.
fn variables() -> String {
    let (light, dark) = (Theme::Light.variables(), Theme::Dark.variables());
    format!(
        ":root{{color-scheme:light;{light}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n\
         :root[data-theme=dark]{{color-scheme:dark;{dark}}}\n\
         @media print{{:root:root,:root:root[data-theme]{{color-scheme:light;{light}}}}}\n"
    )
}

fn header(page: &Document) -> Markup {
    html! {
        header.top {
            div.brand {
                svg.logo viewBox="0 0 32 32" aria-hidden="true" {
                    path d="M3 11h7c5 0 5 10 10 10h9" fill="none" stroke="currentColor" stroke-width="5" stroke-linecap="round" {}
                    circle cx="27.5" cy="10" r="2.6" fill="currentColor" {}
                }
                div {
                    h1 { (page.title) }
                    p.subtitle { (page.subtitle) }
                }
            }
            button.quiet id="theme" type="button" aria-label="Change between light and dark" { "Dark" }
        }
    }
}

fn contents(page: &Document) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            @for section in &page.sections { a href={ "#" (section.id) } { (section.title) } }
            a href="#method" { "How to read it" }
        }
    }
}

fn highlights(highlights: &[Highlight]) -> Markup {
    html! {
        dl.highlights {
            @for highlight in highlights {
                div {
                    dt { (highlight.what) }
                    dd { strong { (highlight.figure) } small { (highlight.interval) } code { (highlight.spec) } }
                }
            }
        }
    }
}

fn section(section: &Section, palette: &Palette) -> Markup {
    html! {
        section id=(section.id) aria-labelledby={ (section.id) "-heading" } {
            h2 id={ (section.id) "-heading" } { (section.title) }
            @if let Some(code) = &section.code { pre.command { code { (code) } } }
            @for sentence in &section.lead { p.lead { (with_code(sentence)) } }
            @for block in &section.blocks { (self::block(block, palette)) }
        }
    }
}

fn block(block: &Block, palette: &Palette) -> Markup {
    match block {
        Block::Chart(drawn) => chart(drawn, palette),
        Block::Table(table) => self::table(table),
        Block::Folded(heading, tables) => html! {
            details {
                summary { (heading) }
                @for table in tables { (self::table(table)) }
            }
        },
        Block::Remarks(lines) => html! {
            ul.remarks { @for line in lines { li { (with_code(line)) } } }
        },
        Block::Notice(text) => html! { p.notice role="note" { (text) } },
        Block::Title(text) => html! { h3 { (text) } },
        Block::Code(text) | Block::Command(text) => html! { pre.command { code { (text) } } },
        Block::Heading(pieces) => html! { p.lead { (pieces.join(" · ")) } },
        Block::Note(text) | Block::Line(text) | Block::Paragraph(text) => {
            html! { p.lead { (with_code(text)) } }
        }
    }
}

fn chart(chart: &Chart, palette: &Palette) -> Markup {
    let [wide, narrow] = chart.inline(palette);
    html! {
        figure id=(chart.id) {
            figcaption {
                h3 { (chart.title) }
                p { (with_words(&chart.caption)) }
            }
            div.chart { (wide) (narrow) }
            div.tools {
                button.quiet.reset type="button" hidden { "Show all" }
                button.quiet.save type="button" aria-label={ "Save as SVG: " (chart.title) } { "Save SVG" }
            }
            details {
                summary { "As a table" }
                (table(&chart.table()))
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            @for part in parts(&table.texts()) { (part.html()) }
        }
    }
}

/// A table with more columns than a page has room for as several, each with the names of the rows.
fn parts(table: &Table) -> Vec<Table> {
    let columns: Vec<usize> = (1..table.columns.len()).collect();
    let count = columns.len().div_ceil(COLUMNS_MAX - 1);
    let part = |(number, places): (usize, &[usize])| {
        let places = || std::iter::once(0).chain(places.iter().copied());
        let title = if number == 0 { table.title.clone() } else { format!("{}, continued", table.title) };
        let row = |row: &Row| {
            let cells = places().map(|at| row.cells.get(at).cloned().unwrap_or(Value::EMPTY));
            Row { cells: cells.collect(), ..row.clone() }
        };
        Table {
            title,
            columns: places().map(|at| table.columns[at].clone()).collect(),
            rows: table.rows.iter().map(row).collect(),
            ..Table::default()
        }
    };
    match count {
        ..2 => vec![table.clone()],
        _ => columns.chunks(columns.len().div_ceil(count)).enumerate().map(part).collect(),
    }
}

/// A sentence in which text between backquotes is code.
fn with_code(sentence: &str) -> Markup {
    html! {
        @for (at, piece) in sentence.split('`').enumerate() {
            @if at % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// A caption in which words of the glossary link to their explanation, each at its first place.
fn with_words(caption: &str) -> Markup {
    let phrases = glossary::words().flat_map(|word| word.phrases().map(move |phrase| (phrase, word.id)));
    let found = |(phrase, id): (&'static str, &'static str)| Some((caption.find(phrase)?, phrase, id));
    let mut words: Vec<(usize, &str, &str)> = phrases.filter_map(found).collect();
    words.sort_unstable();
    let mut pieces: Vec<(&str, Option<&str>)> = Vec::new();
    let mut end = 0;
    for (at, phrase, id) in words {
        if at >= end {
            pieces.extend([(&caption[end..at], None), (phrase, Some(id))]);
            end = at + phrase.len();
        }
    }
    pieces.push((&caption[end..], None));
    html! {
        @for (text, id) in pieces {
            @if let Some(id) = id { a.word href={ "#" (id) } { (text) } } @else { (text) }
        }
    }
}

fn method(commands: &[&str]) -> Markup {
    let words = glossary::words().filter(|word| word.is_of(commands));
    html! {
        section id="method" aria-labelledby="method-heading" {
            h2 id="method-heading" { "How to read it" }
            dl.words {
                @for word in words { div id=(word.id) { dt { (word.name) } dd { (word.meaning) } } }
            }
        }
    }
}

impl Table {
    /// The table as HTML, its title as a caption.
    pub fn html(&self) -> Markup {
        let table = self.texts();
        let is_number =
            |at: &usize| table.is_flush_right(*at) && (*at > 0 || table.columns[0].align.is_some());
        let class = |at: usize| Some("number").filter(|_| is_number(&at));
        let classes: Vec<Option<&str>> = (0..table.columns.len()).map(class).collect();
        html! {
            table {
                caption { (table.title) }
                thead {
                    tr {
                        @for (column, class) in table.columns.iter().zip(&classes) {
                            th scope="col" class=[class] { (column.head) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, (cell, class)) in row.cells.iter().map(Value::to_string).zip(&classes).enumerate() {
                                @if at == 0 { th scope="row" { (cell) } } @else { td class=[class.map(|class| cell_class(class, &cell))] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The class of a figure's cell: only a long one may be wrapped.
fn cell_class<'a>(class: &'a str, cell: &str) -> &'a str {
    if cell.chars().count() <= WHOLE_MAX { "number whole" } else { class }
}
