//! `socketpair`: a connected pair of Unix stream sockets, socketpair(2).

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::sockets::{BUFFER_LIMITS, RCVBUF_OPTION, SNDBUF_OPTION, over_pairs, set_buffers, socket_ends};
use crate::descriptor::{Capabilities, Descriptor};
use crate::link::{LinkEnds, link_request};
use crate::{Channel, Mechanism, OpenError, Request};
use crate::{Folder, Options};

pub(crate) struct SocketPair;

impl Mechanism for SocketPair {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "socketpair",
            summary: "a connected pair of Unix stream sockets",
            capabilities: Capabilities::LINK,
            options: &[SNDBUF_OPTION, RCVBUF_OPTION],
            link_options: &[SNDBUF_OPTION.name, RCVBUF_OPTION.name],
            limits: BUFFER_LIMITS,
            man_pages: &["socketpair(2)", "unix(7)"],
            default_specs: &["socketpair"],
            ..Descriptor::STREAM
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        over_pairs(request, || pair(request))
    }

    fn connect(&self, options: &Options, folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        Some(pair(&link_request(options, folder)).and_then(socket_ends))
    }
}

fn pair(request: &Request<'_>) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let (near, far) = pair.map_err(OpenError::system("socketpair(AF_UNIX, SOCK_STREAM)"))?;
    set_buffers(request, &near)?;
    set_buffers(request, &far)?;
    Ok((near, far))
}
