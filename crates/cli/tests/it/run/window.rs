//! A terminal for a program under test: what is typed into it, and what it has shown.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::common::pty::{pair, resize};
use crate::common::{soon, until};

/// The outer end of a pseudo-terminal (pty(7)).
pub(crate) struct Window {
    master: File,
    inner: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Window {
    pub(crate) fn new() -> Self {
        let (master, inner) = pair();
        resize(&inner, 24, 100);
        let master = File::from(master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (master.try_clone().expect("a copy"), Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut room = [0; 4096];
            // EIO: no process holds the inner end any more.
            while let Ok(len @ 1..) = from.read(&mut room) {
                to.lock().unwrap_or_else(PoisonError::into_inner).extend(&room[..len]);
            }
        });
        Self { master, inner, shown, reader: Some(reader) }
    }

    /// The inner end, for a standard descriptor.
    pub(crate) fn end(&self) -> OwnedFd {
        self.inner.try_clone().expect("a copy")
    }

    /// Starts a command, which setsid(1) must make the leader of this terminal's session, on it.
    pub(crate) fn start(&self, mut command: Command) -> Child {
        command.stdin(self.end()).stdout(self.end()).stderr(self.end());
        command.spawn().expect("the command starts")
    }

    pub(crate) fn type_in(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits until this was shown.
    pub(crate) fn expect(&self, text: &str) {
        let began = std::time::Instant::now();
        while !self.shown().contains(text) {
            assert!(began.elapsed() < soon(), "`{text}` was not shown in:\n{}", self.shown());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Everything that was shown, when all who held the terminal have gone.
    pub(crate) fn close(mut self) -> String {
        drop(self.inner);
        if let Some(reader) = self.reader.take() {
            until("the end of what is shown", soon(), || reader.is_finished().then_some(()));
        }
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
