//! `iceoryx2`: publish and subscribe in shared memory, with loans. Built with `--features iceoryx2` only.

#[cfg(feature = "iceoryx2")]
mod ports;
#[cfg(feature = "iceoryx2")]
mod segments;

use crate::prelude::*;

#[cfg(feature = "iceoryx2")]
pub(crate) use segments::remove_segments_of;

pub(crate) struct Iceoryx2;

impl Mechanism for Iceoryx2 {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "iceoryx2",
            summary: "publish and subscribe of iceoryx2: samples on loan, produced and checked where they lie",
            capabilities: const { Capabilities::KEEPS_BOUNDARIES.union(Capabilities::NEEDS_CLEANUP) },
            waits: &[Wait::Spin],
            options: &[OptionSpec {
                name: "depth",
                kind: OptionKind::Choice(&["2", "4", "8", "16", "32", "64"]),
                default: "16",
                help: "samples that the subscriber's queue holds",
            }],
            limits: "the room in /dev/shm; a publisher that finds the queue full yields and sleeps inside iceoryx2",
            man_pages: &["shm_overview(7)"],
            more_specs: &["iceoryx2"],
            ..Descriptor::MESSAGES
        }
    }

    #[cfg(not(feature = "iceoryx2"))]
    fn probe(&self) -> Result<(), Unsupported> {
        Err(super::not_built_in("iceoryx2"))
    }

    #[cfg(feature = "iceoryx2")]
    fn zero_copy(&self, _options: &Options) -> Option<ZeroCopy> {
        Some(ports::canary())
    }

    #[cfg(feature = "iceoryx2")]
    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        ports::open(request)
    }

    #[cfg(not(feature = "iceoryx2"))]
    fn open(&self, _request: &Request<'_>) -> Result<Channel, OpenError> {
        Err(super::not_built_in("iceoryx2").into())
    }
}
