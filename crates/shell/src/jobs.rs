//! Commands about jobs: which one a word means, and what is done with it.

use anyhow::{Context, bail};
use pipeline::syntax::{Stage, Start};
use pipeline::{Ending, Event, Jobs, State, Waited};

use crate::front::{INTERRUPTED, Onward, Shell};
use crate::say::{Said, Voice};

/// Why there are no jobs.
const NO_JOB_CONTROL: &str = "there is job control at a prompt only";
/// SIGTSTP (signal(7)).
const STOPPED: i32 = 20;
/// What bash answers where a process is none of its own (bash(1), wait).
const NO_JOB: i32 = 127;

impl Shell {
    /// What `jobs` prints.
    pub(crate) fn job_list(&self) -> anyhow::Result<String> {
        let jobs = self.session.jobs().context(NO_JOB_CONTROL)?;
        Ok(jobs.list().iter().map(|event| line(event) + "\n").collect())
    }

    fn jobs(&mut self) -> anyhow::Result<&mut Jobs> {
        self.session.jobs_mut().context(NO_JOB_CONTROL)
    }

    /// The job that a word names, or the current one.
    fn job(&mut self, word: Option<&str>) -> anyhow::Result<u32> {
        let jobs = self.jobs()?;
        match word {
            None => jobs.current().context("there is no job"),
            Some("$!") => {
                let pid = jobs.last_pid();
                pid.and_then(|pid| jobs.number_of(pid)).context("there is no job that was started last")
            }
            Some(word) => named(&jobs.list(), jobs.current(), word)
                .with_context(|| format!("there is no job `{word}`: `jobs` shows them")),
        }
    }

    pub(crate) fn foreground(&mut self, word: Option<&str>) -> anyhow::Result<Onward> {
        let number = self.job(word)?;
        let account = self.stats;
        if let Some(job) = self.jobs()?.list().into_iter().find(|job| job.number == number) {
            self.voice.say(Said::Plain, job.text.trim());
        }
        let Some(front) = self.jobs()?.in_front(number, account)? else { return Ok(Onward::Yes) };
        match (front.event.state, &front.finished) {
            (State::Ended(ending), Some(finished)) => {
                self.session.set_status(ending.status());
                self.tell(finished, front.stopped_for);
            }
            _ => {
                self.session.set_status(128 + STOPPED);
                self.voice.tell_of_job(&front.event);
            }
        }
        Ok(Onward::Yes)
    }

    pub(crate) fn background(&mut self, word: Option<&str>) -> anyhow::Result<()> {
        let number = self.job(word)?;
        if let Some(event) = self.jobs()?.behind(number) {
            self.voice.tell_of_job(&event);
        }
        Ok(())
    }

    /// Waits for jobs one after the other; the last one's status is the status. Ctrl-C ends the waiting.
    pub(crate) fn wait(&mut self, words: &[&str]) -> anyhow::Result<Onward> {
        let voice = self.voice;
        let mut tell = |event: &Event| voice.tell_of_job(event);
        let mut waited = Vec::new();
        if words.is_empty() {
            waited.push((None, self.jobs()?.wait(None, &mut tell)?));
        }
        for word in words {
            let pid = self.process(word)?;
            waited.push((Some(pid), self.jobs()?.wait(Some(pid), &mut tell)?));
            if let Some((_, Waited::Signal(_))) = waited.last() {
                break;
            }
        }
        for (pid, waited) in waited {
            match (waited, pid) {
                (Waited::Ended(ending), _) => self.session.set_status(ending.status()),
                (Waited::NoneRuns, None) => self.session.set_status(0),
                (Waited::NoneRuns, Some(pid)) => {
                    self.voice.say(Said::Error, &format!("hosepipe: {pid} is no job of this shell"));
                    self.session.set_status(NO_JOB);
                }
                (Waited::Stopped, _) => {
                    self.voice.say(Said::Error, "hosepipe: the job is stopped: `fg` or `bg` lets it go on");
                    self.session.set_status(128 + STOPPED);
                }
                (Waited::Signal(INTERRUPTED), _) => {
                    self.voice.say(Said::Plain, "");
                    self.session.set_status(128 + INTERRUPTED);
                }
                (Waited::Signal(signal), _) => return Ok(Onward::EndedBy(signal)),
            }
        }
        Ok(Onward::Yes)
    }

    /// The number of the process that `wait` means by a word.
    fn process(&mut self, word: &str) -> anyhow::Result<i32> {
        if word == "$!" {
            return self.jobs()?.last_pid().context("nothing was started in the background yet");
        }
        if word.starts_with('%') {
            let number = self.job(Some(word))?;
            return self.jobs()?.pid_of(number).context("the job has no process any more");
        }
        let pid = word.parse().ok().filter(|pid| *pid > 0);
        pid.with_context(|| format!("wait takes %N, a process number or $!, not `{word}`"))
    }

