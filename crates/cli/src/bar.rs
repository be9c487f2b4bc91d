//! Progress: a line drawn again and again, on standard error where that is a terminal whose cursor moves.

use std::borrow::Cow;
use std::io::{self, IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use model::{is_dumb, visible};

/// A bar with words beside it.
///
/// It does not tick by itself unless told to: that is a thread, and trials are forked from this process.
pub(crate) struct Bar(ProgressBar);

/// Steps of a bar that is moved by shares.
const STEPS: u64 = 1000;

impl Bar {
    /// A bar to be moved by [`Bar::show`].
    pub(crate) fn of_shares(template: &str) -> Self {
        Self::new(STEPS, template)
    }

    /// Says what is under way, and moves the bar to this share of the whole, 0 to 1, where it is known.
    pub(crate) fn show(&self, what: &str, done: Option<f64>) {
        if let Some(done) = done {
            self.0.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
        self.say(what);
        self.0.tick();
    }

    /// A bar as the template has it (see indicatif), of so many steps.
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

    /// Draws from now on by itself, in a thread.
    pub(crate) fn tick_every(&self, interval: Duration) {
        if !self.0.is_hidden() {
            // The thread that draws must not be the one that is told of a stage's end (SIGCHLD).
            let _held = process::signals::NoSignals::hold();
            self.0.enable_steady_tick(interval);
        }
    }

    /// Changes the words.
    pub(crate) fn say(&self, what: &str) {
        self.0.set_message(line(what));
    }

    /// Changes the words before the bar.
    pub(crate) fn say_before(&self, what: &str) {
        self.0.set_prefix(line(what));
    }

    /// So many steps are done.
    pub(crate) fn stand_at(&self, steps: u64, what: &str) {
        self.0.set_position(steps);
        self.say(what);
        self.0.tick();
    }

    /// One more step is done.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }

    /// Leaves the terminal to others meanwhile.
    pub(crate) fn aside<T>(&self, others: impl FnOnce() -> T) -> T {
        self.0.suspend(others)
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// The terminal, on which a line ends where its words do. Blanks to its edge would take the `^C` that a terminal shows to the next line, and
/// that would be cleared instead of the bar. One that is gone takes nothing, and nothing is collected for it.
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

/// One line that cannot steer the terminal.
fn line(what: &str) -> Cow<'static, str> {
    Cow::Owned(visible(what).replace('\n', " "))
}
