//! Measures the speed of copies for several page offsets, once for each boot.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::{CopyCosts, CopySpeed, monotonic_ns};
use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::geteuid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::Roots;

/// Variable that simulates a machine, for tests and demonstrations: the speed of copies to the slow offsets as a share of the full
/// speed; 1 for a machine without slow offsets.
const SIMULATED: &str = "HOSEPIPE_SLOW_COPIES";
/// Number of measurements of each offset; the median is kept.
const ROUNDS: usize = 31;
/// Bytes of one read(2): the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;
/// Bytes of one memcpy(3): more than 2 KiB, above which glibc uses `rep movsb`, and less than half of an L1 data cache.
const COPY_BYTES: usize = 16 << 10;
/// memcpy(3) calls between two readings of the clock.
const COPIES: usize = 4;
/// Both addresses are aligned to this.
const PAGE_BYTES: usize = 4096;

/// The contents of the file that keeps the speeds until the next boot.
#[derive(Serialize, Deserialize)]
struct CachedCosts {
    boot: String,
    costs: CopyCosts,
}

/// The figures of this boot, from the file that keeps them; else they are measured, in less than 0.2 s, and cached.
/// `HOSEPIPE_SLOW_COPIES=0.3` simulates a machine that copies to the slow offsets at 0.3 of its speed.
///
/// # Errors
/// As [`measure_copy_costs`].
pub fn copy_costs() -> io::Result<CopyCosts> {
    let simulated = std::env::var(SIMULATED).ok().and_then(|share| share.parse().ok());
    if let Some(share) = simulated.filter(|share| (0.01..=1.0).contains(share)) {
        return Ok(CopyCosts::simulated(share));
    }
    let boot = Roots::default().proc_text("sys/kernel/random/boot_id").unwrap_or_default();
    let path = cache_path();
    if let Some(cached) = read_cache(&path).filter(|cached| cached.boot == boot) {
        return Ok(cached.costs);
    }
    let mut costs = measure_copy_costs()?;
    if costs.slow_offsets().is_some() {
        // The result is cached for a long time, so a slow machine is measured twice.
        let again = measure_copy_costs()?;
        costs = if again.slow_offsets().is_none() { again } else { costs };
    }
    let cached = CachedCosts { costs, boot };
    // If it cannot be written, the next command measures again.
    let _ = write_cache(&path, &cached);
    Ok(cached.costs)
}

/// Where the figures are cached: in XDG_RUNTIME_DIR or /tmp. Not in TMPDIR: a script that sets it may expect only its own files there.
fn cache_path() -> PathBuf {
    let folder = model::runtime_folder().unwrap_or_else(|| "/tmp".into());
    folder.join(format!("hosepipe-copies-{}", geteuid().as_raw()))
}

/// The cached figures, if no other user can have written them.
fn read_cache(path: &Path) -> Option<CachedCosts> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    model::from_json(text).ok()
}

