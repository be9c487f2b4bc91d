//! `run --live`: a table of the stages in the last rows of the terminal, redrawn while they run. The output of the pipeline scrolls in the
//! rows above it (DECSTBM of xterm's control sequences), so that neither overwrites the other.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use model::{Certainty, CopyFigures, visible};
use pipeline::{ReadProgress, StageSnapshot};
use report::numbers;

use crate::copies::CostsOnDemand;

/// Time between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);

/// Width of a line without the name of its stage.
const WITHOUT_NAME: usize = 66;

/// Least number of rows for the pipeline's own output.
const ROWS_ABOVE: usize = 3;

/// The table of the stages, on standard error if that is a terminal.
pub(crate) struct Live {
    terminal: bool,
    columns: usize,
    rows: usize,
    began: Instant,
    drawn: Instant,
    /// The stages at the last drawing.
    before: Vec<StageSnapshot>,
    /// Rows that the table takes; 0 if none is drawn.
    reserved: usize,
    costs: CostsOnDemand,
}

impl Live {
    pub(crate) fn on_stderr() -> Self {
        let now = Instant::now();
        Self {
            terminal: stderr().is_terminal() && !model::is_dumb(),
            columns: crate::terminal::style_of_stderr().width,
            rows: rustix::termios::tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_row)),
            began: now,
            drawn: now,
            before: Vec::new(),
            reserved: 0,
            costs: CostsOnDemand::default(),
        }
    }

    /// Draws the stages, unless the last drawing was less than [`INTERVAL`] ago; without stages, removes the table.
    pub(crate) fn show(&mut self, stages: &[StageSnapshot]) {
        if stages.is_empty() {
            return self.clear();
        }
        let since = self.drawn.elapsed();
        let most = self.rows.saturating_sub(ROWS_ABOVE);
        if !self.terminal || since < INTERVAL || most < 2 {
            return;
        }
        self.drawn = Instant::now();
        self.before.resize(stages.len(), StageSnapshot::default());
        let wanted = (stages.len() + 1).min(most);
        let mut text = if wanted == self.reserved { String::new() } else { self.reserve(wanted) };
        let top = self.rows - wanted + 1;
        let seconds = self.began.elapsed().as_secs_f64();
        let progress = stages[0].read_progress.as_ref().map(|progress| format!(" · {}", in_words(progress)));
        let head = self.fitting(&format!(" {seconds:.1} s{}", progress.unwrap_or_default()));
        text.push_str(&format!("\x1b7\x1b[{top};1H\x1b[J\x1b[2m{head}\x1b[0m"));
        for index in 0..wanted - 1 {
            text.push_str(&format!("\x1b[{};1H{}", top + 1 + index, self.line(stages, index, since)));
        }
        text.push_str("\x1b8");
        self.before = stages.to_vec();
        self.write(&text);
    }

    /// Reserves rows at the bottom: their text scrolls up, and from then on the cursor stays above them.
    fn reserve(&mut self, rows: usize) -> String {
        let given_back = self.give_back();
        self.reserved = rows;
        // IND (ECMA-48) moves down in the same column: the pipeline may continue its line.
        let room = "\x1bD".repeat(rows);
        format!("{given_back}{room}\x1b[{rows}A\x1b7\x1b[1;{}r\x1b8", self.rows - rows)
    }

    /// Lets the cursor reach all rows again, and removes the table.
    fn give_back(&mut self) -> String {
        if std::mem::take(&mut self.reserved) == 0 {
            String::new()
        } else {
            "\x1b7\x1b[r\x1b8\x1b[J".to_owned()
        }
    }

    /// "slow reads at +16: --align-buffers", if they slow the stage down.
    fn slow_copies(&self, stage: &StageSnapshot, read_bytes: Option<u64>) -> Option<String> {
        let [read_offset, write_offset] = stage.buffer_offsets;
        let slow = self.costs.find_slow(&CopyFigures {
            read_offset,
            write_offset,
            read_bytes,
            written_bytes: stage.bytes.map(|(bytes, _)| bytes),
            wall_ns: self.began.elapsed().as_nanos() as u64,
            cpu_ns: stage.cpu_ns,
            // The kernel's part of it is known only at the end.
            kernel_ns: stage.cpu_ns,
        })?;
        Some(report::slow_copies::in_brief(&slow))
    }

    /// The line of a stage, with what it did since the last drawing.
    fn line(&self, stages: &[StageSnapshot], index: usize, since: Duration) -> String {
        let (stage, before) = (&stages[index], &self.before[index]);
        let read = index.checked_sub(1).and_then(|link| stages[link].bytes);
        let slow = self.slow_copies(stage, read.map(|(bytes, _)| bytes));
        let share = |now_ns: u64, then_ns: u64| {
            (now_ns.saturating_sub(then_ns) as f64 / 1e9 / since.as_secs_f64()).max(0.0)
        };
        let cpu = share(stage.cpu_ns, before.cpu_ns);
        // Of two with the same share the last one is shown.
        let waits = [
            ("sleeps", share(stage.asleep_ns, before.asleep_ns)),
            ("waits to read", share(stage.blocked_read_ns, before.blocked_read_ns)),
            ("waits to write", share(stage.blocked_write_ns, before.blocked_write_ns)),
            ("queues for a CPU", share(stage.queued_ns, before.queued_ns)),
        ];
        let trouble = stage.held_back.as_ref().map(report::held_back::in_brief).or(slow);
        let longest = waits.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let state = match (longest, trouble) {
            _ if stage.ended => "ended".to_owned(),
            (_, Some(trouble)) => trouble,
            (Some((what, share)), _) if share >= 0.5 => format!("{what} {:.0} %", share.min(1.0) * 100.0),
            _ if cpu >= 0.5 => "computes".to_owned(),
            _ => "at work".to_owned(),
        };
        let bytes = |shown: Option<String>| match shown {
            None if stage.has_link => "?".to_owned(),
            shown => shown.unwrap_or_default(),
        };
        let so_far = stage.bytes.map(|(bytes, is)| is.sign().to_owned() + &numbers::decimal_size(bytes));
        // The difference of two lower bounds is treated as a lower bound of the rate, and that of two upper bounds as an upper bound.
        let new = |(now, is): (u64, Certainty)| {
            let (then, was) = before.bytes.unwrap_or((0, is));
            (was == is).then(|| (now.saturating_sub(then) as f64 / since.as_secs_f64(), is))
        };
        let rate = stage.bytes.and_then(new).map(|(rate, is)| is.sign().to_owned() + &numbers::speed(rate));
        let lines = stage.lines.map(|lines| {
            let new = lines.saturating_sub(before.lines.unwrap_or(0));
            format!(" {:>8} lines/s", numbers::amount(new as f64 / since.as_secs_f64()))
        });
        let name = self.columns.saturating_sub(WITHOUT_NAME).clamp(12, 32);
        let line = format!(
            " {} {:<name$.name$} {:>9} {:>6} {:>8} {:>10}{}  {state}",
            index + 1,
            visible(&stage.command).replace('\n', " "),
            numbers::time(stage.cpu_ns as f64),
            numbers::percent(cpu),
            bytes(so_far),
            bytes(rate),
            lines.unwrap_or_default(),
        );
        self.fitting(&line)
    }

    /// The beginning of a line that fits into a row of the terminal.
    fn fitting(&self, line: &str) -> String {
        line.chars().take(self.columns.saturating_sub(1)).collect()
    }

    /// Removes the table.
    fn clear(&mut self) {
        let text = self.give_back();
        self.write(&text);
    }

    /// If writing fails because the terminal is gone, nothing more is drawn, and the pipeline continues.
    fn write(&mut self, text: &str) {
        self.terminal &= stderr().write_all(text.as_bytes()).is_ok();
    }
}

/// "big.gz: 45 % read, 12 s to the end".
fn in_words(progress: &ReadProgress) -> String {
    let share = progress.read_bytes as f64 / progress.size_bytes.max(1) as f64;
    let what = visible(&progress.what).replace('\n', " ");
    let left = progress.left.map(|left| left.as_secs_f64().ceil() as u64);
    let to_the_end = left.map(|seconds| format!(", {} to the end", duration(seconds)));
    // Rounded down: 100 % means the whole file.
    format!("{what}: {:.0} % read{}", (share * 100.0).floor(), to_the_end.unwrap_or_default())
}

/// "45 s", "12 min", "3 h 20 min": an estimate needs no more.
fn duration(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{} s", seconds.max(1)),
        100..6000 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}
