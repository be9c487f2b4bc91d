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
/// Long messages need both settings: kernel.msgmax limits a message, kernel.msgmnb a queue.
const RAISE_SYSTEM_V: &str = "sudo sysctl -w kernel.msgmax=1048576 kernel.msgmnb=4194304";
/// Why long messages matter, for each family of queues.
const LONG_SYSTEM_V: &str = "A block that is longer cannot be sent as one message (EINVAL), and its row of \
    sysv-msgq stays empty.";
const LONG_POSIX: &str = "A queue for longer blocks cannot be made (mq_open: EINVAL), and their row of posix-mq \
    stays empty.";

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
    let why =
        "io_uring's registered buffers are locked memory; above the limit they are refused with ENOMEM.";
    Finding::new("memlock", unless(fine, Caps), what, why).raise("memlock", vitals)
}

fn pipe_max_size(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let name = "pipe-max-size";
    let why = "A pipe of 64 KiB is limited by wake-ups; F_SETPIPE_SZ up to this size lets the writer \
        run ahead (pipe:size=1MiB).";
    let Some(bytes) = host.limits.pipe_max_size else {
        return Some(Finding::new(name, Unknown, "fs.pipe-max-size cannot be read", why));
    };
    let fine = vitals.confinement.may_exceed_resources() || bytes >= BLOCK_MAX;
    let what = format!("a pipe may hold {}{}", size(bytes), override_remark(vitals));
    Finding::new(name, unless(fine, Caps), what, why)
        .remedy(format!("sudo sysctl -w fs.pipe-max-size={BLOCK_MAX}"))
}

fn pipe_pages(host: &Host, vitals: &Vitals) -> Option<Finding> {
    const DEFAULT: u64 = 16384;
    let name = "pipe-user-pages-soft";
    let why = "Above it a user's new pipes shrink to two pages (one before Linux 5.14) and cannot grow: pipelines of large pipes \
        suddenly become slow. The actual size is in every record.";
    let Some(pages) = host.limits.pipe_user_pages_soft else {
        return Some(Finding::new(name, Unknown, "fs.pipe-user-pages-soft cannot be read", why));
    };
    let free = vitals.confinement.may_exceed_pipe_pages();
    let remark = if free { ", but this process's capabilities override that" } else { "" };
    let what = match pages {
        0 => "the pages of a user's pipes are not limited".to_owned(),
        _ => format!("the pipes of a user may hold {pages} pages together{remark}"),
    };
    Finding::new(name, unless(free || pages == 0 || pages >= DEFAULT, Caps), what, why)
        .remedy(format!("sudo sysctl -w fs.pipe-user-pages-soft={DEFAULT}"))
}

fn descriptors(host: &Host, _: &Vitals) -> Option<Finding> {
    let limit = host.limits.rlimit_nofile;
    let what = match limit {
        None => "this process may open any number of files".to_owned(),
        Some(files) => format!("this process may open {}", count(files, "file")),
    };
    let why = "Long pipelines and chains hold several descriptors for each stage; above the limit they fail with \
        EMFILE.";
    Finding::new("nofile", unless(limit.is_none_or(|files| files >= 256), Caps), what, why)
        .remedy("ulimit -n 1024")
}

fn msg_unreadable(host: &Host, _: &Vitals) -> Option<Finding> {
    let limits = &host.limits;
    let unreadable = [limits.msgmax, limits.msgmnb, limits.msgmni].contains(&None);
    let what = "the limits of System V queues cannot be read";
    unreadable.then(|| Finding::new("msg-limits", Unknown, what, LONG_SYSTEM_V))
}

fn msgmax(host: &Host, _: &Vitals) -> Option<Finding> {
    let bytes = host.limits.msgmax?;
    let what = format!("a System V message may have {}", size(bytes));
    Finding::new("msgmax", unless(bytes >= BLOCK, Caps), what, LONG_SYSTEM_V).remedy(RAISE_SYSTEM_V)
}

fn msgmnb(host: &Host, _: &Vitals) -> Option<Finding> {
    let bytes = host.limits.msgmnb?;
    let what = format!("a System V queue may hold {}", size(bytes));
    let why = "The writer must wait whenever that much is unread: with a few messages in the \
        queue every message is a wake-up.";
    Finding::new("msgmnb", unless(bytes >= 4 * BLOCK, Caps), what, why).remedy(RAISE_SYSTEM_V)
}

fn msgmni(host: &Host, _: &Vitals) -> Option<Finding> {
    let queues = host.limits.msgmni?;
    let what = format!("there may be {queues} System V queues");
    let why =
        "Each measured sysv-msgq needs one queue; queues of killed programs stay until `ipcrm` removes them.";
    Finding::new("msgmni", unless(queues >= 32, Caps), what, why).remedy("sudo sysctl -w kernel.msgmni=32000")
}

fn mq_unreadable(host: &Host, _: &Vitals) -> Option<Finding> {
    let unreadable = [host.limits.mq_msg_max, host.limits.mq_msgsize_max].contains(&None);
    let what = "the limits of POSIX queues cannot be read";
    unreadable.then(|| Finding::new("mq-limits", Unknown, what, LONG_POSIX))
}

