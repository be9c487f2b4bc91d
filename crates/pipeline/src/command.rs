//! What a person at a prompt asks of the server: the commands that the shell's functions send, and what there is to say before a
//! prompt. The shell asks for that through two pipes and not over the socket, because its own `printf` and `read` can do so: a program
//! started before each prompt would set off a trap for SIGCHLD.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mechanism::OpenError;
use model::{LinkRecord, StageRecord};
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::link::{LinkSpec, refused};
use crate::run::{Begin, Names};
use crate::serve::{LAST_LOOKS, Server};
use crate::socket::Socket;

/// How long what is said before a prompt waits for figures of links that are just closing.
const LAST_FIGURES: Duration = Duration::from_millis(100);
/// More pipelines than this are not spoken of one by one.
const LINES_MAX: usize = 3;

/// How the line after a pipeline reads, from its stages and links.
pub type Line = dyn Fn(&[StageRecord], &[LinkRecord]) -> String;

/// What is chosen for the pipelines to come.
pub(crate) struct Chosen {
    pub(crate) via: LinkSpec,
    /// Where folders for what flows are made, one for each line that is typed.
    pub(crate) keep: Option<PathBuf>,
    pub(crate) stats: bool,
}

/// What a prompt shows.
#[derive(Clone, Copy)]
pub struct Prompt<'a> {
    /// Makes what the shell begins with.
    pub begin: &'a dyn Fn(&Names) -> Result<Begin, OpenError>,
    /// The line after a pipeline.
    pub line: &'a Line,
    /// Whether there is one to begin with.
    pub stats: bool,
    /// Pipelines that took less are not spoken of.
    pub above: Duration,
    /// Whether the link is named in the prompt where it is a plain pipe, too.
    pub mark_pipes: bool,
}

/// The pipes through which a shell asks what there is to say before a prompt.
pub(crate) struct PromptPipes {
    /// Where the shell writes a line to ask, and where that is read here.
    ask: OwnedFd,
    questions: OwnedFd,
    /// Where it reads a line, the mark, as the answer, and where that is written here.
    answer: OwnedFd,
    answers: OwnedFd,
}

impl PromptPipes {
    pub(crate) fn open() -> io::Result<Self> {
        let (questions, ask) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (answer, answers) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { ask, questions, answer, answers })
    }

    /// Where the shell's functions find the server, this process, and these pipes. (Opened anew there, they block.)
    pub(crate) fn names(&self, server: &Socket) -> Names {
        let path = |fd: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
        Names { socket: server.name.clone(), ask: path(&self.ask), answer: path(&self.answer) }
    }

    /// Readable when the shell asks.
    pub(crate) fn asked(&self) -> &OwnedFd {
        &self.questions
    }

    fn answer(&self, text: &str) {
        // An answer that nobody took, because Ctrl-C came between, is not the answer to this question.
        let mut room = [0; 4096];
        while read(&self.questions, &mut room).is_ok_and(|len| len > 0) {}
        while read(&self.answer, &mut room).is_ok_and(|len| len > 0) {}
        // Far shorter than a pipe's room.
        let _ = write(&self.answers, text.as_bytes());
    }
}

