//! The resources that a study needs: disk space, inodes and memory. They are checked before it starts.

use std::path::{Path, PathBuf};

use mechanism::free_bytes;
use model::ByteSize;
use rustix::fs::statvfs;
use serde::Deserialize;

use crate::scale::Size;
use crate::{File, Head, Scale, Study};

/// The resources that a study needs at full size, in addition to memory for its largest block.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Needs {
    /// Free bytes in the folder for temporary files.
    disk: Option<Size>,
    /// Files that are created there.
    files: Option<Size>,
}

/// The free resources of this machine.
#[derive(Debug)]
pub struct Available {
    /// The folder for temporary files.
    folder: PathBuf,
    /// `None` if unknown.
    disk_bytes: Option<u64>,
    /// `None` if the file system has no fixed number of inodes.
    inodes: Option<u64>,
    memory_bytes: Option<u64>,
}

/// Additional resources for folders, records, and buffers of the programs that are run.
const SPARE_DISK_BYTES: u64 = 32 << 20;
const SPARE_INODES: u64 = 1000;
const SPARE_MEMORY_BYTES: u64 = 256 << 20;
/// Number of blocks for which memory must be available. The engine refuses a block that is larger than the memory divided by this.
const BLOCKS_IN_MEMORY: u64 = 8;

impl Available {
    /// The free resources of this machine; `folder` is the folder for temporary files.
    pub fn here(folder: &Path) -> Self {
        let disk = statvfs(folder).ok();
        Self {
            folder: folder.to_owned(),
            disk_bytes: disk.as_ref().and_then(free_bytes),
            inodes: disk.filter(|disk| disk.f_files > 0).map(|disk| disk.f_favail),
            memory_bytes: host::memory().map(|memory| memory.available_bytes),
        }
    }

    /// Checks that a study can be run at a scale.
    ///
    /// # Errors
    /// Names the first resource that is too small, and what to do.
    pub fn suffices(&self, study: &Study, scale: Scale) -> Result<(), String> {
        let File { study: Head { needs, .. }, parts, .. } = study.parameters();
        let amount = |full: Option<Size>| full.map_or(0, |full| scale.amount(full.value));
        let disk_bytes = amount(needs.disk) + SPARE_DISK_BYTES;
        let inodes = amount(needs.files) + SPARE_INODES;
        let blocks = parts.iter().flat_map(|part| part.cases(scale, &[]).unwrap_or_default());
        let block_bytes = blocks.map(|case| case.block_bytes).max().unwrap_or(0);
        let memory_bytes = block_bytes.saturating_mul(BLOCKS_IN_MEMORY).max(SPARE_MEMORY_BYTES);
        let too_few = |have: Option<u64>, needed: u64| have.filter(|have| *have < needed);
        let (folder, size) = (self.folder.display(), |bytes: u64| ByteSize(bytes >> 20 << 20));
        let remedy = "another file system (TMPDIR=DIR), or a smaller --scale";
        if let Some(have) = too_few(self.disk_bytes, disk_bytes) {
            let (needed, have) = (size(disk_bytes), size(have));
            return Err(format!("{study} needs {needed} of disk in {folder}, and {have} are free: {remedy}"));
        }
        if let Some(have) = too_few(self.inodes, inodes) {
            return Err(format!(
                "{study} needs {inodes} files in {folder}, and there are inodes for {have}: {remedy}"
            ));
        }
        if let Some(have) = too_few(self.memory_bytes, memory_bytes) {
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

    fn have(disk_bytes: u64, inodes: u64, memory_bytes: u64) -> Available {
        Available {
            folder: "/tmp".into(),
            disk_bytes: Some(disk_bytes),
            inodes: Some(inodes),
            memory_bytes: Some(memory_bytes),
        }
    }

    #[test]
    fn the_error_names_the_scarce_resource_and_a_remedy() {
        let error =
            |study: &Study, have: Available| have.suffices(study, Scale::FULL).expect_err("too little");
        assert_eq!(
            error(&stover::STUDY, have(100 << 20, 10_000, 8 << 30)),
            "stover needs 544MiB of disk in /tmp, and 100MiB are free: another file system (TMPDIR=DIR), or a \
             smaller --scale"
        );
        let inodes = error(&comp517::STUDY, have(8 << 30, 100_000, 8 << 30));
        assert!(inodes.contains("122501 files in /tmp, and there are inodes for 100000"), "{inodes}");
        let memory = error(&bradford::STUDY, have(8 << 30, 100_000, 1 << 30));
        assert!(memory.contains("2GiB of memory"), "{memory}");
    }

    #[test]
    fn a_small_scale_needs_little() {
        let small: Scale = "0.001".parse().expect("a scale");
        for study in STUDIES {
            assert_eq!(have(64 << 20, 2000, 1 << 30).suffices(study, small), Ok(()), "{study}");
        }
        assert!(Available::here(Path::new("/tmp")).memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }
}
