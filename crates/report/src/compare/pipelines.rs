//! Different pipelines compared: the ranking of `hosepipe compare` with several of them.

use std::collections::BTreeSet;

use model::{CompareRecord, CompareResult, Ratio, SHELLS};
use stats::spread::outlier_indices;

use crate::interval::Estimated;
use crate::layout::{code, shortened};
use crate::limits::LONG_NAMES_MAX;
use crate::lists::{first_if_any, first_of, grouped, joined_if_any};
use crate::numbers::{decimal_size, three_digits, time};
use crate::sheet::{Sheet, col};
use crate::table::{Column, Fit, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::why;
use crate::words::count;

/// Longest text of a pipeline in a sentence, unless another one has the same beginning.
const NAME_COLUMNS: usize = 48;
/// Smallest distance of a reported trial from the median, as a share of the median.
const FAR_SHARE: f64 = 0.1;
/// Width of the longest bar.
const BAR_COLUMNS: usize = 10;

/// The results of one link, or of one pipeline, under its name.
pub(super) type Results<'a> = (&'a str, Vec<&'a CompareResult>);

/// The pipelines of each link with several of them: the fastest first, those that failed last.
pub(super) fn rankings(record: &CompareRecord) -> Vec<Results<'_>> {
    let mut links = grouped(record.results.iter().map(|result| (result.via.as_str(), result)));
    links.retain(|(_, results)| results.len() > 1);
    for (_, results) in &mut links {
        let rank = |result: &CompareResult| median_without_error(result).unwrap_or(f64::INFINITY);
        model::sort_by(results, |one, other| rank(one).total_cmp(&rank(other)));
    }
    links
}

/// The median of a result without an error.
fn median_without_error(result: &CompareResult) -> Option<f64> {
    result.median_s.filter(|_| result.error.is_none())
}

/// A ranking as a table.
pub(super) fn table(results: &[&CompareResult]) -> Table {
    let shortest = results.first().and_then(|first| first.median_s);
    let mut sheet = Sheet::new(results);
    named_times(&mut sheet, col("pipeline").fit(Fit::Command), results, CompareResult::label);
    sheet.add(col("min").drop(5), |result| extreme(result, f64::min));
    sheet.add(col("max").drop(5), |result| extreme(result, f64::max));
    sheet.add(col("times as long").left(), |result| match result.times_fastest {
        Some(ratio) if ratio.low == ratio.high => Some(Unit::Factor.of(ratio.median)),
        Some(ratio) => Some(with_bounds(ratio)),
        // The quotient of the medians, if its bounds are unknown.
        None => Some(Unit::Factor.of(median_without_error(result)? / shortest?)),
    });
    // With aligned buffers, blocks that a program has freed stay in its heap.
    if results.iter().any(|result| result.parameters.contains_key("align-buffers")) {
        sheet.add(col("memory").drop(3), |result| Some(Unit::Amount.of(result.max_rss_bytes? as f64)));
    }
    sheet.add(col("output").left(), |result| match (result.equal, result.same_output) {
        (Some(false), _) => Some("varies".into()),
        (_, same) => Some(if same? { "same" } else { "differs" }.into()),
    });
    let total =
        |result: &CompareResult| stats::total_times(result, results[0]).map(|times| Unit::Factor.of(times));
    if results.iter().any(|result| total(result).is_some()) {
        sheet.add("in total", |result| total(result));
    }
    let mut table = with_errors(sheet, results);
    table.embolden(fastest(results));
    table
}

/// The names of the results, and their mean and median times.
pub(super) fn named_times(
    sheet: &mut Sheet<&CompareResult>,
    name: Column,
    results: &[&CompareResult],
    named: fn(&CompareResult) -> &str,
) {
    let medians = || results.iter().filter_map(|result| result.median_s);
    let (slowest, several) = (medians().fold(0.0, f64::max), medians().count() > 1);
    sheet.add(name, |result| Some(named(result).into()));
    for parameter in parameters(results) {
        sheet.add(col(parameter).left().drop(1), |result| Some(result.parameters.get(parameter)?.into()));
    }
    sheet.add(col("mean ± sd").drop(4), |result| {
        let spread = result.stddev_s.filter(|_| result.times_s.len() > 1)?;
        Some(Unit::Seconds.of(result.mean_s?).and(" ± ", Unit::Seconds.of(spread)))
    });
    sheet.add("median", |result| {
        let found = [result.median_s?, result.low_s?, result.high_s?];
        Some(Value::Estimate(Estimated::new(Unit::Seconds, found, result.times_s.len())))
    });
    sheet.add(col("user").drop(2), |result| Some(Unit::Seconds.of(cpu_times(result)?.user_s)));
    sheet.add(col("system").drop(2), |result| Some(Unit::Seconds.of(cpu_times(result)?.system_s)));
    sheet.bars(6, BAR_COLUMNS, |result| Some(result.median_s? / slowest).filter(|_| several));
}

