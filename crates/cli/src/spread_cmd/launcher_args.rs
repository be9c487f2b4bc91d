//! The options of `hosepipe spread` for partitions on other machines: `--on slurm|spark|ssh` and those that go with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use remote::launcher::Launcher;
use remote::spread::{self, InputFile, SpreadJob};

use super::SpreadArgs;
use crate::terminal::{self, UsageError, refuse, usage};
use crate::typed;

/// The launcher of the partitions, and its options.
#[derive(Debug, Args)]
pub(crate) struct LauncherArgs {
    /// The launcher of the partitions; for Slurm and Spark a program is printed [default: local, with --hosts ssh]
    #[arg(long, value_name = "LAUNCHER", value_parser = typed::one_of(Launcher::OF_SPREAD))]
    on: Option<Launcher>,

    /// The hosts that ssh reaches; alone it means --on ssh
    #[arg(long, value_name = "HOST,HOST", value_delimiter = ',', value_parser = typed::host, required_if_eq("on", "ssh"))]
    pub(super) hosts: Vec<String>,

    /// Submit that program to Slurm or Spark, wait, and print the output of the reduce
    #[arg(long)]
    submit: bool,

    /// An option for sbatch or spark-submit, as in --engine-option=--partition=long
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(super) engine_option: Vec<String>,
}

impl LauncherArgs {
    /// The launcher of the partitions.
    pub(super) fn launcher(&self) -> Launcher {
        let default = if self.hosts.is_empty() { Launcher::Local } else { Launcher::Ssh };
        self.on.unwrap_or(default)
    }

    /// Whether a program for Slurm or Spark is printed, and nothing is run.
    pub(super) fn only_prints(&self) -> bool {
        !self.launcher().starts_each() && !self.submit
    }

    /// The path of sbatch, spark-submit or ssh; `None` if none of them is needed.
    ///
    /// # Errors
    /// It is not installed.
    pub(super) fn submitter(&self) -> Result<Option<PathBuf>, String> {
        let is_needed = self.submit || self.launcher() == Launcher::Ssh;
        is_needed.then(|| self.launcher().program()).transpose()
    }

    /// Refuses options that do not go together.
    pub(super) fn check(&self, args: &SpreadArgs) -> anyhow::Result<()> {
        let launcher = self.launcher();
        let has_program_options = self.submit || !self.engine_option.is_empty();
        let needs_submit = args.stats || !args.outputs.is_empty();
        refuse([
            (
                launcher.starts_each() && has_program_options,
                "--submit and --engine-option are for --on slurm or --on spark",
            ),
            (
                self.only_prints() && needs_submit,
                "--stats, --json and the like need --submit: without it the program is only printed",
            ),
            (launcher != Launcher::Ssh && !self.hosts.is_empty(), "--hosts goes with --on ssh"),
            (
                launcher != Launcher::Local && args.work.is_none(),
                "--on slurm, spark and ssh need --work DIR, a folder under the same path on every node",
            ),
        ])
    }

    /// The inputs, in the order of the arguments. Only Spark reads URLs.
    pub(super) fn inputs(&self, args: &SpreadArgs, typed: &[OsString]) -> anyhow::Result<Vec<InputFile>> {
        let launcher = self.launcher();
        let mut inputs = Vec::new();
        for typed in typed {
            let path = Path::new(typed);
            if !spread::is_url(path) {
                inputs.extend(spread::files(typed).map_err(UsageError)?);
            } else if launcher != Launcher::Spark || args.split.is_some() || args.check.is_some() {
                return usage(format!(
                    "{}: only --on spark reads URLs, and only whole ones: --split and --check need files of this machine",
                    model::one_line(&path.to_string_lossy())
                ));
            } else {
                inputs.push(InputFile { path: path.to_owned(), bytes: 0, changed: (0, 0) });
            }
        }
        Ok(inputs)
    }

    /// Refuses paths, hosts and options that cannot be written into the program, or into a command line for the remote shell.
    pub(super) fn check_words(&self, work: &Path, hosepipe: &Path) -> anyhow::Result<()> {
        if self.launcher() == Launcher::Local {
            return Ok(());
        }
        let here = std::env::current_dir().context("the current directory")?;
        let options = self.engine_option.iter().chain(&self.hosts).map(Path::new);
        let mut words = options.chain([work, hosepipe, &here]);
        Ok(words.try_for_each(|word| model::script_word(word).map(drop)).map_err(UsageError)?)
    }
}

/// Prints the program for Slurm or Spark, and the command that runs it.
pub(super) fn print(job: &SpreadJob<'_>) -> anyhow::Result<ExitCode> {
    let (text, by_hand) = job.program().context("the program for the launcher")?;
    terminal::print_data(&text)?;
    let quoted = |word: &String| format!(" {}", model::shell_quoted(word.as_bytes()));
    terminal::remark(&format!(
        "To run it: {}{}, or the same command with --submit. The output of the reduce will be in {}",
        by_hand[0],
        by_hand[1..].iter().map(quoted).collect::<String>(),
        job.work.folder().join("reduced").display()
    ));
    Ok(ExitCode::SUCCESS)
}
