//! `hosepipe manual DIR`: the manual pages, made from the definition of the command line. Packagers run it after the build: a build
//! script would have to compile the whole command line a second time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::help::{self, HelpPart};

/// Write the manual pages into a folder
#[derive(Debug, Args)]
pub(crate) struct ManualArgs {
    /// The folder; it is made where it is missing
    folder: PathBuf,
}

/// The verbs that a variable or a file is of interest to; none: all.
type Verbs = &'static [&'static str];

const RUN_SHELLS: Verbs = &["run", "sh", "compare", "spread", "reproduce"];
const BUILD_WORKERS: Verbs = &["bench", "workers", "reproduce"];

const ENVIRONMENT: &[(&str, Verbs, &str)] = &[
    ("TMPDIR", &[], "The folder for temporary files. Default: /tmp."),
    ("NO_COLOR", &[], "Where it is set and not empty, nothing is coloured."),
    ("TERM", &[], "With the value dumb nothing is coloured, and no line is redrawn."),
    ("COLUMNS", &[], "The width of tables where standard output is no terminal. Default: 100."),
    ("PATH", RUN_SHELLS, "The folders in which the shell of --shell is looked for."),
    ("SHELL", &["sh"], "The shell that is started where --shell names none."),
    ("XDG_CONFIG_HOME", &["sh"], "The folder of hosepipe/config.toml. Default: ~/.config."),
    (
        "XDG_RUNTIME_DIR",
        &["bench", "run", "sh", "compare", "spread"],
        "The folder of short-lived names. Default: /tmp.",
    ),
    ("HOSEPIPE_WORKERS", BUILD_WORKERS, "A folder that is read in place of the workers within the program."),
    ("XDG_CACHE_HOME", BUILD_WORKERS, "The folder of hosepipe/workers. Default: ~/.cache."),
    (
        "GLIBC_TUNABLES",
        &["boost", "run", "sh", "compare"],
        "Extended for programs whose large buffers are to be aligned; a threshold of your own stays.",
    ),
    ("SPARK_HOME", &["spread"], "Where spark-submit is, for --on spark."),
];

const FILES: &[(&str, Verbs, &str)] = &[
    ("~/.config/hosepipe/config.toml", &["sh"], "The settings with which a prompt begins."),
    ("~/.cache/hosepipe/workers/", BUILD_WORKERS, "Workers that were built."),
    (
        "/tmp/hosepipe-shells-UID/",
        RUN_SHELLS,
        "Where in each shell the call of pipe(2) is; in XDG_RUNTIME_DIR where that is set.",
    ),
    (
        "/tmp/hosepipe-copies-UID",
        &["bench", "run", "boost", "top", "doctor"],
        "The speed of copies by address, measured once after each start of the machine; in XDG_RUNTIME_DIR where that is set.",
    ),
];

/// Writes `hosepipe.1` and a page for each verb.
pub(crate) fn run(args: &ManualArgs) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut tree = crate::Cli::command().disable_help_subcommand(true);
    tree.build();
    write(folder, "hosepipe", &tree)?;
    for verb in tree.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write(folder, &format!("hosepipe-{}", verb.get_name()), verb)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, name: &str, command: &Command) -> anyhow::Result<()> {
    let file = folder.join(format!("{name}.1"));
    let page = page(name, command).context("cannot make a manual page")?;
    fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))
}

/// A page: the sections of clap_mangen, and those that the closing words of the help have.
fn page(name: &str, command: &Command) -> std::io::Result<String> {
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
        if let HelpPart::Paragraph(text) = part {
            rest.control("PP", []).text([roman(text)]);
        }
    }
    rest.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if is_whole {
        man.render_subcommands_section(&mut page)?;
    }
    closing(command.get_name(), is_whole, &parts).to_writer(&mut page)?;
    Ok(ascii(&String::from_utf8_lossy(&page)))
}

/// Letters beyond ASCII as troff names them (groff_char(7)), so that it reads the page without a preprocessor.
fn ascii(page: &str) -> String {
    page.chars()
        .map(
            |letter| {
                if letter.is_ascii() { letter.to_string() } else { format!("\\[u{:04X}]", u32::from(letter)) }
            },
        )
        .collect()
}

/// The sections EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES and SEE ALSO.
fn closing(verb: &str, is_whole: bool, parts: &[HelpPart]) -> Roff {
    let mut page = Roff::new();
    for part in parts {
        if let HelpPart::ExitStatus(text) = part {
            page.control("SH", ["EXIT STATUS"]);
            page.text([roman(text)]);
        }
    }
    for (heading, table) in [("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)] {
        let mut rows = table
            .iter()
            .filter(|(_, verbs, _)| is_whole || verbs.is_empty() || verbs.contains(&verb))
            .peekable();
        if rows.peek().is_some() {
            page.control("SH", [heading]);
        }
        for (name, verbs, meaning) in rows {
            page.control("TP", []).text([bold(*name)]);
            let of_verbs = if is_whole && !verbs.is_empty() {
                format!(" ({})", verbs.join(", "))
            } else {
                String::new()
            };
            page.text([roman(format!("{meaning}{of_verbs}"))]);
        }
    }
    let examples = parts.iter().filter_map(|part| match part {
        HelpPart::Example { command, comment } => Some((command, comment)),
        _ => None,
    });
    page.control("SH", ["EXAMPLES"]);
    for (command, comment) in examples {
        page.control("TP", []).text([bold(command)]);
        page.text([roman(comment)]);
    }
    page.control("SH", ["SEE ALSO"]);
    let see = if is_whole { "bash(1), pipe(7)" } else { "hosepipe(1), pipe(7)" };
    page.text([roman(format!("{see}; hosepipe help links, hosepipe help method, hosepipe help record"))]);
    page
}
