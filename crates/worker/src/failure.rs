//! Why a run has no figures.

use model::{CaseError, ErrorKind};

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind of trouble.
    pub kind: ErrorKind,
    /// What happened, and to which program.
    pub message: String,
    /// The end of what the program wrote to standard error; empty where it wrote nothing.
    pub said: String,
}

/// Why there is no sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRun {
    /// The user wants no more.
    Stopped,
    /// The run failed.
    Failed(Failure),
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), said: String::new() }
    }

    pub(crate) fn saying(self, said: String) -> Self {
        Self { said, ..self }
    }

    /// As a row's error: the message ends with what the program said, its lines set in one.
    pub fn case_error(&self) -> CaseError {
        let lines: Vec<&str> = self.said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let said = if lines.is_empty() { String::new() } else { format!("; it said: {}", lines.join(" | ")) };
        CaseError {
            kind: self.kind,
            message: format!("{}{said}", self.message),
            remedy: None,
            expected: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_what_the_program_said() {
        let failure = Failure::new(ErrorKind::Died, "c:tuned exited with 3");
        assert_eq!(failure.case_error().message, "c:tuned exited with 3");
        let failure = failure.saying("no luck\n\n  at all\n".to_owned());
        assert_eq!(failure.case_error().message, "c:tuned exited with 3; it said: no luck | at all");
    }
}
