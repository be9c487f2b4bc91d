//! The commands of the prompt, done.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use pipeline::link::LinkSpec;
use pipeline::syntax::parse;
use pipeline::{Jobs, State};

use crate::builtins;
use crate::config::history_file;
use crate::front::{Onward, Shell};
use crate::presets::{self, Needs, PRESETS};
use crate::say::Said;

/// Earlier lines that `history` shows.
const HISTORY_LINES: usize = 50;

impl Shell {
    /// Does a command of ours.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(crate) fn ours(&mut self, words: &[String]) -> anyhow::Result<Onward> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.session.set_status(if words[0] == "exit" { self.session.status() } else { 0 });
        match words.as_slice() {
            ["via"] => println!("{}", self.via),
            ["via", link] => {
                let links = || format!("links are {}", LinkSpec::names().collect::<Vec<_>>().join(", "));
                self.via = LinkSpec::parse(link).map_err(|problem| anyhow!("{problem}; {}", links()))?;
            }
            ["stats", "on"] => self.stats = true,
            ["stats", "off"] => self.stats = false,
            ["stats"] => println!("{}", if self.stats { "on" } else { "off" }),
            ["keep", "off"] => self.keep = None,
            ["keep"] => match &self.keep {
                Some(folder) => println!("{}", folder.display()),
                None => println!("off"),
            },
            ["keep", folder] => self.keep = Some(std::path::absolute(PathBuf::from(folder))?),
            ["presets"] => {
                for (index, preset) in PRESETS.iter().enumerate() {
                    println!("{}  {}", index + 1, preset.line());
                }
            }
            ["preset", number] => return self.preset(number),
            ["compare"] => return self.compare(None),
            ["compare", links] => return self.compare(Some(links)),
            ["jobs"] => {
                for event in self.jobs()?.list() {
                    self.tell_of_job(&event);
                }
            }
            ["fg"] => self.foreground(None)?,
            ["fg", job] => self.foreground(Some(job))?,
            ["bg"] => self.background(None)?,
            ["bg", job] => self.background(Some(job))?,
            ["history"] => history(HISTORY_LINES),
            ["history", lines] => history(lines.parse().context("history takes a number of lines")?),
            ["help"] => print!("{}", builtins::help()),
            ["exit"] => return Ok(Onward::Leave(self.session.status())),
            ["exit", status] => {
                let status: i32 = status.parse().context("exit takes a number")?;
                return Ok(Onward::Leave(status & 0xff));
            }
            [name, ..] => {
                let usage = builtins::BUILTINS.iter().find(|builtin| builtin.name == *name);
                bail!("usage: {}", usage.map_or(*name, |builtin| builtin.usage));
            }
            [] => {}
        }
        Ok(Onward::Yes)
    }

    fn preset(&mut self, number: &str) -> anyhow::Result<Onward> {
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let Some(preset) = index.and_then(|index| PRESETS.get(index)) else {
            bail!("there is no preset `{number}`: 1 to {} are there, `presets` shows them", PRESETS.len());
        };
        let place = self.scratch.path()?;
        if preset.needs == Needs::Files && !place.join("files").exists() {
            self.voice.say(Said::Aside, "making the folder of files, once …");
        }
        presets::make(preset.needs, &place)
            .with_context(|| format!("cannot make the files in {}", place.display()))?;
        let text = preset.text(&place);
        self.voice.say(Said::Aside, &text);
        self.run(&parse(&text)?, &text, false, &|| None)
    }

    /// `hosepipe compare` on the last pipeline; it knows nothing of what was defined here.
    fn compare(&mut self, links: Option<&str>) -> anyhow::Result<Onward> {
        let Some(last) = self.last.clone() else {
            bail!("there is no pipeline yet to compare: run one first")
        };
        let hosepipe = std::env::current_exe().context("this program's own file")?;
        let via = links.map(|links| format!("--via {} ", quoted(links))).unwrap_or_default();
        let text = format!("{} compare {via}-- {}", quoted(&hosepipe.to_string_lossy()), quoted(&last));
        let onward = self.run(&parse(&text)?, &text, false, &|| None);
        self.last = Some(last);
        onward
    }

    fn jobs(&mut self) -> anyhow::Result<&mut Jobs> {
        self.session.jobs.as_mut().context("there is job control at a prompt only")
    }

    /// The job that a word names (`2`, `%2`), or the current one.
    fn job(&mut self, word: Option<&str>) -> anyhow::Result<u32> {
        let jobs = self.jobs()?;
        match word {
            None => jobs.current().context("there is no job"),
            Some(word) => {
                let number = word.strip_prefix('%').unwrap_or(word).parse().ok();
                let known = number.filter(|number| jobs.list().iter().any(|job| job.number == *number));
                known.with_context(|| format!("there is no job `{word}`: `jobs` shows them"))
            }
        }
    }

    fn foreground(&mut self, word: Option<&str>) -> anyhow::Result<()> {
        let number = self.job(word)?;
        if let Some(job) = self.jobs()?.list().into_iter().find(|job| job.number == number) {
            self.voice.say(Said::Plain, job.text.trim());
        }
        let Some(event) = self.jobs()?.in_front(number)? else { return Ok(()) };
        match event.state {
            State::Ended(ending) => self.session.set_status(ending.status()),
            _ => {
                self.session.set_status(128 + STOPPED);
                self.tell_of_job(&event);
            }
        }
        Ok(())
    }

    fn background(&mut self, word: Option<&str>) -> anyhow::Result<()> {
        let number = self.job(word)?;
        if let Some(event) = self.jobs()?.behind(number) {
            self.tell_of_job(&event);
        }
        Ok(())
    }
}

/// SIGTSTP (signal(7)).
const STOPPED: i32 = 20;

/// Prints earlier lines, the last ones.
fn history(lines: usize) {
    let text = history_file().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    let first = all.len().saturating_sub(lines);
    for (index, line) in all.iter().enumerate().skip(first) {
        // As reedline writes a new line within an entry.
        println!("{:>5}  {}", index + 1, line.replace("<\\n>", "\n       "));
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
