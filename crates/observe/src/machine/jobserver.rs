//! The pipes of make(1) with `-j`: they hold tokens, and no data flows (GNU make, "POSIX Jobserver Interaction").

use std::collections::{BTreeMap, HashSet};
use std::fs;

use model::{Jobserver, JobserverMake};
use rustix::io::ioctl_fionread;

use super::Machine;
use super::census::Census;
use crate::brief_pipe::BriefPipe;
use crate::endpoint::{nameless, path_of};
use crate::open_file::Identity;

/// Names of GNU make.
const MAKES: [&str; 2] = ["make", "gmake"];

/// The pipes of which a make has both ends, neither of them a standard stream: only jobservers have such a pipe. Each with the makes that have
/// it, and a descriptor of it.
pub(super) fn find(census: &Census) -> BTreeMap<Identity, Vec<(i32, i32)>> {
    let mut found: BTreeMap<Identity, Vec<(i32, i32)>> = BTreeMap::new();
    for (pid, files) in census.all_files() {
        let is_written =
            |file| files.endpoints.iter().any(|end| end.fd > 2 && end.writes && end.ipc_file == file);
        let reads = files.endpoints.iter().filter(|end| end.fd > 2 && end.reads && is_written(end.ipc_file));
        let mut pipes = reads.filter_map(|end| Some((end.ipc_file.pipe()?, end.fd))).peekable();
        if pipes.peek().is_none() || !is_make(pid) {
            continue;
        }
        for (pipe, fd) in pipes {
            let makes = found.entry(pipe).or_default();
            if makes.iter().all(|(make, _)| *make != pid) {
                makes.push((pid, fd));
            }
        }
    }
    found
}

fn is_make(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| MAKES.contains(&name.trim_end()))
}

/// The jobservers of this machine, now.
pub(crate) fn jobservers() -> Vec<Jobserver> {
    let mut machine = Machine::default();
    machine.census.update(&HashSet::new(), &HashSet::new());
    machine.jobservers = find(&machine.census);
    machine.jobservers()
}

impl Machine {
    /// The jobservers of this machine.
    pub(crate) fn jobservers(&self) -> Vec<Jobserver> {
        self.jobservers.iter().map(|(pipe, makes)| self.jobserver(*pipe, makes)).collect()
    }

    /// The tokens of a jobserver, free and held.
    fn jobserver(&self, pipe: Identity, makes: &[(i32, i32)]) -> Jobserver {
        let open = makes.iter().find_map(|(pid, fd)| BriefPipe::open(*pid, *fd, Some(pipe)).ok());
        let is_named = Some(pipe.0) != nameless();
        let path = is_named.then(|| path_of(makes[0].0, makes[0].1)).flatten();
        let make = |(pid, _): &(i32, i32)| {
            let children = self.census.known.values().filter(|known| known.parent == *pid).count() as u64;
            JobserverMake { pid: *pid, held_tokens: children.saturating_sub(1) }
        };
        let mut makes: Vec<JobserverMake> = makes.iter().map(make).collect();
        model::sort_by_key(&mut makes, |make| make.pid);
        Jobserver {
            name: path.unwrap_or_else(|| format!("pipe:[{}]", pipe.1)),
            free_tokens: open.and_then(|pipe| ioctl_fionread(&pipe).ok()),
            makes,
        }
    }
}
