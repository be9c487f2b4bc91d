//! `tmpfile`: a file without a name, open(2) O_TMPFILE (study `comp517`). Also the common code of both file mechanisms: a
//! writer that appends, and a reader that follows it.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, inotify, open, statvfs};

use super::pipe::new_pipe;
use crate::folder::free_bytes;
use crate::leftover::announcer;
use crate::link::{Order, Stored};
use crate::prelude::*;
use process::TemporaryPath;

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
    help: "the folder of the file; its file system stores the bytes",
};

pub(super) static TMPFILE: Mechanism = Mechanism {
    name: "tmpfile",
    summary: "a file without a name (O_TMPFILE); the reader follows the writer",
    capabilities: Capabilities::LINK.union(Capabilities::STORES_DATA),
    workloads: STREAM_ONLY,
    waits: BLOCK_OR_SPIN,
    options: &[ORDER_OPTION, DIR_OPTION],
    link_options: &[ORDER_OPTION.name, DIR_OPTION.name],
    link_differs: "only with order=sequential: the reader has a file, which has a size and can be sought in; the writer never gets SIGPIPE, \
                   and if it opens /dev/stdout again with >, it removes the bytes written before",
    limits: "bytes: the free space of the file system",
    man_pages: &["open(2) O_TMPFILE", "inotify(7)"],
    default_specs: &["tmpfile", "tmpfile:order=sequential"],
    probe,
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

fn probe() -> Result<(), OpenError> {
    open_nameless(&model::temporary_folder()).map(drop)
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    one_way(request, || {
        let folder = nameless_folder(request.options, request.folder);
        check_free_space(request, folder)?;
        follow_direction(request, open_nameless(folder)?)
    })
}

fn open_link(options: &Options, folder: &Folder) -> Result<LinkEnds, OpenError> {
    let folder = nameless_folder(options, folder);
    file_ends(options, folder, open_or_unlink(folder)?, None)
}

fn open_nameless(folder: &Path) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
    open(folder, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| refused(format!("open({}, O_TMPFILE)", folder.display()), errno))
}

/// The error of a file that could not be made. The remedy is another folder, unless the error does not depend on the folder.
fn refused(call: String, errno: Errno) -> OpenError {
    let any_folder = matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR);
    let remedy = (!any_folder).then(|| "another folder: TMPDIR=/var/tmp, or the option dir=DIR".to_owned());
    OpenError::system(call, errno, remedy)
}

/// A file without a name. If the file system has no O_TMPFILE, a file whose name is removed as soon as it is open.
fn open_or_unlink(folder: &Path) -> Result<OwnedFd, OpenError> {
    match open_nameless(folder) {
        // EISDIR and ENOENT: kernels and file systems that do not know the flag (open(2)).
        Err(OpenError { source: Some(error), .. })
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL)
            ) =>
        {
            make_named(folder, OFlags::empty()).map(|(_removed_on_return, writer)| writer)
        }
        answer => answer,
    }
}

/// Makes a file with a name, open for appending.
pub(super) fn make_named(folder: &Path, more: OFlags) -> Result<(TemporaryPath, OwnedFd), OpenError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | more;
    // A name that is not in use and cannot be guessed: other users may also make names in the folder.
    let path = folder.join(format!(".hosepipe-{:016x}", fastrand::u64(..)));
    TemporaryPath::make(&announcer(), path.clone(), |path| open(path, flags, Mode::RUSR | Mode::WUSR))
        .map_err(|errno| refused(format!("open({})", path.display()), errno))
}

/// Makes the ends of a link from a file that is open for appending.
pub(super) fn file_ends(
    options: &Options,
    folder: &Path,
    writer: OwnedFd,
    name: Option<TemporaryPath>,
) -> Result<LinkEnds, OpenError> {
    let order = Order::from_options(options);
    let transport = Transport::Stored(Stored { order, folder: folder.to_owned(), name });
    let reader = reader_of(&writer)?;
    LinkEnds::new(writer, reader, Granted::new(), transport)
}

/// Opens the file again for reading, with its own offset. The path in /proc also works for a file without a name.
fn reader_of(writer: &OwnedFd) -> Result<OwnedFd, OpenError> {
    let path = proc_path(writer);
    open(path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).in_call(format!("open({path})"))
}

fn proc_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The folder of a file with a name: that of the option `dir`, or the run's own folder.
pub(super) fn storage_folder(options: &Options, folder: &Folder) -> Result<PathBuf, OpenError> {
    options.folder(DIR_OPTION.name).map_or_else(|| folder.path(), |dir| Ok(dir.to_owned()))
}