/// CAP_SYS_RESOURCE overrides both maxima of POSIX queues (mq_overview(7)), but not RLIMIT_MSGQUEUE.
fn mq_msgsize(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let bytes = host.limits.mq_msgsize_max?;
    let fine = vitals.confinement.may_exceed_resources() || bytes >= BLOCK;
    let what = format!("a POSIX message may have {}{}", size(bytes), override_remark(vitals));
    Finding::new("mq-msgsize-max", unless(fine, Caps), what, LONG_POSIX)
        .remedy(format!("sudo sysctl -w fs.mqueue.msgsize_max={BLOCK_MAX}"))
}

fn mq_messages(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let messages = host.limits.mq_msg_max?;
    let fine = vitals.confinement.may_exceed_resources() || messages >= 10;
    let what = format!("a POSIX queue may hold {}{}", count(messages, "message"), override_remark(vitals));
    let why = "Few messages in flight make every message a wake-up; more keep both ends running.";
    Finding::new("mq-msg-max", unless(fine, Caps), what, why).remedy("sudo sysctl -w fs.mqueue.msg_max=64")
}

/// RLIMIT_MSGQUEUE counts all queues of a user, with some overhead for each message (getrlimit(2)).
fn msgqueue(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let limit = host.limits.rlimit_msgqueue;
    let what = match limit {
        None => "the POSIX queues of a user are not limited".to_owned(),
        Some(bytes) => format!("all POSIX queues of a user may take {}", size(bytes)),
    };
    let fine = limit.is_none_or(|bytes| bytes >= 16 * BLOCK_MAX);
    let why = "mq_open reserves the whole queue, messages × length, and fails with EMFILE \
        above this, for root too: 10 messages of 64 KiB just fit in the usual 800 KiB, one \
        of 1 MiB does not.";
    Finding::new("msgqueue", unless(fine, Caps), what, why).raise("msgqueue", vitals)
}

/// The largest buffer of a socket.
fn buffer(name: &'static str, key: &str, option: &str, limit: Option<u64>) -> Option<Finding> {
    let why = "Larger socket buffers let the sender run ahead; a request above the limit is cut \
        without an error (socket(7)). The actual size is in every record.";
    let Some(bytes) = limit else {
        return Some(Finding::new(name, Unknown, format!("{key} cannot be read"), why));
    };
    Finding::new(name, unless(bytes >= BLOCK_MAX, Caps), format!("{option} may be {}", size(bytes)), why)
        .remedy(format!("sudo sysctl -w {key}={}", 4 * BLOCK_MAX))
}

fn datagrams(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let queued = vitals.unix_max_dgram_qlen?;
    let what = format!("{} may wait in a Unix socket", count(queued, "datagram"));
    let why = "The sender of unix-dgram waits when that many are queued, however small they are: with the \
        kernel's default of 10, small datagrams are limited by wake-ups.";
    Finding::new("unix-dgram-qlen", unless(queued >= 128, Caps), what, why)
        .remedy("sudo sysctl -w net.unix.max_dgram_qlen=512")
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
    let why = "Without it the rows that use io_uring stay empty (EPERM).";
    let finding = Finding::new("io-uring", state, what, why);
    if state == Caps { finding.remedy("sudo sysctl -w kernel.io_uring_disabled=0") } else { Some(finding) }
}

fn shared_memory(_: &Host, vitals: &Vitals) -> Option<Finding> {
    const LITTLE: u64 = 256 << 20;
    let why = "shm_open(3) makes its files there; a program whose ring does not fit is killed by SIGBUS. \
        Containers often have 64 MiB.";
    let found = |state, what: String| Finding::new("dev-shm", state, what, why);
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
    let found = |state, what: String, why| Finding::new("tmpdir", state, what, why);
    let names = "Files as links, FIFOs and sockets with a name are made there.";
    let Some(files) = &vitals.temporary else {
        return found(Caps, "$TMPDIR is not a folder".to_owned(), names).remedy("export TMPDIR=/tmp");
    };
    let shm_has_space = vitals.shm.as_ref().is_some_and(|shm| shm.refusal.is_none() && has_space(shm, ROOM));
    let use_shm = "export TMPDIR=/dev/shm";
    if files.refusal.is_some() {
        return found(Caps, refused(files), names).remedy(if shm_has_space {
            use_shm
        } else {
            "mkdir -p ~/tmp && export TMPDIR=~/tmp"
        });
    }
    if !has_space(files, ROOM) {
        let why = "A file as a link keeps every byte that went through it, so 1 GiB is soon full.";
        let show_space = format!("df -h {} /var/tmp /dev/shm", files.folder.display());
        return found(Caps, room(files), why).remedy(if shm_has_space { use_shm } else { &show_space });
    }
    if files.is_memory() {
        let why = "Files as links stay in memory, and `sync` does not wait for a device. To measure the cost of a disk, \
            set TMPDIR to a folder on it.";
        return Some(found(Good, room(files), why));
    }
    let why = "Files as links go through the page cache, and writing them back competes with the \
        ends; `sync` waits for the device. In memory only mechanisms are compared.";
    found(Note, room(files), why).remedy(use_shm)
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
