//! `hosepipe demo`: four of hosepipe's own commands on generated data, each shown before it is run, with an explanation.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use process::{Child, finish_all};

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
        hosepipe: std::env::current_exe().context("cannot find the file of this program")?,
        stop: StopRequest::listen()?,
        failed: false,
    };
    demo.run(if args.short { &SHORT } else { &FULL })?;
    Ok(demo.stop.exit_code(demo.failed))
}

struct Demo {
    hosepipe: PathBuf,
    stop: StopRequest,
    failed: bool,
}

impl Demo {
    fn run(&mut self, amounts: &Amounts) -> anyhow::Result<()> {
        let bench = ["bench", "pipe", "unix-stream", "file", "shm-ring", "--place", "any"];
        self.step(
            "1. How fast do two processes pass data on this machine? Four mechanisms are measured in turns, and every byte \
             is checked.",
            &[&bench, amounts.bench].concat(),
        )?;
        self.step(
            "2. Which stage makes this pipeline slow? hosepipe runs it in your shell, with the same output, and marks the stage \
             that the others waited for with an arrow.",
            &["run", "--stats", &format!("seq {} | rev | sort | tail -n 1", amounts.lines)],
        )?;
        self.silent_step(
            "3. This pipeline gets a line every tenth of a second, and prints none. `top` samples running pipelines from outside, \
             and names the program that keeps the lines.",
            &jobs(600),
        )?;
        self.step(
            "4. The cure: every program writes each line at once, and none of them was changed.",
            &["run", "--line-buffered", &jobs(amounts.jobs)],
        )?;
        if self.stop.is_set() { Ok(()) } else { explain(CLOSING) }
    }

    /// Explains a command, prints it and runs it; nothing after a stop.
    fn step(&mut self, explanation: &str, words: &[&str]) -> anyhow::Result<()> {
        if self.stop.is_set() {
            return Ok(());
        }
        explain(explanation)?;
        show(words, "")?;
        self.execute(words)
    }

    /// The same for a pipeline that prints nothing: runs it in the background, and `top` on it.
    fn silent_step(&mut self, explanation: &str, pipeline: &str) -> anyhow::Result<()> {
        if self.stop.is_set() {
            return Ok(());
        }
        explain(explanation)?;
        show(&["run", pipeline], " &")?;
        let mut background = [Child::start(self.command(&["run", pipeline]))?];
        self.stop.wait(SILENT_FOR);
        let pid = background[0].pid().to_string();
        let shown = if self.stop.is_set() {
            Ok(())
        } else {
            show(&["top", "--once"], " $!").and_then(|()| self.execute(&["top", "--once", &pid]))
        };
        finish_all(&mut background, END_WITHIN)?;
        shown?;
        if !self.stop.is_set() && reads_only_its_own_children() {
            explain(
                "Here the kernel lets `top` read only the buffers of its own children (kernel.yama.ptrace_scope): as root it names \
                 the program.",
            )?;
        }
        Ok(())
    }

    /// Runs a command to its end. A stop is passed on to it; it then ends what it has started.
    fn execute(&mut self, words: &[&str]) -> anyhow::Result<()> {
        let stop = self.stop.clone();
        let ended = process::run(self.command(words), END_WITHIN, &mut || stop.is_set())?;
        self.failed |= !ended.success() && !self.stop.is_set();
        Ok(())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.hosepipe);
        command.args(words).stdin(Stdio::null());
        command
    }
}

/// Prints a command line as it is typed.
fn show(words: &[&str], end: &str) -> anyhow::Result<()> {
    let plain = |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let typed =
        |word: &&str| if plain(word) { (*word).to_owned() } else { model::shell_quoted(word.as_bytes()) };
    let words: Vec<String> = words.iter().map(typed).collect();
    let line = format!("$ hosepipe {}{end}", words.join(" "));
    let bold = terminal::style().color;
    terminal::print_painted(&if bold { format!("\x1b[1m{line}\x1b[0m\n") } else { line + "\n" })
}

fn explain(text: &str) -> anyhow::Result<()> {
    let lines = wrap(text, terminal::style().width.min(WIDTH_MAX));
    terminal::print(&format!("\n{}\n", lines.join("\n")))
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
