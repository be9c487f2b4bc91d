//! The answer to a process that is about to execute a program: variables, arguments, and perhaps a terminal as its standard output.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use mechanism::{OpenError, Order};
use pipes::message::Answer;
use pipes::protocol::CHANGE_BYTES_MAX;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::programs::{Programs, Question};
use super::served::ServedLink;
use super::server::Server;
use crate::align;
use crate::line_buffered::{LineBuffering, at_terminal};
use crate::link::{Link, refused};
use crate::program_file::Program;
use crate::requests;

impl Server<'_> {
    /// Answers the processes whose stage is known.
    pub(super) fn answer_programs(&mut self) {
        let Some(mut programs) = self.programs.take() else { return };
        for (question, is_chosen) in programs.take_answerable(&self.ledger) {
            self.answer_program(&mut programs, &question, is_chosen);
        }
        self.programs = Some(programs);
    }

    /// Answers a process, which is to write line by line if it `is_chosen`.
    fn answer_program(&mut self, programs: &mut Programs, question: &Question, is_chosen: bool) {
        if !is_chosen && !programs.aligns {
            requests::answer(&question.connection, Answer::Changes(b""), &[]);
            return;
        }
        let pid = question.pid;
        let mut words = question.text.strip_suffix(b"\0").unwrap_or(&question.text).split(|byte| *byte == 0);
        let path = PathBuf::from(String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned());
        // A relative path begins at the working folder of the process.
        let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let arguments: Vec<&[u8]> = words.collect();
        let program = Program::read(&folder.join(&path), &arguments);
        let (aligned, variable) = programs.aligns.then(|| align::alignment(&program)).unzip();
        let way = is_chosen.then(|| programs.by_line(&program)).flatten();
        let mut by_line = way.as_ref().map(|way| way.description.clone());
        let LineBuffering { mut changes, terminal, .. } = way.unwrap_or_default();
        let variable = variable.flatten();
        let aligned = aligned.map(|words| (words, variable.is_some()));
        changes.extend(variable);
        // A terminal, or /dev/null: nothing has to be said about lines there.
        let is_device =
            fs::metadata(format!("/proc/{pid}/fd/1")).is_ok_and(|file| file.file_type().is_char_device());
        let mut output = None;
        if terminal && !is_device {
            match self.terminal_before_output(pid) {
                Ok(slave) => {
                    output = Some(slave);
                    changes.extend(at_terminal());
                }
                Err(why) => by_line = Some(format!("as it is: it needs a terminal, and {why}")),
            }
        }
        let mut answer = Vec::new();
        for entry in &changes {
            answer.extend(entry);
            answer.push(0);
        }
        if answer.len() > CHANGE_BYTES_MAX {
            by_line = by_line.map(|_| "as it is: its variables would be too long".to_owned());
            answer.clear();
        }
        let fds: Vec<_> = output.iter().map(AsFd::as_fd).collect();
        requests::answer(&question.connection, Answer::Changes(&answer), &fds);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        programs.report(pid, &model::one_line(&name), by_line.filter(|_| !is_device), aligned);
    }

    /// Puts a terminal, and a relay, before the pipe that is a process's standard output; its end for the process, or why there is none.
    fn terminal_before_output(&mut self, pid: i32) -> Result<OwnedFd, String> {
        let path = format!("/proc/{pid}/fd/1");
        let kind = fs::metadata(&path).map_err(|_| "its output cannot be opened".to_owned())?;
        if !kind.file_type().is_fifo() {
            return Err("its output is no pipe".to_owned());
        }
        let made =
            open_output(Path::new(&path)).and_then(|output| Link::terminal_before(output, pid, &self.bell));
        let mut link = made.map_err(|error| error.to_string())?;
        let slave = link.take_write().ok_or("its terminal has no end")?;
        let id = self.new_id();
        // It is in no pipeline of the ledger.
        self.add_link(id, ServedLink::new(link, Order::Parallel, None, None));
        Ok(slave)
    }
}

/// Opens a process's output anew: flags that are set on this description do not change the process's.
fn open_output(path: &Path) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let output = open(path, flags, Mode::empty()).map_err(io::Error::from).map_err(refused("open"))?;
    let is_pipe = fstat(&output).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if is_pipe { Ok(output) } else { Err(refused("open")(io::ErrorKind::InvalidInput.into())) }
}
