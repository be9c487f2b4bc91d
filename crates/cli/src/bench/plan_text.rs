//! `--dry-run`: the plan as a table.

use engine::Plan;
use model::{ByteSize, Cpu, Tasks};

/// What would be measured, in the order of the plan.
pub(crate) fn render(plan: &Plan, cpus: &[Cpu]) -> String {
    let mut text = format!(
        "{:<28} {:<9} {:>8} {:<10} {:<12} {:<6} {:<7} {}\n",
        "mechanism", "workload", "block", "tasks", "placement", "wait", "data", "remark"
    );
    for case in &plan.cases {
        let missing = mechanism::resolve(&case.spec).ok().and_then(|(mechanism, _)| mechanism.probe().err());
        let line = format!(
            "{:<28} {:<9} {:>8} {:<10} {:<12} {:<6} {:<7} {}",
            case.spec,
            case.workload,
            ByteSize(case.block_bytes),
            case.tasks,
            placement(case, cpus),
            case.wait,
            case.data,
            missing.map(|missing| format!("not available here: {missing}")).unwrap_or_default()
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let budget = plan
        .budget
        .map_or(String::new(), |budget| format!(", within {}", humantime::format_duration(budget)));
    text.push_str(&format!(
        "\n{} cases x {} trials after a warm-up, each round in a random order of seed {}{budget}\n",
        plan.cases.len(),
        plan.trials,
        plan.seed
    ));
    text
}

/// The placement and the CPUs it comes to.
fn placement(case: &model::Case, cpus: &[Cpu]) -> String {
    let chosen = host::resolve(case.placement, cpus).unwrap_or_default();
    let ends = if case.tasks == Tasks::Single { 1 } else { 2 };
    let numbers: Vec<String> = chosen.iter().take(ends).map(u32::to_string).collect();
    let name = case.placement.to_string();
    let numbers = numbers.join(",");
    if numbers.is_empty() || numbers == name { name } else { format!("{name} {numbers}") }
}
