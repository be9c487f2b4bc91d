//! The output of `hosepipe compare`: links compared, or pipelines.

mod links;
mod pipelines;

use model::{CompareRecord, CompareResult};
use stats::changes::PAIRS_MAX;
use stats::estimate::relative_half_width;

use pipelines::{Results, seconds, via_in_words};

use crate::chart::Bar;
use crate::document::{Block, Context, Section};
use crate::interval;
use crate::lists::{first_lines, grouped};
use crate::sheet::Sheet;
use crate::show::Show;
use crate::table::Table;
use crate::unit::Unit;
use crate::words::{INTERRUPTED, count, machine, only_finished};

/// Most sentences about --fail-over.
const SENTENCES_MAX: usize = 8;

/// For each link a ranking of several pipelines, and for each pipeline its times over several links.
fn section(record: &CompareRecord, context: &Context) -> Section {
    let rankings = pipelines::rankings(record);
    let what = if rankings.is_empty() { "Links compared" } else { "Pipelines compared" };
    let mut section = context.section("compare", what);
    let mut by_pipeline = grouped(record.results.iter().map(|result| (result.label(), result)));
    by_pipeline.retain(|_| rankings.len() != 1);
    if context.is_page() {
        section.lead = lead(record, &rankings);
        section.blocks = charts(record, &rankings, &by_pipeline, context.number);
    } else {
        section.blocks = in_text(record, &rankings, by_pipeline);
    }
    section
}

fn in_text(record: &CompareRecord, rankings: &[Results], by_pipeline: Vec<Results>) -> Vec<Block> {
    let mut heading = vec![machine(&record.head.host), trials(record)];
    heading.extend(
        is_by_latency(record)
            .then(|| "by the median time of a line from the first link to the last".to_owned()),
    );
    heading.extend(Some(rankings).filter(|links| links.len() == 1).map(|links| via_in_words(links[0].0)));
    let mut blocks = vec![Block::Heading(heading)];
    blocks.extend(interruption(record).map(Block::Notice));
    for (pipeline, results) in by_pipeline {
        blocks.extend([Block::Command(pipeline.to_owned()), Block::Table(links::table(&results))]);
    }
    for (via, results) in rankings {
        blocks.extend(Some(Block::Title(via_in_words(via))).filter(|_| rankings.len() > 1));
        blocks.push(Block::Table(pipelines::table(results)));
        blocks.extend(pipelines::sentences(record, results).into_iter().map(Block::Line));
    }
    blocks.extend(certainty(record).into_iter().chain(precision(record)).map(Block::Line));
    blocks.extend(baselines(record).into_iter().map(Block::Line));
    blocks.extend(pipelines::remarks(record).into_iter().map(Block::Note));
    blocks.push(Block::Remarks(remarks(record)));
    blocks
}

fn interruption(record: &CompareRecord) -> Option<String> {
    record.interrupted.then(|| only_finished(INTERRUPTED, "trials"))
}

/// The sentences on a page.
fn lead(record: &CompareRecord, rankings: &[Results]) -> Vec<String> {
    let before = count(record.warmup as usize, "untimed run");
    let mut lead = vec![format!("{}; {before} before them.", trials(record))];
    lead.extend(certainty(record).into_iter().chain(precision(record)).chain(baselines(record)));
    lead.extend(interruption(record));
    lead.extend(rankings.iter().flat_map(|(_, results)| pipelines::sentences(record, results)));
    lead.extend(pipelines::remarks(record));
    lead
}

