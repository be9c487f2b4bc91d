//! All mechanisms. A new one needs a file in `registry/`, its `mod` and a line in `ALL` here.

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
mod unix_dgram;
mod unix_seqpacket;
mod unix_stream;

/// Lines of code for each module of the registry (`build.rs`): its name, its own lines, and those with the modules that it uses.
pub const LINES_OF_CODE: &[(&str, u32, u32)] = include!(concat!(env!("OUT_DIR"), "/lines.rs"));

/// The registry, in the order of `hosepipe list`.
static ALL: &[&Mechanism] = &[
    &null::NULL,
    &memcpy::MEMCPY,
    &pipe::PIPE,
    &splice::SPLICE,
    &sendfile::SENDFILE,
    &fifo::FIFO,
    &socketpair::SOCKETPAIR,
    &unix_stream::UNIX_STREAM,
    &unix_seqpacket::UNIX_SEQPACKET,
    &unix_dgram::UNIX_DGRAM,
    &tcp::TCP,
    &udp::UDP,
    &pty::PTY,
    &sysv_msgq::SYSV_MSGQ,
    &posix_mq::POSIX_MQ,
    &tmpfile::TMPFILE,
    &file::FILE,
    &shm_ring::SHM_RING,
    &io_uring::IO_URING,
    &cache_line::CACHE_LINE,
    &futex::FUTEX,
    &eventfd::EVENTFD,
    &signal::SIGNAL,
    &condvar::CONDVAR,
    &memfd::MEMFD,
    &mmap_file::MMAP_FILE,
    &process_vm::PROCESS_VM,
    &dev_null::DEV_NULL,
];

/// Every mechanism, in the order of `hosepipe list`.
pub fn all() -> &'static [&'static Mechanism] {
    ALL
}

/// Finds a spec's mechanism and checks its options.
///
/// # Errors
/// An unknown name or option (with the nearest known one), or a value an option does not take.
pub fn resolve(spec: &Spec) -> Result<(&'static Mechanism, Options), SpecProblem> {
    let name = &spec.mechanism;
    let Some(mechanism) = all().iter().find(|mechanism| mechanism.name == name) else {
        let nearest = nearest(name, all().iter().map(|mechanism| mechanism.name)).map(str::to_owned);
        return Err(SpecProblem::UnknownMechanism { name: name.clone(), nearest });
    };
    Ok((mechanism, Options::check(mechanism.name, mechanism.options, spec)?))
}

/// The specs of the default table.
pub fn default_specs() -> Vec<Spec> {
    let texts = all().iter().flat_map(|mechanism| mechanism.default_specs);
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// The specs of the table of `--all`, in the order of [`all`].
pub fn all_specs() -> Vec<Spec> {
    all_texts().filter_map(|text| text.parse().ok()).collect()
}

fn all_texts() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|mechanism| mechanism.default_specs.iter().chain(mechanism.more_specs)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_described() {
        let names: BTreeSet<_> = all().iter().map(|mechanism| mechanism.name).collect();
        assert_eq!(names.len(), all().len());
        for mechanism in all() {
            let name = mechanism.name;
            assert!(!name.is_empty() && !mechanism.summary.is_empty(), "{name}");
            assert!(!mechanism.summary.ends_with('.'), "{name}");
            assert!(!mechanism.workloads.is_empty() && !mechanism.tasks.is_empty(), "{name}");
            assert!(!mechanism.waits.is_empty() && !mechanism.data.is_empty(), "{name}");
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
    fn a_mistyped_name_is_answered_with_the_nearest_one() {
        let message = |text: &str| resolve(&text.parse().expect("a spec")).err().map(|e| e.to_string());
        assert!(message("pip").is_some_and(|text| text.contains("did you mean `pipe`?")));
        assert!(message("pipe:siez=1k").is_some_and(|text| text.contains("did you mean `size`?")));
        assert!(message("pipe:size=0").is_some_and(|text| text.contains("at least 1 byte")));
        assert!(message("shm-ring:wait=sleep").is_some_and(|text| text.contains("spin, futex")));
        assert!(message("file:sync=yes").is_some_and(|text| text.contains("no value")));
        assert!(message("zzzz").is_some_and(|text| !text.contains("did you mean")));
    }
}
