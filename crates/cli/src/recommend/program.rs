//! The program for a mechanism, made of templates in `programs/`: one frame for each language (starts the ends, reads the clock, checks
//! messages) and a small file for each mechanism (opens, sends, receives).
//!
//! A line of a template that begins with conditions such as `@reply` is left out unless all of them are true. Lines that include
//! headers or modules are sorted and moved to the place of the first of them. `@@family` is replaced by the mechanism's files, `@library`
//! by the ring's code, and `{bytes}` and similar names by values.

use std::ffi::OsStr;
use std::path::Path;

use model::Spec;

use super::question::{Between, Pattern, Question};

model::words! {
    /// The languages of the templates.
    pub enum CodeLanguage {
        /// For cc(1).
        C = "c",
        /// For rustc, with the standard library only.
        Rust = "rust",
        /// For Python 3, with the standard library only.
        Python = "python",
    }
}

/// A source file that users may copy: a part of the program, or a file beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Library {
    pub(super) file: &'static str,
    pub(super) text: &'static str,
}

/// The text of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    template: String,
    pub(super) language: CodeLanguage,
    pub(super) library: Option<Library>,
}

/// The ring library of `ring/` as one file, in the order of [`CodeLanguage`].
const RING: [Library; 3] = [
    Library { file: "ring.h", text: include_str!("../../../../ring/c/ring.h") },
    Library {
        file: "ring.rs",
        text: concat!(
            include_str!("../../../../ring/rust/src/protocol.rs"),
            "\npub mod linux {\n",
            include_str!("../../../../ring/rust/src/linux.rs"),
            "}\n"
        ),
    },
    Library { file: "ring.py", text: include_str!("../../../../ring/python/ring.py") },
];

const UNUSED: &str = "#[allow(dead_code)] // a program needs a part of it\n";

/// A piece of a program in each language, in the order of [`CodeLanguage`].
type Piece = [&'static str; 3];

macro_rules! piece {
    ($name:literal) => {
        [
            include_str!(concat!("programs/", $name, ".c")),
            include_str!(concat!("programs/", $name, ".rust")),
            include_str!(concat!("programs/", $name, ".python")),
        ]
    };
}

const FRAME: Piece = piece!("frame");
const BYTES: Piece = piece!("bytes");
/// Rust's standard library has a type for datagrams, and none for SOCK_SEQPACKET.
const MESSAGES: Piece = [include_str!("programs/messages.c"), "", include_str!("programs/messages.python")];
const SEQPACKET: Piece = [
    include_str!("programs/socketpair.c"),
    include_str!("programs/unix-seqpacket.rust"),
    include_str!("programs/socketpair.python"),
];

/// Each mechanism, the default name or number by which its ends find each other, and its pieces.
const FAMILIES: &[(&str, &str, &[Piece])] = &[
    ("pipe", "", &[piece!("pipe"), BYTES]),
    ("fifo", "hosepipe-example", &[piece!("fifo"), BYTES]),
    ("socketpair", "", &[piece!("socketpair"), BYTES]),
    ("unix-stream", "hosepipe-example", &[piece!("unix-stream"), BYTES]),
    ("unix-seqpacket", "", &[SEQPACKET, MESSAGES]),
    ("unix-dgram", "hosepipe-example", &[piece!("unix-dgram"), MESSAGES]),
    ("tcp", "7077", &[piece!("tcp"), BYTES]),
    ("file", "hosepipe-example", &[piece!("file")]),
    ("posix-mq", "/hosepipe-example", &[piece!("posix-mq")]),
    ("sysv-msgq", "7077", &[piece!("sysv-msgq")]),
    ("shm-ring", "/hosepipe-example", &[piece!("shm-ring")]),
];

/// Larger messages pass through a ring in several pieces, so that the copies at both ends overlap.
const PIECE_BYTES: u64 = 64 << 10;
/// Bytes of a ring: small enough for a core's L2 cache.
const RING_BYTES: u64 = 512 << 10;

/// What languages differ in.
pub(super) struct LanguageFacts {
    /// Its name in sentences.
    pub(super) name: &'static str,
    pub(super) extension: &'static str,
    /// How the lines begin that include headers or modules.
    imports: &'static [&'static str],
}

/// In the order of [`CodeLanguage`].
const LANGUAGES: [LanguageFacts; 3] = [
    LanguageFacts { name: "C", extension: "c", imports: &["#include "] },
    LanguageFacts { name: "Rust", extension: "rs", imports: &["use "] },
    LanguageFacts { name: "Python", extension: "py", imports: &["import ", "from "] },
];

