//! The time of a block over a sweep of block sizes, as a table: overhead, bandwidth, the size with half that bandwidth, and how far
//! the measured times are from that line; and the sizes at which two mechanisms cross.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, Workload};
use stats::cost::{Crossing, Deviation, NoModel, Straightness, crossing, rounds_to_cross};
use stats::{CostModel, SizeSweep};

use crate::groups::{COMPARED, key};
use crate::lists::{first_lines, first_names, grouped, joined_if_any};
use crate::sheet::{Sheet, col};
use crate::sweep::size_range;
use crate::table::{Fit, Row, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::view::{Labels, SWEEP_FROM, ranked};
use crate::{numbers, words};

/// Most sentences of one kind.
const SENTENCES_MAX: usize = 5;
/// Most mechanisms that are compared with each other, the cheapest ones: the number of pairs grows with the square.
const CROSSING_MAX: usize = 12;
/// Smallest overhead that is shown: less cannot be measured.
const SHOWN_NS_MIN: f64 = 0.01;

/// The costs of all mechanisms in one sweep of streams.
pub(crate) struct Costs(Vec<Cost>);

/// One mechanism over the sizes of a sweep.
struct Cost {
    label: String,
    swept: SizeSweep,
    model: Result<CostModel, NoModel>,
}

impl Cost {
    fn model(&self) -> Option<&CostModel> {
        self.model.as_ref().ok()
    }
}

impl Costs {
    /// The costs of the streams among these labelled cases; `None` if no mechanism has enough sizes for a sweep.
    pub(crate) fn from_cases<'a>(cases: impl Iterator<Item = (String, &'a CaseRecord)>) -> Option<Self> {
        let streams = cases.filter(|(_, case)| case.workload == Workload::Stream);
        let cost = |(label, cases): (String, Vec<&CaseRecord>)| {
            let swept = SizeSweep::of(cases);
            Cost { label, model: CostModel::of(&swept), swept }
        };
        let costs: Vec<Cost> = grouped(streams).into_iter().map(cost).collect();
        costs.iter().any(|cost| cost.swept.blocks().len() >= SWEEP_FROM).then_some(Self(costs))
    }

    /// The models, by their labels.
    pub(crate) fn models(&self) -> impl Iterator<Item = (&str, &CostModel)> {
        self.0.iter().filter_map(|cost| Some((cost.label.as_str(), cost.model()?)))
    }

    /// The table, the cheapest block first, with its sentences below.
    pub(crate) fn table(&self) -> Table {
        let mut costs: Vec<&Cost> = self.0.iter().collect();
        let overhead = |cost: &&Cost| cost.model.as_ref().map_or(f64::MAX, |model| model.overhead_ns.value);
        model::sort_by(&mut costs, |one, other| overhead(one).total_cmp(&overhead(other)));
        let (known, without): (Vec<&Cost>, Vec<&Cost>) =
            costs.iter().copied().partition(|cost| cost.model.is_ok());
        let mut sheet = Sheet::new(&known);
        sheet.add(col("mechanism").fit(Fit::Spec), |cost| Some((&cost.label).into()));
        sheet.add("overhead", |cost| {
            let ns = cost.model()?.overhead_ns.value;
            (ns >= SHOWN_NS_MIN).then(|| Unit::Ns.of(ns))
        });
        sheet.add("bandwidth", |cost| Some(Unit::BytesPerS.of(cost.model()?.bandwidth_bytes_per_s()?.value)));
        sheet.add(col("half speed at").short("half at").drop(1), |cost| {
            Some(Unit::Bytes.of(cost.model()?.half_bytes?.value.round()))
        });
        sheet.add(col("per filling").drop(2), |cost| Some(Unit::Ns.of(cost.model()?.filling?.ns.value)));
        sheet.add(col("off the line").left().drop(1), |cost| Some(verdict(cost.model()?).into()));
        let mut table = sheet.table();
        table.title = "time per block = overhead + bytes / bandwidth".to_owned();
        table.notes = sentences(&costs);
        table.rows.extend(rows_without(&without, table.columns.len()));
        table
    }
}

