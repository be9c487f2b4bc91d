//! A shell between two lines: the session that lives on, and what is chosen for the pipelines to come.

use std::path::{Path, PathBuf};

use pipeline::link::LinkSpec;
use pipeline::syntax::Script;
use pipeline::{Event, Finished, Group, Keep, RunOptions, Session, State, Watch};

use crate::after;
use crate::builtins::{Segment, segments};
use crate::say::{Said, Voice};
use crate::scratch::Scratch;

/// A shell.
pub struct Shell {
    pub(crate) session: Session,
    pub(crate) via: LinkSpec,
    pub(crate) stats: bool,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) voice: Voice,
    /// The last text with a link in it, for `compare`.
    pub(crate) last: Option<String>,
    pipefail: bool,
    /// Where links and presets keep files.
    pub(crate) scratch: Scratch,
}

/// What a text asks of the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    /// The next one.
    Yes,
    /// Its end, with this status.
    Leave(i32),
    /// Its end by this signal.
    EndedBy(i32),
}

impl Shell {
    /// A shell that runs in `session`, over `via`.
    pub fn new(session: Session, via: LinkSpec, pipefail: bool) -> Self {
        Self {
            session,
            via,
            stats: false,
            keep: None,
            voice: Voice::default(),
            last: None,
            pipefail,
            scratch: Scratch::default(),
        }
    }

    pub(crate) fn at_prompt(&self) -> bool {
        self.session.jobs.is_some()
    }

    /// Runs a text: our own commands here, the rest by `pipeline`.
    pub(crate) fn take(
        &mut self,
        script: &Script,
        text: &str,
        asked_to_end: &dyn Fn() -> Option<i32>,
    ) -> Onward {
        let segments = segments(text, script, &self.session, self.at_prompt());
        let count = segments.len();
        for (index, segment) in segments.into_iter().enumerate() {
            let onward = match segment {
                Segment::Ours(words) => self.ours(&words),
                Segment::Text(piece) if piece == text => self.run(script, text, true, asked_to_end),
                Segment::Text(piece) => match pipeline::syntax::parse(piece) {
                    Ok(script) => self.run(&script, piece, index + 1 == count, asked_to_end),
                    Err(error) => Err(error.into()),
                },
            };
            match onward {
                Ok(Onward::Yes) => {}
                Ok(end) => return end,
                Err(error) => {
                    self.voice.error(&error);
                    self.session.set_status(1);
                }
            }
        }
        Onward::Yes
    }

    /// Runs a text that `pipeline` takes, and says what there is to say of it.
    pub(crate) fn run(
        &mut self,
        script: &Script,
        text: &str,
        last: bool,
        asked_to_end: &dyn Fn() -> Option<i32>,
    ) -> anyhow::Result<Onward> {
        let prompt = self.at_prompt();
        let folder = if self.via.has_names() { self.scratch.path()? } else { std::env::temp_dir() };
        let keep = self.keep.as_ref().map(|keep| Keep::new(&next_folder(keep), false, script)).transpose()?;
        let options = RunOptions {
            via: &self.via,
            folder: &folder,
            pipefail: self.pipefail,
            keep: keep.as_ref(),
            group: if prompt { Group::New } else { Group::Ours },
            asked_to_end,
        };
        self.session.stays = prompt || !last;
        let watch = (prompt && self.stats).then(|| Watch::new(None));
        let finished = pipeline::run(script, text, &mut self.session, &options, watch)?;
        if !finished.links.is_empty() {
            self.last = Some(text.trim().to_owned());
        }
        if prompt {
            self.tell(&finished);
        } else {
            for trouble in finished.links.iter().filter_map(|link| link.trouble.as_ref()) {
                self.voice.say(Said::Error, &format!("hosepipe: {trouble}"));
            }
        }
        Ok(match finished.ended_by {
            Some(INTERRUPTED) if prompt => Onward::Yes,
            Some(signal) => Onward::EndedBy(signal),
            None if finished.left => Onward::Leave(finished.status),
            None => Onward::Yes,
        })
    }

    fn tell(&self, finished: &Finished) {
        let interrupted = finished.stages.iter().any(|stage| stage.signal == Some(INTERRUPTED));
        if interrupted {
            // The terminal has shown `^C` and no more.
            self.voice.say(Said::Plain, "");
        }
        for event in &finished.parked {
            self.tell_of_job(event);
        }
        for line in after::failures(finished) {
            self.voice.say(Said::Aside, &line);
        }
        if self.stats && !interrupted {
            for line in after::statistics(finished) {
                self.voice.say(Said::Aside, &line);
            }
        }
    }

    pub(crate) fn tell_of_job(&self, event: &Event) {
        let state = match event.state {
            State::Running => "runs in the background".to_owned(),
            State::Stopped => format!("stopped (fg {} goes on)", event.number),
            State::Ended(pipeline::Ending::Left(0)) => "done".to_owned(),
            State::Ended(pipeline::Ending::Left(status)) => format!("left with status {status}"),
            State::Ended(pipeline::Ending::Killed(signal)) => {
                format!("ended by {}", model::signal_name(signal))
            }
        };
        let begin = if event.state == State::Stopped { "\n" } else { "" };
        self.voice.say(Said::Plain, &format!("{begin}[{}] {state}: {}", event.number, event.text.trim()));
    }
}

/// SIGINT (signal(7)).
const INTERRUPTED: i32 = 2;

/// The first numbered folder that is not there yet: what an earlier line kept is not overwritten.
fn next_folder(keep: &Path) -> PathBuf {
    (1_u32..).map(|number| keep.join(number.to_string())).find(|folder| !folder.exists()).unwrap_or_default()
}
