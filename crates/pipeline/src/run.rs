//! A whole text: its items one after the other, as bash would come to them.

use std::io::Write;
use std::time::{Duration, Instant};

use mechanism::Folder;
use model::{LinkRecord, StageRecord};

use crate::accounts::{link_record, stage_record};
use crate::builtins::must_stay_in_one_shell;
use crate::execute::{Execution, Place, Plumbing, RunError, execute, execute_text};
use crate::jobs::{Event, Parked, State};
use crate::keep::Keep;
use crate::launch::needs_no_shell;
use crate::link::{LinkSpec, Order};
use crate::session::Session;
use crate::spawn::Group;
use crate::supervise::Ending;
use crate::syntax::{Item, Join, Pipeline, Script, Timed, in_background};
use crate::watch::Watch;

/// How a text is run.
pub struct RunOptions<'a> {
    /// What stands between stages.
    pub via: &'a LinkSpec,
    /// For what a link stores or names.
    pub folder: &'a Folder,
    /// A pipeline's status is its last failing stage's (`set -o pipefail`).
    pub pipefail: bool,
    /// Where what flows through the links is kept.
    pub keep: Option<&'a Keep>,
    /// In which process group stages run.
    pub group: Group,
    /// The signal that asks the whole to end, where one came while no stage ran.
    pub asked_to_end: &'a dyn Fn() -> Option<i32>,
}

/// A text that has run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// From before the first stage was started until the last had ended.
    pub wall: Duration,
    /// The status of the whole, as bash gives it.
    pub status: i32,
    /// The statuses of the last pipeline's stages.
    pub pipestatus: Vec<i32>,
    /// Every stage that was started.
    pub stages: Vec<StageRecord>,
    /// Every link.
    pub links: Vec<LinkRecord>,
    /// The signal that ended the text before its end.
    pub ended_by: Option<i32>,
    /// The text that ran in one shell, with that shell's own pipes, because of what it leaves behind there.
    pub in_one_shell: Option<String>,
    /// Pipelines that were stopped, or left to run in the background (only under job control).
    pub parked: Vec<Event>,
    /// Whether an item ended the whole shell (`exit`), where another text would have followed.
    pub left: bool,
}

/// Runs a text, item by item. `show`, where there is one, is called while stages run; with it, or with `account`,
/// what each stage read, wrote and waited for is looked at.
///
/// # Errors
/// A link or a stage could not be made; what had been started has been ended.
pub fn run(
    script: &Script,
    text: &str,
    session: &mut Session,
    options: &RunOptions<'_>,
    watch: Option<Watch<'_>>,
) -> Result<Finished, RunError> {
    session.options.pipefail |= options.pipefail;
    let mut walk = Walk {
        session,
        options,
        watch,
        pipelines: 0,
        cut_short: false,
        finished: Finished {
            wall: Duration::ZERO,
            status: 0,
            pipestatus: vec![0],
            stages: Vec::new(),
            links: Vec::new(),
            ended_by: None,
            in_one_shell: None,
            parked: Vec::new(),
            left: false,
        },
    };
    let began = Instant::now();
    for (index, item) in script.items.iter().enumerate() {
        if let Some(signal) = (options.asked_to_end)() {
            walk.finished.ended_by = Some(signal);
            break;
        }
        let status = walk.session.status;
        if (item.join == Join::IfOk && status != 0) || (item.join == Join::IfFailed && status == 0) {
            continue;
        }
        let next = script.items.get(index + 1).map(|next| next.offset);
        let here = Here {
            item: index,
            line: item.pipeline.stages.first().map_or(1, |stage| stage.line),
            rest: &text[item.offset..],
            last: next.is_none(),
            next_in_line: next.is_some_and(|next| !text[item.offset..next].contains('\n')),
        };
        if walk.pass(item, &here)? == Onward::No {
            break;
        }
    }
    walk.finished.wall = began.elapsed();
    walk.finished.status = walk.session.status;
    walk.finished.pipestatus.clone_from(&walk.session.statuses);
    Ok(walk.finished)
}

/// Where in its text an item stands.
struct Here<'a> {
    /// Its place among the items.
    item: usize,
    /// The line it begins in, from 1.
    line: usize,
    /// The text from it on.
    rest: &'a str,
    /// Whether nothing follows it.
    last: bool,
    /// Whether the next item stands in the same line: an error that makes a shell give up a line keeps it from that.
    next_in_line: bool,
}

/// Whether the next item is come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Onward {
    Yes,
    No,
}

/// A walk over a text's items.
struct Walk<'a, 'w> {
    session: &'a mut Session,
    options: &'a RunOptions<'a>,
    watch: Option<Watch<'w>>,
    pipelines: u32,
    /// Of the last pipeline, a reader saw an end that was none.
    cut_short: bool,
    finished: Finished,
}

