//! The meaning of the status of a stage, if it is not 0: a sentence with what is certain.

use model::{RunRecord, StageRecord, UnseenEnd, signal_name};

use crate::layout::{code, shortened};
use crate::limits::{COMMAND_COLUMNS, SENTENCES_MAX};
use crate::lists::{distinct, first_if_any};
use crate::value::ABSENT;

const SIGPIPE: &str = "SIGPIPE";

/// The meaning of some statuses of some programs, from their manuals.
const MEANINGS: &[(&[&str], i32, &str)] = &[
    (&["grep", "egrep", "fgrep", "zgrep", "rg"], 1, "it selected no line"),
    (&["grep", "egrep", "fgrep", "zgrep", "rg"], 2, "it met an error"),
    (&["diff", "cmp"], 1, "what it compared differs"),
    (&["diff", "cmp"], 2, "it met an error"),
    (&["timeout"], 124, "the time limit was reached"),
];

/// What a SIGPIPE because the next stage had all that it wanted means for the status of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sigpipe {
    /// Nothing: the status is that of the last stage.
    Normal,
    /// The run may have used the shell's option pipefail, by its name: only a shell can parse a text.
    Failure,
}

impl Sigpipe {
    fn in_run(record: &RunRecord) -> Self {
        let names_it = |text: &str| text.contains("pipefail");
        let is_asked =
            record.head.arguments.iter().any(|argument| names_it(argument)) || names_it(&record.pipeline);
        if is_asked { Self::Failure } else { Self::Normal }
    }
}

/// A sentence for each stage that did not end with 0; the same sentence of several stages once.
pub(crate) fn sentences(record: &RunRecord) -> Vec<String> {
    let sigpipe = Sigpipe::in_run(record);
    let of_stage = |(at, stage): (usize, &StageRecord)| {
        let next = record.stages.get(at + 1).filter(|next| next.pipeline == stage.pipeline);
        stage.status.filter(|status| *status != 0).map(|status| sentence(stage, status, next, sigpipe))
    };
    let mut all = distinct(record.stages.iter().enumerate().filter_map(of_stage));
    all.extend(unseen_ends(record));
    if all.len() > SENTENCES_MAX {
        let rest = all.len() - (SENTENCES_MAX - 1);
        all.truncate(SENTENCES_MAX - 1);
        all.push(format!("{rest} more of the stages did not end with 0."));
    }
    all
}

/// The stages for whose end the shell did not wait.
fn unseen_ends(record: &RunRecord) -> impl Iterator<Item = String> {
    let kinds = [
        (UnseenEnd::Runs, "Still running when the shell had ended"),
        (UnseenEnd::Stopped, "Stopped by a signal, and not ended, when the shell had ended"),
        (UnseenEnd::Ended, "The shell ended first, so their statuses are not known"),
    ];
    kinds.into_iter().filter_map(|(kind, what)| {
        let stages = record.stages.iter().filter(|stage| stage.unseen_end == Some(kind));
        let names = distinct(stages.map(name));
        Some(format!("{what}: {}.", first_if_any(names, SENTENCES_MAX, ", ")?))
    })
}

/// A status in a table.
pub(crate) fn shown(stage: &StageRecord) -> String {
    let status = || stage.status.map_or_else(|| ABSENT.to_owned(), |status| status.to_string());
    stage.signal.map_or_else(status, signal_name)
}

/// The command of a stage, shortened.
fn name(stage: &StageRecord) -> String {
    code(&shortened(&stage.command, COMMAND_COLUMNS))
}

fn sentence(stage: &StageRecord, status: i32, next: Option<&StageRecord>, sigpipe: Sigpipe) -> String {
    let own = name(stage);
    if let Some(signal) = stage.signal.map(signal_name) {
        return match (signal.as_str(), next) {
            (SIGPIPE, Some(next)) => {
                let done = next.status == Some(0) || next.signal == stage.signal;
                let meaning = match sigpipe {
                    Sigpipe::Normal if done => ", which is normal".to_owned(),
                    Sigpipe::Normal => String::new(),
                    Sigpipe::Failure => format!(": with pipefail this counts as a failure, status {status}"),
                };
                format!("{own} ended by SIGPIPE because {} stopped reading{meaning}.", name(next))
            }
            (SIGPIPE, None) => {
                format!("{own} ended by SIGPIPE: no process had its output open for reading any more.")
            }
            (signal, _) => format!("{own} was ended by {signal}{}.", why(signal)),
        };
    }
    let program = stage.command.split_whitespace().next().and_then(|word| word.rsplit('/').next());
    let known = MEANINGS.iter().find(|(programs, meant, _)| {
        *meant == status && program.is_some_and(|program| programs.contains(&program))
    });
    let meaning = match (known, status) {
        (Some((.., meaning)), _) => (*meaning).to_owned(),
        (None, 126) => "in a shell: it could not execute a program".to_owned(),
        (None, 127) => "in a shell: it found no such program".to_owned(),
        (None, 129..=192) => format!("in a shell: {} ended one of its programs", signal_name(status - 128)),
        // Commands of a shell itself have no manual.
        (None, _) if stage.command.starts_with('(') => return format!("{own} ended with status {status}."),
        (None, _) => "see its manual".to_owned(),
    };
    format!("{own} ended with status {status}: {meaning}.")
}

