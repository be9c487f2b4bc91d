//! `kernel-pipe`: shows the languages beside the published ones. `statements` has the facts about the study's statements.

use model::{CaseRecord, StudyPart, StudyRecord};
use report::document::Block;
use report::figure::{BarGroup, Scale};
use report::numbers::{ratio, throughput};

use super::{KernelPipe, PublishedLanguage, STUDY, statements};
use crate::view::{PartView, Texts, bar, case_texts, cases, median, published_bar, speed_axis, texts};

/// The language of a case's writer; empty for a case without workers.
fn language(case: &CaseRecord) -> &str {
    case.worker.as_ref().map_or("", |worker| worker.writer.language.as_str())
}

fn variant(case: &CaseRecord) -> &str {
    case.worker.as_ref().map_or("", |worker| worker.writer.variant.as_str())
}

pub(super) fn show(view: &PartView<'_>) -> Vec<Block> {
    let study: KernelPipe = STUDY.parameters();
    match view.part.name.as_str() {
        "languages" => vec![languages(&study, view), figure(&study, view)],
        "atomicity" => statements::atomicity(&study, view),
        _ => view.shown(),
    }
}

/// A published language and the first of its measured variants. Its other variants have rows without the published figures.
type LanguageRow<'a> = (Option<&'a PublishedLanguage>, Option<&'a CaseRecord>);

fn rows<'a>(study: &'a KernelPipe, part: &'a StudyPart) -> Vec<LanguageRow<'a>> {
    let variants = |name: &'a str| part.cases.iter().filter(move |case| language(case) == name);
    let known = |case: &&CaseRecord| study.published.iter().any(|one| one.language == language(case));
    let mut rows: Vec<LanguageRow<'_>> = Vec::new();
    for published in &study.published {
        let mut variants = variants(&published.language);
        rows.push((Some(published), variants.next()));
        rows.extend(variants.map(|case| (None, Some(case))));
    }
    rows.extend(part.cases.iter().filter(|case| !known(case)).map(|case| (None, Some(case))));
    rows
}

fn languages(study: &KernelPipe, view: &PartView<'_>) -> Block {
    let part = view.part;
    let c_speed = part.cases.iter().find(|case| language(case) == "C").and_then(median);
    let or_na = |text: Option<String>| text.unwrap_or_else(|| "n/a".to_owned());
    let row = |(published, case): LanguageRow<'_>| {
        let name = case.map(language).or(published.map(|one| one.language.as_str()));
        let mean_ms = |one: &PublishedLanguage| or_na(one.mean_ms.map(|ms| format!("{ms} ms")));
        let speed = |one: &PublishedLanguage| or_na(one.gb_per_s.map(|gb| format!("{gb:.2} GB/s")));
        let mut row = case_texts(case, c_speed);
        row.extend(texts([
            ("language", name.map(str::to_owned)),
            ("way", case.map(|case| variant(case).to_owned())),
            ("published mean", published.map(mean_ms)),
            ("published", published.map(speed)),
        ]));
        row
    };
    view.table(rows(study, part).into_iter().map(row).collect())
}

fn figure(study: &KernelPipe, view: &PartView<'_>) -> Block {
    let part = view.part;
    let published = |one: &PublishedLanguage| BarGroup {
        name: one.language.clone(),
        bars: vec![published_bar("published", one.gb_per_s.map(|gb| gb * 1e9), &one.how)],
    };
    let mut groups: Vec<BarGroup> = study.published.iter().map(published).collect();
    for case in &part.cases {
        let bar = bar(&format!("here, {}", variant(case)), case);
        match groups.iter_mut().find(|group| group.name == language(case)) {
            Some(group) => group.bars.push(bar),
            None => groups.push(BarGroup { name: language(case).to_owned(), bars: vec![bar] }),
        }
    }
    view.bars(speed_axis(Scale::Linear), groups)
}

pub(super) fn facts_of(record: &StudyRecord) -> Texts {
    let study: KernelPipe = STUDY.parameters();
    let idiomatic = cases(record, "languages").iter().filter(|case| variant(case) == "idiomatic");
    let mut speeds: Vec<_> = idiomatic.filter_map(|case| Some((median(case)?, language(case)))).collect();
    model::sort_by(&mut speeds, |a, b| a.0.total_cmp(&b.0));
    let (slow, fast) = (speeds.first(), speeds.last());
    let published = || study.published.iter().filter_map(|one| one.gb_per_s);
    let published_factor = published().fold(0.0, f64::max) / published().fold(f64::INFINITY, f64::min);
    let mut known = texts([
        ("fastest", fast.map(|(_, name)| (*name).to_owned())),
        ("fast", fast.map(|(speed, _)| throughput(*speed))),
        ("slowest", slow.map(|(_, name)| (*name).to_owned())),
        ("slow", slow.map(|(speed, _)| throughput(*speed))),
        ("factor", fast.zip(slow).map(|(fast, slow)| ratio(fast.0 / slow.0))),
        ("factor then", Some(ratio(published_factor))),
    ]);
    known.extend(statements::facts_of(&study, record));
    known
}
