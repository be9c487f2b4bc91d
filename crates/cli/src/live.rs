//! Stages while they run: a block of lines at the bottom of the terminal, drawn again and again. What the pipeline
//! itself prints scrolls in the rows above it (DECSTBM; xterm's control sequences), so neither touches the other.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use model::visible;
use pipeline::Seen;
use report::numbers;

/// Between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);

/// Rows left to the pipeline's own output at the least.
const ROWS_ABOVE: usize = 3;

/// A picture of the stages, on standard error if that is a terminal.
pub(crate) struct Live {
    terminal: bool,
    columns: usize,
    rows: usize,
    began: Instant,
    drawn: Instant,
    /// What each stage had written and waited at the last drawing.
    before: Vec<Seen>,
    /// Rows kept free of the pipeline's own output; 0 where no picture is there.
    reserved: usize,
}

impl Live {
    pub(crate) fn on_stderr() -> Self {
        let now = Instant::now();
        let columns = crate::terminal::style_of_stderr().width;
        let rows = rustix::termios::tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_row));
        let terminal = stderr().is_terminal() && !model::is_dumb();
        Self { terminal, columns, rows, began: now, drawn: now, before: Vec::new(), reserved: 0 }
    }

    /// Draws what is seen, if the last drawing is old enough.
    pub(crate) fn show(&mut self, commands: &[String], seen: &[Seen]) {
        let since = self.drawn.elapsed();
        let most = self.rows.saturating_sub(ROWS_ABOVE);
        if !self.terminal || since < INTERVAL || most < 2 {
            return;
        }
        self.drawn = Instant::now();
        self.before.resize(seen.len(), Seen::default());
        let wanted = (seen.len() + 1).min(most);
        let mut text = if wanted == self.reserved { String::new() } else { self.reserve(wanted) };
        let top = self.rows - wanted + 1;
        let seconds = self.began.elapsed().as_secs_f64();
        text.push_str(&format!("\x1b7\x1b[{top};1H\x1b[J\x1b[2m {seconds:.1} s\x1b[0m"));
        for (index, (seen, before)) in seen.iter().zip(&self.before).take(wanted - 1).enumerate() {
            let command = commands.get(index).map(String::as_str).unwrap_or_default();
            text.push_str(&format!("\x1b[{};1H", top + 1 + index));
            text.push_str(&self.line(index + 1, command, seen, before, since));
        }
        text.push_str("\x1b8");
        self.before = seen.to_vec();
        self.write(&text);
    }

    /// Makes room for so many rows at the bottom: what stands there scrolls up, and from then on the cursor stays
    /// above them.
    fn reserve(&mut self, rows: usize) -> String {
        let given_back = self.give_back();
        self.reserved = rows;
        let room = "\n".repeat(rows);
        format!("{given_back}{room}\x1b[{rows}A\x1b7\x1b[1;{}r\x1b8", self.rows - rows)
    }

    /// Lets the cursor go everywhere again, and removes the picture.
    fn give_back(&mut self) -> String {
        if std::mem::take(&mut self.reserved) == 0 {
            String::new()
        } else {
            "\x1b7\x1b[r\x1b8\x1b[J".to_owned()
        }
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
            visible(command).replace('\n', " "),
            numbers::decimal_size(written),
            numbers::throughput(rate),
        );
        line.chars().take(self.columns.saturating_sub(1)).collect()
    }

    /// Removes the picture.
    pub(crate) fn clear(&mut self) {
        let text = self.give_back();
        self.write(&text);
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
