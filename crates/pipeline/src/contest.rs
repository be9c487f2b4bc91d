//! What a comparison makes of its trials: their times, and whether their outputs are the same.

use model::CompareResult;

use crate::trial::Trial;

/// What stands for the shell itself among the links of a comparison.
pub const BASH: &str = "bash";

/// Takes a trial into its result; outputs or statuses that differ between trials of one link are noted at once.
pub fn take(result: &mut CompareResult, made: Trial, timed: bool) {
    if timed {
        result.times_s.push(made.wall.as_secs_f64());
    }
    let before = (result.output_hash.replace(made.output.hash), result.status.replace(made.status));
    if let (Some(hash), status) = before {
        let steady = Some(hash) == result.output_hash && status == result.status;
        result.equal = Some(steady && result.equal != Some(false));
    }
    result.output_bytes = made.output.bytes;
    result.stored_bytes = made.stored_bytes;
    result.error = made.trouble.or(result.error.take());
}

/// Compares every output with that of the reference: bash, or else the first link of which there is one. What could
/// not be compared with anything stays unjudged.
pub fn judge(results: &mut [CompareResult]) {
    let ran = |result: &&CompareResult| result.output_hash.is_some();
    let outcome = |result: &CompareResult| (result.output_hash.clone(), result.status);
    for index in 0..results.len() {
        let (pipeline, own) = (&results[index].pipeline, outcome(&results[index]));
        let same: Vec<&CompareResult> =
            results.iter().filter(|other| other.pipeline == *pipeline).filter(ran).collect();
        let reference = same.iter().find(|result| result.via == BASH).or(same.first());
        let Some(reference) = reference.filter(|_| own.0.is_some() && same.len() > 1) else { continue };
        let equal = results[index].equal != Some(false) && outcome(reference) == own;
        results[index].equal = Some(equal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Output;
    use std::time::Duration;

    fn result(via: &str, outputs: &[&str]) -> CompareResult {
        let mut result = CompareResult::new("a | b", via);
        for hash in outputs {
            let output = Output { bytes: 1, hash: (*hash).to_owned() };
            let wall = Duration::from_secs(1);
            let made = Trial { wall, status: 0, output, stored_bytes: None, trouble: None, ended_by: None };
            take(&mut result, made, true);
        }
        result
    }

    fn judged(mut results: Vec<CompareResult>) -> Vec<Option<bool>> {
        judge(&mut results);
        results.iter().map(|result| result.equal).collect()
    }

    /// Expected: of an output that was compared with no other nothing is said.
    /// Happened: "same", where a comparison was interrupted.
    #[test]
    fn what_was_never_compared_is_not_the_same() {
        let (some, other) = (Some(true), Some(false));
        assert_eq!(judged(vec![result("pipe", &["x"]), result("bash", &[])]), [None, None]);
        assert_eq!(judged(vec![result("pipe", &["x", "x"]), result("bash", &[])]), [some, None]);
        assert_eq!(judged(vec![result("pipe", &["x", "y"]), result("bash", &[])]), [other, None]);
    }

    #[test]
    fn the_reference_is_bash_or_else_the_first_that_ran() {
        let (some, other) = (Some(true), Some(false));
        let (pipe, file) = (result("pipe", &["x"]), result("file", &["y"]));
        assert_eq!(judged(vec![pipe.clone(), file.clone()]), [some, other]);
        assert_eq!(judged(vec![pipe.clone(), file.clone(), result("bash", &["y"])]), [other, some, some]);
        assert_eq!(judged(vec![result("tcp", &[]), pipe, file]), [None, some, other]);
        let unsteady = vec![result("pipe", &["x", "y"]), result("bash", &["y"])];
        assert_eq!(judged(unsteady), [other, some]);
        let another = CompareResult { pipeline: "c | d".to_owned(), ..result("bash", &["y"]) };
        assert_eq!(judged(vec![result("pipe", &["x"]), another]), [None, None], "pipelines are apart");
    }
}
