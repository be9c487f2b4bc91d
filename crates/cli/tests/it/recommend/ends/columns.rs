//! What the table beside the answer says of several ends: the columns `fair`, `slow` and `full` of the promises. Each of their words is
//! looked for in real programs, one of which is stopped; a word without a test fails.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Pair, all, messages, output, table, well};
use crate::common::{Lab, files_in, signal, state_of, until};

const PATIENCE: Duration = Duration::from_secs(30);
/// For so long a receiver is stopped that holds up the others.
const STOPPED: Duration = Duration::from_millis(1500);
/// Receivers wait for messages after less.
const READY: Duration = Duration::from_millis(500);
/// Largest message of a FIFO that several receivers share: it fills buffers soon.
const BYTES: u64 = 4096;
const COMPETE: &[&str] = &["--receivers", "3", "--share", "compete"];
const BROADCAST: &[&str] = &["--receivers", "3", "--share", "broadcast"];

/// What became of receivers of which the first was stopped.
struct Held {
    /// While it was stopped the others ended; without others, all messages were sent.
    went_on: bool,
    /// The messages of each.
    counts: Vec<u64>,
    /// How long the sender sent.
    sending: Duration,
}

/// The word of a mechanism in a column.
fn word(spec: &str, column: &str) -> &'static str {
    let (_, row) = table().find(|(own, _)| *own == spec).expect("a row");
    row[column].as_str().expect("a word")
}

/// More than all buffers hold. Each message in a file is on the disk before the next.
fn count(spec: &str) -> u64 {
    if spec == "file" { 60 } else { 9999 }
}

/// Runs receivers of which the first is stopped before the sender starts: for a while if it is said to hold up the rest, else until they went on.
fn held(pair: &Pair, number: usize, is_held: bool) -> Held {
    let (what, count) = (pair.what(), count(pair.spec));
    let mut receivers: Vec<Child> = (0..number).map(|_| pair.start_receiver(0)).collect();
    std::thread::sleep(READY);
    let all_wait = || receivers.iter().all(|one| state_of(one.id()) == Some('S')).then_some(());
    until(&what, PATIENCE, all_wait);
    signal(receivers[0].id(), Signal::STOP);
    let sender = pair.start_sender(count, 0);
    let began = Instant::now();
    let mut went_on = || match &mut receivers[1..] {
        [] => files_in(&pair.folder.join(&pair.name)).len() as u64 >= count,
        others => others.iter_mut().all(|one| one.try_wait().expect("it was ours").is_some()),
    };
    match is_held {
        true => std::thread::sleep(STOPPED.saturating_sub(began.elapsed())),
        false => until(&what, PATIENCE, || went_on().then_some(())),
    }
    let went_on = went_on();
    signal(receivers[0].id(), Signal::CONT);
    let sent = well(&what, &output(sender));
    let ns: f64 = sent.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a figure");
    let counts = receivers.into_iter().map(|one| messages(&well(&what, &output(one)))).collect();
    Held { went_on, counts, sending: Duration::from_nanos((ns * count as f64) as u64) }
}

/// Tests each mechanism beside the others.
fn for_all(words: &[&str], test: impl Fn(&Pair) + Sync) {
    let lab = Lab::new();
    let pair = |spec| Pair::new(&lab, spec, ["c", "c"], BYTES, words).expect("programs");
    let pairs: Vec<Pair> = all().into_iter().map(pair).collect();
    std::thread::scope(|scope| pairs.iter().for_each(|pair| _ = scope.spawn(|| test(pair))));
}

#[test]
fn shares_are_as_equal_as_the_table_says() {
    for_all(COMPETE, |pair| match word(pair.spec, "fair") {
        "yes: in turn" => {
            let count = count(pair.spec);
            let lines = pair.expect_run(count, 1, 3, 0);
            assert!(lines.iter().all(|line| messages(line) == count / 3), "{}: {lines:?}", pair.spec);
        }
        // A message comes to the one that has waited longest. Where others use the CPUs, one may not be back in time: then once more.
        "while all wait" => {
            let shares = || {
                let receivers: Vec<Child> = (0..3).map(|_| pair.start_receiver(0)).collect();
                std::thread::sleep(READY);
                well(&pair.what(), &output(pair.start_sender(90, 90)));
                let count = |one| messages(&well(&pair.what(), &output(one)));
                receivers.into_iter().map(count).collect::<Vec<u64>>()
            };
            let are_equal = (0..5).any(|_| shares().iter().all(|share| (20..=40).contains(share)));
            assert!(are_equal, "{}", pair.spec);
        }
        // Nothing is promised: one that is stopped has less.
        "no: whichever reads first" | "no: whichever looks first" => {
            let counts = held(pair, 3, false).counts;
            assert!(counts[0] < count(pair.spec) / 3, "{}: {counts:?}", pair.spec);
        }
        other => panic!("{}: `{other}` has no test", pair.spec),
    });
}

#[test]
fn a_stopped_receiver_does_to_the_others_what_the_table_says() {
    for_all(COMPETE, |pair| {
        let is_held = match word(pair.spec, "slow") {
            "takes fewer" => false,
            "holds up all" => true,
            other => panic!("{}: `{other}` has no test", pair.spec),
        };
        let (held, count) = (held(pair, 3, is_held), count(pair.spec));
        assert_eq!((held.went_on, held.counts.iter().sum()), (!is_held, count), "{}", pair.spec);
        match is_held {
            true => assert!(held.sending > STOPPED / 2, "{}: {:?}", pair.spec, held.sending),
            false => assert!(held.counts[0] < count / 3, "{}: {:?}", pair.spec, held.counts),
        }
    });
}

/// Where the sender waits, all receivers of a broadcast do so; in any case nothing is lost.
#[test]
fn a_sender_to_what_is_full_does_what_the_table_says() {
    for (words, receivers) in [(&[][..], 1), (BROADCAST, 3)] {
        for_all(words, |pair| {
            let is_held = match word(pair.spec, "full") {
                "the sender waits" => true,
                "the disk fills" => false,
                other => panic!("{}: `{other}` has no test", pair.spec),
            };
            let (held, count) = (held(pair, receivers, is_held), count(pair.spec));
            assert_eq!((held.went_on, held.counts), (!is_held, vec![count; receivers]), "{}", pair.spec);
            assert!(!is_held || held.sending > STOPPED / 2, "{}: {:?}", pair.spec, held.sending);
        });
    }
}
