//! Programs that use the terminal under `hosepipe sh`, on a pseudo-terminal: it is handed over, set right again, and its
//! window's size reaches them.

use crate::common::pty::{Person, home};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";
const ESCAPE: &str = "\x1b";

#[test]
fn the_terminal_is_handed_over_and_set_right() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs("sh -c 'stty raw; kill -9 $$'");
    let said = person.runs("stty -a");
    let modes = ["echo", "icanon", "isig", "icrnl", "opost", "onlcr"];
    assert!(modes.iter().all(|mode| said.split_whitespace().any(|word| word == *mode)), "{said}");
    person.resizes(41, 90);
    assert!(person.runs("stty size").contains("\n41 90\n"));
    // A program that reads the terminal, behind another one.
    person.types("echo head | cat - /dev/tty\r");
    person.sees_line("head");
    person.types("typed\r");
    person.sees_line("typed");
    person.types(CTRL_D);
    person.sees_a_prompt();
}

#[test]
fn a_pager_can_be_a_stage() {
    if std::process::Command::new("less").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no less");
        return;
    }
    let home = home();
    let mut person = Person::at_home(home.path());
    person.types("seq 1000 | less\r");
    person.sees_line("29");
    person.types("G");
    person.sees_line("1000");
    person.types("q");
    person.sees_a_prompt();
    assert!(person.runs("echo here").contains("\nhere\n"));
}

#[test]
fn an_editor_edits_and_can_be_a_stage() {
    if !there_is("vim") && !there_is("vi") {
        eprintln!("SKIPPED: there is no vim: apt-get install vim-tiny");
        return;
    }
    let vi = if there_is("vim") { "vim" } else { "vi" };
    let home = home();
    std::fs::write(home.path().join("text"), "first\n").expect("written");
    let mut person = Person::at_home(home.path());
    person.types(&format!("{vi} -u NONE -n text\r"));
    person.sees("\"text\" 1");
    person.types(&format!("osecond{ESCAPE}"));
    person.sees("second");
    // Stopped and brought back, it has its screen again.
    person.types(CTRL_Z);
    person.sees("Stopped");
    person.sees_a_prompt();
    person.types("fg\r");
    person.sees("second");
    person.types(":wq\r");
    person.sees_a_prompt();
    assert_eq!(std::fs::read_to_string(home.path().join("text")).ok().as_deref(), Some("first\nsecond\n"));
    // As the last stage it reads a link, and keys from the terminal.
    person.types(&format!("seq 3 | {vi} -u NONE -n -\r"));
    person.sees("-stdin-");
    person.types(":w kept\r");
    person.sees("\"kept\"");
    person.types(":q!\r");
    person.sees_a_prompt();
    assert_eq!(std::fs::read_to_string(home.path().join("kept")).ok().as_deref(), Some("1\n2\n3\n"));
    assert!(person.runs("stty -a").contains(" echo "));
}

#[test]
fn a_window_that_changes_reaches_who_has_it() {
    let home = home();
    let mut person = Person::at_home(home.path());
    let program = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
    person.types(&format!("sh -c {program:?} | cat\r"));
    person.sees_line("ready");
    person.resizes(33, 77);
    person.sees_line("33 77");
    person.types(CTRL_C);
    person.sees_a_prompt();
    // And the prompt itself knows where the window now ends.
    person.resizes(20, 30);
    assert_eq!(person.answers("/bin/true"), "");
    assert_eq!(person.answers("echo $COLUMNS"), "30\n");
    assert!(
        person
            .runs("echo 1234567890123456789012345678901234567890")
            .contains("\n1234567890123456789012345678901234567890\n")
    );
}

fn there_is(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok()
}
