//! `hosepipe workers`: the languages of `bench --workers`, whether their toolchains are installed, and building their programs.

use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use model::Observer;
use report::sheet::col;
use report::table::Fit;
use report::{Style, Table};
use serde::Serialize;
use worker::{BuildCache, Built, Language, Registry, Unbuilt};

use crate::destination::OUTPUTS;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};

/// Show the languages of `bench --workers`, and build their programs
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/workers.txt"))]
pub(crate) struct WorkersArgs {
    /// Build the programs that are not built yet
    #[arg(long)]
    build: bool,
    /// Print JSON
    #[arg(long, help_heading = OUTPUTS)]
    json: bool,
    /// Languages, as after `bench --workers` [default: all]
    #[arg(value_name = "LANG")]
    languages: Vec<String>,
}

pub(crate) fn run(args: &WorkersArgs) -> anyhow::Result<ExitCode> {
    let stop = StopRequest::listen()?;
    let registry = Registry::open()?;
    let cache = BuildCache::open(&registry)?;
    let select = |typed: &str| registry.select_languages(typed).map_err(UsageError::new);
    let languages = match (args.languages.as_slice(), args.build) {
        ([], true) => select("all")?,
        ([], false) => registry.languages().iter().collect(),
        (typed, _) => select(&typed.join(","))?,
    };

    let stopped = || stop.is_set();
    let results = if args.build {
        cache.build(&languages, &mut BuildReporter(Instant::now()), &stopped)
    } else {
        cache.states(&languages, &stopped)
    };
    let entries: Vec<LanguageRow> =
        languages.iter().zip(results).map(|(language, result)| LanguageRow::new(language, result)).collect();
    if let Some(status) = stop.exit_status() {
        return Ok(ExitCode::from(status));
    }
    if args.json {
        terminal::print_data(&report::json::to_text(&entries)?)?;
    } else {
        terminal::print(&table(&entries, &terminal::style()))?;
    }
    // Of all languages, some may not be installed; those that are named are wanted.
    let is_named = args.build && !args.languages.is_empty();
    let failed = entries.iter().any(|entry| entry.state == "failed" || is_named && entry.state == "missing");
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A language as `workers` shows it.
#[derive(Debug, Default, Serialize)]
struct LanguageRow {
    name: String,
    key: String,
    variants: Vec<String>,
    package: String,
    toolchain: Option<String>,
    /// `built`, `not-built`, `missing` or `failed`; `ready` if the language needs no build.
    state: &'static str,
    reason: Option<String>,
    remedy: Option<String>,
    folder: Option<String>,
}

impl LanguageRow {
    fn new(language: &Language, result: Result<Built, Unbuilt>) -> Self {
        let entry = Self {
            name: language.name.clone(),
            key: language.key.clone(),
            variants: language.variants.iter().map(|variant| variant.name.clone()).collect(),
            package: language.package.clone(),
            state: "missing",
            ..Self::default()
        };
        let needs_no_build = language.build.is_empty();
        match result {
            Ok(built) => Self {
                toolchain: Some(built.version),
                state: if needs_no_build { "ready" } else { "built" },
                folder: Some(built.folder.display().to_string()),
                ..entry
            },
            Err(Unbuilt::NotYet(version)) => {
                let state = if needs_no_build { "ready" } else { "not-built" };
                Self { toolchain: Some(version), state, ..entry }
            }
            Err(Unbuilt::Missing(missing)) => {
                Self { reason: Some(missing.message), remedy: missing.remedy, ..entry }
            }
            Err(error) => Self { state: "failed", reason: Some(error.to_string()), ..entry },
        }
    }

    /// The last column: the toolchain, or why there is none and how to install it.
    fn remark(&self) -> String {
        match (&self.toolchain, &self.reason, &self.remedy) {
            (Some(version), _, _) => version.clone(),
            (None, Some(reason), Some(remedy)) => format!("{reason}; try: {remedy}"),
            // The compiler's messages are on standard error.
            (None, Some(reason), None) => {
                reason.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
            }
            (None, None, _) => String::new(),
        }
    }
}

/// One row for each language; text that does not fit continues below, in its column.
fn table(entries: &[LanguageRow], style: &Style) -> String {
    let columns = ["language", "type", "variants", "state"].map(col);
    let columns = columns.into_iter().chain([col("toolchain").fit(Fit::Wrap)]);
    let row = |entry: &LanguageRow| {
        let state = entry.state.replace('-', " ");
        vec![entry.name.clone(), entry.key.clone(), entry.variants.join(", "), state, entry.remark()]
    };
    Table::new("", columns, entries.iter().map(row)).terminal(style)
}

/// Reports on standard error each program that was built.
struct BuildReporter(Instant);

impl Observer for BuildReporter {
    fn built(&mut self, language: &str, problem: Option<&str>) {
        let ready = || format!("ready after {:.1} s", self.0.elapsed().as_secs_f64());
        terminal::remark(&format!("{language}: {}", problem.map_or_else(ready, str::to_owned)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, state: &'static str) -> LanguageRow {
        LanguageRow {
            name: name.to_owned(),
            key: name.to_lowercase(),
            variants: vec!["idiomatic".to_owned(), "tuned".to_owned()],
            package: "pack".to_owned(),
            toolchain: (state != "missing").then(|| format!("{name} 1.0")),
            state,
            reason: (state == "missing").then(|| format!("no `{name}` here")),
            remedy: (state == "missing").then(|| "apt-get install pack".to_owned()),
            folder: None,
        }
    }

    #[test]
    fn the_table_keeps_its_columns() {
        let expected = "
 language  type     variants          state      toolchain
 Go        go       idiomatic, tuned  not built  Go 1.0
 Fortran   fortran  idiomatic, tuned  missing    no `Fortran` here; try:
                                                 apt-get install pack
";
        let entries = [entry("Go", "not-built"), entry("Fortran", "missing")];
        assert_eq!(format!("\n{}", table(&entries, &Style { width: 75, ..Style::default() })), expected);
    }
}