/// The folder of a file without a name: that of the option `dir`, or the folder above the run's own one, which is then not made.
fn nameless_folder<'a>(options: &'a Options, folder: &'a Folder) -> &'a Path {
    options.folder(DIR_OPTION.name).unwrap_or(folder.base())
}

/// Refuses a trial that does not fit into the free space. If the disk becomes full during the trial, that is ENOSPC, a failed row.
pub(super) fn check_free_space(request: &Request<'_>, folder: &Path) -> Result<(), OpenError> {
    let space = statvfs(folder).in_call(format!("statvfs({})", folder.display()))?;
    let Some(free) = free_bytes(&space).filter(|free| *free < request.total_bytes) else { return Ok(()) };
    let (wanted, free) = (ByteSize(request.total_bytes), ByteSize(free >> 20 << 20));
    Err(OpenError::limit(
        format!("{wanted} a trial, {free} free in {} (ENOSPC)", folder.display()),
        "a smaller --bytes, or dir= on a larger file system",
    ))
}

/// Makes a direction from a file that is open for appending.
pub(super) fn follow_direction(
    request: &Request<'_>,
    writer: OwnedFd,
) -> Result<Direction<Appender, Follower>, OpenError> {
    let reader = reader_of(&writer)?;
    let (follow, done) = match (Order::from_options(request.options), request.tasks, request.wait) {
        (Order::Sequential, Tasks::Single, _) => {
            return Err(OpenError::unsupported(
                "order=sequential needs a writer that finishes before the reader starts",
                "--tasks threads or processes",
            ));
        }
        (Order::Sequential, ..) => {
            let (wait, done) = new_pipe()?;
            (Follow::AfterTheEnd(Some(wait)), Some(done))
        }
        (_, _, Wait::Spin) | (_, Tasks::Single, _) => (Follow::Spin, None),
        _ => (Follow::Watch(watch(&proc_path(&writer))?), None),
    };
    let end = |file| FdEnd::new(file, FdWait::InCall);
    Ok(Direction::new(Appender { file: end(writer)?, done }, Follower { file: end(reader)?, follow }))
}

fn watch(path: &str) -> Result<OwnedFd, OpenError> {
    let refused = |call: String, limit: &str| {
        let remedy =
            format!("{}sysctl -w fs.inotify.{limit}, or --wait spin, which does not need it", sudo());
        move |error: Errno| {
            let spent = matches!(error, Errno::MFILE | Errno::NOSPC);
            OpenError::system(call, error, spent.then_some(remedy))
        }
    };
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC)
        .map_err(refused("inotify_init1".to_owned(), "max_user_instances=1024"))?;
    inotify::add_watch(&watcher, path, inotify::WatchFlags::MODIFY | inotify::WatchFlags::CLOSE_WRITE)
        .map_err(refused(format!("inotify_add_watch({path})"), "max_user_watches=1048576"))?;
    Ok(watcher)
}

/// The writer: appends, and never waits for the reader.
pub(super) struct Appender {
    file: FdEnd,
    /// Closed after the file: the sequential reader waits for that.
    done: Option<OwnedFd>,
}

delegate_end!(Appender, file);

impl Sender for Appender {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.send(block)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.finish()?;
        self.done = None;
        Ok(())
    }
}

/// How a reader at the end of the file waits for more bytes.
enum Follow {
    /// Sleeps until the file changes (inotify(7)).
    Watch(OwnedFd),
    /// Reads again at once.
    Spin,
    /// Begins only after the writer has finished, which closes the other end of this pipe.
    AfterTheEnd(Option<OwnedFd>),
}

/// The reader: follows the writer to the last byte.
pub(super) struct Follower {
    file: FdEnd,
    follow: Follow,
}

delegate_end!(Follower, file);

impl Receiver for Follower {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if let Follow::AfterTheEnd(wait) = &mut self.follow
            && let Some(wait) = wait.take()
        {
            self.file.syscalls += 1;
            sleep_in(&wait)?;
        }
        loop {
            let received = self.file.recv(room)?;
            match &self.follow {
                _ if received > 0 => return Ok(received),
                Follow::Watch(watcher) => {
                    self.file.syscalls += 1;
                    sleep_in(watcher)?;
                }
                Follow::Spin => std::hint::spin_loop(),
                Follow::AfterTheEnd(_) => return Ok(0),
            }
        }
    }
}

/// Sleeps until the file has changed since the last call, or until the writer's end of the pipe is closed. The bytes that
/// are read from `events` are ignored.
fn sleep_in(events: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(events, &mut [0u8; 4096])).map(drop)?)
}
