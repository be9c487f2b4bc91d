//! What each mechanism can do: capabilities from the registry, the largest message from the error for a longer one, and lines of
//! code as counted by the build.

use std::path::Path;

use mechanism::{Capabilities, Folder, Mechanism, Options, Request};
use model::{DataLevel, MechanismFacts, Role, Tasks, Workload};

/// Longer than any message of a queue or socket with a limit; mechanisms without a limit accept it.
const TOO_LONG_BYTES: usize = 64 << 20;

/// The facts about all mechanisms, without floors and ceilings.
pub(super) fn mechanism_facts() -> Vec<MechanismFacts> {
    let ranked = mechanism::all().iter().filter(|mechanism| mechanism.role == Role::Ranked);
    ranked.map(|mechanism| facts(mechanism)).collect()
}

fn facts(mechanism: &Mechanism) -> MechanismFacts {
    let module = mechanism.name.replace('-', "_");
    let counted = mechanism::LINES_OF_CODE.iter().find(|(name, ..)| *name == module);
    let (lines, lines_with_borrowed) = counted.map_or((0, 0), |(_, own, all)| (*own, *all));
    let can = |capability| mechanism.capabilities.contains(capability);
    MechanismFacts {
        name: mechanism.name.to_owned(),
        filters: can(Capabilities::LINK),
        keeps_boundaries: can(Capabilities::KEEPS_BOUNDARIES),
        stores_data: can(Capabilities::STORES_DATA),
        crosses_hosts: can(Capabilities::CROSSES_HOSTS),
        needs_cleanup: can(Capabilities::NEEDS_CLEANUP),
        largest_message: largest_message(mechanism).unwrap_or_default(),
        lines,
        lines_with_borrowed,
    }
}

/// Requests a message that is too long for any queue, and takes the limit from the error.
fn largest_message(mechanism: &Mechanism) -> Option<String> {
    if !mechanism.capabilities.contains(Capabilities::KEEPS_BOUNDARIES)
        || !mechanism.workloads.contains(&Workload::Stream)
    {
        return None;
    }
    mechanism.probe().ok()?;
    let options = Options::default();
    let request = Request {
        options: &options,
        workload: Workload::Stream,
        tasks: Tasks::Processes,
        wait: mechanism.wait(&options),
        data: DataLevel::None,
        relays: 0,
        senders: None,
        receivers: None,
        block_bytes: TOO_LONG_BYTES,
        total_bytes: TOO_LONG_BYTES as u64,
        folder: &Folder::at(Path::new("/nonexistent")),
    };
    mechanism.open(&request).err()?.largest_message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_has_lines_of_code() {
        let facts = mechanism_facts();
        assert!(facts.len() > 20);
        for one in &facts {
            assert!(one.lines > 15 && one.lines <= one.lines_with_borrowed, "{one:?}");
        }
        let lines = |name: &str| facts.iter().find(|one| one.name == name).expect(name);
        // A FIFO is a pipe with a name: most of its code is the pipe's.
        assert!(lines("fifo").lines_with_borrowed > lines("fifo").lines + 100);
    }

    #[test]
    fn the_largest_message_of_queues_is_found() {
        for one in mechanism_facts().iter().filter(|one| one.name == "sysv-msgq" || one.name == "udp") {
            assert!(one.largest_message.contains('('), "{one:?}");
        }
    }
}
