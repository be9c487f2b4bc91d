//! Finds out why nothing moves in a run, while it does not.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{WhyAnswer, WhyCause, WhyVerdict};
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

/// The programs that this process has started, by itself or by processes of its own program. Those look at others again and again, and are none of them.
fn started() -> Vec<i32> {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    let is_own = |pid: &i32| program(&pid.to_string()) == own;
    let below = |pid: i32| if is_own(&pid) { proc::children(pid) } else { Vec::new() };
    let mut all = proc::tree(&[std::process::id().cast_signed()], below);
    all.retain(|pid| !is_own(pid));
    all
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
        let programs = self.program.map_or_else(started, |program| vec![program]);
        let progress = Progress::of(&programs);
        if progress != self.progress {
            (self.progress, self.moved, self.search) = (progress, Instant::now(), None);
        } else if self.search.is_none() && !programs.is_empty() && self.moved.elapsed() >= STILL_MIN {
            // One that has ended was ended with the run, while this looked.
            let stuck =
                |answer: &WhyAnswer| answer.verdict == WhyVerdict::Stuck && answer.cause != WhyCause::Ended;
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
