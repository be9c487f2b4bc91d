//! The prompt: lines read with the editor, run, and spoken about.

use std::io::{IsTerminal, Write};

use nu_ansi_term::{Color, Style};
use pipeline::syntax::parse;
use pipeline::{Jobs, State, Terminal};
use reedline::{
    ColumnarMenu, DefaultHinter, Emacs, KeyCode, KeyModifiers, MenuBuilder, Reedline, ReedlineEvent,
    ReedlineMenu, Signal, ValidationResult, Validator, default_emacs_keybindings,
};

use crate::complete::Completions;
use crate::config::{Config, history_file};
use crate::front::{Onward, Shell};
use crate::highlight::Colours;
use crate::history::Kept;
use crate::prompt::Shown;
use crate::say::Said;
use crate::text;
use crate::words::Words;
use crate::{Ended, hangup};

/// The name of the menu of completions.
const MENU: &str = "completions";

/// How often in a row the terminal may fail to answer.
const FAILURES_MAX: u32 = 5;

/// Runs a prompt on the terminal that is standard input, until it is left.
///
/// # Errors
/// Standard input is no terminal of ours, or breaks.
pub fn interactive(mut shell: Shell, config: &Config, shell_name: &str) -> anyhow::Result<Ended> {
    let terminal = Terminal::claim()?;
    let second = terminal.try_clone()?;
    let jobs = Jobs::new(Some(terminal));
    hangup::listen(jobs.groups(), second, shell.scratch.clone())?;
    shell.session.begin_prompt(jobs);
    shell.stats = config.stats;
    let words = Words::default();
    words.learn(&shell.session);
    let mut editor = editor(&words, &shell);
    let mut warned = false;
    let mut failures = 0;
    loop {
        shell.tell_news();
        let status = shell.session.status();
        let prompt = Shown::new(&config.prompt, &shell.via.to_string(), status, shell.voice.colours);
        let line = match editor.read_line(&prompt) {
            Ok(Signal::Success(line)) => line,
            Ok(Signal::CtrlD) => "exit".to_owned(),
            Ok(_) => {
                shell.session.set_status(130);
                continue;
            }
            // Asked where its cursor is, the terminal has not answered in time: behind more than a kilobyte that was typed
            // ahead, the editor sees the answer only when more comes (it reads 1024 bytes for each edge of epoll(7)).
            Err(_) if failures < FAILURES_MAX && std::io::stdin().is_terminal() => {
                failures += 1;
                continue;
            }
            // The terminal has gone.
            Err(_) => return Ok(Ended::Left(shell.session.status())),
        };
        failures = 0;
        // What another session has typed meanwhile comes in as well.
        let _ = editor.sync_history();
        let script = match text::read(&line, shell_name) {
            Ok(script) => script,
            Err(error) => {
                shell.voice.say(Said::Error, &text::pointed_out(&line, &error));
                shell.session.set_status(2);
                continue;
            }
        };
        let onward = shell.take(&script, &line, &|| None);
        words.learn(&shell.session);
        // A program's last line may have no end, and its output may sit in a buffer of ours.
        let _ = std::io::stdout().flush();
        match onward {
            Onward::Yes => warned = false,
            Onward::Leave(status) => {
                if shell.has_stopped_jobs() && !warned {
                    warned = true;
                    shell.voice.say(Said::Plain, "There are stopped jobs: once more leaves, and ends them.");
                    continue;
                }
                return Ok(Ended::Left(status));
            }
            Onward::EndedBy(signal) => return Ok(Ended::By(signal)),
        }
    }
}

impl Shell {
    /// Reports jobs that ended or stopped since the last prompt.
    fn tell_news(&mut self) {
        let Some(jobs) = self.session.jobs_mut() else { return };
        match jobs.news() {
            Ok(events) => events.iter().for_each(|event| self.voice.tell_of_job(event)),
            Err(error) => self.voice.error(&error.into()),
        }
    }

    fn has_stopped_jobs(&self) -> bool {
        let jobs = self.session.jobs().map(Jobs::list).unwrap_or_default();
        jobs.iter().any(|job| job.state == State::Stopped)
    }
}

fn editor(words: &Words, shell: &Shell) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let next = ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, next);
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_marker("")
        .with_selected_text_style(Style::new().reverse());
    let mut editor = Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_completer(Box::new(Completions(words.clone())))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_highlighter(Box::new(Colours(words.clone())))
        .with_hinter(Box::new(DefaultHinter::default().with_style(Color::DarkGray.normal())))
        .with_validator(Box::new(WholeLines))
        .with_ansi_colors(shell.voice.colours)
        .with_history_exclusion_prefix(Some(" ".to_owned()))
        .use_bracketed_paste(true);
    if let Some(file) = history_file() {
        match Kept::open(file.clone()) {
            Ok(history) => editor = editor.with_history(Box::new(history)),
            Err(error) => {
                let text = format!("hosepipe: {}: {error}; lines are not kept", file.display());
                shell.voice.say(Said::Error, &text);
            }
        }
    }
    editor
}

/// Enter takes a line that is whole; one with an open quote, or a pipe at its end, goes on below.
struct WholeLines;

impl Validator for WholeLines {
    fn validate(&self, line: &str) -> ValidationResult {
        match parse(line) {
            Err(error) if error.incomplete => ValidationResult::Incomplete,
            _ => ValidationResult::Complete,
        }
    }
}
