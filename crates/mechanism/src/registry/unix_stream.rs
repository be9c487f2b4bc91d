//! `unix-stream`: Unix stream sockets connected by name: bind, listen, connect, accept (study `stover`).

use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, connect, listen};
use rustix::process::getpid;

use super::sockets::{
    BUFFER_LIMITS, RCVBUF_OPTION, SNDBUF_OPTION, SocketName, over_pairs, peer_process, set_buffers, socket,
    socket_ends,
};
use crate::prelude::*;

pub(super) static UNIX_STREAM: Mechanism = Mechanism {
    name: "unix-stream",
    summary: "Unix stream sockets connected by name: bind, listen, connect, accept",
    capabilities: Capabilities::LINK.union(Capabilities::NEEDS_CLEANUP).union(Capabilities::MANY_SENDERS),
    options: &[SNDBUF_OPTION, RCVBUF_OPTION],
    link_options: &[SNDBUF_OPTION.name, RCVBUF_OPTION.name],
    link_differs: "`[ -p /dev/stdin ]` is false, /dev/stdin and /dev/stdout cannot be opened, and a writer that lost its \
                   reader may say `write error: Connection reset by peer` and exit with an error status instead of being \
                   killed by SIGPIPE",
    limits: BUFFER_LIMITS,
    man_pages: &["unix(7)", "bind(2)", "accept(2)"],
    default_specs: &["unix-stream"],
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    over_pairs(request, || connect_pair(request.options, request.folder))
}

fn open_link(options: &Options, _folder: &Folder) -> Result<LinkEnds, OpenError> {
    socket_ends(connect_pair(options, &Folder::for_brief_names())?)
}

/// Connects two sockets through a name, and removes the name, which the connection does not need.
fn connect_pair(options: &Options, folder: &Folder) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let listener = socket(options, AddressFamily::UNIX, SocketType::STREAM)?;
    let name = SocketName::bind(&listener, folder)?;
    listen(&listener, 1).in_call("listen")?;
    let near = socket(options, AddressFamily::UNIX, SocketType::STREAM)?;
    connect(&near, &name.address).in_call("connect(AF_UNIX, SOCK_STREAM)")?;
    let far = accept_own(&listener)?;
    set_buffers(options, &far)?;
    Ok((near, far))
}

/// Accepts the connection that this process made: if other users can enter the folder, they may connect before it.
fn accept_own(listener: &OwnedFd) -> Result<OwnedFd, OpenError> {
    let own = getpid();
    loop {
        let far = accept_with(listener, SocketFlags::CLOEXEC).in_call("accept")?;
        if peer_process(&far).in_call("getsockopt(SO_PEERCRED)")? == own.as_raw_nonzero().get() {
            return Ok(far);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SocketAddrUnix, bind};
    use rustix::process::{WaitOptions, waitpid};

    fn stream_socket() -> OwnedFd {
        socket(&Options::default(), AddressFamily::UNIX, SocketType::STREAM).expect("a socket")
    }

    /// Expected: the reader gets the bytes of the writer.
    /// Happened: it got the bytes of the first process that connected, even if that was another user's.
    #[test]
    #[allow(unsafe_code)]
    fn another_process_that_connects_first_is_not_accepted() {
        let folder = tempfile::tempdir().expect("temp dir");
        let address = SocketAddrUnix::new(folder.path().join("socket")).expect("a short path");
        let listener = stream_socket();
        bind(&listener, &address).expect("a new name");
        listen(&listener, 1).expect("bound");
        let stranger = stream_socket();
        // SAFETY: the child makes one system call and exits.
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
