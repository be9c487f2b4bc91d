//! Limits of families of mechanisms: pipes, message queues, sockets, io_uring, and the folders for files and shared memory. They
//! are compared with the default block of 64 KiB and the largest block of a sweep, 1 MiB.

use model::Host;

use super::Severity::{Caps, Good, Note, Unknown};
use super::{Finding, Rule, count, size, unless};
use crate::vitals::{CAP_IPC_LOCK, CAP_SYS_ADMIN, FileSystem, Vitals};

pub(super) const RULES: &[Rule] = &[
    memlock,
    pipe_max_size,
    pipe_pages,
    descriptors,
    msg_unreadable,
    msgmax,
    msgmnb,
    msgmni,
    mq_unreadable,
    mq_msgsize,
    mq_messages,
    msgqueue,
    |host, _| buffer("wmem-max", "net.core.wmem_max", "SO_SNDBUF", host.limits.wmem_max),
    |host, _| buffer("rmem-max", "net.core.rmem_max", "SO_RCVBUF", host.limits.rmem_max),
    datagrams,
    io_uring,
    shared_memory,
    temporary,
];

/// Default block of `hosepipe bench`: a queue whose messages must be shorter cannot be measured with it.
const BLOCK: u64 = 64 << 10;
/// Largest block of a sweep: the remedies raise limits to it.
const BLOCK_MAX: u64 = 1 << 20;
/// Free space that files as links need; with less, a stream fills the file system before it is measured.
const ROOM: u64 = 1 << 30;
/// The remark after a limit that CAP_SYS_RESOURCE overrides.
fn override_remark(vitals: &Vitals) -> &'static str {
    if vitals.confinement.may_exceed_resources() { ", but CAP_SYS_RESOURCE overrides that" } else { "" }
}

fn memlock(host: &Host, vitals: &Vitals) -> Option<Finding> {
    const ENOUGH: u64 = 8 << 20;
    let free = vitals.confinement.capable(CAP_IPC_LOCK);
    let limit = host.limits.rlimit_memlock;
    let what = match (limit, free) {
        (None, _) => "memory may be locked without limit".to_owned(),
        (Some(bytes), true) => format!("{} may be locked, but CAP_IPC_LOCK overrides that", size(bytes)),
        (Some(bytes), false) => format!("{} may be locked", size(bytes)),
    };
    let fine = free || limit.is_none_or(|bytes| bytes >= ENOUGH);
    Finding::new("memlock", unless(fine, Caps), what).raise("memlock", vitals)
}

fn pipe_max_size(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let name = "pipe-max-size";
    let Some(bytes) = host.limits.pipe_max_size else {
        return Some(Finding::new(name, Unknown, "fs.pipe-max-size cannot be read"));
    };
    let fine = vitals.confinement.may_exceed_resources() || bytes >= BLOCK_MAX;
    let what = format!("a pipe may hold {}{}", size(bytes), override_remark(vitals));
    Finding::new(name, unless(fine, Caps), what).remedied()
}

fn pipe_pages(host: &Host, vitals: &Vitals) -> Option<Finding> {
    const DEFAULT: u64 = 16384;
    let name = "pipe-user-pages-soft";
    let Some(pages) = host.limits.pipe_user_pages_soft else {
        return Some(Finding::new(name, Unknown, "fs.pipe-user-pages-soft cannot be read"));
    };
    let free = vitals.confinement.may_exceed_pipe_pages();
    let remark = if free { ", but this process's capabilities override that" } else { "" };
    let what = match pages {
        0 => "the pages of a user's pipes are not limited".to_owned(),
        _ => format!("the pipes of a user may hold {pages} pages together{remark}"),
    };
    Finding::new(name, unless(free || pages == 0 || pages >= DEFAULT, Caps), what).remedied()
}

fn descriptors(host: &Host, _: &Vitals) -> Option<Finding> {
    let limit = host.limits.rlimit_nofile;
    let what = match limit {
        None => "this process may open any number of files".to_owned(),
        Some(files) => format!("this process may open {}", count(files, "file")),
    };
    Finding::new("nofile", unless(limit.is_none_or(|files| files >= 256), Caps), what).remedied()
}

fn msg_unreadable(host: &Host, _: &Vitals) -> Option<Finding> {
    let limits = &host.limits;
    let unreadable = [limits.msgmax, limits.msgmnb, limits.msgmni].contains(&None);
    let what = "the limits of System V queues cannot be read";
    unreadable.then(|| Finding::new("msg-limits", Unknown, what))
}

fn msgmax(host: &Host, _: &Vitals) -> Option<Finding> {
    let bytes = host.limits.msgmax?;
    let what = format!("a System V message may have {}", size(bytes));
    Finding::new("msgmax", unless(bytes >= BLOCK, Caps), what).remedied()
}

fn msgmnb(host: &Host, _: &Vitals) -> Option<Finding> {
    let bytes = host.limits.msgmnb?;
    let what = format!("a System V queue may hold {}", size(bytes));
    Finding::new("msgmnb", unless(bytes >= 4 * BLOCK, Caps), what).remedied()
}

