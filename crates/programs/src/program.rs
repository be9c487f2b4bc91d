//! The program for a mechanism, made of templates in `templates/`: one frame for each language (starts the ends, reads the clock, checks
//! messages) and a small file for each mechanism (opens, sends, receives).
//!
//! `@@family` in a frame is replaced by the mechanism's files, `@library` by the ring's code; the rest is in `template.rs`.

use std::ffi::OsStr;
use std::path::Path;

use include_dir::{Dir, include_dir};
use model::Spec;

use crate::languages::CodeLanguage;
use crate::question::{Between, Pattern, Question};
use crate::template::{Values, filled, tidy};

/// A source file that users may copy: a part of the program, or a file beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    pub file: &'static str,
    pub text: &'static str,
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It starts both ends.
    Both,
    /// The end that sends, or the client.
    Sender,
    /// The end that receives, or the server.
    Receiver,
}

impl Role {
    /// The name of the file, without the extension. Java's is that of a class.
    pub(crate) fn stem(self, language: CodeLanguage) -> &'static str {
        match (self, language) {
            (Self::Both, _) => "example",
            (Self::Sender, CodeLanguage::Java) => "Sender",
            (Self::Receiver, CodeLanguage::Java) => "Receiver",
            (Self::Sender, _) => "sender",
            (Self::Receiver, _) => "receiver",
        }
    }

    pub fn file(self, language: CodeLanguage) -> String {
        format!("{}.{}", self.stem(language), language.facts().extension)
    }
}

/// The text of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub(crate) role: Role,
    pub(crate) template: String,
    pub(crate) language: CodeLanguage,
    pub library: Option<Library>,
}

/// The programs for a mechanism: one that starts both ends, or a sender and a receiver; `None` where a language has no template for it.
pub fn programs(spec: &Spec, question: &Question) -> Option<Vec<Program>> {
    if question.is_of_pair() {
        return crate::ends::pair(spec, question).map(Vec::from);
    }
    Some(vec![Program::new(spec, question.code.sender, question)?])
}

/// The ring library of `ring/` as one file, in the order of [`CodeLanguage`].
const RING: [Library; 3] = [
    Library { file: "ring.h", text: include_str!("../ring/ring.h") },
    Library {
        file: "ring.rs",
        text: concat!(
            "mod protocol {\n",
            include_str!("../ring/protocol.rs"),
            "}\nmod receiver {\n",
            include_str!("../ring/receiver.rs"),
            "}\nmod sender {\n",
            include_str!("../ring/sender.rs"),
            "}\npub mod linux {\n",
            include_str!("../ring/linux.rs"),
            "}\n\npub use protocol::*;\npub use receiver::*;\npub use sender::*;\n",
        ),
    },
    Library { file: "ring.py", text: include_str!("../ring/ring.py") },
];

const UNUSED: &str = "#[allow(dead_code)] // a program needs a part of it\n";

/// The templates: those of one program, and in the folder `ends` those of two.
static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// A template in a language; `None` where there is none.
pub(crate) fn template(name: &str, language: CodeLanguage) -> Option<&'static str> {
    TEMPLATES.get_file(format!("{name}.{language}"))?.contents_utf8()
}

/// The templates of a mechanism, one below the other.
fn family(mechanism: &str, language: CodeLanguage) -> Option<String> {
    let names: &[&str] = match mechanism {
        "pipe" | "fifo" | "socketpair" | "unix-stream" | "tcp" => &[mechanism, "bytes"],
        // Rust's standard library has a type for datagrams, and none for SOCK_SEQPACKET.
        "unix-seqpacket" if language != CodeLanguage::Rust => &["socketpair", "messages"],
        "unix-dgram" if language != CodeLanguage::Rust => &[mechanism, "messages"],
        _ => &[mechanism],
    };
    names.iter().map(|name| template(name, language)).collect()
}

/// The name or number by which the ends of one program find each other if nothing else is typed.
pub(crate) fn meeting(mechanism: &str) -> &'static str {
    match mechanism {
        "pipe" | "socketpair" | "unix-seqpacket" => "",
        "tcp" | "sysv-msgq" => "7077",
        "posix-mq" | "shm-ring" => "/hosepipe-example",
        _ => "hosepipe-example",
    }
}

/// Larger messages pass through a ring in several pieces, so that the copies at both ends overlap.
const PIECE_BYTES: u64 = 64 << 10;
/// Bytes of a ring: more than a core's L2 cache, from which the other core would have to fetch each line. (Half a MiB: 2 to 3 times as
/// long for 64 bytes.)
pub(crate) const RING_BYTES: u64 = 4 << 20;

