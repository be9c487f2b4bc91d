//! `hosepipe report`: shows saved records, as tables in the terminal or as one page.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use model::visible;
use report::Style;
use report::read::Loaded;

use crate::outputs::Outputs;
use crate::record::load;
use crate::terminal;

/// Show records: as tables, or as one page with charts
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/report.txt"))]
pub(crate) struct ReportArgs {
    /// Records, as --json wrote them (- is standard input)
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,

    /// Print all remarks under the tables, not only the most important ones
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    outputs: Outputs,
}

/// Reads the records and shows them.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    let records = args.records.iter().map(|path| load(path)).collect::<anyhow::Result<Vec<Loaded>>>()?;
    for sentence in report::disjoint_records(&records) {
        terminal::remark(&format!("hosepipe: {sentence}"));
    }
    if args.outputs.is_empty() {
        let style = Style { explain: args.explain, ..terminal::style() };
        terminal::print_painted(&tables(&records, &style))?;
    }
    args.outputs.write(&records)?;
    Ok(ExitCode::SUCCESS)
}

/// The tables of each record, under the record's name if there are several.
fn tables(records: &[Loaded], style: &Style) -> String {
    let mut text = String::new();
    for loaded in records {
        if records.len() > 1 {
            text.push_str(&format!(
                "{}== {} ==\n",
                if text.is_empty() { "" } else { "\n" },
                visible(&loaded.name)
            ));
        }
        text.push_str(&report::terminal(&loaded.record, style, study::view));
    }
    text
}
