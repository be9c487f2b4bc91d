//! The live screen, as a person sees it.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::{Scene, names};
use crate::common::pty::{Person, home, pair, plain, resize};
use crate::common::{soon, until};

const LEAVES_ALTERNATE_SCREEN: &[u8] = b"\x1b[?1049l";

/// A person at a live screen, whose terminal is drawn anew each time it is looked at.
struct Viewer {
    person: Person,
    _home: tempfile::TempDir,
    rows: u16,
}

impl Viewer {
    fn new(arguments: &[&str]) -> Self {
        let home = home();
        let words = [&[super::HOSEPIPE, "top", "--interval", "100ms"], arguments].concat();
        Self { person: Person::before(home.path(), &words), _home: home, rows: 30 }
    }

    /// Types keys, and waits until a screen that was drawn after them has all this, and nothing of that. Blanks do not count: where
    /// there is no text, nothing is drawn.
    fn types(&mut self, keys: &str, there: &[&str], not_there: &[&str]) {
        self.person.types(keys);
        // Only what has changed is drawn, but for a window of another size.
        for _ in 0..200 {
            self.rows ^= 1;
            self.person.types("");
            self.person.resizes(self.rows, 120);
            std::thread::sleep(std::time::Duration::from_millis(100));
            let dense = |text: &str| text.replace([' ', '\n'], "");
            let screen = dense(&self.person.text());
            let has = |text: &&str| screen.contains(&dense(text));
            if there.iter().all(has) && !not_there.iter().any(has) {
                return;
            }
        }
        panic!("{keys:?}: {}", self.person.text());
    }
}

#[test]
fn chains_are_shown_filtered_sorted_and_looked_into() {
    let scene = Scene::new("sleep 1000 | cat");
    let other = Scene::new("yes | gzip -9 | cat > /dev/null");
    let chain = scene.chain(|chain| names(chain) == ["sleep", "cat"]);
    let pid = chain.stages[0].processes[0].pid;
    other.chain(|chain| chain.stages.len() == 3);
    let mut viewer = Viewer::new(&[]);
    let drawn = format!("sleep {pid} ─0 B/s→ cat ");
    viewer.types("", &[&drawn, "gzip"], &[]);
    viewer.types("s", &["by CPU"], &[]);
    viewer.types("ssss", &["by rate"], &[]);
    viewer.types("/gz", &["gzip", "/gz▏"], &[&drawn]);
    viewer.types("\x1b", &[&drawn], &[]);
    viewer.types("/SLEEP\r", &[&drawn, "with `sleep`"], &["gzip"]);
    viewer.types("?", &["freeze the display"], &[&drawn]);
    viewer.types("?", &[&drawn], &[]);
    viewer.types(" ", &["PAUSED"], &[]);
    viewer.types(" ", &[], &["PAUSED"]);
    viewer.types("/nothing such\r", &["No chain has `nothing such`"], &[&drawn]);
    viewer.types("\x1b", &["gzip"], &[]);
    viewer.types("/gzip\r\r", &["holds the chain up", "pipe pipe:["], &[]);
    // However small the window is.
    for (rows, columns) in [(1, 1), (3, 10), (2, 200)] {
        viewer.person.resizes(rows, columns);
        viewer.types("jk", &[], &[]);
    }
    viewer.types("", &["holds the chain up"], &[]);
    viewer.person.types("q");
    viewer.person.waits("the screen is left", |seen| {
        seen.windows(LEAVES_ALTERNATE_SCREEN.len()).any(|bytes| bytes == LEAVES_ALTERNATE_SCREEN)
    });
    assert_eq!(viewer.person.leaves().code(), Some(0));
}

/// Expected: a deadlock is named in the list, and in the detail of the chain.
#[test]
fn a_deadlock_is_named_while_it_is_watched() {
    let scene = Scene::new("mkfifo f; (echo 1; cat f) | sed -u 's/.*/&1\\n&2/' | cat >f");
    let mut viewer = Viewer::new(&[&scene.pid().to_string()]);
    viewer.types("", &["are in a deadlock", "1 chain"], &[]);
    viewer.types("\r", &["are in a deadlock", "what it does"], &[]);
    viewer.person.types("q");
    assert_eq!(viewer.person.leaves().code(), Some(0));
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    for (keys, signal, status) in
        [("q", None, 0), ("\x03", None, 130), ("", Some(Signal::TERM), 143), ("", Some(Signal::HUP), 129)]
    {
        let home = home();
        let mut person = Person::before(
            home.path(),
            &["bash", "--norc", "-c", "read; \"$0\" top; echo left with $?; read", super::HOSEPIPE],
        );
        let before = person.modes();
        person.types("\r");
        person.sees("quit");
        assert_ne!(person.modes(), before);
        match signal {
            Some(signal) => person.kills_program(&format!("{} top", super::HOSEPIPE), signal),
            None => person.types(keys),
        }
        person.waits("it has left", |seen| plain(seen).contains(&format!("left with {status}")));
        assert_eq!(person.modes(), before, "{keys:?} {signal:?}");
        assert!(person.bytes().windows(8).any(|bytes| bytes == LEAVES_ALTERNATE_SCREEN));
    }
}

/// Expected: it ends. Happened: started with SIGHUP ignored, it ran on for ever at a tenth of a CPU.
#[test]
fn it_ends_with_its_terminal_where_a_hangup_is_ignored() {
    let (master, inner) = pair();
    resize(&master, 24, 80);
    let words = ["-c", "trap '' HUP; exec \"$0\" top --interval 100ms", super::HOSEPIPE];
    let stream = || Stdio::from(inner.try_clone().expect("the inner end"));
    let mut command = Command::new("sh");
    let child = command.args(words).stdin(stream()).stdout(stream()).stderr(stream()).spawn();
    let mut child = child.expect("started");
    drop((command, inner));
    let mut seen = Vec::new();
    let mut outer = File::from(master);
    until("its screen", soon(), || {
        let mut bytes = [0; 4096];
        let len = outer.read(&mut bytes).expect("a screen");
        seen.extend(&bytes[..len]);
        plain(&seen).contains("quit").then_some(())
    });
    drop(outer);
    let ended = until("its end", soon(), || child.try_wait().expect("a child"));
    assert_eq!(ended.code(), Some(129));
}

#[test]
fn it_stops_and_goes_on() {
    let home = home();
    let mut person = Person::before(home.path(), &["bash", "--norc", "-i"]);
    person.sees_a_prompt();
    person.types(&format!("{} top\r", super::HOSEPIPE));
    person.sees("quit");
    person.types("\x1a");
    person.sees_a_prompt();
    assert!(person.text().contains("Stopped"), "{}", person.text());
    person.types("echo $((40 + 2))\r");
    person.sees_line("42");
    person.types("fg\r");
    person.sees("quit");
    person.types("q");
    person.sees_a_prompt();
    person.types("echo $?\r");
    person.sees_line("0");
}
