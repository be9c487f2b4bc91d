//! `hosepipe list`: the registry, as a table for people or as JSON.

use std::process::ExitCode;

use clap::Args;
use mechanism::{Capabilities, Descriptor, Mechanism};
use serde::Serialize;

use crate::destination::OUTPUTS;
use crate::terminal::{self, wrap};

/// Shows every mechanism.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hosepipe list\n  hosepipe list --json | jq -r '.[] | select(.available) | .name'"
)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long, help_heading = OUTPUTS)]
    json: bool,
    /// Print Markdown, as in docs/MECHANISMS.md: what holds on every machine
    #[arg(long, conflicts_with = "json", help_heading = OUTPUTS)]
    md: bool,
}

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let entries = || mechanism::all().iter().map(|mechanism| Entry::of(*mechanism));
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&entries().collect::<Vec<_>>())?)
    } else if args.md {
        markdown()
    } else {
        entries().map(|entry| entry.text(terminal::style().width)).collect::<Vec<_>>().join("\n")
            + "\nlink: can stand between two unmodified programs (it has a readable and a writable descriptor)\n"
    };
    if args.json { terminal::print_data(&text) } else { terminal::print(&text) }?;
    Ok(ExitCode::SUCCESS)
}

/// Columns of the names.
const INDENT: usize = 16;

/// A mechanism as `list` shows it.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    summary: &'static str,
    available: bool,
    reason: Option<String>,
    remedy: Option<String>,
    capabilities: Vec<&'static str>,
    workloads: Vec<&'static str>,
    tasks: Vec<&'static str>,
    waits: Vec<&'static str>,
    data: Vec<&'static str>,
    options: Vec<OptionEntry>,
    limits: &'static str,
    man_pages: &'static [&'static str],
}

#[derive(Serialize)]
struct OptionEntry {
    name: &'static str,
    value: String,
    default: &'static str,
    help: &'static str,
}

impl Entry {
    fn of(mechanism: &dyn Mechanism) -> Self {
        let descriptor = mechanism.descriptor();
        let missing = mechanism.probe().err();
        Self {
            name: descriptor.name,
            summary: descriptor.summary,
            available: missing.is_none(),
            reason: missing.as_ref().map(|missing| missing.reason.clone()),
            remedy: missing.and_then(|missing| missing.remedy),
            capabilities: capability_words(descriptor),
            workloads: descriptor.workloads.iter().map(|word| word.word()).collect(),
            tasks: descriptor.tasks.iter().map(|word| word.word()).collect(),
            waits: descriptor.waits.iter().map(|word| word.word()).collect(),
            data: descriptor.data.iter().map(|word| word.word()).collect(),
            options: descriptor.options.iter().map(OptionEntry::of).collect(),
            limits: descriptor.limits,
            man_pages: descriptor.man_pages,
        }
    }

    fn text(&self, width: usize) -> String {
        let room = width.saturating_sub(INDENT).max(24);
        let mut text = String::new();
        let mut first = format!("{:<INDENT$}", self.name);
        for line in wrap(self.summary, room) {
            text.push_str(&format!("{first}{line}\n"));
            first = " ".repeat(INDENT);
        }
        let mut line = |label: &str, value: &str| {
            if !value.is_empty() {
                for (index, line) in wrap(&format!("{label}: {value}"), room - 2).iter().enumerate() {
                    let hang = if index == 0 { "" } else { "  " };
                    text.push_str(&format!("{:INDENT$}{hang}{line}\n", ""));
                }
            }
        };
        if let Some(reason) = &self.reason {
            line("NOT AVAILABLE HERE", reason);
            line("try", self.remedy.as_deref().unwrap_or_default());
        }
        line("can", &self.capabilities.join(", "));
        line(
            "runs",
            &format!(
                "{}; tasks {}; waits {}",
                self.workloads.join(", "),
                self.tasks.join(", "),
                self.waits.join(", ")
            ),
        );
        for option in &self.options {
            let value = if option.value.is_empty() { String::new() } else { format!("={}", option.value) };
            line(&format!("{}{value}", option.name), &format!("{} [{}]", option.help, option.default));
        }
        line("limits", self.limits);
        line("see", &self.man_pages.join(", "));
        text
    }
}

impl OptionEntry {
    fn of(option: &mechanism::OptionSpec) -> Self {
        Self { name: option.name, value: option.kind.shape(), default: option.default, help: option.help }
    }
}

/// The registry as a page of documentation; nothing in it depends on the machine.
fn markdown() -> String {
    let mut text = "# Mechanisms\n\nGenerated from the registry by `hosepipe list --md`; a test fails when it is stale.\n".to_owned();
    for mechanism in mechanism::all() {
        let has = mechanism.descriptor();
        let words = |words: Vec<&str>| words.join(", ");
        text.push_str(&format!("\n## `{}`\n\n{}.\n\n", has.name, has.summary));
        let capabilities = capability_words(has);
        let rows = [
            ("can", if capabilities.is_empty() { "–".to_owned() } else { words(capabilities) }),
            ("workloads", words(has.workloads.iter().map(|word| word.word()).collect())),
            ("tasks", words(has.tasks.iter().map(|word| word.word()).collect())),
            ("waits", words(has.waits.iter().map(|word| word.word()).collect())),
            ("data", words(has.data.iter().map(|word| word.word()).collect())),
            ("limits", if has.limits.is_empty() { "–".to_owned() } else { has.limits.to_owned() }),
            ("see", if has.man_pages.is_empty() { "–".to_owned() } else { has.man_pages.join(", ") }),
        ];
        text.push_str("| | |\n|---|---|\n");
        rows.iter().for_each(|(label, value)| text.push_str(&format!("| {label} | {value} |\n")));
        if !has.options.is_empty() {
            text.push_str("\n| option | meaning | default |\n|---|---|---|\n");
        }
        for option in has.options {
            let shape = option.kind.shape().replace('|', "\\|");
            let equals = if shape.is_empty() { "" } else { "=" };
            text.push_str(&format!(
                "| `{}{equals}{shape}` | {} | {} |\n",
                option.name, option.help, option.default
            ));
        }
    }
    text
}

fn capability_words(descriptor: &Descriptor) -> Vec<&'static str> {
    let has = descriptor.capabilities;
    [
        (Capabilities::LINK, "link"),
        (Capabilities::KEEPS_BOUNDARIES, "keeps message boundaries"),
        (Capabilities::STORES_DATA, "stores data"),
        (Capabilities::CROSSES_HOSTS, "crosses hosts"),
        (Capabilities::NEEDS_CLEANUP, "needs clean-up"),
    ]
    .into_iter()
    .filter_map(|(capability, word)| has.contains(capability).then_some(word))
    .collect()
}
