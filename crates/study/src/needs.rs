//! What a study needs before it starts: room for its files, inodes, memory.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::bradford::bradford;
use crate::comp517::comp517;
use crate::registry::Name;
use crate::stover::stover;
use mechanism::free_bytes;
use model::ByteSize;
use rustix::fs::statvfs;

use crate::comp517::run::scaled;
use crate::scale::Scale;

/// What a study needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Free bytes where temporary files lie.
    pub disk_bytes: u64,
    /// Files that can still be made there.
    pub inodes: u64,
    /// Memory that can be had without swapping.
    pub memory_bytes: u64,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Have {
    /// Where temporary files lie.
    pub folder: PathBuf,
    /// Free bytes there; `None` where the system does not say.
    pub disk_bytes: Option<u64>,
    /// Files that can still be made there; `None` where the file system makes inodes as it needs them.
    pub inodes: Option<u64>,
    /// Memory that can be had without swapping.
    pub memory_bytes: Option<u64>,
}

/// What is lacking; the text says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack(String);

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Beside what can be counted: folders, records, buffers of the programs that are run.
const SPARE_DISK_BYTES: u64 = 32 << 20;
const SPARE_INODES: u64 = 1000;
const SPARE_MEMORY_BYTES: u64 = 256 << 20;

/// Bytes of a line of the file of `comp517`, at most.
const LINE_BYTES: u64 = 20;
/// Times that the file of `comp517` may lie on the disk at once: itself, what three links store, what `sort` spills.
const COPIES: u64 = 5;
/// Bytes that an empty file takes in its folder and in what `ls -l` writes of it, with room for three links.
const FILE_BYTES: u64 = 1000;
/// The engine makes no blocks larger than this part of the memory.
const BLOCKS_IN_MEMORY: u64 = 8;

/// What a study needs at a scale.
pub fn needs(study: Name, scale: Scale) -> Needs {
    let (disk_bytes, inodes, memory_bytes) = match study {
        Name::Bradford => (0, 0, scale.amount(bradford().huge.block.value).saturating_mul(BLOCKS_IN_MEMORY)),
        Name::Comp517 => {
            let material = scaled(comp517().material, scale);
            let lines = u64::from(material.lines) * LINE_BYTES * COPIES;
            (lines + u64::from(material.files) * FILE_BYTES, u64::from(material.files), 0)
        }
        Name::KernelPipe => (0, 0, 0),
        Name::Stover => (scale.bytes(stover().bytes(), stover().chunk_bytes()), 0, 0),
    };
    Needs {
        disk_bytes: disk_bytes + SPARE_DISK_BYTES,
        inodes: inodes + SPARE_INODES,
        memory_bytes: memory_bytes.max(SPARE_MEMORY_BYTES),
    }
}

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

    /// Compares with what is needed.
    ///
    /// # Errors
    /// The first thing that is lacking, and what to do.
    pub fn suffices(&self, study: Name, needs: &Needs) -> Result<(), Lack> {
        let place = self.folder.display();
        let size = |bytes: u64| ByteSize(bytes >> 20 << 20);
        let remedy = "another file system (TMPDIR=DIR), or a smaller --scale";
        if let Some(have) = self.disk_bytes.filter(|have| *have < needs.disk_bytes) {
            return Err(Lack(format!(
                "{study} needs {} of disk in {place}, and {} are free: {remedy}",
                size(needs.disk_bytes),
                size(have)
            )));
        }
        if let Some(have) = self.inodes.filter(|have| *have < needs.inodes) {
            return Err(Lack(format!(
                "{study} needs {} files in {place}, and there are inodes for {have}: {remedy}",
                needs.inodes
            )));
        }
        if let Some(have) = self.memory_bytes.filter(|have| *have < needs.memory_bytes) {
            return Err(Lack(format!(
                "{study} needs {} of memory, and {} are available: a smaller --scale, or end other programs",
                size(needs.memory_bytes),
                size(have)
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let stover = needs(Name::Stover, Scale::FULL);
        assert_eq!(stover.disk_bytes, 544 << 20);
        let lack = have(100 << 20, 10_000, 8 << 30).suffices(Name::Stover, &stover).expect_err("no room");
        assert_eq!(
            lack.to_string(),
            "stover needs 544MiB of disk in /tmp, and 100MiB are free: another file system (TMPDIR=DIR), or a \
             smaller --scale"
        );
        let files = needs(Name::Comp517, Scale::FULL);
        let lack = have(8 << 30, 100_000, 8 << 30).suffices(Name::Comp517, &files).expect_err("no inodes");
        assert!(lack.to_string().contains("122501 files in /tmp, and there are inodes for 100000"), "{lack}");
        let memory = needs(Name::Bradford, Scale::FULL);
        let lack = have(8 << 30, 100_000, 1 << 30).suffices(Name::Bradford, &memory).expect_err("no memory");
        assert!(lack.to_string().contains("2GiB of memory"), "{lack}");
    }

    #[test]
    fn a_small_scale_needs_little() {
        let small: Scale = "0.001".parse().expect("a scale");
        for study in Name::ALL {
            let needs = needs(study, small);
            assert_eq!(have(64 << 20, 2000, 1 << 30).suffices(study, &needs), Ok(()), "{study}");
        }
        assert!(Have::here(Path::new("/tmp")).memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }
}
