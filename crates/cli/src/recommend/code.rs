//! Twenty lines or a few more that set a mechanism up: a template for each family and language, in `code/`. Each makes both ends, sends
//! one message, receives it and checks it; a test compiles and runs all of them.

use model::Spec;

model::words! {
    /// The languages that there are templates in.
    pub enum CodeLanguage {
        /// For cc(1).
        C = "c",
        /// For rustc, with nothing but the standard library.
        Rust = "rust",
        /// For Python 3, with nothing but the standard library.
        Python = "python",
    }
}

/// A mechanism and its templates, in the order of the languages.
type Family = (&'static str, [&'static str; 3]);

macro_rules! family {
    ($name:literal) => {
        family!($name, $name)
    };
    ($name:literal, $template:literal) => {
        (
            $name,
            [
                include_str!(concat!("code/", $template, ".c")),
                include_str!(concat!("code/", $template, ".rust")),
                include_str!(concat!("code/", $template, ".python")),
            ],
        )
    };
}

const FAMILIES: &[Family] = &[
    family!("pipe"),
    family!("fifo"),
    family!("socketpair"),
    family!("unix-stream"),
    family!("unix-seqpacket", "socketpair"),
    family!("unix-dgram"),
    family!("tcp"),
    family!("file"),
    family!("posix-mq"),
    family!("sysv-msgq"),
    family!("shm-ring"),
];

/// Lines of a template that begin with one of these are there for some specs only.
const MARKS: [&str; 3] = ["@size", "@futex", "@spin"];

/// The program for a spec and messages of so many bytes; `None` where there is no template.
pub(super) fn program(spec: &Spec, language: CodeLanguage, message_bytes: u64) -> Option<String> {
    let at = CodeLanguage::ALL.iter().position(|one| *one == language)?;
    let template = FAMILIES.iter().find(|(name, _)| *name == spec.mechanism)?.1[at];
    let option = |name: &str| spec.options.get(name).and_then(Option::as_deref);
    let is_meant = |mark: &str| match mark {
        "@size" => option("size").is_some(),
        "@spin" => option("wait") == Some("spin"),
        _ => option("wait") != Some("spin"),
    };
    let line =
        |line: &'static str| match MARKS.iter().find_map(|mark| Some((mark, line.strip_prefix(*mark)?))) {
            Some((mark, rest)) => is_meant(mark).then_some(rest),
            None => Some(line),
        };
    let text: String = template.lines().filter_map(line).flat_map(|line| [line, "\n"]).collect();
    let size = option("size").and_then(|size| model::parse_size(size).ok()).map_or(0, |size| size.0);
    let (kind, number) =
        if spec.mechanism == "unix-seqpacket" { ("SOCK_SEQPACKET", "5") } else { ("SOCK_STREAM", "1") };
    let filled = text.replace("{bytes}", &message_bytes.to_string()).replace("{size}", &size.to_string());
    Some(filled.replace("{type}", kind).replace("{number}", number))
}
