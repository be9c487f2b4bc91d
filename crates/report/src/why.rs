//! The output of `hosepipe why`: a sentence, which process waits for which, and what ends it. The texts are those of `causes.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::{NamedProcess, WhyAnswer, WhyCause, WhyEdge, WhyRecord, WhyVerdict, descriptor_name, one_line};
use serde::Deserialize;

use crate::document::{Block, Context, Section};
use crate::limits::LONG_NAMES_MAX;
use crate::numbers::time;
use crate::sheet::Sheet;
use crate::show::Show;
use crate::table::Table;
use crate::template::fill_template;
use crate::words::count_of;

/// Shortest wait that is shown.
const SHOWN_NS: u64 = 1_000_000_000;

/// The row of a cause.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// How it is recognised.
    sign: String,
    says: String,
    fix: Vec<String>,
    /// Where the kernel's behaviour is documented.
    source: String,
    example: String,
    /// What `detail` means, where it is a name that does not say it.
    #[serde(default)]
    details: BTreeMap<String, String>,
}

static ROWS: LazyLock<BTreeMap<String, Row>> =
    LazyLock::new(|| toml::from_str(include_str!("why/causes.toml")).unwrap_or_default());

/// Fields of an answer for programs.
const FIELDS: &str = "asked_pid=asked/pid asked=asked/command verdict cause who_pid=who/pid who=who/command what detail for_ns";

impl Show for WhyRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        vec![section(self, context)]
    }

    fn data(&self) -> Table {
        let mut sheet = Sheet::of_data(&self.answers);
        sheet.fields(FIELDS, |answer| answer.clone());
        sheet.table()
    }
}

/// The answers, one below the other.
fn section(record: &WhyRecord, context: &Context) -> Section {
    let mut section = context.section("why", "Why");
    for (at, answer) in record.answers.iter().enumerate() {
        let block = if at == 0 { Block::Line } else { Block::Paragraph };
        section.blocks.push(block(sentence(answer)));
        let lines: Vec<String> = answer.edges.iter().map(|edge| format!("  {}", step(edge))).collect();
        section.blocks.extend((!lines.is_empty()).then(|| Block::Code(lines.join("\n"))));
        let fixes = remedies(answer);
        let head = if answer.verdict == WhyVerdict::Stuck { "To end it:" } else { "What may help:" };
        section.blocks.extend((!fixes.is_empty()).then(|| Block::Paragraph(head.to_owned())));
        section.blocks.extend(fixes.into_iter().map(Block::Note));
    }
    if record.answers.is_empty() {
        section.blocks.push(Block::Line("No process of yours is stuck, as far as can be seen (--all also names those that are stopped, or wait for you).".to_owned()));
    }
    let more = record.left_out.map(|count| {
        format!("{} left out: name a PID.", count_of(count, "more answer is", "more answers are"))
    });
    section.blocks.extend(more.map(Block::Paragraph));
    // Where a cause was found, what was not seen does not change it.
    let is_open =
        record.answers.is_empty() || record.answers.iter().any(|answer| answer.verdict != WhyVerdict::Stuck);
    let unseen = (record.unseen_processes > 0 && is_open).then(|| {
        format!(
            "{} of other users could not be looked at; {}.",
            count_of(record.unseen_processes, "process", "processes"),
            model::to_see_other_users("hosepipe why")
        )
    });
    section.blocks.extend(unseen.map(Block::Paragraph));
    section
}

/// What was wrong with a run before it was ended.
pub fn at_last_look(answer: &WhyAnswer) -> String {
    format!("At the last look nothing moved: {}", cause(answer))
}

/// What is wrong, in one sentence.
fn cause(answer: &WhyAnswer) -> String {
    let said = ROWS.get(answer.cause.name()).map_or("", |row| row.says.as_str());
    filled(said, answer).unwrap_or_default()
}

/// What is wrong, and since when.
pub fn sentence(answer: &WhyAnswer) -> String {
    let since = answer.for_ns.filter(|ns| *ns >= SHOWN_NS).map(|ns| format!(" For {} now.", time(ns as f64)));
    cause(answer) + &since.unwrap_or_default()
}

/// What ends it, the best first.
fn remedies(answer: &WhyAnswer) -> Vec<String> {
    let fixes = ROWS.get(answer.cause.name()).map_or(&[][..], |row| row.fix.as_slice());
    fixes.iter().filter_map(|fix| filled(fix, answer)).filter(|fix| !fix.is_empty()).collect()
}

