//! What every record begins with.

use std::time::SystemTime;

use model::Tool;

/// Which hosepipe this is.
pub(crate) fn tool() -> Tool {
    Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("HOSEPIPE_REVISION").map(str::to_owned),
    }
}

/// The command line, after the program's name.
pub(crate) fn arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect()
}

/// A time as RFC 3339 has it.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
