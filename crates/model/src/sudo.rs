//! What stands before a command that only root may run.

use crate::place::file_on_path;

/// `sudo ` with its blank, where the user is not root and has it; else nothing.
pub fn sudo() -> &'static str {
    if !nix::unistd::geteuid().is_root() && file_on_path("sudo").is_some() { "sudo " } else { "" }
}
