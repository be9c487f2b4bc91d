//! How to read the page: the words that stand on it, each explained once, and what makes a figure honest.

/// A word, the name its explanation has in links, and the explanation.
pub(super) const WORDS: &[(&str, &str, &str)] = &[
    (
        "mechanism",
        "word-mechanism",
        "One way of moving bytes between two tasks, with its options where it has any: pipe:size=1MiB.",
    ),
    (
        "block",
        "word-block",
        "The bytes handed over in one call; a message, where the mechanism keeps boundaries.",
    ),
    (
        "stream",
        "word-stream",
        "One way, as fast as it goes. The clock runs from a barrier at which both ends start until the receiver has the last byte.",
    ),
    (
        "round trip",
        "word-round-trip",
        "There and back; each one is timed, and all of them are kept in a histogram.",
    ),
    (
        "data level",
        "word-data",
        "What the ends do with the payload: nothing (none), the sender produces every byte (write), and the receiver checks every byte (verify). Levels are never ranked in one list: a page passed by reference is not a byte moved.",
    ),
    (
        "95 % interval",
        "word-interval",
        "The range in which the median is expected (95 %). It is made from the ordered trials and assumes no \
            normal distribution; with fewer than six trials it is the whole range.",
    ),
    (
        "trial, n",
        "word-trial",
        "One timed run of a case. The trials of all cases take turns in a random order, after a warm-up; none is dropped, outliers are counted and shown.",
    ),
    (
        "ceiling and floor",
        "word-ceiling",
        "What bounds the figures, measured in the same run: a copy in memory above, the harness that moves nothing below. A row above the ceiling says why.",
    ),
    (
        "noisy, wild",
        "word-noise",
        "The interval is wider than 5 %, or than 15 %, of the median on a side. Noisy: a difference below 15 % may be chance. Wild: repeat on a quieter machine before believing it.",
    ),
    (
        "bound by",
        "word-bound",
        "What holds a stream back, read from its CPU times, switches and system calls. Where the evidence does not decide, nothing is said.",
    ),
    (
        "granted",
        "word-granted",
        "Sizes the system really gave: pipes round up, queues clamp, and past pipe-user-pages-soft a new pipe has two pages.",
    ),
    (
        "waits to read, waits to write",
        "word-waits",
        "Time a stage of a pipeline slept for input, or for somebody to take its output. Sampled every few milliseconds.",
    ),
    (
        "stage that holds the pipeline up",
        "word-bottleneck",
        "The stage that everybody else waited for: making it faster makes the whole faster.",
    ),
];

/// What captions say, and the name of its explanation.
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
            assert!(WORDS.iter().any(|(_, known, _)| known == id), "{phrase}");
        }
    }
}
