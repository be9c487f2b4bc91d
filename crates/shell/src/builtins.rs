//! The commands of the prompt itself. Everything else (`cd`, `export`, `alias`, functions) is bash's, whose state the
//! session keeps from line to line.

use pipeline::Session;
use pipeline::syntax::{Item, Join, Script, Start};

/// A command of ours: how it is typed, what it does, the words that can stand behind it.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    pub(crate) summary: &'static str,
    arguments: &'static [&'static str],
    /// Whether it means something without a prompt.
    in_scripts: bool,
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
    builtin("fg", "fg [N]", "go on with a pipeline, in the foreground", &[], false),
    builtin("bg", "bg [N]", "go on with a pipeline, in the background", &[], false),
    builtin("history", "history [N]", "earlier lines (Ctrl-R searches them)", &[], false),
    builtin("help", "help", "this", &[], false),
    builtin("exit", "exit [STATUS]", "leave (or Ctrl-D)", &[], false),
];

fn find(name: &str) -> Option<&'static Builtin> {
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
         Tab completes, the right arrow takes the grey hint, Ctrl-R searches. `command NAME` runs a program of a name above.\n",
        lines.collect::<String>()
    )
}

/// A piece of a text: for the pipelines, or one of our commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    Text(&'a str),
    Ours(Vec<String>),
}

/// Cuts a text at our commands. One that hangs on what stands before or behind it (`&&`, `|`) is none of ours.
pub(crate) fn segments<'a>(
    text: &'a str,
    script: &Script,
    session: &Session,
    at_prompt: bool,
) -> Vec<Segment<'a>> {
    let mut segments = Vec::new();
    let mut begun = 0;
    for (index, item) in script.items.iter().enumerate() {
        let free_behind = script.items.get(index + 1).is_none_or(|next| next.join == Join::Always);
        let Some(words) = ours(item, session, at_prompt).filter(|_| free_behind) else { continue };
        push_text(&mut segments, &text[begun..item.offset]);
        segments.push(Segment::Ours(words));
        begun = item.offset + item.pipeline.text.len();
    }
    push_text(&mut segments, &text[begun..]);
    segments
}

fn push_text<'a>(segments: &mut Vec<Segment<'a>>, text: &'a str) {
    let text = text.trim_start_matches([' ', '\t', '\n', ';']);
    if !text.trim().is_empty() {
        segments.push(Segment::Text(text));
    }
}

fn ours(item: &Item, session: &Session, at_prompt: bool) -> Option<Vec<String>> {
    let [stage] = item.pipeline.stages.as_slice() else { return None };
    let Start::Direct(command) = &stage.start else { return None };
    let name = command.words.first()?;
    let builtin = find(name).filter(|builtin| at_prompt || builtin.in_scripts)?;
    let plain = command.assignments.is_empty()
        && command.redirections.is_empty()
        && item.join == Join::Always
        && !item.pipeline.negated
        && item.pipeline.timed == pipeline::syntax::Timed::No;
    let defined = session.defined().any(|defined| defined == builtin.name);
    (plain && !defined).then(|| command.words.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::syntax::parse;

    fn cut(text: &str) -> Vec<Segment<'_>> {
        let session = Session::new("bash").expect("bash");
        segments(text, &parse(text).expect("a command line"), &session, true)
    }

    fn command(text: &str) -> Segment<'static> {
        Segment::Ours(text.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn a_text_is_cut_at_our_commands() {
        assert_eq!(
            cut("a | b; via tmpfile; ! c\nstats 'on'\nd"),
            [
                Segment::Text("a | b; "),
                command("via tmpfile"),
                Segment::Text("! c\n"),
                command("stats on"),
                Segment::Text("d")
            ]
        );
        assert_eq!(cut("help"), [command("help")]);
        for whole in ["a && via x", "via x && a", "help | cat", "help >x", "! help", "A=1 help", "time help"]
        {
            assert_eq!(cut(whole), [Segment::Text(whole)]);
        }
    }

    #[test]
    fn help_names_every_command() {
        assert!(BUILTINS.iter().all(|builtin| help().contains(builtin.usage)));
    }
}
