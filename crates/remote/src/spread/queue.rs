//! This machine as the engine: so many partitions at a time, each by a program of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use process::{Child, attend, end_all, run, shown_status};

use crate::spread::job::{Job, describe};

/// How long programs that were asked to end may take.
const GRACE: Duration = Duration::from_secs(2);

struct Running {
    partition: usize,
    attempts_left: u32,
    child: Child<'static>,
}

impl Job<'_> {
    /// As [`Job::map`], here.
    pub(crate) fn map_here(&self, look: &mut dyn FnMut(usize, usize) -> bool) -> io::Result<Vec<String>> {
        let attempts_left = self.retries.unwrap_or(0);
        let mut waiting: VecDeque<_> = self.left().map(|partition| (partition, attempts_left)).collect();
        let mut finished = self.plan.partitions.len() - waiting.len();
        let (mut running, mut failures) = (Vec::new(), Vec::new());
        while !look(finished, running.len()) {
            while running.len() < self.jobs.unwrap_or(1)
                && (failures.is_empty() || self.keep_going)
                && let Some((partition, attempts_left)) = waiting.pop_front()
            {
                let mut command = self.part(Some(partition));
                command.stdin(Stdio::null());
                match Child::start(command) {
                    Ok(child) => running.push(Running { partition, attempts_left, child }),
                    Err(error) if running.is_empty() => return Err(error),
                    // The system may have enough for fewer at a time.
                    Err(_) => {
                        waiting.push_front((partition, attempts_left));
                        break;
                    }
                }
            }
            if running.is_empty() {
                break;
            }
            attend(&mut running.iter_mut().map(|one| &mut one.child).collect::<Vec<_>>())?;
            let ended = running.extract_if(.., |one| one.child.ended().is_some());
            for Running { partition, attempts_left, child } in ended {
                let Some(status) = child.ended().map(|ended| ended.status) else { continue };
                // Its descriptor may be the last that we may have.
                drop(child);
                if status.success() && self.work.is_finished(partition) {
                    finished += 1;
                } else if attempts_left > 0 {
                    waiting.push_back((partition, attempts_left - 1));
                } else {
                    failures.push(self.failed(partition, &describe(status)));
                }
            }
        }
        let mut left: Vec<_> = running.into_iter().map(|one| one.child).collect();
        end_all(&mut left, GRACE)?;
        Ok(failures)
    }

    /// Runs the reduce here, with standard output elsewhere if that is asked for; gives its status.
    ///
    /// # Errors
    /// As [`Job::map`].
    pub fn reduce(&self, output: Option<File>, stops: &mut dyn FnMut() -> bool) -> io::Result<i32> {
        let mut command = self.part(None);
        command.stdout(output.map_or(Stdio::inherit(), Stdio::from));
        run(command, GRACE, stops).map(shown_status)
    }
}
