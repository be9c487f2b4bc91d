//! `hosepipe why --after D -- COMMAND`: runs a command, and answers when it hangs.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use model::{RecordHead, WhyRecord};
use observe::why::{Asked, Progress};
use pipeline::boost::{self, BoostError};
use process::signals::{self, Signal};
use report::read::Loaded;

use crate::outputs::Outputs;
use crate::{script, terminal};

/// Longest and shortest time between two looks at the command, and the share of the time limit that it is.
const PAUSE_MAX: Duration = Duration::from_millis(500);
const PAUSE_MIN: Duration = Duration::from_millis(10);
const LOOKS: u32 = 10;
/// Time from the request to end until the command is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// Exit status of a command that was ended, as of timeout(1).
const ENDED: u8 = 124;

/// A command that is watched.
struct Watch<'a> {
    pid: i32,
    after: Duration,
    ends: bool,
    head: RecordHead,
    outputs: &'a Outputs,
    progress: Progress,
    /// When it moved last; `None` after an answer, until it moves again.
    moved: Option<Instant>,
    asked_to_end: Option<Instant>,
    last: Option<WhyRecord>,
}

impl Watch<'_> {
    /// Returns the time until the next look.
    fn look(&mut self) -> Duration {
        let pause = (self.after / LOOKS).clamp(PAUSE_MIN, PAUSE_MAX);
        if let Some(asked) = self.asked_to_end {
            if asked.elapsed() > KILL_AFTER {
                signals::send(self.pid, Signal::SIGKILL);
            }
            return pause;
        }
        let progress = Progress::of(&[self.pid]);
        if progress != self.progress {
            (self.progress, self.moved) = (progress, Some(Instant::now()));
            return pause;
        }
        if self.moved.is_none_or(|moved| moved.elapsed() < self.after) {
            return pause;
        }
        let record = super::record(self.head.clone(), &Asked::Process(self.pid));
        if Progress::of(&[self.pid]) != self.progress {
            return pause;
        }
        self.moved = None;
        let text =
            report::terminal(&model::Record::from(record.clone()), &terminal::style_of_stderr(), study::view);
        let quiet = model::shown_duration(self.after);
        terminal::remark(&format!("hosepipe: the command has done nothing for {quiet}"));
        terminal::remark_painted(text.trim_end());
        self.last = Some(record);
        if self.ends {
            self.asked_to_end = Some(Instant::now());
            signals::send(self.pid, Signal::SIGTERM);
        }
        pause
    }
}

/// Runs the command and exits as it did, or with status 124 if it was ended.
pub(super) fn run(
    words: &[OsString],
    after: Duration,
    ends: bool,
    head: RecordHead,
    outputs: &Outputs,
) -> anyhow::Result<ExitCode> {
    let mut watch = Watch {
        pid: 0,
        after,
        ends,
        head,
        outputs,
        progress: Progress::default(),
        moved: Some(Instant::now()),
        asked_to_end: None,
        last: None,
    };
    if ends {
        // What has lost its parent is to be ended, too.
        process::adopt_orphans()?;
    }
    let ran = boost::run_command(words, &outputs.streams()?, None, &mut |pid| {
        watch.pid = pid;
        Some(watch.look())
    });
    let ended = match ran {
        Ok(ended) => ended,
        Err(error @ (BoostError::Missing(_) | BoostError::NotExecutable(..))) => {
            terminal::remark(&format!("hosepipe: {error}"));
            return Ok(ExitCode::from(if matches!(error, BoostError::Missing(_)) { 127 } else { 126 }));
        }
        Err(error) => return Err(error.into()),
    };
    let (head, last, outputs) = (watch.head, watch.last, watch.outputs);
    let record = last.unwrap_or_else(|| WhyRecord { head, ..WhyRecord::default() });
    outputs.write(&[Loaded::new("this command", record)])?;
    match watch.asked_to_end {
        Some(_) => {
            process::kill_children_except(&[]);
            Ok(ExitCode::from(ENDED))
        }
        None => Ok(script::exit_as(ended, process::shown_status(ended))),
    }
}
