//! The schedule of any number of nodes, the rank that a launcher gives a node, and a rendezvous over a stream.

use std::collections::{BTreeSet, HashMap};
use std::io::{Write, pipe};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use model::Tool;
use process::Wire;
use proptest::prelude::*;
use remote::fleet::{
    FleetJob, Node, NodeError, Rank, Rendezvous, Status, launched_rank, partner, rounds, serve,
};
use remote::launcher::Launcher;

proptest! {
    #[test]
    fn every_pair_meets_once_and_nobody_is_in_two_places(nodes in 2usize..130) {
        let mut met = BTreeSet::new();
        for round in 0..rounds(nodes) {
            let mut busy = BTreeSet::new();
            for node in 0..nodes {
                let Some(other) = partner(node, round, nodes) else { continue };
                prop_assert!(other != node && other < nodes);
                prop_assert_eq!(partner(other, round, nodes), Some(node), "the partner has this node as its partner");
                prop_assert!(busy.insert(node));
                if node < other {
                    prop_assert!(met.insert((node, other)), "{} and {} meet again", node, other);
                }
            }
            prop_assert!(busy.len() >= nodes - 1, "at most one is free");
        }
        prop_assert_eq!(met.len(), nodes * (nodes - 1) / 2);
        prop_assert_eq!(rounds(nodes), if nodes % 2 == 0 { nodes - 1 } else { nodes }, "as few rounds as can be");
    }

    #[test]
    fn a_shell_reads_the_words_again(words in prop::collection::vec("[ -~]{0,12}", 1..6)) {
        let line = format!("printf '%s\\0' {}", model::shell_line(&words));
        let said = std::process::Command::new("sh").args(["-c", &line]).output().expect("sh").stdout;
        let read: Vec<String> = said.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        prop_assert_eq!(&read[..read.len() - 1], &words[..]);
    }
}

#[test]
fn launchers_say_which_node_this_is() {
    let of = |variables: &[(&str, &str)]| {
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        launched_rank(&|name| variables.get(name).map(|&value| value.to_owned()))
    };
    let slurm = [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURMD_NODENAME", "n3")];
    let mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
    assert_eq!(of(&slurm), Ok(Some(Rank { rank: 3, size: Some(4), node: Some("n3".to_owned()) })));
    let of_mpi = Ok(Some(Rank { rank: 1, size: Some(2), node: None }));
    assert_eq!(of(&[&slurm[..], &mpi[..]].concat()), of_mpi, "mpirun in a job of Slurm");
    assert_eq!(of(&[("JOB_COMPLETION_INDEX", "5")]), Ok(Some(Rank { rank: 5, size: None, node: None })));
    assert_eq!(of(&[("HOME", "/")]), Ok(None));
    assert!(of(&[("SLURM_PROCID", "x")]).is_err_and(|why| why.contains("SLURM_PROCID is `x`")));
    assert!(of(&[("PMI_RANK", "2"), ("PMI_SIZE", "2")]).is_err_and(|why| why.contains("rank 2 of 2")));
}

#[test]
fn a_board_behind_a_stream_is_the_folder_at_its_other_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((questions, mut asks), (hears, answers)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
    asks.write_all(b"Welcome to host a!\nput no\nget ../../etc/passwd\n").expect("written");
    let kept = folder.path().to_owned();
    let server =
        std::thread::spawn(move || serve(&kept, Wire::new(questions.into(), answers.into(), "a node")));
    let far = Rendezvous::over(Wire::new(hears.into(), asks.into(), "the launcher"));
    let here = Rendezvous::Folder(folder.path().to_owned());
    assert_eq!(far.get::<String>("node-0").expect("an answer"), None);
    far.put("node-0", &"two words").expect("put");
    here.put("node-1", &vec![1, 2]).expect("put");
    assert_eq!(here.get("node-0").expect("read"), Some("two words".to_owned()));
    assert_eq!(far.get("node-1").expect("read"), Some(vec![1, 2]));
    assert!(far.get::<u8>("node-0").is_err(), "the value is no number");
    drop(far);
    server.join().expect("no panic").expect("the end of the stream is no error");
}

#[test]
fn no_word_of_the_user_is_one_of_the_shell() {
    let job = FleetJob {
        launcher: Launcher::Ssh,
        nodes: 2,
        hosts: vec!["a".to_owned(), "b; reboot".to_owned()],
        hosepipe: "hosepipe".to_owned(),
        folder: None,
        options: Vec::new(),
        bench: vec!["$(touch /tmp/x); 'y'".to_owned()],
    };
    let [.., words] = &job.lines()[..] else { panic!("a line for each host") };
    let [ssh, .., end, host, line] = &words[..] else { panic!("{words:?}") };
    assert_eq!([ssh, end, host], ["ssh", "--", "b; reboot"]);
    assert!(line.contains(r"--name 'b; reboot'") && line.ends_with(r"-- '$(touch /tmp/x); '\''y'\'''"));
}

/// Happened: the token was written into a file that another user had made before, and could read.
#[test]
fn what_lies_in_the_folder_beforehand_is_neither_written_nor_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "1").expect("written");
    let link = |name: &str| std::fs::hard_link(&precious, folder.path().join(name)).expect("linked");
    link(".token-0");
    let rendezvous = Rendezvous::Folder(folder.path().to_owned());
    rendezvous.put("token-0", &"secret").expect("put");
    assert_eq!(std::fs::read_to_string(&precious).expect("still there"), "1");
    assert_eq!(rendezvous.get("token-0").expect("read"), Some("secret".to_owned()));
    std::os::unix::fs::symlink(&precious, folder.path().join("node-1")).expect("linked");
    assert!(rendezvous.get::<u32>("node-1").is_err_and(|error| error.to_string().contains("ELOOP")));
}

/// Expected: a node is stopped at any time. Happened: while the other end of a pair said nothing, the node waited for its first line, and for
/// nothing else.
#[test]
fn a_node_whose_other_end_says_nothing_can_be_stopped() {
    let lab = tempfile::tempdir().expect("a folder");
    let at = |name: &str| lab.path().join(name);
    let script = "#!/bin/sh\n[ \"$1\" = peer ] || exit 1\ncd \"${0%/*}\"\n: >began\nexec sleep 60\n";
    std::fs::write(at("hosepipe"), script).expect("written");
    std::fs::set_permissions(at("hosepipe"), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    [at("work"), at("own")].iter().for_each(|folder| std::fs::create_dir(folder).expect("a folder"));
    let rendezvous = Rendezvous::Folder(at("work"));
    let tool = || Tool { version: "1".to_owned(), revision: None };
    let partner = Status { step: 1, ..Status::new("b".to_owned(), 2, tool(), None) };
    rendezvous.put("node-1", &partner).expect("published");
    let cleaner = process::Cleaner::start().expect("a cleaner");
    let node = Node {
        rank: 0,
        size: 2,
        rendezvous: &rendezvous,
        status: Status::new("a".to_owned(), 2, tool(), Some([127, 0, 0, 1].into())),
        hosepipe: at("hosepipe"),
        folder: &at("own"),
        bench: Vec::new(),
        pair_time: Duration::from_millis(1),
        token_file: None,
        patience: Duration::from_secs(60),
        cleaner: &cleaner,
        stop: &|| at("began").exists(),
    };
    let began = Instant::now();
    let done = node.run(&mut |_| Ok(()));
    assert!(matches!(done, Err(NodeError::Stopped)), "{done:?}");
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}