impl Walk<'_, '_> {
    /// Runs an item.
    fn pass(&mut self, item: &Item, here: &Here<'_>) -> Result<Onward, RunError> {
        let pipeline = &item.pipeline;
        let began = Instant::now();
        let before = self.finished.stages.len();
        let kind = self.kind_of(pipeline, here.last);
        let onward = match kind {
            Kind::Plumbed => self.plumbed(here.item, pipeline, Place::Front)?,
            Kind::Background => return self.behind(here, pipeline),
            Kind::RestOfText => {
                let rest = before_pipeline(pipeline).to_owned() + here.rest;
                let text = self.session.text_for_shell(&rest, here.line);
                self.shelled(&text, &rest, Place::Front)?;
                self.finished.in_one_shell = (!here.last).then_some(rest);
                return Ok(Onward::No);
            }
            Kind::Remembered => self.remembered(pipeline, here)?,
        };
        if pipeline.timed != Timed::No {
            report_time(pipeline.timed, began.elapsed(), &self.finished.stages[before..]);
        }
        // A shell negates by itself what it runs, or `! exit 3` would be 0.
        if kind == Kind::Plumbed {
            let status = self.session.status_of_stages();
            self.session.status = if pipeline.negated { i32::from(status == 0) } else { status };
            // Data that was cut short must not look like a normal end, whatever the stages made of it.
            if self.cut_short && self.session.status == 0 {
                self.session.status = 1;
            }
        }
        let gives_up =
            self.session.options.errexit && item.ends_list && !pipeline.negated && self.session.status != 0;
        Ok(if gives_up { Onward::No } else { onward })
    }

    fn kind_of(&self, pipeline: &Pipeline, last: bool) -> Kind {
        let session = &self.session;
        if session.options.traced {
            return Kind::RestOfText;
        }
        let [stage] = pipeline.stages.as_slice() else { return Kind::Plumbed };
        if session.jobs.is_some() && pipeline.timed == Timed::No && in_background(pipeline).is_some() {
            return Kind::Background;
        }
        if needs_no_shell(stage, session) {
            return Kind::Plumbed;
        }
        match last && !(session.stays && session.shell.is_bash) {
            true if pipeline.negated => Kind::RestOfText,
            true => Kind::Plumbed,
            false
                if !session.shell.is_bash || must_stay_in_one_shell(&session.with_last_pid(&stage.text)) =>
            {
                Kind::RestOfText
            }
            false => Kind::Remembered,
        }
    }

    /// A pipeline over our own links.
    fn plumbed(&mut self, item: usize, pipeline: &Pipeline, place: Place) -> Result<Onward, RunError> {
        let commands: Vec<&str> = pipeline.stages.iter().map(|stage| stage.text.as_str()).collect();
        if let Some(watch) = &mut self.watch {
            watch.begin(&commands);
        }
        let plumbing = Plumbing {
            via: self.options.via,
            folder: self.options.folder,
            keep: self.options.keep.map(|keep| (keep, item)),
        };
        let watch = self.watch.as_mut();
        let execution = execute(pipeline, self.session, &plumbing, (self.options.group, place), watch)?;
        Ok(self.book(&commands, &pipeline.text, execution))
    }

    /// A list in the background: one pipeline over our own links, more than one in a shell of its own.
    fn behind(&mut self, here: &Here<'_>, pipeline: &Pipeline) -> Result<Onward, RunError> {
        let Some(script) = in_background(pipeline) else { return Ok(Onward::Yes) };
        match script.items.as_slice() {
            [only] if self.options.via.order() == Order::Parallel && !only.pipeline.negated => {
                self.plumbed(here.item, &only.pipeline, Place::Behind)?;
            }
            _ => {
                let list = pipeline.text.trim_end().trim_end_matches('&');
                let text = self.session.text_for_shell(list, here.line);
                self.shelled(&text, list, Place::Behind)?;
            }
        }
        self.session.set_status(0);
        Ok(Onward::Yes)
    }

