//! `hosepipe demo`: four of hosepipe's own commands on generated data, each shown before it is run, with an explanation.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use process::{Child, end_all};

use crate::signals::StopRequest;
use crate::terminal::{self, wrap};

/// How long a command may take to end after it was asked to.
const END_WITHIN: Duration = Duration::from_secs(5);

/// How long the silent pipeline runs before `top` samples it: a program counts as holding its output back after half a second.
const SILENT_FOR: Duration = Duration::from_secs(2);

/// Longest line of an explanation.
const WIDTH_MAX: usize = 100;

/// Show what hosepipe does, in four steps and less than a minute
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe demo

It measures four mechanisms, finds the slow stage of a pipeline, and finds and cures a pipeline that prints nothing. Each command is
printed before it is run, so that it can be repeated. Ctrl-C ends it; nothing is left behind.
Exit status: 0 all done; 1 a command failed; 130 stopped by Ctrl-C.")]
pub(crate) struct DemoArgs {
    /// Small amounts, for tests: what it measures means nothing
    #[arg(long, hide = true)]
    short: bool,
}

/// The amounts of the steps.
struct Amounts {
    bench: &'static [&'static str],
    lines: u32,
    jobs: u32,
}

const FULL: Amounts = Amounts { bench: &["--time", "15s"], lines: 3_000_000, jobs: 20 };
const SHORT: Amounts = Amounts { bench: &["--trials", "1", "--bytes", "1MiB"], lines: 1000, jobs: 3 };

/// What comes after the last step.
const CLOSING: &str = "That was all. What to try next: `hosepipe recommend --message 1KiB` says which mechanism to take for \
    your messages, `hosepipe run --live 'PIPELINE'` shows a pipeline of your own while it runs, and `hosepipe doctor` shows \
    what limits the figures of this machine.";

/// Runs the steps until one is interrupted.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let mut demo = Demo {
        hosepipe: std::env::current_exe().context("this program's own file")?,
        stop: StopRequest::listen()?,
        failed: false,
    };
    let ended = demo.run(if args.short { &SHORT } else { &FULL });
    match ended {
        Ok(()) | Err(End::Stopped) => Ok(demo.stop.exit_code(demo.failed)),
        Err(End::Failed(error)) => Err(error),
    }
}

/// Why the steps do not go on.
enum End {
    Stopped,
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for End {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

struct Demo {
    hosepipe: PathBuf,
    stop: StopRequest,
    failed: bool,
}

impl Demo {
    fn run(&mut self, amounts: &Amounts) -> Result<(), End> {
        self.explain(
            "1. How fast do two processes pass data on this machine? Four mechanisms are measured in turns, and every byte \
             is checked.",
        )?;
        let bench = ["bench", "pipe", "unix-stream", "file", "shm-ring", "--place", "any"];
        self.step(&[&bench, amounts.bench].concat())?;

        self.explain(
            "2. Which stage makes this pipeline slow? hosepipe runs it in your shell, with the same output, and marks the stage \
             that the others waited for with an arrow.",
        )?;
        self.step(&["run", "--stats", &format!("seq {} | rev | sort | tail -n 1", amounts.lines)])?;

        self.explain(
            "3. This pipeline gets a line every tenth of a second, and prints none. `top` samples running pipelines from outside, \
             and names the program that keeps the lines.",
        )?;
        self.silent(&jobs(600))?;

        self.explain("4. The cure: every program writes each line at once, and none of them was changed.")?;
        self.step(&["run", "--line-buffered", &jobs(amounts.jobs)])?;
        self.explain(CLOSING)
    }

    /// Runs a pipeline that prints nothing in the background, and shows it with `top`.
    fn silent(&mut self, pipeline: &str) -> Result<(), End> {
        self.show(&["run", pipeline], " &")?;
        let mut background = [Child::start(self.command(&["run", pipeline]))?];
        self.stop.wait(SILENT_FOR);
        let pid = background[0].pid().to_string();
        let shown = if self.stop.is_set() {
            Err(End::Stopped)
        } else {
            self.show(&["top", "--once"], " $!")
                .map_err(End::from)
                .and_then(|()| self.execute(&["top", "--once", &pid]))
        };
        end_all(&mut background, END_WITHIN)?;
        shown?;
        if reads_only_its_own_children() {
            self.explain(
                "Here the kernel lets `top` read only the buffers of its own children (kernel.yama.ptrace_scope): as root it names \
                 the program.",
            )?;
        }
        Ok(())
    }

    /// Prints a command and runs it.
    fn step(&mut self, words: &[&str]) -> Result<(), End> {
        self.show(words, "")?;
        self.execute(words)
    }

    /// Prints a command line as it is typed.
    fn show(&self, words: &[&str], end: &str) -> anyhow::Result<()> {
        let plain = |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
        let typed =
            |word: &&str| if plain(word) { (*word).to_owned() } else { model::shell_quoted(word.as_bytes()) };
        let words: Vec<String> = words.iter().map(typed).collect();
        let line = format!("$ hosepipe {}{end}", words.join(" "));
        let bold = terminal::style().color;
        terminal::print_painted(&if bold { format!("\x1b[1m{line}\x1b[0m\n") } else { line + "\n" })
    }

    fn explain(&self, text: &str) -> Result<(), End> {
        let lines = wrap(text, terminal::style().width.min(WIDTH_MAX));
        Ok(terminal::print(&format!("\n{}\n", lines.join("\n")))?)
    }

    /// Runs a command to its end. A signal is passed on to it; it then ends what it has started.
    fn execute(&mut self, words: &[&str]) -> Result<(), End> {
        let stop = self.stop.clone();
        let ended = process::run(self.command(words), END_WITHIN, &mut || stop.is_set())?;
        if self.stop.is_set() {
            return Err(End::Stopped);
        }
        self.failed |= !ended.success();
        Ok(())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.hosepipe);
        command.args(words).stdin(Stdio::null());
        command
    }
}

/// A pipeline that gets a line every tenth of a second, this many times.
fn jobs(count: u32) -> String {
    format!("for n in {{1..{count}}}; do echo job $n; sleep .1; done | grep job | cut -c 5-")
}

/// Whether Yama hides the memory of other processes of the same user (ptrace(2), ptrace_scope).
fn reads_only_its_own_children() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    !rustix::process::geteuid().is_root() && !matches!(scope.trim(), "" | "0")
}
