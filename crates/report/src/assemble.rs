//! Makes one document of records: its sections, their names and their order.
//!
//! On a page, records of several runs are side by side if they have cases in common. If not, each has its own
//! sections, and a notice names it. This is no error, as a reader may want different records in one file.

use model::{BenchRecord, Record};

use crate::document::{Block, Context, Document, Medium, Section};
use crate::groups::Source;
use crate::lists::distinct;
use crate::read::Loaded;
use crate::show::kind_of;
use crate::study::ViewOf;
use crate::table::Style;
use crate::{bench, bounds, disjoint, hosts, labels, remarks, words};

/// The document of one record as text.
pub fn text(record: &Record, medium: Medium, view_of: ViewOf) -> Document {
    let sections = kind_of(record).sections(&Context::of_text(medium, view_of));
    Document { sections, ..Document::default() }
}

/// One record in a terminal.
pub fn terminal(record: &Record, style: &Style, view_of: ViewOf) -> String {
    text(record, Medium::Terminal, view_of).terminal(style)
}

/// The page of records.
pub fn page(records: &[Loaded], view_of: ViewOf) -> Document {
    let labels = labels::labels(&records.iter().map(|loaded| loaded.name.as_str()).collect::<Vec<&str>>());
    // A record that is the only one of its kind needs no name.
    let kind = |at: usize| std::mem::discriminant(&records[at].record);
    let label = |at: usize| {
        let alone = (0..records.len()).all(|other| other == at || kind(other) != kind(at));
        if alone { "" } else { labels[at].as_str() }
    };
    let source = |at: usize| Some(Source { label: label(at), record: bench(&records[at].record)? });
    let sources: Vec<Source> = (0..records.len()).filter_map(source).collect();
    let mut sections = bench::sections(&sources);
    for (at, loaded) in records.iter().enumerate() {
        let context = Context { medium: Medium::Page, view_of, label: label(at), number: at };
        sections.extend(kind_of(&loaded.record).sections(&context));
    }
    let named: Vec<(String, &Record)> =
        labels.iter().cloned().zip(records.iter().map(|loaded| &loaded.record)).collect();
    sections.push(machines(&named));
    bounds::bounded(Document {
        title: title(records),
        subtitle: subtitle(&named),
        commands: distinct(records.iter().map(|loaded| loaded.record.kind())),
        highlights: match sources.as_slice() {
            [source] => bench::highlights(source.record),
            _ => Vec::new(),
        },
        notices: notices(records),
        sections,
    })
}

/// A sentence for each bench record that has no case in common with the others.
pub fn disjoint_records(records: &[Loaded]) -> Vec<String> {
    let bench = records.iter().filter_map(|loaded| Some((loaded.name.as_str(), bench(&loaded.record)?)));
    disjoint::sentences(&bench.collect::<Vec<_>>())
}

fn bench(record: &Record) -> Option<&BenchRecord> {
    match record {
        Record::Bench(record) => Some(record),
        _ => None,
    }
}

fn title(records: &[Loaded]) -> String {
    match records {
        [Loaded { record: Record::Study(record), .. }] => format!("hosepipe reproduce {}", record.study),
        [one] => format!("hosepipe {}", one.record.kind()),
        several => format!("hosepipe: {}", words::count(several.len(), "record")),
    }
}

fn subtitle(named: &[(String, &Record)]) -> String {
    match named {
        [] => String::new(),
        _ if hosts::several(named) => "Several machines, side by side".to_owned(),
        [(_, first), ..] => words::machine(&first.head().host),
    }
}

fn notices(records: &[Loaded]) -> Vec<String> {
    let early = records.iter().filter_map(|loaded| {
        let sentence = remarks::interruption(bench(&loaded.record)?)?;
        Some(if records.len() == 1 { sentence } else { format!("{}: {sentence}", loaded.name) })
    });
    early.chain(disjoint_records(records)).collect()
}

fn machines(named: &[(String, &Record)]) -> Section {
    let title = if hosts::several(named) { "The machines" } else { "The machine" };
    Section {
        id: "machines".to_owned(),
        title: title.to_owned(),
        blocks: vec![Block::Table(hosts::runs(named)), Block::Table(hosts::facts(named))],
        ..Section::default()
    }
}
