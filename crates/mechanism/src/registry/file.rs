//! `file`: a file with a name (study `comp517`), written through the page cache or, with `sync`, to the disk.

use rustix::fs::OFlags;

use super::tmpfile::{
    DIR_OPTION, ORDER_OPTION, check_free_space, file_ends, follow_direction, make_named, storage_folder,
};
use crate::prelude::*;

pub(super) static FILE: Mechanism = Mechanism {
    name: "file",
    summary: "a file with a name; the reader follows the writer",
    capabilities: Capabilities::LINK.union(Capabilities::STORES_DATA).union(Capabilities::NEEDS_CLEANUP),
    workloads: STREAM_ONLY,
    waits: BLOCK_OR_SPIN,
    options: &[
        OptionSpec {
            name: "sync",
            kind: OptionKind::Flag,
            default: "off: the page cache takes the data",
            help: "each write reaches the disk before it returns (O_SYNC)",
        },
        ORDER_OPTION,
        DIR_OPTION,
    ],
    link_options: &["sync", ORDER_OPTION.name, DIR_OPTION.name],
    link_differs: "only with order=sequential: the reader has a file, which has a size and can be sought in; the writer never gets SIGPIPE, \
                   and if it opens /dev/stdout again with >, it removes the bytes written before",
    limits: "bytes: the free space of the file system",
    man_pages: &["open(2)", "open(2) O_SYNC", "inotify(7)"],
    default_specs: &["file", "file:sync"],
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let folder = storage_folder(request.options, request.folder)?;
    one_way(request, || {
        check_free_space(request, &folder)?;
        let (name, writer) = make_named(&folder, sync(request.options))?;
        Ok(Direction { keep: Some(Box::new(name)), ..follow_direction(request, writer)? })
    })
}

fn open_link(options: &Options, folder: &Folder) -> Result<LinkEnds, OpenError> {
    let folder = storage_folder(options, folder)?;
    let (name, writer) = make_named(&folder, sync(options))?;
    file_ends(options, &folder, writer, Some(name))
}

fn sync(options: &Options) -> OFlags {
    if options.has("sync") { OFlags::SYNC } else { OFlags::empty() }
}
