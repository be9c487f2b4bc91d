//! Stages while they run: a block of lines on the terminal, drawn again and again. What the pipeline itself prints
//! overwrites the block, which is then drawn below it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use pipeline::Seen;
use report::numbers;

/// Between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);

/// A picture of the stages, on standard error if that is a terminal.
pub(crate) struct Live {
    terminal: bool,
    columns: usize,
    began: Instant,
    drawn: Instant,
    /// What each stage had written and waited at the last drawing.
    before: Vec<Seen>,
    shown: bool,
}

impl Live {
    pub(crate) fn on_stderr() -> Self {
        let now = Instant::now();
        let columns = crate::terminal::style_of_stderr().width;
        let terminal = stderr().is_terminal();
        Self { terminal, columns, began: now, drawn: now, before: Vec::new(), shown: false }
    }

    /// Draws what is seen, if the last drawing is old enough.
    pub(crate) fn show(&mut self, commands: &[String], seen: &[Seen]) {
        let since = self.drawn.elapsed();
        if !self.terminal || since < INTERVAL {
            return;
        }
        self.drawn = Instant::now();
        self.before.resize(seen.len(), Seen::default());
        let mut text = format!("\r\x1b[J\x1b[2m {:.1} s\x1b[0m\n", self.began.elapsed().as_secs_f64());
        for (index, (seen, before)) in seen.iter().zip(&self.before).enumerate() {
            let command = commands.get(index).map(String::as_str).unwrap_or_default();
            text.push_str(&self.line(index + 1, command, seen, before, since));
        }
        // Back to the top, where the pipeline's own output belongs.
        text.push_str(&format!("\x1b[{}A\r", seen.len() + 1));
        self.before = seen.to_vec();
        self.shown = true;
        self.write(&text);
    }

    fn line(&self, number: usize, command: &str, seen: &Seen, before: &Seen, since: Duration) -> String {
        let share = |now: Duration, then: Duration| {
            (now.saturating_sub(then).as_secs_f64() / since.as_secs_f64()).clamp(0.0, 1.0)
        };
        let reading = share(seen.blocked_read, before.blocked_read);
        let writing = share(seen.blocked_write, before.blocked_write);
        let state = match (seen.ended, reading, writing) {
            (true, ..) => "ended".to_owned(),
            (_, reading, writing) if reading + writing < 0.5 => "works".to_owned(),
            (_, reading, writing) if reading > writing => format!("waits to read {:.0} %", reading * 100.0),
            (.., writing) => format!("waits to write {:.0} %", writing * 100.0),
        };
        let written = seen.written_bytes.unwrap_or(0);
        let rate = written.saturating_sub(before.written_bytes.unwrap_or(0)) as f64 / since.as_secs_f64();
        let line = format!(
            " {number} {:<24.24} {:>9} {:>10}  {state}",
            command.replace('\n', " "),
            numbers::decimal_size(written),
            numbers::throughput(rate),
        );
        line.chars().take(self.columns.saturating_sub(1)).collect::<String>() + "\n"
    }

    /// Removes the picture.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            self.write("\r\x1b[J");
        }
    }

    /// That it cannot be drawn is no reason to stop.
    fn write(&self, text: &str) {
        let _ = stderr().write_all(text.as_bytes());
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}
