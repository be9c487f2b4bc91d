//! What the variables of the environment say. A program's own cannot be changed safely while threads run, so these tests run this
//! program again, with other ones.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use model::{AS_ROOT, colours_are_wanted, file_on_path, is_dumb, runtime_folder, sudo, temporary_folder};

/// What the child prints before each word.
const MARK: &str = "environment says: ";

/// Also the child that the other tests start.
#[test]
fn in_any_environment_there_is_a_folder_and_a_way_to_be_root() {
    assert!(!temporary_folder().as_os_str().is_empty());
    assert!(["", "sudo ", AS_ROOT].contains(&sudo()));
    assert!(runtime_folder().is_none_or(|folder| folder.is_absolute()));
    let shown = |path: Option<PathBuf>| path.map_or("none".to_owned(), |path| path.display().to_string());
    println!("\n{MARK}colours {}", colours_are_wanted());
    println!("{MARK}dumb {}", is_dumb());
    println!("{MARK}temporary {}", temporary_folder().display());
    println!("{MARK}runtime {}", shown(runtime_folder()));
    println!("{MARK}on path {}", shown(file_on_path("sudo")));
    println!("{MARK}sudo {}", sudo());
}

/// What a child with only these variables says about `what`.
fn says(what: &str, variables: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().expect("this program");
    let test = "environment::in_any_environment_there_is_a_folder_and_a_way_to_be_root";
    let child = ["--exact", test, "--nocapture"];
    let output = Command::new(program).args(child).env_clear().envs(variables.iter().copied()).output();
    let text = String::from_utf8(output.expect("a child").stdout).expect("UTF-8");
    let said = text.lines().find_map(|line| line.strip_prefix(MARK)?.strip_prefix(what)?.strip_prefix(' '));
    said.unwrap_or_else(|| panic!("no word about {what}: {text}")).to_owned()
}

#[test]
fn colours_are_refused_by_no_color_and_by_a_terminal_without_them() {
    for (variables, colours, dumb) in [
        (&[][..], "true", "false"),
        (&[("TERM", "xterm"), ("NO_COLOR", "")], "true", "false"),
        (&[("TERM", "xterm"), ("NO_COLOR", "1")], "false", "false"),
        (&[("TERM", "dumb")], "false", "true"),
    ] {
        assert_eq!(says("colours", variables), colours, "{variables:?}");
        assert_eq!(says("dumb", variables), dumb, "{variables:?}");
    }
}

#[test]
fn folders_are_named_by_variables() {
    for (set, folder) in [("/var/x", "/var/x"), ("", "/tmp")] {
        assert_eq!(says("temporary", &[("TMPDIR", set)]), folder);
    }
    assert_eq!(says("temporary", &[]), "/tmp");
    for (set, folder) in [("/run/user/7", "/run/user/7"), ("run", "none"), ("", "none")] {
        assert_eq!(says("runtime", &[("XDG_RUNTIME_DIR", set)]), folder);
    }
    assert_eq!(says("runtime", &[]), "none");
}

#[test]
fn a_command_for_root_has_sudo_if_it_is_on_the_path() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("on-path");
    let (first, second) = (folder.join("first"), folder.join("second"));
    fs::create_dir_all(first.join("sudo")).expect("a folder of that name");
    fs::create_dir_all(&second).expect("a folder");
    fs::write(second.join("sudo"), "").expect("a file of that name");
    let path = format!("{}:{}", first.display(), second.display());
    let (with, without) = ([("PATH", path.as_str())], [("PATH", first.to_str().expect("UTF-8"))]);
    assert_eq!(says("on path", &with), second.join("sudo").display().to_string());
    assert_eq!(says("on path", &without), "none");
    let is_root = nix::unistd::geteuid().is_root();
    assert_eq!(says("sudo", &with), if is_root { "" } else { "sudo " });
    assert_eq!(says("sudo", &without), if is_root { "" } else { AS_ROOT });
}
