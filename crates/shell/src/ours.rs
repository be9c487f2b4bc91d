//! The commands of the prompt that change it, done.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use pipeline::link::LinkSpec;

use crate::builtins;
use crate::front::{Onward, Shell};

impl Shell {
    /// Does a command of ours.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(crate) fn ours(&mut self, words: &[&str]) -> anyhow::Result<Onward> {
        if let Some(text) = self.printed(words)? {
            std::io::stdout().write_all(model::visible(&text).as_bytes())?;
            self.session.set_status(0);
            return Ok(Onward::Yes);
        }
        let status = self.session.status();
        self.session.set_status(0);
        match words {
            ["via", link] => {
                let links = || format!("links are {}", LinkSpec::names().collect::<Vec<_>>().join(", "));
                self.via = LinkSpec::parse(link).map_err(|problem| anyhow!("{problem}; {}", links()))?;
            }
            ["stats", "on"] => self.stats = true,
            ["stats", "off"] => self.stats = false,
            ["keep", "off"] => self.keep = None,
            ["keep", folder] => self.keep = Some(std::path::absolute(PathBuf::from(folder))?),
            ["fg"] => return self.foreground(None),
            ["fg", job] => return self.foreground(Some(job)),
            ["bg"] => self.background(None)?,
            ["bg", job] => self.background(Some(job))?,
            ["wait", jobs @ ..] => return self.wait(jobs),
            ["disown", jobs @ ..] => self.disown(jobs)?,
            ["exit"] => return Ok(Onward::Leave(status)),
            ["exit", status] => {
                let status: i32 = status.parse().context("exit takes a number")?;
                return Ok(Onward::Leave(status & 0xff));
            }
            [name, ..] => {
                let usage = builtins::find(name);
                bail!("usage: {}", usage.map_or(*name, |builtin| builtin.usage));
            }
            [] => {}
        }
        Ok(Onward::Yes)
    }
}
