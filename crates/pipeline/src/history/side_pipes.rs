//! Pipes of a stage that are no links of its pipeline, as those of a process substitution: which program is at the other end.

use observe::endpoint::{IpcFile, endpoint};
use observe::sampler::Sampler;
use process::proc::descriptors;

use crate::ledger::Ledger;

/// Largest number of descriptors of a process that are searched for pipes of a process substitution.
const SIDE_DESCRIPTORS_MAX: usize = 32;

/// The program at the other end of a pipe that is not a link and for which a stage may wait: an empty pipe that it reads, or a full pipe that it
/// writes. Process substitutions make such pipes.
pub(super) fn program_at_side_pipe(
    sampler: &mut Sampler,
    ledger: &Ledger,
    stage: i32,
    pids: &[i32],
) -> Option<String> {
    for pid in pids {
        let side = descriptors(*pid).filter(|fd| *fd > 2).take(SIDE_DESCRIPTORS_MAX);
        for end in side.filter_map(|fd| endpoint(*pid, fd)) {
            let Some(pipe) = end.ipc_file.pipe() else { continue };
            let Some(fill) = sampler.pipe(*pid, end.fd, Some(pipe)) else { continue };
            if (end.reads && fill.is_empty()) || (!end.reads && fill.is_full()) {
                return at_other_end(ledger, end.ipc_file, i32::from(end.reads), stage);
            }
        }
    }
    None
}

/// The program that has this pipe as its standard input or output.
fn at_other_end(ledger: &Ledger, pipe: IpcFile, fd: i32, except: i32) -> Option<String> {
    let has = |index: &usize| {
        let pid = ledger.processes[*index].pid;
        pid != except && endpoint(pid, fd).is_some_and(|end| end.ipc_file == pipe)
    };
    ledger.running().find(has).map(|index| ledger.name(index))
}
