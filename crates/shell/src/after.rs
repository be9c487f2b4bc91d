//! The line that is printed after a pipeline: its time, the bytes through each link, and the links' specs.

use std::io::stderr;

use model::{Certainty, LinkRecord, StageRecord, visible};
use nu_ansi_term::Style;
use report::numbers::{decimal_size, time};
use rustix::termios::{isatty, tcgetwinsize};

/// The line after a pipeline, dim where colours are wanted. On a terminal it begins a new line even if a program's output did
/// not end with one.
pub fn line(stages: &[StageRecord], links: &[LinkRecord]) -> String {
    let flow = visible(&flow(stages, links));
    if !isatty(stderr()) || !model::colours_are_wanted() {
        return flow;
    }
    let dim = Style::new().dimmed();
    let columns = tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_col));
    // The mark and spaces as wide as the terminal: if the cursor was at the start of a line, the mark stays on that line and
    // is overwritten; otherwise the spaces wrap to a new line.
    let begin = (columns > 1).then(|| format!("{}{}\r\x1b[K", dim.paint("⏎"), " ".repeat(columns - 1)));
    format!("{}{}", begin.unwrap_or_default(), dim.paint(flow))
}

/// `1.2 s · cat →1.0 GB→ sort →133 MB→ wc · tmpfile`.
fn flow(stages: &[StageRecord], links: &[LinkRecord]) -> String {
    let wall = stages.iter().map(|stage| stage.wall_ns).max().unwrap_or(0);
    let mut text = format!("{} · ", time(wall as f64));
    for (index, stage) in stages.iter().enumerate() {
        text.push_str(program_name(&stage.command));
        if index + 1 < stages.len() {
            let carried = links.get(index).and_then(LinkRecord::flowed);
            let shown = |(bytes, certainty): (u64, Certainty)| {
                format!(" →{}{}→ ", certainty.sign(), decimal_size(bytes))
            };
            text.push_str(&carried.map_or(" → ".to_owned(), shown));
        }
    }
    let mut specs: Vec<&str> = links.iter().map(|link| link.spec.as_str()).collect();
    specs.dedup();
    format!("{text} · {}", specs.join(", "))
}

/// A program's name without its folder; a command in parentheses, which the shell ran itself, is left as it is.
fn program_name(command: &str) -> &str {
    if command.starts_with('(') {
        return command;
    }
    let word = command.split_whitespace().next().unwrap_or(command);
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_names_programs_and_the_bytes_that_were_counted() {
        let stage = |command: &str| {
            let command = command.to_owned();
            StageRecord { command, wall_ns: 1_000_000, ..StageRecord::default() }
        };
        let link = |bytes| LinkRecord { spec: "file".to_owned(), bytes, ..LinkRecord::default() };
        let stages = [stage("/bin/cat big"), stage("(sleep 1; sort)"), stage("wc -c")];
        assert_eq!(
            flow(&stages, &[link(Some(2000)), link(None)]),
            "1.00 ms · cat →2.00 kB→ (sleep 1; sort) → wc · file"
        );
    }
}
