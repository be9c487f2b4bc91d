//! The links, and the only differences from a pipe that each may show. docs/LINKS.md has the same tables, and a
//! test holds the two together.

use super::case::{Case, Seen};

/// A link as given to `--via`.
pub(crate) struct Link {
    pub(crate) spec: &'static str,
    /// What is between the writer and the reader.
    pub(crate) between: &'static str,
    /// Whether a relay is part of that.
    pub(crate) relay: bool,
}

const fn link(spec: &'static str, between: &'static str, relay: bool) -> Link {
    Link { spec, between, relay }
}

/// What the pipelines are run over; the first is the one that is used where nothing is said.
pub(crate) const LINKS: &[Link] = &[
    link("pipe", "a pipe, as large as the system grants", false),
    link("fifo", "a FIFO, its name removed once both ends are open", false),
    link("socketpair", "a pair of AF_UNIX stream sockets", false),
    link("unix-stream", "a connection over an AF_UNIX name, removed once it is connected", false),
    link("tcp", "a connection over the loopback interface", false),
    link("tmpfile", "a pipe, a relay into a file without a name and out of it, a pipe", true),
    link("file", "a pipe, a relay into a file with a name and out of it, a pipe", true),
    link("file:sync", "the same, every write into the file waits for the storage", true),
    link("pty", "a pipe, a relay, a terminal in raw mode, a relay, a pipe", true),
    link(
        "tmpfile:order=sequential",
        "a file without a name; the reader starts when the writers are done",
        false,
    ),
    link("file:order=sequential", "a file with a name; the reader starts when the writers are done", false),
    link("pipe:size=4096", "a pipe of one page", false),
    link("socketpair:ends=pipe", "a pipe, a relay, a pair of AF_UNIX stream sockets, a relay, a pipe", true),
];

/// A status that a shell shows for a program that SIGPIPE ended.
pub(crate) const BY_SIGPIPE: i32 = 141;

/// What may be different.
pub(crate) enum Effect {
    /// Programs can see that the link is no pipe, and act upon it: they must do what they do elsewhere on such a
    /// descriptor.
    Sees(Seen),
    /// A writer that lost its reader ends with one of these instead of with SIGPIPE.
    WriterEnds(&'static [i32]),
    /// A program that opens its end again may wait for ever.
    Waits,
    /// What was written before a program opened its end again may be lost.
    Cuts,
}

/// A difference between links and a pipe.
pub(crate) struct Difference {
    pub(crate) links: &'static [&'static str],
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
    pub(crate) effect: Effect,
}

const SOCKETS: &[&str] = &["socketpair", "unix-stream", "tcp"];
const SEQUENTIAL: &[&str] = &["tmpfile:order=sequential", "file:order=sequential"];

