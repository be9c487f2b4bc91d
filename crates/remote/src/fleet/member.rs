//! A node among the others: what it publishes, and waiting for them as long as they live.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use model::Tool;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fleet::node::Node;
use crate::fleet::rendezvous::Rendezvous;

/// How often a node publishes that it lives.
const BEAT: Duration = Duration::from_secs(1);
/// A node that is silent for this time is gone. Many beats: a machine may be loaded, and a network file system shows changes after seconds.
const SILENCE: Duration = Duration::from_secs(15);
/// How often the status of a node is read that another one waits for.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// What a node publishes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Grows for as long as the node lives.
    pub beat: u64,
    /// What it is called.
    pub name: String,
    /// Of how many nodes it knows.
    pub size: usize,
    /// Its hosepipe.
    pub tool: Tool,
    /// Where it listens; `None` where it has never come.
    pub address: Option<IpAddr>,
    /// How many steps lie behind it.
    pub step: usize,
    /// In this step: where its partner finds it, or why it does not.
    pub listening: Option<Result<String, String>>,
    /// Why it takes no part any more.
    pub failure: Option<String>,
    /// The nodes that were gone for the one that merged everything.
    pub lost: Vec<usize>,
}

impl Status {
    /// Of a node of which nothing else is known.
    pub fn new(name: String, size: usize, tool: Tool, address: Option<IpAddr>) -> Self {
        Self { beat: 0, name, size, tool, address, step: 0, listening: None, failure: None, lost: Vec::new() }
    }
}

/// Why a node gives up waiting, or all of its work.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The other node is gone.
    #[error("{0}")]
    Gone(String),
    /// The user wants no more.
    #[error("stopped")]
    Stopped,
    /// The rendezvous, or something else of this machine.
    #[error("{}", model::describe_errno(.0))]
    System(#[from] io::Error),
}

/// What is known of another node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) last: Option<Status>,
    beat_at: Option<Instant>,
    pub(crate) gone: Option<String>,
}

/// A node that takes part.
pub(crate) struct Member<'a> {
    pub(crate) node: &'a Node<'a>,
    own: Mutex<Status>,
    pub(crate) others: RefCell<Vec<Seen>>,
    joined_by: Instant,
    /// Why the others do not hear of this node any more.
    cut_off: OnceLock<io::Error>,
}

impl<'a> Member<'a> {
    /// Does `work` while the others hear that it lives.
    ///
    /// # Errors
    /// What `work` gave, and a rendezvous that cannot be written.
    pub(crate) fn take_part<T>(
        node: &'a Node<'a>,
        work: impl FnOnce(&Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let member = Self {
            node,
            own: Mutex::new(node.status.clone()),
            others: RefCell::new(vec![Seen::default(); node.size]),
            joined_by: Instant::now() + node.patience,
            cut_off: OnceLock::new(),
        };
        if node.rendezvous.get::<Status>(&status_name(node.rank))?.is_some() {
            return Err(Trouble::Gone(format!("another node is number {} already", node.rank)));
        }
        member.publish(|_| ())?;
        let (rendezvous, rank, own, cut_off) = (node.rendezvous, node.rank, &member.own, &member.cut_off);
        std::thread::scope(|threads| {
            let (until_dropped, ended) = mpsc::channel::<()>();
            let held = process::signals::NoSignals::hold();
            std::thread::Builder::new().spawn_scoped(threads, move || {
                while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                    if let Err(error) = publish(rendezvous, rank, own, |_| ()) {
                        return drop(cut_off.set(error));
                    }
                }
            })?;
            drop(held);
            let done = work(&member);
            drop(until_dropped);
            if let Err(trouble) = &done {
                let _ = member.publish(|own| own.failure = Some(trouble.to_string()));
            }
            done
        })
    }

    /// Whether this node goes on.
    ///
    /// # Errors
    /// The user wants no more, or the others do not hear of this node any more.
    pub(crate) fn goes_on(&self) -> Result<(), Trouble> {
        match self.cut_off.get() {
            _ if (self.node.stop)() => Err(Trouble::Stopped),
            Some(error) => Err(io::Error::new(error.kind(), model::describe_errno(error)).into()),
            None => Ok(()),
        }
    }

    /// Changes what the others know.
    ///
    /// # Errors
    /// The rendezvous cannot be written.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut Status)) -> io::Result<()> {
        publish(self.node.rendezvous, self.node.rank, &self.own, change)
    }

    /// Waits until `wanted` finds in another's status what it looks for.
    ///
    /// # Errors
    /// It is gone or never came; the user wants no more; the rendezvous cannot be read.
    pub(crate) fn wait<T>(&self, rank: usize, wanted: impl Fn(&Status) -> Option<T>) -> Result<T, Trouble> {
        loop {
            let seen = self.look(rank)?;
            if let Some(found) = seen.last.as_ref().and_then(&wanted) {
                return Ok(found);
            }
            if let Some(gone) = seen.gone {
                return Err(Trouble::Gone(gone));
            }
            self.goes_on()?;
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// What is known of another node by now. One that was gone stays gone.
    ///
    /// # Errors
    /// The rendezvous cannot be read.
    pub(crate) fn look(&self, rank: usize) -> io::Result<Seen> {
        let seen = &mut self.others.borrow_mut()[rank];
        if seen.gone.is_some() {
            return Ok(seen.clone());
        }
        match self.node.rendezvous.get::<Status>(&status_name(rank))? {
            None if Instant::now() > self.joined_by => {
                seen.gone =
                    Some("did not come: was it started, and does it see where the nodes meet?".to_owned());
            }
            None => {}
            Some(status) => {
                if seen.last.as_ref().is_none_or(|last| last.beat != status.beat) {
                    seen.beat_at = Some(Instant::now());
                }
                let silent = seen.beat_at.is_some_and(|beat_at| beat_at.elapsed() > SILENCE);
                let last_words = || {
                    let at = match status.step {
                        0 => "in its own bench".to_owned(),
                        step => format!("in round {step} of the pairs"),
                    };
                    format!("said nothing for {} s, {at}: it died, or was cut off", SILENCE.as_secs())
                };
                // Of two that differ the one that came first is right.
                let differs =
                    || if rank > self.node.rank { difference(&status, &self.node.status) } else { None };
                seen.gone = status.failure.clone().or_else(differs).or_else(|| silent.then(last_words));
                seen.last = Some(status);
            }
        }
        Ok(seen.clone())
    }
}

/// The status of each node; `None` for one that has not come.
///
/// # Errors
/// The rendezvous cannot be read.
pub fn known(rendezvous: &Rendezvous, size: usize) -> io::Result<Vec<Option<Status>>> {
    (0..size).map(|rank| rendezvous.get(&status_name(rank))).collect()
}

/// Publishes why a node is gone, in its own status or in `other` where it has none, unless it has published a failure itself.
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

/// Why a node cannot go with the first one: it has another hosepipe, or counts others.
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

fn publish(
    rendezvous: &Rendezvous,
    rank: usize,
    own: &Mutex<Status>,
    change: impl FnOnce(&mut Status),
) -> io::Result<()> {
    // Held while it is written, so that no older one comes after it.
    let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut own);
    own.beat += 1;
    rendezvous.put(&status_name(rank), &*own)
}
