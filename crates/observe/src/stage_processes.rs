//! The processes of one stage: the one that was started for it, and its descendants. They are sampled together.

use process::proc;

use crate::activity::{Activity, Awaits};
use crate::buffers::BufferOffsets;
use crate::flow::Moved;
use crate::locale::Locale;
use crate::sampled_process::SampledProcess;
use crate::waits::{Waits, pass_time};

/// Largest number of processes whose files in /proc a sampler keeps open: the usual limit is 1024 descriptors.
pub const KEPT_PROCESSES_MAX: usize = 200;
/// Most generations of descendants, and most processes, of a stage that are sampled.
const DEPTH_MAX: usize = 4;
const PROCESSES_MAX: usize = 64;

/// The processes of a stage, and what was seen of them.
#[derive(Default)]
pub struct StageProcesses {
    /// Those of the last sample; the one that was started for the stage is the first.
    processes: Vec<SampledProcess>,
    pub pids: Vec<i32>,
    /// What they did so far, and do now.
    pub activity: Activity,
    /// The page offsets of their buffers.
    pub buffers: BufferOffsets,
}

impl StageProcesses {
    /// Samples a process and, if `with_descendants`, its descendants except those in `except`. With `keep` their files in /proc are kept
    /// open. `None` if the process has ended.
    pub fn sample(&mut self, pid: i32, with_descendants: bool, except: &[i32], keep: bool) -> Option<()> {
        let mut known = std::mem::take(&mut self.processes);
        self.pids.clear();
        let mut activity = Activity::default();
        let mut waiting = vec![(pid, 0)];
        while let Some((pid, depth)) = waiting.pop() {
            let process = match known.iter().position(|process| process.pid == pid) {
                Some(at) => {
                    let mut process = known.swap_remove(at);
                    let has_run = process.has_run();
                    process.sample(has_run).map(|()| process)
                }
                None => SampledProcess::new(pid, keep, false),
            };
            let Some(process) = process else { continue };
            if with_descendants {
                activity.add(&process.last.activity);
                if depth < DEPTH_MAX {
                    let children = proc::children(pid).into_iter().filter(|child| !except.contains(child));
                    let room = PROCESSES_MAX.saturating_sub(self.pids.len() + 1 + waiting.len());
                    waiting.extend(children.take(room).map(|child| (child, depth + 1)));
                }
            } else {
                activity = process.last.activity;
            }
            self.pids.push(pid);
            self.buffers.add(&process.large_calls);
            self.processes.push(process);
        }
        self.activity = activity;
        (self.pids.first() == Some(&pid)).then_some(())
    }

    /// Closes the files of processes that have ended. What was seen of their buffers stays.
    pub fn end(&mut self) {
        self.processes.clear();
        self.pids.clear();
    }

    /// What they have moved, with what their ended children did; `None` where that may not be read.
    pub fn moved(&self) -> Option<Moved> {
        self.processes.iter().map(|process| process.last.moved).sum()
    }

    /// The locale of the program with this file name, if one of them executes it.
    pub fn locale_of(&self, program: &str) -> Option<Locale> {
        let mut processes = self.processes.iter();
        Locale::of(processes.find(|process| process.name == program)?.pid)
    }

    /// Whether all of them only wait for time to pass, or for a child that does.
    pub fn pass_time(&self) -> bool {
        pass_time(self.processes.iter().flat_map(|process| &process.waits))
    }

    /// Whether one of them, asleep, waits for room in something that it writes to.
    pub fn awaits_room(&self) -> bool {
        let only_writes = |waits: &Waits| match waits {
            Waits::For(fds) => !fds.is_empty() && fds.iter().all(|awaited| awaited.writes && !awaited.reads),
            waits => *waits == Waits::ToWrite,
        };
        self.processes.iter().flat_map(|process| &process.waits).any(only_writes)
    }

    /// Whether one of them, asleep, waits for its standard input.
    pub fn awaits_input(&self) -> Awaits {
        let waits = self.processes.iter().flat_map(|process| &process.waits);
        let each = waits.map(|waits| match waits {
            Waits::For(fds) if fds.iter().any(|awaited| awaited.fd == 0 && awaited.reads) => Awaits::Input,
            Waits::ToRead | Waits::Somewhere => Awaits::Perhaps,
            _ => Awaits::Other,
        });
        each.min().unwrap_or(Awaits::Other)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn start(text: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", text]).stdin(Stdio::piped()).spawn().expect("sh")
    }

    /// Samples a shell and what it has started until something is seen.
    fn until(shell: &Child, seen: impl Fn(&StageProcesses) -> bool) -> StageProcesses {
        let mut processes = StageProcesses::default();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            processes.sample(shell.id() as i32, true, &[], true).expect("it lives");
            if seen(&processes) || Instant::now() > deadline {
                return processes;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(mut shell: Child, processes: &mut StageProcesses) {
        for pid in &processes.pids {
            process::signals::send(*pid, nix::sys::signal::Signal::SIGKILL);
        }
        shell.wait().expect("reaped");
        assert_eq!(processes.sample(shell.id() as i32, true, &[], true), None);
    }

    #[test]
    fn a_computing_grandchild_counts_for_its_stage() {
        let shell = start("sh -c 'while :; do :; done'; :");
        let mut seen = until(&shell, |seen| seen.activity.cpu_ns >= 50_000_000);
        assert_eq!((seen.activity.cpu_ns >= 50_000_000, seen.pids.len()), (true, 2));
        end(shell, &mut seen);
    }

    #[test]
    fn a_reader_is_told_from_a_sleeper() {
        let shell = start("cat; :");
        let mut seen = until(&shell, |seen| seen.awaits_input() != Awaits::Other);
        assert_ne!(seen.awaits_input(), Awaits::Other);
        end(shell, &mut seen);
        let shell = start("exec sleep 100");
        let mut seen = until(&shell, StageProcesses::pass_time);
        assert_eq!(seen.awaits_input(), Awaits::Other);
        end(shell, &mut seen);
    }

    /// Happened: "at work", of a program that slept in a circle of full pipes.
    #[test]
    fn a_writer_without_room_is_known_whatever_it_writes_to() {
        let shell = start("{ exec 9>&1 >/dev/null; tee /dev/fd/9 </dev/zero; } | sleep 100");
        let mut seen = until(&shell, StageProcesses::awaits_room);
        assert!(seen.awaits_room() && !seen.pass_time());
        end(shell, &mut seen);
    }

    #[test]
    fn a_sleeper_is_told_from_a_reader() {
        for (text, passes) in [("sleep 100; :", true), ("cat; :", false), ("sleep 100 | cat", false)] {
            let shell = start(text);
            let mut seen = until(&shell, |seen| seen.pids.len() > 1 && seen.pass_time() == passes);
            assert_eq!(seen.pass_time(), passes, "{text}");
            end(shell, &mut seen);
        }
    }
}
