//! What is asked, and which mechanisms could be the answer before anything is measured.

use mechanism::{Capabilities, Mechanism};
use model::{Spec, Tasks, Workload};
use stats::Demand;
use stats::choice::SIMPLEST_FIRST;

model::words! {
    /// How messages go.
    pub enum Pattern {
        /// One way.
        Stream = "stream",
        /// There and back.
        RequestReply = "request-reply",
    }
}
model::words! {
    /// Who talks to whom.
    pub enum Between {
        /// One starts the other, and hands its end on.
        ParentChild = "parent-child",
        /// Programs that know nothing of each other but a name.
        Processes = "processes",
        /// Two threads of one process.
        Threads = "threads",
    }
}
model::words! {
    /// What else a mechanism must do.
    pub enum Must {
        /// Work as standard input and output of programs that know nothing of it.
        Filter = "filter",
        /// Hand each message over as one.
        Boundaries = "boundaries",
        /// Keep what was sent when the sender has gone.
        Persistent = "persistent",
        /// Lead to another host.
        CrossHost = "cross-host",
        /// Take messages from several senders.
        ManySenders = "many-senders",
    }
}

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) message_bytes: u64,
    pub(crate) pattern: Pattern,
    pub(crate) between: Between,
    pub(crate) demand: Demand,
    pub(crate) must: Vec<Must>,
}

/// A mechanism that could be the answer, and why it is none on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) spec: Spec,
    pub(crate) missing: Option<String>,
    /// Why it is left out of this question wherever it is there.
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

/// Everything that can be recommended.
fn all_specs() -> impl Iterator<Item = Spec> {
    SIMPLEST_FIRST.iter().filter_map(|text| text.parse().ok())
}

impl Question {
    /// The mechanisms that do what is asked; whether they are there on this machine is said of each.
    ///
    /// # Errors
    /// None does all of it: a sentence that says which does what.
    pub(crate) fn candidates(&self) -> Result<Vec<Candidate>, String> {
        let conditions = self.conditions();
        let does_all = |mechanism: &Mechanism| conditions.iter().all(|(_, holds)| holds(mechanism));
        let candidates: Vec<Candidate> = resolved()
            .filter(|(_, mechanism)| does_all(mechanism))
            .map(|(spec, mechanism)| Candidate {
                spec,
                missing: mechanism.probe().err().map(|why| why.to_string()),
                unfit: self.unfit(mechanism),
            })
            .collect();
        if candidates.is_empty() { Err(impossible(&conditions)) } else { Ok(candidates) }
    }

    /// Why a mechanism that does each part of the question is no answer to all of it.
    fn unfit(&self, has: &Mechanism) -> Option<&'static str> {
        let replies_to_many = self.pattern == Pattern::RequestReply && self.must.contains(&Must::ManySenders);
        (replies_to_many && ["pipe", "fifo"].contains(&has.name)).then_some(
            "a reply cannot be sent to one of several senders, so that each would need one of its own",
        )
    }

    fn conditions(&self) -> Vec<Condition> {
        let (workload, tasks) = (self.pattern.workload(), self.between.tasks());
        let pattern = move |has: &Mechanism| has.workloads.contains(&workload) && has.tasks.contains(&tasks);
        let mut conditions: Vec<Condition> = vec![(format!("--pattern {}", self.pattern), Box::new(pattern))];
        if self.between == Between::Processes {
            let by_name = |has: &Mechanism| has.capabilities.is_met_by_name();
            conditions.push(("--between processes".to_owned(), Box::new(by_name)));
        }
        for must in &self.must {
            let capability = must.capability();
            let does = move |has: &Mechanism| has.capabilities.contains(capability);
            conditions.push((format!("--must {must}"), Box::new(does)));
        }
        conditions
    }
}

/// An option that was typed, and which mechanisms do what it asks for.
type Condition = (String, Box<dyn Fn(&Mechanism) -> bool>);

fn resolved() -> impl Iterator<Item = (Spec, &'static Mechanism)> {
    all_specs().filter_map(|spec| {
        let (mechanism, _) = mechanism::resolve(&spec).ok()?;
        Some((spec, mechanism))
    })
}

/// Which mechanisms each part of the question leaves: no other does all of them together.
fn impossible(conditions: &[Condition]) -> String {
    let leaves = |(option, holds): &Condition| {
        let left = resolved().filter(|(_, one)| holds(one));
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
