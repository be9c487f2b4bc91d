//! The ports: a publisher and a subscriber to each line, in nodes made after fork(2) in the tasks that use
//! them.
#![allow(unsafe_code)]

use std::fmt::Debug;
use std::time::{Duration, Instant};

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::sample::Sample;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory as PubSub;

use super::segments::{SHARED_MEMORY_FOLDER, Site, remove_what_the_dead_left};
use crate::free_bytes;
use crate::prelude::*;
use crate::registry::evidence::verdict;

/// Samples in the subscriber's queue.
const DEFAULT_DEPTH: usize = 16;

/// How long a subscriber looks for its publisher before the trial.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A subscriber that finds nothing asks this seldom whether the publisher has gone.
const LOOKS_BEFORE_ASKING: u32 = 1 << 16;

type IpcService = ipc::Service;

pub(super) fn open(request: &Request<'_>) -> Result<Channel, OpenError> {
    set_log_level(LogLevel::Fatal);
    remove_what_the_dead_left();
    let depth = request.options.parsed("depth").unwrap_or(DEFAULT_DEPTH);
    let directions = if request.workload == Workload::PingPong { 2 } else { 1 + u64::from(request.relays) };
    check_room(request.block_bytes as u64, depth as u64, directions)?;
    let site = Site::new(&request.folder.path()?)?;
    let mut number = 0;
    let mut channel = one_way(request, || {
        number += 1;
        let plan = PortSettings {
            config: site.config.clone(),
            service: format!("hosepipe/{number}"),
            depth,
            block_bytes: request.block_bytes,
            alone: request.tasks == Tasks::Single,
        };
        let bytes = request.block_bytes as u64 * depth as u64;
        let sender = Publishing { plan: plan.clone(), port: None };
        let receiver = Subscribing { plan, port: None, at_hand: None };
        Ok(Direction::new(sender, receiver).granted([("queue_bytes", bytes)]))
    })?;
    channel.keep.push(Box::new(site));
    Ok(channel)
}

/// Samples a publisher may hold on loan. Chunks are handed out again in the order last in, first out, so that
/// those touched before the trial are the ones in use.
fn loans(depth: usize) -> usize {
    depth + 2
}

/// More than there is room for would end an end by SIGBUS, not by an error.
fn check_room(block_bytes: u64, depth: u64, directions: u64) -> Result<(), OpenError> {
    let chunks = 2 * depth + 4;
    let needed = block_bytes.saturating_add(4096).saturating_mul(chunks).saturating_mul(directions);
    let folder = rustix::fs::statvfs(SHARED_MEMORY_FOLDER).map_err(OpenError::system("statvfs(/dev/shm)"))?;
    let Some(room) = free_bytes(&folder).filter(|room| *room < needed) else { return Ok(()) };
    Err(OpenError::limit(
        format!("{} of samples, room for {} in /dev/shm", ByteSize(needed), ByteSize(room)),
        "a smaller --block or depth=, or mount -o remount,size=… /dev/shm",
    ))
}

/// What an end needs to make its port.
#[derive(Clone)]
struct PortSettings {
    config: Config,
    service: String,
    depth: usize,
    block_bytes: usize,
    /// The only task there is: it does not wait for itself.
    alone: bool,
}

fn refused<E: Debug>(what: &str) -> impl FnOnce(E) -> io::Error {
    let what = what.to_owned();
    move |error| io::Error::other(format!("iceoryx2: {what}: {error:?}"))
}

/// A port with what it lives on. The fields are dropped in this order.
struct Port<P> {
    port: P,
    factory: PubSub<IpcService, [u8], ()>,
    _node: Node<IpcService>,
}

// SAFETY: iceoryx2's single-threaded ports may not be used by two threads at once. Ours are made by the task
// that uses them (`prepare`), and are used and dropped there and nowhere else; before that there is nothing.
unsafe impl<P> Send for Port<P> {}

impl PortSettings {
    fn make<P>(
        &self,
        port: impl FnOnce(&PubSub<IpcService, [u8], ()>) -> io::Result<P>,
    ) -> io::Result<Port<P>> {
        let node = NodeBuilder::new()
            .config(&self.config)
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<IpcService>()
            .map_err(refused("node"))?;
        let name = self.service.as_str().try_into().map_err(refused("service name"))?;
        let factory = node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(false)
            .history_size(0)
            .subscriber_max_buffer_size(self.depth)
            .subscriber_max_borrowed_samples(2)
            .max_publishers(1)
            .max_subscribers(1)
            .open_or_create()
            .map_err(refused("service"))?;
        let port = port(&factory)?;
        Ok(Port { port, factory, _node: node })
    }

    fn publisher(&self) -> io::Result<Port<Publisher<IpcService, [u8], ()>>> {
        let made = self.make(|factory| {
            let builder = factory.publisher_builder();
            let builder =
                builder.initial_max_slice_len(self.block_bytes).max_loaned_samples(loans(self.depth));
            let builder = builder.backpressure_strategy(BackpressureStrategy::RetryUntilDelivered);
            builder.create().map_err(refused("publisher"))
        })?;
        // Every sample is written once, so that no page fault waits in it. Not zeros: see `payload::Block`.
        let loan = |_| made.port.loan_slice_uninit(self.block_bytes).map_err(refused("loan"));
        let mut samples = (0..loans(self.depth)).map(loan).collect::<io::Result<Vec<_>>>()?;
        for sample in &mut samples {
            sample.payload_mut().fill(std::mem::MaybeUninit::new(0xA5));
        }
        drop(samples);
        Ok(made)
    }

