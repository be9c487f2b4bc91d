//! What a study needs before it starts: room for its files, inodes, memory.

use std::path::{Path, PathBuf};

use mechanism::free_bytes;
use model::ByteSize;
use rustix::fs::statvfs;

use crate::{Scale, Study};

/// What a study needs.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Free bytes where temporary files lie.
    pub(crate) disk_bytes: u64,
    /// Files that can still be made there.
    pub(crate) inodes: u64,
    /// Memory that can be had without swapping.
    pub(crate) memory_bytes: u64,
}

/// What there is.
#[derive(Debug)]
pub struct Have {
    /// Where temporary files lie.
    folder: PathBuf,
    /// `None` where the system does not say.
    disk_bytes: Option<u64>,
    /// `None` where the file system makes inodes as it needs them.
    inodes: Option<u64>,
    memory_bytes: Option<u64>,
}

/// Beside what can be counted: folders, records, buffers of the programs that are run.
const SPARE_DISK_BYTES: u64 = 32 << 20;
const SPARE_INODES: u64 = 1000;
const SPARE_MEMORY_BYTES: u64 = 256 << 20;

impl Have {
    /// What there is for temporary files in this folder.
    pub fn here(folder: &Path) -> Self {
        let disk = statvfs(folder).ok();
        Self {
            folder: folder.to_owned(),
            disk_bytes: disk.as_ref().and_then(free_bytes),
            inodes: disk.filter(|disk| disk.f_files > 0).map(|disk| disk.f_favail),
            memory_bytes: host::available_memory_bytes(),
        }
    }

    /// Whether a study can be run at a scale.
    ///
    /// # Errors
    /// The first thing that is lacking, and what to do.
    pub fn suffices(&self, study: &Study, scale: Scale) -> Result<(), String> {
        let needs = (study.needs)(scale);
        let disk_bytes = needs.disk_bytes + SPARE_DISK_BYTES;
        let inodes = needs.inodes + SPARE_INODES;
        let memory_bytes = needs.memory_bytes.max(SPARE_MEMORY_BYTES);
        let lacks = |have: Option<u64>, needed: u64| have.filter(|have| *have < needed);
        let (place, size) = (self.folder.display(), |bytes: u64| ByteSize(bytes >> 20 << 20));
        let remedy = "another file system (TMPDIR=DIR), or a smaller --scale";
        if let Some(have) = lacks(self.disk_bytes, disk_bytes) {
            let (needed, have) = (size(disk_bytes), size(have));
            return Err(format!("{study} needs {needed} of disk in {place}, and {have} are free: {remedy}"));
        }
        if let Some(have) = lacks(self.inodes, inodes) {
            return Err(format!(
                "{study} needs {inodes} files in {place}, and there are inodes for {have}: {remedy}"
            ));
        }
        if let Some(have) = lacks(self.memory_bytes, memory_bytes) {
            let (needed, have) = (size(memory_bytes), size(have));
            return Err(format!(
                "{study} needs {needed} of memory, and {have} are available: a smaller --scale, or end other programs"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{STUDIES, bradford, comp517, stover};

    fn have(disk_bytes: u64, inodes: u64, memory_bytes: u64) -> Have {
        Have {
            folder: "/tmp".into(),
            disk_bytes: Some(disk_bytes),
            inodes: Some(inodes),
            memory_bytes: Some(memory_bytes),
        }
    }

    #[test]
    fn what_is_lacking_is_named_with_a_way_out() {
        let lack = |study: &Study, have: Have| have.suffices(study, Scale::FULL).expect_err("a lack");
        assert_eq!(
            lack(&stover::STUDY, have(100 << 20, 10_000, 8 << 30)),
            "stover needs 544MiB of disk in /tmp, and 100MiB are free: another file system (TMPDIR=DIR), or a \
             smaller --scale"
        );
        let inodes = lack(&comp517::STUDY, have(8 << 30, 100_000, 8 << 30));
        assert!(inodes.contains("122501 files in /tmp, and there are inodes for 100000"), "{inodes}");
        let memory = lack(&bradford::STUDY, have(8 << 30, 100_000, 1 << 30));
        assert!(memory.contains("2GiB of memory"), "{memory}");
    }

    #[test]
    fn a_small_scale_needs_little() {
        let small: Scale = "0.001".parse().expect("a scale");
        for study in STUDIES {
            assert_eq!(have(64 << 20, 2000, 1 << 30).suffices(study, small), Ok(()), "{study}");
        }
        assert!(Have::here(Path::new("/tmp")).memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }
}
