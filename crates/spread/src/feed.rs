//! A program that writes ranges of files, one after the other, into a pipe.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use model::describe_errno;
use process::{Child, wait_for_all};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::partition::Range;

/// So long it may take to see that nobody reads any more.
const GRACE: Duration = Duration::from_millis(500);
/// A larger pipe wakes its ends less often.
const PIPE_BYTES: usize = 1 << 20;

/// What feeds a pipe, and ends with this value.
pub struct Fed(Option<Child<'static>>);

/// What is read of these ranges: a file as it is where they are all of one, else a pipe, and who writes into it. This process must
/// have one thread only.
///
/// # Errors
/// A file cannot be opened, or the system refused a pipe or a process.
pub fn feed(ranges: Vec<Range>) -> io::Result<(OwnedFd, Fed)> {
    if let [range] = ranges.as_slice() {
        let file = File::open(&range.path)?;
        if range.offset == 0 && range.bytes == file.metadata()?.len() {
            return Ok((file.into(), Fed(None)));
        }
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Where it is refused, the pipe works as it is.
    let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
    let child = Child::fork(c"hosepipe-feed", |said| {
        let mut pipe = File::from(write);
        for range in &ranges {
            match pass_on(range, &mut pipe) {
                Ok(()) => {}
                // Nobody reads any more, as behind `head`.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return,
                Err(error) => {
                    let path = range.path.display();
                    // Who listens to it judges by that.
                    let _ = write!(said, "{path}: {}", describe_errno(&error));
                    return;
                }
            }
        }
    })?;
    Ok((read, Fed(Some(child))))
}

fn pass_on(range: &Range, pipe: &mut File) -> io::Result<()> {
    let mut file = File::open(&range.path)?;
    file.seek(SeekFrom::Start(range.offset))?;
    match io::copy(&mut file.take(range.bytes), pipe)? {
        bytes if bytes == range.bytes => Ok(()),
        _ => Err(io::Error::other("it became shorter meanwhile")),
    }
}

impl Fed {
    /// After its reader has ended: whether everything that was asked for could be read.
    ///
    /// # Errors
    /// What could not, in words.
    pub fn finish(mut self) -> Result<(), String> {
        let Some(child) = self.0.take() else { return Ok(()) };
        let began = Instant::now();
        let mut children = [child];
        // Something in the background may hold the pipe, and never read it.
        let in_time = || if began.elapsed() < GRACE { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) };
        let _: io::Result<()> = wait_for_all(&mut children, &|_| false, &mut { in_time });
        match children[0].said() {
            said if said.is_empty() => Ok(()),
            said => Err(said),
        }
    }
}
