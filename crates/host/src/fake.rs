//! A machine made of files, for the tests of this crate.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::Cpu;
use tempfile::TempDir;

use crate::{CpuList, Roots};

/// A folder with `proc` and `sys` in it; removed with the value.
pub(crate) struct Fake(TempDir);

impl Fake {
    /// A machine without any files.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    /// A machine with these CPUs: (number, lowest thread of its core, package, node).
    pub(crate) fn machine(cpus: &[(u32, u32, u32, u32)]) -> Self {
        let fake = Self::new();
        let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (id, core, _, _) in cpus {
            cores.entry(*core).or_default().push(*id);
        }
        for (id, core, package, node) in cpus {
            let folder = format!("devices/system/cpu/cpu{id}");
            let threads: CpuList = cores[core].iter().copied().collect();
            fake.sys(&format!("{folder}/topology/core_id"), &core.to_string());
            fake.sys(&format!("{folder}/topology/core_cpus_list"), &threads.to_string());
            fake.sys(&format!("{folder}/topology/physical_package_id"), &package.to_string());
            fake.sys(&format!("{folder}/node{node}/cpulist"), "");
        }
        let online: CpuList = cpus.iter().map(|(id, ..)| *id).collect();
        fake.sys("devices/system/cpu/online", &online.to_string());
        fake
    }

    /// Writes a file below /sys.
    pub(crate) fn sys(&self, path: &str, text: &str) {
        write(&self.0.path().join("sys").join(path), text);
    }

    /// Writes a file below /proc.
    pub(crate) fn proc(&self, path: &str, text: &str) {
        write(&self.0.path().join("proc").join(path), text);
    }

    /// The folders of the machine's files.
    pub(crate) fn roots(&self) -> Roots {
        Roots { proc: self.0.path().join("proc"), sys: self.0.path().join("sys") }
    }
}

/// As the kernel does, every file ends in a line feed.
fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("room for a folder");
    fs::write(path, format!("{text}\n")).expect("room for a file");
}

pub(crate) fn cpu(id: u32, core: u32, package: u32, node: u32) -> Cpu {
    Cpu { id, core, package, node, kind: None }
}
