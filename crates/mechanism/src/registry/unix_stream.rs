//! `unix-stream`: Unix stream sockets connected by name: bind, listen, connect, accept (study `stover`).

use rustix::fs::{Mode, OFlags, open};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
};
use rustix::process::getpid;

use super::sockets::{
    BUFFER_LIMITS, RCVBUF_OPTION, SNDBUF_OPTION, over_pairs, set_buffers, socket, socket_ends,
};
use crate::leftover::NamedPath;
use crate::prelude::*;

pub(crate) struct UnixStream;

impl Mechanism for UnixStream {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "unix-stream",
            summary: "Unix stream sockets connected by name: bind, listen, connect, accept",
            capabilities: const {
                Capabilities::LINK.union(Capabilities::NEEDS_CLEANUP).union(Capabilities::MANY_SENDERS)
            },
            options: &[SNDBUF_OPTION, RCVBUF_OPTION],
            link_options: &[SNDBUF_OPTION.name, RCVBUF_OPTION.name],
            limits: BUFFER_LIMITS,
            man_pages: &["unix(7)", "bind(2)", "accept(2)"],
            default_specs: &["unix-stream"],
            ..Descriptor::STREAM
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        over_pairs(request, || connect_pair(request.options, request.folder))
    }

    fn connect(&self, options: &Options, folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        Some(connect_pair(options, folder).and_then(socket_ends))
    }
}

/// Connects two sockets through a name, and removes the name: the connection lives on without it.
fn connect_pair(options: &Options, folder: &Folder) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let folder = folder.path()?;
    let name = folder.join("socket");
    // A socket's name holds 108 bytes (unix(7)); the way through /proc is short whatever TMPDIR is.
    let folder = open(folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(OpenError::system(format!("open({})", folder.display())))?;
    let path = format!("/proc/self/fd/{}/socket", folder.as_raw_fd());
    let address = SocketAddrUnix::new(path.as_str()).map_err(OpenError::system(format!("address {path}")))?;

    let listener = socket(options, AddressFamily::UNIX, SocketType::STREAM)?;
    let (_removed_on_return, ()) = NamedPath::make(name.clone(), |_| bind(&listener, &address))
        .map_err(OpenError::system(format!("bind({})", name.display())))?;
    listen(&listener, 1).map_err(OpenError::system("listen"))?;
    let near = socket(options, AddressFamily::UNIX, SocketType::STREAM)?;
    connect(&near, &address).map_err(OpenError::system(format!("connect({})", name.display())))?;
    let far = accept_own(&listener)?;
    set_buffers(options, &far)?;
    Ok((near, far))
}

/// Accepts the connection that this process made: where a folder is not ours alone, others may call, and earlier.
fn accept_own(listener: &OwnedFd) -> Result<OwnedFd, OpenError> {
    let own = getpid();
    loop {
        let far = accept_with(listener, SocketFlags::CLOEXEC).map_err(OpenError::system("accept"))?;
        let caller = socket_peercred(&far).map_err(OpenError::system("getsockopt(SO_PEERCRED)"))?;
        if caller.pid == own {
            return Ok(far);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{WaitOptions, waitpid};

    fn stream_socket() -> OwnedFd {
        socket(&Options::default(), AddressFamily::UNIX, SocketType::STREAM).expect("a socket")
    }

    /// Expected: the reader is given what the writer writes.
    /// Happened: it was given what the first to call had to say, another user's process too.
    #[test]
    #[allow(unsafe_code)]
    fn whoever_else_calls_first_is_turned_away() {
        let folder = tempfile::tempdir().expect("temp dir");
        let address = SocketAddrUnix::new(folder.path().join("socket")).expect("a short path");
        let listener = stream_socket();
        bind(&listener, &address).expect("a new name");
        listen(&listener, 1).expect("bound");
        let stranger = stream_socket();
        // SAFETY: the child makes one system call and leaves.
        match unsafe { libc::fork() } {
            // SAFETY: as above.
            0 => unsafe { libc::_exit(i32::from(connect(&stranger, &address).is_err())) },
            child => {
                let child = rustix::process::Pid::from_raw(child);
                let (_, status) = waitpid(child, WaitOptions::empty()).expect("a child").expect("ended");
                assert_eq!(status.exit_status(), Some(0), "it called");
            }
        }
        let near = stream_socket();
        connect(&near, &address).expect("room for two");
        let far = accept_own(&listener).expect("ours");
        rustix::io::write(&near, b"ours").expect("written");
        let mut read = [0; 8];
        let received = rustix::net::recv(&far, &mut read, rustix::net::RecvFlags::DONTWAIT);
        assert_eq!(received.map(|(bytes, _)| bytes), Ok(4));
    }
}