/// Writes a file of another name, then renames it, so that readers see complete files only.
fn write_cache(path: &Path, cached: &CachedCosts) -> io::Result<()> {
    // In another container another process may have the same PID.
    let beside = path.with_extension(format!("{:016x}", fastrand::u64(..)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let done = file.write_all(&serde_json::to_vec(cached)?).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        fs::remove_file(&beside)?;
    }
    done
}

/// Measures copies at each of [`CopyCosts::OFFSETS`], pinned to the current CPU. The offsets are measured in turns, so that a
/// disturbance affects several of them.
///
/// # Errors
/// There is no memory or no file descriptor left.
pub fn measure_copy_costs() -> io::Result<CopyCosts> {
    // If this fails, because the CPU was forbidden in the meantime or a set has no room for all CPUs, the thread may move, and the figures are of
    // several CPUs.
    let (before, cpu) = (sched_getaffinity(None), sched_getcpu());
    let Some(before) = before.ok().filter(|_| cpu < CpuSet::MAX_CPU) else { return measure() };
    let mut here = CpuSet::new();
    here.set(cpu);
    let _ = sched_setaffinity(None, &here);
    let measured = measure();
    let _ = sched_setaffinity(None, &before);
    measured
}

fn measure() -> io::Result<CopyCosts> {
    let mut bench = Bench::new()?;
    let mut times = vec![[const { Vec::new() }; 3]; CopyCosts::OFFSETS.len()];
    for _ in 0..ROUNDS {
        for (offset, times) in CopyCosts::OFFSETS.iter().zip(&mut times) {
            for (times, speed) in times.iter_mut().zip(bench.speeds(*offset as usize)?) {
                times.push(speed);
            }
        }
    }
    let speed = |(offset, speeds): (u64, [Vec<f64>; 3])| {
        let [memcpy_bytes_per_s, pipe_read_bytes_per_s, file_read_bytes_per_s] = speeds.map(median);
        CopySpeed { offset, memcpy_bytes_per_s, pipe_read_bytes_per_s, file_read_bytes_per_s }
    };
    Ok(CopyCosts { speeds: CopyCosts::OFFSETS.into_iter().zip(times).map(speed).collect() })
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The source, the destination, a pipe, and a file in memory, whose pages are in the page cache like those of other files.
struct Bench {
    from: Vec<u8>,
    into: Vec<u8>,
    reader: File,
    writer: File,
    file: File,
}

impl Bench {
    fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let file = File::from(memfd_create("copies", MemfdFlags::CLOEXEC)?);
        let memory = || vec![1; READ_BYTES + 2 * PAGE_BYTES];
        let (from, into) = (memory(), memory());
        file.write_all_at(&from[..READ_BYTES], 0)?;
        Ok(Self { from, into, reader: reader.into(), writer: writer.into(), file })
    }

    /// Bytes per second of memcpy(3), of read(2) from the pipe and of pread(2), each into a buffer at this offset.
    fn speeds(&mut self, offset: usize) -> io::Result<[f64; 3]> {
        let from = &self.from[self.from.as_ptr().align_offset(PAGE_BYTES)..];
        let start = self.into.as_ptr().align_offset(PAGE_BYTES) + offset;
        let into = &mut self.into[start..][..READ_BYTES];
        let memcpy = timed(|| {
            for _ in 0..COPIES {
                black_box(&mut into[..COPY_BYTES]).copy_from_slice(black_box(&from[..COPY_BYTES]));
            }
            Ok(COPIES * COPY_BYTES)
        })?;
        // Fewer bytes if the user's quota of pipe pages is used up.
        let written = self.writer.write(&from[..READ_BYTES])?;
        let pipe = timed(|| self.reader.read(&mut into[..written]))?;
        let file = timed(|| self.file.read_at(into, 0))?;
        Ok([memcpy, pipe, file])
    }
}

/// The bytes per second of a copy.
fn timed(copy: impl FnOnce() -> io::Result<usize>) -> io::Result<f64> {
    let began = monotonic_ns();
    let bytes = copy()?;
    Ok(bytes as f64 * 1e9 / (monotonic_ns() - began).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn every_offset_has_its_speeds_and_the_affinity_is_restored() {
        let before = sched_getaffinity(None).expect("of this thread");
        let costs = measure_copy_costs().expect("memory and a pipe");
        assert_eq!(sched_getaffinity(None).expect("of this thread"), before);
        let offsets: Vec<u64> = costs.speeds.iter().map(|speed| speed.offset).collect();
        assert_eq!(offsets, CopyCosts::OFFSETS);
        for speed in &costs.speeds {
            for rate in [speed.memcpy_bytes_per_s, speed.pipe_read_bytes_per_s, speed.file_read_bytes_per_s] {
                assert!((1e6..1e13).contains(&rate), "{speed:?}");
            }
        }
    }

    /// No byte is stored before the offset, and the pipe is empty for the next offset.
    #[test]
    fn the_bytes_of_a_read_are_at_the_offset() {
        let mut bench = Bench::new().expect("memory and a pipe");
        bench.from.fill(7);
        bench.into.fill(0);
        bench.speeds(24).expect("a copy");
        let start = bench.into.as_ptr().align_offset(PAGE_BYTES) + 24;
        assert!(bench.into[..start].iter().all(|byte| *byte == 0));
        assert!(bench.into[start..][..COPY_BYTES].iter().any(|byte| *byte != 0));
        assert!((bench.into.as_ptr() as usize + start) % PAGE_BYTES == 24);
        assert!(bench.reader.read(&mut [0; 1]).is_err(), "EAGAIN");
    }

    #[test]
    fn figures_are_read_only_if_no_other_user_can_have_written_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cached");
        assert!(read_cache(&path).is_none());
        let cached = CachedCosts { boot: "this".to_owned(), costs: CopyCosts::simulated(0.3) };
        for _ in 0..2 {
            write_cache(&path, &cached).expect("room");
        }
        let read = read_cache(&path).expect("cached");
        assert_eq!((read.boot, read.costs), (cached.boot, cached.costs));
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).expect("ours");
        assert!(read_cache(&path).is_none(), "others may write to it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        let link = folder.path().join("link");
        symlink(&path, &link).expect("a name");
        assert!(read_cache(&link).is_none(), "a link may belong to another user");
        fs::write(&path, "{}").expect("ours");
        assert!(read_cache(&path).is_none());
    }
}
