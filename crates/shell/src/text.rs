//! From a typed text to a script, and what is shown where it is none.

use std::process::{Command, Stdio};

use pipeline::syntax::{Script, SyntaxError, parse};

/// Reads a text. What we cannot take apart and the shell takes is given to the shell in one piece.
///
/// # Errors
/// It is no command line.
pub(crate) fn read(text: &str, shell: &str) -> Result<Script, SyntaxError> {
    match parse(text) {
        Err(error) if error.incomplete || !shell_accepts(text, shell) => Err(error),
        Err(_) => Ok(Script::in_one_piece(text)),
        Ok(script) => Ok(script),
    }
}

fn shell_accepts(text: &str, shell: &str) -> bool {
    let mut command = Command::new(shell);
    command.args(["-n", "-c", "--", text]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// What is wrong with a text, and its line with a mark below the place.
pub(crate) fn pointed_out(text: &str, error: &SyntaxError) -> String {
    let offset = error.offset.min(text.len());
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let before: String = text[start..offset].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("{error}\n  {line}\n  {before}^")
}
