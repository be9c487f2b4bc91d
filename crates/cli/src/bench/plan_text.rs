//! `--dry-run`: the plan as a table.

use engine::Plan;
use model::{ByteSize, Case, Cpu, Load, Suite, Tasks};
use report::{Style, Table};

/// What would be measured, in the order of the plan.
pub(crate) fn render(plan: &Plan, suite: Option<&Suite>, cpus: &[Cpu]) -> String {
    let columns = ["mechanism", "workload", "block", "tasks", "placement", "wait", "data", "load", "remark"];
    let row = |case: &Case| {
        let missing = mechanism::resolve(&case.spec).ok().and_then(|(mechanism, _)| mechanism.probe().err());
        vec![
            case.spec.to_string(),
            case.workload.to_string(),
            ByteSize(case.block_bytes).to_string(),
            case.tasks.to_string(),
            placement(case, cpus),
            case.wait.to_string(),
            case.data.to_string(),
            load(case.load),
            missing.map(|missing| format!("not available here: {missing}")).unwrap_or_default(),
        ]
    };
    // A case is a line, however long.
    let style = Style { width: usize::MAX, ..Style::default() };
    let mut text = Table::new("", columns, plan.cases.iter().map(row)).terminal(&style);
    let budget = plan
        .budget
        .map_or(String::new(), |budget| format!(", within {}", humantime::format_duration(budget)));
    text.push('\n');
    text.extend(suite.map(|suite| format!("suite {}, version {}\n", suite.name, suite.version)));
    text.push_str(&format!(
        "{} cases x {} trials after a warm-up, each round in a random order of seed {}{budget}\n",
        plan.cases.len(),
        plan.trials,
        plan.seed
    ));
    text
}

/// What is asked of a mechanism at once; nothing where nobody asked.
fn load(load: Load) -> String {
    let parts = [
        load.pairs.map(|pairs| format!("pairs {pairs}")),
        load.senders.map(|senders| format!("senders {senders}")),
        load.rate_per_s.map(|rate| format!("{rate}/s")),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// The placement and the CPUs it comes to.
fn placement(case: &Case, cpus: &[Cpu]) -> String {
    if let Some(toward) = case.toward {
        return toward.to_string();
    }
    let chosen = host::resolve(case.placement, cpus).unwrap_or_default();
    let ends = if case.tasks == Tasks::Single { 1 } else { 2 };
    let numbers: Vec<String> = chosen.iter().take(ends).map(u32::to_string).collect();
    let name = case.placement.to_string();
    let numbers = numbers.join(",");
    if numbers.is_empty() || numbers == name { name } else { format!("{name} {numbers}") }
}
