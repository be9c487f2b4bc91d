//! A node of a fleet: publishes its status, and waits for the other nodes.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use model::Tool;
use process::Cleaner;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fleet::rendezvous::Rendezvous;

/// Time between two heartbeats of a node.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A node without a heartbeat for this time counts as gone. It is many intervals, because a machine may be loaded, and a network file system may
/// show changes after seconds.
const HEARTBEAT_MISSING_MAX: Duration = Duration::from_secs(15);
/// Time between two reads of another node's status.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A node, and what it must measure.
pub struct Node<'a> {
    /// Its number, from 0.
    pub rank: usize,
    /// The number of nodes.
    pub size: usize,
    /// Where the nodes meet.
    pub rendezvous: &'a Rendezvous,
    /// Its first status.
    pub status: Status,
    /// The file of this program.
    pub hosepipe: PathBuf,
    /// A folder of its own, with a copy of its results.
    pub folder: &'a Path,
    /// The arguments of its bench.
    pub bench: Vec<OsString>,
    /// The time of each pair.
    pub pair_time: Duration,
    /// A secret that all nodes have; without one, the first node makes one and publishes it.
    pub token_file: Option<PathBuf>,
    /// Longest time until the other nodes have joined.
    pub patience: Duration,
    /// Ends the programs if this process is killed.
    pub cleaner: &'a Cleaner,
    /// Whether the user has asked to stop.
    pub stop: &'a dyn Fn() -> bool,
}

/// What a node publishes about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Heartbeat counter, which increases while the node runs.
    pub beat: u64,
    /// Its name.
    pub name: String,
    /// The number of nodes that it was started with.
    pub size: usize,
    /// Its version of hosepipe.
    pub tool: Tool,
    /// The address at which it listens; `None` if it never joined.
    pub address: Option<IpAddr>,
    /// The number of steps that it has finished.
    pub step: usize,
    /// In this step: the address for its partner, or the reason why there is none.
    pub listening: Option<Result<String, String>>,
    /// The reason why it no longer takes part.
    pub failure: Option<String>,
    /// The nodes that were gone, if this node has merged the results.
    pub lost: Vec<usize>,
}

impl Status {
    /// The status of a node before its first step.
    pub fn new(name: String, size: usize, tool: Tool, address: Option<IpAddr>) -> Self {
        Self { beat: 0, name, size, tool, address, step: 0, listening: None, failure: None, lost: Vec::new() }
    }
}

/// Why a node stops waiting, or stops its work.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The other node is gone.
    #[error("{0}")]
    Gone(String),
    /// The user has asked to stop.
    #[error("stopped")]
    Stopped,
    /// An error of the rendezvous, or of another system call.
    #[error("{}", model::describe_errno(.0))]
    System(#[from] io::Error),
}

/// What is known about another node.
#[derive(Debug, Clone, Default)]
pub(crate) struct OtherNode {
    pub(crate) last: Option<Status>,
    beat_at: Option<Instant>,
    pub(crate) gone: Option<String>,
}

/// Publishes the status of this node.
struct Publisher<'a> {
    rendezvous: &'a Rendezvous,
    rank: usize,
    status: Mutex<Status>,
    /// The error after which heartbeats are no longer published.
    publish_error: OnceLock<io::Error>,
}

impl Publisher<'_> {
    fn publish(&self, change: impl FnOnce(&mut Status)) -> io::Result<()> {
        // The lock is held until the status is published, so that an older one cannot replace it.
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut status);
        status.beat += 1;
        self.rendezvous.put(&status_name(self.rank), &*status)
    }

    /// Publishes heartbeats until the other end of the channel is dropped.
    fn publish_beats(&self, dropped: &mpsc::Receiver<()>) {
        while dropped.recv_timeout(HEARTBEAT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = self.publish(|_| ()) {
                return drop(self.publish_error.set(error));
            }
        }
    }
}

/// A node that takes part.
pub(crate) struct Member<'a> {
    pub(crate) node: &'a Node<'a>,
    own: &'a Publisher<'a>,
    pub(crate) others: RefCell<Vec<OtherNode>>,
    joined_by: Instant,
}

