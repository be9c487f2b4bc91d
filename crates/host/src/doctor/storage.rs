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
    if shm.refusal.is_some() {
        return Finding::new("dev-shm", State::Caps, refused(shm), why)
            .mend("sudo mount -o remount,rw,mode=1777 /dev/shm");
    }
    Finding::new("dev-shm", unless(has(shm, LITTLE), State::Caps), room(shm), why)
        .mend("sudo mount -o remount,size=1G /dev/shm")
}

/// "/tmp is on ext4, 38 GiB free".
fn room(files: &FileSystem) -> String {
    let free = files
        .available_bytes
        .map_or_else(|| "which has no limit of its own".to_owned(), |bytes| format!("{} free", size(bytes)));
    format!("{} is on {}, {free}", files.folder.display(), files.kind)
}

fn refused(files: &FileSystem) -> String {
    let answer = files.refusal.as_deref().unwrap_or_default();
    format!("no file can be made in {}: {answer}", files.folder.display())
}

fn has(files: &FileSystem, bytes: u64) -> bool {
    files.available_bytes.is_none_or(|available| available >= bytes)
}

fn temporary(temporary: Option<&FileSystem>, vitals: &Vitals) -> Finding {
    let name = "tmpdir";
    let names = "Files as links, FIFOs and sockets with a name are made there.";
    let Some(files) = temporary else {
        return Finding::new(name, State::Caps, "$TMPDIR is no folder", names).mend("export TMPDIR=/tmp");
    };
    let roomy = |shm: &FileSystem| shm.refusal.is_none() && has(shm, ROOM);
    let roomy = vitals.storage.shm.as_ref().is_some_and(roomy);
    let elsewhere = "export TMPDIR=/dev/shm";
    if files.refusal.is_some() {
        let command = if roomy { elsewhere } else { "mkdir -p ~/tmp && export TMPDIR=~/tmp" };
        return Finding::new(name, State::Caps, refused(files), names).mend(command);
    }
    let what = room(files);
    if !has(files, ROOM) {
        let command = if roomy {
            elsewhere.to_owned()
        } else {
            format!("df -h {} /var/tmp /dev/shm", files.folder.display())
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
    Finding::new(name, State::Note, what, why).mend(elsewhere)
}
