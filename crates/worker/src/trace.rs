//! Counting system calls with ptrace(2): of the programs given, and of everything they start.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use model::{CaseError, ErrorKind, NoSample, describe_errno};
use process::{Cleaner, LOOK_UP, VARIABLE, describe_ending};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};

/// How many calls there were of each number.
pub(crate) type Counts = BTreeMap<u64, u64>;

/// What a stop at a system call looks like under PTRACE_O_TRACESYSGOOD.
const AT_A_CALL: i32 = libc::SIGTRAP | 0x80;

/// Every thread and child is traced too; and if we die, all of them do.
const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// Runs programs to their end and counts their calls.
pub(crate) fn trace(
    mut commands: Vec<Command>,
    cleaner: &Cleaner,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Counts, NoSample> {
    let began = Instant::now();
    let mark = cleaner.mark();
    for command in &mut commands {
        command.env(VARIABLE, mark.value());
    }
    let (tell, told) = mpsc::channel();
    let mut groups: Vec<Pid> = Vec::new();
    let mut cut = None;
    let counted = thread::scope(|scope| {
        // Only the thread that started a program may trace it, and it waits for no other children.
        let tracer = match Builder::new().spawn_scoped(scope, move || Tracer::run(commands, &tell)) {
            Ok(tracer) => tracer,
            Err(error) => return Ok(Err(no_trace("clone", &error))),
        };
        loop {
            match told.recv_timeout(LOOK_UP) {
                Ok(group) => {
                    cleaner.watch(group);
                    groups.push(group);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stop() {
                cut = Some(NoSample::Stopped);
            } else if began.elapsed() > limit {
                let message = format!("took longer than {limit:.0?} while its system calls were traced");
                cut = Some(NoSample::Failed(CaseError::new(ErrorKind::Hung, message)));
            }
            if cut.is_some() {
                groups.iter().copied().for_each(end_group);
            }
        }
        tracer.join()
    });
    groups.iter().for_each(|group| cleaner.forget(*group));
    mark.end_all();
    match (cut, counted) {
        (Some(cut), _) => Err(cut),
        (None, Ok(Ok(counts))) => Ok(counts),
        (None, Ok(Err(failure))) => Err(NoSample::Failed(failure)),
        (None, Err(_)) => Err(NoSample::Failed(no_trace("ptrace", &io::ErrorKind::Other.into()))),
    }
}

fn no_trace(call: &str, error: &io::Error) -> CaseError {
    let message = format!("system calls cannot be traced here: {call}: {}", describe_errno(error));
    CaseError::new(ErrorKind::Failed, message)
}

fn end_group(group: Pid) {
    // A group that has just ended is no error here.
    let _ = kill_process_group(group, Signal::KILL);
}

fn end(pid: i32) {
    // One that has just ended is no error here.
    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
}

/// The state of the tracing thread.
#[derive(Default)]
struct Tracer {
    counts: Counts,
    /// The programs given; what they start is not waited for by name.
    running: HashSet<i32>,
    /// Processes and threads that have stopped once.
    seen: HashSet<i32>,
    failure: Option<CaseError>,
}

impl Tracer {
    fn run(commands: Vec<Command>, tell: &Sender<Pid>) -> Result<Counts, CaseError> {
        let mut tracer = Self::default();
        for command in commands {
            match start(command) {
                Ok(pid) => {
                    // The listener is there as long as this thread.
                    let _ = tell.send(pid);
                    tracer.running.insert(pid.as_raw_nonzero().get());
                }
                Err(error) => {
                    tracer.failure = Some(no_trace("ptrace", &error));
                    tracer.end_all();
                    break;
                }
            }
        }
        while let Some((pid, status)) = next_event() {
            tracer.attend(pid, status);
        }
        match tracer.failure {
            Some(failure) => Err(failure),
            None => Ok(tracer.counts),
        }
    }

    fn end_all(&self) {
        self.running.iter().filter_map(|pid| Pid::from_raw(*pid)).for_each(end_group);
    }

    fn attend(&mut self, pid: i32, status: i32) {
        if libc::WIFSTOPPED(status) {
            if self.running.is_empty() {
                // Started in the last moment of the programs given.
                end(pid);
            }
            let first = self.seen.insert(pid);
            let signal = self.stopped(pid, status, first);
            // One that was killed meanwhile is no error.
            let _ = ptrace(libc::PTRACE_SYSCALL, pid, 0, signal as usize);
            return;
        }
        self.seen.remove(&pid);
        if self.running.remove(&pid) {
            // Nothing that it has left running is waited for; not even what left its group.
            Pid::from_raw(pid).into_iter().for_each(end_group);
            if self.running.is_empty() {
                self.seen.iter().copied().for_each(end);
            }
            let status = ExitStatus::from_raw(status);
            if !status.success() {
                let message = format!("{} while its system calls were traced", describe_ending(status));
                self.failure.get_or_insert_with(|| CaseError::new(ErrorKind::Died, message));
            }
        }
    }

    /// Acts on a stop; answers with the signal that is to be handed on, or 0.
    fn stopped(&mut self, pid: i32, status: i32, first: bool) -> i32 {
        let signal = libc::WSTOPSIG(status);
        let event = status >> 16;
        if first && self.running.contains(&pid) {
            // It has just become the program (execve(2)) and has done nothing yet.
            if let Err(error) = ptrace(libc::PTRACE_SETOPTIONS, pid, 0, OPTIONS as usize) {
                self.failure.get_or_insert_with(|| no_trace("ptrace", &error));
                self.end_all();
            }
            return 0;
        }
        if signal == AT_A_CALL {
            match entered_call(pid) {
                Ok(Some(number)) => *self.counts.entry(number).or_default() += 1,
                Ok(None) => {}
                // It was killed while it stood there.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    self.failure.get_or_insert_with(|| no_trace("ptrace", &error));
                    self.end_all();
                }
            }
            return 0;
        }
        // New processes and threads begin with a stop of ptrace's own; events are not signals either.
        if event != 0 || (first && signal == libc::SIGSTOP) { 0 } else { signal }
    }
}

/// Starts a program that asks to be traced; it stands still as soon as it is the program.
fn start(mut command: Command) -> io::Result<Pid> {
    command.process_group(0);
    // SAFETY: between fork and exec only an async-signal-safe system call is made.
    unsafe { command.pre_exec(|| ptrace(libc::PTRACE_TRACEME, 0, 0, 0)) };
    command.spawn().map(|child| Pid::from_child(&child))
}

/// The next thing that happens to a child or tracee of this thread, with its wait status; `None` when there is none left.
/// (nix's `waitpid` loses the stops at real-time signals, which its `Signal` does not know.)
fn next_event() -> Option<(i32, i32)> {
    let options = WaitOptions::from_bits_retain((libc::__WALL | libc::__WNOTHREAD) as u32);
    loop {
        match wait(options) {
            Ok(Some((pid, status))) => return Some((pid.as_raw_nonzero().get(), status.as_raw())),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// The number of the call that a stopped tracee enters; `None` where it leaves one.
fn entered_call(pid: i32) -> io::Result<Option<u64>> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let room = info.as_mut_ptr().expose_provenance();
    ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size_of_val(&info), room)?;
    // SAFETY: every member of the union is numbers, which are valid as zeros and as whatever the kernel writes.
    let (op, number) = unsafe { (info.assume_init().op, info.assume_init().u.entry.nr) };
    Ok((op == libc::PTRACE_SYSCALL_INFO_ENTRY).then_some(number))
}

/// ptrace(2). (nix asks for no byte of PTRACE_GET_SYSCALL_INFO, and hands on no real-time signal.)
fn ptrace(request: libc::c_uint, pid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: of the requests made here one has the kernel write to memory of ours: as much as it is told.
    match unsafe { libc::ptrace(request, pid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
