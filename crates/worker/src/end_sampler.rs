//! Samples the two ends while they run: the CPU on which each ran last (proc_pid_stat(5)), the offsets of their buffers, and the type
//! of the reader's standard input. An end is a process with its descendants; its busiest thread counts.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use model::Workload;
use observe::buffers::BufferOffsets;
use process::proc::{self, Stat};

use crate::program::roles;
use crate::trial_size::TrialSize;

/// Shortest time between samples: each costs tens of microseconds for each thread.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(40);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Writer,
    Reader,
}

/// The samples of one run.
pub(crate) struct EndSampler {
    /// The processes that hosepipe started.
    roots: Vec<(i32, End)>,
    /// The arguments in a reader's command line, each followed by a zero. The command line of a `pair` contains them, too, as the command of its
    /// child; but it also contains `pair_words`.
    reader_words: Vec<u8>,
    pair_words: Vec<u8>,
    /// CPU time of each thread at its last sample, in clock ticks.
    ticks: HashMap<i32, u64>,
    last: Instant,
    /// CLOCK_MONOTONIC in ns, and whether both ends had run last on one CPU.
    samples: Vec<(u64, bool)>,
    /// Whether the writer connected its reader by a socket; `None` if no sample shows it.
    pub(crate) through_socket: Option<bool>,
    /// The buffers of the writer and of the reader.
    buffers: [BufferOffsets; 2],
}

impl EndSampler {
    /// `processes` has each PID, and whether the process sends. A sender may start the receiver as its child.
    pub(crate) fn new(
        processes: impl Iterator<Item = (i32, bool)>,
        workload: Workload,
        size: &TrialSize,
    ) -> Self {
        let (pair, reader) = roles(workload);
        let end = |sends| if sends { End::Writer } else { End::Reader };
        let words = |role: &str| {
            let words = std::iter::once(role.to_owned()).chain(size.arguments());
            words.map(|word| format!("{word}\0")).collect::<String>().into_bytes()
        };
        Self {
            roots: processes.map(|(pid, sends)| (pid, end(sends))).collect(),
            reader_words: words(reader),
            pair_words: words(pair),
            ticks: HashMap::new(),
            last: Instant::now(),
            samples: Vec::new(),
            through_socket: None,
            buffers: Default::default(),
        }
    }

    /// Takes a sample, unless the last one is too recent.
    pub(crate) fn sample(&mut self) {
        if self.last.elapsed() < SAMPLE_INTERVAL {
            return;
        }
        self.last = Instant::now();
        let at_ns = model::monotonic_ns();
        // The busiest thread of each end: CPU time since the last sample and in total, in clock ticks, and the CPU.
        let mut busiest: [Option<(u64, u64, u32)>; 2] = [None; 2];
        let mut waiting = self.roots.clone();
        while let Some((pid, end)) = waiting.pop() {
            let end = if end == End::Writer && self.is_reader(pid) { End::Reader } else { end };
            let mut threads = 0;
            for (id, folder) in proc::threads(pid) {
                threads += 1;
                // The thread has just ended.
                let Some(stat) = Stat::at(&folder) else { continue };
                let before = self.ticks.insert(id, stat.cpu_ticks).unwrap_or(0);
                let found = Some((stat.cpu_ticks.saturating_sub(before), stat.cpu_ticks, stat.cpu));
                busiest[end as usize] = busiest[end as usize].max(found);
                waiting.extend(proc::children_of_thread(&folder).into_iter().map(|pid| (pid, end)));
            }
            self.buffers[end as usize].sample(pid, threads);
        }
        if let [Some((.., writer)), Some((.., reader))] = busiest {
            self.samples.push((at_ns, writer == reader));
        }
    }

    /// Whether this is the receiver that a `pair` has started. If so, the type of its input is noted, too.
    fn is_reader(&mut self, pid: i32) -> bool {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has = |words: &[u8]| line.windows(words.len()).any(|part| part == words);
        let is_one = has(&self.reader_words) && !has(&self.pair_words);
        if is_one && self.through_socket.is_none() {
            let input = fs::metadata(format!("/proc/{pid}/fd/0"));
            self.through_socket = input.ok().map(|input| input.file_type().is_socket());
        }
        is_one
    }

    /// The share of the samples of the timed part in which both ends had run last on one CPU; `None` without a sample.
    pub(crate) fn same_cpu_share(&self, began_ns: u64, ended_ns: u64) -> Option<f64> {
        let timed = || self.samples.iter().filter(|(at_ns, _)| (began_ns..=ended_ns).contains(at_ns));
        let (samples, same) = (timed().count(), timed().filter(|(_, same)| *same).count());
        (samples > 0).then(|| same as f64 / samples as f64)
    }

    /// Page offset of the reader's buffer; `None` if no sample shows it, or if no offset is that of most reads.
    pub(crate) fn read_buffer_offset(&self) -> Option<u64> {
        self.buffers[End::Reader as usize].of_reads()
    }

    /// The same for the writer's buffer.
    pub(crate) fn write_buffer_offset(&self) -> Option<u64> {
        self.buffers[End::Writer as usize].of_writes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// dd(1) reads into a buffer that begins at a page, and sleeps in read(2) while its pipe is empty.
    #[test]
    fn the_offset_of_a_sleeping_reader_is_seen() {
        let mut command = std::process::Command::new("dd");
        command.args(["bs=64k", "status=none"]).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().expect("dd");
        let size = TrialSize { bytes: 1, block_bytes: 1, warmup_bytes: 0 };
        let ends = [(child.id().cast_signed(), false)].into_iter();
        let mut sampler = EndSampler::new(ends, Workload::Stream, &size);
        let began = Instant::now();
        while sampler.read_buffer_offset().is_none() && began.elapsed() < Duration::from_secs(30) {
            sampler.sample();
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!((sampler.read_buffer_offset(), sampler.write_buffer_offset()), (Some(0), None));
    }

    #[test]
    fn only_samples_of_the_timed_part_count() {
        let size = TrialSize { bytes: 1, block_bytes: 1, warmup_bytes: 0 };
        let mut sampler = EndSampler::new(std::iter::empty(), Workload::Stream, &size);
        sampler.samples = vec![(5, false), (10, true), (15, true), (20, false), (25, true)];
        assert_eq!(sampler.same_cpu_share(10, 20), Some(2.0 / 3.0));
        assert_eq!(sampler.same_cpu_share(11, 14), None);
    }
}
