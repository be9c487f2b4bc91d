//! `--dry-run`: the plan as a table.

use engine::Plan;
use model::{AXES, AxisValue, Case, CaseRecord, Cpu, Suite, Tasks};
use report::sheet::col;
use report::{Style, Table, words};

/// Columns and their axes. Other options share one column, which shows the values that are not the default.
const COLUMNS: [(&str, &str); 7] = [
    ("mechanism", "spec"),
    ("workload", "workload"),
    ("block", "block"),
    ("tasks", "tasks"),
    ("placement", PLACE),
    ("wait", "wait"),
    ("data", "data"),
];
const PLACE: &str = "place";

/// The cases, in the order of the plan, and the number of trials.
pub(crate) fn render(plan: &Plan, suite: Option<&Suite>, cpus: &[Cpu]) -> String {
    let column =
        |(title, axis): &(&str, &str)| if *axis == "block" { col(*title).right() } else { col(*title) };
    let columns = COLUMNS.iter().map(column).chain(["load", "remark"].map(col));
    let row = |case: &Case| {
        let missing = mechanism::resolve(&case.spec).ok().and_then(|(mechanism, _)| mechanism.probe().err());
        let record = CaseRecord::from(case.clone());
        let mut identity = record.identity();
        identity.insert(PLACE.to_owned(), placement(case, cpus));
        let cells = COLUMNS.iter().map(|(_, axis)| identity.remove(*axis).unwrap_or_default());
        let missing = missing.map(|missing| format!("not available here: {missing}"));
        cells.chain([other_options(&record), missing.unwrap_or_default()]).collect()
    };
    // Each case has one line, however long.
    let style = Style { width: usize::MAX, ..Style::default() };
    let mut text = Table::new("", columns, plan.cases.iter().map(row)).terminal(&style);
    let budget = plan
        .budget
        .map_or(String::new(), |budget| format!(", within {}", humantime::format_duration(budget)));
    text.push('\n');
    text.extend(suite.map(|suite| format!("suite {}, version {}\n", suite.name, suite.version)));
    text.push_str(&format!(
        "{} x {} after a warm-up, each round in a random order of seed {}{budget}\n",
        words::count(plan.cases.len(), "case"),
        words::count(plan.trials as usize, "trial"),
        plan.seed
    ));
    text
}

/// The options that have no column and are not the default.
fn other_options(case: &CaseRecord) -> String {
    let has_column = |name: &str| COLUMNS.iter().any(|(_, axis)| *axis == name);
    let words = AXES.iter().filter(|axis| axis.is_option).filter_map(|axis| {
        let name = axis.name.filter(|name| !has_column(name))?;
        Some(match axis.unusual(case)? {
            rate @ AxisValue::PerSecond(_) => rate.to_string(),
            value => format!("{name} {value}"),
        })
    });
    words.collect::<Vec<String>>().join(", ")
}

/// The placement and its CPUs.
fn placement(case: &Case, cpus: &[Cpu]) -> String {
    if let Some(direction) = case.direction {
        return direction.to_string();
    }
    let chosen = host::resolve(case.placement, cpus).unwrap_or_default();
    let ends = if case.tasks == Tasks::Single { 1 } else { 2 };
    let numbers: Vec<String> = chosen.iter().take(ends).map(u32::to_string).collect();
    let name = case.placement.to_string();
    let numbers_text = numbers.join(",");
    if numbers_text.is_empty() || numbers_text == name { name } else { format!("{name} {numbers_text}") }
}
