//! Signals by name.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A signal by name, as in `SIGKILL` (signal(7)).
pub fn signal_name(signal: i32) -> String {
    // The standard library prints `signal: 9 (SIGKILL)`.
    let text = ExitStatus::from_raw(signal).to_string();
    let name =
        text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(name, _)| name.to_owned());
    name.unwrap_or_else(|| format!("signal {signal}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(11), "SIGSEGV");
        assert_eq!(signal_name(13), "SIGPIPE");
        assert_eq!(signal_name(100), "signal 100");
    }
}