    pub(crate) fn disown(&mut self, words: &[&str]) -> anyhow::Result<()> {
        let words: Vec<Option<&str>> =
            if words.is_empty() { vec![None] } else { words.iter().copied().map(Some).collect() };
        for word in words {
            let number = match word.and_then(|word| word.parse().ok()) {
                Some(pid) => {
                    self.jobs()?.number_of(pid).with_context(|| format!("{pid} is no job of this shell"))?
                }
                None => self.job(word)?,
            };
            let jobs = self.jobs()?;
            if jobs.needs_us(number) {
                bail!(
                    "job {number} cannot live on without this shell, which feeds its links: use `via pipe` for such a job"
                );
            }
            jobs.disown(number);
        }
        Ok(())
    }

    /// The stage that `kill` is where it names jobs: bash's own, on their process groups.
    pub(crate) fn kill(&mut self, words: &[&str], stage: &Stage) -> anyhow::Result<Stage> {
        let mut text = stage.text.clone();
        let mut groups = String::new();
        for word in words[1..].iter().filter(|word| word.starts_with('%')) {
            let number = self.job(Some(word))?;
            let group = self.jobs()?.group_of(number).context("the job has no processes any more")?;
            let mark = if groups.is_empty() { "-- " } else { "" };
            text = text.replacen(word, &format!("{mark}-{group}"), 1);
            groups.push_str(&format!(" -{group}"));
        }
        let ends = match words[1..] {
            ["-s" | "-n", signal, ..] => ends_a_job(signal),
            [option, ..] if option.starts_with('-') => ends_a_job(&option[1..]),
            _ => true,
        };
        if ends {
            // As in bash, one that is stopped is woken, so that it sees its end.
            text = format!("{{ {text} && kill -CONT --{groups}; }}");
        }
        Ok(Stage { text, line: stage.line, stderr_too: stage.stderr_too, start: Start::Shell })
    }
}

impl Voice {
    /// Says how a job is.
    pub(crate) fn tell_of_job(self, event: &Event) {
        let begin = if event.state == State::Stopped { "\n" } else { "" };
        self.say(Said::Plain, &format!("{begin}{}", line(event)));
    }
}

/// A job and how it is.
fn line(event: &Event) -> String {
    let state = match event.state {
        State::Running => "runs in the background".to_owned(),
        State::Stopped => format!("stopped (fg {} goes on)", event.number),
        State::Ended(Ending::Left(0)) => "done".to_owned(),
        State::Ended(Ending::Left(status)) => format!("left with status {status}"),
        State::Ended(Ending::Killed(signal)) => format!("ended by {}", model::signal_name(signal)),
    };
    format!("[{}] {state}: {}", event.number, event.text.trim())
}

/// Whether a signal, as `kill` takes it, is one that a stopped job must be woken for (bash wakes it for these two).
fn ends_a_job(signal: &str) -> bool {
    matches!(signal.trim_start_matches("SIG"), "TERM" | "HUP" | "15" | "1")
}

/// The job that a word names (bash(1), JOB CONTROL): `2`, `%2`, `%%`, `%-`, `%sort`, `%?part`.
fn named(jobs: &[Event], current: Option<u32>, word: &str) -> Option<u32> {
    let name = word.strip_prefix('%').unwrap_or(word);
    let only = |found: &dyn Fn(&Event) -> bool| {
        let mut found = jobs.iter().filter(|job| found(job));
        found.next().filter(|_| found.next().is_none()).map(|job| job.number)
    };
    match name {
        "" | "%" | "+" => current,
        "-" => jobs.iter().rev().map(|job| job.number).find(|number| Some(*number) != current).or(current),
        _ => match (name.parse::<u32>(), name.strip_prefix('?')) {
            (Ok(number), _) => only(&|job| job.number == number),
            (_, _) if name == word => None,
            (_, Some(part)) => only(&|job| job.text.contains(part)),
            (_, None) => only(&|job| job.text.trim_start().starts_with(name)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_as_in_bash() {
        let job = |number, text: &str| Event { number, text: text.to_owned(), state: State::Running };
        let jobs = [job(1, "sleep 5 | cat"), job(2, "sort big"), job(4, "sleep 9")];
        let of = |word| named(&jobs, Some(4), word);
        assert_eq!(
            [of("2"), of("%2"), of("%%"), of("%+"), of("%-")],
            [Some(2), Some(2), Some(4), Some(4), Some(2)]
        );
        assert_eq!(
            [of("%sort"), of("%?big"), of("%sleep"), of("%3"), of("sort")],
            [Some(2), Some(2), None, None, None]
        );
    }

    #[test]
    fn signals_that_end() {
        assert!(["TERM", "SIGHUP", "15", "1"].into_iter().all(ends_a_job));
        assert!(!["STOP", "SIGKILL", "9", "CONT"].into_iter().any(ends_a_job));
    }
}
