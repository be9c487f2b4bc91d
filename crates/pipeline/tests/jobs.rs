//! Job control without a terminal: pipelines that stop, go on, and end behind the prompt.

use std::time::{Duration, Instant};

use pipeline::link::LinkSpec;
use pipeline::syntax::{in_background, parse};
use pipeline::{Ending, Finished, Group, Jobs, RunOptions, Session, State, run};

fn at_a_prompt() -> Session {
    let mut session = Session::new("bash").expect("bash");
    session.jobs = Some(Jobs::new(None));
    session.stays = true;
    session
}

fn runs(session: &mut Session, via: &str, text: &str) -> Finished {
    let via = LinkSpec::parse(via).expect("a link");
    let folder = std::env::temp_dir();
    let options = RunOptions {
        via: &via,
        folder: &folder,
        pipefail: false,
        keep: None,
        group: Group::New,
        asked_to_end: &|| None,
    };
    run(&parse(text).expect("a command line"), text, session, &options, None).expect("runs")
}

fn ends(session: &mut Session, number: u32) -> Ending {
    let began = Instant::now();
    loop {
        let jobs = session.jobs.as_mut().expect("there");
        for event in jobs.news().expect("looked") {
            if let (State::Ended(ending), true) = (event.state, event.number == number) {
                return ending;
            }
        }
        assert!(began.elapsed() < Duration::from_secs(20), "job {number} does not end: {:?}", jobs.list());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_ampersand_is_seen_where_bash_sees_one() {
    let seen = |text: &str| {
        let script = parse(text).expect("a command line");
        script
            .items
            .iter()
            .map(|item| in_background(&item.pipeline).map_or(0, |list| list.items.len()))
            .collect()
    };
    let none: [usize; 1] = [0];
    assert_eq!(seen("sleep 1 &"), [1]);
    assert_eq!(seen("a | b & c"), [1, 0]);
    assert_eq!(seen("a && b &"), [2]);
    for text in ["a", "echo $x \\&", "echo '&'", "echo $x '&'", "cat <<'&'\n$x\n&\n", "a 2>&1"] {
        let items: Vec<usize> = seen(text);
        assert_eq!(items, none, "{text}");
    }
}

#[test]
fn a_stopped_pipeline_comes_back_as_a_job_and_goes_on() {
    for via in ["pipe", "tmpfile", "pty"] {
        let mut session = at_a_prompt();
        // Both stages stop themselves, as a key would stop them.
        let text = "{ kill -STOP $BASHPID; (exit 3); } | { kill -STOP $BASHPID; cat; exit 4; }";
        let finished = runs(&mut session, via, text);
        assert_eq!((finished.status, finished.parked.len()), (148, 1), "{via}");
        assert_eq!(finished.parked[0].state, State::Stopped);
        let jobs = session.jobs.as_mut().expect("there");
        assert_eq!(jobs.current(), Some(1));
        assert!(jobs.news().expect("looked").is_empty());
        assert_eq!(jobs.in_front(2).expect("looked"), None);
        let event = jobs.in_front(1).expect("waited").expect("there");
        assert_eq!(event.state, State::Ended(Ending::Left(4)), "{via}");
        assert!(jobs.list().is_empty());
    }
}

#[test]
fn pipelines_behind_the_prompt_end_by_themselves() {
    let mut session = at_a_prompt();
    let finished =
        runs(&mut session, "tmpfile", "{ sleep 0.1; echo x; } | grep y & sleep 0.05 && (exit 7) &");
    assert_eq!((finished.status, finished.parked.len()), (0, 2));
    assert_eq!(ends(&mut session, 2), Ending::Left(7));
    assert_eq!(ends(&mut session, 1), Ending::Left(1));
}

#[test]
fn a_prompt_that_goes_hangs_its_jobs_up() {
    let mut session = at_a_prompt();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hung-up");
    let text = format!("(trap 'echo yes > {}; exit' HUP; while :; do sleep 0.02; done) &", file.display());
    runs(&mut session, "pipe", &text);
    // The trap is set when the shell behind has come to it.
    std::thread::sleep(Duration::from_millis(300));
    drop(session);
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "the job was not hung up");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_last_item_is_remembered_where_another_text_follows() {
    let mut session = at_a_prompt();
    runs(&mut session, "pipe", "alias twice='echo a; echo'");
    runs(&mut session, "pipe", "x=5; exit_is_not_called() { return 6; }");
    assert_eq!(runs(&mut session, "pipe", "exit_is_not_called $x").status, 6);
    assert_eq!(runs(&mut session, "pipe", "test \"$(twice b)\" = \"$(printf 'a\\nb')\"").status, 0);
    let finished = runs(&mut session, "pipe", "exit 9");
    assert!(finished.left && finished.status == 9);
    assert!(!runs(&mut session, "pipe", "kill -9 $$").left, "a shell that was killed has not left");
}