/// One line of the chain: who does what, and who could end it.
fn step(edge: &WhyEdge) -> String {
    let holder = |holder: &model::WhyHolder| {
        let fd = holder.fd.map_or_else(String::new, |fd| format!(", {}", descriptor_name(fd)));
        format!("{}{fd}", named(&holder.process))
    };
    let to: Vec<String> = edge.to.iter().take(LONG_NAMES_MAX).map(holder).collect();
    let more = edge.to.len().saturating_sub(LONG_NAMES_MAX);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    let arrow = if to.is_empty() { String::new() } else { format!(" <- {}{more}", to.join("; ")) };
    format!("{} {}{arrow}", named(&edge.from), one_line(&edge.does))
}

fn named(process: &NamedProcess) -> String {
    match process.command.as_str() {
        "" => format!("process {}, which has ended", process.pid),
        command => format!("{} ({})", one_line(command), process.pid),
    }
}

fn list(processes: &[NamedProcess], shown: fn(&NamedProcess) -> String) -> String {
    let mut all: Vec<String> = processes.iter().take(LONG_NAMES_MAX).map(shown).collect();
    let more = processes.len().saturating_sub(LONG_NAMES_MAX);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    match all.as_mut_slice() {
        [.., _, last] => {
            *last = format!("and {last}");
            if all.len() == 2 { all.join(" ") } else { all.join(", ") }
        }
        _ => all.concat(),
    }
}

/// A text of `causes.toml` for an answer.
fn filled(text: &str, answer: &WhyAnswer) -> Option<String> {
    let pids = |processes: &[NamedProcess]| {
        processes.iter().map(|process| process.pid.to_string()).collect::<Vec<_>>().join(" ")
    };
    let alive: Vec<NamedProcess> = answer.by.iter().filter(|by| !by.command.is_empty()).cloned().collect();
    let details = ROWS.get(answer.cause.name()).map(|row| &row.details);
    let detail = details.and_then(|details| details.get(&answer.detail)).unwrap_or(&answer.detail);
    let all = || [std::slice::from_ref(&answer.who), &answer.by].concat();
    let value = |name: &str| {
        Some(match name {
            "who" => named(&answer.who),
            "who_pid" => answer.who.pid.to_string(),
            "who_name" => one_line(&answer.who.command),
            "by" => list(&answer.by, named),
            "all" => list(&all(), named),
            "by_pid" => pids(&alive),
            "by_first" => pids(alive.get(..1).unwrap_or_default()),
            "asked" => named(&answer.asked),
            "asked_pid" => answer.asked.pid.to_string(),
            "what" => one_line(&answer.what),
            "detail" => one_line(detail),
            _ => return None,
        })
    };
    fill_template(text, &value)
}

/// docs/WHY.md: the text of `page.md` and all causes.
pub fn page() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let row = |cause: &WhyCause| {
        let row = ROWS.get(cause.name()).cloned().unwrap_or_default();
        let Row { sign, says, fix, source, example, details: _ } = row;
        let says = says.replace(['[', ']'], "");
        format!(
            "### {}\n\n{says}\n\n| | |\n|---|---|\n| seen by | {} |\n| ends it | {} |\n| source | {} |\n\n```\n{example}\n```\n",
            cause.name(),
            cell(&sign),
            if fix.is_empty() { "–".to_owned() } else { cell(&fix.join("; ").replace(['[', ']'], "")) },
            cell(&source)
        )
    };
    let causes: Vec<String> = WhyCause::ALL.iter().map(row).collect();
    format!("{}\n{}", include_str!("why/page.md"), causes.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_row_and_every_row_a_cause() {
        let rows: BTreeMap<String, Row> = toml::from_str(include_str!("why/causes.toml")).expect("the table");
        let mut names: Vec<&str> = WhyCause::ALL.iter().map(|cause| cause.name()).collect();
        names.sort_unstable();
        assert_eq!(rows.keys().map(String::as_str).collect::<Vec<_>>(), names);
    }

    fn answer(cause: WhyCause, by: Vec<NamedProcess>) -> WhyAnswer {
        let process = |pid, name: &str| NamedProcess { pid, command: name.to_owned() };
        WhyAnswer {
            asked: process(1, "bash"),
            verdict: cause.verdict(),
            cause,
            who: process(2, "cat"),
            by,
            what: String::new(),
            detail: String::new(),
            for_ns: None,
            edges: Vec::new(),
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let by = |pid| NamedProcess { pid, command: "sleep".to_owned() };
        let some = sentence(&answer(WhyCause::DaemonHolds, vec![by(3), by(4)]));
        assert!(
            some.starts_with("cat (2) waits for the end of its input: its writing end was inherited by sleep (3) and sleep (4), left"),
            "{some}"
        );
        assert!(!some.contains(['[', '{', ']', '}']), "{some}");
        let none = answer(WhyCause::Lock, Vec::new());
        assert_eq!(sentence(&none), "cat (2) waits for a file lock.");
        assert_eq!(remedies(&none), Vec::<String>::new());
    }
}
