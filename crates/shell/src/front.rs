//! A shell between two lines: the session that lives on, and what is chosen for the pipelines to come.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::temporary_folder;
use pipeline::link::{Folder, LinkSpec};
use pipeline::syntax::{Join, Script};
use pipeline::{Finished, Group, Keep, RunOptions, Session, Watch};

use crate::after;
use crate::cut::{Segment, segments, text_until};
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
        self.session.jobs().is_some()
    }

    /// Runs a text: our own commands here, the rest by `pipeline`.
    pub(crate) fn take(
        &mut self,
        script: &Script,
        text: &str,
        asked_to_end: &dyn Fn() -> Option<i32>,
    ) -> Onward {
        for segment in segments(script, &self.session, self.at_prompt()) {
            let onward = match segment {
                Segment::Ours(index, words) => {
                    let item = &script.items[index];
                    if skipped(item.join, self.session.status()) {
                        continue;
                    }
                    self.take_ours(item, &words, asked_to_end)
                }
                Segment::Items(items) => {
                    let begin = items.start.checked_sub(1).map_or(0, |before| {
                        let before = &script.items[before];
                        before.offset + before.pipeline.text.len()
                    });
                    let last = items.end == script.items.len();
                    let text = text_until(text, script, items.end);
                    let compared = text
                        .get(begin..)
                        .unwrap_or(text)
                        .trim_start_matches([' ', '\t', '\n', ';', '&', '|']);
                    let items = Script { items: script.items[items].to_vec() };
                    self.run(&items, text, last, Some(compared), asked_to_end)
                }
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

    /// Runs a text that `pipeline` takes, and says what there is to say of it. Where it had links, `compare` compares
    /// `compared` from then on.
    pub(crate) fn run(
        &mut self,
        script: &Script,
        text: &str,
        last: bool,
        compared: Option<&str>,
        asked_to_end: &dyn Fn() -> Option<i32>,
    ) -> anyhow::Result<Onward> {
        let prompt = self.at_prompt();
        let folder =
            Folder::at(&if self.via.has_names() { self.scratch.path()? } else { temporary_folder() });
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
        if !finished.links.is_empty()
            && let Some(compared) = compared
        {
            self.last = Some(compared.trim().to_owned());
        }
        if prompt {
            self.tell(&finished, Duration::ZERO);
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

    /// Says what a text did; `stopped_for` is how long its pipeline stood still.
    pub(crate) fn tell(&self, finished: &Finished, stopped_for: Duration) {
        let interrupted = finished.stages.iter().any(|stage| stage.signal == Some(INTERRUPTED));
        if interrupted {
            // The terminal has shown `^C` and no more.
            self.voice.say(Said::Plain, "");
        }
        for event in &finished.parked {
            self.voice.tell_of_job(event);
        }
        let mut lines = after::failures(finished);
        if self.stats && !interrupted {
            lines.extend(after::statistics(finished, stopped_for));
        }
        if !lines.is_empty() && finished.parked.is_empty() {
            self.voice.begin_a_line();
        }
        lines.iter().for_each(|line| self.voice.say(Said::Aside, line));
    }
}

/// Whether an item is passed over, after this status.
fn skipped(join: Join, status: i32) -> bool {
    (join == Join::IfOk && status != 0) || (join == Join::IfFailed && status == 0)
}

/// SIGINT (signal(7)).
pub(crate) const INTERRUPTED: i32 = 2;

/// The first numbered folder that is not there yet: what an earlier line kept is not overwritten.
fn next_folder(keep: &Path) -> PathBuf {
    (1_u32..).map(|number| keep.join(number.to_string())).find(|folder| !folder.exists()).unwrap_or_default()
}
