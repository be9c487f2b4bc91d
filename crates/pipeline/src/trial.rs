//! One timed run of a text, its output counted and hashed, that leaves this process as it was.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use mechanism::Folder;
use rustix::fs::Mode;
use rustix::process::umask;

use crate::capture::{Capture, Output};
use crate::execute::{Place, RunError, execute_text};
use crate::link::LinkSpec;
use crate::run::{RunOptions, run};
use crate::session::Session;
use crate::spawn::Group;
use crate::standard::Standard;
use crate::syntax::Script;

/// What carries a text.
#[derive(Debug, Clone)]
pub enum Carrier {
    /// Ourselves, over a link.
    Link(LinkSpec),
    /// The shell itself, over its own pipes: the reference.
    Shell,
}

/// A trial that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// From before the first stage was started until the last had ended.
    pub wall: Duration,
    /// The status of the whole.
    pub status: i32,
    /// What came out.
    pub output: Output,
    /// Bytes that links stored in a file system; `None` where they store none.
    pub stored_bytes: Option<u64>,
    /// What went wrong in a link.
    pub trouble: Option<String>,
    /// The signal that ended it, and asks us to end.
    pub ended_by: Option<i32>,
}

/// Whether a trial may complain where the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaints {
    /// On standard error.
    Shown,
    /// Nowhere: they were shown before.
    Hidden,
}

/// Runs a text once in a session of its own, with empty input.
///
/// # Errors
/// A link or a stage could not be made.
pub fn trial(
    script: &Script,
    text: &str,
    mut session: Session,
    carrier: &Carrier,
    folder: &Folder,
    complaints: Complaints,
) -> Result<Trial, RunError> {
    let (writing, capture) = Capture::start().map_err(RunError::system("pipe"))?;
    let null = |write: bool| {
        let opened = File::options().read(true).write(write).open("/dev/null");
        opened.map_err(RunError::system("/dev/null"))
    };
    session.standard = Standard {
        stdin: Some(null(false)?.into()),
        stdout: Some(writing),
        stderr: match complaints {
            Complaints::Shown => None,
            Complaints::Hidden => Some(null(true)?.into()),
        },
    };
    let place = Standpoint::here();
    let made = match carrier {
        Carrier::Link(via) => {
            let options = RunOptions {
                via,
                folder,
                pipefail: false,
                keep: None,
                group: Group::Ours,
                asked_to_end: &|| None,
            };
            run(script, text, &mut session, &options, None).map(|finished| {
                let stored = finished.links.iter().filter_map(|link| link.stored_bytes);
                let stores = finished.links.iter().any(|link| link.stored_bytes.is_some());
                Trial {
                    wall: finished.wall,
                    status: finished.status,
                    output: Output { bytes: 0, hash: String::new() },
                    stored_bytes: stores.then(|| stored.sum()),
                    trouble: finished.links.iter().find_map(|link| link.trouble.clone()),
                    ended_by: finished.ended_by,
                }
            })
        }
        Carrier::Shell => in_the_shell(text, &session),
    };
    drop(place);
    drop(session);
    let output = capture.finish();
    made.map(|trial| Trial { output, ..trial })
}

fn in_the_shell(text: &str, session: &Session) -> Result<Trial, RunError> {
    let began = Instant::now();
    let typed = text;
    let text = &session.text_for_shell(text, 1);
    let execution = execute_text(text, typed, session, (Group::Ours, Place::Front), None)?;
    Ok(Trial {
        wall: began.elapsed(),
        status: execution.stages.first().map_or(0, |(_, account)| account.ending.status()),
        output: Output { bytes: 0, hash: String::new() },
        stored_bytes: None,
        trouble: None,
        ended_by: execution.asked_to_end,
    })
}

/// Where this process stands; dropped, it stands there again, wherever a text has gone.
struct Standpoint {
    folder: io::Result<std::path::PathBuf>,
    mask: Mode,
}

impl Standpoint {
    fn here() -> Self {
        let mask = umask(Mode::empty());
        umask(mask);
        Self { folder: std::env::current_dir(), mask }
    }
}

impl Drop for Standpoint {
    fn drop(&mut self) {
        if let Ok(folder) = &self.folder {
            // A folder that the text itself has removed cannot be come back to.
            let _ = std::env::set_current_dir(folder);
        }
        umask(self.mask);
    }
}