impl CodeLanguage {
    pub(super) fn facts(self) -> &'static LanguageFacts {
        &LANGUAGES[self as usize]
    }

    /// The commands that compile `source` to `binary`, empty for Python, and that run it.
    pub(super) fn commands<'n>(self, source: &'n str, binary: &'n str) -> (Vec<&'n str>, Vec<&'n str>) {
        match self {
            Self::C => (vec!["cc", "-O2", "-pthread", "-o", binary, source, "-lrt"], vec![binary]),
            Self::Rust => (vec!["rustc", "-O", "--edition", "2021", "-o", binary, source], vec![binary]),
            Self::Python => (Vec::new(), vec!["python3", source]),
        }
    }
}

impl Program {
    /// The program for a mechanism; `None` without a template.
    pub(super) fn new(spec: &Spec, language: CodeLanguage, question: &Question) -> Option<Self> {
        let at = language as usize;
        let (_, name, pieces) = FAMILIES.iter().find(|(family, ..)| *family == spec.mechanism)?;
        let family: String = pieces.iter().map(|piece| piece[at]).collect();
        let text = FRAME[at].replace("@@family\n", &family);
        let conditions = conditions(spec, question);
        let lines = text.lines().filter_map(|line| without_conditions(line, &conditions));
        let values = values(spec, language, name, question);
        let fill =
            |line: &str| values.iter().fold(line.to_owned(), |line, (mark, value)| line.replace(mark, value));
        let template = lines.flat_map(|line| [fill(line), "\n".to_owned()]).collect();
        let library = (spec.mechanism == "shm-ring").then(|| RING[at]);
        Some(Self { template, language, library })
    }

    /// The whole program as one file, with its library inside.
    pub(super) fn text(&self) -> String {
        let text = self.library.map_or("", |library| library.text);
        let within = match self.language {
            CodeLanguage::Rust => format!("{UNUSED}mod ring {{\n{}}}\n", indented(text)),
            // The names of a function are its own, as those of a module are.
            CodeLanguage::Python => format!(
                "import types\n\n\ndef ring():\n{}    return types.SimpleNamespace(**locals())\n\n\nring = ring()\n",
                indented(text)
            ),
            CodeLanguage::C => text.to_owned(),
        };
        self.with_library(&within)
    }

    /// The program as a file that includes its library from another file.
    pub(super) fn text_beside_library(&self) -> String {
        let rust = format!("{UNUSED}mod ring;\n");
        self.with_library(match self.language {
            CodeLanguage::Rust => &rust,
            CodeLanguage::Python => "import ring\n",
            CodeLanguage::C => "#include \"ring.h\"\n",
        })
    }

    fn with_library(&self, library: &str) -> String {
        let whole = self.template.replace("@library\n", library);
        // The ring's header stays in its place, because macros before it configure it.
        let imports = self.language.facts().imports;
        let is_import = |line: &str| {
            imports.iter().any(|import| line.starts_with(import)) && !line.ends_with("\"ring.h\"")
        };
        let mut imported: Vec<&str> = whole.lines().filter(|line| is_import(line)).collect();
        imported.sort_unstable();
        imported.dedup();
        let blank_max = if self.language == CodeLanguage::Python { 2 } else { 1 };
        let (mut text, mut blank) = (String::new(), 0);
        let mut add = |line: &str| {
            blank = if line.is_empty() { blank + 1 } else { 0 };
            if blank <= blank_max {
                text.extend([line, "\n"]);
            }
        };
        for line in whole.lines() {
            match is_import(line) {
                true => imported.drain(..).for_each(&mut add),
                false => add(line),
            }
        }
        text
    }

    /// The text to write to `path`: the commands in its first comment contain the name of that file.
    pub(super) fn text_in(&self, path: &Path) -> String {
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
        let text = text.replacen(&format!("example.{}", self.language.facts().extension), file, 1);
        text.replacen("-o example ", &format!("-o {stem} "), 1).replacen(
            "./example ",
            &format!("./{stem} "),
            1,
        )
    }
}

/// A line of a template without its conditions; `None` if one of them is false.
fn without_conditions<'t>(mut line: &'t str, conditions: &[&str]) -> Option<&'t str> {
    while let Some((condition, rest)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
        line = conditions.contains(&condition).then_some(rest)?;
    }
    Some(line)
}

