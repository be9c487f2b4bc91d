//! `kernel-pipe`: shows the languages beside the published ones. `statements` has the facts about the study's statements.

use model::{CaseRecord, StudyPart, StudyRecord};
use report::chart::{BarGroup, Scale};
use report::document::Block;
use report::numbers::{ratio, throughput, time};
use stats::Estimate;

use super::{KernelPipe, PublishedLanguage, STUDY, statements};
use crate::start::{is_work, start_s};
use crate::view::{PartView, Texts, absent, bar, case_texts, median, part, published_bar, speed_axis, texts};

/// The language of a case's writer; empty for a case without workers.
fn language(case: &CaseRecord) -> &str {
    case.worker.as_ref().map_or("", |worker| worker.writer.language.as_str())
}

fn variant(case: &CaseRecord) -> &str {
    case.worker.as_ref().map_or("", |worker| worker.writer.variant.as_str())
}

/// "C:idiomatic"; the name of its start's measure has it.
fn label(case: &CaseRecord) -> String {
    case.worker.as_ref().map_or_else(String::new, |worker| worker.writer.label())
}

pub(super) fn show(view: &PartView<'_>) -> Vec<Block> {
    let study: KernelPipe = STUDY.parameters();
    match view.part.name.as_str() {
        "languages" => vec![languages(&study, view), chart(&study, view)],
        "atomicity" => statements::atomicity(&study, view),
        _ => view.shown(),
    }
}

/// A published language beside the first of its measured variants. Its other variants have rows without the published figures.
struct LanguageRow<'a> {
    published: Option<&'a PublishedLanguage>,
    case: Option<&'a CaseRecord>,
}

fn rows<'a>(study: &'a KernelPipe, part: &'a StudyPart) -> Vec<LanguageRow<'a>> {
    let variants = |name: &'a str| part.cases.iter().filter(move |case| language(case) == name);
    let known = |case: &&CaseRecord| study.published.iter().any(|one| one.language == language(case));
    let alone = |case: &'a CaseRecord| LanguageRow { published: None, case: Some(case) };
    let mut rows: Vec<LanguageRow<'_>> = Vec::new();
    for published in &study.published {
        let mut measured = variants(&published.language);
        rows.push(LanguageRow { published: Some(published), case: measured.next() });
        rows.extend(measured.map(alone));
    }
    rows.extend(part.cases.iter().filter(|case| !known(case)).map(alone));
    rows
}

fn languages(study: &KernelPipe, view: &PartView<'_>) -> Block {
    let part = view.part;
    let c_speed = part.cases.iter().find(|case| language(case) == "C").and_then(median);
    let or_na = |text: Option<String>| text.unwrap_or_else(|| "n/a".to_owned());
    let row = |LanguageRow { published, case }: LanguageRow<'_>| {
        let name = case.map(language).or(published.map(|one| one.language.as_str()));
        let mean_ms = |one: &PublishedLanguage| or_na(one.mean_ms.map(|ms| format!("{ms} ms")));
        let speed = |one: &PublishedLanguage| or_na(one.gb_per_s.map(|gb| format!("{gb:.2} GB/s")));
        let mut row = case_texts(case, c_speed);
        row.extend(texts([
            ("language", name.map(str::to_owned)),
            ("way", case.map(|case| variant(case).to_owned())),
            ("published mean", published.map(mean_ms)),
            ("mean time", case.and_then(|case| mean_time(case, study.workload.bytes.value)).or(absent())),
            ("published", published.map(speed)),
        ]));
        row
    };
    view.table(rows(study, part).into_iter().map(row).collect())
}

/// The mean time for this many bytes: slow languages move fewer, and all of them at a small scale.
fn mean_time(case: &CaseRecord, bytes: u64) -> Option<String> {
    let all = case.samples.iter().map(|one| one.elapsed_ns as f64 / one.bytes as f64 * bytes as f64);
    Some(time(Estimate::of(&all.collect::<Vec<f64>>())?.mean))
}

fn chart(study: &KernelPipe, view: &PartView<'_>) -> Block {
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
    let part = part(record, "languages");
    let idiomatic = || part.iter().flat_map(|part| &part.cases).filter(|case| variant(case) == "idiomatic");
    let mut speeds: Vec<_> = idiomatic().filter_map(|case| Some((median(case)?, language(case)))).collect();
    let all_bytes = idiomatic().flat_map(|case| &case.samples).map(|sample| sample.bytes).max().unwrap_or(0);
    let is_short = |case: &&CaseRecord| {
        let whole_s = median(case).map(|speed| all_bytes as f64 / speed);
        whole_s.zip(part).is_some_and(|(whole_s, part)| !is_work(record, part, &label(case), whole_s))
    };
    let short = idiomatic().find(is_short);
    let is_known = |case: &&CaseRecord| part.is_some_and(|part| start_s(part, &label(case)).is_some());
    speeds.retain(|_| short.is_none());
    model::sort_by(&mut speeds, |a, b| a.0.total_cmp(&b.0));
    // Only languages that were measured then and now are compared with the study.
    let then = |name: &str| study.published.iter().find(|one| one.language == name)?.gb_per_s;
    let both: Vec<_> = speeds.iter().filter_map(|(speed, name)| Some((*speed, *name, then(name)?))).collect();
    let (slow, fast) = (both.first(), both.last().filter(|_| both.len() > 1));
    let published = both.iter().map(|(.., then)| *then);
    let published_factor = published.clone().fold(0.0, f64::max) / published.fold(f64::INFINITY, f64::min);
    let slowest_of_all = speeds.first().filter(|(_, name)| then(name).is_none());
    let mut known = texts([
        ("fastest", fast.map(|(_, name, _)| (*name).to_owned())),
        ("fast", fast.map(|(speed, ..)| throughput(*speed))),
        ("slowest", slow.map(|(_, name, _)| (*name).to_owned())),
        ("slow", slow.map(|(speed, ..)| throughput(*speed))),
        ("factor", fast.zip(slow).map(|(fast, slow)| ratio(fast.0 / slow.0))),
        ("factor then", fast.map(|_| ratio(published_factor))),
        ("short", short.filter(is_known).map(|case| language(case).to_owned())),
        ("unknown start", short.filter(|case| !is_known(case)).map(|_| String::new())),
        ("slowest of all", slowest_of_all.map(|(_, name)| (*name).to_owned())),
        ("slow of all", slowest_of_all.map(|(speed, _)| throughput(*speed))),
    ]);
    known.extend(statements::facts_of(&study, record));
    known
}
