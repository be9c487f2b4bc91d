//! The names of shells.

/// As names of files and of processes.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "yash", "zsh"];

/// Whether a program with this name is a shell: it writes its own output at the end of each command.
pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}
