//! `zeromq`: PUSH and PULL sockets of libzmq, over ipc or within one process. Built with `--features zeromq`
//! only: libzmq is compiled from the sources that the `zmq` crate brings.

#[cfg(feature = "zeromq")]
mod sockets;

use model::{Role, Wait};

use crate::descriptor::{ANY_DATA, ANY_TASKS, ANY_WORKLOAD, Capabilities, Descriptor};
use crate::descriptor::{OptionKind, OptionSpec};
use crate::{Channel, Mechanism, OpenError, Request};

static DESCRIPTOR: Descriptor = Descriptor {
    name: "zeromq",
    summary: "PUSH and PULL sockets of libzmq: messages through threads of its own",
    role: Role::Ranked,
    capabilities: Capabilities {
        link: false,
        keeps_boundaries: true,
        stores_data: false,
        crosses_hosts: true,
        needs_cleanup: false,
    },
    workloads: ANY_WORKLOAD,
    tasks: ANY_TASKS,
    waits: &[Wait::Block, Wait::Spin],
    data: ANY_DATA,
    options: &[
        OptionSpec {
            name: "transport",
            kind: OptionKind::Choice(&["ipc", "inproc"]),
            default: "ipc",
            help: "an abstract Unix socket, or a queue within one process (--tasks threads, single)",
        },
        OptionSpec {
            name: "depth",
            kind: OptionKind::Choice(&["1", "4", "16", "64", "256", "1000"]),
            default: "16 (libzmq's own: 1000)",
            help: "messages that each end's queue holds (ZMQ_SNDHWM, ZMQ_RCVHWM)",
        },
    ],
    limits: "the figures of an end leave out its I/O thread",
    man_pages: &["zmq_socket(3)", "zmq_ipc(7)", "zmq_inproc(7)"],
    default_specs: &[],
    more_specs: &["zeromq", "zeromq:transport=inproc"],
};

pub(crate) struct ZeroMq;

impl Mechanism for ZeroMq {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    #[cfg(not(feature = "zeromq"))]
    fn probe(&self) -> Result<(), crate::Unsupported> {
        Err(super::not_built_in("zeromq"))
    }

    #[cfg(feature = "zeromq")]
    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        sockets::open(request)
    }

    #[cfg(not(feature = "zeromq"))]
    fn open(&self, _request: &Request<'_>) -> Result<Channel, OpenError> {
        Err(super::not_built_in("zeromq").into())
    }
}
