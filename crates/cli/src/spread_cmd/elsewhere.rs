//! `hosepipe spread --on slurm|spark`: the partitions on other machines.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use remote::spread::{self, Engine, InputFile, Job};

use super::{SpreadArgs, UsageError, terminal};

/// Where the partitions are run.
#[derive(Debug, Args)]
pub(crate) struct Elsewhere {
    /// Who runs the partitions; for Slurm and Spark a program is printed
    #[arg(long, value_name = "ENGINE", default_value = "local", value_parser = ["local", "slurm", "spark"])]
    on: String,

    /// Hand that program to the engine, wait, and print what the reduce does
    #[arg(long)]
    submit: bool,

    /// An option for sbatch or spark-submit, as in --engine-option=--partition=long
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    engine_option: Vec<String>,
}

impl Elsewhere {
    /// Who runs the partitions.
    pub(super) fn engine(&self) -> Engine {
        match self.on.as_str() {
            "slurm" => Engine::Slurm,
            "spark" => Engine::Spark,
            _ => Engine::Here,
        }
    }

    /// What takes the engine's program, where that is not only to be printed.
    ///
    /// # Errors
    /// A sentence: it is not installed.
    pub(super) fn submitter(&self) -> Result<Option<PathBuf>, String> {
        if self.submit { self.engine().submitter() } else { Ok(None) }
    }

    /// What is read, in the order of the words; with Spark a URL is what Spark reads.
    pub(super) fn inputs(&self, args: &SpreadArgs) -> anyhow::Result<Vec<InputFile>> {
        let is_here = self.engine() == Engine::Here;
        if is_here && (self.submit || !self.engine_option.is_empty()) {
            let words = "--submit and --engine-option are for --on slurm or --on spark";
            return Err(UsageError(words.to_owned()).into());
        }
        if !is_here && !self.submit && (args.stats || !args.outputs.is_empty()) {
            let words = "--stats, --json and the like need --submit: without it the program is only printed";
            return Err(UsageError(words.to_owned()).into());
        }
        if !is_here && args.work.is_none() {
            let words =
                "--on slurm and --on spark need --work DIR, a folder under the same path on every node";
            return Err(UsageError(words.to_owned()).into());
        }
        let mut inputs = Vec::new();
        for typed in &args.inputs {
            let path = Path::new(typed);
            if !spread::is_url(path) {
                inputs.extend(spread::files(typed).map_err(UsageError)?);
            } else if self.engine() != Engine::Spark || args.split.is_some() || args.check.is_some() {
                let words =
                    "a URL is read by --on spark only, whole: --split and --check need files of this machine";
                let url = model::one_line(&path.to_string_lossy());
                return Err(UsageError(format!("{url}: {words}")).into());
            } else {
                inputs.push(InputFile { path: path.to_owned(), bytes: 0, changed: (0, 0) });
            }
        }
        Ok(inputs)
    }

    /// Refuses what cannot stand in an engine's program.
    pub(super) fn check_words(&self, work: &Path, hosepipe: &Path) -> Result<(), UsageError> {
        if self.engine() == Engine::Here {
            return Ok(());
        }
        let options = self.engine_option.iter().map(OsStr::new);
        let mut words = options.chain([work.as_os_str(), hosepipe.as_os_str()]);
        words.try_for_each(|word| model::script_word(word).map(drop)).map_err(UsageError)
    }

    /// What would be run here, by the engine.
    pub(super) fn job<'a>(
        &'a self,
        here: Job<'a>,
        submitter: Option<&'a Path>,
        jobs: Option<u16>,
    ) -> Job<'a> {
        match self.engine() {
            Engine::Here => here,
            engine => {
                Job { engine, submitter, options: &self.engine_option, jobs: jobs.map(usize::from), ..here }
            }
        }
    }
}

/// Prints the engine's program, and says how it is run.
pub(super) fn print(job: &Job<'_>) -> anyhow::Result<ExitCode> {
    let (text, by_hand) = job.program().context("the program for the engine")?;
    terminal::print_data(&text)?;
    let quoted = |word: &String| format!(" {}", model::shell_quoted(word.as_bytes()));
    terminal::remark(&format!(
        "To run it: {}{}, or the same command with --submit. What the reduce writes will be in {}",
        by_hand[0],
        by_hand[1..].iter().map(quoted).collect::<String>(),
        job.work.folder().join("reduced").display()
    ));
    Ok(ExitCode::SUCCESS)
}
