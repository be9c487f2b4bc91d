//! The glossary of an HTML page: each technical word of the page, explained once.

/// The commands whose pages explain a word.
type Commands = &'static [&'static str];
const BENCH: Commands = &["bench", "reproduce", "fleet"];
const TRIALS: Commands = &["bench", "reproduce", "fleet", "compare", "diff"];
const RUN: Commands = &["run", "top", "reproduce"];

/// A word, the name its explanation has in links, the pages that have it, and the explanation.
pub(super) const WORDS: &[(&str, &str, Commands, &str)] = &[
    (
        "mechanism",
        "word-mechanism",
        BENCH,
        "One way of moving bytes between two tasks, with its options where it has any: pipe:size=1MiB.",
    ),
    (
        "block",
        "word-block",
        BENCH,
        "The bytes handed over in one call; a message, where the mechanism keeps boundaries.",
    ),
    (
        "stream",
        "word-stream",
        BENCH,
        "One way, as fast as it goes. The clock runs from a barrier at which both ends start until the receiver has the last byte.",
    ),
    (
        "round trip",
        "word-round-trip",
        BENCH,
        "There and back; each one is timed, and all of them are kept in a histogram.",
    ),
    (
        "data level",
        "word-data",
        BENCH,
        "What the ends do with the payload: nothing (none), the sender produces every byte (write), and the receiver checks every byte (verify). Levels are never ranked in one list: a page passed by reference is not a byte moved.",
    ),
    (
        "95 % interval",
        "word-interval",
        TRIALS,
        "The range in which the median is expected (95 %). It is made from the ordered trials and assumes no \
            normal distribution; with fewer than six trials it is the whole range.",
    ),
    (
        "trial, n",
        "word-trial",
        TRIALS,
        "One timed run of a case. The trials of all cases take turns in a random order, after a warm-up; none is dropped, outliers are counted and shown.",
    ),
    (
        "ceiling and floor",
        "word-ceiling",
        BENCH,
        "What bounds the figures, measured in the same run: a copy in memory above, the harness that moves nothing below. A row above the ceiling says why.",
    ),
    (
        "±, a–b",
        "word-spread",
        TRIALS,
        "±12 % behind a median: its 95 % interval reaches 12 % of the median away, on its longer side. 3.0–5.7: the scheduler used one CPU in some trials and two in others; these are the medians of both kinds.",
    ),
    (
        "bound by",
        "word-bound",
        BENCH,
        "What holds a stream back, read from its CPU times, switches and system calls. Where the evidence does not decide, nothing is said.",
    ),
    (
        "granted",
        "word-granted",
        &["bench", "reproduce", "fleet", "run"],
        "Sizes the system really gave: pipes round up, queues clamp, and past pipe-user-pages-soft a new pipe has two pages.",
    ),
    (
        "waits to read, waits to write",
        "word-waits",
        RUN,
        "Time a stage of a pipeline slept for input, or for another stage to take its output. Sampled every few milliseconds.",
    ),
    (
        "stage that holds the pipeline up",
        "word-bottleneck",
        RUN,
        "The stage that everybody else waited for: making it faster makes the whole faster.",
    ),
    (
        "waits for a CPU",
        "word-queued",
        RUN,
        "Time a stage was ready to run while every CPU was taken by others (/proc/PID/schedstat).",
    ),
    (
        "link",
        "word-link",
        &["run", "compare", "top", "reproduce"],
        "The connection between two stages: a pipe, or what --via puts in its place.",
    ),
    (
        "chain",
        "word-chain",
        &["top"],
        "Processes that pipes, FIFOs and socket pairs join, seen from outside; what lies in a link is what was written and not yet read.",
    ),
    (
        "full, of",
        "word-full",
        &["boost"],
        "For how long a pipe was full since it was enlarged, and for how long it was watched.",
    ),
    (
        "p",
        "word-p",
        &["diff"],
        "The chance of a difference as large as this one if nothing had changed, corrected for the number of figures.",
    ),
];

/// Phrases in captions, each with the id of its explanation.
pub(super) const PHRASES: &[(&str, &str)] = &[
    ("every byte checked", "word-data"),
    ("every byte written, none checked", "word-data"),
    ("payload never touched", "word-data"),
    ("95 % interval", "word-interval"),
    ("one trial", "word-trial"),
    ("one launch", "word-trial"),
    ("round trip", "word-round-trip"),
    ("Waits", "word-waits"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_has_an_explanation() {
        for (phrase, id) in PHRASES {
            assert!(WORDS.iter().any(|(_, known, ..)| known == id), "{phrase}");
        }
    }
}
