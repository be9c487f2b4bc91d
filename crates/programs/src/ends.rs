//! The two programs for a mechanism, a sender and a receiver, each in a language of its own: a frame for each language and end (arguments, the
//! clock, numbers and checks of messages) and a file for each mechanism, which has both ends of it.

use model::Spec;

use crate::languages::CodeLanguage;
use crate::program::{self, Program, RING_BYTES, Role, count_to_try, library, spins};
use crate::promises::{Promises, Sharing};
use crate::question::{Must, Pattern, Question, Share};
use crate::template::{Values, filled};

/// Messages that a pipe keeps whole (PIPE_BUF), in bytes.
const PIPE_BUF: u64 = 4096;

/// Mechanisms over which an end that waits does not see that the other one dies.
const UNNOTICED: [&str; 4] = ["posix-mq", "sysv-msgq", "unix-dgram", "file"];

fn template(name: &str, language: CodeLanguage) -> Option<&'static str> {
    program::template(&format!("ends/{name}"), language)
}

/// The file with a mechanism's code: sockets that differ in an address or a type are in one.
fn mechanism_template(mechanism: &str, language: CodeLanguage) -> Option<&'static str> {
    match mechanism {
        // Java's standard library has no such sockets.
        "unix-seqpacket" if language == CodeLanguage::Java => None,
        "unix-stream" | "unix-seqpacket" | "tcp" => template("socket", language),
        own => template(own, language),
    }
}

/// The language of a question without a program for a mechanism. Java cannot lock a folder, by which a receiver finds one of its own.
pub fn missing_in(mechanism: &str, question: &Question) -> Option<CodeLanguage> {
    let locks_folder = mechanism == "file" && question.share == Some(Share::Broadcast);
    question.code.both().into_iter().find(|language| {
        mechanism_template(mechanism, *language).is_none() || locks_folder && *language == CodeLanguage::Java
    })
}

/// The sender and the receiver; `None` where a language has no template for the mechanism.
pub(crate) fn pair(spec: &Spec, question: &Question) -> Option<[Program; 2]> {
    let [sends, receives] = question.code.both();
    let sender = program(spec, question, Role::Sender, sends)?;
    Some([sender, program(spec, question, Role::Receiver, receives)?])
}

fn program(spec: &Spec, question: &Question, role: Role, language: CodeLanguage) -> Option<Program> {
    let frame = template(if role == Role::Sender { "sender" } else { "receiver" }, language)?;
    // What both frames of a language need is in one file.
    let text = frame.replace("@@both\n", template("both", language).unwrap_or_default());
    let text = text.replace("@@mechanism\n", mechanism_template(&spec.mechanism, language)?);
    let mut program = Program { role, template: String::new(), language, library: library(spec, language) };
    program.template =
        filled(&text, &conditions(spec, question, role, language), &values(spec, question, &program));
    Some(program)
}

/// Whether each of several receivers has a link of its own.
pub(crate) fn has_links(spec: &Spec, question: &Question) -> bool {
    let is_dealt = Promises::of(&spec.mechanism).is_some_and(|one| one.many_receivers == Sharing::Dealt);
    question.receivers > 1 && (question.share == Some(Share::Broadcast) || is_dealt)
}

/// The conditions that are true.
fn conditions(spec: &Spec, question: &Question, role: Role, language: CodeLanguage) -> Vec<&'static str> {
    let is = |names: &[&str]| names.contains(&spec.mechanism.as_str());
    let is_reply = question.pattern == Pattern::RequestReply;
    let (is_receiver, polls) = (role == Role::Receiver, question.must.contains(&Must::Poll));
    let has_links = has_links(spec, question);
    let is_shared = question.receivers > 1 && !has_links;
    let is_unix = is(&["unix-stream", "unix-seqpacket", "unix-dgram"]);
    let is_broadcast = question.share == Some(Share::Broadcast);
    let is_connected = is(&["unix-stream", "unix-seqpacket", "tcp"]);
    // Names of sockets, which a signal must remove.
    let binds_link = is_unix && (is_receiver || is_reply && is(&["unix-dgram"]));
    let pairs = [
        (!is_receiver, "sender", "receiver"),
        (!is_reply, "stream", "reply"),
        (question.senders > 1, "manysenders", "onesender"),
        (question.receivers > 1, "manyreceivers", "onereceiver"),
        (question.share == Some(Share::Compete), "compete", "each"),
        (has_links, "links", "onelink"),
        (is_shared, "shared", "unshared"),
        (polls, "poll", "blocking"),
        // Whether several others use this end's FIFO: where none of them is there, none may have died.
        (is(&["fifo"]) && if is_receiver { question.senders > 1 } else { is_shared }, "manypeers", "onepeer"),
        // Pipes keep messages whole up to PIPE_BUF.
        (question.message_bytes > PIPE_BUF, "large", "whole"),
        (is(&UNNOTICED), "unnoticed", "noticed"),
        // Whether a message is written and checked where both ends reach it.
        (is(&["shm-ring"]) && !is_reply, "inplace", "copied"),
        // Whether NAME is a number.
        (is(&["tcp", "sysv-msgq"]), "numbered", "path"),
        // Whether the sender looks in long pauses if the receiver is there; a thread does so for rings in other languages.
        (
            is_connected
                || is(&["fifo", "unix-dgram"])
                || language == CodeLanguage::Rust && is(&["shm-ring"]),
            "watched",
            "unwatched",
        ),
        (binds_link || polls && is_receiver && !is(&["tcp"]), "binds", "unbound"),
    ];
    let alone = [
        (!is_receiver || is_reply, "sends"),
        (is_receiver || is_reply, "receives"),
        (is_broadcast, "broadcast"),
        // A timer interrupts calls that wait.
        (is_receiver || is_reply && is(&UNNOTICED), "ticks"),
        (is(&["unix-stream"]), "unixstream"),
        (is(&["unix-seqpacket"]), "seqpacket"),
        (is(&["tcp"]), "tcp"),
        (is(&["file"]), "file"),
        // Receivers that compete see the numbers of a sender rise.
        (!is(&["file"]), "ordered"),
        (is(&["unix-dgram"]), "dgram"),
        (is_unix, "unix"),
        (is_connected, "connected"),
        // It waits in poll(2) for one descriptor of the link.
        (polls && !(is_connected && question.senders > 1), "waits"),
        // It removes a queue or a folder that is empty.
        (if is_receiver { !is_shared } else { is_shared && question.senders == 1 }, "empties"),
        (if is_receiver { !is_shared } else { is_broadcast }, "locks"),
        // It asks how much is unread.
        (!is_receiver || !is_shared, "unread"),
    ];
    let one_of = pairs.into_iter().map(|(holds, yes, no)| if holds { yes } else { no });
    one_of.chain(alone.into_iter().filter_map(|(holds, name)| holds.then_some(name))).collect()
}

