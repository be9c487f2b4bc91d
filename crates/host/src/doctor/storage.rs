//! Where files as links and shared memory go.

use super::{Finding, State, size, unless};
use crate::{FileSystem, Vitals};

/// Below this a stream through a file fills the file system before it was measured.
const ROOM: u64 = 1 << 30;

pub(super) fn findings(vitals: &Vitals) -> Vec<Finding> {
    vec![shared_memory(vitals.storage.shm.as_ref()), temporary(vitals.storage.temporary.as_ref(), vitals)]
}

fn shared_memory(shm: Option<&FileSystem>) -> Finding {
    const LITTLE: u64 = 256 << 20;
    let why = "shm_open(3) makes its files there; a ring that does not fit dies of SIGBUS. \
        Containers often have 64 MiB.";
    let Some(shm) = shm else {
        return Finding::new("dev-shm", State::Caps, "there is no /dev/shm", why)
            .mend("sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
    };
    let what = format!("/dev/shm is on {}, {} free", shm.kind, size(shm.available_bytes));
    Finding::new("dev-shm", unless(shm.available_bytes >= LITTLE, State::Caps), what, why)
        .mend("sudo mount -o remount,size=1G /dev/shm")
}

fn temporary(temporary: Option<&FileSystem>, vitals: &Vitals) -> Finding {
    let name = "tmpdir";
    let Some(files) = temporary else {
        let why = "Files as links, FIFOs and sockets with a name are made there.";
        return Finding::new(name, State::Caps, "$TMPDIR is no folder", why).mend("export TMPDIR=/tmp");
    };
    let folder = files.folder.display();
    let what = format!("{folder} is on {}, {} free", files.kind, size(files.available_bytes));
    if files.available_bytes < ROOM {
        let roomy = vitals.storage.shm.as_ref().is_some_and(|shm| shm.available_bytes >= ROOM);
        let command = if roomy {
            "export TMPDIR=/dev/shm".to_owned()
        } else {
            format!("df -h {folder} /var/tmp /dev/shm")
        };
        return Finding::new(
            name,
            State::Caps,
            what,
            "A file as a link keeps every byte that went through it: 1 GiB is soon full.",
        )
        .mend(command);
    }
    if files.is_memory() {
        let why = "Files as links stay in memory; `sync` waits for nothing. For the cost of a disk \
            point TMPDIR at one.";
        return Finding::new(name, State::Good, what, why);
    }
    let why = "Files as links go through the page cache, and writing them back competes with the \
        ends; `sync` waits for the device. In memory only mechanisms are compared.";
    Finding::new(name, State::Note, what, why).mend("export TMPDIR=/dev/shm")
}
