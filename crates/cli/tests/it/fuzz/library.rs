//! What is between hosepipe and a shell: the variable that the preloaded library reads, and the head of the shell's file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use pipeline::shell::Shell;
use pipes::protocol::{Config, Plain, VARIABLE, mode};
use pipes::sites::Sites;

use super::fuzz;
use super::input::Seed;

fn digits(config: &Config) -> String {
    config.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn configurations() -> Vec<Seed> {
    let sites = Sites { slot: 7, offsets: [0x5fb6c, 0x1a2b3, 0, 0, 0, 0, 0, 0] };
    let own = Config { mode: mode::OWN, argument: 1 << 20, sites, ..Config::OFF };
    let mut ask = Config { mode: mode::ASK, argument: 3, sites, close: 99, ..Config::OFF };
    ask.path[..9].copy_from_slice(b"nowhere/1");
    let named = [
        ("off", Config::OFF),
        ("own", own),
        ("exactly", Config { mode: mode::EXACTLY, ..own }),
        ("ask", ask),
    ];
    named.iter().map(|(name, config)| Seed::new(name, digits(config))).collect()
}

/// A shell whose library got this variable runs its pipeline as without it.
#[test]
fn the_variable_of_the_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("library.so");
    std::fs::write(&library, pipes::LIBRARY).expect("written");
    fuzz("variable", &configurations(), |input| {
        let config = Config::from_digits(input);
        if let Some(config) = config {
            if !digits(&config).as_bytes().eq_ignore_ascii_case(input) {
                return Err(format!("{config:?} is not what the digits say"));
            }
            // These close the shell's own descriptors, write into them, or end the shell with another process: as was asked for.
            if config.parent != 0 || config.mode == mode::LEARN || (0..3).contains(&config.close) {
                return Ok(());
            }
        }
        if input.contains(&0) {
            return Ok(());
        }
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "echo a | cat"])
            .env("LD_PRELOAD", &library)
            .env(VARIABLE, OsStr::from_bytes(input));
        let output = shell.output().map_err(|error| error.to_string())?;
        match output.status.success() && output.stdout == b"a\n" {
            true => Ok(()),
            false => Err(format!("{} {:?}", output.status, String::from_utf8_lossy(&output.stdout))),
        }
    });
}

#[test]
fn the_file_of_a_shell() {
    const HEAD_BYTES: usize = 4096;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shell");
    let head = |path: &str| {
        let mut bytes = std::fs::read(path).expect("a shell");
        bytes.truncate(HEAD_BYTES);
        Seed::new(path, bytes)
    };
    // Program headers at the end of all addresses.
    let mut nowhere = head("/bin/sh");
    nowhere.bytes[32..40].fill(0xff);
    fuzz("shell", &[head("/bin/sh"), head("/bin/bash"), nowhere], |input| {
        std::fs::write(&path, input).map_err(|error| error.to_string())?;
        let mode = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755));
        mode.map_err(|error| error.to_string())?;
        match Shell::find(path.as_os_str()) {
            Err(error) if error.to_string().is_empty() => Err("an error without a word".to_owned()),
            _ => Ok(()),
        }
    });
}
