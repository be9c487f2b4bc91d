//! Driving a worker by hand: its input fed, its output read, its end awaited for a limited time.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// What any worker may take for the small jobs of these tests, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a worker.
pub(crate) struct Driven {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Runs a command to its end; `input` is its standard input.
pub(crate) fn drive(mut command: Command, input: &[u8]) -> Driven {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let name = format!("{command:?}");
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = child.stdout.take().expect("piped");
    let mut stderr = child.stderr.take().expect("piped");
    let (mut read, mut said) = (Vec::new(), Vec::new());
    let status = std::thread::scope(|scope| {
        // A worker that wants no input closes it: that is its right.
        scope.spawn(move || stdin.write_all(input));
        scope.spawn(|| stdout.read_to_end(&mut read));
        scope.spawn(|| stderr.read_to_end(&mut said));
        wait(&mut child, &name)
    });
    Driven { status, stdout: read, stderr: String::from_utf8_lossy(&said).into_owned() }
}

/// Runs a command whose reader takes a few bytes and leaves.
pub(crate) fn drive_without_a_reader(mut command: Command) -> ExitStatus {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let name = format!("{command:?}");
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut first = [0; 100];
    child.stdout.take().expect("piped").read_exact(&mut first).expect("it sends");
    wait(&mut child, &name)
}

fn wait(child: &mut Child, name: &str) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status;
        }
        if began.elapsed() > PATIENCE {
            // With what it has started, so that the readers of its outputs come to an end.
            kill_process_group(Pid::from_child(child), Signal::KILL).expect("it runs");
            child.wait().expect("it was killed");
            panic!("{name} did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