impl Program {
    /// The program for a mechanism; `None` without a template.
    pub(crate) fn new(spec: &Spec, language: CodeLanguage, question: &Question) -> Option<Self> {
        let text = template("frame", language)?.replace("@@family\n", &family(&spec.mechanism, language)?);
        let values = values(spec, language, question);
        let template = filled(&text, &conditions(spec, question), &values);
        Some(Self { role: Role::Both, template, language, library: library(spec, language) })
    }

    /// The name of its file.
    pub fn file(&self) -> String {
        self.role.file(self.language)
    }

    /// The commands that compile its file, empty where none is needed, and that run it.
    pub(crate) fn commands(&self) -> (Vec<String>, Vec<String>) {
        self.language.commands(self.role.stem(self.language))
    }

    /// The whole program as one file, with its library inside.
    pub fn text(&self) -> String {
        let text = self.library.map_or("", |library| library.text);
        let within = match self.language {
            CodeLanguage::Rust => format!("{UNUSED}mod ring {{\n{}}}\n", indented(text)),
            // The names of a function are its own, as those of a module are.
            CodeLanguage::Python => format!(
                "import types\n\n\ndef ring():\n{}    return types.SimpleNamespace(**locals())\n\n\nring = ring()\n",
                indented(text)
            ),
            _ => text.to_owned(),
        };
        self.with_library(&within)
    }

    /// The program as a file that includes its library from another file.
    pub fn text_beside_library(&self) -> String {
        let rust = format!("{UNUSED}mod ring;\n");
        self.with_library(match self.language {
            CodeLanguage::Rust => &rust,
            CodeLanguage::Python => "import ring\n",
            _ => "#include \"ring.h\"\n",
        })
    }

    fn with_library(&self, library: &str) -> String {
        let whole = self.template.replace("@library\n", library);
        tidy(&whole, self.language)
    }

    /// The text to write to `path`: the commands in its first comment contain the name of that file.
    pub fn text_in(&self, path: &Path) -> String {
        let text = self.text_beside_library();
        let [Some(file), Some(stem)] =
            [path.file_name(), path.file_stem()].map(|name| name.and_then(OsStr::to_str))
        else {
            return text;
        };
        // The binary must not replace the source, and a shell must not split or expand the names.
        let is_plain =
            |name: &str| name.chars().all(|one| one.is_ascii_alphanumeric() || "._-".contains(one));
        if file == stem || !is_plain(file) || file.starts_with('-') {
            return text;
        }
        let text = text.replacen(&self.file(), file, 1);
        text.replacen("-o example ", &format!("-o {stem} "), 1).replacen(
            "./example ",
            &format!("./{stem} "),
            1,
        )
    }
}

/// The ring's code in a language.
pub(crate) fn library(spec: &Spec, language: CodeLanguage) -> Option<Library> {
    RING.get(language as usize).copied().filter(|_| spec.mechanism == "shm-ring")
}

/// The conditions that are true.
fn conditions(spec: &Spec, question: &Question) -> Vec<&'static str> {
    let mut conditions = vec![
        if question.between() == Between::Threads { "threads" } else { "fork" },
        if question.pattern == Pattern::Stream { "stream" } else { "reply" },
        if question.message_bytes > PIECE_BYTES { "pieces" } else { "whole" },
    ];
    conditions.extend(question.rate_per_s.map(|_| "paced"));
    conditions.extend(spec.options.contains_key("size").then_some("size"));
    conditions.extend(spins(spec).then_some("spin"));
    // The ends meet at a name that the program must remove.
    let is_named = match spec.mechanism.as_str() {
        "fifo" | "unix-stream" | "unix-dgram" | "file" | "posix-mq" | "sysv-msgq" => true,
        "shm-ring" => question.between() != Between::Threads,
        _ => false,
    };
    conditions.extend(is_named.then_some("named"));
    conditions
}

pub(crate) fn spins(spec: &Spec) -> bool {
    spec.options.get("wait").and_then(Option::as_deref) == Some("spin")
}

