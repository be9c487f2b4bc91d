//! Earlier lines, kept in a file that all sessions share. What was pasted by the page is not kept: it would have to be
//! read before every prompt to come.

use std::io;
use std::path::PathBuf;

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

/// Lines that are kept, the oldest going first.
const LINES_MAX: usize = 20_000;
/// The longest line that is kept.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The file's history, less what is too long for it.
pub(crate) struct Kept(FileBackedHistory);

impl Kept {
    /// Opens the file, and makes it and its folder where they are not there.
    ///
    /// # Errors
    /// What the file answers.
    pub(crate) fn open(file: PathBuf) -> Result<Self> {
        FileBackedHistory::with_file(LINES_MAX, file).map(Self)
    }
}

impl History for Kept {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        if item.command_line.len() > LINE_BYTES_MAX { Ok(item) } else { self.0.save(item) }
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.0.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.0.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.0.search(query)
    }

    fn update(&mut self, id: HistoryItemId, updater: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        self.0.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.0.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.0.delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.0.session()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_pasted_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("below/history");
        let mut history = Kept::open(file.clone()).expect("opens");
        for line in ["ls | wc -l", &"x".repeat(LINE_BYTES_MAX + 1), "two\nlines"] {
            history.save(HistoryItem::from_command_line(line)).expect("saved");
        }
        history.sync().expect("written");
        assert_eq!(history.count_all().ok(), Some(2));
        assert_eq!(Kept::open(file).expect("opens").count_all().ok(), Some(2), "both come back");
    }
}
