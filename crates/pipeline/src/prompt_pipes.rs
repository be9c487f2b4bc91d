//! The pipes by which a shell requests the mark of its prompt from the server. They are pipes and not sockets so that the shell can use them with
//! its builtins: if it started a program before each prompt, the user's trap for SIGCHLD would run.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::requests::RequestSocket;
use crate::shell_run::ServerNames;

/// Two pipes, one for requests of the shell and one for answers.
pub(crate) struct PromptPipes {
    /// The request pipe: the shell's end, to which it writes a line, and our end.
    ask: OwnedFd,
    questions: OwnedFd,
    /// The answer pipe: the shell's end, from which it reads the mark in one line, and our end.
    answer: OwnedFd,
    /// `None` after a failed write.
    answers: Cell<Option<OwnedFd>>,
}

impl PromptPipes {
    pub(crate) fn open() -> io::Result<Self> {
        let (questions, ask) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (answer, answers) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { ask, questions, answer, answers: Cell::new(Some(answers)) })
    }

    /// The names by which the shell's functions find the server, which is this process, and these pipes. (The shell opens them in blocking mode.)
    pub(crate) fn names(&self, requests: &RequestSocket) -> ServerNames {
        let server = std::process::id();
        let path = |fd: &OwnedFd| format!("/proc/{server}/fd/{}", fd.as_raw_fd());
        ServerNames { socket: requests.path_in(server), ask: path(&self.ask), answer: path(&self.answer) }
    }

    /// A descriptor that is readable when the shell has sent a request.
    pub(crate) fn asked(&self) -> &OwnedFd {
        &self.questions
    }

    /// Answers the shell. If that fails, the pipe has no writer any more: then and at each later prompt the shell reads its end, and shows no mark.
    pub(crate) fn answer(&self, text: &str) {
        // Removes an earlier answer that was not read, because of Ctrl-C.
        let mut room = [0; 4096];
        while read(&self.questions, &mut room).is_ok_and(|len| len > 0) {}
        while read(&self.answer, &mut room).is_ok_and(|len| len > 0) {}
        // The write cannot block: the text is much shorter than a pipe's capacity.
        let answers = self.answers.take();
        self.answers.set(answers.filter(|answers| retry_on_intr(|| write(answers, text.as_bytes())).is_ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Expected: a shell gets an answer or the end. Happened: after a write that failed it waited without end.
    #[test]
    fn a_shell_does_not_wait_for_an_answer_that_cannot_be_written() {
        let pipes = PromptPipes::open().expect("pipes");
        pipes.answer("(fifo) \n");
        let mut room = [0; 64];
        assert_eq!(read(&pipes.answer, &mut room), Ok(8));
        // Writing fails with EBADF; the pipe's own end for writing stays open.
        let end = pipes.answers.replace(Some(File::open("/dev/null").expect("a file").into()));
        pipes.answer("(fifo) \n");
        drop(end);
        assert!(pipes.answers.take().is_none());
        assert_eq!(read(&pipes.answer, &mut room), Ok(0));
    }
}
