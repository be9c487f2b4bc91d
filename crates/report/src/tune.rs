//! The output of `hosepipe tune`: before and after, a line for each change with its gain, and the pipeline to paste.

use model::{Ratio, TuneChange, TuneLeftOut, TuneReason, TuneRecord, one_line};

use crate::document::{Block, Context, Section};
use crate::numbers::{ratio, size, time};
use crate::sheet::{Sheet, col};
use crate::show::Show;
use crate::table::{Fit, Table};
use crate::value::Value;
use crate::words::count;

/// Fields of a change in CSV.
const FIELDS: &str =
    "rule stage before after ratio=ratio/median low=ratio/low high=ratio/high equal_because differs";

impl Show for TuneRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        let mut section = context.section("tune", "Tuning");
        context.conclude(&mut section, vec![result(self)], Block::Line);
        section.blocks.extend(remark(self).map(Block::Notice));
        if self.is_faster() {
            section.blocks.push(Block::Table(changes(self)));
            section.blocks.extend(conditions(self).into_iter().map(Block::Note));
            section.blocks.push(Block::Paragraph("The pipeline to paste:".to_owned()));
            section.blocks.push(Block::Code(self.text.clone()));
        }
        let (late, judged): (Vec<_>, Vec<_>) =
            self.left_out.iter().partition(|one| one.reason == TuneReason::NoTime);
        let late = (!late.is_empty()).then(|| {
            let why = if self.interrupted {
                "the search was interrupted"
            } else {
                "there was too little time (--time gives more)"
            };
            format!("Not tried, or not often enough, as {why}: {}.", count(late.len(), "change"))
        });
        let tried: Vec<String> = late.into_iter().chain(judged.into_iter().map(tried)).collect();
        section.blocks.extend((!tried.is_empty()).then_some(Block::Remarks(tried)));
        vec![section]
    }

    fn data(&self) -> Table {
        let mut sheet = Sheet::of_data(&self.changes);
        sheet.fields(FIELDS, |change| change.clone());
        sheet.table()
    }
}

/// What came out, in one sentence.
fn result(record: &TuneRecord) -> String {
    let seconds = |time_s: Option<f64>| time_s.map_or("?".to_owned(), |time_s| time(time_s * 1e9));
    let searched = time(record.search_s * 1e9);
    match &record.interval {
        Some(interval) => format!(
            "{} instead of {}: {} of the time ({}), in {}; the output is the same, {}. The search took {searched}.",
            seconds(record.tuned_s),
            seconds(record.original_s),
            ratio(record.ratio),
            between(interval),
            count(record.rounds as usize, "round"),
            size(record.output_bytes),
        ),
        None if record.is_faster() => format!(
            "What was faster until then: about {} of the time. It was not run against the original, and may give another output.",
            ratio(record.ratio)
        ),
        None if record.original_s.is_none() => {
            format!("The pipeline did not end in {searched}: nothing was tried (--time gives more).")
        }
        None => format!(
            "Nothing faster was found in {searched}; it takes {}, and writes {}.",
            seconds(record.original_s),
            size(record.output_bytes)
        ),
    }
}

fn remark(record: &TuneRecord) -> Option<String> {
    record.interrupted.then(|| "The search was interrupted: this is what was known by then.".to_owned())
}

fn between(interval: &Ratio) -> String {
    format!("{} to {}", ratio(interval.low), ratio(interval.high))
}

fn changes(record: &TuneRecord) -> Table {
    let mut sheet = Sheet::new(&record.changes);
    sheet.add(col("stage").right(), |change| {
        Some(change.stage.map_or("all".into(), |stage| stage.to_string().into()))
    });
    sheet.add(col("before").fit(Fit::Command), |change| Some(one_line(&change.before).into()));
    sheet.add(col("after").fit(Fit::Command), |change| {
        Some(if change.after.is_empty() { "(left out)".into() } else { one_line(&change.after).into() })
    });
    sheet.add(col("time").right(), |change| {
        change.ratio.map(|found| Value::from(format!("× {}", ratio(found.median))))
    });
    sheet.add(col("interval").drop(1), |change| change.ratio.map(|found| Value::from(between(&found))));
    sheet.add(col("rule").drop(2), |change| Some(change.rule.clone().into()));
    sheet.table()
}

/// On what the equality of each output rests.
fn conditions(record: &TuneRecord) -> Vec<String> {
    // Without the last contest nothing is shown.
    if !record.equal {
        return vec![
            "Whether the output is the same was not shown: the last contest was not held.".to_owned(),
        ];
    }
    record.changes.iter().map(condition).collect()
}

fn condition(change: &TuneChange) -> String {
    let place = change.stage.map_or(String::new(), |stage| format!("Stage {stage}, "));
    match (&change.equal_because, &change.differs) {
        (Some(because), _) => {
            format!("{place}{}: the output is the same on every input: {because}.", change.rule)
        }
        (None, Some(differs)) => {
            format!("{place}{}: the output is the same on this input; {differs}.", change.rule)
        }
        (None, None) => format!("{place}{}: the output is the same on this input.", change.rule),
    }
}

fn tried(one: &TuneLeftOut) -> String {
    let place = one.stage.map_or(String::new(), |stage| format!("stage {stage}, "));
    let with = one.ratio.map(|found| format!(" (× {} in its trial)", ratio(found))).unwrap_or_default();
    let why = match one.reason {
        TuneReason::Output => "the output is another one".to_owned(),
        TuneReason::Status => "the exit status is another one".to_owned(),
        TuneReason::Memory => "it needs more than half of the free memory".to_owned(),
        TuneReason::NotFaster => format!("it is not certainly faster{with}"),
        TuneReason::NoTime => "there was no time to try it".to_owned(),
    };
    format!("Left out: {place}{}: {why}: {}", one.rule, one_line(&one.after))
}

/// The lines that a script has as comments.
pub fn comments(record: &TuneRecord) -> Vec<String> {
    let seconds = |time_s: Option<f64>| time_s.map_or("?".to_owned(), |time_s| time(time_s * 1e9));
    let mut lines = vec![format!("Before: {}", record.pipeline)];
    if record.interval.is_none() {
        lines.push("Nothing that is surely faster was found.".to_owned());
    } else {
        lines.push(format!(
            "{} instead of {}: {} of the time.",
            seconds(record.tuned_s),
            seconds(record.original_s),
            ratio(record.ratio)
        ));
    }
    lines.extend(conditions(record));
    lines
}
