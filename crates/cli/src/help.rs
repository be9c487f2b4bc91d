//! The layout of the text after the options in `--help`: paragraphs, and examples with comments, are wrapped at the terminal's width,
//! independent of the line breaks in the source.

use clap::Command;

use report::{hanging, wrap};

/// Longest line of text.
const WIDTH_MAX: usize = 110;

/// Narrowest room for a comment next to its command; with less room the comment goes below it.
const COMMENT_MIN: usize = 24;

/// Indent of a comment below its command.
const COMMENT_INDENT: usize = 6;

/// The first words of the paragraph on exit statuses.
const EXIT_STATUS: &str = "Exit status:";

/// A no-break space. It replaces the spaces of a command, so that clap does not wrap a line that users copy.
const UNBROKEN: &str = "\u{a0}";

/// The output of `hosepipe` without arguments.
const FIRST_STEPS: &str = include_str!("help/first_steps.txt");

/// [`FIRST_STEPS`] for a terminal of `width` columns.
pub(crate) fn first_steps(width: usize) -> String {
    rendered(&lay_out(FIRST_STEPS, width.min(WIDTH_MAX)))
}

/// Lays out the help of a command and of all its subcommands for a terminal of `width` columns.
pub(crate) fn laid_out(command: Command, width: usize) -> Command {
    let width = width.min(WIDTH_MAX);
    let command = match command.get_after_help().map(|text| lay_out(&text.to_string(), width)) {
        Some(closing) => command.after_help(closing),
        None => command,
    };
    command.term_width(width).mut_subcommands(|one| laid_out(one, width))
}

/// The text that clap has rendered, with ordinary spaces in commands again.
pub(crate) fn rendered(text: &str) -> String {
    text.replace(UNBROKEN, " ")
}

/// A part of the text after the options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelpPart {
    Example {
        command: String,
        comment: String,
        /// Where the comment begins in the source.
        column: usize,
    },
    Paragraph(String),
    /// The text after [`EXIT_STATUS`].
    ExitStatus(String),
    EmptyLine,
}

/// The parts of a text after the options, in order; the lines of a paragraph are joined.
pub(crate) fn parts(text: &str) -> Vec<HelpPart> {
    let mut parts = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("  "), line.strip_prefix(EXIT_STATUS), parts.last_mut()) {
            _ if line.is_empty() => parts.push(HelpPart::EmptyLine),
            (Some(example), ..) => {
                let (command, comment) = example.split_once("  ").unwrap_or((example, ""));
                let (command, comment) = (command.to_owned(), comment.trim_start().to_owned());
                let column = line.chars().count() - comment.chars().count();
                parts.push(HelpPart::Example { command, comment, column });
            }
            (_, Some(status), _) => parts.push(HelpPart::ExitStatus(status.trim_start().to_owned())),
            (.., Some(HelpPart::Paragraph(text) | HelpPart::ExitStatus(text))) => {
                text.push(' ');
                text.push_str(line);
            }
            _ => parts.push(HelpPart::Paragraph(line.to_owned())),
        }
    }
    parts
}

fn lay_out(text: &str, width: usize) -> String {
    let lines = parts(text).into_iter().flat_map(|part| match part {
        HelpPart::Example { command, comment, column } => lay_out_example(&command, &comment, column, width),
        HelpPart::Paragraph(text) => wrap(&text, width),
        HelpPart::ExitStatus(text) => wrap(&format!("{EXIT_STATUS} {text}"), width),
        HelpPart::EmptyLine => vec![String::new()],
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A command with its comment in the same line, wrapped in its column; below the command if there is no room.
fn lay_out_example(command: &str, comment: &str, column: usize, width: usize) -> Vec<String> {
    let command = format!("  {}", command.replace(' ', UNBROKEN));
    if comment.is_empty() {
        return vec![command];
    }
    let fits = column + comment.chars().count() <= width;
    if !fits && width < column + COMMENT_MIN {
        let below = wrap(comment, width.saturating_sub(COMMENT_INDENT).max(COMMENT_MIN));
        let below = below.into_iter().map(|line| format!("{:COMMENT_INDENT$}{line}", ""));
        return std::iter::once(command).chain(below).collect();
    }
    let lines = hanging(&format!("{command:column$}"), column, wrap(comment, width - column));
    lines.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Examples:\n  hp short       what it does, in some words\n  hp 'a long one, that stays in one piece'\n\n\
                        First line of a paragraph,\nand its second.\nExit status: 0 done.";

    #[test]
    fn paragraphs_are_wrapped_once_and_comments_stay_in_their_column() {
        let expected = "Examples:\n  hp short       what it does, in some\n                 words\n  \
                        hp 'a long one, that stays in one piece'\n\n\
                        First line of a paragraph, and its second.\nExit status: 0 done.";
        assert_eq!(rendered(&lay_out(TEXT, 42)), expected);
    }

    #[test]
    fn a_text_is_split_into_its_parts() {
        let example = |command: &str, comment: &str, column| HelpPart::Example {
            command: command.to_owned(),
            comment: comment.to_owned(),
            column,
        };
        let expected = [
            HelpPart::Paragraph("Examples:".to_owned()),
            example("hp short", "what it does, in some words", 17),
            example("hp 'a long one, that stays in one piece'", "", 42),
            HelpPart::EmptyLine,
            HelpPart::Paragraph("First line of a paragraph, and its second.".to_owned()),
            HelpPart::ExitStatus("0 done.".to_owned()),
        ];
        assert_eq!(parts(TEXT), expected);
    }

    #[test]
    fn comments_go_below_their_command_without_room_next_to_it() {
        let expected = "Examples:\n  hp short\n      what it does, in some\n      words\n";
        assert!(rendered(&lay_out(TEXT, 30)).starts_with(expected), "{}", lay_out(TEXT, 30));
    }
}