/// The results on a page: a chart for each pipeline over several links, and for each link with several pipelines.
fn charts(
    record: &CompareRecord,
    rankings: &[Results],
    by_pipeline: &[Results],
    number: usize,
) -> Vec<Block> {
    let bars = |results: &[&CompareResult], name: fn(&CompareResult) -> &str| -> Vec<Bar> {
        results.iter().map(|result| links::bar(name(result), result)).collect()
    };
    let titled = |title: &str, table: Table| Table { title: title.to_owned(), ..table };
    let link_tables = by_pipeline.iter().map(|(text, results)| titled(text, links::table(results)));
    let rankings_tables =
        rankings.iter().map(|(via, results)| titled(&via_in_words(via), pipelines::table(results)));
    let tables: Vec<Table> = link_tables.chain(rankings_tables).collect();
    let folded = (!tables.is_empty()).then(|| Block::Folded("All figures as tables".to_owned(), tables));
    let of_links =
        by_pipeline.iter().map(|(text, results)| ((*text).to_owned(), bars(results, |one| &one.via)));
    let of_pipelines =
        rankings.iter().map(|(via, results)| (via_in_words(via), bars(results, CompareResult::label)));
    let what = if is_by_latency(record) { "Latency of a line" } else { "Wall time" };
    let chart = |(at, (title, bars))| Block::Chart(links::chart(title, bars, number * 100 + at, what));
    of_links.chain(of_pipelines).enumerate().map(chart).chain(folded).collect()
}

/// Whether the times are of lines, not of whole runs.
fn is_by_latency(record: &CompareRecord) -> bool {
    record.conditions.get("by").is_some_and(|by| by == "latency")
}

/// Rounds that were made.
fn rounds(record: &CompareRecord) -> usize {
    record.results.iter().map(|result| result.times_s.len()).max().unwrap_or(0)
}

/// "8 trials each, in turns, in 3.20 s"
fn trials(record: &CompareRecord) -> String {
    let made = if record.elapsed_s.is_some() { rounds(record) } else { record.trials as usize };
    let took = record.elapsed_s.map(|elapsed_s| format!(", in {}", seconds(elapsed_s)));
    format!("{} each, in turns{}", count(made, "trial"), took.unwrap_or_default())
}

/// Whether it is certain which of any two results of a ranking is faster, if rounds were made for that.
fn certainty(record: &CompareRecord) -> Option<String> {
    if record.fail_over_percent.is_some() {
        return None;
    }
    let made = rounds(record);
    let rounds = count(made, "round");
    let to_go_on = match record.precision_percent {
        Some(_) => "without --precision more are made while it is not".to_owned(),
        None if made >= PAIRS_MAX => "they hardly differ, and more rounds are not made".to_owned(),
        None => {
            // At least twice as long as the comparison took, and five minutes.
            let minutes = record.elapsed_s.map_or(0.0, |seconds| 2.0 * seconds / 60.0).ceil() as u64;
            format!("--time {}m without --trials makes more while it is not", minutes.max(5))
        }
    };
    Some(match record.order_is_certain? {
        true => format!("The order, which of any two takes longer, is certain after {rounds}."),
        false => {
            format!("The order, which of any two takes longer, is not certain after {rounds}: {to_go_on}.")
        }
    })
}

/// Whether the intervals became as narrow as was asked.
fn precision(record: &CompareRecord) -> Option<String> {
    let percent = record.precision_percent?;
    let width = |result: &CompareResult| relative_half_width(result.median_s?, result.low_s?, result.high_s?);
    let measured: Vec<&CompareResult> =
        record.results.iter().filter(|result| result.error.is_none() && result.median_s.is_some()).collect();
    let is_wide = |result: &&&CompareResult| width(result).is_none_or(|share| share * 100.0 > percent);
    let wide = measured.iter().filter(is_wide).count();
    (!measured.is_empty()).then(|| match wide {
        0 => format!("The interval of each median is within ±{percent} %, as asked."),
        _ => format!(
            "{wide} of {} intervals are wider than the ±{percent} % asked for: a larger --time, or a quieter machine.",
            measured.len()
        ),
    })
}

