//! `hosepipe list`: the registry, as a table for people or as JSON.

use std::process::ExitCode;

use clap::Args;
use mechanism::{Descriptor, Mechanism};
use serde::Serialize;

use crate::terminal;

/// Shows every mechanism.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hosepipe list\n  hosepipe list --json | jq -r '.[] | select(.available) | .name'")]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let entries: Vec<Entry> = mechanism::all().iter().map(|mechanism| Entry::of(*mechanism)).collect();
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&entries)?)
    } else {
        entries.iter().map(Entry::text).collect::<Vec<_>>().join("\n")
            + "\nlink: can stand between two unmodified programs (it has a readable and a writable descriptor)\n"
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

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

    fn text(&self) -> String {
        let mut text = format!("{:<14} {}\n", self.name, self.summary);
        let mut line = |label: &str, value: &str| {
            if !value.is_empty() {
                text.push_str(&format!("{:15}{label}: {value}\n", ""));
            }
        };
        if let Some(reason) = &self.reason {
            line("NOT AVAILABLE HERE", reason);
            line("try", self.remedy.as_deref().unwrap_or_default());
        }
        line("can", &self.capabilities.join(", "));
        line("runs", &format!("{}; tasks {}; waits {}", self.workloads.join(", "), self.tasks.join(", "), self.waits.join(", ")));
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

fn capability_words(descriptor: &Descriptor) -> Vec<&'static str> {
    let has = descriptor.capabilities;
    [
        (has.link, "link"),
        (has.keeps_boundaries, "keeps message boundaries"),
        (has.stores_data, "stores data"),
        (has.crosses_hosts, "crosses hosts"),
        (has.needs_cleanup, "needs clean-up"),
    ]
    .into_iter()
    .filter_map(|(holds, word)| holds.then_some(word))
    .collect()
}
