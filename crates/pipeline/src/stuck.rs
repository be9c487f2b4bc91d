//! Finds out why nothing moves in a run, while it does not.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{WhyAnswer, WhyVerdict};
use observe::why::{Asked, Progress, explain};
use process::{proc, spawn_thread};

/// Time between two looks at a run, and the time without progress after which the cause is looked for.
const PAUSE: Duration = Duration::from_millis(500);
const STILL_MIN: Duration = Duration::from_millis(1500);
/// Most programs of which one after the other is asked.
const ASKED_MAX: usize = 4;

/// Looks at programs and what they have started.
pub struct StuckWatch {
    /// One program; `None` for all that this process has started.
    program: Option<i32>,
    progress: Progress,
    looked: Option<Instant>,
    moved: Instant,
    /// The search for the cause, since the run moved last. It takes longer than a signal may wait.
    search: Option<JoinHandle<Option<WhyAnswer>>>,
}

impl StuckWatch {
    /// Looks at this program, or at all that this process has started.
    pub fn new(program: Option<i32>) -> Self {
        let (progress, looked, search) = Default::default();
        Self { program, progress, looked, moved: Instant::now(), search }
    }

    /// Looks whether it has moved, unless it did so just before. Returns the time until the next look.
    pub fn look(&mut self) -> Duration {
        if let Some(left) = self.looked.and_then(|looked| PAUSE.checked_sub(looked.elapsed())) {
            return left;
        }
        self.looked = Some(Instant::now());
        let own = std::process::id().cast_signed();
        let programs = self.program.map_or_else(|| proc::children(own), |program| vec![program]);
        let progress = Progress::of(&programs);
        if progress != self.progress {
            (self.progress, self.moved, self.search) = (progress, Instant::now(), None);
        } else if self.search.is_none() && self.moved.elapsed() >= STILL_MIN {
            let stuck = |answer: &WhyAnswer| answer.verdict == WhyVerdict::Stuck;
            let why = move |pid: i32| explain(&Asked::Process(pid), &[]).answers.into_iter().find(stuck);
            // Without a thread the cause stays unknown.
            let search = move || programs.into_iter().take(ASKED_MAX).find_map(why);
            self.search = spawn_thread("hosepipe-why", search).ok();
        }
        PAUSE
    }

    /// The cause that was found if the run has not moved since.
    pub fn finish(self) -> Option<WhyAnswer> {
        self.search.filter(JoinHandle::is_finished)?.join().ok()?
    }
}