/// Which results surely take longer than their baselines by more than `--fail-over` allows, and of which that is not certain.
fn baselines(record: &CompareRecord) -> Vec<String> {
    let Some(percent) = record.fail_over_percent else { return Vec::new() };
    let results: Vec<&CompareResult> = record.results.iter().collect();
    let longest = 1.0 + percent / 100.0;
    let more = if percent > 0.0 { format!("more than {percent} % longer") } else { "longer".to_owned() };
    let (mut longer, mut uncertain, mut not_longer) = (Vec::new(), Vec::new(), Vec::new());
    for (at, first) in stats::baselines(&results) {
        // A failure is in its row.
        if results[at].error.is_some() || results[first].error.is_some() {
            continue;
        }
        let [one, baseline] = [at, first].map(|place| pipelines::named(results[place], &results));
        let Some(ratio) = results[at].times_baseline else {
            uncertain
                .push(format!("Whether {one} takes {more} than {baseline} is not known: too few rounds."));
            continue;
        };
        let times = pipelines::with_bounds(ratio);
        if ratio.low > longest {
            longer.push(format!("{one} surely takes {more} than {baseline}: {times} times as long."));
        } else if ratio.high > longest {
            uncertain.push(format!(
                "Whether {one} takes {more} than {baseline} is not certain: {times} times as long."
            ));
        } else {
            not_longer
                .push(format!("{one} surely does not take {more} than {baseline}: {times} times as long."));
        }
    }
    first_lines([longer, uncertain, not_longer].concat(), SENTENCES_MAX)
}

/// Fields of a result in CSV; times are in seconds.
pub(crate) const FIELDS: &str = "pipeline via trials=times_s mean_s stddev_s median_s low_s high_s \
    times_first=times_first/median times_shell=times_shell/median times_fastest=times_fastest/median \
    times_fastest_low=times_fastest/low times_fastest_high=times_fastest/high stored_bytes output_bytes \
    output_hash status equal same_output parameters error";

/// The same with `--fail-over`.
const BASELINE_FIELDS: &str = "times_baseline=times_baseline/median times_baseline_low=times_baseline/low \
    times_baseline_high=times_baseline/high";

impl Show for CompareRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        vec![section(self, context)]
    }

    /// One row for each pipeline and link.
    fn data(&self) -> Table {
        let results: Vec<&CompareResult> = self.results.iter().collect();
        let mut sheet = Sheet::of_data(&results);
        sheet.fields(FIELDS, |result| *result);
        if self.fail_over_percent.is_some() {
            sheet.fields(BASELINE_FIELDS, |result| *result);
        }
        sheet.fields("name", |result| *result);
        sheet.data("user_s", |result| Some(Unit::Seconds.of(pipelines::cpu_times(result)?.user_s)));
        sheet.data("system_s", |result| Some(Unit::Seconds.of(pipelines::cpu_times(result)?.system_s)));
        for name in pipelines::parameters(&results) {
            sheet.data(format!("parameter_{name}"), |result| Some(result.parameters.get(name)?.into()));
        }
        sheet.table()
    }
}

/// The meaning of the intervals.
fn remarks(record: &CompareRecord) -> Vec<String> {
    let trials = || record.results.iter().map(|result| result.times_s.len());
    let found = |one: &CompareResult| Some(([one.median_s?, one.low_s?, one.high_s?], one.times_s.len()));
    let wide = interval::wide_legend(record.results.iter().filter_map(found));
    let fewest = trials().filter(|trials| *trials > 0).min();
    let single = fewest.and_then(interval::no_spread).map(|words| format!("{words}."));
    [interval::legend(trials()), wide, single].into_iter().flatten().collect()
}

