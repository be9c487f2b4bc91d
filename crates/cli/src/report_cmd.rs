//! `hosepipe report`: records read back, as tables in the terminal or as one page.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use model::visible;
use report::Style;
use report::read::{AnyRecord, Loaded};

use crate::destination::{Destination, OUTPUTS};
use crate::record::load;
use crate::terminal;

/// Show records again: as tables, or as one page with charts
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe bench --json here.json                        a record
  hosepipe report here.json                              its table again
  hosepipe report here.json --html here.html             charts, in one file that works offline
  hosepipe report here.json there.json --html both.html  two hosts side by side
  hosepipe report bench.json run.json compare.json --html all.html

Records of bench, run, compare and reproduce may be mixed. Cases that several records have are put side by side; where
there are none, each record stands by itself and a remark says so.")]
pub(crate) struct ReportArgs {
    /// Records, as --json wrote them (- is standard input)
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,

    /// Write one page with charts (- is standard output)
    #[arg(long, value_name = "F", help_heading = OUTPUTS, value_parser = Destination::parser())]
    html: Option<Destination>,
}

/// Reads the records and shows them.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    if let Some(html) = &args.html {
        html.check()?;
    }
    let records = args.records.iter().map(|path| load(path)).collect::<anyhow::Result<Vec<Loaded>>>()?;
    for sentence in report::page::strangers(&records) {
        terminal::remark(&format!("hosepipe: {sentence}"));
    }
    match &args.html {
        Some(html) => html.write(&report::page::render(&records, study::view))?,
        None => terminal::print_painted(&tables(&records, &terminal::style()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What each record's command prints of it, under the record's name where there are several.
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
        text.push_str(&table(&loaded.record, style));
    }
    text
}

fn table(record: &AnyRecord, style: &Style) -> String {
    match record {
        AnyRecord::Bench(record) => {
            let advice = report::advice(record);
            let advice = advice
                .iter()
                .map(|line| format!("\n{}\n", terminal::wrap(&visible(line), style.width).join("\n")));
            report::table::render(record, style) + &advice.collect::<String>()
        }
        AnyRecord::Run(record) => report::stages::render(record, style),
        AnyRecord::Compare(record) => report::comparison::render(record, style),
        AnyRecord::Study(record) => report::study::render(&study::view(record), style),
    }
}
