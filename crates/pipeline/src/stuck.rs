//! Finds out why nothing moves in a run, while it does not.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{WhyAnswer, WhyVerdict};
use observe::why::{Asked, Progress, explain};
use process::spawn_thread;

/// Time between two looks at a run, and the time without progress after which the cause is looked for.
const PAUSE: Duration = Duration::from_millis(500);
const STILL_MIN: Duration = Duration::from_millis(1500);

/// Looks at a shell and what it has started.
pub(crate) struct StuckWatch {
    shell: i32,
    progress: Progress,
    moved: Instant,
    /// The search for the cause, since the run moved last. It takes longer than a signal may wait.
    search: Option<JoinHandle<Option<WhyAnswer>>>,
}

impl StuckWatch {
    pub(crate) fn new(shell: i32) -> Self {
        Self { shell, progress: Progress::default(), moved: Instant::now(), search: None }
    }

    /// Looks whether it has moved. Returns the time until the next look.
    pub(crate) fn look(&mut self) -> Duration {
        let progress = Progress::of(self.shell);
        if progress != self.progress {
            (self.progress, self.moved, self.search) = (progress, Instant::now(), None);
        } else if self.search.is_none() && self.moved.elapsed() >= STILL_MIN {
            let shell = self.shell;
            let stuck = |answer: &WhyAnswer| answer.verdict == WhyVerdict::Stuck;
            let search = move || explain(&Asked::Process(shell), &[]).answers.into_iter().find(stuck);
            // Without a thread the cause stays unknown.
            self.search = spawn_thread("hosepipe-why", search).ok();
        }
        PAUSE
    }

    /// The cause that was found if the run has not moved since.
    pub(crate) fn finish(self) -> Option<WhyAnswer> {
        self.search.filter(JoinHandle::is_finished)?.join().ok()?
    }
}
