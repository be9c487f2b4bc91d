//! System errors as sentences: by name (ENOSPC), never by number alone.

use std::io;

/// An error of a system call as people look it up: `ENOSPC (No space left on device)`.
/// An error that did not come from the system is given in its own words.
pub fn describe_errno(error: &io::Error) -> String {
    match raw_errno(error) {
        Some(code) => {
            let errno = nix::errno::Errno::from_raw(code);
            format!("{errno:?} ({})", errno.desc())
        }
        None => error.to_string(),
    }
}

/// The errno of an error, or of the one that a library has wrapped in words of its own: those end in what the
/// standard library prints, `(os error 2)`, and what follows is the library's.
fn raw_errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let text = error.to_string();
        let (_, rest) = text.split_once("(os error ")?;
        rest.split_once(')')?.0.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named() {
        let error = io::Error::from_raw_os_error(28);
        assert_eq!(describe_errno(&error), "ENOSPC (No space left on device)");
        let wrapped = io::Error::other(format!("{error} at path \"/x\""));
        assert_eq!(describe_errno(&wrapped), "ENOSPC (No space left on device)");
        assert_eq!(describe_errno(&io::Error::other("no luck")), "no luck");
    }
}