    fn subscriber(&self) -> io::Result<Port<Subscriber<IpcService, [u8], ()>>> {
        self.make(|factory| {
            let builder = factory.subscriber_builder().buffer_size(self.depth);
            builder.create().map_err(refused("subscriber"))
        })
    }
}

/// The sending end.
struct Publishing {
    plan: PortSettings,
    port: Option<Port<Publisher<IpcService, [u8], ()>>>,
}

impl End for Publishing {
    fn prepare(&mut self) -> io::Result<()> {
        self.port = Some(self.plan.publisher()?);
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}

impl SendInPlace for Publishing {
    fn put(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<()> {
        let port = &self.port.as_ref().ok_or(io::ErrorKind::NotConnected)?.port;
        let sample = port.loan_slice_uninit(len).map_err(refused("loan"))?;
        // SAFETY: the sample lies in shared memory, every byte of which `publisher` has written once.
        let mut sample = unsafe { sample.assume_init() };
        fill(sample.payload_mut());
        match sample.send().map_err(refused("send"))? {
            0 => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the subscriber has gone")),
            _ => Ok(()),
        }
    }
}

/// The receiving end, with the sample it is at and how much of it was taken.
struct Subscribing {
    // Before the port, on which it is on loan.
    at_hand: Option<AtHand>,
    plan: PortSettings,
    port: Option<Port<Subscriber<IpcService, [u8], ()>>>,
}

struct AtHand {
    sample: Sample<IpcService, [u8], ()>,
    taken: usize,
}

// SAFETY: as for `Port`: made, used and dropped in one task.
unsafe impl Send for AtHand {}

impl Subscribing {
    /// Waits for a sample; `None` where the publisher has gone.
    fn next(&mut self) -> io::Result<Option<Sample<IpcService, [u8], ()>>> {
        let subscriber = self.port.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut looks = 0u32;
        let mut gone = false;
        loop {
            if let Some(sample) = subscriber.port.receive().map_err(refused("receive"))? {
                return Ok(Some(sample));
            }
            if self.plan.alone {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if gone {
                return Ok(None);
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_BEFORE_ASKING) {
                // What it sent last is looked for once more.
                gone = subscriber.factory.dynamic_config().number_of_publishers() == 0;
            }
            std::hint::spin_loop();
        }
    }
}

impl End for Subscribing {
    fn prepare(&mut self) -> io::Result<()> {
        let made = self.plan.subscriber()?;
        // A publisher counts on nobody whose side of the connection is not open: samples would be lost.
        let began = Instant::now();
        while made.factory.dynamic_config().number_of_publishers() == 0 {
            if began.elapsed() > CONNECT_TIME {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the publisher did not come"));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        made.port.update_connections().map_err(refused("connection"))?;
        self.port = Some(made);
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}

impl ReceiveInPlace for Subscribing {
    fn take(&mut self, most: usize, show: impl FnOnce(&[u8])) -> io::Result<usize> {
        let mut at_hand = match self.at_hand.take() {
            Some(at_hand) => at_hand,
            None => match self.next()? {
                Some(sample) => AtHand { sample, taken: 0 },
                None => return Ok(0),
            },
        };
        let bytes = &at_hand.sample.payload()[at_hand.taken..];
        let len = bytes.len().min(most);
        show(&bytes[..len]);
        if len < bytes.len() {
            at_hand.taken += len;
            self.at_hand = Some(at_hand);
        }
        Ok(len)
    }
}

/// Writes to a sample after it was sent, and looks whether the receiver sees it.
pub(super) fn canary() -> ZeroCopy {
    verdict("a byte changed after the send", seen_after_send())
}

fn seen_after_send() -> io::Result<bool> {
    set_log_level(LogLevel::Fatal);
    let folder = Folder::private();
    let site = folder.path().and_then(|path| Site::new(&path)).map_err(io::Error::other)?;
    let plan = PortSettings {
        config: site.config.clone(),
        service: "hosepipe/canary".to_owned(),
        depth: 2,
        block_bytes: 4096,
        alone: true,
    };
    let subscriber = plan.subscriber()?;
    let publisher = plan.publisher()?;
    let sample = publisher.port.loan_slice_uninit(4096).map_err(refused("loan"))?;
    // SAFETY: written once by `PortSettings::publisher`.
    let mut sample = unsafe { sample.assume_init() };
    sample.payload_mut().fill(1);
    let sent_byte = sample.payload_mut().as_mut_ptr();
    sample.send().map_err(refused("send"))?;
    let received = subscriber.port.receive().map_err(refused("receive"))?;
    let received = received.ok_or_else(|| io::Error::other("nothing came"))?;
    let received_byte = received.payload().as_ptr();
    // SAFETY: the publisher's mapping lives as long as `publisher`, and nobody writes to or reads from the
    // sample meanwhile; no reference to its bytes is held.
    unsafe {
        sent_byte.write_volatile(2);
        Ok(received_byte.read_volatile() == 2)
    }
}
