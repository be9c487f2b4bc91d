//! Every mechanism there is. Adding one is a file in `registry/` and a line here.

use model::{Spec, nearest};

use crate::{Mechanism, Options, SpecProblem};

mod by_reference;
mod cache_line;
mod condvar;
mod dev_null;
mod eventfd;
mod evidence;
mod fifo;
mod file;
mod futex;
mod io_uring;
mod memcpy;
mod memfd;
mod messages;
mod mmap_file;
mod notify;
mod null;
mod pipe;
mod posix_mq;
mod process_vm;
mod pty;
mod queue;
mod ring;
mod sendfile;
mod shm_ring;
mod signal;
mod socketpair;
mod sockets;
mod splice;
mod sysv_msgq;
mod tcp;
mod tcp_end;
mod tmpfile;
mod udp;
mod udp_end;
mod unix_dgram;
mod unix_seqpacket;
mod unix_stream;

/// The registry, in the order of `hosepipe list`.
static ALL: &[&dyn Mechanism] = &[
    &null::Null,
    &memcpy::Memcpy,
    &pipe::Pipe,
    &splice::Splice,
    &sendfile::Sendfile,
    &fifo::Fifo,
    &socketpair::SocketPair,
    &unix_stream::UnixStream,
    &unix_seqpacket::UnixSeqpacket,
    &unix_dgram::UnixDgram,
    &tcp::Tcp,
    &udp::Udp,
    &pty::Pty,
    &sysv_msgq::SysvMsgq,
    &posix_mq::PosixMq,
    &tmpfile::TmpFile,
    &file::NamedFile,
    &shm_ring::ShmRing,
    &io_uring::IoUring,
    &cache_line::CacheLine,
    &futex::Futex,
    &eventfd::Eventfd,
    &signal::Signal,
    &condvar::CondvarPair,
    &memfd::Memfd,
    &mmap_file::MmapFile,
    &process_vm::ProcessVm,
    &dev_null::DevNull,
];

/// Every mechanism, in the order of `hosepipe list`.
pub fn all() -> &'static [&'static dyn Mechanism] {
    ALL
}

/// Finds a spec's mechanism and checks its options.
///
/// # Errors
/// An unknown name or option (with the nearest known one), or a value an option does not take.
pub fn resolve(spec: &Spec) -> Result<(&'static dyn Mechanism, Options), SpecProblem> {
    let mechanism =
        all().iter().find(|mechanism| mechanism.descriptor().name == spec.mechanism).ok_or_else(|| {
            SpecProblem::UnknownMechanism {
                name: spec.mechanism.clone(),
                nearest: nearest(&spec.mechanism, all().iter().map(|mechanism| mechanism.descriptor().name))
                    .map(str::to_owned),
            }
        })?;
    let options = Options::check(mechanism.descriptor(), spec)?;
    Ok((*mechanism, options))
}

/// The specs of the default table.
pub fn default_specs() -> Vec<Spec> {
    let texts = all().iter().flat_map(|mechanism| mechanism.descriptor().default_specs);
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// The specs of the table of everything, mechanism by mechanism.
pub fn all_specs() -> Vec<Spec> {
    all_texts().filter_map(|text| text.parse().ok()).collect()
}

fn all_texts() -> impl Iterator<Item = &'static str> {
    let descriptors = all().iter().map(|mechanism| mechanism.descriptor());
    descriptors.flat_map(|has| has.default_specs.iter().chain(has.more_specs)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_described() {
        let names: BTreeSet<_> = all().iter().map(|mechanism| mechanism.descriptor().name).collect();
        assert_eq!(names.len(), all().len());
        for mechanism in all() {
            let descriptor = mechanism.descriptor();
            assert!(!descriptor.name.is_empty() && !descriptor.summary.is_empty(), "{descriptor:?}");
            assert!(!descriptor.summary.ends_with('.'), "{descriptor:?}");
            assert!(!descriptor.workloads.is_empty() && !descriptor.tasks.is_empty(), "{descriptor:?}");
            assert!(!descriptor.waits.is_empty() && !descriptor.data.is_empty(), "{descriptor:?}");
        }
    }

    #[test]
    fn every_default_spec_resolves() {
        for text in all_texts() {
            let spec: Spec = text.parse().expect(text);
            resolve(&spec).map(|_| ()).expect(text);
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let message = |text: &str| resolve(&text.parse().expect("a spec")).err().map(|e| e.to_string());
        assert!(message("pip").is_some_and(|text| text.contains("did you mean `pipe`?")));
        assert!(message("pipe:siez=1k").is_some_and(|text| text.contains("did you mean `size`?")));
        assert!(message("pipe:size=0").is_some_and(|text| text.contains("at least 1 byte")));
        assert!(message("shm-ring:wait=sleep").is_some_and(|text| text.contains("spin, futex")));
        assert!(message("file:sync=yes").is_some_and(|text| text.contains("no value")));
        assert!(message("zzzz").is_some_and(|text| !text.contains("did you mean")));
    }
}
