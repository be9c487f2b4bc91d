//! The server's part of a prompt: it executes the commands that the shell's functions send, and prints the lines before a prompt.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::StageRecord;

use super::server::Server;
use crate::link::{Bell, LinkSpec, refused};
use crate::shell_run::Prompt;

/// Longest time for which a prompt waits for the figures of links that are about to end.
const FIGURES_WAIT_MAX: Duration = Duration::from_millis(100);
/// Largest number of pipelines with a line before one prompt.
const LINES_MAX: usize = 3;

impl Server<'_> {
    /// Executes a command. Returns what is to be printed, or why it failed.
    pub(super) fn command(&mut self, words: &[&str]) -> Result<String, String> {
        match words {
            ["via"] => Ok(format!("{}\n", self.settings.via)),
            ["via", link] => {
                let spec = LinkSpec::parse(link)
                    .map_err(|problem| format!("{problem}; links are {}", LinkSpec::list()))?;
                self.shell_run.shell.allows(&spec)?;
                // A link that does not work here is reported now, not at the next pipeline.
                drop(spec.connect(&self.folder, &Bell::default()).map_err(|error| spec.refusal(&error))?);
                self.settings.via = spec;
                Ok(String::new())
            }
            ["stats"] => Ok(format!("{}\n", if self.settings.stats { "on" } else { "off" })),
            ["stats", word @ ("on" | "off")] => {
                self.settings.stats = *word == "on";
                Ok(String::new())
            }
            ["keep"] => {
                let folder = self.settings.keep.as_ref().map(|folder| folder.display().to_string());
                Ok(format!("{}\n", folder.as_deref().unwrap_or("off")))
            }
            ["keep", folder] => {
                let chosen = (*folder != "off").then(|| PathBuf::from(folder));
                // A folder that cannot be used is reported now, too.
                chosen.as_ref().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| {
                    format!("cannot keep data in {folder}: {}", model::describe_errno(&error))
                })?;
                (self.settings.keep, self.keep) = (chosen, None);
                Ok(String::new())
            }
            // A folder that is removed when the shell ends.
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

    /// The shell is about to show its prompt: sends it the mark, prints a line for each pipeline that has ended since the last prompt, and
    /// forgets those.
    pub(super) fn before_a_prompt(&mut self) -> io::Result<()> {
        if let Some(folder) = self.startup_folder.take() {
            // The shell has read it.
            let _ = std::fs::remove_dir_all(folder);
        }
        let Some((prompt, pipes)) = self.shell_run.prompt.zip(self.prompt_pipes) else { return Ok(()) };
        let lines = self.lines(&prompt)?;
        let via = self.settings.via.to_string();
        let mark =
            if via != "pipe" || prompt.mark_pipes { format!("({}) ", harmless(&via)) } else { String::new() };
        for line in lines {
            // An error of writing to standard error is ignored.
            let _ = writeln!(io::stderr(), "{line}");
        }
        pipes.answer(&format!("{mark}\n"));
        Ok(())
    }

    fn lines(&mut self, prompt: &Prompt<'_>) -> io::Result<Vec<String>> {
        let over = self.ledger.ended_pipelines();
        let links: Vec<u64> = over.iter().flat_map(|pipeline| pipeline.links.iter().copied()).collect();
        let began = Instant::now();
        while (self.settings.stats || self.keep.is_some()) && links.iter().any(|id| self.open.contains(id)) {
            self.update_links()?;
            if !self.wait_for_links(&links, began, FIGURES_WAIT_MAX)? {
                break;
            }
        }
        let mut lines = Vec::new();
        for pipeline in over.iter().filter(|pipeline| pipeline.processes.len() > 1 && self.settings.stats) {
            let stages = pipeline.processes.iter().map(|index| self.ledger.stage(0, pipeline, *index));
            let Some(stages) = stages.collect::<Option<Vec<StageRecord>>>() else { continue };
            let wall = stages.iter().map(|stage| stage.wall_ns).max().unwrap_or(0);
            let interrupted = stages.iter().any(|stage| stage.signal == Some(libc::SIGINT));
            if u128::from(wall) < prompt.above.as_nanos() || interrupted || lines.len() == LINES_MAX {
                continue;
            }
            let links = pipeline.links.iter().filter_map(|id| Some(self.links.get(id)?.record.clone()));
            lines.push((prompt.line)(&stages, &links.collect::<Vec<_>>()));
        }
        self.name_kept(&over);
        self.keep = None;
        self.ledger.forget(&over);
        let ledger = &self.ledger;
        let open = &self.open;
        self.links.retain(|id, _| open.contains(id) || ledger.has_link(*id));
        Ok(lines)
    }
}

/// A link's name with `?` for each character that has a special meaning in a shell's prompt.
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
