//! A plain grid of texts: a heading, rows, each column as wide as its widest cell.

use crate::columns::Align;
use crate::layout::{Line, Tone, left, right, width};

/// One column of a grid.
pub(crate) struct Heading {
    pub(crate) title: &'static str,
    pub(crate) align: Align,
}

impl Heading {
    pub(crate) const fn left(title: &'static str) -> Self {
        Self { title, align: Align::Left }
    }

    pub(crate) const fn right(title: &'static str) -> Self {
        Self { title, align: Align::Right }
    }
}

/// Lays a grid out. Columns of which every cell is empty are left out; each row has its tone.
pub(crate) fn lay_out(headings: &[Heading], rows: &[(Tone, Vec<String>)]) -> Vec<Line> {
    let spoken = |column: usize| rows.iter().any(|(_, cells)| !cells[column].is_empty());
    let columns: Vec<usize> = (0..headings.len()).filter(|column| spoken(*column)).collect();
    let widths: Vec<usize> = columns
        .iter()
        .map(|&column| {
            let cells = rows.iter().map(|(_, cells)| width(&cells[column]));
            cells.max().unwrap_or(0).max(width(headings[column].title))
        })
        .collect();
    let line = |cells: &dyn Fn(usize) -> String| {
        let padded = columns.iter().zip(&widths).map(|(&column, &columns_wide)| {
            let cell = cells(column);
            match headings[column].align {
                Align::Left => left(&cell, columns_wide),
                Align::Right => right(&cell, columns_wide),
            }
        });
        format!(" {}", padded.collect::<Vec<String>>().join("  ")).trim_end().to_owned()
    };
    let heading = Line::new(Tone::Dim, line(&|column| headings[column].title.to_owned()));
    let body = rows.iter().map(|(tone, cells)| Line::new(*tone, line(&|column| cells[column].clone())));
    std::iter::once(heading).chain(body).collect()
}