fn msgmni(host: &Host, _: &Vitals) -> Option<Finding> {
    let queues = host.limits.msgmni?;
    let what = format!("there may be {queues} System V queues");
    Finding::new("msgmni", unless(queues >= 32, Caps), what).remedied()
}

fn mq_unreadable(host: &Host, _: &Vitals) -> Option<Finding> {
    let unreadable = [host.limits.mq_msg_max, host.limits.mq_msgsize_max].contains(&None);
    let what = "the limits of POSIX queues cannot be read";
    unreadable.then(|| Finding::new("mq-limits", Unknown, what))
}

/// CAP_SYS_RESOURCE overrides both maxima of POSIX queues (mq_overview(7)), but not RLIMIT_MSGQUEUE.
fn mq_msgsize(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let bytes = host.limits.mq_msgsize_max?;
    let fine = vitals.confinement.may_exceed_resources() || bytes >= BLOCK;
    let what = format!("a POSIX message may have {}{}", size(bytes), override_remark(vitals));
    Finding::new("mq-msgsize-max", unless(fine, Caps), what).remedied()
}

fn mq_messages(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let messages = host.limits.mq_msg_max?;
    let fine = vitals.confinement.may_exceed_resources() || messages >= 10;
    let what = format!("a POSIX queue may hold {}{}", count(messages, "message"), override_remark(vitals));
    Finding::new("mq-msg-max", unless(fine, Caps), what).remedied()
}

/// RLIMIT_MSGQUEUE counts all queues of a user, with some overhead for each message (getrlimit(2)).
fn msgqueue(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let limit = host.limits.rlimit_msgqueue;
    let what = match limit {
        None => "the POSIX queues of a user are not limited".to_owned(),
        Some(bytes) => format!("all POSIX queues of a user may take {}", size(bytes)),
    };
    let fine = limit.is_none_or(|bytes| bytes >= 16 * BLOCK_MAX);
    Finding::new("msgqueue", unless(fine, Caps), what).raise("msgqueue", vitals)
}

/// The largest buffer of a socket.
fn buffer(name: &'static str, key: &str, option: &str, limit: Option<u64>) -> Option<Finding> {
    let Some(bytes) = limit else {
        return Some(Finding::new(name, Unknown, format!("{key} cannot be read")));
    };
    Finding::new(name, unless(bytes >= BLOCK_MAX, Caps), format!("{option} may be {}", size(bytes)))
        .remedied()
}

fn datagrams(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let queued = vitals.unix_max_dgram_qlen?;
    let what = format!("{} may wait in a Unix socket", count(queued, "datagram"));
    Finding::new("unix-dgram-qlen", unless(queued >= 128, Caps), what).remedied()
}

fn io_uring(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let (state, what) = match vitals.io_uring_disabled {
        None => (Unknown, "this kernel has no switch for io_uring, or no io_uring"),
        Some(0) => (Good, "io_uring is open to all"),
        Some(1) if vitals.confinement.capable(CAP_SYS_ADMIN) => {
            (Good, "io_uring is open to privileged processes such as this one")
        }
        Some(1) => (Caps, "io_uring is closed to ordinary users"),
        Some(_) => (Caps, "io_uring is switched off"),
    };
    let finding = Finding::new("io-uring", state, what);
    if state == Caps { finding.remedied() } else { Some(finding) }
}

fn shared_memory(_: &Host, vitals: &Vitals) -> Option<Finding> {
    const LITTLE: u64 = 256 << 20;
    let found = |state, what: String| Finding::new("dev-shm", state, what);
    match &vitals.shm {
        None => found(Caps, "there is no /dev/shm".to_owned())
            .remedy("sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm"),
        Some(shm) if shm.refusal.is_some() => {
            found(Caps, refused(shm)).remedy("sudo mount -o remount,rw,mode=1777 /dev/shm")
        }
        Some(shm) => found(unless(has_space(shm, LITTLE), Caps), room(shm))
            .remedy("sudo mount -o remount,size=1G /dev/shm"),
    }
}

fn temporary(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let found = |state, what: String| Finding::new("tmpdir", state, what);
    let Some(files) = &vitals.temporary else {
        return found(Caps, "$TMPDIR is not a folder".to_owned()).remedy("export TMPDIR=/tmp");
    };
    let shm_has_space = vitals.shm.as_ref().is_some_and(|shm| shm.refusal.is_none() && has_space(shm, ROOM));
    let use_shm = "export TMPDIR=/dev/shm";
    if files.refusal.is_some() {
        let elsewhere = if shm_has_space { use_shm } else { "mkdir -p ~/tmp && export TMPDIR=~/tmp" };
        return found(Caps, refused(files)).remedy(elsewhere);
    }
    if !has_space(files, ROOM) {
        let show_space = format!("df -h {} /var/tmp /dev/shm", files.folder.display());
        let remedy = if shm_has_space { use_shm } else { &show_space };
        return found(Caps, room(files)).because("full").remedy(remedy);
    }
    found(unless(files.is_memory(), Note), room(files)).remedy(use_shm)
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

fn has_space(files: &FileSystem, bytes: u64) -> bool {
    files.available_bytes.is_none_or(|available| available >= bytes)
}
