//! A command line, read: what bash would run, in types of our own. The grammar is bash's; the parser behind it is
//! a library and does not show.

mod check;
mod command;
mod compound;
mod direct;
mod grammar;
mod heredoc;
mod literal;
mod parse;
mod quote;
mod token;

pub use parse::{in_background, parse};

use thiserror::Error;

/// A whole text: its pipelines in the order in which bash would come to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The pipelines, one after the other.
    pub items: Vec<Item>,
}

impl Script {
    /// A text in one piece, for a shell to run as it stands: for what bash takes and [`parse`] does not.
    pub fn in_one_piece(text: &str) -> Self {
        let stage = Stage { text: text.to_owned(), line: 1, stderr_too: false, start: Start::Shell };
        let pipeline =
            Pipeline { text: text.to_owned(), timed: Timed::No, negated: false, stages: vec![stage] };
        Self { items: vec![Item { join: Join::Always, ends_list: true, offset: 0, pipeline }] }
    }
}

/// A pipeline, and what must have happened before it for it to run. A list in the background (`a | b && c &`), a
/// function's definition and `time` or `!` in an order of their own are one stage for a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// How it hangs on the status of what ran before.
    pub join: Join,
    /// True where an error here ends a script under `set -e`: it is the last of its `&&`/`||` list, and not negated.
    pub ends_list: bool,
    /// The byte offset in the text at which the pipeline begins, behind `!` and `time`.
    pub offset: usize,
    /// What runs.
    pub pipeline: Pipeline,
}

/// When an item runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Whatever came before (`;`, a new line, the first of all).
    Always,
    /// After `&&`: when the last status was 0.
    IfOk,
    /// After `||`: when the last status was not 0.
    IfFailed,
}

/// Programs coupled by `|`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// The source text, exactly as typed, without `!` and `time`.
    pub text: String,
    /// Whether `time` or `time -p` stands before it.
    pub timed: Timed,
    /// Whether `!` stands before it.
    pub negated: bool,
    /// Its stages, at least one.
    pub stages: Vec<Stage>,
}

/// What `time` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// Nothing.
    No,
    /// `time`.
    Bash,
    /// `time -p`.
    Posix,
}

/// One program of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The source text, exactly as typed; here-documents and all: a text that `bash -c --` runs as this stage alone
    /// (`--`, because it may start with a `-`).
    pub text: String,
    /// The line of the text it begins in, from 1: what `$LINENO` and messages count from.
    pub line: usize,
    /// True where `|&` follows: standard error goes into the link too.
    pub stderr_too: bool,
    /// How it is started.
    pub start: Start,
}

/// How a stage is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A program with literal words and plain redirections: started without a shell.
    Direct(Command),
    /// Anything else is given to a shell as text.
    Shell,
}

/// A program to be started without a shell. Whether its name is a builtin or a function is for the caller to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Assignments that stand before it, for its environment only.
    pub assignments: Vec<(String, String)>,
    /// Its name and arguments, quotes removed; at least the name.
    pub words: Vec<String>,
    /// Its redirections, in the order in which they are made.
    pub redirections: Vec<Redirection>,
}

/// A redirection with everything in it literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirection {
    /// Opens a file as a descriptor.
    Open {
        /// The descriptor.
        fd: i32,
        /// The file, quotes removed.
        path: String,
        /// What for.
        how: Opening,
    },
    /// `2>&1`, `<&3`: makes `fd` the same as `from`.
    Duplicate {
        /// The descriptor made.
        fd: i32,
        /// The one it is made of.
        from: i32,
    },
    /// `2>&-`.
    Close {
        /// The descriptor.
        fd: i32,
    },
    /// A here-document or here-string without expansions: the descriptor reads this text.
    Text {
        /// The descriptor.
        fd: i32,
        /// What it reads.
        text: String,
    },
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// `<`.
    Read,
    /// `>` (and `>|`: `noclobber` is looked at by the shell only).
    Write,
    /// `>>`.
    Append,
    /// `<>`.
    ReadWrite,
}

/// A text that is no command line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What is wrong, in bash's own words where it has some.
    pub message: String,
    /// The byte offset at which it is, at most the text's length.
    pub offset: usize,
    /// True where more text could mend it (an open quote, a pipe at the end).
    pub incomplete: bool,
}
