//! `hosepipe reproduce`: runs a published study on this machine, and shows its published figures next to the new ones.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use model::{Observer, Record, StudyRecord};
use report::read::Loaded;
use study::{STUDIES, Scale, Study, StudyRequest};

use crate::bar::Bar;
use crate::destination::Destination;
use crate::outputs::Outputs;
use crate::record::{self, load};
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, usage};
use crate::typed;

/// Run a published study on this machine, and print its published figures next to the new ones
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/reproduce.txt"))]
pub(crate) struct ReproduceArgs {
    /// The study
    #[arg(value_name = "STUDY", value_parser = typed::one_of(STUDIES))]
    study: &'static Study,

    /// Factor for the study's bytes, counts and repetitions, as in 0.1
    #[arg(long, value_name = "X", default_value_t = Scale::FULL)]
    scale: Scale,

    /// Only these parts of the study
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    part: Vec<String>,

    /// Continue a record: its complete parts are not run again
    #[arg(long, value_name = "RECORD")]
    resume: Option<PathBuf>,

    /// A record of the Windows worker, shown beside the new figures (bradford)
    #[arg(long, value_name = "RECORD")]
    windows: Vec<PathBuf>,

    /// Seed of the order within rounds and of random payloads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::seed)]
    seed: u64,

    /// The shell that runs pipelines
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: String,

    #[command(flatten)]
    outputs: Outputs,

    /// Write each figure as SVG into this folder
    #[arg(long, value_name = "DIR", hide = true)]
    figures: Option<PathBuf>,
}

/// Runs the missing parts, prints the tables, and writes the requested outputs.
pub(crate) fn run(args: &ReproduceArgs) -> anyhow::Result<ExitCode> {
    check(args)?;
    let mut record = begin(args)?;
    let file = |to: &Destination| to.file().map(PathBuf::from);
    let save = args.outputs.destination("json").map_or(args.resume.clone(), file).map(Destination::File);
    let (stop, outcome) = run_parts(args, &mut record, &save)?;

    study::summarise(&mut record);
    if let Some(resumed) = save.filter(|_| args.outputs.destination("json").is_none()) {
        save_to(&resumed, &record)?;
    }
    if let Some(folder) = &args.figures {
        for (name, svg) in study::view(&record).charts() {
            Destination::File(folder.join(format!("{name}.svg"))).write(&svg)?;
        }
    }
    let failed = record.parts.iter().any(study::failed);
    let is_empty = study::is_without_figures(&record);
    args.outputs.show(Loaded::new(args.study.name, record), &terminal::style())?;
    // An error of a part is reported after the finished parts were shown and saved.
    outcome?;
    Ok(stop.exit_code_of(is_empty, failed))
}

/// Checks the arguments before anything is run.
fn check(args: &ReproduceArgs) -> anyhow::Result<()> {
    let parts = args.study.parts();
    if let Some(unknown) = args.part.iter().find(|name| parts.iter().all(|part| part.name != **name)) {
        let known: Vec<String> = parts.iter().map(|part| format!("{} ({})", part.name, part.title)).collect();
        let (study, known) = (args.study, known.join(", "));
        return usage(format!("{study} has no part `{unknown}`; it has: {known}"));
    }
    if !args.windows.is_empty() && !args.study.takes_foreign_records() {
        return usage("--windows goes with the study bradford");
    }
    args.outputs.check()
}

/// A new record, or the one of --resume.
fn begin(args: &ReproduceArgs) -> anyhow::Result<StudyRecord> {
    let head = record::begin(true);
    let mut record = match &args.resume {
        None => StudyRecord {
            head,
            study: args.study.name.to_owned(),
            scale: args.scale.share(),
            seed: args.seed,
            interrupted: false,
            parts: Vec::new(),
        },
        Some(path) => {
            let Record::Study(record) = load(path)?.record else {
                return usage(format!("{}: this is not a record of `hosepipe reproduce`", path.display()));
            };
            let here = args.study.is_missing_any(&args.part, &record).then_some(&head.host);
            study::check_resume(&record, args.study.name, args.scale, here)
                .map_err(|problem| UsageError(format!("cannot resume {}: {problem}", path.display())))?;
            record
        }
    };
    for path in &args.windows {
        let Record::Bench(bench) = load(path)?.record else {
            return usage(format!("{}: --windows takes a record of the Windows worker", path.display()));
        };
        let part = study::foreign_part(bench, &path.display().to_string());
        record.parts.retain(|other| other.name != part.name);
        record.parts.push(part);
    }
    Ok(record)
}

/// Runs the missing parts. Returns the stop request, and the error if one ended them early.
fn run_parts(
    args: &ReproduceArgs,
    record: &mut StudyRecord,
    save: &Option<Destination>,
) -> anyhow::Result<(StopRequest, anyhow::Result<()>)> {
    let cpus = host::cpus();
    let hosepipe = std::env::current_exe().context("cannot find the file of this program")?;
    // Started first: it removes what the parts leave behind.
    let cleaner = mechanism::start_cleaner().context("cannot start the process that cleans up after us")?;
    let stop = StopRequest::listen()?;
    let request = StudyRequest {
        study: args.study,
        scale: args.scale,
        seed: record.seed,
        cpus: &cpus,
        hosepipe: &hosepipe,
        shell: &args.shell,
        stop: &|| stop.is_set(),
        note_signal: &|signal| stop.note(Some(signal)),
    };
    let mut progress = Progress { bar: Bar::of_shares("{prefix} {bar:20} {wide_msg}"), save: save.clone() };
    let outcome = study::run(&request, record, &args.part, &mut progress);
    drop((progress, cleaner));
    Ok((stop, outcome))
}

/// Shows progress, and saves the record after each part.
struct Progress {
    bar: Bar,
    save: Option<Destination>,
}

impl Observer for Progress {
    fn part_started(&mut self, name: &str, title: &str, number: usize, of: usize) {
        self.bar.set_prefix(&format!("{number}/{of} {name}"));
        self.bar.show(title, Some(0.0));
    }

    fn progress(&mut self, what: &str, done: Option<f64>) {
        self.bar.show(what, done);
    }

    fn part_ended(&mut self, record: &StudyRecord) -> io::Result<()> {
        self.save.iter().try_for_each(|file| save_to(file, record)).map_err(io::Error::other)
    }
}

fn save_to(destination: &Destination, record: &StudyRecord) -> anyhow::Result<()> {
    let mut record = record.clone();
    study::summarise(&mut record);
    destination.write(&report::json::to_text(&model::Record::from(record))?)
}
