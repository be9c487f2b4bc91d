//! The programs of a shell that are started in another way (`--line-buffered`, `--align-buffers`): those that wait for the server's answer,
//! and what was answered.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use model::StageRecord;

use crate::ledger::Ledger;
use crate::line_buffered::{LineBuffered, LineBuffering, LineBufferingMethods};
use crate::program_file::Program;
use crate::shell_run::ShellRun;

/// How long the number of a stage is awaited: until the stages before it have reported.
const NUMBER_WAIT: Duration = Duration::from_millis(500);
/// Most sentences about programs that are printed.
const PRINTED_MAX: usize = 32;

#[derive(Default)]
pub(super) struct Programs {
    /// The stages that are to write line by line.
    line_buffered: Option<(LineBuffered, LineBufferingMethods)>,
    pub(super) aligns: bool,
    /// The largest number of a stage that started a program.
    last_stage: usize,
    waiting: Vec<Question>,
    printed: BTreeSet<String>,
    /// Whether the answers are noted for records.
    recorded: bool,
    /// How each program was made to write line by line, by its PID.
    line_buffering: HashMap<i32, String>,
    /// How its buffers were aligned.
    aligned: HashMap<i32, &'static str>,
}

/// The question of a process that is about to execute a program.
pub(super) struct Question {
    pub(super) pid: i32,
    /// The program's path and its arguments, each followed by a zero.
    pub(super) text: Vec<u8>,
    pub(super) connection: OwnedFd,
    since: Instant,
}

impl Programs {
    /// `None` where programs are started as they are.
    pub(super) fn new(shell_run: &ShellRun<'_>) -> Option<Self> {
        shell_run.changes_programs().then(|| Self {
            line_buffered: shell_run
                .line_buffered
                .clone()
                .map(|stages| (stages, LineBufferingMethods::find())),
            aligns: shell_run.align_buffers,
            recorded: shell_run.recorded,
            ..Self::default()
        })
    }

    pub(super) fn ask(&mut self, pid: i32, text: Vec<u8>, connection: OwnedFd) {
        self.waiting.push(Question { pid, text, connection, since: Instant::now() });
    }

    /// Time until a process that waits must be answered; `None` if none waits.
    pub(super) fn answer_within(&self) -> Option<Duration> {
        self.waiting.iter().map(|question| NUMBER_WAIT.saturating_sub(question.since.elapsed())).min()
    }

    /// Takes out the requests that can be answered, each with whether its stage is to write line by line. A stage whose number stays unknown for
    /// too long is taken for one of the chosen ones.
    pub(super) fn take_answerable(&mut self, ledger: &Ledger) -> Vec<(Question, bool)> {
        let mut answerable = Vec::new();
        for question in std::mem::take(&mut self.waiting) {
            let is_chosen = match &self.line_buffered {
                None => Some(false),
                Some((LineBuffered::All, _)) => Some(true),
                Some((LineBuffered::Stages(chosen), _)) => {
                    let number = ledger.stage_number(question.pid);
                    self.last_stage = self.last_stage.max(number.unwrap_or(0));
                    number.map(|number| chosen.contains(&number))
                }
            };
            if is_chosen.is_none() && question.since.elapsed() < NUMBER_WAIT {
                self.waiting.push(question);
                continue;
            }
            answerable.push((question, is_chosen != Some(false)));
        }
        answerable
    }

    /// How a program is made to write line by line.
    pub(super) fn by_line(&self, program: &Program) -> Option<LineBuffering> {
        self.line_buffered.as_ref().map(|(_, methods)| methods.for_program(program))
    }

    /// Prints how a program was started, and notes it for its record: how it was made to write line by line, and how its buffers were aligned
    /// and whether that changes anything, in words.
    pub(super) fn report(
        &mut self,
        pid: i32,
        name: &str,
        by_line: Option<String>,
        aligned: Option<(&'static str, bool)>,
    ) {
        if let Some(words) = &by_line {
            self.print(format!("line by line: {name}: {words}"));
        }
        // Only an exception needs a sentence.
        if let Some((words, false)) = aligned {
            self.print(format!("buffers: {name}: {words}"));
        }
        if self.recorded {
            self.line_buffering.extend(by_line.map(|words| (pid, words)));
            self.aligned.extend(aligned.map(|(words, _)| (pid, words)));
        }
    }

    /// Prints which chosen stages no pipeline had; `stages` is the number of stages of the longest one.
    pub(super) fn report_absent(&mut self, stages: usize) {
        let Some((LineBuffered::Stages(chosen), _)) = &self.line_buffered else { return };
        let last = stages.max(self.last_stage);
        let absent = chosen.iter().filter(|number| **number > last).map(ToString::to_string);
        let absent = absent.collect::<Vec<String>>().join(",");
        if !absent.is_empty() {
            self.print(format!(
                "--line-buffered: there is no stage {absent}: the longest pipeline had {last}"
            ));
        }
    }

    /// Prints a sentence once.
    fn print(&mut self, sentence: String) {
        if self.printed.len() < PRINTED_MAX && !self.printed.contains(&sentence) {
            // A standard error that cannot be written to changes nothing.
            let _ = writeln!(io::stderr(), "hosepipe: {sentence}");
            self.printed.insert(sentence);
        }
    }

    /// Completes the record of a stage.
    pub(super) fn complete(&self, record: &mut StageRecord) {
        let Some(pid) = record.pid else { return };
        record.line_buffered = self.line_buffering.get(&pid).cloned();
        record.align_buffers = self.aligned.get(&pid).map(|words| (*words).to_owned());
    }
}
