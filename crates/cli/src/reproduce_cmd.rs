//! `hosepipe reproduce`: a published study run here, its figures beside ours.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use model::{Observer, Record, StudyRecord};
use report::read::Loaded;
use study::{Have, Job, STUDIES, Scale, Study};

use crate::bar::Bar;
use crate::destination::Destination;
use crate::outputs::Outputs;
use crate::record::{load, record_head};
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;

/// Run a published study on this machine, and print its published figures next to the new ones
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe reproduce bradford --json b.json         pipes over block sizes, one thread and two (2001)
  hosepipe reproduce stover --scale 0.1             six ways between two programs, in a tenth (2002)
  hosepipe reproduce comp517 --html page.html       pipes made of files and sockets (2023)
  hosepipe reproduce kernel-pipe --part calls,room  parts of a study; a wrong name lists them (2026)
  hosepipe reproduce bradford --resume b.json       go on where a run was stopped, or show it again

The record of --json, or the one resumed, is written after each part.
What each study did, and what is done differently here, is in docs/STUDY-*.md.
Exit status: 0 all measured; 1 something failed or differed; 2 the command line is wrong, or there is not enough \
disk or memory; 130 stopped by Ctrl-C, with what was finished saved.")]
pub(crate) struct ReproduceArgs {
    /// The study
    #[arg(value_name = "STUDY", value_parser = typed::one_of(STUDIES))]
    study: &'static Study,

    /// How much of the study's bytes, counts and repetitions, as in 0.1
    #[arg(long, value_name = "X", default_value_t = Scale::FULL)]
    scale: Scale,

    /// Only these parts of the study
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    part: Vec<String>,

    /// Go on with a record: parts that are complete are not run again
    #[arg(long, value_name = "RECORD")]
    resume: Option<PathBuf>,

    /// A record made by the Windows worker, to stand beside ours (bradford)
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

/// Runs what is missing, prints the tables, writes what was asked for.
pub(crate) fn run(args: &ReproduceArgs) -> anyhow::Result<ExitCode> {
    check(args)?;
    let mut record = begin(args)?;
    if args.study.is_missing_any(&args.part, &record) {
        Have::here(&model::temporary_folder()).suffices(args.study, args.scale).map_err(UsageError)?;
    }
    let file = |to: &Destination| to.file().map(PathBuf::from);
    let save = args.outputs.of("json").map_or(args.resume.clone(), file).map(Destination::File);
    let (stop, outcome) = conduct(args, &mut record, &save)?;

    study::summarise(&mut record);
    if let Some(resumed) = save.filter(|_| args.outputs.of("json").is_none()) {
        save_to(&resumed, &record)?;
    }
    if let Some(folder) = &args.figures {
        for (name, svg) in study::view(&record).figures() {
            Destination::File(folder.join(format!("{name}.svg"))).write(&svg)?;
        }
    }
    let failed = record.parts.iter().any(study::failed);
    args.outputs.show(Loaded::new(args.study.name, record), &terminal::style())?;
    // What was finished has been shown and saved; now the reason why it is not all.
    outcome?;
    Ok(stop.exit_code(failed))
}

/// Refuses what could not be done or written, before anything is run.
fn check(args: &ReproduceArgs) -> anyhow::Result<()> {
    let parts = args.study.parts();
    if let Some(unknown) = args.part.iter().find(|name| parts.iter().all(|part| part.name != **name)) {
        let known: Vec<String> = parts.iter().map(|part| format!("{} ({})", part.name, part.title)).collect();
        let (study, known) = (args.study, known.join(", "));
        return Err(UsageError(format!("{study} has no part `{unknown}`; it has: {known}")).into());
    }
    if !args.windows.is_empty() && !args.study.takes_foreign_records() {
        return Err(UsageError("--windows goes with the study bradford".to_owned()).into());
    }
    args.outputs.check()
}

/// The record to be filled: a new one, or the one to go on with.
fn begin(args: &ReproduceArgs) -> anyhow::Result<StudyRecord> {
    // The facts are read before the run: afterwards the load would be our own.
    let host = host::facts();
    let mut record = match &args.resume {
        None => StudyRecord {
            head: record_head(host, SystemTime::now()),
            study: args.study.name.to_owned(),
            scale: args.scale.share(),
            seed: args.seed,
            interrupted: false,
            parts: Vec::new(),
        },
        Some(path) => {
            let Record::Study(record) = load(path)?.record else {
                let problem = format!("{}: this is not a record of `hosepipe reproduce`", path.display());
                return Err(UsageError(problem).into());
            };
            let here = args.study.is_missing_any(&args.part, &record).then_some(&host);
            study::check_resume(&record, args.study.name, args.scale, here)
                .map_err(|problem| UsageError(format!("cannot go on with {}: {problem}", path.display())))?;
            record
        }
    };
    for path in &args.windows {
        let Record::Bench(bench) = load(path)?.record else {
            let problem = format!("{}: --windows takes a record of the Windows worker", path.display());
            return Err(UsageError(problem).into());
        };
        let part = study::foreign_part(bench, &path.display().to_string());
        record.parts.retain(|other| other.name != part.name);
        record.parts.push(part);
    }
    Ok(record)
}

/// Runs the missing parts. What ended them early comes back beside who asked for it.
fn conduct(
    args: &ReproduceArgs,
    record: &mut StudyRecord,
    save: &Option<Destination>,
) -> anyhow::Result<(StopRequest, anyhow::Result<()>)> {
    let cpus = host::cpus();
    let hosepipe = std::env::current_exe().context("this program's own file")?;
    // Both before anything is made: what is left behind is theirs.
    let cleaner = mechanism::start_cleaner().context("cannot start the process that cleans up after us")?;
    let stop = StopRequest::listen()?;
    let job = Job {
        study: args.study,
        scale: args.scale,
        seed: record.seed,
        cpus: &cpus,
        hosepipe: &hosepipe,
        shell: &args.shell,
        stop: &|| stop.is_set(),
        note_signal: &|signal| stop.note(Some(signal)),
    };
    let mut keeper = Keeper { bar: Bar::of_shares("{prefix} {bar:20} {wide_msg}"), save: save.clone() };
    let outcome = study::run(&job, record, &args.part, &mut keeper);
    keeper.bar.finish();
    drop(cleaner);
    Ok((stop, outcome))
}

/// Shows progress, and saves the record after each part.
struct Keeper {
    bar: Bar,
    save: Option<Destination>,
}

impl Observer for Keeper {
    fn part_started(&mut self, name: &str, title: &str, number: usize, of: usize) {
        self.bar.say_before(&format!("{number}/{of} {name}"));
        self.bar.show(title, Some(0.0));
    }

    fn progress(&mut self, what: &str, done: Option<f64>) {
        self.bar.show(what, done);
    }

    fn part_ended(&mut self, record: &StudyRecord) -> io::Result<()> {
        match &self.save {
            Some(file @ Destination::File(_)) => save_to(file, record).map_err(io::Error::other),
            _ => Ok(()),
        }
    }
}

fn save_to(destination: &Destination, record: &StudyRecord) -> anyhow::Result<()> {
    let mut record = record.clone();
    study::summarise(&mut record);
    destination.write(&report::json::to_text(&model::Record::from(record))?)
}
