//! The commands of the prompt itself. Everything else (`cd`, `export`, `alias`, functions) is bash's, whose state the
//! session keeps from line to line.

/// A command of ours: how it is typed, what it does, the words that can stand behind it.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    pub(crate) summary: &'static str,
    arguments: &'static [&'static str],
    /// Whether it means something without a prompt.
    pub(crate) in_scripts: bool,
}

const fn builtin(
    name: &'static str,
    usage: &'static str,
    summary: &'static str,
    arguments: &'static [&'static str],
    in_scripts: bool,
) -> Builtin {
    Builtin { name, usage, summary, arguments, in_scripts }
}

/// All of them, as `help` shows them.
pub(crate) const BUILTINS: &[Builtin] = &[
    builtin("via", "via [LINK]", "what `|` is made of from now on (pipe, tmpfile, socketpair, …)", &[], true),
    builtin("stats", "stats on|off", "time, bytes and bottleneck after each pipeline", &["off", "on"], true),
    builtin(
        "keep",
        "keep DIR|off",
        "keep what flows through each link, in a numbered folder of DIR",
        &["off"],
        true,
    ),
    builtin("compare", "compare [LINK,LINK…]", "the last pipeline over several links, in turns", &[], true),
    builtin("presets", "presets", "the pipelines of the study comp517", &[], true),
    builtin("preset", "preset N", "run one of them, on files made for it", &["1", "2", "3", "4"], true),
    builtin("jobs", "jobs", "pipelines that are stopped or run in the background", &[], false),
    builtin("fg", "fg [%N]", "go on with a pipeline, in the foreground", &[], false),
    builtin("bg", "bg [%N]", "go on with a pipeline, in the background", &[], false),
    builtin("wait", "wait [%N|PID]", "until a job, or all of them, have ended", &[], false),
    builtin("kill", "kill [-SIGNAL] %N", "send all programs of a job a signal", &[], false),
    builtin("disown", "disown [%N]", "let a job live on when this shell ends", &[], false),
    builtin("history", "history [N]", "earlier lines (Ctrl-R searches them)", &[], false),
    builtin("help", "help", "this", &[], false),
    builtin("exit", "exit [STATUS]", "leave (or Ctrl-D)", &[], false),
];

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

/// Whether a command of this name is ours.
pub(crate) fn is_ours(name: &str) -> bool {
    find(name).is_some()
}

/// The names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|builtin| builtin.name)
}

/// Words that can stand behind a command of ours; `None` for those that take none, or any.
pub(crate) fn arguments(name: &str) -> Option<&'static [&'static str]> {
    find(name).map(|builtin| builtin.arguments).filter(|words| !words.is_empty())
}

/// What `help` prints.
pub(crate) fn help() -> String {
    let width = BUILTINS.iter().map(|builtin| builtin.usage.chars().count()).max().unwrap_or(0);
    let lines = BUILTINS.iter().map(|builtin| {
        let pad = " ".repeat(width - builtin.usage.chars().count());
        format!("  {}{pad}  {}\n", builtin.usage, builtin.summary)
    });
    format!(
        "Type pipelines as in bash; what stands between their programs is yours to choose.\n{}\
         Everything else is bash's: cd, export, unset, alias, functions, time, if, for, here-documents.\n\
         A line that ends in & runs in the background; Ctrl-Z stops a pipeline, Ctrl-C ends it.\n\
         Tab completes, the right arrow takes the grey hint, Ctrl-R searches.\n\
         `command NAME` runs a program of a name above.\n",
        lines.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command() {
        assert!(BUILTINS.iter().all(|builtin| help().contains(builtin.usage)));
    }
}