/// Does `work` while heartbeats are published.
///
/// # Errors
/// The error of `work`, or of a rendezvous that cannot be written.
pub(crate) fn take_part<T>(
    node: &Node<'_>,
    work: impl FnOnce(&Member<'_>) -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let Node { rank, rendezvous, .. } = *node;
    if rendezvous.get::<Status>(&status_name(rank))?.is_some() {
        return Err(NodeError::Gone(format!("another node is number {rank} already")));
    }
    let status = Mutex::new(node.status.clone());
    let own = &Publisher { rendezvous, rank, status, publish_error: OnceLock::new() };
    let others = RefCell::new(vec![OtherNode::default(); node.size]);
    let member = Member { node, own, others, joined_by: Instant::now() + node.patience };
    own.publish(|_| ())?;
    std::thread::scope(|threads| {
        let (until_dropped, dropped) = mpsc::channel();
        let held = process::signals::NoSignals::block();
        std::thread::Builder::new().spawn_scoped(threads, move || own.publish_beats(&dropped))?;
        drop(held);
        let done = work(&member);
        drop(until_dropped);
        if let Err(error) = &done {
            let _ = own.publish(|own| own.failure = Some(error.to_string()));
        }
        done
    })
}

impl Member<'_> {
    /// Checks whether this node can continue.
    ///
    /// # Errors
    /// The user has asked to stop, or heartbeats can no longer be published.
    pub(crate) fn check_running(&self) -> Result<(), NodeError> {
        match self.own.publish_error.get() {
            _ if (self.node.stop)() => Err(NodeError::Stopped),
            Some(error) => Err(io::Error::new(error.kind(), model::describe_errno(error)).into()),
            None => Ok(()),
        }
    }

    /// Changes the status and publishes it.
    ///
    /// # Errors
    /// The rendezvous cannot be written.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut Status)) -> io::Result<()> {
        self.own.publish(change)
    }

    /// Waits until `wanted` gives a value for another node's status.
    ///
    /// # Errors
    /// That node is gone or never joined; the user has asked to stop; the rendezvous cannot be read.
    pub(crate) fn wait<T>(&self, rank: usize, wanted: impl Fn(&Status) -> Option<T>) -> Result<T, NodeError> {
        loop {
            let other = self.read(rank)?;
            if let Some(found) = other.last.as_ref().and_then(&wanted) {
                return Ok(found);
            }
            if let Some(gone) = other.gone {
                return Err(NodeError::Gone(gone));
            }
            self.check_running()?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Reads the status of another node. A node that is gone is not read again.
    ///
    /// # Errors
    /// The rendezvous cannot be read.
    pub(crate) fn read(&self, rank: usize) -> io::Result<OtherNode> {
        let other = &mut self.others.borrow_mut()[rank];
        if other.gone.is_some() {
            return Ok(other.clone());
        }
        match self.node.rendezvous.get::<Status>(&status_name(rank))? {
            None if Instant::now() > self.joined_by => {
                let why = "did not join: was it started, and can it reach the folder or address where the nodes meet?";
                other.gone = Some(why.to_owned());
            }
            None => {}
            Some(status) => {
                if other.last.as_ref().is_none_or(|last| last.beat != status.beat) {
                    other.beat_at = Some(Instant::now());
                }
                let is_silent =
                    other.beat_at.is_some_and(|beat_at| beat_at.elapsed() > HEARTBEAT_MISSING_MAX);
                let silence = || {
                    let at = match status.step {
                        0 => "in its own bench".to_owned(),
                        step => format!("in round {step} of the pairs"),
                    };
                    format!(
                        "no heartbeat for {} s, {at}: it died, or was cut off",
                        HEARTBEAT_MISSING_MAX.as_secs()
                    )
                };
                // If two nodes differ, the one with the lower rank is right.
                let differs =
                    || if rank > self.node.rank { difference(&status, &self.node.status) } else { None };
                other.gone = status.failure.clone().or_else(differs).or_else(|| is_silent.then(silence));
                other.last = Some(status);
            }
        }
        Ok(other.clone())
    }
}

/// The status of each node; `None` for a node that has not joined.
///
/// # Errors
/// The rendezvous cannot be read.
pub fn known(rendezvous: &Rendezvous, size: usize) -> io::Result<Vec<Option<Status>>> {
    (0..size).map(|rank| rendezvous.get(&status_name(rank))).collect()
}

/// Publishes the reason why a node is gone, unless it has published a failure itself: in its own status, or in `other` if it never joined.
///
/// # Errors
/// The rendezvous cannot be written or read.
pub fn publish_gone(rendezvous: &Rendezvous, rank: usize, other: Status, why: &str) -> io::Result<()> {
    let status = rendezvous.get(&status_name(rank))?.unwrap_or(other);
    match status.failure {
        Some(_) => Ok(()),
        None => rendezvous.put(&status_name(rank), &Status { failure: Some(why.to_owned()), ..status }),
    }
}

/// Why a node cannot take part with the first one: its version of hosepipe or its number of nodes differs.
pub(crate) fn difference(own: &Status, first: &Status) -> Option<String> {
    if own.size != first.size {
        return Some(format!("is one of {} nodes, and the first one of {}", own.size, first.size));
    }
    let [own_tool, first_tool] = [own, first].map(|status| {
        let version = status.tool.version.clone();
        status.tool.revision.iter().fold(version, |version, revision| format!("{version} ({revision})"))
    });
    let text =
        format!("has hosepipe {own_tool}, and the first node {first_tool}: install the same on all nodes");
    (own.tool != first.tool).then_some(text)
}

pub(crate) fn status_name(rank: usize) -> String {
    format!("node-{rank}")
}
