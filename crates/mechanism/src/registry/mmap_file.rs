//! `mmap-file`: the ring of `shm-ring` in a file that both ends have mapped, as two programs do that share only a path. The
//! kernel records which pages were written, and writes them to the disk from time to time.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::OFlags;

use super::ring::{COPY_OPTION, Copying, Ring, RingWait, SIZE_OPTION, WAIT_OPTION};
use super::ring::{control_bytes, evidence, mapped_bytes, payload_direction, ring_bytes};
use super::tmpfile::{DIR_OPTION, make_named, storage_folder};
use crate::prelude::*;
use process::TemporaryPath;

pub(super) static MMAP_FILE: Mechanism = Mechanism {
    name: "mmap-file",
    summary: "a ring in a file that both ends have mapped",
    capabilities: Capabilities::NEEDS_CLEANUP,
    waits: BLOCK_OR_SPIN,
    options: &[SIZE_OPTION, WAIT_OPTION, COPY_OPTION, DIR_OPTION],
    limits: "size: 128 MiB, and the free space of the file system; unread in the channel: 1024 slots of 56 bytes for short messages sent one at a time, or of 64 KiB for others",
    man_pages: &["mmap(2) MAP_SHARED", "fallocate(2)", "futex(2)"],
    more_specs: &["mmap-file:wait=spin", "mmap-file:wait=futex", "mmap-file:wait=spin,copy=in-place"],
    in_place: Copying::is_in_place,
    zero_copy,
    ..Mechanism::stream(open_channel)
};

fn zero_copy(options: &Options) -> Option<ZeroCopy> {
    evidence(options, |bytes| {
        let (_name, file) = make_file(&model::temporary_folder(), bytes)?;
        map(&file, bytes, RingWait::Never)
    })
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let (bytes, folder) = (ring_bytes(request)?, storage_folder(request.options, request.folder)?);
    one_way(request, || {
        // The name is removed at the end of this block: both ends have the mapping, which keeps the file.
        let (_name, file) = make_file(&folder, bytes)?;
        Ok(payload_direction(request, map(&file, bytes, RingWait::for_request(request))?))
    })
}

/// Makes a file with the length that the ring needs.
fn make_file(folder: &Path, ring_bytes: usize) -> Result<(TemporaryPath, OwnedFd), OpenError> {
    let (name, file) = make_named(folder, OFlags::empty())?;
    let (mut file, len) = (File::from(file), mapped_bytes(ring_bytes) + control_bytes());
    // Real bytes, not a hole: if there is no space on the disk when a mapped page is first written, the process gets SIGBUS.
    io::copy(&mut io::repeat(0).take(len as u64), &mut file).map_err(|error| {
        let call = format!("making a file of {} in {}", ByteSize(ring_bytes as u64), folder.display());
        let remedy = "a smaller size=, or dir= on a larger file system";
        OpenError::system(call, error, Some(remedy.to_owned()))
    })?;
    Ok((name, file.into()))
}

fn map(file: &OwnedFd, ring_bytes: usize, wait: RingWait) -> Result<Ring, OpenError> {
    let memory = SharedMemory::file_twice(file, mapped_bytes(ring_bytes), control_bytes());
    let remedy = "dir= on a file system whose files can be mapped and written".to_owned();
    let memory =
        memory.map_err(|error| OpenError::system("mmap(MAP_SHARED) of the file", error, Some(remedy)))?;
    Ring::over(memory, ring_bytes, wait)
}

#[cfg(test)]
mod tests {

    #[test]
    fn both_ends_work_on_the_file_s_pages() {
        let (mechanism, options) =
            crate::resolve(&"mmap-file:copy=in-place".parse().expect("a spec")).expect("known");
        let found = (mechanism.zero_copy)(&options).expect("copy=in-place copies nothing");
        assert!(found.proven, "{found:?}");
    }
}
