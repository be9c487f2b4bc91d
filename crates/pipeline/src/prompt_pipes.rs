//! The pipes through which a shell asks, before a prompt, what there is to say. They are no sockets, because a shell's own `printf` and `read`
//! can use them: a program started before each prompt would set off a trap for SIGCHLD.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::socket::Socket;
use crate::text::ServerNames;

/// The pipes through which a shell asks what there is to say before a prompt.
pub(crate) struct PromptPipes {
    /// Where the shell writes a line to ask, and where that is read here.
    ask: OwnedFd,
    questions: OwnedFd,
    /// Where the shell reads the answer, the mark of the prompt in one line, and where that is written here.
    answer: OwnedFd,
    answers: OwnedFd,
}

impl PromptPipes {
    pub(crate) fn open() -> io::Result<Self> {
        let (questions, ask) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (answer, answers) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { ask, questions, answer, answers })
    }

    /// Where the shell's functions find the server, which is this process, and these pipes. (There they are opened anew, and block.)
    pub(crate) fn names(&self, server: &Socket) -> ServerNames {
        let path = |fd: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
        ServerNames { socket: server.name.clone(), ask: path(&self.ask), answer: path(&self.answer) }
    }

    /// Readable when the shell asks.
    pub(crate) fn asked(&self) -> &OwnedFd {
        &self.questions
    }

    pub(crate) fn answer(&self, text: &str) {
        // Removes an earlier answer that was not read, because of Ctrl-C.
        let mut room = [0; 4096];
        while read(&self.questions, &mut room).is_ok_and(|len| len > 0) {}
        while read(&self.answer, &mut room).is_ok_and(|len| len > 0) {}
        // It is far shorter than a pipe's capacity.
        let _ = write(&self.answers, text.as_bytes());
    }
}
