//! The supervisor of a running trial: waits for every task, ends those that cannot end by themselves, and
//! says what went wrong in the words of whoever knows it best.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use model::{Case, CaseError, ErrorKind, Tasks, Workload, signal_name};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::control::Control;
use crate::end::{EndFailure, EndReport};
use crate::prepare::tasks;
use crate::task::{Ending, Task};
use crate::trial::{NoSample, TrialSetup, system_failure};

/// How often the supervisor looks up from waiting: at progress, at the stop flag.
const LOOK_UP: Duration = Duration::from_millis(50);

/// A trial in which neither end moves a byte for this long hangs.
const STALL_MAX: Duration = Duration::from_secs(10);

/// How long an end may go on alone after the other died, to say in its own words what it met.
const GRACE: Duration = Duration::from_millis(500);

/// The supervisor's view of a running trial.
pub(crate) struct Watch<'a> {
    tasks: Vec<Task>,
    control: &'a Control,
}

impl<'a> Watch<'a> {
    /// Watches over tasks that share a control page.
    pub(crate) fn over(tasks: Vec<Task>, control: &'a Control) -> Self {
        Self { tasks, control }
    }

    /// Waits for every task, ends those that cannot end by themselves, and gives up where the user does.
    pub(crate) fn until_all_ended(
        &mut self,
        setup: &TrialSetup<'_>,
        progress: &mut dyn FnMut(f64),
        stop: &dyn Fn() -> bool,
    ) -> Result<(), NoSample> {
        let ends = tasks(setup.case);
        let goal = match setup.case.workload {
            Workload::Stream => setup.blocks.saturating_mul(setup.case.block_bytes),
            Workload::PingPong => setup.blocks,
        };
        let mut stillness = Stillness::from(Instant::now());
        let mut peer_died: Option<Instant> = None;
        while self.tasks.iter().any(|task| task.ended().is_none()) {
            self.hear_news().map_err(|error| system_failure("poll", &error))?;
            if stop() {
                return Err(NoSample::Stopped);
            }
            let (slowest, sum) = self.control.slowest_and_sum(ends);
            stillness.look(Instant::now(), sum);
            progress(slowest as f64 / goal.max(1) as f64);
            if self.tasks.iter().any(|task| task.ended().is_some() && !self.succeeded(task)) {
                let died = *peer_died.get_or_insert_with(Instant::now);
                if died.elapsed() > GRACE {
                    self.tasks.iter_mut().for_each(Task::kill);
                }
            }
            if stillness.lasted > STALL_MAX {
                return Err(NoSample::Failed(self.hung(setup.case, sum)));
            }
        }
        Ok(())
    }

    fn hear_news(&mut self) -> io::Result<()> {
        let pipes: Vec<BorrowedFd<'_>> = self.tasks.iter().filter_map(Task::news).collect();
        let mut polled: Vec<PollFd<'_>> = pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_UP.as_nanos() as i64 };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let heard: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let running = self.tasks.iter_mut().filter(|task| task.news().is_some());
        for (task, _) in running.zip(heard).filter(|(_, heard)| *heard) {
            task.listen()?;
        }
        Ok(())
    }

    fn succeeded(&self, task: &Task) -> bool {
        task.ended() == Some(Ending::Left(0)) && reports(task).iter().all(|end| end.failure.is_none())
    }

    fn hung(&self, case: &Case, progress: u64) -> CaseError {
        let unit = if case.workload == Workload::Stream { "bytes" } else { "round trips" };
        CaseError {
            kind: ErrorKind::Hung,
            message: format!(
                "nothing moved for {} s (progress of all ends: {progress} {unit})",
                STALL_MAX.as_secs()
            ),
            remedy: Some("look for a stopped process (SIGSTOP) or a full or very slow disk".to_owned()),
            expected: false,
        }
    }

