//! The terminal that a prompt and its pipelines share: one process group has it at a time (credentials(7)).

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, getpgrp, setpgid};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use crate::signals;

/// Above the numbers that command lines use.
const LOWEST_FD: i32 = 64;

/// How often we stop to be brought to the front; in an orphaned group nothing stops us (setpgid(2)).
const ATTEMPTS: u32 = 16;

/// A terminal of ours.
pub struct Terminal {
    fd: OwnedFd,
    group: Pid,
    /// The group that had it before us, and has it again after us.
    group_before: Pid,
    /// The modes it had when it became ours: how every program finds it.
    modes: Termios,
}

impl Terminal {
    /// Takes the terminal that is standard input, with a process group of our own, and ignores from now on what its
    /// keys send.
    ///
    /// # Errors
    /// Standard input is no terminal of our session.
    pub fn claim() -> io::Result<Self> {
        let fd = fcntl_dupfd_cloexec(rustix::stdio::stdin(), LOWEST_FD)?;
        for _ in 0..ATTEMPTS {
            if tcgetpgrp(&fd)? == getpgrp() {
                break;
            }
            // Started in the background: stopped until somebody brings us to the front.
            signals::send_group(getpgrp().as_raw_nonzero().get(), libc::SIGTTIN);
        }
        let modes = tcgetattr(&fd)?;
        let group_before = getpgrp();
        signals::ignore_keys();
        // EPERM: we lead the session, and so a group already (setpgid(2)).
        let _ = setpgid(None, None);
        let group = getpgrp();
        tcsetpgrp(&fd, group)?;
        Ok(Self { fd, group, group_before, modes })
    }

    /// Sets the modes again that the terminal had in the beginning.
    pub fn restore_modes(&self) {
        let _ = tcsetattr(&self.fd, OptionalActions::Drain, &self.modes);
    }

    /// A second handle of the same terminal, for a thread that ends the program.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn try_clone(&self) -> io::Result<Self> {
        let fd = fcntl_dupfd_cloexec(&self.fd, LOWEST_FD)?;
        Ok(Self { fd, group: self.group, group_before: self.group_before, modes: self.modes.clone() })
    }

    pub(super) fn modes(&self) -> Option<Termios> {
        tcgetattr(&self.fd).ok()
    }

    fn has(&self, group: i32) -> bool {
        tcgetpgrp(&self.fd).is_ok_and(|front| front.as_raw_nonzero().get() == group)
    }
}

impl Drop for Terminal {
    /// Who had it before us may read from it again.
    fn drop(&mut self) {
        let _ = tcsetpgrp(&self.fd, self.group_before);
    }
}

/// A terminal that a pipeline has, or will have when it has started; dropped, the prompt has it again.
pub(crate) struct Lent<'a> {
    terminal: Option<&'a Terminal>,
    to: Cell<Option<i32>>,
    /// Modes the pipeline left it with.
    modes_after: RefCell<Option<Termios>>,
}

impl<'a> Lent<'a> {
    pub(crate) fn not_yet(terminal: Option<&'a Terminal>) -> Self {
        Self { terminal, to: Cell::new(None), modes_after: RefCell::new(None) }
    }

    /// Hands it to a process group.
    pub(crate) fn hand_to(&self, group: i32) {
        let (Some(terminal), Some(pid)) = (self.terminal, Pid::from_raw(group)) else { return };
        let _ = tcsetpgrp(&terminal.fd, pid);
        self.to.set(Some(group));
        // The program may have reached for the terminal before it had it, and been stopped for that.
        signals::send_group(group, libc::SIGCONT);
    }

    /// Hands it to a process group that was stopped, with the modes that it had then.
    pub(super) fn hand_back_to(&self, group: i32, modes: Option<&Termios>) {
        if let (Some(terminal), Some(modes)) = (self.terminal, modes) {
            let _ = tcsetattr(&terminal.fd, OptionalActions::Drain, modes);
        }
        self.hand_to(group);
    }

    /// Whether stops like these are an accident of the handing over: the group that reached for the terminal has it.
    pub(crate) fn was_early(&self, stopped_by: &[i32]) -> bool {
        let early = stopped_by.iter().any(|signal| matches!(*signal, libc::SIGTTIN | libc::SIGTTOU));
        early && self.to.get().zip(self.terminal).is_some_and(|(group, terminal)| terminal.has(group))
    }

    /// Takes it back and gives the modes it was left with.
    pub(crate) fn take_back(self) -> Option<Termios> {
        self.reclaim();
        self.modes_after.take()
    }

    fn reclaim(&self) {
        if let (Some(terminal), Some(_)) = (self.terminal, self.to.take()) {
            *self.modes_after.borrow_mut() = terminal.modes();
            let _ = tcsetpgrp(&terminal.fd, terminal.group);
            terminal.restore_modes();
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.reclaim();
    }
}
