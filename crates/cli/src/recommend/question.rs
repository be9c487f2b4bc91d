//! The question, and the mechanisms that could be the answer.

use clap::Args;
use engine::RATE_MAX;
use mechanism::{Capabilities, Mechanism};
use model::{ByteSize, Spec, Tasks, Workload};
use stats::Demand;
use stats::choice::SIMPLEST_FIRST;

use super::ends;
use super::languages::{Code, CodeLanguage};
use super::promises::{Promises, Sharing};
use crate::typed::{self, Listed};

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
        /// Go on with a new receiver.
        ReaderCrash = "reader-crash",
        /// Go on with a new sender.
        WriterCrash = "writer-crash",
        /// Keep what was not read when both ends have died.
        Restart = "restart",
        /// Keep it on the disk.
        Reboot = "reboot",
        /// Work between two containers that share a folder.
        Containers = "containers",
        /// Be waited for together with sockets.
        Poll = "poll",
        /// Leave messages in shared memory.
        NoCopy = "no-copy",
    }
}
model::words! {
    /// Which of several receivers gets a message.
    pub enum Share {
        /// One of them.
        Compete = "compete",
        /// All of them.
        Broadcast = "broadcast",
    }
}

/// What the user asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Question {
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    pub(super) message: ByteSize,

    /// One way, or there and back
    #[arg(long, default_value_t = Pattern::Stream, value_parser = typed::one_of(Pattern::ALL))]
    pub(super) pattern: Pattern,

    /// The two ends: a parent and its child, unrelated processes, or threads of one process [default: parent-child; of two programs:
    /// processes]
    #[arg(long, value_parser = typed::one_of(Between::ALL))]
    pub(super) between: Option<Between>,

    /// How many senders there are, each a program
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::whole(1u32..=64))]
    pub(super) senders: u32,

    /// How many receivers there are, each a program (--share)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::whole(1u32..=64))]
    pub(super) receivers: u32,

    /// Whether each message is for one of the receivers, or for all
    #[arg(long, value_parser = typed::one_of(Share::ALL))]
    pub(super) share: Option<Share>,

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

    /// The language of the program to print, or those of a program that sends and one that receives (rust,python)
    #[arg(long, value_name = "LANGUAGE[,LANGUAGE]", default_value_t, value_parser = languages())]
    pub(super) code: Code,
}

fn languages() -> Listed<Code> {
    Listed { read: str::parse, values: || CodeLanguage::ALL.iter().map(|one| one.word().into()).collect() }
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
    /// What the registry of mechanisms calls it; `None` for what the two programs do.
    fn capability(self) -> Option<Capabilities> {
        Some(match self {
            Self::Filter => Capabilities::LINK,
            Self::Boundaries => Capabilities::KEEPS_BOUNDARIES,
            Self::Persistent => Capabilities::STORES_DATA,
            Self::CrossHost => Capabilities::CROSSES_HOSTS,
            Self::ManySenders => Capabilities::MANY_SENDERS,
            _ => return None,
        })
    }

    /// Whether a mechanism, or the programs with it, do it.
    pub(super) fn is_done_by(self, one: &Mechanism) -> bool {
        match self.capability() {
            Some(capability) => one.capabilities.contains(capability),
            None => Promises::of(one.name).is_some_and(|promises| promises.keeps(self)),
        }
    }

    fn is_of_crash(self) -> bool {
        matches!(self, Self::ReaderCrash | Self::WriterCrash)
    }
}

impl Question {
    /// The rate at which messages are paced: the asked one, a whole number within the limits of `bench --rate`. What is asked beyond them
    /// is reached by none.
    pub(super) fn rate_per_s(&self) -> Option<u32> {
        self.messages_per_second.map(|rate| rate.ceil().clamp(1.0, f64::from(RATE_MAX)) as u32)
    }

    /// The rate of each sender, where all together keep the asked one.
    pub(super) fn sender_rate_per_s(&self) -> Option<u32> {
        self.rate_per_s().map(|rate| rate.div_ceil(self.senders))
    }

