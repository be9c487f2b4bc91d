//! Launchers: they start programs here, on other hosts by ssh, or through Slurm, mpirun or Spark, wait for their end or cancel them, and keep
//! their last messages.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::{describe_errno, file_on_path};
use process::{
    Capture, Captured, Child, Cleaner, attend, command, describe_ending, finish_all, wait_for_all, write_anew,
};

/// Bytes kept of the beginning and of the end of a program's standard error.
const SAID_MAX: usize = 2000;
/// Longest end of programs that got SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

model::words! {
    /// A way to start programs.
    pub enum Launcher {
        /// This machine, a process for each program.
        Local = "local",
        /// An ssh for each program.
        Ssh = "ssh",
        /// A batch job.
        Slurm = "slurm",
        /// mpirun of Open MPI.
        Mpi = "mpi",
        /// A program in Python for spark-submit.
        Spark = "spark",
    }
}

impl Launcher {
    /// Those of `spread`.
    pub const OF_SPREAD: &[Self] = &[Self::Local, Self::Slurm, Self::Spark, Self::Ssh];
    /// Those of `fleet`.
    pub const OF_FLEET: &[Self] = &[Self::Slurm, Self::Mpi, Self::Ssh];

    /// Whether hosepipe starts each program by itself. Otherwise it writes a program for the launcher, which starts them all.
    pub fn starts_each(self) -> bool {
        match self {
            Self::Local | Self::Ssh => true,
            Self::Slurm | Self::Mpi | Self::Spark => false,
        }
    }

    /// The file of the program that must be installed here.
    ///
    /// # Errors
    /// A sentence: it is not installed, and what installs it.
    pub fn program(self) -> Result<PathBuf, String> {
        let (name, needs) = match self {
            Self::Local => ("sh", "a shell"),
            Self::Ssh => ("ssh", "an ssh client (Debian: openssh-client)"),
            Self::Slurm => ("sbatch", "the client programs of a Slurm cluster (Debian: slurm-client)"),
            Self::Mpi => ("mpirun", "Open MPI (Debian: openmpi-bin)"),
            Self::Spark => ("spark-submit", "Spark (in $SPARK_HOME, or pip install pyspark) and Java 17"),
        };
        let found = file_on_path(name).or_else(|| if self == Self::Spark { spark_submit() } else { None });
        let printed = if self == Self::Ssh { "" } else { "; without --submit the job is only printed" };
        found.ok_or_else(|| {
            format!("{name} is not installed here, or not on the PATH: --on {self} takes {needs}{printed}")
        })
    }
}

/// `spark-submit` of $SPARK_HOME, or of the pyspark of python3.
fn spark_submit() -> Option<PathBuf> {
    let in_home = |home: PathBuf| Some(home.join("bin/spark-submit")).filter(|file| file.is_file());
    let of_python = || {
        // -c puts the current directory first in the search path, where it does not belong; -I would ignore PYTHONPATH, too.
        let ask = "import sys; sys.path[:1] == [''] and sys.path.pop(0); import pyspark; print(pyspark.__path__[0], end='')";
        let mut python = Command::new("python3");
        python.args(["-c", ask]).stdout(Stdio::piped()).stderr(Stdio::null());
        let (status, printed) = process::output(&mut python).ok()?;
        status.success().then(|| PathBuf::from(OsString::from_vec(printed)))
    };
    let home = std::env::var_os("SPARK_HOME").map(PathBuf::from);
    home.and_then(in_home).or_else(|| of_python().and_then(in_home))
}

/// Programs that were started together: an ssh for each host, an mpirun, or a script that follows a batch job. Dropping this sends SIGTERM to
/// those that still run: an mpirun that is killed leaves its ranks running.
pub struct Launched<'c>(Vec<Child<'c>>);

impl<'c> Launched<'c> {
    /// Starts programs; their streams are set, except the captured ones.
    ///
    /// # Errors
    /// A sentence: one is not installed, or what the system answered.
    pub(crate) fn start(
        programs: Vec<Command>,
        capture: Capture,
        cleaner: &'c Cleaner,
    ) -> Result<Self, String> {
        let start = |program: Command| {
            let name = program.get_program().to_string_lossy().into_owned();
            let said = Captured::keeping(SAID_MAX, SAID_MAX);
            Child::spawn(program, capture, said, cleaner, &cleaner.mark())
                .map_err(|error| format!("cannot start {name}: {}", describe_errno(&error)))
        };
        programs.into_iter().map(start).collect::<Result<_, _>>().map(Self)
    }

    /// Waits for the end of all; at least every 50 ms `look` is called, and its error ends them at once.
    ///
    /// # Errors
    /// The error of `look`, or of poll(2) or wait4(2).
    pub(crate) fn follow<E: From<io::Error>>(
        &mut self,
        look: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        wait_for_all(&mut self.0, &|_| false, look)
    }