/// The cause of a signal, as far as it is certain.
fn why(signal: &str) -> &'static str {
    match signal {
        "SIGKILL" => ": a program sent it, or the kernel for lack of memory (see `dmesg`)",
        "SIGILL" | "SIGABRT" | "SIGBUS" | "SIGFPE" | "SIGSEGV" => ", which is how a program crashes",
        "SIGXCPU" => ": it used more CPU time than `ulimit -t` allows",
        "SIGXFSZ" => ": a file would have become larger than `ulimit -f` allows",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(command: &str, status: i32) -> StageRecord {
        let signal = (status > 1000).then_some(status - 1000);
        let status = signal.map_or(status, |signal| 128 + signal);
        StageRecord { command: command.to_owned(), status: Some(status), signal, ..StageRecord::default() }
    }

    fn said(command: &str, status: i32, next: Option<(&str, i32)>) -> String {
        let next = next.map(|(command, status)| stage(command, status));
        let stage = stage(command, status);
        sentence(&stage, stage.status.unwrap_or(0), next.as_ref(), Sigpipe::Normal)
    }

    #[test]
    fn each_status_has_its_sentence() {
        for (command, status, next, expected) in [
            (
                "yes",
                1013,
                Some(("head -1", 0)),
                "`yes` ended by SIGPIPE because `head -1` stopped reading, which is normal.",
            ),
            (
                "yes",
                1013,
                Some(("head -1", 1013)),
                "`yes` ended by SIGPIPE because `head -1` stopped reading, which is normal.",
            ),
            ("yes", 1013, Some(("awk", 2)), "`yes` ended by SIGPIPE because `awk` stopped reading."),
            (
                "yes",
                1013,
                None,
                "`yes` ended by SIGPIPE: no process had its output open for reading any more.",
            ),
            ("/bin/grep x", 1, None, "`/bin/grep x` ended with status 1: it selected no line."),
            ("grep x f", 2, Some(("wc", 0)), "`grep x f` ended with status 2: it met an error."),
            ("awk x", 2, None, "`awk x` ended with status 2: see its manual."),
            (
                "(in the shell)",
                127,
                None,
                "`(in the shell)` ended with status 127: in a shell: it found no such program.",
            ),
            (
                "(a; b)",
                141,
                None,
                "`(a; b)` ended with status 141: in a shell: SIGPIPE ended one of its programs.",
            ),
            ("(in the shell)", 5, None, "`(in the shell)` ended with status 5."),
            ("a", 1011, None, "`a` was ended by SIGSEGV, which is how a program crashes."),
            ("a", 1015, None, "`a` was ended by SIGTERM."),
        ] {
            assert_eq!(said(command, status, next), expected);
        }
        assert!(said("a", 1009, None).contains("for lack of memory"), "one of two possible senders");
    }

    /// Happened: "which is normal", and the run ended with status 141.
    #[test]
    fn with_pipefail_sigpipe_is_a_failure() {
        let stages = vec![stage("yes", 1013), stage("head -1", 0)];
        let run = |pipeline: &str, option: &str| {
            let mut record =
                RunRecord { pipeline: pipeline.to_owned(), stages: stages.clone(), ..RunRecord::default() };
            record.head.arguments = ["run", option].map(str::to_owned).into();
            sentences(&record).concat()
        };
        let failure = "`yes` ended by SIGPIPE because `head -1` stopped reading: with pipefail this counts as a failure, status 141.";
        assert_eq!(run("set -eo pipefail; yes | head -1", "--stats"), failure);
        assert_eq!(run("yes | head -1", "--pipefail"), failure);
        assert!(run("yes | head -1", "--stats").ends_with("which is normal."));
    }
}