/// The text of a record.
#[cfg(test)]
pub(crate) fn document(record: &CompareRecord) -> crate::document::Document {
    let context = Context::of_text(crate::document::Medium::Terminal, crate::study::StudyView::unknown);
    crate::document::Document::from_blocks(section(record, &context).blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Style;

    fn record(trials: &[(&str, &[f64])]) -> CompareRecord {
        let result = |(via, times_s): &(&str, &[f64])| CompareResult {
            times_s: times_s.to_vec(),
            ..CompareResult::new("a | b", via)
        };
        let mut results: Vec<CompareResult> = trials.iter().map(result).collect();
        stats::summarise_times(&mut results, 1, stats::Analyses::Once);
        CompareRecord { seed: 1, trials: 8, warmup: 0, results, ..CompareRecord::default() }
    }

    #[test]
    fn precision_is_reported_as_reached_or_not() {
        let record = CompareRecord {
            precision_percent: Some(2.0),
            order_is_certain: Some(false),
            ..record(&[("pipe", &[1.0; 10]), ("tcp", &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0])])
        };
        let text = document(&record).terminal(&Style { width: 120, ..Style::default() });
        assert!(
            text.contains("1 of 2 intervals are wider than the ±2 % asked for: a larger --time"),
            "{text}"
        );
        assert!(text.contains("not certain after 10 rounds: without --precision more"), "{text}");
        // Expected: the advice is a longer time. Happened: "--time 5m" after twelve minutes.
        let longer = |elapsed_s| {
            let record =
                CompareRecord { precision_percent: None, elapsed_s: Some(elapsed_s), ..record.clone() };
            document(&record).markdown()
        };
        assert!(longer(3.0).contains("--time 5m without --trials makes more"), "{}", longer(3.0));
        assert!(longer(720.0).contains("--time 24m without --trials makes more"), "{}", longer(720.0));
        let narrow = CompareRecord { results: record.results[..1].to_vec(), ..record };
        let text = document(&narrow).markdown();
        assert!(text.contains("The interval of each median is within ±2 %, as asked."), "{text}");
    }

    fn text(trials: &[(&str, &[f64])]) -> String {
        document(&record(trials)).terminal(&Style { width: 120, ..Style::default() })
    }

    /// Expected: a reader who divides the medians of the table has its ratio.
    /// Happened: the ratio was the median of those within rounds, and was 0.8 where the medians say 1.25.
    #[test]
    fn ratios_are_those_of_the_medians_shown() {
        let pipe = [2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0];
        let bash = [2.5, 2.5, 2.5, 1.6, 1.6, 1.6, 1.0];
        let text = text(&[("pipe", &pipe), ("bash", &bash)]);
        let row = |via: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(via)).unwrap_or_default();
            line.split_whitespace().map(str::to_owned).collect::<Vec<String>>()
        };
        assert!(
            row("pipe").contains(&"2.00".to_owned()) && row("bash").contains(&"1.60".to_owned()),
            "{text}"
        );
        assert!(
            row("pipe").contains(&"1.2".to_owned()) && row("bash").contains(&"0.80".to_owned()),
            "{text}"
        );
    }

    /// Expected: times of short texts. Happened: `0.000 ± 0.000 s`.
    #[test]
    fn short_times_have_a_small_unit() {
        let text = text(&[("pipe", &[0.0004, 0.0005, 0.0004, 0.0005, 0.0004, 0.0005])]);
        assert!(text.contains(" 450 µs ± 54.8 µs ") && !text.contains("0.000"), "{text}");
    }

    #[test]
    fn a_median_has_its_interval_beside_it_and_of_few_trials_the_range() {
        let five = text(&[("pipe", &[1.0, 1.0, 1.0, 1.0, 1.1])]);
        assert!(five.contains(" 1.00 s ±10 % "), "{five}");
        assert!(five.contains("± is the range of all trials; fewer than 6 give no 95 % interval."), "{five}");
        let seven = text(&[("pipe", &[1.0, 1.0, 1.0, 1.0, 1.0, 1.01, 1.01])]);
        assert!(seven.contains(" 1.00 s ±1.0 % ") && !seven.contains("range"), "{seven}");
        assert!(seven.contains("± is the 95 % interval of the median."), "{seven}");
        let one = document(&record(&[("pipe", &[1.0])])).markdown();
        assert!(one.contains("| 1.00 s |") && !one.contains("± is"), "{one}");
    }

    /// Expected: no time of a record, however false, breaks the table.
    /// Happened: `inf` beside figures of 300 digits.
    #[test]
    fn times_out_of_range_have_no_figure() {
        let hostile: &[(&str, &[f64])] =
            &[("pipe", &[1e308, 1e308, -1e308]), ("bash", &[1e-308, -1e308, 1e308])];
        let record = record(hostile);
        for text in [text(hostile), document(&record).markdown(), record.data().csv().expect("text")] {
            assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        }
        assert!(text(hostile).lines().all(|line| line.chars().count() <= 120), "{}", text(hostile));
    }
}