    /// Waits up to 50 ms for an end or output; returns whether any program still runs.
    ///
    /// # Errors
    /// What poll(2) or wait4(2) answered.
    pub fn is_running(&mut self) -> io::Result<bool> {
        have_ended_within(&mut self.0, Duration::ZERO).map(|have_ended| !have_ended)
    }

    /// Waits for the end of all, at most for a time.
    ///
    /// # Errors
    /// As [`Self::is_running`].
    pub(crate) fn wait(&mut self, most: Duration) -> io::Result<()> {
        have_ended_within(&mut self.0, most).map(drop)
    }

    /// Waits for all programs to end soon.
    ///
    /// # Errors
    /// As [`Self::is_running`].
    pub fn finish(&mut self) -> io::Result<()> {
        self.wait(GRACE)
    }

    /// The programs that have failed, by their indices, and why.
    pub fn failures(&self) -> Vec<(usize, String)> {
        let failed = |child: &Child| child.ended().is_some_and(|ended| !ended.status.success());
        let failed = self.0.iter().enumerate().filter(|(_, child)| failed(child));
        failed.map(|(at, child)| (at, failure(child))).collect()
    }

    /// The only program.
    pub(crate) fn only(&self) -> &Child<'c> {
        &self.0[0]
    }

    /// How the only program ended, and its last message.
    pub(crate) fn failure(&self) -> String {
        failure(self.only())
    }
}

impl Drop for Launched<'_> {
    fn drop(&mut self) {
        let _ = finish_all(&mut self.0, GRACE);
    }
}

/// Waits for the end of all, at most for this time, and at least until something happens or 50 ms have passed.
///
/// # Errors
/// What poll(2) or wait4(2) answered.
pub(crate) fn have_ended_within(children: &mut [Child<'_>], most: Duration) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        attend(children)?;
        let have_ended = children.iter().all(|child| child.ended().is_some());
        if have_ended || began.elapsed() >= most {
            return Ok(have_ended);
        }
    }
}

/// How a program ended, and its last message.
fn failure(child: &Child<'_>) -> String {
    let how = child.ended().map_or_else(String::new, |ended| describe_ending(ended.status));
    let said = child.captured_output();
    let starts = ["hosepipe: ", "error: "];
    let sentence =
        said.lines().rev().find_map(|line| starts.iter().find_map(|start| line.strip_prefix(start)));
    // A panic's message is in the line after its place; a backtrace may follow.
    let panic = || said.lines().skip_while(|line| !line.contains(" panicked at ")).nth(1);
    let words = || said.lines().rfind(|line| line.contains(char::is_alphanumeric));
    let last = panic().or(sentence).or_else(words).unwrap_or_default();
    if last.is_empty() { how } else { format!("{last} ({how})") }
}

/// A program whose output goes into a new file, in a process group of its own, which gets no signals from the terminal.
pub(crate) fn logged(words: &[String], log: &Path) -> io::Result<Command> {
    write_anew(log, 0o666, b"")?;
    let log = File::options().append(true).open(log)?;
    let mut command = command(words);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    Ok(command)
}

/// The last lines of a log, from an offset on, as the end of a sentence.
pub fn last_words(log: &Path, from: u64) -> String {
    const LINES: usize = 5;
    const BYTES: u64 = 4096;
    let mut said = Vec::new();
    let _ = File::open(log).and_then(|mut log| {
        log.seek(SeekFrom::Start(log.metadata()?.len().saturating_sub(BYTES).max(from)))?;
        log.read_to_end(&mut said)
    });
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    if last.is_empty() { String::new() } else { format!(": {}", last.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: what a program said last of why it ended. Happened: "stack backtrace:", or a remark from before the panic.
    #[test]
    fn why_a_program_failed_is_its_sentence_its_panics_message_or_its_last_words() {
        let cleaner = Cleaner::start().expect("a cleaner");
        let why = |script: &str| {
            let mut program = Command::new("sh");
            program.args(["-c", script]).stdin(Stdio::null());
            let mut launched = Launched::start(vec![program], Capture::Both, &cleaner).expect("started");
            launched.wait(Duration::from_secs(60)).expect("waited");
            launched.failure()
        };
        let panic = r#"echo "thread 'main' panicked at x.rs:1:9:"; echo no folder; echo stack backtrace:"#;
        assert_eq!(
            why(&format!("echo hosepipe: it is short; {panic}; kill -9 $$")),
            "no folder (was ended by SIGKILL)"
        );
        assert_eq!(why("echo hosepipe: no disk; echo bye; exit 3"), "no disk (exited with 3)");
        assert_eq!(why("echo one; echo two; echo ---; exit 1"), "two (exited with 1)");
        assert_eq!(why("exit 1"), "exited with 1");
    }
}