    /// The argument COUNT of a receiver, where each sender sends `count` messages. How many of them one of several that compete gets is not
    /// known before: 0.
    pub(super) fn receiver_count(&self, count: u64) -> u64 {
        if self.share == Some(Share::Compete) { 0 } else { count * u64::from(self.senders) }
    }

    /// The rate and the CPU budget.
    pub(super) fn demand(&self) -> Demand {
        let cpus_max = self.cpu_budget.map(|percent| percent / 100.0);
        Demand { messages_per_s: self.messages_per_second, cpus_max }
    }

    /// Whether the answer is two programs, one that sends and one that receives, that meet at a name.
    pub(super) fn is_of_pair(&self) -> bool {
        let is_of_programs = |must: &Must| must.capability().is_none();
        self.code.receiver.is_some()
            || !self.code.sender.facts().has_one_file
            || self.has_several_ends()
            || self.must.iter().any(is_of_programs)
    }

    /// Whether there are more than one sender and one receiver.
    pub(super) fn has_several_ends(&self) -> bool {
        self.senders * self.receivers > 1
    }

    /// The two ends: where nothing is typed, those of the programs.
    pub(super) fn between(&self) -> Between {
        let usual = if self.is_of_pair() { Between::Processes } else { Between::ParentChild };
        self.between.unwrap_or(usual)
    }

    /// "from 2 senders in Rust to 4 receivers in Python that compete".
    pub(super) fn ends(&self) -> String {
        let [sends, receives] = self.code.both().map(|language| language.facts().name);
        let [first, second] = match self.pattern {
            Pattern::Stream => ["sender", "receiver"],
            Pattern::RequestReply => ["client", "server"],
        };
        let ends = |number: u32, noun: &str| match number {
            1 => format!("a {noun}"),
            _ => format!("{number} {noun}s"),
        };
        let share = match self.share {
            Some(Share::Compete) => " that compete",
            Some(Share::Broadcast) => " that each get all",
            None => "",
        };
        format!(
            "from {} in {sends} to {} in {receives}{share}",
            ends(self.senders, first),
            ends(self.receivers, second),
        )
    }

