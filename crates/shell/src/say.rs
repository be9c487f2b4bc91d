//! What the shell says itself: on standard error, dim where it is an aside, and never in the way of data.

use std::io::{IsTerminal, Write, stderr};

use nu_ansi_term::{Color, Style};
use rustix::termios::tcgetwinsize;

/// How something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Plain,
    Aside,
    Error,
}

/// Whether colours are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Voice {
    pub(crate) colours: bool,
}

impl Default for Voice {
    /// Colours on a terminal only, and only where they are wanted.
    fn default() -> Self {
        Self { colours: stderr().is_terminal() && model::colours_are_wanted() }
    }
}

impl Voice {
    /// Says a line; nothing in it steers the terminal. That it cannot be said is no reason to stop.
    pub(crate) fn say(self, how: Said, line: &str) {
        let style = match how {
            Said::Aside => Style::new().dimmed(),
            Said::Error => Color::Red.normal(),
            Said::Plain => Style::new(),
        };
        let line = model::visible(line);
        let text = if self.colours && !line.is_empty() { style.paint(line).to_string() } else { line };
        let _ = writeln!(stderr(), "{text}");
    }

    /// Makes sure that what is said begins a line, also where a program's output has not ended its last one: a mark
    /// there, and the rest of the line filled, so that the mark is on a line by itself only where it is overwritten.
    pub(crate) fn begin_a_line(self) {
        let Ok(size) = tcgetwinsize(stderr()) else { return };
        let columns = usize::from(size.ws_col);
        if self.colours && columns > 1 {
            let mark = Style::new().dimmed().paint("⏎");
            let _ = write!(stderr(), "{mark}{}\r\x1b[K", " ".repeat(columns - 1));
        }
    }

    /// Says an error and its causes in one line.
    pub(crate) fn error(self, error: &anyhow::Error) {
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        self.say(Said::Error, &format!("hosepipe: {}", causes.join(": ")));
    }
}
