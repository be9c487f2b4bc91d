//! `zeromq`: PUSH and PULL sockets of libzmq, over ipc or within one process. Built with `--features zeromq`
//! only: libzmq is compiled from the sources that the `zmq` crate brings.

use crate::prelude::*;

#[cfg(feature = "zeromq")]
mod sockets;

pub(crate) struct ZeroMq;

impl Mechanism for ZeroMq {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "zeromq",
            summary: "PUSH and PULL sockets of libzmq: messages through threads of its own",
            capabilities: const { Capabilities::KEEPS_BOUNDARIES.union(Capabilities::CROSSES_HOSTS) },
            waits: BLOCK_OR_SPIN,
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
            more_specs: &["zeromq", "zeromq:transport=inproc"],
            ..Descriptor::MESSAGES
        }
    }

    #[cfg(not(feature = "zeromq"))]
    fn probe(&self) -> Result<(), Unsupported> {
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
