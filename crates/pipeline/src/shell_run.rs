//! A text that a shell runs, and its result: the types that the server of the shell's links and the process that starts the shell share.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Duration;

use mechanism::{Folder, OpenError};
use model::{Bottleneck, Certainty, HeldBack, LatencyRecord, LinkRecord, StageRecord, describe_errno};
use observe::read_progress::ReadProgress;
use process::{Reach, Refused, shown_status};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::keep::Keep;
use crate::line_buffered::LineBuffered;
use crate::link::LinkSpec;
use crate::shell::{Kind, Shell};

/// What a shell is to run.
pub struct ShellRun<'a> {
    /// The shell.
    pub shell: &'a Shell,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Descriptors of this process, and the number that each has in the shell.
    pub streams: Vec<(OwnedFd, RawFd)>,
    /// The link between the stages of its pipelines; a person at a prompt can choose another.
    pub via: &'a LinkSpec,
    /// Where the bytes of the links are kept.
    pub keep: Option<Rc<Keep>>,
    /// How its stages are sampled while they run; `None` if they are not.
    pub watched: Option<Watched<'a>>,
    /// Which stages are made to write line by line; `None` for none.
    pub line_buffered: Option<LineBuffered>,
    /// Whether its stages are started so that their large buffers do not begin 16 bytes after the start of a page.
    pub align_buffers: bool,
    /// Whether the [`Summary`] has the stages and links. Otherwise it only says whether something was cut short.
    pub recorded: bool,
    /// System calls that fail with ENOSYS in the shell and in all its descendants.
    pub without: Option<&'a Refused>,
    /// What is added to its prompt.
    pub prompt: Option<Prompt<'a>>,
    /// What the shell is used for.
    pub shell_use: ShellUse,
}

/// Decides whether this process becomes the shell, and which processes get a signal that is sent to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellUse {
    /// A person types into it: this process becomes the shell over every link, so that the terminal's signals reach it at once. Data that
    /// was cut short does not change the status.
    Interactive,
    /// A script of `hosepipe sh`: this process becomes the shell over a plain pipe; over another link it starts the shell, and passes signals
    /// to the shell alone.
    Script,
    /// `hosepipe run`: this process starts the shell, and passes signals to all processes that have come from it, so that no stage is left.
    Run,
    /// As `Run`, for a trial of a comparison: a second request to end kills it.
    Trial,
}

impl ShellUse {
    pub(crate) fn reach(self) -> Reach {
        match self {
            Self::Interactive | Self::Script => Reach::Child,
            Self::Run => Reach::AllBelow,
            Self::Trial => Reach::Trial,
        }
    }
}

/// How stages are sampled.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// Bytes are counted, by a relay if there is no other way.
    pub meter: bool,
    /// Lines are counted, too.
    pub lines: bool,
    /// The time at which each line enters a link is noted.
    pub latency: bool,
    /// Shows the stages while they run; called in the process that serves the links.
    pub show: Option<&'a StagePainter<'a>>,
}

/// Where a shell's functions find their server.
pub struct ServerNames {
    /// The path of its socket, for [`crate::send_command`].
    pub socket: String,
    /// A file into which a line is written before a prompt.
    pub ask: String,
    /// A file from which the answer is then read, one line: what the prompt shows of the link.
    pub answer: String,
}

/// The start-up files of a shell with a prompt, and the arguments and variables that name them: made by the process that serves it.
#[derive(Default, Serialize, Deserialize)]
pub struct ShellStartup {
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Variables that are added to this program's environment.
    pub variables: Vec<(String, OsString)>,
    /// A file that it reads at its start, by the path /proc/PID/fd/N of the server.
    #[serde(skip)]
    pub file: Option<OwnedFd>,
    /// A folder that it reads at its start.
    #[serde(skip)]
    pub folder: Option<Folder>,
}

/// Why a text could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The system refused something.
    #[error("cannot run the shell {shell}: {call}: {}", describe_errno(.source))]
    System {
        /// The shell.
        shell: String,
        /// What was asked.
        call: &'static str,
        /// What it answered.
        source: io::Error,
    },
    /// There is no such link here, the start-up files of a prompt could not be made, or a run that was started reported a problem.
    #[error("{0}")]
    Reported(String),
    /// A run that was started ended with this status, and reported nothing.
    #[error("hosepipe run ended with status {0} and did not report on its links")]
    Silent(i32),
    /// The server was killed.
    #[error("the process that serves the links was killed; what flowed through them was cut short")]
    Killed,
}

