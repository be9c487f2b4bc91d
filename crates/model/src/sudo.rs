//! What stands before a command that only root may run.

use std::env::{split_paths, var_os};

/// `sudo ` with its blank, where the user is not root and has it; else nothing.
pub fn sudo() -> &'static str {
    let there =
        || var_os("PATH").is_some_and(|path| split_paths(&path).any(|dir| dir.join("sudo").is_file()));
    if !nix::unistd::geteuid().is_root() && there() { "sudo " } else { "" }
}
