//! `tmpfile`: a file without a name, open(2) O_TMPFILE (study `comp517`). Also the home of what both file
//! mechanisms share: a writer that appends, a reader that follows it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::{ByteSize, Tasks, Wait, sudo};
use rustix::fs::{Mode, OFlags, inotify, open, statvfs};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::descriptor::{BLOCK_OR_SPIN, Capabilities, Descriptor, OptionKind, OptionSpec, STREAM_ONLY};
use crate::folder::free_bytes;
use crate::leftover::NamedPath;
use crate::link::{LinkEnds, LinkKind, Order, Stored, StoredName, link_request};
use crate::loops::{Direction, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request, Unsupported};
use crate::{Folder, Options, Receiver, Sender};

/// `order=`.
pub(super) const ORDER_OPTION: OptionSpec = OptionSpec {
    name: "order",
    kind: OptionKind::Choice(&["parallel", "sequential"]),
    default: "parallel: the reader follows the writer",
    help: "sequential: the reader starts when the writer has finished",
};

/// `dir=`.
pub(super) const DIR_OPTION: OptionSpec = OptionSpec {
    name: "dir",
    kind: OptionKind::Folder,
    default: "TMPDIR, or /tmp",
    help: "where the file lies, which decides on which file system",
};

pub(crate) struct TmpFile;

impl Mechanism for TmpFile {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "tmpfile",
            summary: "a file without a name (O_TMPFILE); the reader follows the writer",
            capabilities: const { Capabilities::LINK.union(Capabilities::STORES_DATA) },
            workloads: STREAM_ONLY,
            waits: BLOCK_OR_SPIN,
            options: &[ORDER_OPTION, DIR_OPTION],
            link_options: &[ORDER_OPTION.name, DIR_OPTION.name],
            limits: "bytes: the free space of the file system",
            man_pages: &["open(2) O_TMPFILE", "inotify(7)"],
            default_specs: &["tmpfile", "tmpfile:order=sequential"],
            ..Descriptor::STREAM
        }
    }

    fn probe(&self) -> Result<(), Unsupported> {
        let folder = model::temporary_folder();
        open_nameless(&folder).map(|_| ()).map_err(|error| Unsupported {
            reason: error.to_string(),
            remedy: error.remedy().map(str::to_owned),
        })
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        one_way(request, || {
            let folder = nameless_folder(request);
            check_free_space(request, folder)?;
            let writer = open_nameless(folder)?;
            follow_direction(request, writer)
        })
    }

    fn connect(&self, options: &Options, folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        let request = link_request(options, folder);
        let folder = nameless_folder(&request);
        Some(open_or_unlink(folder).and_then(|writer| file_ends(&request, folder, writer, None)))
    }
}

fn open_nameless(folder: &Path) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
    open(folder, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| refused(format!("open({}, O_TMPFILE)", folder.display()), errno))
}

/// A file that could not be made, as a rule for its folder's sake.
fn refused(call: String, errno: Errno) -> OpenError {
    let ours = matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR);
    let remedy = (!ours).then(|| "another folder: TMPDIR=/var/tmp, or the option dir=DIR".to_owned());
    OpenError::System { call, source: errno.into(), remedy }
}

/// Where the file system has no O_TMPFILE: a file whose name is removed as soon as it is open.
fn open_or_unlink(folder: &Path) -> Result<OwnedFd, OpenError> {
    match open_nameless(folder) {
        // EISDIR and ENOENT: kernels and file systems that do not know the flag (open(2)).
        Err(OpenError::System { source, .. })
            if matches!(
                Errno::from_io_error(&source),
                Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL)
            ) =>
        {
            make_named(folder, OFlags::empty()).map(|(_removed_on_return, writer)| writer)
        }
        answer => answer,
    }
}

/// Makes a file with a name, open for appending.
pub(super) fn make_named(folder: &Path, more: OFlags) -> Result<(StoredName, OwnedFd), OpenError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | more;
    let path = folder.join(unique_name());
    let make = |path: &Path| open(path, flags, Mode::RUSR | Mode::WUSR);
    let (name, writer) = NamedPath::make(path.clone(), make)
        .map_err(|errno| refused(format!("open({})", path.display()), errno))?;
    Ok((StoredName::new(path, name), writer))
}

/// Not to be found in anybody's folder yet.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(".hosepipe-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed))
}

/// Makes a file that is open for appending the ends of a link.
pub(super) fn file_ends(
    request: &Request<'_>,
    folder: &Path,
    writer: OwnedFd,
    name: Option<StoredName>,
) -> Result<LinkEnds, OpenError> {
    let order = Order::of(request.options);
    let kind = LinkKind::Stored(Stored { order, folder: folder.to_owned(), name });
    let reader = reader_of(&writer)?;
    LinkEnds::new(writer, reader, Granted::new(), kind)
}

/// A description of its own, at its own offset; /proc reaches a file that has no name too.
fn reader_of(writer: &OwnedFd) -> Result<OwnedFd, OpenError> {
    let path = proc_path(writer);
    open(path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(OpenError::system(format!("open({path})")))
}

fn proc_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Where a file with a name lies: `dir=`, or the run's own folder.
pub(super) fn storage_folder<'a>(request: &Request<'a>) -> Result<&'a Path, OpenError> {
    request.options.folder("dir").map_or_else(|| request.folder.path(), Ok)
}

