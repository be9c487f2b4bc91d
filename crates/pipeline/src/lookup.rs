//! Where a command's program lies: the search of execvp(3), as bash makes it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The program a command's name leads to: a name with a slash is a path, any other is looked for in the folders of
/// `path`. `None` where there is none that may be executed.
pub fn program(name: impl AsRef<OsStr>, path: Option<&OsStr>) -> Option<PathBuf> {
    let name = name.as_ref();
    if name.as_bytes().contains(&b'/') {
        return runnable(Path::new(name));
    }
    path?.as_bytes().split(|byte| *byte == b':').find_map(|folder| {
        // An empty entry is the current folder (environ(7)).
        let folder = if folder.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(folder) };
        runnable(&Path::new(folder).join(name))
    })
}

fn runnable(path: &Path) -> Option<PathBuf> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    (is_file && access(path, Access::EXEC_OK).is_ok()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_for_and_paths_are_not() {
        let path = Some(OsStr::new("/nonexistent:/usr/bin:/bin"));
        assert!(program("cat", path).is_some_and(|found| found.ends_with("cat")));
        assert_eq!(program("no-such-command-here", path), None);
        assert_eq!(program("/etc/passwd", path), None, "not executable");
        assert_eq!(program("/usr", path), None, "a folder");
        assert_eq!(program("cat", None), None);
    }
}
