//! Whether a run did what bash did.

use super::links::BY_SIGPIPE;
use super::run::Done;

/// What is different, in a few lines; `instead` may stand where bash has 141, in the exit status and behind `st:`
/// in a line, where the generator shows statuses.
pub(crate) fn difference(expected: &Done, got: &Done, instead: &[i32]) -> Option<String> {
    let mut found = Vec::new();
    found.extend(got.trouble.clone());
    if !same_status(expected.status, got.status, instead) {
        found.push(format!("status: expected {}, got {}", expected.status, got.status));
    }
    if !same_output(&expected.stdout, &got.stdout, instead) {
        found.push(format!("stdout: {}", first_difference(&expected.stdout, &got.stdout)));
    }
    if expected.changes != got.changes {
        let names = |done: &Done| format!("{:?}", done.changes.keys().collect::<Vec<_>>());
        let (left, right) = (names(expected), names(got));
        if left == right {
            let differing =
                expected.changes.iter().filter(|(path, left)| got.changes.get(*path) != Some(left));
            let names: Vec<String> = differing.map(|(path, _)| path.display().to_string()).collect();
            found.push(format!("what is in files: {}", names.join(" ")));
        } else {
            found.push(format!("files: expected {left}, got {right}"));
        }
    }
    if complains(&expected.stderr) && got.stderr.is_empty() {
        found.push(format!("stderr: empty, where bash says {:?}", lossy(&expected.stderr)));
    }
    if lossy(&got.stderr).contains("panicked at") {
        found.push("it panicked".to_owned());
    }
    if found.is_empty() {
        return None;
    }
    if !got.stderr.is_empty() {
        found.push(format!("it said: {}", shortened(&got.stderr)));
    }
    Some(found.join("\n    "))
}

fn same_status(expected: i32, got: i32, instead: &[i32]) -> bool {
    expected == got || expected == BY_SIGPIPE && instead.contains(&got)
}

fn same_output(expected: &[u8], got: &[u8], instead: &[i32]) -> bool {
    if expected == got {
        return true;
    }
    let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (expected, got) = (lines(expected), lines(got));
    let mut pairs = expected.iter().zip(&got);
    expected.len() == got.len()
        && pairs.all(|(left, right)| left == right || same_statuses(left, right, instead))
}

/// Whether two lines show the same statuses.
fn same_statuses(expected: &[u8], got: &[u8], instead: &[i32]) -> bool {
    // What stands before it has no end of line of its own.
    let statuses = |line: &[u8]| -> Option<(String, Vec<i32>)> {
        let line = String::from_utf8(line.to_vec()).ok()?;
        let (before, shown) = line.split_once("st:")?;
        let statuses = shown.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some((before.to_owned(), statuses))
    };
    let (Some(expected), Some(got)) = (statuses(expected), statuses(got)) else { return false };
    let mut pairs = expected.1.iter().zip(&got.1);
    expected.0 == got.0
        && expected.1.len() == got.1.len()
        && pairs.all(|(left, right)| same_status(*left, *right, instead))
}

/// Whether bash says more than that a signal ended a stage.
fn complains(stderr: &[u8]) -> bool {
    let of_a_signal = |line: &str| {
        [
            "Terminated",
            "Killed",
            "Hangup",
            "User defined signal",
            "Broken pipe",
            "File size limit",
            "by signal",
        ]
        .iter()
        .any(|word| line.contains(word))
    };
    lossy(stderr).lines().any(|line| !of_a_signal(line))
}

fn first_difference(expected: &[u8], got: &[u8]) -> String {
    let at = expected.iter().zip(got).take_while(|(left, right)| left == right).count();
    let from = at.saturating_sub(20);
    let part = |bytes: &[u8]| shortened(&bytes[from.min(bytes.len())..]);
    format!(
        "{} bytes expected, {} got; from byte {from} on\n      expected {}\n      got      {}",
        expected.len(),
        got.len(),
        part(expected),
        part(got)
    )
}

fn shortened(bytes: &[u8]) -> String {
    let text: String = lossy(bytes).chars().take(160).collect();
    format!("{text:?}")
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
