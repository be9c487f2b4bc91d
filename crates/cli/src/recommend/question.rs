//! The question, and the mechanisms that could be the answer.

use clap::Args;
use engine::RATE_MAX;
use mechanism::{Capabilities, Mechanism};
use model::{ByteSize, Spec, Tasks, Workload};
use stats::Demand;
use stats::choice::SIMPLEST_FIRST;

use crate::typed;

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
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    pub(super) message: ByteSize,

    /// One way, or there and back
    #[arg(long, default_value_t = Pattern::Stream, value_parser = typed::one_of(Pattern::ALL))]
    pub(super) pattern: Pattern,

    /// The two ends: a parent and its child, unrelated processes, or threads of one process
    #[arg(long, default_value_t = Between::ParentChild, value_parser = typed::one_of(Between::ALL))]
    pub(super) between: Between,

    /// Messages, or round trips, that are made in a second (50k: 50000): mechanisms and programs are measured at this rate, and of those
    /// that reach it the one with the least CPU time is taken
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(super) messages_per_second: Option<f64>,

    /// CPU time that both ends together may take, in percent of one CPU (200: two CPUs, which allows ends that spin)
    #[arg(long, value_name = "PERCENT", value_parser = typed::any_percent)]
    pub(super) cpu_budget: Option<f64>,

    /// What else it must do; may be given several times
    #[arg(long, value_name = "WHAT", value_parser = typed::one_of(Must::ALL))]
    pub(super) must: Vec<Must>,
}

/// Parses a rate of at least one message in a second: at a lower one a measurement would have no messages.
fn rate(text: &str) -> Result<f64, String> {
    let found = typed::rate(text)?;
    (found >= 1.0)
        .then_some(found)
        .ok_or_else(|| format!("`{text}` is less than 1 a second, the lowest rate that is measured"))
}

/// Mechanisms with which each sender has an end of its own, so that a reply comes to the sender of the request.
const REPLIES_TO_EACH: [&str; 3] = ["unix-stream", "unix-dgram", "tcp"];

/// A mechanism that could be the answer.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) spec: Spec,
    /// Why this machine does not have it.
    pub(crate) missing: Option<String>,
    /// Why it is no answer to this question on any machine.
    pub(crate) unfit: Option<String>,
}

impl Candidate {
    /// "`fifo` is left out: …", if it is no answer on any machine.
    pub(super) fn left_out(&self) -> Option<String> {
        self.unfit.as_ref().map(|why| format!("`{}` is left out: {why}", self.spec))
    }
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
    /// The rate at which messages are paced: the asked one, a whole number within the limits of `bench --rate`. What is asked beyond them
    /// is reached by none.
    pub(super) fn rate_per_s(&self) -> Option<u32> {
        self.messages_per_second.map(|rate| rate.ceil().clamp(1.0, f64::from(RATE_MAX)) as u32)
    }

    /// The rate and the CPU budget.
    pub(super) fn demand(&self) -> Demand {
        let cpus_max = self.cpu_budget.map(|percent| percent / 100.0);
        Demand { messages_per_s: self.messages_per_second, cpus_max }
    }

    /// The mechanisms that fulfil every condition of the question, also those that this machine does not have.
    ///
    /// # Errors
    /// None fulfils all of them: a sentence that says which mechanisms fulfil each.
    pub(crate) fn candidates(&self) -> Result<Vec<Candidate>, String> {
        let fulfils_all = |mechanism: &Mechanism| self.conditions(mechanism).iter().all(|(_, holds)| *holds);
        let candidates: Vec<Candidate> = recommendable()
            .filter(|(_, mechanism)| fulfils_all(mechanism))
            .map(|(spec, mechanism)| Candidate {
                spec,
                missing: mechanism.probe().err().map(|why| why.to_string()),
                unfit: self.unfit(mechanism),
            })
            .collect();
        if candidates.is_empty() {
            return Err(self.impossible());
        }
        let unfit: Vec<String> = candidates.iter().filter_map(Candidate::left_out).collect();
        if unfit.len() == candidates.len() {
            return Err(format!("no mechanism does all of that: {}", unfit.join("; ")));
        }
        Ok(candidates)
    }

    /// Why a mechanism that fulfils each condition does not fulfil all of them together.
    fn unfit(&self, mechanism: &Mechanism) -> Option<String> {
        if !self.must.contains(&Must::ManySenders) {
            return None;
        }
        let (atomic, message) = (mechanism.atomic_bytes, self.message.0);
        match self.pattern {
            Pattern::RequestReply => (!REPLIES_TO_EACH.contains(&mechanism.name)).then(|| {
                "a reply cannot be sent to one of several senders, so that each would need one of its own"
                    .to_owned()
            }),
            Pattern::Stream if atomic >= message => None,
            Pattern::Stream => {
                let larger = if atomic > 0 { format!(" of more than {atomic} bytes") } else { String::new() };
                Some(format!(
                    "messages{larger} of several senders are mixed in one stream; each sender would need a stream of its own, or a lock"
                ))
            }
        }
    }

    /// The options of the question, and whether a mechanism fulfils each.
    fn conditions(&self, one: &Mechanism) -> Vec<(String, bool)> {
        let (workload, tasks) = (self.pattern.workload(), self.between.tasks());
        let has_pattern = one.workloads.contains(&workload) && one.tasks.contains(&tasks);
        let mut conditions = vec![(format!("--pattern {}", self.pattern), has_pattern)];
        if self.between == Between::Processes {
            conditions.push(("--between processes".to_owned(), one.capabilities.opens_by_name()));
        }
        let does = |must: &Must| (format!("--must {must}"), one.capabilities.contains(must.capability()));
        conditions.extend(self.must.iter().map(does));
        conditions
    }

    /// The sentence that no mechanism fulfils all conditions.
    fn impossible(&self) -> String {
        let all: Vec<_> = recommendable().map(|(spec, one)| (spec.mechanism, self.conditions(one))).collect();
        let leaves = |at: usize| {
            let left = all.iter().filter(|(_, conditions)| conditions[at].1);
            let mut names: Vec<&str> = left.map(|(name, _)| name.as_str()).collect();
            names.dedup();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("{} leaves {names}", all[0].1[at].0)
        };
        let parts: Vec<String> = (0..all[0].1.len()).map(leaves).collect();
        format!(
            "no mechanism does all of that: {}; ask for less, or put what is missing on top (as a length before each message)",
            parts.join("; ")
        )
    }
}

/// All mechanisms that can be recommended.
fn recommendable() -> impl Iterator<Item = (Spec, &'static Mechanism)> {
    SIMPLEST_FIRST.iter().filter_map(|text| {
        let spec: Spec = text.parse().ok()?;
        let (mechanism, _) = mechanism::resolve(&spec).ok()?;
        Some((spec, mechanism))
    })
}