/// The marks in templates, and their values.
fn values(spec: &Spec, language: CodeLanguage, question: &Question) -> Values {
    const PAGE_BYTES: u64 = 4096;
    const LINE_BYTES: u64 = 64;
    let bytes = question.message_bytes;
    let is_stream = question.pattern == Pattern::Stream;
    let (first, second) = if is_stream { ("sender", "receiver") } else { ("client", "server") };
    let second_end = match question.between() {
        Between::Processes => "if it were a separate program, NAME would be its argument",
        Between::ParentChild | Between::Threads => "the other end",
    };
    let size = spec.options.get("size").cloned().flatten().and_then(|size| model::parse_size(&size).ok());
    let title = format!(
        "{spec}: messages of {}, {}, {}. Written by `hosepipe recommend`.",
        question.message_size(),
        question.pattern.way(),
        if question.between() == Between::ParentChild {
            "between parent and child".to_owned()
        } else {
            format!("between {}", question.between())
        }
    );
    let piece = bytes.min(PIECE_BYTES);
    let rate = question.rate_per_s;
    // A rate follows COUNT.
    let with_rate = |text: String| if rate.is_some() { text } else { String::new() };
    let what = question.pattern.unit();
    vec![
        ("{title}", title),
        ("{bytes}", bytes.to_string()),
        ("{align}", if bytes >= PIECE_BYTES { PAGE_BYTES } else { LINE_BYTES }.to_string()),
        ("{NAME}", meeting(&spec.mechanism).to_owned()),
        ("{FIRST}", first.to_uppercase()),
        ("{SECOND}", second.to_uppercase()),
        ("{first}", first.to_owned()),
        ("{second}", second.to_owned()),
        ("{second_end}", second_end.to_owned()),
        ("{what}", what.to_owned()),
        ("{count}", count_to_try(spec, language.facts().is_slow, rate).to_string()),
        ("{rate}", rate.map_or_else(String::new, |rate| rate.to_string())),
        (
            "{rate_argument}",
            with_rate(format!(", RATE ({what}s in a second, {} if not given)", rate.unwrap_or_default())),
        ),
        ("{rate_parameter}", with_rate(", rate: u64".to_owned())),
        ("{and_rate}", with_rate(", rate".to_owned())),
        ("{name_at}", if rate.is_some() { "3" } else { "2" }.to_owned()),
        (
            "{type}",
            if spec.mechanism == "unix-seqpacket" { "SOCK_SEQPACKET" } else { "SOCK_STREAM" }.to_owned(),
        ),
        ("{size}", size.map_or(0, |size| size.0).to_string()),
        ("{rings}", if is_stream { "1" } else { "2" }.to_owned()),
        ("{capacity}", RING_BYTES.to_string()),
        ("{piece}", piece.to_string()),
        ("{sleep}", if spins(spec) { "Spin" } else { "Futex" }.to_owned()),
        ("{SLEEP}", if spins(spec) { "SPIN" } else { "FUTEX" }.to_owned()),
    ]
}

/// The COUNT of the command in a program's first comment: at a rate a run of five seconds. Messages that are put on the disk take
/// milliseconds each.
pub(crate) fn count_to_try(spec: &Spec, is_slow: bool, rate: Option<u32>) -> u64 {
    let fast = match spec.mechanism.as_str() {
        "file" => 1_000,
        _ if is_slow => 100_000,
        _ => 1_000_000,
    };
    rate.map_or(fast, |rate| (5 * u64::from(rate)).min(fast))
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use stats::Demand;
    use stats::choice::SIMPLEST_FIRST;

    use super::*;
    use crate::languages::Code;

    #[test]
    fn every_spec_that_can_be_recommended_has_programs() {
        for (spec, language) in
            SIMPLEST_FIRST.iter().flat_map(|spec| CodeLanguage::ALL[..3].iter().map(move |l| (spec, l)))
        {
            let spec: Spec = spec.parse().expect("a spec");
            assert!(mechanism::resolve(&spec).is_ok(), "{spec}");
            for (pattern, between, rate_per_s) in [
                (Pattern::Stream, Between::Processes, None),
                (Pattern::RequestReply, Between::Threads, None),
                (Pattern::Stream, Between::Threads, Some(1000)),
                (Pattern::RequestReply, Between::Processes, Some(1000)),
            ] {
                let question = Question {
                    message_bytes: 200,
                    pattern,
                    between: Some(between),
                    senders: 1,
                    receivers: 1,
                    share: None,
                    rate_per_s,
                    demand: Demand::default(),
                    must: vec![],
                    code: Code { sender: *language, receiver: None },
                };
                let program = Program::new(&spec, *language, &question).expect("a template");
                let text = program.text();
                let own =
                    text.lines().count() - program.library.map_or(0, |library| library.text.lines().count());
                assert_eq!(text.contains("RATE"), rate_per_s.is_some(), "{spec} in {language}");
                assert!(own <= 180 && !text.contains(['@', '\t']), "{spec} in {language}:\n{text}");
                // The ring has braces of its own.
                let beside = program.text_beside_library();
                let mut values = values(&spec, *language, &question).into_iter();
                assert_eq!(values.find(|(mark, _)| beside.contains(mark)), None, "{spec} in {language}");
                assert_eq!(beside == text, program.library.is_none());
            }
        }
    }
}