/// The COUNT to try, of a sender and of a receiver.
pub(crate) fn counts(spec: &Spec, question: &Question) -> [u64; 2] {
    let count = count_to_try(spec, question.code.is_slow(), question.rate_per_s);
    [count, question.receiver_count(count)]
}

/// Where the two ends meet if nothing else is typed.
pub(crate) fn meeting(spec: &Spec, question: &Question) -> &'static str {
    match spec.mechanism.as_str() {
        // The folder that two containers share is the one in which the programs are.
        "shm-ring" if !question.must.contains(&Must::Containers) => "/dev/shm/hosepipe-example",
        "shm-ring" | "unix-seqpacket" => "hosepipe-example",
        mechanism => program::meeting(mechanism),
    }
}

/// The marks in templates, and their values.
fn values(spec: &Spec, question: &Question, program: &Program) -> Values {
    let [sends, receives] = question.code.both();
    let other = match program.role {
        Role::Receiver => Role::Sender.file(sends),
        Role::Sender | Role::Both => Role::Receiver.file(receives),
    };
    let rate = question.sender_rate_per_s().unwrap_or_default();
    let (compile, run) = program.commands();
    let count = counts(spec, question)[usize::from(program.role == Role::Receiver)];
    let command = [compile, run].into_iter().filter(|words| !words.is_empty()).map(|words| words.join(" "));
    let command = format!("{} {count}", command.collect::<Vec<_>>().join(" && "));
    vec![
        (
            "{title}",
            format!(
                "{spec}: messages of {}, {}. The other end is {other}. Written by `hosepipe recommend`.",
                question.message_size(),
                question.pattern.way(),
            ),
        ),
        ("{bytes}", question.message_bytes.to_string()),
        ("{NAME}", meeting(spec, question).to_owned()),
        ("{senders}", question.senders.to_string()),
        ("{receivers}", question.receivers.to_string()),
        ("{rate}", rate.to_string()),
        ("{command}", command),
        ("{other}", other),
        ("{what}", question.pattern.unit().to_owned()),
        ("{capacity}", RING_BYTES.max(4 * question.message_bytes.next_power_of_two()).to_string()),
        ("{sleep}", if spins(spec) { "Spin" } else { "Futex" }.to_owned()),
        ("{SLEEP}", if spins(spec) { "SPIN" } else { "FUTEX" }.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use stats::Demand;
    use stats::choice::SIMPLEST_FIRST;

    use super::*;
    use crate::languages::Code;

    /// No condition and no mark of a template is left in a program, whatever is asked.
    #[test]
    fn every_program_of_two_is_filled_in() {
        let mut made = 0;
        for (spec, language) in
            SIMPLEST_FIRST.iter().flat_map(|spec| CodeLanguage::ALL.iter().map(move |one| (spec, *one)))
        {
            let spec: Spec = spec.parse().expect("a spec");
            let plain = Question {
                message_bytes: 200,
                pattern: Pattern::Stream,
                between: None,
                senders: 1,
                receivers: 1,
                share: None,
                rate_per_s: None,
                demand: Demand::default(),
                must: vec![],
                code: Code { sender: language, receiver: Some(language) },
            };
            let share =
                |senders, share| Question { senders, receivers: 4, share: Some(share), ..plain.clone() };
            for question in [
                plain.clone(),
                Question { pattern: Pattern::RequestReply, ..plain.clone() },
                Question { message_bytes: 6000, must: vec![Must::Poll], ..plain.clone() },
                Question { senders: 3, ..plain.clone() },
                share(1, Share::Compete),
                share(2, Share::Broadcast),
            ] {
                for program in pair(&spec, &question).into_iter().flatten() {
                    let text = program.text_beside_library();
                    let is_condition = |line: &&str| {
                        let word = line.strip_prefix('@').and_then(|line| line.split_once(' '));
                        word.is_some_and(|(word, _)| word.chars().all(|one| one.is_ascii_lowercase()))
                    };
                    assert_eq!(text.lines().find(is_condition), None, "{spec} in {language}");
                    let left = values(&spec, &question, &program);
                    let left = left.into_iter().find(|(mark, _)| text.contains(mark));
                    assert_eq!(left, None, "{spec} in {language}");
                    made += 1;
                }
            }
        }
        assert!(made > 300, "{made} programs");
    }
}
