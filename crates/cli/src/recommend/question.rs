//! The question, and the mechanisms that could be the answer.

use mechanism::{Capabilities, Mechanism};
use model::{Spec, Tasks, Workload};
use stats::Demand;
use stats::choice::SIMPLEST_FIRST;

model::words! {
    /// The direction of messages.
    pub enum Pattern {
        /// One way.
        Stream = "stream",
        /// There and back.
        RequestReply = "request-reply",
    }
}
model::words! {
    /// The two tasks that communicate.
    pub enum Between {
        /// A process and a child that inherits its end.
        ParentChild = "parent-child",
        /// Unrelated programs that know a common name.
        Processes = "processes",
        /// Two threads of one process.
        Threads = "threads",
    }
}
model::words! {
    /// What else a mechanism must do.
    pub enum Must {
        /// Work as standard input and output of unmodified programs.
        Filter = "filter",
        /// Keep the boundaries of messages.
        Boundaries = "boundaries",
        /// Keep sent messages after the sender has ended.
        Persistent = "persistent",
        /// Reach another host.
        CrossHost = "cross-host",
        /// Accept messages from several senders.
        ManySenders = "many-senders",
    }
}

/// What the user asks.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) message_bytes: u64,
    pub(crate) pattern: Pattern,
    pub(crate) between: Between,
    pub(crate) demand: Demand,
    pub(crate) must: Vec<Must>,
}

/// A mechanism that could be the answer.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) spec: Spec,
    /// Why this machine does not have it.
    pub(crate) missing: Option<String>,
    /// Why it is no answer to this question on any machine.
    pub(crate) unfit: Option<&'static str>,
}

impl Pattern {
    pub(crate) fn workload(self) -> Workload {
        match self {
            Self::Stream => Workload::Stream,
            Self::RequestReply => Workload::PingPong,
        }
    }
}

impl Between {
    pub(crate) fn tasks(self) -> Tasks {
        match self {
            Self::ParentChild | Self::Processes => Tasks::Processes,
            Self::Threads => Tasks::Threads,
        }
    }
}

impl Must {
    fn capability(self) -> Capabilities {
        match self {
            Self::Filter => Capabilities::LINK,
            Self::Boundaries => Capabilities::KEEPS_BOUNDARIES,
            Self::Persistent => Capabilities::STORES_DATA,
            Self::CrossHost => Capabilities::CROSSES_HOSTS,
            Self::ManySenders => Capabilities::MANY_SENDERS,
        }
    }
}

impl Question {
    /// The mechanisms that fulfil every condition of the question, also those that this machine does not have.
    ///
    /// # Errors
    /// None fulfils all of them: a sentence that says which mechanisms fulfil each.
    pub(crate) fn candidates(&self) -> Result<Vec<Candidate>, String> {
        let conditions = self.conditions();
        let fulfils_all = |mechanism: &Mechanism| conditions.iter().all(|(_, holds)| holds(mechanism));
        let candidates: Vec<Candidate> = recommendable()
            .filter(|(_, mechanism)| fulfils_all(mechanism))
            .map(|(spec, mechanism)| Candidate {
                spec,
                missing: mechanism.probe().err().map(|why| why.to_string()),
                unfit: self.unfit(mechanism),
            })
            .collect();
        if candidates.is_empty() { Err(impossible(&conditions)) } else { Ok(candidates) }
    }

    /// Why a mechanism that fulfils each condition does not fulfil all of them together.
    fn unfit(&self, mechanism: &Mechanism) -> Option<&'static str> {
        let replies_to_many = self.pattern == Pattern::RequestReply && self.must.contains(&Must::ManySenders);
        (replies_to_many && ["pipe", "fifo"].contains(&mechanism.name)).then_some(
            "a reply cannot be sent to one of several senders, so that each would need one of its own",
        )
    }

    fn conditions(&self) -> Vec<Condition> {
        let (workload, tasks) = (self.pattern.workload(), self.between.tasks());
        let pattern = move |one: &Mechanism| one.workloads.contains(&workload) && one.tasks.contains(&tasks);
        let mut conditions: Vec<Condition> = vec![(format!("--pattern {}", self.pattern), Box::new(pattern))];
        if self.between == Between::Processes {
            let by_name = |one: &Mechanism| one.capabilities.opens_by_name();
            conditions.push(("--between processes".to_owned(), Box::new(by_name)));
        }
        for must in &self.must {
            let capability = must.capability();
            let does = move |one: &Mechanism| one.capabilities.contains(capability);
            conditions.push((format!("--must {must}"), Box::new(does)));
        }
        conditions
    }
}

/// An option, and whether a mechanism fulfils it.
type Condition = (String, Box<dyn Fn(&Mechanism) -> bool>);

/// All mechanisms that can be recommended.
fn recommendable() -> impl Iterator<Item = (Spec, &'static Mechanism)> {
    SIMPLEST_FIRST.iter().filter_map(|text| {
        let spec: Spec = text.parse().ok()?;
        let (mechanism, _) = mechanism::resolve(&spec).ok()?;
        Some((spec, mechanism))
    })
}

/// The sentence that no mechanism fulfils all conditions.
fn impossible(conditions: &[Condition]) -> String {
    let leaves = |(option, holds): &Condition| {
        let left = recommendable().filter(|(_, one)| holds(one));
        let mut names: Vec<String> = left.map(|(spec, _)| spec.mechanism).collect();
        names.dedup();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("{option} leaves {names}")
    };
    let parts: Vec<String> = conditions.iter().map(leaves).collect();
    format!(
        "no mechanism does all of that: {}; ask for less, or put what is missing on top (as a length before each message)",
        parts.join("; ")
    )
}