/// Where a file without one lies: beside that folder, which need not be made for it.
fn nameless_folder<'a>(request: &Request<'a>) -> &'a Path {
    request.options.folder("dir").unwrap_or(request.folder.place())
}

/// Refuses what cannot fit before it fills the disk. What fills up meanwhile is ENOSPC, a failed row.
pub(super) fn check_free_space(request: &Request<'_>, folder: &Path) -> Result<(), OpenError> {
    let space = statvfs(folder).map_err(OpenError::system(format!("statvfs({})", folder.display())))?;
    let Some(free) = free_bytes(&space).filter(|free| *free < request.total_bytes) else { return Ok(()) };
    Err(OpenError::Limit {
        message: format!(
            "{} a trial, {} free in {} (ENOSPC)",
            ByteSize(request.total_bytes),
            ByteSize(free >> 20 << 20),
            folder.display()
        ),
        remedy: "a smaller --bytes, or dir= on a larger file system".to_owned(),
    })
}

/// Makes a line of a file that is open for appending.
pub(super) fn follow_direction(
    request: &Request<'_>,
    writer: OwnedFd,
) -> Result<Direction<Appender, Follower>, OpenError> {
    let reader = reader_of(&writer)?;
    let (follow, done) = match (request.options.word("order"), request.tasks, request.wait) {
        (Some("sequential"), Tasks::Single, _) => {
            return Err(OpenError::Unsupported {
                message: "order=sequential needs a writer that finishes before the reader starts".to_owned(),
                remedy: "--tasks threads or processes".to_owned(),
            });
        }
        (Some("sequential"), ..) => {
            let (wait, done) = pipe_with(PipeFlags::CLOEXEC).map_err(OpenError::system("pipe2"))?;
            (Follow::AfterTheEnd(Some(wait)), Some(done))
        }
        (_, _, Wait::Spin) | (_, Tasks::Single, _) => (Follow::Spin, None),
        _ => (Follow::Watch(watch(&proc_path(&writer))?), None),
    };
    Ok(Direction {
        sender: Appender { file: Some(writer), done, syscalls: 0 },
        receiver: Follower { file: reader, follow, syscalls: 0 },
        granted: Granted::new(),
    })
}

fn watch(path: &str) -> Result<OwnedFd, OpenError> {
    let refused = |call: String, limit: &str| {
        let remedy = format!("{}sysctl -w fs.inotify.{limit}, or --wait spin, which does without", sudo());
        move |error: Errno| {
            let spent = matches!(error, Errno::MFILE | Errno::NOSPC);
            OpenError::System { call, source: error.into(), remedy: spent.then_some(remedy) }
        }
    };
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC)
        .map_err(refused("inotify_init1".to_owned(), "max_user_instances=1024"))?;
    inotify::add_watch(&watcher, path, inotify::WatchFlags::MODIFY | inotify::WatchFlags::CLOSE_WRITE)
        .map_err(refused(format!("inotify_add_watch({path})"), "max_user_watches=1048576"))?;
    Ok(watcher)
}

/// The writer: appends, whatever the reader does.
pub(crate) struct Appender {
    file: Option<OwnedFd>,
    /// Closed after the file: the sequential reader waits for that.
    done: Option<OwnedFd>,
    syscalls: u64,
}

impl Sender for Appender {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut rest = block;
        while !rest.is_empty() {
            self.syscalls += 1;
            match rustix::io::write(file, rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file = None;
        self.done = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

/// How a reader at the end of the file learns that there is more.
enum Follow {
    /// Asleep until the file changes (inotify(7)).
    Watch(OwnedFd),
    /// Looks again at once.
    Spin,
    /// Does not begin before the writer has finished: the end of this pipe says so.
    AfterTheEnd(Option<OwnedFd>),
}

/// The reader: follows the writer to the last byte.
pub(crate) struct Follower {
    file: OwnedFd,
    follow: Follow,
    syscalls: u64,
}

impl Receiver for Follower {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if let Follow::AfterTheEnd(wait) = &mut self.follow
            && let Some(wait) = wait.take()
        {
            self.syscalls += 1;
            wait_for_end(&wait)?;
        }
        loop {
            self.syscalls += 1;
            match rustix::io::read(&self.file, &mut *room) {
                Ok(0) => match &self.follow {
                    Follow::Watch(watcher) => {
                        self.syscalls += 1;
                        wait_for_change(watcher)?;
                    }
                    Follow::Spin => std::hint::spin_loop(),
                    Follow::AfterTheEnd(_) => return Ok(0),
                },
                Ok(received) => return Ok(received),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

/// Sleeps until the writer's end of the pipe is closed.
fn wait_for_end(wait: &OwnedFd) -> io::Result<()> {
    loop {
        match rustix::io::read(wait, &mut [0u8; 1]) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sleeps until the file changed since the last call. What the events say does not matter: the file is read next.
fn wait_for_change(watcher: &OwnedFd) -> io::Result<()> {
    loop {
        match rustix::io::read(watcher, &mut [0u8; 4096]) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