/// All that may be different.
pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        links: &["fifo"],
        what: "a reader that opens `/dev/stdin` or `/dev/fd/0` when its writer has gone waits for ever; so does a writer \
               that opens `/dev/stdout` when its reader has gone",
        why: "open(2) of a FIFO waits for the other side, and of a pipe it does not",
        effect: Effect::Waits,
    },
    Difference {
        links: SOCKETS,
        what: "a reader that opens `/dev/stdin` or `/dev/fd/0` is refused (ENXIO); one that checks whether it reads from a pipe \
               finds that it does not: `[ -p /dev/stdin ] && cat || echo usage` loses the data",
        why: "open(2) does not open sockets, whatever name leads to them; a socket is no pipe",
        effect: Effect::Sees(Seen::SocketIn),
    },
    Difference {
        links: SOCKETS,
        what: "a writer that opens `/dev/stdout` or `/dev/fd/1` is refused (ENXIO)",
        why: "the same",
        effect: Effect::Sees(Seen::SocketOut),
    },
    Difference {
        links: &["socketpair", "unix-stream"],
        what: "a writer that lost its reader may say `Connection reset by peer` and end with 1 (or what else it has for a \
               write error: awk 2, sed 4) instead of 141",
        why: "a reader that closes with bytes unread resets the connection: the next write says ECONNRESET, only \
              those after it raise SIGPIPE",
        effect: Effect::WriterEnds(&[1, 2, 4]),
    },
    Difference {
        links: SEQUENTIAL,
        what: "what a program leaves unread is there for the next reader of the same input: \
               `seq 5 | { head -n1; cat; }` writes all five lines; \
               `wc` makes its columns as wide as the file's size asks for",
        why: "a file can be sought in, and `head` sets the position back to behind what it used; \
              it has a size, and `wc` asks",
        effect: Effect::Sees(Seen::FileIn),
    },
    Difference {
        links: SEQUENTIAL,
        what: "a writer never loses its reader: it ends by itself with 0, and one without end (`yes | head -n1`) \
               ends at the limit for file sizes (153, SIGXFSZ) or when the storage is full (1)",
        why: "the reader starts when the writer has ended",
        effect: Effect::WriterEnds(&[0, 1, 153]),
    },
    Difference {
        links: SEQUENTIAL,
        what: "a writer that opens `/dev/stdout` again to write (`>`, not `>>`) cuts off what was written before it",
        why: "O_TRUNC empties a file, and does nothing to a pipe",
        effect: Effect::Cuts,
    },
];

fn differences(spec: &str) -> impl Iterator<Item = &'static Difference> {
    DIFFERENCES.iter().filter(move |difference| difference.links.contains(&spec))
}

/// What programs on such a link can see.
pub(crate) fn seen_on(spec: &str) -> Vec<Seen> {
    let sees = |difference: &Difference| match difference.effect {
        Effect::Sees(seen) => Some(seen),
        _ => None,
    };
    differences(spec).filter_map(sees).collect()
}

/// What may stand for a status of 141 in this case on this link.
pub(crate) fn instead_of_sigpipe(spec: &str, case: &Case) -> &'static [i32] {
    if !case.early_exit() {
        return &[];
    }
    let ends = |difference: &'static Difference| match difference.effect {
        Effect::WriterEnds(statuses) => Some(statuses),
        _ => None,
    };
    differences(spec).find_map(ends).unwrap_or(&[])
}

/// Whether this case may wait for ever on this link.
pub(crate) fn may_wait(spec: &str, case: &Case) -> bool {
    case.reopens() && has(spec, |effect| matches!(effect, Effect::Waits))
}

fn has(spec: &str, is: impl Fn(&Effect) -> bool) -> bool {
    differences(spec).any(|difference| is(&difference.effect))
}

/// Whether what this case writes on this link may be cut.
pub(crate) fn may_be_cut(spec: &str, case: &Case) -> bool {
    case.cuts() && has(spec, |effect| matches!(effect, Effect::Cuts))
}

/// Whether a writer without end must be given a limit for file sizes: nothing else ends it there.
pub(crate) fn needs_file_limit(spec: &str, case: &Case) -> bool {
    case.infinite() && SEQUENTIAL.contains(&spec)
}

/// The tables of docs/LINKS.md.
pub(crate) fn tables() -> String {
    let mut page = String::from("| link | between the writer and the reader | relay |\n|---|---|---|\n");
    for Link { spec, between, relay } in LINKS {
        let relay = if *relay { "yes" } else { "no" };
        page.push_str(&format!("| `{spec}` | {between} | {relay} |\n"));
    }
    page.push_str("\n| on | what may differ from a pipe | why |\n|---|---|---|\n");
    for Difference { links, what, why, .. } in DIFFERENCES {
        let links = links.iter().map(|link| format!("`{link}`")).collect::<Vec<_>>().join(", ");
        // A bar would end the cell.
        let what = what.replace('|', "\\|");
        page.push_str(&format!("| {links} | {what} | {why} |\n"));
    }
    page
}
