//! `--keep`: what flowed through each link, as bash and tee(1) would have kept it.

use std::fs;

use super::place::{PARALLEL, bash, links, recorded, run};
use crate::common::{Lab, promptly};

const PIPELINE: &str = "seq 60000 | sort -r | sed 's/1/one/' | wc -c";
const WITH_TEE: &str = "seq 60000 | tee 1 | sort -r | tee 2 | sed 's/1/one/' | tee 3 | wc -c";

#[test]
fn it_keeps_what_tee_would_over_every_link() {
    let reference = Lab::new();
    let (_, expected) = bash(&reference, &[], WITH_TEE);
    for via in links() {
        let lab = Lab::new();
        let (done, record) = recorded(&lab, &["--via", via, "--keep", "kept/here", PIPELINE]);
        assert_eq!((done.code(), &done.stdout), (0, &expected), "{via}: {}", done.stderr);
        for (name, teed) in [("1-seq", "1"), ("2-sort", "2"), ("3-sed", "3")] {
            let kept = fs::read(lab.here("kept/here").join(name)).expect("a kept file");
            assert!(kept == fs::read(reference.here(teed)).expect("what tee kept"), "{name} over {via}");
        }
        let kept: Vec<Option<String>> = record.links.iter().map(|link| link.kept.clone()).collect();
        let path = |name: &str| Some(format!("kept/here/{name}"));
        assert_eq!(kept, [path("1-seq"), path("2-sort"), path("3-sed")], "{via}");
    }
}

/// Expected: a file that could not take everything says so by its name, and the run by its status. Happened: on a full disk it was named as a
/// whole one; status 0.
#[test]
fn what_could_not_all_be_kept_is_named_so_and_is_no_success() {
    for via in ["pipe", "socketpair", "pty", "fifo"] {
        let lab = Lab::new();
        let args = ["run", "--via", via, "--keep", "kept", "head -c 1000000 /dev/zero | wc -c"];
        let done = lab.finish(lab.wrapped(&["prlimit", "--fsize=100000"], &args)).expect_code(1);
        assert_eq!(done.stdout.trim(), "1000000", "{via}: the reader gets everything all the same");
        assert!(
            done.stderr.contains("not all bytes could be kept in ") && done.stderr.contains("EFBIG"),
            "{via}: {}",
            done.stderr
        );
        let size = fs::metadata(lab.here("kept/1-head.incomplete")).map(|file| file.len());
        assert_eq!(size.expect("what was kept"), 100_000, "{via}");
    }
}

#[test]
fn it_overwrites_nothing_unless_told_to() {
    let lab = Lab::new();
    run(&lab, &["--keep", "kept", "echo first | cat"]).expect_code(0);
    // Names that are free are another pipeline's all the same.
    for text in ["echo second > ran | cat", "seq 3 > ran | cat"] {
        let done = run(&lab, &["--keep", "kept", text]).expect_code(2);
        assert!(done.stderr.contains("kept/1-shell") && done.stderr.contains("--force"), "{}", done.stderr);
        assert!(!lab.here("ran").exists(), "refused before anything ran");
    }
    assert_eq!(fs::read_to_string(lab.here("kept/1-shell")).expect("still there"), "first\n");
    run(&lab, &["--keep", "kept", "--force", "echo third | cat"]).expect_code(0);
    assert_eq!(fs::read_to_string(lab.here("kept/1-shell")).expect("a kept file"), "third\n");
    run(&lab, &["--keep", "kept", "--force", "seq 3 | cat"]).expect_code(0);
    assert_eq!(fs::read_to_string(lab.here("kept/1-seq")).expect("a kept file"), "1\n2\n3\n");
}

#[test]
fn it_ends_with_the_reader_and_keeps_what_was_taken() {
    for via in PARALLEL {
        let lab = Lab::new();
        let done = run(&lab, &["--via", via, "--keep", "kept", "yes | head -1"]).expect_code(0);
        assert_eq!(done.stdout, "y\n", "{via}");
        assert!(done.elapsed < promptly(), "{via}: {:?}", done.elapsed);
        let kept = fs::read_to_string(lab.here("kept/1-yes")).expect("a kept file");
        assert!(kept.starts_with("y\n"), "{via}: {} bytes", kept.len());
        assert!(kept.bytes().all(|byte| byte == b'y' || byte == b'\n'), "{via}");
    }
}

#[test]
fn it_keeps_each_item_of_a_list_apart() {
    let lab = Lab::new();
    let done =
        run(&lab, &["--keep", "kept", "echo a | cat; cd /; echo b; printf c | cat | cat; (seq 2) | tac"])
            .expect_code(0);
    assert_eq!(done.stdout, "a\nb\nc2\n1\n");
    let mut names = crate::common::files_in(&lab.here("kept"));
    names.sort();
    let names: Vec<&str> = names.iter().filter_map(|path| path.rsplit('/').next()).collect();
    assert_eq!(names, ["1.1-shell", "2.1-shell", "2.2-cat", "3.1-seq"]);
    assert_eq!(fs::read_to_string(lab.here("kept/2.2-cat")).expect("a kept file"), "c");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_before_anything_runs() {
    let lab = Lab::new();
    fs::write(lab.here("file"), "").expect("a file");
    for folder in ["file", "file/below"] {
        let done = run(&lab, &["--keep", folder, "echo x > ran | cat"]).expect_code(2);
        assert!(done.stderr.contains(folder), "{}", done.stderr);
        assert!(!lab.here("ran").exists());
    }
    let done = run(&lab, &["--force", "true"]).expect_code(2);
    assert!(done.stderr.contains("--keep"), "--force alone means nothing: {}", done.stderr);
}