/// A row for each reason why there is no model, with the mechanisms that have it.
fn rows_without(costs: &[&Cost], columns: usize) -> Vec<Row> {
    let by_reason = grouped(costs.iter().filter_map(|cost| {
        let reason = cost.model.as_ref().err()?;
        Some((reason.to_string(), cost.label.clone()))
    }));
    let row = |(reason, labels): (String, Vec<String>)| {
        let (name, reason) = match &labels[..] {
            [label] => (label.clone(), reason),
            _ => (format!("{} others", labels.len()), format!("{reason}: {}", labels.join(", "))),
        };
        let cells = std::iter::once(name.into()).chain(std::iter::repeat_n(Value::Absent, columns - 1));
        Row { cells: cells.collect(), reasons: vec![reason], ..Row::default() }
    };
    by_reason.into_iter().map(row).collect()
}

/// The models of a record's sweeps, by the address of each of their cases.
pub(crate) fn models_of(record: &BenchRecord) -> HashMap<*const CaseRecord, CostModel> {
    let labels = Labels::from_record(record);
    let own = ranked(record).filter(|case| case.worker.is_none());
    let similar = grouped(own.map(|case| ((key(case, COMPARED), labels.label(case)), case)));
    let mut models = HashMap::new();
    for (_, cases) in similar {
        let swept = SizeSweep::of(cases.iter().copied());
        if let Ok(model) = CostModel::of(&swept) {
            models.extend(cases.into_iter().map(|case| (std::ptr::from_ref(case), model.clone())));
        }
    }
    models
}

fn size(bytes: f64) -> String {
    numbers::binary_size(bytes.round())
}

/// How far the times are from the line.
fn verdict(model: &CostModel) -> String {
    let farthest = |by: &dyn Fn(&Deviation) -> f64, only_off: bool| {
        let deviations = model.deviations.iter().filter(|one| !only_off || one.is_off());
        deviations.max_by(|one, other| by(one).total_cmp(&by(other)))
    };
    let text = match model.straightness() {
        Straightness::Straight(share) => Some(format!("at most {}", numbers::percent(share))),
        Straightness::Unclear => Some("not certain".to_owned()),
        Straightness::NotLinear => farthest(&|one| one.times.value.ln().abs(), true)
            .map(|one| format!("{} at {}", times(one.times.value), numbers::size(one.block_bytes))),
    };
    text.unwrap_or_default()
}

/// "2.1 × as long", "1.4 × as fast".
fn times(times: f64) -> String {
    if times > 1.0 {
        format!("{} × as long", numbers::ratio(times))
    } else {
        format!("{} × as fast", numbers::ratio(times.recip()))
    }
}

/// Times of filled buffers, sizes that are not on the line, and where mechanisms cross.
fn sentences(costs: &[&Cost]) -> Vec<String> {
    let with_model = || costs.iter().filter_map(|cost| Some((*cost, cost.model()?)));
    let fillings = with_model().filter_map(|(cost, model)| {
        let filling = model.filling?;
        let large = numbers::throughput(model.large_blocks_bytes_per_s()?);
        let (wait, buffer) = (numbers::time(filling.ns.value), numbers::size(filling.buffer_bytes));
        Some(format!(
            "`{}` waits {wait} each time a block has filled its buffer of {buffer}: large blocks come to {large}.",
            cost.label
        ))
    });
    let bends = with_model().filter_map(|(cost, model)| bends(&cost.label, model));
    let mut all = first_lines(fillings.collect(), SENTENCES_MAX);
    all.extend(first_lines(bends.collect(), SENTENCES_MAX));
    all.extend(crossings(costs));
    all
}

