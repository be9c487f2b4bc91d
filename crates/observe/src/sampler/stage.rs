//! What the processes of one stage do together.

use model::StageActivity;

use super::Sampler;
use super::process::SampledProcess;
use crate::activity::{Slice, StdinWait};
use crate::flow::Moved;
use crate::fullness::Fill;
use crate::locale::Locale;
use crate::topology::{Held, HeldLinks};
use crate::waits::{Blocked, pass_time};

/// Share of a CPU above which a stage counts as computing; also the share of the time above which it counts as queueing for a CPU.
const BUSY_SHARE_MIN: f64 = 0.5;

/// What a stage or a thread does, and the index of the link for which it waits.
pub(crate) type Doing = (StageActivity, Option<usize>);

/// The processes of one stage, as they were sampled last.
#[derive(Clone, Copy)]
pub struct StageProcesses<'a> {
    pub(super) sampler: &'a Sampler,
    pub(super) pids: &'a [i32],
}

impl<'a> StageProcesses<'a> {
    pub fn each(self) -> impl Iterator<Item = &'a SampledProcess> + Clone {
        self.pids.iter().filter_map(move |pid| self.sampler.processes.get(pid))
    }

    fn waits(self) -> impl Iterator<Item = &'a Blocked> + Clone {
        self.each().flat_map(|process| &process.waits)
    }

    /// What they did since the previous round.
    pub(crate) fn slice(self, with_ended_children: bool) -> Slice {
        Slice::of_all(self.each().map(|process| process.slice), with_ended_children)
    }

    /// CPU time so far; `with_ended_children`: with what children that were waited for have used.
    pub fn cpu_ns(self, with_ended_children: bool) -> u64 {
        let used = self.each().map(|process| process.last.activity);
        used.map(|used| used.cpu_ns + if with_ended_children { used.children_cpu_ns } else { 0 }).sum()
    }

    pub fn threads(self) -> u64 {
        self.each().map(|process| process.last.activity.threads).sum()
    }

    /// What they have moved, with what their ended children did; `None` where that may not be read.
    pub fn moved(self) -> Option<Moved> {
        self.each().map(|process| process.last.moved).sum()
    }

    /// The locale of the program with this file name, if one of them executes it.
    pub fn locale_of(self, program: &str) -> Option<Locale> {
        Locale::of(self.each().find(|process| process.name == program)?.pid)
    }

    /// Whether all of them only wait for time to pass, or for a child that does.
    pub(crate) fn pass_time(self) -> bool {
        pass_time(self.waits())
    }

    /// Whether one of them, asleep, waits for room in something that it writes to.
    pub fn awaits_room(self) -> bool {
        self.waits().any(|waits| match waits {
            Blocked::On(fds) => !fds.is_empty() && fds.iter().all(|watched| watched.writes && !watched.reads),
            waits => *waits == Blocked::InWrite,
        })
    }

    /// Whether one of them, asleep, waits for its standard input.
    pub fn awaits_input(self) -> StdinWait {
        let each = self.waits().map(|waits| match waits {
            Blocked::On(fds) if fds.iter().any(|watched| watched.fd == 0 && watched.reads) => {
                StdinWait::Certain
            }
            Blocked::InRead | Blocked::InPoll => StdinWait::Possible,
            _ => StdinWait::No,
        });
        each.min().unwrap_or(StdinWait::No)
    }

    /// What they do, and the link that they wait for: the most informative state of all processes and threads.
    pub(crate) fn doing(self, slice: &Slice, held: &HeldLinks, fills: &[Option<Fill>]) -> Doing {
        if slice.cpu > BUSY_SHARE_MIN {
            return (StageActivity::Computes, None);
        }
        if self.each().any(|process| process.slice.queued > BUSY_SHARE_MIN) {
            return (StageActivity::Queues, None);
        }
        let each = self.each().flat_map(|process| {
            let state = match process.state {
                'T' | 't' => Some((StageActivity::Stopped, None)),
                'Z' | 'X' => Some((StageActivity::Ended, None)),
                'D' => Some((StageActivity::Disk, None)),
                _ => None,
            };
            let waits = process.waits.iter().map(|waits| blocked_at(held, fills, process.pid, waits));
            state.into_iter().chain(waits.filter(move |_| state.is_none()))
        });
        // The order of the enum is not this order.
        let rank = |(doing, link): &Doing| match doing {
            StageActivity::Disk => 0,
            StageActivity::WaitsToWrite if link.is_some() => 1,
            StageActivity::WaitsToRead if link.is_some() => 2,
            StageActivity::MayWait => 3,
            StageActivity::Works => 4,
            StageActivity::Sleeps => 5,
            StageActivity::Elsewhere => 6,
            StageActivity::Stopped => 7,
            StageActivity::Children => 8,
            _ => 9,
        };
        each.min_by_key(rank).unwrap_or((StageActivity::Elsewhere, None))
    }
}