/// The conditions that are true.
fn conditions(spec: &Spec, question: &Question) -> Vec<&'static str> {
    let mut conditions = vec![
        if question.between == Between::Threads { "threads" } else { "fork" },
        if question.pattern == Pattern::Stream { "stream" } else { "reply" },
        if question.message.0 > PIECE_BYTES { "pieces" } else { "whole" },
    ];
    conditions.extend(question.rate_per_s().map(|_| "paced"));
    conditions.extend(spec.options.contains_key("size").then_some("size"));
    conditions.extend(spins(spec).then_some("spin"));
    // The ends meet at a name that the program must remove.
    let is_named = match spec.mechanism.as_str() {
        "fifo" | "unix-stream" | "unix-dgram" | "file" | "posix-mq" | "sysv-msgq" => true,
        "shm-ring" => question.between != Between::Threads,
        _ => false,
    };
    conditions.extend(is_named.then_some("named"));
    conditions
}

fn spins(spec: &Spec) -> bool {
    spec.options.get("wait").and_then(Option::as_deref) == Some("spin")
}

/// The marks in templates, and their values.
fn values(
    spec: &Spec,
    language: CodeLanguage,
    name: &str,
    question: &Question,
) -> Vec<(&'static str, String)> {
    const PAGE_BYTES: u64 = 4096;
    const LINE_BYTES: u64 = 64;
    let bytes = question.message.0;
    let is_stream = question.pattern == Pattern::Stream;
    let (first, second) = if is_stream { ("sender", "receiver") } else { ("client", "server") };
    let way = if is_stream { "one way" } else { "there and back" };
    let second_end = match question.between {
        Between::Processes => "if it were a separate program, NAME would be its argument",
        Between::ParentChild | Between::Threads => "the other end",
    };
    let size = spec.options.get("size").cloned().flatten().and_then(|size| model::parse_size(&size).ok());
    let title = format!(
        "{spec}: messages of {}, {way}, {}. Written by `hosepipe recommend`.",
        report::words::count(bytes as usize, "byte"),
        if question.between == Between::ParentChild {
            "between parent and child".to_owned()
        } else {
            format!("between {}", question.between)
        }
    );
    let piece = bytes.min(PIECE_BYTES);
    let rate = question.rate_per_s();
    // A rate follows COUNT.
    let with_rate = |text: String| if rate.is_some() { text } else { String::new() };
    let what = if is_stream { "message" } else { "round trip" };
    vec![
        ("{title}", title),
        ("{bytes}", bytes.to_string()),
        ("{align}", if bytes >= PIECE_BYTES { PAGE_BYTES } else { LINE_BYTES }.to_string()),
        ("{NAME}", name.to_owned()),
        ("{FIRST}", first.to_uppercase()),
        ("{SECOND}", second.to_uppercase()),
        ("{first}", first.to_owned()),
        ("{second}", second.to_owned()),
        ("{second_end}", second_end.to_owned()),
        ("{what}", what.to_owned()),
        ("{count}", count_to_try(language, rate).to_string()),
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

/// The COUNT of the command in a program's first comment: at a rate a run of five seconds.
fn count_to_try(language: CodeLanguage, rate: Option<u32>) -> u64 {
    let fast = if language == CodeLanguage::Python { 100_000 } else { 1_000_000 };
    rate.map_or(fast, |rate| (5 * u64::from(rate)).min(fast))
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use model::ByteSize;
    use stats::choice::SIMPLEST_FIRST;

    use super::*;

    #[test]
    fn every_spec_that_can_be_recommended_has_programs() {
        for (spec, language) in
            SIMPLEST_FIRST.iter().flat_map(|spec| CodeLanguage::ALL.iter().map(move |l| (spec, l)))
        {
            let spec: Spec = spec.parse().expect("a spec");
            assert!(mechanism::resolve(&spec).is_ok(), "{spec}");
            for (pattern, between, messages_per_second) in [
                (Pattern::Stream, Between::Processes, None),
                (Pattern::RequestReply, Between::Threads, None),
                (Pattern::Stream, Between::Threads, Some(1000.0)),
                (Pattern::RequestReply, Between::Processes, Some(1000.0)),
            ] {
                let question = Question {
                    message: ByteSize(200),
                    pattern,
                    between,
                    messages_per_second,
                    cpu_budget: None,
                    must: vec![],
                };
                let program = Program::new(&spec, *language, &question).expect("a template");
                let text = program.text();
                let own =
                    text.lines().count() - program.library.map_or(0, |library| library.text.lines().count());
                assert_eq!(text.contains("RATE"), messages_per_second.is_some(), "{spec} in {language}");
                assert!(own <= 180 && !text.contains(['@', '\t']), "{spec} in {language}:\n{text}");
                let left =
                    values(&spec, *language, "", &question).into_iter().find(|(mark, _)| text.contains(mark));
                assert_eq!(left, None, "{spec} in {language}");
                assert_eq!(program.text_beside_library() == text, program.library.is_none());
            }
        }
    }
}