/// The table with the error of each result.
pub(super) fn with_errors(sheet: Sheet<&CompareResult>, results: &[&CompareResult]) -> Table {
    let mut table = sheet.table();
    for (row, result) in table.rows.iter_mut().zip(results) {
        row.reasons =
            result.error.iter().cloned().chain(result.why.as_ref().map(why::at_last_look)).collect();
    }
    table
}

/// Mean CPU times.
#[derive(Debug, PartialEq)]
pub(super) struct CpuTimes {
    pub(super) user_s: f64,
    pub(super) system_s: f64,
}

/// The mean CPU times. Many kernels divide a program's CPU time by what it did at their ticks, so a median of
/// short runs is 0 for one of the two, and the mean of too few runs as well: then it is not known.
pub(super) fn cpu_times(result: &CompareResult) -> Option<CpuTimes> {
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let (user_s, system_s) = (mean(&result.user_times_s), mean(&result.system_times_s));
    (user_s > 0.0 && system_s > 0.0).then_some(CpuTimes { user_s, system_s })
}

/// The names of the parameters (`-P`), without the conditions that an option adds.
pub(super) fn parameters<'a>(results: &[&'a CompareResult]) -> BTreeSet<&'a str> {
    let all = results.iter().flat_map(|result| result.parameters.keys()).map(String::as_str);
    all.filter(|name| !["without", "align-buffers"].contains(name)).collect()
}

/// "3.20 s", "41.0 ms"
pub(super) fn seconds(seconds: f64) -> String {
    time(seconds * 1e9)
}

fn extreme(result: &CompareResult, of: fn(f64, f64) -> f64) -> Option<Value> {
    result.times_s.iter().copied().reduce(of).map(|time_s| Unit::Seconds.of(time_s))
}

/// "1.81 (1.80 to 1.83)"
pub(super) fn with_bounds(ratio: Ratio) -> Value {
    let [median, low, high] = [ratio.median, ratio.low, ratio.high].map(|times| Unit::Factor.of(times));
    median.and(" (", low.and(" to ", high)).then(")")
}

/// The place of the pipeline that is certainly faster than all others, if there is one.
fn fastest(results: &[&CompareResult]) -> Option<usize> {
    let slower = |result: &CompareResult| result.times_fastest.is_some_and(|ratio| ratio.low > 1.0);
    let ranked = || results.iter().enumerate().filter(|(_, result)| result.error.is_none());
    let mut not_slower = ranked().filter(|(_, result)| !slower(result));
    let (at, first) = not_slower.next().filter(|_| not_slower.next().is_none() && ranked().count() > 1)?;
    let own = first.times_fastest.is_some_and(|ratio| ratio.median == 1.0 && ratio.high == 1.0);
    own.then_some(at)
}

/// Which pipeline is the fastest, and whose output differs from that of the first.
pub(super) fn sentences(record: &CompareRecord, results: &[&CompareResult]) -> Vec<String> {
    which_is_fastest(record, results).into_iter().chain(unlike_outputs(record, results)).collect()
}