/// What a thread does, and the link for which it waits.
fn blocked_at(held: &HeldLinks, fills: &[Option<Fill>], pid: i32, waits: &Blocked) -> Doing {
    let link = |fd: i32, writes: bool| Some((writes, *held.get(&Held { pid, fd, writes })?));
    match waits {
        Blocked::Nothing => (StageActivity::Works, None),
        Blocked::On(fds) => {
            let read = fds.iter().filter(|watched| watched.reads).map(|watched| (watched.fd, false));
            let written = fds.iter().filter(|watched| watched.writes).map(|watched| (watched.fd, true));
            let links: Vec<(bool, usize)> =
                read.chain(written).filter_map(|(fd, writes)| link(fd, writes)).collect();
            // splice(2) and poll(2) may wait for several: it is one that is empty, or full.
            let blocks = |(writes, link): &&(bool, usize)| {
                fills[*link].is_some_and(|fill| if *writes { fill.is_full() } else { fill.is_empty() })
            };
            match links.iter().find(blocks).or(links.first()) {
                Some((true, link)) => (StageActivity::WaitsToWrite, Some(*link)),
                Some((false, link)) => (StageActivity::WaitsToRead, Some(*link)),
                None => (StageActivity::Elsewhere, None),
            }
        }
        Blocked::InRead | Blocked::InWrite | Blocked::InPoll => (StageActivity::MayWait, None),
        Blocked::Children => (StageActivity::Children, None),
        Blocked::Time => (StageActivity::Sleeps, None),
        Blocked::Other => (StageActivity::Elsewhere, None),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sampler::STAGE_PROCESSES_MAX;
    use crate::sampler::process::Detail;

    /// A shell and what it has started.
    struct Tree {
        shell: Child,
        sampler: Sampler,
        pids: Vec<i32>,
    }

    impl Tree {
        fn start(text: &str, detail: Detail) -> Self {
            let mut command = Command::new("sh");
            let shell = command.args(["-c", text]).stdin(Stdio::piped()).spawn().expect("sh");
            Self { shell, sampler: Sampler::new(detail), pids: Vec::new() }
        }

        fn sample(&mut self) {
            self.pids = self.sampler.sample_tree(self.shell.id() as i32, &[], STAGE_PROCESSES_MAX);
            self.sampler.forget_others();
            self.sampler.end_round();
        }

        /// Samples it until something is seen, and returns whether it was.
        fn until(&mut self, seen: impl Fn(StageProcesses<'_>) -> bool) -> bool {
            let deadline = Instant::now() + Duration::from_secs(20);
            while Instant::now() < deadline {
                self.sample();
                if seen(self.sampler.stage(&self.pids)) {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            false
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            for pid in &self.pids {
                process::signals::send(*pid, nix::sys::signal::Signal::SIGKILL);
            }
            self.shell.kill().and_then(|()| self.shell.wait()).expect("reaped");
            self.sample();
            assert!(self.pids.is_empty(), "{:?}", self.pids);
        }
    }

    fn start(text: &str) -> Tree {
        Tree::start(text, Detail::Activity)
    }

    #[test]
    fn a_computing_grandchild_counts_for_its_stage() {
        let mut tree = start("sh -c 'while :; do :; done'; :");
        assert!(tree.until(|stage| stage.cpu_ns(true) >= 50_000_000 && stage.slice(true).cpu > 0.0));
        assert_eq!(tree.pids.len(), 2);
    }

    /// Expected: what short children compute is what their stage does. Happened: `top` said that such a stage waits for its children.
    #[test]
    fn what_children_computed_that_have_ended_is_what_the_stage_did() {
        let mut tree = start("while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'; done");
        let [mut with, mut without] = [0.0; 2];
        let began = Instant::now();
        while without == 0.0 || began.elapsed() < Duration::from_secs(1) {
            tree.sample();
            let stage = tree.sampler.stage(&tree.pids);
            with += stage.slice(true).ns * stage.slice(true).cpu;
            without += stage.slice(false).ns * stage.slice(false).cpu;
            std::thread::sleep(Duration::from_millis(50));
        }
        let used = tree.sampler.stage(&tree.pids).cpu_ns(true) as f64;
        assert!(with > without && with > used / 2.0, "{with} {without} {used}");
    }

    #[test]
    fn a_reader_is_told_from_a_sleeper() {
        assert!(start("cat; :").until(|stage| stage.awaits_input() != StdinWait::No));
        let mut tree = start("exec sleep 100");
        assert!(tree.until(|stage| stage.pass_time()));
        assert_eq!(tree.sampler.stage(&tree.pids).awaits_input(), StdinWait::No);
    }

    /// Happened: "at work", of a program that slept in a circle of full pipes.
    #[test]
    fn a_writer_without_room_is_known_whatever_it_writes_to() {
        let mut tree = start("{ exec 9>&1 >/dev/null; tee /dev/fd/9 </dev/zero; } | sleep 100");
        assert!(tree.until(|stage| stage.awaits_room()));
        assert!(!tree.sampler.stage(&tree.pids).pass_time());
    }

    /// With fewer files read, too, and although a process that sleeps is not read again.
    #[test]
    fn a_sleeper_is_told_from_a_reader() {
        for detail in [Detail::Activity, Detail::Waits] {
            for (text, passes) in [("sleep 100; :", true), ("cat; :", false), ("sleep 100 | cat", false)] {
                let mut tree = Tree::start(text, detail);
                assert!(tree.until(|stage| stage.pids.len() > 1 && stage.pass_time() == passes), "{text}");
            }
        }
    }
}
