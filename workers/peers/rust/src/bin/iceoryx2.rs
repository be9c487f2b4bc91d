//! iceoryx2: publish and subscribe with samples that are loaned in shared memory, a service for each direction.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::MaybeUninit;

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::sample::Sample;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use peers::{Backoff, Job, OrFail, Receiver, Sender, fail, receive, send, start_child};

/// Samples that the subscriber's queue holds.
const DEPTH: usize = 16;
/// Samples that the publisher may hold on loan.
const LOANS: usize = DEPTH + 2;
/// Where iceoryx2 keeps its segments on Linux.
const SEGMENTS: &str = "/dev/shm";
/// Environment variable with the PID of hosepipe, which the sender sets for the receiver that it starts.
const HOSEPIPE_VARIABLE: &str = "HOSEPIPE_PEER_OF";

type Service = PortFactory<ipc::Service, [u8], ()>;

struct Out(Publisher<ipc::Service, [u8], ()>);
struct In(Subscriber<ipc::Service, [u8], ()>, Option<Sample<ipc::Service, [u8], ()>>);

impl Sender for Out {
    fn send(&mut self, bytes: &[u8], length: usize) {
        let sample = self.0.loan_slice_uninit(length).or_fail("loan");
        if sample.write_from_slice(&bytes[..length]).send().or_fail("send") == 0 {
            fail(1, "the subscriber is gone");
        }
    }
}

impl Receiver for In {
    fn receive(&mut self, _length: usize) -> &[u8] {
        // Gives the memory of the last sample back to the publisher.
        self.1 = None;
        let mut empty = Backoff::default();
        let sample = loop {
            match self.0.receive().or_fail("receive") {
                Some(sample) => break sample,
                None => empty.pause(),
            }
        };
        self.1.insert(sample).payload()
    }
}

/// The PID of the hosepipe that started the sender.
fn hosepipe_pid() -> String {
    std::env::var(HOSEPIPE_VARIABLE).unwrap_or_else(|_| std::os::unix::process::parent_id().to_string())
}

/// The prefix of the names of all segments of this run.
fn prefix(job: &Job) -> String {
    let mut hasher = DefaultHasher::new();
    job.folder.hash(&mut hasher);
    format!("hosepipe-{}-{:016x}_", hosepipe_pid(), hasher.finish())
}

/// Removes segments by their names. Another user's cannot be removed.
fn remove_segments(is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(SEGMENTS).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(&is_ours) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes segments of runs that were killed: those whose hosepipe has ended.
fn remove_orphaned_segments() {
    remove_segments(|name| {
        let owner =
            name.strip_prefix("hosepipe-").and_then(|rest| rest.split_once('-')).map(|(owner, _)| owner);
        let gone =
            |owner: &str| owner.parse::<u32>().is_ok() && !std::path::Path::new("/proc").join(owner).exists();
        owner.is_some_and(gone)
    });
}

/// A node, whose services both ends open. Its files are in the job's folder, its segments have the prefix.
fn node(job: &Job) -> Node<ipc::Service> {
    let mut config = Config::default();
    config.global.prefix = FileName::new(prefix(job).as_bytes()).or_fail("prefix");
    let root = job.folder.join("iceoryx2");
    config.global.set_root_path(&Path::new(root.as_os_str().as_encoded_bytes()).or_fail("TMPDIR"));
    let builder = NodeBuilder::new().config(&config).signal_handling_mode(SignalHandlingMode::Disabled);
    builder.create::<ipc::Service>().or_fail("node")
}

fn service(node: &Node<ipc::Service>, name: &str) -> Service {
    node.service_builder(&name.try_into().or_fail("service name"))
        .publish_subscribe::<[u8]>()
        .enable_safe_overflow(false)
        .history_size(0)
        .subscriber_max_buffer_size(DEPTH)
        .subscriber_max_borrowed_samples(2)
        .max_publishers(1)
        .max_subscribers(1)
        .open_or_create()
        .or_fail("service")
}

fn publisher(job: &Job, service: &Service) -> Out {
    let block = job.message_max();
    let publisher = service
        .publisher_builder()
        .initial_max_slice_len(block)
        .max_loaned_samples(LOANS)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .or_fail("publisher");
    // Every sample is written once, so that page faults are not timed.
    let mut samples: Vec<_> =
        (0..LOANS).map(|_| publisher.loan_slice_uninit(block).or_fail("loan")).collect();
    samples.iter_mut().for_each(|sample| sample.payload_mut().fill(MaybeUninit::new(0xA5)));
    Out(publisher)
}

fn main() {
    set_log_level(LogLevel::Fatal);
    let job = Job::parse(false);
    let child = (!job.child.is_empty()).then(|| {
        remove_orphaned_segments();
        let prefix = prefix(&job);
        start_child(&job, (HOSEPIPE_VARIABLE, hosepipe_pid()), move || {
            remove_segments(|name| name.starts_with(&prefix))
        })
    });
    run(&job, child);
    if job.is_first() {
        // iceoryx2 does not remove one of its segments.
        remove_segments(|name| name.starts_with(&prefix(&job)));
    }
}

fn run(job: &Job, child: Option<std::thread::JoinHandle<()>>) {
    let node = node(job);
    let (out, input) = if job.is_first() { ("there", "back") } else { ("back", "there") };
    let (out, input) = (service(&node, out), service(&node, input));
    let mut out = publisher(job, &out);
    let subscriber = input.subscriber_builder().buffer_size(DEPTH).create().or_fail("subscriber");
    // Both ends must be connected before the first sample, which would otherwise be lost.
    let (own, others) = if job.is_first() { ("first", "second") } else { ("second", "first") };
    job.reach(own);
    job.wait_for(others);
    out.0.update_connections().or_fail("connection");
    subscriber.update_connections().or_fail("connection");
    job.reach(&format!("{own} connected"));
    job.wait_for(&format!("{others} connected"));
    let mut input = In(subscriber, None);
    if job.is_first() {
        send(job, &mut out, &mut input, child);
    } else {
        receive(job, &mut out, &mut input);
    }
}