/// What the stages and links of a text did, as the server of the shell reports it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Every stage that has ended, pipeline by pipeline.
    pub stages: Vec<StageRecord>,
    /// Every link, pipeline by pipeline.
    pub links: Vec<LinkRecord>,
    /// How long lines took, for each pipeline with at least two links that carried bytes; empty if the times were not noted.
    pub latency: Vec<LatencyRecord>,
    /// The bottleneck of the longest pipeline, where stages were sampled.
    pub bottleneck: Option<Bottleneck>,
    /// A reader saw the end of a stream that was not complete, or not all bytes could be kept.
    pub lost_bytes: bool,
    /// Programs in the background still hold links: the server goes on.
    pub serves_on: bool,
}

/// A text that has run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How the shell ended.
    pub ended: ExitStatus,
    /// From the shell's start until it ended.
    pub wall: Duration,
    /// What its stages and links did.
    pub summary: Summary,
}

impl Ran {
    /// The shell's status; at least 1 where bytes were lost, which must not look like a normal end.
    pub fn status(&self) -> i32 {
        let status = shown_status(self.ended);
        if self.summary.lost_bytes { status.max(1) } else { status }
    }
}

/// Makes the line after a pipeline from its stages and links.
pub type PromptLine = dyn Fn(&[StageRecord], &[LinkRecord]) -> String;

/// What a prompt shows.
#[derive(Clone, Copy)]
pub struct Prompt<'a> {
    /// Makes the shell's start-up files.
    pub begin: &'a dyn Fn(&ServerNames) -> Result<ShellStartup, OpenError>,
    /// The line after a pipeline.
    pub line: &'a PromptLine,
    /// Whether that line is shown at first.
    pub stats: bool,
    /// Shortest pipeline with such a line.
    pub above: Duration,
    /// Whether the prompt also names a link that is a plain pipe.
    pub mark_pipes: bool,
}

/// What was seen of one stage so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageSnapshot {
    /// What it is called.
    pub command: String,
    /// Whether it has ended.
    pub ended: bool,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time it was ready to run without a CPU.
    pub queued_ns: u64,
    /// Time it was idle while there was nothing for it to read.
    pub blocked_read_ns: u64,
    /// Time it was idle while what it writes to was full.
    pub blocked_write_ns: u64,
    /// Time it was idle for another reason.
    pub asleep_ns: u64,
    /// Whether a link follows it.
    pub has_link: bool,
    /// Bytes that went through that link, and how certain the number is; `None` if it is not known.
    pub bytes: Option<(u64, Certainty)>,
    /// Lines that went through it; `None` if they are not counted.
    pub lines: Option<u64>,
    /// Output that it holds in a buffer now.
    pub held_back: Option<HeldBack>,
    /// The page offset of its buffer for reads, and for writes; `None` where they were not seen.
    pub buffer_offsets: [Option<u64>; 2],
    /// How much of its input file it has read; only of a first stage that reads a file.
    pub read_progress: Option<ReadProgress>,
}

/// Draws the stages of the running pipeline; called without stages at the end.
pub type StagePainter<'a> = dyn Fn(&[StageSnapshot]) + 'a;

impl ShellRun<'_> {
    /// Whether the library asks the server how programs are to be started.
    pub(crate) fn changes_programs(&self) -> bool {
        self.line_buffered.is_some() || self.align_buffers
    }
}

impl Shell {
    /// The error for a system call that failed.
    pub(crate) fn refused(&self, call: &'static str) -> impl FnOnce(io::Error) -> RunError + use<> {
        let shell = self.path.display().to_string();
        move |source| RunError::System { shell, call, source }
    }
}

/// The arguments with which a shell runs a text.
pub fn text_arguments(shell: &Shell, text: &OsStr) -> Vec<OsString> {
    // After `--` nothing is an option; fish would run `--` as the text.
    let looks_like_option = matches!(text.as_bytes().first(), Some(b'-' | b'+'));
    let end_of_options = (looks_like_option && shell.kind != Kind::Fish).then_some("--");
    let mut text = text.to_owned();
    if shell.kind == Kind::Yash {
        // Without a line feed at the end, yash would become the last program, and would not wait for the others.
        text.push("\n");
    }
    ["-c"].into_iter().chain(end_of_options).map(OsString::from).chain([text]).collect()
}
