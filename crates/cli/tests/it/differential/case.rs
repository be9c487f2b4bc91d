//! A case: a command line in pieces, so that it can be written out, shrunk, and asked what it does that a link
//! may change.

/// What a program can find out about the link it is on, and act upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Its standard input is a socket, and cannot be opened again as /dev/stdin.
    SocketIn,
    /// Its standard output is a socket, and cannot be opened again as /dev/stdout.
    SocketOut,
    /// Its standard input is a file: what it leaves unread is there for the next reader.
    FileIn,
}

impl Seen {
    /// Whether a stage has this side of it on a link.
    fn concerns(self, index: usize, stages: usize) -> bool {
        match self {
            Seen::SocketOut => index + 1 < stages,
            Seen::SocketIn | Seen::FileIn => index > 0,
        }
    }
}

/// One program of a pipeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stage {
    /// The text before it, unless it is the first: some form of `|`.
    pub(crate) glue: &'static str,
    /// Its text.
    pub(crate) text: String,
    /// The here-document that goes with it, last line included.
    pub(crate) body: Option<String>,
    /// Texts that do over a pipe what this one must do where the program sees such a link.
    pub(crate) otherwise: Vec<(Seen, String)>,
}

impl Stage {
    /// A stage that does the same on every link.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { glue: " | ", text: text.into(), ..Self::default() }
    }

    /// The same stage, with what it does where it sees such a link.
    pub(crate) fn but(mut self, seen: Seen, text: &str) -> Self {
        self.otherwise.push((seen, text.to_owned()));
        self
    }

    /// Adds to its text, whatever that is.
    pub(crate) fn append(&mut self, more: &str) {
        self.text.push_str(more);
        self.otherwise.iter_mut().for_each(|(_, other)| other.push_str(more));
    }
}

/// How an item hangs on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    Semicolon,
    Newline,
    And,
    Or,
}

/// A pipeline of a list.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// How it hangs on the item before it; of no meaning for the first.
    pub(crate) join: Join,
    /// `! `, `time ` or nothing.
    pub(crate) prefix: &'static str,
    /// Its programs, at least one.
    pub(crate) stages: Vec<Stage>,
    /// The text behind it on its line, `#` included.
    pub(crate) comment: Option<&'static str>,
    /// Whether a program in it writes without end until its reader is gone.
    pub(crate) infinite: bool,
    /// Whether a reader in it may be gone while its writer still writes.
    pub(crate) early_exit: bool,
}

impl Item {
    /// A pipeline of one plain stage.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::of(vec![Stage::plain(text)])
    }

    /// A pipeline that comes to its natural end.
    pub(crate) fn of(stages: Vec<Stage>) -> Self {
        Self { join: Join::Semicolon, prefix: "", stages, comment: None, infinite: false, early_exit: false }
    }

    fn write(&self, text: &mut String, seen: &[Seen]) {
        text.push_str(self.prefix);
        for (index, stage) in self.stages.iter().enumerate() {
            if index > 0 {
                text.push_str(stage.glue);
            }
            let applies =
                |(on, _): &&(Seen, String)| seen.contains(on) && on.concerns(index, self.stages.len());
            let other = stage.otherwise.iter().find(applies);
            text.push_str(other.map_or(&stage.text, |(_, other)| other));
        }
    }

    fn bodies(&self) -> String {
        self.stages.iter().filter_map(|stage| stage.body.as_deref()).collect()
    }
}

/// A command line.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Which of the run's cases it is.
    pub(crate) number: u64,
    /// Its pipelines.
    pub(crate) items: Vec<Item>,
    /// Whether it is run with `--pipefail`.
    pub(crate) pipefail: bool,
}

impl Case {
    /// The text as it is given to `hosepipe run`.
    pub(crate) fn text(&self) -> String {
        self.text_where(&[])
    }

    /// The text that does over pipes what the case must do where its programs see such links.
    pub(crate) fn text_where(&self, seen: &[Seen]) -> String {
        let mut text = String::new();
        for (index, item) in self.items.iter().enumerate() {
            item.write(&mut text, seen);
            let next = self.items.get(index + 1).map(|next| next.join);
            match next {
                Some(Join::And) => text.push_str(" &&"),
                Some(Join::Or) => text.push_str(" ||"),
                Some(Join::Semicolon) if item.comment.is_none() && item.bodies().is_empty() => {
                    text.push(';');
                }
                _ => {}
            }
            if let Some(comment) = item.comment {
                text.push(' ');
                text.push_str(comment);
            }
            let bodies = item.bodies();
            if next == Some(Join::Newline) || item.comment.is_some() || !bodies.is_empty() {
                text.push('\n');
                text.push_str(&bodies);
            } else if next.is_some() {
                text.push(' ');
            }
        }
        text
    }

    /// Whether a program in it opens its input or output again, by the name that /dev has for it.
    pub(crate) fn reopens(&self) -> bool {
        let mut stages = self.items.iter().flat_map(|item| &item.stages);
        stages.any(|stage| {
            stage.otherwise.iter().any(|(seen, _)| matches!(seen, Seen::SocketIn | Seen::SocketOut))
        })
    }

    /// Whether a program in it opens its output again so that a file would be cut.
    pub(crate) fn cuts(&self) -> bool {
        self.items.iter().flat_map(|item| &item.stages).any(|stage| stage.text.contains(" > /dev/stdout"))
    }

    /// Whether a program in it writes without end until its reader is gone.
    pub(crate) fn infinite(&self) -> bool {
        self.items.iter().any(|item| item.infinite)
    }

    /// Whether a reader in it may be gone while its writer still writes.
    pub(crate) fn early_exit(&self) -> bool {
        self.items.iter().any(|item| item.early_exit)
    }
}