    /// The reports of all ends, the sender's first; or what went wrong, told by whoever knows it best.
    pub(crate) fn judge(&self, case: &Case) -> Result<Vec<EndReport>, CaseError> {
        for (index, task) in self.tasks.iter().enumerate() {
            let how = match task.ended() {
                Some(Ending::Killed(signal)) if !task.ended_by_us() => {
                    format!("was ended by {}", signal_name(signal))
                }
                // Its own words, if it had any, are on standard error.
                Some(Ending::Left(status)) if status != 0 => format!("left with status {status}"),
                _ => continue,
            };
            return Err(died(task, &task_name(index, case), case, &how));
        }
        let ends: Vec<EndReport> = self.tasks.iter().flat_map(reports).collect();
        let failures = || ends.iter().filter_map(|end| end.failure.as_ref());
        // "The other end closed" is a consequence; the other end's failure is the cause.
        let cause = failures().find(|failure| !failure.peer_closed).or_else(|| failures().next());
        if let Some(failure) = cause {
            return Err(failed(failure, case));
        }
        let silent = self.tasks.iter().any(|task| !self.succeeded(task) || reports(task).is_empty());
        if silent || ends.is_empty() {
            return Err(CaseError {
                kind: ErrorKind::Died,
                message: "an end left without a report (a bug in hosepipe: please tell us)".to_owned(),
                remedy: None,
                expected: false,
            });
        }
        Ok(ends)
    }
}

/// How long nothing has moved, as far as the supervisor was there to see it: Ctrl-Z stops it with the ends. Of the
/// time since the last look no more counts than two looks are apart.
struct Stillness {
    seen_at: Instant,
    sum: u64,
    lasted: Duration,
}

impl Stillness {
    fn from(now: Instant) -> Self {
        Self { seen_at: now, sum: 0, lasted: Duration::ZERO }
    }

    /// Takes in how much has been moved until now.
    fn look(&mut self, now: Instant, sum: u64) {
        let since = now - self.seen_at;
        self.lasted = if sum == self.sum { self.lasted + since.min(2 * LOOK_UP) } else { Duration::ZERO };
        (self.seen_at, self.sum) = (now, sum);
    }
}

fn reports(task: &Task) -> Vec<EndReport> {
    serde_json::from_slice(task.report()).unwrap_or_default()
}

fn died(task: &Task, name: &str, case: &Case, how: &str) -> CaseError {
    CaseError {
        kind: ErrorKind::Died,
        message: format!("the {name} (process {}) {how} during a {} trial", task.pid(), case.workload),
        remedy: None,
        expected: false,
    }
}

fn failed(failure: &EndFailure, case: &Case) -> CaseError {
    if failure.would_block {
        return CaseError {
            kind: ErrorKind::Limit,
            message: failure.message.clone(),
            remedy: Some("--tasks processes, or a smaller --block".to_owned()),
            expected: true,
        };
    }
    let remedy = match failure.errno {
        Some(libc::ENOSPC) => Some("free some space, a smaller --bytes, or dir= on a larger file system"),
        Some(libc::EFBIG) => Some("raise the file size limit (ulimit -f), or a smaller --bytes"),
        Some(libc::EDQUOT) => Some("your disk quota is spent: a smaller --bytes, or dir= elsewhere"),
        _ => None,
    };
    CaseError {
        kind: ErrorKind::Failed,
        message: format!(
            "{} of {} blocks: {}",
            case.workload,
            model::ByteSize(case.block_bytes),
            failure.message
        ),
        remedy: remedy.map(str::to_owned),
        expected: false,
    }
}

/// What people call the task.
fn task_name(index: usize, case: &Case) -> String {
    match index {
        _ if case.tasks != Tasks::Processes => "process of both ends".to_owned(),
        0 => "sender".to_owned(),
        last if last + 1 == tasks(case) => "receiver".to_owned(),
        relay => format!("relay {relay}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: a run that was stopped by Ctrl-Z goes on.
    /// Happened: after 10 s of it "nothing moved for 10 s".
    #[test]
    fn time_in_which_the_supervisor_itself_stands_still_does_not_count() {
        let mut now = Instant::now();
        let mut stillness = Stillness::from(now);
        now += 100 * STALL_MAX;
        stillness.look(now, 0);
        assert!(stillness.lasted <= 2 * LOOK_UP);
        let looks = STALL_MAX.as_millis() / LOOK_UP.as_millis();
        for _ in 0..looks {
            now += LOOK_UP;
            stillness.look(now, 0);
        }
        assert!(
            stillness.lasted >= STALL_MAX,
            "it does count where looks are as far apart as they should be"
        );
        stillness.look(now, 1);
        assert_eq!(stillness.lasted, Duration::ZERO, "something moved");
    }
}
