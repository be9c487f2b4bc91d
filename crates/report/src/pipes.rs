//! Who has how much of pipes: the tables of `hosepipe doctor --pipes`.

use model::{NamedProcess, NarrowPipe, PipeSurvey};

use crate::document::{Block, Document};
use crate::lists::first_of;
use crate::numbers::{percent, size};
use crate::table::{ABSENT, Column, Fit, Table};
use crate::words::count;

/// So many processes, and so many pipes, are shown.
const SHOWN_MAX: usize = 10;
/// So many names for an end.
const NAMES_MAX: usize = 3;

/// The tables, and what is to be said of them.
pub fn document(survey: &PipeSurvey) -> Document {
    let mut blocks = vec![Block::Table(users(survey))];
    if !survey.processes.is_empty() {
        blocks.push(Block::Table(processes(survey)));
    }
    if !survey.narrow.is_empty() {
        blocks.push(Block::Table(narrow(survey)));
    }
    blocks.push(Block::Paragraph(limits(survey)));
    blocks.extend(hidden(survey).map(Block::Line));
    Document::from_blocks(blocks)
}

fn users(survey: &PipeSurvey) -> Table {
    let of = |pages: u64, quota: u64| (quota > 0).then(|| percent(pages as f64 / quota as f64));
    let mut table = Table::default();
    let users = || survey.users.iter();
    let name = |uid: u32, name: &Option<String>| name.clone().unwrap_or_else(|| uid.to_string());
    table.add(Column::left("user").fit(Fit::Cut), users().map(|user| Some(name(user.uid, &user.name))));
    table.add(Column::right("pipes"), users().map(|user| Some(user.pipes.to_string())));
    table.add(Column::right("pages"), users().map(|user| Some(user.pages.to_string())));
    table.add(
        Column::right("that can hold").drop(1),
        users().map(|user| Some(size(user.pages.saturating_mul(survey.page_bytes)))),
    );
    table.add(Column::right("of the soft quota"), users().map(|user| of(user.pages, survey.soft_pages)));
    table.add(
        Column::right("of the hard quota").drop(1),
        users().map(|user| of(user.pages, survey.hard_pages)),
    );
    table
}

fn processes(survey: &PipeSurvey) -> Table {
    let columns = [Column::left("process").fit(Fit::Cut), Column::right("pipes"), Column::right("pages")];
    let rows = survey
        .processes
        .iter()
        .take(SHOWN_MAX)
        .map(|holder| vec![shown(&holder.process), holder.pipes.to_string(), holder.pages.to_string()]);
    Table::new("", columns, rows)
}

fn narrow(survey: &PipeSurvey) -> Table {
    let mut pipes: Vec<&NarrowPipe> = survey.narrow.iter().collect();
    pipes.sort_by_key(|pipe| std::cmp::Reverse((pipe.is_full, pipe.held_bytes)));
    let ends = |ends: &[NamedProcess]| match ends {
        [] => ABSENT.to_owned(),
        ends => first_of(ends, NAMES_MAX, ", ", shown),
    };
    let row = |pipe: &&NarrowPipe| {
        let state = if pipe.is_full { "full" } else { "small" };
        vec![
            format!("pipe:[{}]", pipe.inode),
            state.to_owned(),
            size(pipe.bytes),
            ends(&pipe.writers),
            ends(&pipe.readers),
        ]
    };
    let columns = [
        Column::left("pipe"),
        Column::left(""),
        Column::right("size"),
        Column::left("writers").fit(Fit::Cut),
        Column::left("readers").fit(Fit::Cut),
    ];
    let mut table = Table::new("", columns, pipes.iter().take(SHOWN_MAX).map(row));
    let more = pipes.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        table.notes.push(format!("{} more that are full or small: --json has all.", count(more, "pipe")));
    }
    table
}

fn shown(process: &NamedProcess) -> String {
    format!("{} {}", process.command, process.pid)
}

fn limits(survey: &PipeSurvey) -> String {
    let soft = match survey.soft_pages {
        0 => "There is no soft quota (fs.pipe-user-pages-soft is 0).".to_owned(),
        pages => format!(
            "The soft quota is {pages} pages for each user, used or not (fs.pipe-user-pages-soft): past it new pipes have two \
             pages and cannot grow."
        ),
    };
    let hard = match survey.hard_pages {
        0 => "There is no hard quota.".to_owned(),
        pages => {
            format!("Past the hard quota of {pages} pages a user has no new pipes (fs.pipe-user-pages-hard).")
        }
    };
    format!(
        "{soft} {hard} Processes with CAP_SYS_RESOURCE or CAP_SYS_ADMIN, which root's mostly have, go past both."
    )
}

/// What the figures leave out.
fn hidden(survey: &PipeSurvey) -> impl Iterator<Item = String> {
    let unseen = (survey.unseen > 0).then(|| {
        format!(
            "At least so much: {} processes of others cannot be looked at ({}hosepipe doctor --pipes).",
            survey.unseen,
            model::sudo()
        )
    });
    let unknown = (survey.unknown > 0).then(|| {
        format!(
            "{} could not be asked for a size: gone meanwhile, made by another user, or a FIFO without a reader.",
            count(survey.unknown as usize, "pipe")
        )
    });
    unseen.into_iter().chain(unknown)
}