fn which_is_fastest(record: &CompareRecord, results: &[&CompareResult]) -> Option<String> {
    let ranked: Vec<&CompareResult> =
        results.iter().copied().filter(|result| median_without_error(result).is_some()).collect();
    // Records of earlier versions have no comparison.
    ranked.first()?.times_fastest?;
    if ranked.len() < 2 {
        return None;
    }
    if ranked.iter().any(|result| result.times_fastest.is_none()) {
        let needed = stats::figures_needed(ranked.len() - 1, record.analyses.unwrap_or(1), true);
        return Some(format!(
            "Too few trials to decide which one is the fastest: at least --trials {needed} are needed."
        ));
    }
    let may_be_fastest = |one: &&CompareResult| one.times_fastest.is_some_and(|ratio| ratio.low <= 1.0);
    let candidates: Vec<&CompareResult> = ranked.iter().copied().filter(may_be_fastest).collect();
    if candidates.len() != 1 {
        let names = first_of(&candidates, LONG_NAMES_MAX, ", ", |one| name(one, results));
        return Some(format!(
            "Which of {names} is the fastest is not certain: more --trials, or a quieter machine, may show it."
        ));
    }
    // Pair by pair: that one may have a larger median than another.
    let factor = |one: &&&CompareResult| one.times_fastest.map_or(f64::INFINITY, |ratio| ratio.median);
    let next = ranked[1..].iter().min_by(|one, other| factor(one).total_cmp(&factor(other)))?;
    let bounds = next.times_fastest.map(|ratio| with_bounds(ratio).to_string()).unwrap_or_default();
    let in_total = stats::total_times(next, ranked[0]).map(|times| {
        format!(", but {} times in total, as some rounds took much longer than others", three_digits(times))
    });
    let in_total = in_total.unwrap_or_default();
    let (fastest_name, next_name) = (name(ranked[0], results), name(next, results));
    Some(match ranked.len() {
        2 => format!("{fastest_name} is faster: {next_name} takes {bounds} times as long{in_total}."),
        _ => format!(
            "{fastest_name} is the fastest: the next one, {next_name}, takes {bounds} times as long{in_total}."
        ),
    })
}

fn unlike_outputs(record: &CompareRecord, results: &[&CompareResult]) -> Option<String> {
    let sized = |result: &&CompareResult| {
        format!("{} ({})", name(result, results), decimal_size(result.output_bytes))
    };
    let unlike = results.iter().copied().filter(|result| result.same_output == Some(false));
    let unlike: Vec<&CompareResult> = unlike.collect();
    let via = &results.first().filter(|_| !unlike.is_empty())?.via;
    let reference = record.results.iter().find(|one| one.same_output.is_some() && one.via == *via)?;
    let unlike_names = first_of(&unlike, LONG_NAMES_MAX, ", ", sized);
    Some(format!("Not the same output as of {}: {unlike_names}.", sized(&reference)))
}

/// A pipeline in a sentence: in full if another one has the same beginning.
fn name(result: &CompareResult, all: &[&CompareResult]) -> String {
    let short = |result: &CompareResult| shortened(result.label(), NAME_COLUMNS);
    let own = short(result);
    let again = all.iter().any(|other| other.label() != result.label() && short(other) == own);
    code(if again { result.label() } else { &own })
}

/// A result among all of a record: its link, its pipeline, or both, as they differ.
pub(super) fn named(result: &CompareResult, all: &[&CompareResult]) -> String {
    if all.iter().all(|other| std::ptr::eq(*other, result) || other.via != result.via) {
        return code(&result.via);
    }
    let via = all.iter().any(|other| other.via != result.via).then(|| via_in_words(&result.via));
    joined_if_any([Some(name(result, all)), via].into_iter().flatten(), " ").unwrap_or_default()
}

/// Remarks on the times: each includes the start of the shell, the first trial was slower than the others, or some trials are far from
/// the others.
pub(super) fn remarks(record: &CompareRecord) -> Vec<String> {
    let (mut first, mut distant) = (Vec::new(), Vec::new());
    for result in &record.results {
        let Some(middle) = result.median_s else { continue };
        let is_far = |at: &usize| (result.times_s[*at] / middle - 1.0).abs() >= FAR_SHARE;
        let far: Vec<usize> = outlier_indices(&result.times_s).into_iter().filter(is_far).collect();
        let name = format!("{} ({})", code(&shortened(result.label(), NAME_COLUMNS)), result.via);
        match &far[..] {
            [] => {}
            [0] if result.times_s[0] > middle => {
                first.push(format!("{name} {}, not {}", seconds(result.times_s[0]), seconds(middle)));
            }
            several => distant.push(format!("{} of {name}", count(several.len(), "trial"))),
        }
    }
    let shortest_s = record.results.iter().filter_map(|result| result.median_s).fold(f64::INFINITY, f64::min);
    let start = record.shell_start_s.filter(|start_s| *start_s < shortest_s).map(|start_s| {
        let start = seconds(start_s);
        format!("Each time includes the start of the shell ({start} with an empty text): without it the factors would be larger.")
    });
    let named = |lines| first_if_any(lines, LONG_NAMES_MAX, "; ");
    let first_trials = named(first).map(|names| {
        format!("The first trial took longer: {names}. What it needs may not have been in memory: try --warmup or --prepare.")
    });
    let far_trials = named(distant)
        .map(|names| format!("Far from the others: {names}. Something else may have used the machine."));
    [start, first_trials, far_trials].into_iter().flatten().collect()
}

