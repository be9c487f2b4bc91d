//! A table as CSV, for spreadsheets and data frames: numbers in base units, and an empty cell where there is none.

use crate::formats::FormatError;
use crate::table::Table;

impl Table {
    /// The columns that have a name in CSV.
    pub(crate) fn csv(&self) -> Result<String, FormatError> {
        let refused = |error: ::csv::Error| FormatError::Csv(error.to_string());
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|column| &column.csv)).map_err(refused)?;
        for row in &self.rows {
            writer.write_record(row.cells.iter().map(|cell| harmless(cell.raw()))).map_err(refused)?;
        }
        let bytes = writer.into_inner().map_err(|error| FormatError::Csv(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| FormatError::Csv(error.to_string()))
    }

    /// More columns for the same rows.
    pub(crate) fn with(mut self, more: Self) -> Self {
        self.columns.extend(more.columns);
        self.rows.iter_mut().zip(more.rows).for_each(|(row, more)| row.cells.extend(more.cells));
        self
    }
}

/// The text with control characters made visible, except line ends and tabs, which are data.
fn harmless(cell: String) -> String {
    if cell.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return cell;
    }
    cell.split('\t').map(model::visible).collect::<Vec<_>>().join("\t")
}
