//! The one definition of a table for all formats: each column has its heading, its name in CSV, or both, and what it shows of a row.
//!
//! ```text
//! sheet.add("memory", |stage| ...)                             what people are shown
//! sheet.add(col("wall").csv("wall_ns"), |stage| ...)           and programs read
//! sheet.data("user_ns", |stage| ...)                           what only programs read
//! ```

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value as Json;

use crate::table::{Column, Row, Table};
use crate::unit::Unit;
use crate::value::Value;

/// For whom the columns of a sheet are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    People,
    Programs,
}

/// Rows, and the columns that were made of them so far.
pub struct Sheet<'r, R> {
    rows: &'r [R],
    reader: Reader,
    table: Table,
}

/// A column by its heading.
pub fn col(head: impl Into<String>) -> Column {
    head.into().into()
}

impl<'r, R> Sheet<'r, R> {
    /// The columns that have a heading.
    pub fn new(rows: &'r [R]) -> Self {
        Self::of(rows, Reader::People)
    }

    /// The columns that have a name in CSV.
    pub(crate) fn of_data(rows: &'r [R]) -> Self {
        Self::of(rows, Reader::Programs)
    }

    fn of(rows: &'r [R], reader: Reader) -> Self {
        let table = Table { rows: vec![Row::default(); rows.len()], ..Table::default() };
        Self { rows, reader, table }
    }

    /// Adds a column with a cell for each row; `None` is a missing number. A column in which every number is missing is left
    /// out, unless its `drop` is 0: those columns are always shown.
    pub fn add(&mut self, column: impl Into<Column>, cell: impl Fn(&R) -> Option<Value>) {
        let column = column.into();
        let is_wanted = match self.reader {
            Reader::People => column.csv.is_empty() || !column.head.is_empty(),
            Reader::Programs => !column.csv.is_empty(),
        };
        if is_wanted {
            push(&mut self.table, self.reader, column, self.rows.iter().map(cell).collect());
        }
    }

    /// Adds a column that is only in CSV.
    pub(crate) fn data(&mut self, name: impl Into<String>, cell: impl Fn(&R) -> Option<Value>) {
        self.add(Column::default().csv(name), cell);
    }

    /// Adds columns that are only in CSV: fields of a record, with blanks between them, each `field` or `column=path/of/its/field`. Of a list
    /// its length is shown, of an object its `name=value` pairs.
    pub(crate) fn fields<T: Serialize>(&mut self, fields: &'static str, of: impl Fn(&R) -> T) {
        self.fields_in(Unit::Seconds, fields, of);
    }

    /// The same, with this unit for numbers that are not whole.
    pub(crate) fn fields_in<T: Serialize>(&mut self, unit: Unit, fields: &'static str, of: impl Fn(&R) -> T) {
        if self.reader == Reader::People {
            return;
        }
        let rows: Vec<Json> =
            self.rows.iter().map(|row| serde_json::to_value(of(row)).unwrap_or_default()).collect();
        for name in fields.split_whitespace() {
            let (name, path) = name.split_once('=').unwrap_or((name, name));
            let cell = |row: &Json| Some(plain(row.pointer(&format!("/{path}"))?, unit).into());
            let column = Column::default().csv(name);
            push(&mut self.table, self.reader, column, rows.iter().map(cell).collect());
        }
    }

    /// Adds a column of bars for the numbers beside them, without a heading. A row without a number has none.
    pub fn bars(&mut self, drop: u8, columns: usize, share: impl Fn(&R) -> Option<f64>) {
        let bar = |row: &R| Some(share(row).map_or(Value::EMPTY, |share| Value::Bar(share, columns)));
        self.add(Column::default().left().drop(drop), bar);
    }

    /// The table.
    pub fn table(self) -> Table {
        self.table
    }
}

/// Not generic, so that it is compiled once.
fn push(table: &mut Table, reader: Reader, column: Column, cells: Vec<Option<Value>>) {
    if reader == Reader::People && column.drop > 0 && cells.iter().all(Option::is_none) {
        return;
    }
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.cells.push(cell.unwrap_or(Value::Absent));
    }
    table.columns.push(column);
}

fn plain(value: &Json, unit: Unit) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        Json::Number(number) if number.is_f64() => unit.raw(number.as_f64().unwrap_or(f64::NAN)),
        Json::Array(list) => list.len().to_string(),
        Json::Object(fields) => pairs(fields.iter().map(|(name, value)| (name, plain(value, unit)))),
        other => other.to_string(),
    }
}

/// `name=value` pairs with blanks between them.
pub(crate) fn pairs<'a>(named: impl IntoIterator<Item = (&'a String, impl Display)>) -> String {
    named.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