/// The links of a pipeline: "over pipe", "in bash by itself".
pub(super) fn via_in_words(via: &str) -> String {
    if SHELLS.contains(&via) { format!("in {via} by itself") } else { format!("over {via}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;
    use crate::show::Show;
    use crate::table::Style;

    fn record(pipelines: &[(&str, &[f64], &str)]) -> CompareRecord {
        let result = |(text, times_s, output): &(&str, &[f64], &str)| CompareResult {
            times_s: times_s.to_vec(),
            output_hash: Some((*output).to_owned()),
            same_output: Some(*output == pipelines[0].2),
            ..CompareResult::new(text, "bash")
        };
        let mut results: Vec<CompareResult> = pipelines.iter().map(result).collect();
        stats::summarise_times(&mut results, 1, stats::Analyses::Once);
        CompareRecord { seed: 1, trials: 8, warmup: 1, results, ..CompareRecord::default() }
    }

    fn text(record: &CompareRecord) -> String {
        compare::document(record).terminal(&Style { width: 110, ..Style::default() })
    }

    const BASE: [f64; 8] = [1.0, 1.02, 0.99, 1.01, 1.03, 0.98, 1.0, 1.01];

    #[test]
    fn the_fastest_is_first_and_is_named_with_bounds() {
        let slower = BASE.map(|time| time * 1.8 + 0.01);
        let mut record =
            record(&[("grep -c `x` f|wc", &slower, "a"), ("rg x", &BASE, "b"), ("sort\nx", &[], "a")]);
        record.results[2].error = Some("ended with status 2".to_owned());
        record.results[2].same_output = None;
        record.shell_start_s = Some(0.002);
        let shown = text(&record);
        let rows: Vec<&str> =
            shown.lines().filter(|line| line.contains(" s ") || line.contains("status")).collect();
        assert!(rows[0].starts_with(" rg x") && rows[1].contains("1.81 (1.81 to 1.81)"), "{shown}");
        assert!(rows[2].starts_with(" sort x") && rows[2].contains("ended with status 2"), "{shown}");
        assert!(shown.contains("`rg x` is faster: `` grep -c `x` f|wc `` takes 1.81"), "{shown}");
        assert!(
            shown.contains("Not the same output as of `` grep -c `x` f|wc `` (0 B): `rg x` (0 B)."),
            "{shown}"
        );
        assert!(shown.contains("(2.00 ms with an empty text)"), "{shown}");
        let md = compare::document(&record).markdown();
        assert!(md.contains("| `` grep -c `x` f\\|wc `` |") && md.contains("| `sort x` |"), "{md}");
        let csv = record.data().csv().expect("text");
        assert!(
            csv.contains("1.810")
                && csv.lines().next().is_some_and(|line| line.contains("times_fastest_low"))
        );
    }

    /// As in hyperfine: CPU times, names and the values of parameters, in a narrow terminal, too.
    #[test]
    fn a_row_has_its_name_its_parameters_and_its_cpu_time() {
        let mut record =
            record(&[("sort -S1 f", &BASE, ""), ("sort -S2 f", &BASE.map(|time| 2.0 * time), "")]);
        for (at, result) in record.results.iter_mut().enumerate() {
            result.name = Some(format!("with {}", at + 1));
            result.parameters = [("size".to_owned(), (at + 1).to_string())].into();
            (result.user_times_s, result.system_times_s) = (vec![0.7; 8], vec![0.25; 8]);
        }
        let narrow = compare::document(&record).terminal(&Style { width: 80, ..Style::default() });
        for text in [narrow, compare::document(&record).markdown()] {
            for words in ["size", "user", "system", "700 ms", "250 ms", "with 1", "`with 1` is faster"] {
                assert!(text.contains(words), "no {words} in {text}");
            }
            assert!(!text.contains("sort -S1"), "{text}");
        }
        // Happened: "0.00 ns" in the kernel, the median of 69 runs of `sleep`. The mean has the right share, unless no tick fell into one.
        let result = &mut record.results[0];
        (result.user_times_s, result.system_times_s) =
            (vec![0.004, 0.004, 0.0, 0.004], vec![0.0, 0.0, 0.004, 0.0]);
        assert_eq!(cpu_times(result), Some(CpuTimes { user_s: 0.003, system_s: 0.001 }));
        result.system_times_s = vec![0.0; 4];
        assert_eq!(cpu_times(result), None);
    }

    #[test]
    fn no_winner_is_named_where_the_bounds_say_nothing() {
        let level = [1.02, 0.98, 1.01, 1.0, 0.99, 1.01, 1.03, 0.97];
        let slow = BASE.map(|time| time * 3.0);
        let shown = text(&record(&[("a", &BASE, ""), ("b", &level, ""), ("c", &slow, "")]));
        assert!(
            shown.contains("Which of `a`, `b` is the fastest is not certain:")
                || shown.contains("Which of `b`, `a` is the fastest is not certain:"),
            "{shown}"
        );
        let few = text(&record(&[("a", &BASE[..5], ""), ("b", &slow[..5], "")]));
        assert!(few.contains("at least --trials 6 are needed") && few.contains(" 3.00 "), "{few}");
        assert!(!few.contains("faster"), "{few}");
    }

    /// Expected: what one with two modes takes in total. Happened: "takes 1.01 times as long", of 1.4 times in total.
    #[test]
    fn where_modes_switch_the_totals_are_shown() {
        let slow = [1.01, 1.03, 1.0, 1.02, 1.04, 4.0, 1.01, 1.02];
        let shown = text(&record(&[("a", &BASE, ""), ("b", &slow, "")]));
        assert!(shown.contains("in total") && shown.contains(" 1.38"), "{shown}");
        assert!(
            !text(&record(&[("a", &BASE, ""), ("b", &BASE.map(|time| 2.0 * time), "")])).contains("total")
        );
    }

    /// A record of an earlier version holds no factors.
    #[test]
    fn results_without_a_comparison_have_no_winner() {
        let mut record = record(&[("a", &BASE, ""), ("b", &BASE.map(|time| 2.0 * time), "")]);
        record.results.iter_mut().for_each(|one| (one.times_fastest, one.same_output) = (None, None));
        let shown = text(&record);
        assert!(shown.contains(" 2.00 ") && !shown.contains("fast"), "{shown}");
    }

    #[test]
    fn outliers_are_reported_and_a_slow_first_trial_by_itself() {
        let cold = [2.0, 1.02, 0.99, 1.01, 1.03, 0.98, 1.0, 1.01];
        let odd = [1.0, 1.02, 0.99, 2.0, 1.03, 0.98, 1.0, 1.01];
        let told = remarks(&record(&[("a", &cold, ""), ("b", &odd, ""), ("c", &BASE, "")])).join("\n");
        assert!(told.contains("took longer: `a` (bash) 2.00 s, not 1.01 s."), "{told}");
        assert!(
            told.contains("Far from the others: 1 trial of `b` (bash).") && !told.contains("`c`"),
            "{told}"
        );
    }

    #[test]
    fn long_pipelines_that_begin_alike_are_shown_in_full() {
        let long = format!("sort --parallel=1 {} | head -", "x".repeat(50));
        let texts = [1, 2].map(|at| format!("{long}{at}"));
        let record = record(&[(&texts[0], &BASE, ""), (&texts[1], &BASE.map(|time| 2.0 * time), "")]);
        let shown = text(&record).replace('\n', " ");
        assert!(shown.contains(&format!("`{}` is faster", texts[0])), "{shown}");
        for width in [20, 40, 60] {
            let narrow = compare::document(&record).terminal(&Style { width, ..Style::default() });
            let table = narrow.lines().take_while(|line| !line.starts_with('`'));
            assert!(table.clone().skip(2).all(|line| line.chars().count() <= width.max(40)), "{narrow}");
        }
    }
}
