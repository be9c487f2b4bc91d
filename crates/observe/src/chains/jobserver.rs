//! The pipes of make(1) with `-j`: they hold tokens, and no data flows (GNU make, "POSIX Jobserver Interaction").

use std::collections::BTreeMap;
use std::fs;

use model::{Jobserver, JobserverMake};
use rustix::io::ioctl_fionread;

use super::ChainSampler;
use super::census::Census;
use crate::brief_pipe::BriefPipe;
use crate::end::{End, nameless};
use crate::open_file::Identity;

/// Names of GNU make.
const MAKES: [&str; 2] = ["make", "gmake"];

/// The pipes of which a make has both ends, neither of them a standard stream: only jobservers have such a pipe. Each with the makes that have
/// it, and a descriptor of it.
pub(super) fn find(census: &Census) -> BTreeMap<Identity, Vec<(i32, i32)>> {
    let mut found: BTreeMap<Identity, Vec<(i32, i32)>> = BTreeMap::new();
    for (pid, known) in &census.known {
        let ends = known.process_files.as_ref().map_or(&[][..], |process_files| &process_files.ends);
        let of_tokens = |end: &&End| end.fd > 2 && end.ipc_file.pipe().is_some();
        let reads = ends.iter().filter(of_tokens).filter(|end| end.reads);
        let is_written =
            |pipe: &&End| ends.iter().any(|end| end.fd > 2 && end.writes && end.ipc_file == pipe.ipc_file);
        let mut both = reads.filter(is_written).peekable();
        if both.peek().is_none() || !is_make(*pid) {
            continue;
        }
        for end in both {
            let makes = end.ipc_file.pipe().map(|pipe| found.entry(pipe).or_default());
            if let Some(makes) = makes.filter(|makes| makes.iter().all(|(make, _)| make != pid)) {
                makes.push((*pid, end.fd));
            }
        }
    }
    found
}

fn is_make(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| MAKES.contains(&name.trim_end()))
}

impl ChainSampler {
    /// The tokens of a jobserver, free and held.
    pub(super) fn jobserver(&self, pipe: Identity, makes: &[(i32, i32)]) -> Jobserver {
        let open = makes.iter().find_map(|(pid, fd)| BriefPipe::open(*pid, *fd, Some(pipe)).ok());
        let path = || fs::read_link(format!("/proc/{}/fd/{}", makes[0].0, makes[0].1)).ok();
        let named = Some(pipe.0) != nameless();
        let path = named.then(path).flatten().map(|path| path.to_string_lossy().into_owned());
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
