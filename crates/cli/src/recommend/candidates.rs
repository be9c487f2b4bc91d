//! The mechanisms that could be the answer, and why the others are not.

use std::collections::BTreeMap;
use std::fmt::Display;

use mechanism::Mechanism;
use model::Spec;
use programs::{Between, Must, Pattern, Promises, Question, Sharing, missing_in};
use stats::choice::SIMPLEST_FIRST;

/// Mechanisms with which each sender has an end of its own, so that a reply comes to the sender of the request.
const REPLIES_TO_EACH: [&str; 3] = ["unix-stream", "unix-dgram", "tcp"];

/// A mechanism that could be the answer.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) spec: Spec,
    /// Why this machine does not have it.
    pub(super) missing: Option<String>,
    /// Why it is no answer to this question on any machine.
    pub(super) unfit: Option<String>,
}

impl Candidate {
    /// "`fifo` is left out: …", if it is no answer on any machine.
    pub(super) fn left_out(&self) -> Option<String> {
        self.unfit.as_ref().map(|why| format!("`{}` is left out: {why}", self.spec))
    }
}

/// The mechanisms that fulfil every condition of the question, also those that this machine does not have.
///
/// # Errors
/// None fulfils all of them: a sentence that says which mechanisms fulfil each.
pub(super) fn candidates(question: &Question) -> Result<Vec<Candidate>, String> {
    let fulfils_all = |mechanism: &Mechanism| conditions(question, mechanism).iter().all(|one| one.holds);
    let candidates: Vec<Candidate> = recommendable()
        .filter(|(_, mechanism)| fulfils_all(mechanism))
        .map(|(spec, mechanism)| Candidate {
            spec,
            missing: mechanism.probe().err().map(|why| why.to_string()),
            unfit: unfit(question, mechanism),
        })
        .collect();
    if candidates.is_empty() {
        return Err(impossible(question));
    }
    let unfit: Vec<String> = candidates.iter().filter_map(Candidate::left_out).collect();
    if unfit.len() == candidates.len() {
        return Err(format!("no mechanism does all of that: {}", unfit.join("; ")));
    }
    Ok(candidates)
}

/// Why a mechanism that fulfils each condition does not fulfil all of them together.
fn unfit(question: &Question, mechanism: &Mechanism) -> Option<String> {
    if let Some(promises) = Promises::of(mechanism.name).filter(|_| question.is_of_pair()) {
        return torn(question, promises);
    }
    if !question.must.contains(&Must::ManySenders) {
        return None;
    }
    let (atomic, message) = (mechanism.atomic_bytes, question.message_bytes);
    match question.pattern {
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

/// Why messages of two programs would be mixed or cut with a mechanism between them.
fn torn(question: &Question, promises: &Promises) -> Option<String> {
    let is_shared = question.shares(promises);
    let why = match question.must.iter().find(|must| must.is_of_crash()) {
        Some(_) => "cut in two when an end dies",
        None if is_shared => "mixed where several ends share it",
        None => return None,
    };
    let most = promises.atomic_bytes.filter(|most| question.message_bytes > *most)?;
    Some(format!("messages of more than {most} bytes are {why}"))
}

/// The options of the question, and whether a mechanism fulfils each.
fn conditions(question: &Question, one: &Mechanism) -> Vec<Condition> {
    let (workload, tasks) = (question.pattern.workload(), question.between().tasks());
    let has_pattern = one.workloads.contains(&workload) && one.tasks.contains(&tasks);
    let condition = |option: String, lacks: &str, holds| Condition { option, lacks: lacks.to_owned(), holds };
    let pattern = format!("--pattern {} between {}", question.pattern, question.between());
    let mut conditions = vec![condition(pattern, "not between such ends", has_pattern)];
    if question.is_of_pair() {
        let meets = Promises::of(one.name).is_some();
        conditions.push(condition("--between processes".to_owned(), "no name", meets));
        let missing = missing_in(one.name, question);
        let lacks = missing.map_or_else(String::new, |language| format!("not in {}", language.facts().name));
        conditions.push(condition(format!("--code {}", question.code), &lacks, missing.is_none()));
        if question.senders > 1 {
            let promises = Promises::of(one.name);
            let takes_several = promises.is_some_and(|one| one.many_senders != Sharing::None);
            conditions.push(condition(
                format!("--senders {}", question.senders),
                "one sender",
                takes_several,
            ));
        }
    } else if question.between() == Between::Processes {
        let has_name = one.capabilities.opens_by_name();
        conditions.push(condition("--between processes".to_owned(), "no name", has_name));
    }
    let is_of_pair = question.is_of_pair();
    let does = |must: &Must| {
        condition(format!("--must {must}"), &must.text().lacks, must.is_done_by(one, is_of_pair))
    };
    conditions.extend(question.must.iter().map(does));
    conditions
}

/// Mechanisms that are no candidates, and in a few words why: "`tcp` (not in containers); `file`, `sysv-msgq` (no poll)".
pub(super) fn losers(question: &Question, is_meant: impl Fn(&str) -> bool) -> Option<String> {
    let mut losers: Vec<(&str, String)> = recommendable()
        .filter(|(_, one)| is_meant(one.name))
        .filter_map(|(_, one)| {
            Some((one.name, conditions(question, one).into_iter().find(|one| !one.holds)?.lacks))
        })
        .collect();
    losers.dedup();
    let groups = by_reason(losers.iter().map(|(name, why)| (why, name)));
    let parts = groups.iter().map(|(why, names)| format!("{} ({why})", names.join(", ")));
    (!losers.is_empty()).then(|| parts.collect::<Vec<_>>().join("; "))
}

/// The names of each reason.
pub(super) fn by_reason<'r, N: Display>(
    pairs: impl Iterator<Item = (&'r String, N)>,
) -> BTreeMap<&'r String, Vec<String>> {
    let mut groups: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (why, name) in pairs {
        groups.entry(why).or_default().push(format!("`{name}`"));
    }
    groups
}

/// The sentence that no mechanism fulfils all conditions.
fn impossible(question: &Question) -> String {
    let all: Vec<_> =
        recommendable().map(|(spec, one)| (spec.mechanism, conditions(question, one))).collect();
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
    let instead = match question.must.contains(&Must::Boundaries) {
        true => ", or put what is missing on top (as a length before each message)",
        false => "",
    };
    format!("no mechanism does all of that: {}; ask for less{instead}", parts.join("; "))
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
