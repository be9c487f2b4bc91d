//! The one place where a call that failed is made again. Elsewhere a failed call is an error, which someone reports.

use std::time::Duration;

/// How often a call is made that fails seldom, and how long it is waited before each further one.
#[derive(Debug, Clone, Copy)]
pub struct Retries {
    pub calls_max: u32,
    pub pause: Duration,
}

impl Retries {
    /// For a call whose failure cannot be reported to anyone: a file or a queue would be left, or a process would wait without end.
    pub const UNREPORTED: Self = Self { calls_max: 3, pause: Duration::ZERO };
}

/// Makes a call, and makes it again as long as it fails with an error that `may_pass`. The answer of the last call.
///
/// Only for calls that are known to fail for a moment, where no better answer exists than to wait, and for those whose failure no one can report.
///
/// # Errors
/// That of the last call.
pub fn retry_rare<T, E>(
    retries: Retries,
    may_pass: impl Fn(&E) -> bool,
    mut call: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut answer = call();
    for _ in 1..retries.calls_max {
        if !answer.as_ref().is_err_and(&may_pass) {
            break;
        }
        std::thread::sleep(retries.pause);
        answer = call();
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer, and the number of calls, where the calls answer these in turn.
    fn retried(answers: &[Result<u32, &'static str>]) -> (Result<u32, &'static str>, usize) {
        let (mut calls, retries) = (0, Retries::UNREPORTED);
        let answer = retry_rare(
            retries,
            |error| *error == "passes",
            || {
                calls += 1;
                answers[calls - 1]
            },
        );
        (answer, calls)
    }

    #[test]
    fn a_call_is_made_again_only_after_an_error_that_may_pass() {
        assert_eq!(retried(&[Ok(1)]), (Ok(1), 1));
        assert_eq!(retried(&[Err("passes"), Ok(2)]), (Ok(2), 2));
        assert_eq!(retried(&[Err("stays")]), (Err("stays"), 1));
        assert_eq!(retried(&[Err("passes"), Err("stays")]), (Err("stays"), 2));
        assert_eq!(retried(&[Err("passes"); 3]), (Err("passes"), 3));
    }
}
