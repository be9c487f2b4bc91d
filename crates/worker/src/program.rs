//! A program that follows the contract of docs/WORKERS.md.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use model::{CaseError, WorkerEnd, Workload};

use crate::registry::Receiver;
use crate::trial_size::TrialSize;

/// A worker's command line up to the role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its first arguments; never empty.
    pub command: Vec<OsString>,
    /// Its working directory, by which many toolchains choose a version; `None` for that of this process.
    pub folder: Option<PathBuf>,
    /// Variables that are set in addition to those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// How it runs the receiving end if it is the sender.
    pub receiver: Receiver,
    /// Its description in a record.
    pub end: WorkerEnd,
}

/// A worker of a plan; its program may be missing on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Its description in a record.
    pub end: WorkerEnd,
    /// The transport between its ends, if that is not a pipe.
    pub transport: Option<String>,
    /// Its program, or why there is none.
    pub program: Result<Program, CaseError>,
}

impl From<Program> for Worker {
    fn from(program: Program) -> Self {
        Self { end: program.end.clone(), transport: None, program: Ok(program) }
    }
}

impl Program {
    /// A program of the user (`--worker ./my-program`). A name without a slash is searched for in PATH.
    pub fn of_path(path: &Path) -> Self {
        Self {
            command: vec![path.as_os_str().to_owned()],
            folder: None,
            environment: Vec::new(),
            receiver: Receiver::Child,
            end: WorkerEnd {
                language: path.display().to_string(),
                variant: "program".to_owned(),
                toolchain: None,
            },
        }
    }

    /// The command of one end, `send` or `recv`; or `pair` or `trip` of a program that contains its receiver.
    pub fn end_command(&self, role: &str, size: &TrialSize, result: &Path) -> Command {
        self.with(arguments(role, size, result))
    }

    /// The command of a `pair` or a `trip` with the command of its child, the receiver.
    pub fn pair_command(
        &self,
        workload: Workload,
        receiver: &Self,
        size: &TrialSize,
        result: &Path,
    ) -> Command {
        let (role, child_role) = roles(workload);
        let child = receiver.command.iter().cloned().chain(arguments(child_role, size, result));
        let mut command = self.with(arguments(role, size, result).chain(child));
        // The child gets its variables through the parent; the parent's own variables take precedence.
        for (name, value) in receiver.environment.iter().filter(|(name, _)| !self.sets(name)) {
            command.env(name, value);
        }
        command
    }

    /// The same program, started through taskset(1) on this CPU.
    pub(crate) fn on_cpu(&self, cpu: u32) -> Self {
        let words = ["taskset", "-c", &cpu.to_string()].map(OsString::from);
        let command = words.into_iter().chain(self.command.iter().cloned()).collect();
        Self { command, ..self.clone() }
    }

    fn sets(&self, name: &OsStr) -> bool {
        self.environment.iter().any(|(own, _)| own == name)
    }

    fn with(&self, arguments: impl Iterator<Item = OsString>) -> Command {
        let (program, first) = self.command.split_first().map_or((OsStr::new(""), &[][..]), |(p, a)| (p, a));
        let mut command = Command::new(program);
        command.args(first).args(arguments);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The role of a program that starts its receiver, and the role of the receiver.
pub(crate) fn roles(workload: Workload) -> (&'static str, &'static str) {
    match workload {
        Workload::Stream => ("pair", "recv"),
        Workload::PingPong => ("trip", "echo"),
    }
}

/// The arguments that follow a program's first arguments.
fn arguments(role: &str, size: &TrialSize, result: &Path) -> impl Iterator<Item = OsString> {
    let size = size.arguments().map(OsString::from);
    std::iter::once(role.into()).chain(size).chain([result.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn command_lines_are_those_of_the_contract() {
        let mut program = Program::of_path(Path::new("./mine"));
        program.command.push("tuned".into());
        let other = Program::of_path(Path::new("other"));
        let size = TrialSize { bytes: 10, block_bytes: 3, warmup_bytes: 5 };
        let result = Path::new("/tmp/r");
        assert_eq!(words(&program.end_command("send", &size, result)), "./mine tuned send 10 3 5 /tmp/r");
        assert_eq!(
            words(&program.pair_command(Workload::Stream, &other, &size, result)),
            "./mine tuned pair 10 3 5 /tmp/r other recv 10 3 5 /tmp/r"
        );
        assert_eq!(
            words(&program.pair_command(Workload::PingPong, &other, &size, result)),
            "./mine tuned trip 10 3 5 /tmp/r other echo 10 3 5 /tmp/r"
        );
    }
}
