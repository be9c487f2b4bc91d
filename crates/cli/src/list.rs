//! `hosepipe list`: the mechanisms of the registry, as text, Markdown or JSON.

use std::process::ExitCode;

use clap::Args;
use mechanism::{Capabilities, Mechanism};
use report::sheet::col;
use report::table::Fit;
use report::value::Value;
use report::{Table, hanging, wrap};
use serde::Serialize;

use crate::destination::OUTPUTS;
use crate::terminal;

/// Show every mechanism
#[derive(Debug, Args)]
#[command(
    after_help = include_str!("help/list.txt")
)]
pub(crate) struct ListArgs {
    /// Only mechanisms that can connect programs, with their differences from a pipe
    #[arg(long, conflicts_with = "md")]
    links: bool,
    /// Print JSON
    #[arg(long, help_heading = OUTPUTS)]
    json: bool,
    /// Print Markdown, as in docs/MECHANISMS.md: without what depends on this machine
    #[arg(long, conflicts_with = "json", help_heading = OUTPUTS)]
    md: bool,
}

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let shown = mechanism::all()
        .iter()
        .filter(|mechanism| !args.links || mechanism.capabilities.contains(Capabilities::LINK));
    let entries = || shown.clone().map(|mechanism| MechanismEntry::new(mechanism, args.links));
    let text = if args.json {
        report::json::to_text(&entries().collect::<Vec<_>>())?
    } else if args.md {
        let head = "# Mechanisms\n\nGenerated from the registry by `hosepipe list --md`; a test fails when it is stale.\n";
        head.to_owned() + &entries().map(|entry| entry.markdown()).collect::<String>()
    } else {
        let end = if args.links {
            "sockets have the option ends=pipe: both programs have pipes, with relays between these and the\n\
             link (docs/LINKS.md)\n"
        } else {
            "link: can connect two unmodified programs (it has a readable and a writable descriptor). How it differs from a\n\
             pipe for them: hosepipe list --links\n"
        };
        let width = terminal::style().width;
        entries().map(|entry| entry.text(width)).chain([end.to_owned()]).collect::<Vec<_>>().join("\n")
    };
    if args.json { terminal::print_data(&text) } else { terminal::print(&text) }?;
    Ok(ExitCode::SUCCESS)
}

/// Width of the column of names.
const INDENT: usize = 16;

/// A mechanism in the output.
#[derive(Serialize)]
struct MechanismEntry {
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
    /// Differences from a pipe; only in a list of links.
    #[serde(skip_serializing_if = "Option::is_none")]
    differs_from_pipe: Option<&'static str>,
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

impl MechanismEntry {
    fn new(mechanism: &Mechanism, as_link: bool) -> Self {
        let missing = mechanism.probe().err();
        let option = |option: &mechanism::OptionSpec| OptionEntry {
            name: option.name,
            value: option.kind.shape(),
            default: option.default,
            help: option.help,
        };
        let has_option =
            |option: &&mechanism::OptionSpec| !as_link || mechanism.link_options.contains(&option.name);
        Self {
            name: mechanism.name,
            summary: mechanism.summary,
            available: missing.is_none(),
            reason: missing.as_ref().map(|missing| missing.message.clone()),
            remedy: missing.and_then(|missing| missing.remedy),
            capabilities: capability_words(mechanism.capabilities),
            workloads: mechanism.workloads.iter().map(|word| word.word()).collect(),
            tasks: mechanism.tasks.iter().map(|word| word.word()).collect(),
            waits: mechanism.waits.iter().map(|word| word.word()).collect(),
            data: mechanism.data.iter().map(|word| word.word()).collect(),
            options: mechanism.options.iter().filter(has_option).map(option).collect(),
            differs_from_pipe: as_link.then_some(mechanism.link_differs),
            limits: mechanism.limits,
            man_pages: mechanism.man_pages,
        }
    }

    fn text(&self, width: usize) -> String {
        let room = width.saturating_sub(INDENT).max(24);
        let mut text = hanging(&format!("{:INDENT$}", self.name), INDENT, wrap(self.summary, room));
        let mut line = |label: &str, value: &str| {
            if !value.is_empty() {
                let lines = wrap(&format!("{label}: {value}"), room - 2);
                text += &hanging(&" ".repeat(INDENT), INDENT + 2, lines);
            }
        };
        if let Some(reason) = &self.reason {
            line("NOT AVAILABLE HERE", reason);
            line("try", self.remedy.as_deref().unwrap_or_default());
        }
        if let Some(differs) = self.differs_from_pipe {
            line("differs from a pipe", if differs.is_empty() { "no difference" } else { differs });
        } else {
            line("can", &self.capabilities.join(", "));
            let [workloads, tasks, waits] =
                [&self.workloads, &self.tasks, &self.waits].map(|words| words.join(", "));
            line("runs", &format!("{workloads}; tasks {tasks}; waits {waits}"));
        }
        for option in &self.options {
            line(&option.typed(), &format!("{} [{}]", option.help, option.default));
        }
        line("limits", self.limits);
        line("see", &self.man_pages.join(", "));
        text
    }

    /// A section of docs/MECHANISMS.md, without what depends on this machine.
    fn markdown(&self) -> String {
        let facts = [
            ("can", self.capabilities.join(", ")),
            ("workloads", self.workloads.join(", ")),
            ("tasks", self.tasks.join(", ")),
            ("waits", self.waits.join(", ")),
            ("data", self.data.join(", ")),
            ("limits", self.limits.to_owned()),
            ("see", self.man_pages.join(", ")),
        ];
        let row = |(label, value): (&str, String)| {
            vec![label.into(), if value.is_empty() { Value::Absent } else { value.into() }]
        };
        let fact_table = Table::new("", ["", ""].map(col), facts.map(row));
        let option = |option: &OptionEntry| vec![option.typed(), option.help.into(), option.default.into()];
        let heads = [col("option").fit(Fit::Spec), col("meaning"), col("default")];
        let options = Table::new("", heads, self.options.iter().map(option));
        let tables = [&fact_table, &options].into_iter().filter(|table| !table.rows.is_empty());
        let tables: String = tables.map(|table| format!("\n{}", table.markdown())).collect();
        format!("\n## `{}`\n\n{}.\n{tables}", self.name, self.summary)
    }
}

impl OptionEntry {
    /// As it is typed: `size=SIZE`, or `sync` for an option without a value.
    fn typed(&self) -> String {
        format!("{}{}{}", self.name, if self.value.is_empty() { "" } else { "=" }, self.value)
    }
}

fn capability_words(has: Capabilities) -> Vec<&'static str> {
    [
        (Capabilities::LINK, "link"),
        (Capabilities::KEEPS_BOUNDARIES, "keeps message boundaries"),
        (Capabilities::STORES_DATA, "stores data"),
        (Capabilities::CROSSES_HOSTS, "crosses hosts"),
        (Capabilities::NEEDS_CLEANUP, "needs clean-up"),
        (Capabilities::MANY_SENDERS, "many senders"),
        (Capabilities::HAS_NAME, "has a name"),
    ]
    .into_iter()
    .filter_map(|(capability, word)| has.contains(capability).then_some(word))
    .collect()
}
