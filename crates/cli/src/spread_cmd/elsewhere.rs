//! `hosepipe spread --on slurm|spark`: the partitions on other machines.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::Context;
use clap::Args;
use spread::{Engine, Failure, InputFile, Job, SpreadPlan, Work};

use super::{Bar, SpreadArgs, SpreadProgress, StopRequest, UsageError, terminal};

/// Where the partitions are run.
#[derive(Debug, Args)]
pub(crate) struct Elsewhere {
    /// Who runs the partitions; for Slurm and Spark a program is printed
    #[arg(long, value_name = "ENGINE", default_value = "local", value_parser = ["local", "slurm", "spark"])]
    on: String,

    /// Hand that program to the engine, wait, and print what the reduce does
    #[arg(long)]
    pub(super) submit: bool,

    /// An option for sbatch or spark-submit, as in --engine-option=--partition=long
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    engine_option: Vec<String>,
}

impl Elsewhere {
    /// The engine, where it is not this machine.
    pub(super) fn engine(&self) -> Option<Engine> {
        match self.on.as_str() {
            "slurm" => Some(Engine::Slurm),
            "spark" => Some(Engine::Spark),
            _ => None,
        }
    }

    /// What is read, in the order of the words; with Spark a URL is what Spark reads.
    pub(super) fn inputs(&self, args: &SpreadArgs) -> anyhow::Result<Vec<InputFile>> {
        if self.engine().is_none() && (self.submit || !self.engine_option.is_empty()) {
            let words = "--submit and --engine-option are for --on slurm or --on spark";
            return Err(UsageError(words.to_owned()).into());
        }
        if self.engine().is_some() && args.work.is_none() {
            let words =
                "--on slurm and --on spark need --work DIR, a folder under the same path on every node";
            return Err(UsageError(words.to_owned()).into());
        }
        let mut inputs = Vec::new();
        for typed in &args.inputs {
            let path = Path::new(typed);
            if !spread::is_url(path) {
                let files = spread::files(std::slice::from_ref(typed));
                inputs.extend(files.map_err(|problem| UsageError(problem.to_string()))?);
            } else if self.engine() != Some(Engine::Spark) || args.split.is_some() || args.check.is_some() {
                let words =
                    "a URL is read by --on spark only, whole: --split and --check need files of this machine";
                return Err(UsageError(format!("{}: {words}", path.display())).into());
            } else {
                inputs.push(InputFile { path: path.to_owned(), bytes: 0, changed: (0, 0) });
            }
        }
        Ok(inputs)
    }
}

/// Runs what is left by the engine: which partitions failed, and the status of the reduce. `None` where the program was printed.
pub(super) fn map_and_reduce(
    engine: Engine,
    args: &SpreadArgs,
    work: &Work,
    plan: &SpreadPlan,
    submitter: Option<&Path>,
    stop: &StopRequest,
) -> anyhow::Result<Option<(Vec<Failure>, Option<i32>)>> {
    let hosepipe = std::env::current_exe().context("this program's own file")?;
    let options = &args.elsewhere.engine_option;
    let (jobs, retries, keep_going) = (args.jobs, args.retries, args.keep_going);
    let job = Job { engine, work, plan, hosepipe: &hosepipe, jobs, retries, keep_going, options };
    let Some(submitter) = submitter else {
        let (program, text) = job.program().context("the program for the engine")?;
        terminal::print_data(&text)?;
        let words = [&options[..], &[program.to_string_lossy().into_owned()]].concat();
        let words: Vec<String> = words.iter().map(|word| model::shell_quoted(word.as_bytes())).collect();
        let by_hand = match engine {
            Engine::Slurm => format!("bash {}", words[options.len()]),
            Engine::Spark => format!("spark-submit {}", words.join(" ")),
        };
        terminal::remark(&format!(
            "To run it: {by_hand}, or the same command with --submit. What the reduce writes will be in {}",
            work.folder().join("reduced").display()
        ));
        return Ok(None);
    };
    let bar = Bar::new(plan.partitions.len() as u64, " {pos}/{len} partitions {bar:20} {wide_msg} {eta}");
    let mut progress = SpreadProgress { bar, stop };
    let ended = job.run(submitter, &mut progress);
    progress.bar.finish();
    let ended = ended?;
    stop.note(ended.asked);
    if ended.failures.is_empty() && !stop.is_set() {
        for (name, stream) in [("reduce.log", io::stderr().as_fd()), ("reduced", io::stdout().as_fd())] {
            let mut stream = File::from(stream.try_clone_to_owned()?);
            io::copy(&mut File::open(work.folder().join(name))?, &mut stream)
                .context("what the reduce has written")?;
        }
    }
    Ok(Some((ended.failures, ended.status)))
}
