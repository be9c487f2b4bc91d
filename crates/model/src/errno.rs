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

/// The errno of an error, or of the error that a library has wrapped it around.
fn raw_errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let wrapped: &io::Error = error.get_ref()?.source()?.downcast_ref()?;
        wrapped.raw_os_error()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named() {
        let error = io::Error::from_raw_os_error(28);
        assert_eq!(describe_errno(&error), "ENOSPC (No space left on device)");
        assert_eq!(describe_errno(&io::Error::other("no luck")), "no luck");
    }
}