    /// What cannot be asked together.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        let has_several_ends = self.has_several_ends();
        let asks = |must: Must| self.is_of_pair() && self.must.contains(&must);
        let problem = if self.share.is_some() && self.receivers == 1 {
            "--share is for several receivers: give --receivers N as well"
        } else if self.share.is_none() && self.receivers > 1 {
            "with several receivers say --share compete (each message is for one of them) or --share broadcast (for all)"
        } else if self.is_of_pair() && self.between() != Between::Processes {
            "the answer to this is two programs, which are processes (Go and Java have no other form): leave --between out, or ask for one language, one \
             sender and one receiver"
        } else if has_several_ends && self.pattern == Pattern::RequestReply {
            "--pattern request-reply is between one sender and one receiver: leave --senders and --receivers out"
        } else if has_several_ends && self.must.iter().any(|must| must.is_of_crash()) {
            "what survives the crash of an end is known of one sender and one receiver: leave --senders and --receivers out, or the crash"
        } else if asks(Must::ManySenders) {
            "where the answer is two programs, several senders are asked for by --senders N, not by --must many-senders"
        } else if asks(Must::Filter) {
            "--must filter is for programs that know only standard input and output, and the answer to this is two programs that meet at a name: leave \
             one of them out"
        } else {
            return Ok(());
        };
        Err(problem.to_owned())
    }

    /// The mechanisms that fulfil every condition of the question, also those that this machine does not have.
    ///
    /// # Errors
    /// None fulfils all of them: a sentence that says which mechanisms fulfil each.
    pub(crate) fn candidates(&self) -> Result<Vec<Candidate>, String> {
        let fulfils_all = |mechanism: &Mechanism| self.conditions(mechanism).iter().all(|one| one.holds);
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
        if let Some(promises) = Promises::of(mechanism.name).filter(|_| self.is_of_pair()) {
            return self.torn(promises);
        }
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

    /// Whether several ends use one queue of a mechanism.
    pub(super) fn shares(&self, promises: &Promises) -> bool {
        self.senders > 1 && promises.many_senders == Sharing::Shared
            || self.share == Some(Share::Compete) && promises.many_receivers == Sharing::Shared
    }

    /// Why messages of two programs would be mixed or cut with a mechanism between them.
    fn torn(&self, promises: &Promises) -> Option<String> {
        let is_shared = self.shares(promises);
        let why = match self.must.iter().find(|must| must.is_of_crash()) {
            Some(_) => "cut in two when an end dies",
            None if is_shared => "mixed where several ends share it",
            None => return None,
        };
        let most = promises.atomic_bytes.filter(|most| self.message.0 > *most)?;
        Some(format!("messages of more than {most} bytes are {why}"))
    }

    /// The options of the question, and whether a mechanism fulfils each.
    fn conditions(&self, one: &Mechanism) -> Vec<Condition> {
        let (workload, tasks) = (self.pattern.workload(), self.between().tasks());
        let has_pattern = one.workloads.contains(&workload) && one.tasks.contains(&tasks);
        let condition =
            |option: String, lacks: &str, holds| Condition { option, lacks: lacks.to_owned(), holds };
        let pattern = format!("--pattern {} between {}", self.pattern, self.between());
        let mut conditions = vec![condition(pattern, "not between such ends", has_pattern)];
        if self.is_of_pair() {
            let meets = Promises::of(one.name).is_some();
            conditions.push(condition("--between processes".to_owned(), "no name", meets));
            let missing = ends::missing_in(one.name, self);
            let lacks =
                missing.map_or_else(String::new, |language| format!("not in {}", language.facts().name));
            conditions.push(condition(format!("--code {}", self.code), &lacks, missing.is_none()));
            if self.senders > 1 {
                let promises = Promises::of(one.name);
                let takes_several = promises.is_some_and(|one| one.many_senders != Sharing::None);
                conditions.push(condition(
                    format!("--senders {}", self.senders),
                    "one sender",
                    takes_several,
                ));
            }
        } else if self.between() == Between::Processes {
            let has_name = one.capabilities.opens_by_name();
            conditions.push(condition("--between processes".to_owned(), "no name", has_name));
        }
        let does =
            |must: &Must| condition(format!("--must {must}"), &must.text().lacks, must.is_done_by(one));
        conditions.extend(self.must.iter().map(does));
        conditions
    }

    /// The mechanisms that are no candidates, and in a few words why.
    pub(super) fn losers(&self) -> Vec<(&'static str, String)> {
        let mut losers: Vec<_> = recommendable()
            .filter_map(|(_, one)| {
                Some((one.name, self.conditions(one).into_iter().find(|one| !one.holds)?.lacks))
            })
            .collect();
        losers.dedup();
        losers
    }

    /// The sentence that no mechanism fulfils all conditions.
    fn impossible(&self) -> String {
        let all: Vec<_> = recommendable().map(|(spec, one)| (spec.mechanism, self.conditions(one))).collect();
        let leaves = |at: usize| {
            let left = all.iter().filter(|(_, conditions)| conditions[at].holds);
            let mut names: Vec<&str> = left.map(|(name, _)| name.as_str()).collect();
            names.dedup();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("{} leaves {names}", all[0].1[at].option)
        };
        // What excludes nothing is not the reason.
        let excludes = |at: &usize| all.iter().any(|(_, conditions)| !conditions[*at].holds);
        let parts: Vec<String> = (0..all[0].1.len()).filter(excludes).map(leaves).collect();
        let instead = match self.must.contains(&Must::Boundaries) {
            true => ", or put what is missing on top (as a length before each message)",
            false => "",
        };
        format!("no mechanism does all of that: {}; ask for less{instead}", parts.join("; "))
    }
}

/// One condition of a question, and whether a mechanism fulfils it.
struct Condition {
    /// As it is typed.
    option: String,
    /// What a mechanism is called that does not fulfil it.
    lacks: String,
    holds: bool,
}

/// All mechanisms that can be recommended.
fn recommendable() -> impl Iterator<Item = (Spec, &'static Mechanism)> {
    SIMPLEST_FIRST.iter().filter_map(|text| {
        let spec: Spec = text.parse().ok()?;
        let (mechanism, _) = mechanism::resolve(&spec).ok()?;
        Some((spec, mechanism))
    })
}