    /// One stage that a shell runs and that may leave something behind for the next item.
    fn remembered(&mut self, pipeline: &Pipeline, here: &Here<'_>) -> Result<Onward, RunError> {
        let notebook = self.session.notebook().map_err(RunError::system("memfd_create"))?;
        let text = if pipeline.negated { format!("! {}", pipeline.text) } else { pipeline.text.clone() };
        let then = if here.next_in_line { "; " } else { "\n" };
        let text = self.session.text_for_shell(&text, here.line) + then + &notebook.closing_text();
        let parked = self.finished.parked.len();
        let onward = self.shelled(&text, &pipeline.text, Place::Front)?;
        if self.finished.parked.len() > parked {
            if let Some(jobs) = &mut self.session.jobs {
                jobs.hold(notebook);
            }
            return Ok(onward);
        }
        let went_on = self.session.take_over(notebook).map_err(RunError::system("the shell's notes"))?;
        // A shell that a signal has ended has not written anything down either.
        let killed = self.finished.stages.last().is_some_and(|stage| stage.signal.is_some());
        self.finished.left |= !went_on && !killed;
        Ok(if went_on { onward } else { Onward::No })
    }

    /// A text that a shell runs in one piece.
    fn shelled(&mut self, text: &str, command: &str, place: Place) -> Result<Onward, RunError> {
        let watch = self.watch.as_mut();
        let execution = execute_text(text, command, self.session, (self.options.group, place), watch)?;
        let onward = self.book(&[command], command, execution);
        self.session.status = self.session.status_of_stages();
        Ok(onward)
    }

    /// Takes what a pipeline did into the books; says whether a signal ends the whole text.
    fn book(&mut self, commands: &[&str], text: &str, execution: Execution) -> Onward {
        let pipeline = self.pipelines;
        self.pipelines += 1;
        self.cut_short = false;
        if let Some((group, parked)) = execution.parked {
            let state = parked.state();
            let parked = Parked {
                commands: commands.iter().map(|&command| command.to_owned()).collect(),
                via: self.options.via.to_string(),
                seen: self.watch.as_ref().map(Watch::all_seen).unwrap_or_default(),
                ..parked
            };
            if let Some(jobs) = &mut self.session.jobs {
                self.finished.parked.push(jobs.park(text, group, parked, state));
            }
            let stopped = 128 + libc::SIGTSTP;
            self.session.statuses = vec![if state == State::Stopped { stopped } else { 0 }];
            return Onward::Yes;
        }
        self.session.statuses = execution.stages.iter().map(|(_, account)| account.ending.status()).collect();
        for (index, (pid, account)) in execution.stages.iter().enumerate() {
            let seen = self.watch.as_ref().map(|watch| watch.seen(index));
            let command = commands.get(index).copied().unwrap_or_default();
            self.finished.stages.push(stage_record(pipeline, command, *pid, account, seen));
        }
        let mut links = execution.links.iter().zip(&self.session.statuses);
        self.cut_short =
            links.any(|(link, writer)| link.report.cut_short || (link.report.full && *writer != 0));
        self.finished.links.extend(
            execution.links.into_iter().map(|link| link_record(pipeline, self.options.via.to_string(), link)),
        );
        let killed_by = execution.stages.last().map(|(_, account)| account.ending);
        match execution.asked_to_end {
            // A program may take Ctrl-C as something else than its end: then the list goes on (as in bash).
            Some(signal @ (libc::SIGINT | libc::SIGQUIT)) if killed_by != Some(Ending::Killed(signal)) => {
                Onward::Yes
            }
            Some(signal) => {
                self.finished.ended_by = Some(signal);
                Onward::No
            }
            None => Onward::Yes,
        }
    }
}

/// How an item is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Stage by stage, over our own links.
    Plumbed,
    /// By a shell that writes down what it leaves behind.
    Remembered,
    /// By a shell, with all that follows.
    RestOfText,
    /// Without being waited for.
    Background,
}

/// What stands before a pipeline's own text.
fn before_pipeline(pipeline: &Pipeline) -> &'static str {
    match (pipeline.timed, pipeline.negated) {
        (Timed::No, false) => "",
        (Timed::No, true) => "! ",
        (Timed::Bash, false) => "time ",
        (Timed::Bash, true) => "time ! ",
        (Timed::Posix, false) => "time -p ",
        (Timed::Posix, true) => "time -p ! ",
    }
}

/// What `time` prints on standard error (bash(1), TIMEFORMAT).
fn report_time(timed: Timed, real: Duration, stages: &[StageRecord]) {
    let user = Duration::from_nanos(stages.iter().map(|stage| stage.user_ns).sum());
    let system = Duration::from_nanos(stages.iter().map(|stage| stage.system_ns).sum());
    let lines = [("real", real), ("user", user), ("sys", system)].map(|(name, time)| {
        let seconds = time.as_secs_f64();
        match timed {
            Timed::Posix => format!("{name} {seconds:.2}"),
            _ => format!("{name}\t{}m{:.3}s", (seconds / 60.0) as u64, seconds % 60.0),
        }
    });
    let before = if timed == Timed::Bash { "\n" } else { "" };
    // That it cannot be said is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{before}{}", lines.join("\n"));
}
