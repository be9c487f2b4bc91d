//! The progress of `hosepipe compare` on standard error: a bar on a terminal, else a few lines if it takes long.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use model::CompareResult;
use pipeline::contest::Follower;

use crate::bar::Bar;
use crate::signals::StopRequest;
use crate::terminal;

/// Interval of the lines, and the shortest comparison that has them.
const INTERVAL: Duration = Duration::from_secs(60);

pub(crate) struct CompareProgress<'a> {
    bar: Bar,
    began: Instant,
    /// `None` on a terminal, which has the bar.
    lines: Option<ProgressLines>,
    stop: &'a StopRequest,
}

impl<'a> CompareProgress<'a> {
    /// The progress of at most `runs` runs, in which no round begins after `time`.
    pub(crate) fn new(runs: u64, time: Option<Duration>, stop: &'a StopRequest) -> Self {
        let bar = Bar::new(runs, " {pos}/{len} {bar:20} {wide_msg} {eta}");
        bar.tick_every(Duration::from_millis(200));
        let lines = (!stderr().is_terminal()).then(|| ProgressLines::new(runs, time));
        Self { bar, began: Instant::now(), lines, stop }
    }
}

impl Follower for CompareProgress<'_> {
    fn stops(&self) -> bool {
        self.stop.is_set()
    }

    fn turn(&mut self, next: &CompareResult, _done: f64, make: &mut dyn FnMut()) {
        self.bar.say(&format!("{} · {}", next.via, next.pipeline));
        self.bar.hidden_during(make);
        self.bar.advance();
        let line = self.lines.as_mut().and_then(|lines| lines.after_run(self.began.elapsed()));
        // A run that was stopped has not taken the time of a run.
        line.iter().filter(|_| !self.stop.is_set()).for_each(|line| terminal::remark(line));
    }
}

/// Lines for a log: the expected duration after the first run, then one in each interval.
struct ProgressLines {
    runs: u64,
    time: Option<Duration>,
    done: u64,
    next: Duration,
}

impl ProgressLines {
    fn new(runs: u64, time: Option<Duration>) -> Self {
        Self { runs, time, done: 0, next: INTERVAL }
    }

    /// The line to print when another run has ended, `elapsed` after the beginning.
    fn after_run(&mut self, elapsed: Duration) -> Option<String> {
        self.done += 1;
        if self.done == self.runs {
            return None;
        }
        if self.done == 1 {
            let all =
                elapsed.checked_mul(u32::try_from(self.runs).unwrap_or(u32::MAX)).unwrap_or(Duration::MAX);
            let limit = self.time.filter(|limit| *limit < all);
            return (limit.unwrap_or(all) >= INTERVAL).then(|| match limit {
                Some(limit) => {
                    format!("The first run took {}; no round begins after {}.", shown(elapsed), shown(limit))
                }
                None => format!(
                    "The first run took {}; at most {} runs take about {} (--time limits it).",
                    shown(elapsed),
                    self.runs,
                    shown(all)
                ),
            });
        }
        (elapsed >= self.next).then(|| {
            self.next = elapsed + INTERVAL;
            format!("{} of at most {} runs after {}.", self.done, self.runs, shown(elapsed))
        })
    }
}

/// "50ms", "12m", "1m 40s", as --time takes it.
fn shown(duration: Duration) -> String {
    let is_short = duration < Duration::from_secs(1);
    let rounded = if is_short {
        Duration::from_millis(duration.as_millis() as u64)
    } else {
        Duration::from_secs(duration.as_secs_f64().round() as u64)
    };
    humantime::format_duration(rounded).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: a log shows how long it takes. Happened: nothing for twelve minutes.
    #[test]
    fn a_long_comparison_has_a_line_at_the_beginning_and_one_a_minute() {
        let seconds = Duration::from_secs;
        let lines = |runs: u64, time: Option<Duration>, run_s: u64| -> Vec<String> {
            let mut lines = ProgressLines::new(runs, time);
            (1..=runs).filter_map(|run| lines.after_run(seconds(run * run_s))).collect()
        };
        let twelve_minutes = lines(72, None, 10);
        assert_eq!(
            twelve_minutes[0],
            "The first run took 10s; at most 72 runs take about 12m (--time limits it)."
        );
        assert_eq!(twelve_minutes[1], "6 of at most 72 runs after 1m.");
        assert_eq!(twelve_minutes.len(), 12);
        let limited = lines(72, Some(seconds(100)), 10);
        assert_eq!(limited[0], "The first run took 10s; no round begins after 1m 40s.");
        assert_eq!(lines(72, None, 0), Vec::<String>::new(), "a short one has none");
    }
}
