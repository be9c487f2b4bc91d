//! Progress bars: a line on standard error that is redrawn, if standard error is a terminal that is not dumb.

use std::io::{self, IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use model::{is_dumb, visible};

/// A bar with a message beside it. It is removed from the terminal when it is dropped.
///
/// It is redrawn only when it changes, unless [`Bar::tick_every`] starts a thread: trials are forked from this process.
pub(crate) struct Bar(ProgressBar);

/// Steps of a bar whose position is a share of the whole.
const STEPS: u64 = 1000;

impl Bar {
    /// A bar whose position is a share of the whole ([`Bar::show`]).
    pub(crate) fn of_shares(template: &str) -> Self {
        Self::new(STEPS, template)
    }

    /// Changes the message, and moves the bar to this share of the whole, 0 to 1, if it is known.
    pub(crate) fn show(&self, what: &str, done: Option<f64>) {
        if let Some(done) = done {
            self.0.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
        self.say(what);
        self.0.tick();
    }

    /// A bar with this number of steps and this template of indicatif.
    pub(crate) fn new(steps: u64, template: &str) -> Self {
        let target = if stderr().is_terminal() && !is_dumb() {
            ProgressDrawTarget::term_like_with_hz(
                Box::new(Unfilled { term: Term::buffered_stderr(), is_gone: AtomicBool::new(false) }),
                10,
            )
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Self(bar)
    }

    /// Redraws the bar from now on in a thread.
    pub(crate) fn tick_every(&self, interval: Duration) {
        if !self.0.is_hidden() {
            // The drawing thread must not receive signals: SIGCHLD has to interrupt the main thread.
            let _held = process::signals::NoSignals::block();
            self.0.enable_steady_tick(interval);
        }
    }

    /// Changes the message.
    pub(crate) fn say(&self, what: &str) {
        self.0.set_message(line(what));
    }

    /// Changes the text before the bar.
    pub(crate) fn set_prefix(&self, what: &str) {
        self.0.set_prefix(line(what));
    }

    /// Moves the bar to a step, and changes the message.
    pub(crate) fn set_position(&self, steps: u64, what: &str) {
        self.0.set_position(steps);
        self.say(what);
        self.0.tick();
    }

    /// Moves the bar by one step.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }

    /// Removes the bar from the terminal while the function runs.
    pub(crate) fn hidden_during<T>(&self, others: impl FnOnce() -> T) -> T {
        self.0.suspend(others)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A terminal for indicatif without the blanks that fill a line to the right edge: with them the `^C` that a terminal shows would be on the
/// next line, and be cleared instead of the bar. Nothing is written to a terminal that is gone.
#[derive(Debug)]
struct Unfilled {
    term: Term,
    is_gone: AtomicBool,
}

impl TermLike for Unfilled {
    fn width(&self) -> u16 {
        self.term.size().1
    }
    fn height(&self) -> u16 {
        self.term.size().0
    }
    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_up(n)
    }
    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_down(n)
    }
    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_right(n)
    }
    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_left(n)
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.term.write_line(text)
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() || self.is_gone.load(Relaxed) {
            Ok(())
        } else {
            self.term.write_str(text.trim_end())
        }
    }
    fn clear_line(&self) -> io::Result<()> {
        if self.is_gone.load(Relaxed) { Ok(()) } else { self.term.clear_line() }
    }
    fn flush(&self) -> io::Result<()> {
        let flushed = if self.is_gone.load(Relaxed) { Ok(()) } else { self.term.flush() };
        self.is_gone.fetch_or(flushed.is_err(), Relaxed);
        flushed
    }
}

/// The text as one line without control characters.
fn line(what: &str) -> String {
    visible(what).replace('\n', " ")
}