impl Server<'_> {
    /// Does a command of hosepipe's own, and says what there is to say, or why not.
    pub(crate) fn command(&mut self, words: &[&str]) -> Result<String, String> {
        match words {
            ["via"] => Ok(format!("{}\n", self.chosen.via)),
            ["via", link] => {
                let links = || LinkSpec::names().collect::<Vec<_>>().join(", ");
                let spec =
                    LinkSpec::parse(link).map_err(|problem| format!("{problem}; links are {}", links()))?;
                self.service.text.shell.allows(&spec)?;
                // That it cannot be had here is better known now than at the next pipeline.
                drop(spec.connect(&self.folder).map_err(|error| spec.refusal(&error))?);
                self.chosen.via = spec;
                Ok(String::new())
            }
            ["stats"] => Ok(format!("{}\n", if self.chosen.stats { "on" } else { "off" })),
            ["stats", word @ ("on" | "off")] => {
                self.chosen.stats = *word == "on";
                Ok(String::new())
            }
            ["keep"] => {
                let folder = self.chosen.keep.as_ref().map(|folder| folder.display().to_string());
                Ok(format!("{}\n", folder.as_deref().unwrap_or("off")))
            }
            ["keep", folder] => {
                let chosen = (*folder != "off").then(|| PathBuf::from(folder));
                // That nothing can be kept there is better known now than at the next pipeline.
                chosen.as_ref().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| {
                    format!("cannot keep anything in {folder}: {}", model::describe_errno(&error))
                })?;
                (self.chosen.keep, self.keep) = (chosen, None);
                Ok(String::new())
            }
            // Where files lie that go with the shell.
            ["folder"] => {
                let made =
                    mechanism::ensure_cleaner().map_err(refused("fork")).and_then(|()| self.folder.path());
                let folder = made.map_err(|error| error.to_string())?;
                Ok(folder.to_string_lossy().into_owned())
            }
            ["via", ..] => Err("usage: via [LINK]".to_owned()),
            ["stats", ..] => Err("usage: stats [on|off]".to_owned()),
            ["keep", ..] => Err("usage: keep [DIR|off]".to_owned()),
            _ => Err("there is no such command".to_owned()),
        }
    }

    /// The shell is about to show its prompt: says what stands in that, and what the pipelines did that have ended since the last
    /// one, which are then forgotten.
    pub(crate) fn before_a_prompt(&mut self, socket: &Socket) -> io::Result<()> {
        if let Some(folder) = self.began_from.take() {
            // It has been read. Where it cannot be removed now, it is at the end.
            let _ = std::fs::remove_dir_all(folder);
        }
        let Some((prompt, prompt_pipes)) = self.service.text.prompt.zip(self.service.prompt_pipes) else {
            return Ok(());
        };
        let lines = self.lines(&prompt, socket)?;
        let via = self.chosen.via.to_string();
        let mark =
            if via != "pipe" || prompt.mark_pipes { format!("({}) ", harmless(&via)) } else { String::new() };
        for line in lines {
            // That it cannot be said changes nothing.
            let _ = writeln!(io::stderr(), "{line}");
        }
        prompt_pipes.answer(&format!("{mark}\n"));
        Ok(())
    }

    fn lines(&mut self, prompt: &Prompt<'_>, socket: &Socket) -> io::Result<Vec<String>> {
        let over = self.ledger.over();
        let links: Vec<u64> = over.iter().flat_map(|joined| joined.links.iter().copied()).collect();
        let began = Instant::now();
        while (self.chosen.stats || self.keep.is_some()) && links.iter().any(|id| self.open.contains(id)) {
            self.update_links(socket)?;
            if began.elapsed() > LAST_FIGURES && !self.is_copying(links.iter().copied()) {
                break;
            }
            self.receive_all(socket)?;
            std::thread::sleep(LAST_LOOKS);
        }
        let mut lines = Vec::new();
        for joined in over.iter().filter(|joined| joined.processes.len() > 1 && self.chosen.stats) {
            let stages = joined.processes.iter().map(|index| self.ledger.stage(0, joined, *index));
            let Some(stages) = stages.collect::<Option<Vec<StageRecord>>>() else { continue };
            let wall = stages.iter().map(|stage| stage.wall_ns).max().unwrap_or(0);
            let interrupted = stages.iter().any(|stage| stage.signal == Some(libc::SIGINT));
            if u128::from(wall) < prompt.above.as_nanos() || interrupted || lines.len() == LINES_MAX {
                continue;
            }
            let links = joined.links.iter().filter_map(|id| Some(self.links.get(id)?.record.clone()));
            lines.push((prompt.line)(&stages, &links.collect::<Vec<_>>()));
        }
        self.name_kept(&over);
        self.keep = None;
        self.ledger.forget(&over);
        let ledger = &self.ledger;
        let open = &self.open;
        self.links.retain(|id, _| open.contains(id) || ledger.knows(*id));
        Ok(lines)
    }
}

/// A link's name without anything that a shell's prompt would take for something else than itself.
fn harmless(link: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || ":=,._/-+".contains(character);
    link.chars().map(|character| if plain(character) { character } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_links_name_steers_a_prompt() {
        assert_eq!(harmless("tmpfile:order=sequential,dir=/tmp"), "tmpfile:order=sequential,dir=/tmp");
        assert_eq!(harmless("file:dir=/$(x)`\\w`%~\x1b"), "file:dir=/??x???w????");
    }
}