/// "`pipe` is not a straight line: slower at 64 KiB to 1 MiB, faster at 2 KiB than its line says."
fn bends(label: &str, model: &CostModel) -> Option<String> {
    let side = |one: &Deviation| if one.is_off() { one.times.value.total_cmp(&1.0) as i8 } else { 0 };
    let part = |word: &str, wanted: i8| {
        let runs = model.deviations.chunk_by(|one, other| side(one) == side(other));
        let sizes = runs
            .filter(|run| side(&run[0]) == wanted)
            .map(|run| size_range(run[0].block_bytes, run[run.len() - 1].block_bytes));
        let sizes: Vec<String> = sizes.collect();
        (!sizes.is_empty()).then(|| format!("{word} at {}", first_names(&sizes, SENTENCES_MAX)))
    };
    let parts = joined_if_any([part("slower", 1), part("faster", -1)].into_iter().flatten(), ", ")?;
    Some(format!("`{label}` is not a straight line: {parts} than its line says."))
}

/// Where two mechanisms cross; if there are only two, also that they do not.
fn crossings<'a>(costs: &[&'a Cost]) -> Vec<String> {
    let costs = &costs[..costs.len().min(CROSSING_MAX)];
    let with_others = |at: usize| costs[at + 1..].iter().map(move |other| (costs[at], *other));
    let pairs = (0..costs.len()).flat_map(with_others);
    let count = costs.len() * costs.len().saturating_sub(1) / 2;
    let needed = rounds_to_cross(count);
    let made = costs.iter().map(|cost| cost.swept.rounds().len()).max().unwrap_or(0);
    let swept = |cost: &'a Cost| (&cost.swept, cost.model());
    let found: Vec<(&Cost, &Cost, Crossing)> =
        pairs.map(|(one, other)| (one, other, crossing(swept(one), swept(other), count))).collect();
    let crossed = found.iter().filter_map(|(one, other, found)| crosses(&one.label, &other.label, found));
    let mut cross = first_lines(crossed.collect(), SENTENCES_MAX);
    match found.as_slice() {
        [] => {}
        [(one, other, Crossing::Never { first_ahead, sizes: (sure, all) })] => {
            let (ahead, behind) = if *first_ahead { (one, other) } else { (other, one) };
            let (ahead, behind) = (&ahead.label, &behind.label);
            let sizes = words::count(*all, "size");
            let rest = if sure == all { "" } else { "; at the others neither surely is" };
            cross.push(format!(
                "`{ahead}` and `{behind}` never cross in the measured range: `{ahead}` is faster at {sure} of {sizes}{rest}."
            ));
        }
        [(one, other, Crossing::Unclear)] if made >= needed => cross.push(format!(
            "By time alone neither `{}` nor `{}` surely is faster at any size.",
            one.label, other.label
        )),
        _ if made < needed => cross.push(format!(
            "To decide {} takes {needed} rounds, and there were {made}: --trials {needed}, or fewer mechanisms.",
            if count == 1 { "whether they cross".to_owned() } else { format!("which of {count} pairs cross") },
        )),
        _ if cross.is_empty() => cross.push("No two of them surely cross in the measured range.".to_owned()),
        _ => {}
    }
    cross
}

/// "`shm-ring` is faster than `pipe` up to 1 KiB, and slower from 4 KiB on: they cross at about 2.1 KiB."
fn crosses(one: &str, other: &str, found: &Crossing) -> Option<String> {
    match *found {
        Crossing::At { first_ahead_below, bytes, low, high } => {
            let (below, above) = if first_ahead_below { (one, other) } else { (other, one) };
            let (low, high) = (numbers::size(low), numbers::size(high));
            Some(format!(
                "`{below}` is faster than `{above}` up to {low}, and slower from {high} on: they cross at about {}.",
                size(bytes)
            ))
        }
        Crossing::Often => Some(format!("`{one}` and `{other}` cross more than once.")),
        Crossing::Never { .. } | Crossing::Unclear => None,
    }
}
