//! Earlier lines, kept in a file that all sessions share. What was pasted by the page is not kept: it would have to be
//! read before every prompt to come.

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::path::{Path, PathBuf};

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

use crate::config::history_file;

/// Lines that are kept, the oldest going first.
const LINES_MAX: usize = 20_000;
/// The longest line that is kept.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// Earlier lines that `history` shows unless asked for more.
pub(crate) const LINES_SHOWN: usize = 50;

/// The last lines of the file, numbered.
pub(crate) fn last_lines(count: usize) -> String {
    let file = history_file()
        .filter(|path| path.is_file())
        .and_then(|path| std::fs::read(path).ok())
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&file);
    let all: Vec<&str> = text.lines().collect();
    let shown = all.iter().enumerate().skip(all.len().saturating_sub(count));
    // A new line within an entry is written as reedline writes it.
    shown.map(|(index, line)| format!("{:>5}  {}\n", index + 1, line.replace("<\\n>", "\n       "))).collect()
}

/// The file's history, less what is too long for it. What another session writes meanwhile is there at the next look.
pub(crate) struct Kept {
    history: RefCell<FileBackedHistory>,
    file: PathBuf,
    /// How long the file was when it was last read.
    read_bytes: Cell<u64>,
}

impl Kept {
    /// Opens the file, and makes it and its folder where they are not there.
    ///
    /// # Errors
    /// What the file answers.
    pub(crate) fn open(file: PathBuf) -> Result<Self> {
        // A FIFO would be waited for, a device may never end.
        if file.exists() && !file.is_file() {
            return Err(io::Error::other("this is no file").into());
        }
        let history = RefCell::new(FileBackedHistory::with_file(LINES_MAX, file.clone())?);
        let read_bytes = Cell::new(length(&file));
        Ok(Self { history, file, read_bytes })
    }

    /// Reads the file again where it has changed. A file that has become unreadable leaves us with what we know.
    fn look(&self) -> RefMut<'_, FileBackedHistory> {
        let mut history = self.history.borrow_mut();
        if length(&self.file) != self.read_bytes.get() {
            let _ = history.sync();
            self.read_bytes.set(length(&self.file));
        }
        history
    }
}

fn length(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |found| found.len())
}

impl History for Kept {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let too_long = item.command_line.len() > LINE_BYTES_MAX;
        if too_long { Ok(item) } else { self.history.get_mut().save(item) }
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.history.borrow().load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.look().count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.look().search(query)
    }

    fn update(&mut self, id: HistoryItemId, updater: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        self.history.get_mut().update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.history.get_mut().clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.history.get_mut().delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.history.get_mut().sync()?;
        self.read_bytes.set(length(&self.file));
        Ok(())
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.history.borrow().session()
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

    /// Expected: a history that is no file is refused.
    /// Happened: opening a FIFO waited for its other end, and the prompt never came.
    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("history");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("runs");
        assert!(made.success());
        let (told, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(Kept::open(fifo).err().map(|error| error.to_string())));
        let answer = answer.recv_timeout(std::time::Duration::from_secs(10)).expect("no wait");
        assert!(answer.is_some_and(|error| error.contains("this is no file")));
        assert!(Kept::open(folder.path().to_owned()).is_err(), "a folder");
    }

    #[test]
    fn what_another_session_writes_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("history");
        let mut one = Kept::open(file.clone()).expect("opens");
        let mut other = Kept::open(file).expect("opens");
        one.save(HistoryItem::from_command_line("ls")).expect("saved");
        one.sync().expect("written");
        assert_eq!(other.count_all().ok(), Some(1));
        other.save(HistoryItem::from_command_line("wc")).expect("saved");
        other.sync().expect("written");
        assert_eq!(one.count_all().ok(), Some(2));
    }
}
