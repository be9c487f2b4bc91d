//! The layout of the text after the options in `--help`: paragraphs, and examples with comments, are wrapped at the terminal's width,
//! independent of the line breaks in the source.

use clap::Command;

use report::wrap;

/// Longest line of text.
const WIDTH_MAX: usize = 110;

/// Narrowest comment next to its command; a narrower one goes below it.
const COMMENT_MIN: usize = 24;

/// Indent of a comment below its command.
const COMMENT_INDENT: usize = 6;

/// Begins a new paragraph.
const EXIT_STATUS: &str = "Exit status:";

/// Replaces the spaces of a command, so that clap does not break a line that users copy.
const UNBROKEN: &str = "\u{a0}";

/// The output of `hosepipe` without arguments.
const FIRST_STEPS: &str = "Four things to try:
  hosepipe demo                                     what it does, in less than a minute
  hosepipe bench                                    rank the ways to move bytes here
  hosepipe recommend --message 1KiB                 which one to take
  hosepipe run --stats 'seq 1000000 | sort | tail'  which stage is slow
All commands: hosepipe --help";

/// [`FIRST_STEPS`] for a terminal of `width` columns.
pub(crate) fn first_steps(width: usize) -> String {
    rendered(&lay_out(FIRST_STEPS, width.min(WIDTH_MAX)))
}

/// Lays out the help of a command and of all its subcommands for a terminal of `width` columns.
pub(crate) fn laid_out(command: Command, width: usize) -> Command {
    let width = width.min(WIDTH_MAX);
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let command = match command.get_after_help().map(|text| lay_out(&text.to_string(), width)) {
        Some(closing) => command.after_help(closing),
        None => command,
    };
    let command = command.term_width(width);
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |one| laid_out(one, width)))
}

/// The text that clap has rendered, with spaces in commands again.
pub(crate) fn rendered(text: &str) -> String {
    text.replace(UNBROKEN, " ")
}

/// A part of the text after the options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelpPart {
    Example {
        command: String,
        comment: String,
    },
    Paragraph(String),
    /// Without its first words.
    ExitStatus(String),
}

/// The parts of a text after the options, in order, each in one line.
pub(crate) fn parts(text: &str) -> Vec<HelpPart> {
    let mut parts = Vec::new();
    let mut is_open = false;
    for line in text.lines().filter(|line| *line != "Examples:") {
        let begins_status = line.strip_prefix(EXIT_STATUS);
        if let Some(example) = line.strip_prefix("  ") {
            let (command, comment) = example.split_once("  ").unwrap_or((example, ""));
            let (command, comment) = (command.to_owned(), comment.trim_start().to_owned());
            parts.push(HelpPart::Example { command, comment });
        } else if let Some(status) = begins_status {
            parts.push(HelpPart::ExitStatus(status.trim_start().to_owned()));
        } else if let (true, Some(HelpPart::Paragraph(text) | HelpPart::ExitStatus(text))) =
            (is_open, parts.last_mut())
        {
            text.push(' ');
            text.push_str(line);
        } else if !line.is_empty() {
            parts.push(HelpPart::Paragraph(line.to_owned()));
        }
        is_open = !line.is_empty() && !line.starts_with("  ");
    }
    parts.iter_mut().for_each(|part| {
        if let HelpPart::Paragraph(text) | HelpPart::ExitStatus(text) = part {
            text.truncate(text.trim_end().len());
        }
    });
    parts
}

fn lay_out(text: &str, width: usize) -> String {
    let (mut lines, mut paragraph) = (Vec::new(), String::new());
    let end = |paragraph: &mut String, lines: &mut Vec<String>| {
        lines.extend(wrap(&std::mem::take(paragraph), width));
    };
    for line in text.lines() {
        if line.is_empty() || line.starts_with("  ") || line.starts_with(EXIT_STATUS) {
            end(&mut paragraph, &mut lines);
        }
        match line.strip_prefix("  ") {
            _ if line.is_empty() => lines.push(String::new()),
            Some(example) => lines.extend(lay_out_example(example, width)),
            None => paragraph = paragraph + line + " ",
        }
    }
    end(&mut paragraph, &mut lines);
    lines.join("\n")
}

/// Lays out a command and its comment, which follows after at least two spaces: in one line if there is room.
fn lay_out_example(example: &str, width: usize) -> Vec<String> {
    let (command, comment) = example.split_once("  ").unwrap_or((example, ""));
    let comment = comment.trim_start();
    let column = 2 + example.chars().count() - comment.chars().count();
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
    let lines = wrap(comment, width - column).into_iter().enumerate();
    lines.map(|(index, line)| format!("{:column$}{line}", if index == 0 { &command } else { "" })).collect()
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
    fn the_parts_of_a_text_are_told_apart() {
        let example = |command: &str, comment: &str| HelpPart::Example {
            command: command.to_owned(),
            comment: comment.to_owned(),
        };
        let expected = [
            example("hp short", "what it does, in some words"),
            example("hp 'a long one, that stays in one piece'", ""),
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
