//! `hosepipe manual DIR`: the manual pages, made from the definition of the command line. Packagers run it after the build: a build
//! script would have to compile the whole command line a second time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde::Deserialize;

use crate::help::{self, HelpPart};

/// Write the manual pages into a folder
#[derive(Debug, Args)]
pub(crate) struct ManualArgs {
    /// The folder; it is created if it does not exist
    folder: PathBuf,
}

/// The sections ENVIRONMENT and FILES: `manual.toml`.
#[derive(Deserialize)]
struct Tables {
    environment: Vec<Row>,
    files: Vec<Row>,
}

/// A variable or a file.
#[derive(Deserialize)]
struct Row {
    name: String,
    /// The verbs that use it; empty: all.
    #[serde(default)]
    verbs: Vec<String>,
    meaning: String,
}

/// Writes `hosepipe.1` and a page for each verb.
pub(crate) fn run(args: &ManualArgs) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let tables: Tables =
        model::from_toml(include_str!("manual.toml")).map_err(anyhow::Error::msg).context("manual.toml")?;
    let mut tree = crate::Cli::command().disable_help_subcommand(true);
    tree.build();
    write(folder, "hosepipe", &tree, &tables)?;
    for verb in tree.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write(folder, &format!("hosepipe-{}", verb.get_name()), verb, &tables)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, name: &str, command: &Command, tables: &Tables) -> anyhow::Result<()> {
    let file = folder.join(format!("{name}.1"));
    let page = page(name, command, tables).context("cannot make a manual page")?;
    fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))
}

/// A page: the sections of clap_mangen, and those made of the text after the options of the help.
fn page(name: &str, command: &Command, tables: &Tables) -> std::io::Result<String> {
    let is_whole = command.has_subcommands();
    let man = Man::new(command.clone()).title(name).source(concat!("hosepipe ", env!("CARGO_PKG_VERSION")));
    let man = man.manual("hosepipe");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    let mut rest = Roff::new();
    let parts = command.get_after_help().map(|text| help::parts(&text.to_string())).unwrap_or_default();
    for part in &parts {
        if let HelpPart::Paragraph(text) = part
            && text != "Examples:"
        {
            rest.control("PP", []).text([roman(text)]);
        }
    }
    rest.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if is_whole {
        man.render_subcommands_section(&mut page)?;
    }
    closing(command.get_name(), is_whole, &parts, tables).to_writer(&mut page)?;
    Ok(ascii(&String::from_utf8_lossy(&page)))
}

/// Letters beyond ASCII as troff names them (groff_char(7)), so that it reads the page without a preprocessor.
fn ascii(page: &str) -> String {
    let name = |letter: char| match letter {
        _ if letter.is_ascii() => letter.to_string(),
        _ => format!("\\[u{:04X}]", u32::from(letter)),
    };
    page.chars().map(name).collect()
}

/// The sections EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES and SEE ALSO.
fn closing(verb: &str, is_whole: bool, parts: &[HelpPart], tables: &Tables) -> Roff {
    let mut page = Roff::new();
    for part in parts {
        if let HelpPart::ExitStatus(text) = part {
            page.control("SH", ["EXIT STATUS"]);
            page.text([roman(text)]);
        }
    }
    for (heading, rows) in [("ENVIRONMENT", &tables.environment), ("FILES", &tables.files)] {
        let is_used =
            |row: &&Row| is_whole || row.verbs.is_empty() || row.verbs.iter().any(|one| one == verb);
        let rows: Vec<&Row> = rows.iter().filter(is_used).collect();
        if !rows.is_empty() {
            page.control("SH", [heading]);
        }
        for Row { name, verbs, meaning } in rows {
            page.control("TP", []).text([bold(name)]);
            let verbs = if is_whole && !verbs.is_empty() {
                format!(" ({})", verbs.join(", "))
            } else {
                String::new()
            };
            page.text([roman(format!("{meaning}{verbs}"))]);
        }
    }
    page.control("SH", ["EXAMPLES"]);
    for part in parts {
        if let HelpPart::Example { command, comment, .. } = part {
            page.control("TP", []).text([bold(command)]);
            page.text([roman(comment)]);
        }
    }
    page.control("SH", ["SEE ALSO"]);
    let see = if is_whole { "bash(1), pipe(7)" } else { "hosepipe(1), pipe(7)" };
    page.text([roman(format!("{see}; hosepipe help links, hosepipe help method, hosepipe help record"))]);
    page
}
