//! A reader that leaves before the end: processes that still write get SIGPIPE or an error, other processes nothing.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use mechanism::Folder;
use pipeline::link::{Bell, LinkSpec};

use super::{alone, couple, ends_soon, parallel_specs, reader, run, writer};

#[test]
fn a_reader_that_leaves_early_ends_its_writer() {
    let _alone = alone();
    for text in parallel_specs() {
        let folder = tempfile::tempdir().expect("temp dir");
        let start = Instant::now();
        let (writer, reader, report) = run(text, folder.path(), "exec yes", "head -1");
        assert!(start.elapsed() < Duration::from_secs(2), "{text}: {:?}", start.elapsed());
        assert!(reader.success(), "{text}");
        let like_a_pipe = ["pipe", "fifo", "tcp", "tmpfile", "file", "pty"];
        if text.contains("ends=pipe") || like_a_pipe.iter().any(|name| text.starts_with(name)) {
            assert_eq!(writer.signal(), Some(libc::SIGPIPE), "{text}: {writer}");
        } else {
            assert!(!writer.success(), "{text}: {writer}");
        }
        assert_eq!(report.trouble, None, "{text}");
        println!("{text}: {writer}, {report:?}, {:?}", start.elapsed());
    }
}

/// Expected: a file does not grow any more when its reader has left, whatever its writer does about that.
#[test]
fn a_file_stops_growing_when_its_reader_leaves() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("temp dir");
    let spec = LinkSpec::parse("file").expect("a link");
    // The writer ignores SIGPIPE and errors, and continues to write until it is killed. python3 ignores the signal by default.
    let write = "trap '' PIPE; while :; do head -c 100000 /dev/zero; done";
    let mut coupled = couple(&spec, folder.path(), write, "head -c 1");
    coupled.reader.wait().expect("reader");
    let held = || {
        let entries = fs::read_dir(folder.path()).expect("folder").map(|entry| entry.expect("entry"));
        entries.map(|entry| entry.metadata().expect("size").len()).sum::<u64>()
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while !coupled.link.is_over() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = held();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(held(), before);
    coupled.writer.kill().expect("it goes on");
    coupled.writer.wait().expect("writer");
    let report = coupled.link.finish().0;
    assert_eq!((report.stored_bytes, report.trouble), (Some(before), None));
    assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 0);
}

#[test]
fn a_holder_that_does_not_write_is_left_alone() {
    let _alone = alone();
    for text in ["pipe", "tmpfile", "file", "pty"] {
        let folder = tempfile::tempdir().expect("temp dir");
        // The shell holds the writing end all the time and outlives `yes`, which is stopped.
        let (writer, _, _) = run(text, folder.path(), "yes; exit $(( $? == 141 ? 7 : 8 ))", "head -1");
        assert_eq!(writer.code(), Some(7), "{text}: {writer}");
    }
}

/// Expected: a shell whose child has lost its reader goes on, as over a pipe, whatever else it writes; a copy that is
/// kept makes no difference.
/// Happened: with a kept copy the file seemed to grow at each check, and the shell was stopped. A shell that had waited
/// for its child was stopped, too: the child's bytes counted as its own.
#[test]
fn a_shell_that_waited_for_a_writer_is_no_writer() {
    let _alone = alone();
    for text in ["pipe", "tmpfile", "file", "pty"] {
        for keep in [false, true] {
            let folder = tempfile::tempdir().expect("temp dir");
            let spec = LinkSpec::parse(text).expect(text);
            let mut link = spec.connect(&Folder::at(folder.path()), &Bell::default()).expect(text);
            let kept = tempfile::tempfile().expect("a file");
            if keep {
                link.keep(kept.try_clone().expect("a descriptor")).expect(text);
            }
            let marker = tempfile::NamedTempFile::new().expect("a file");
            let path = marker.path().display();
            let write = format!("seq 100000; echo x >> '{path}'; sleep 0.2; echo x >> '{path}'; exit 7");
            let mut writing = writer(&mut link, &write);
            let mut reading = reader(&mut link, "head -1");
            assert!(reading.wait().expect("reader").success());
            assert_eq!(writing.wait().expect("writer").code(), Some(7), "{text}, kept: {keep}");
            assert_eq!(fs::read_to_string(marker.path()).expect("written"), "x\nx\n", "{text}, kept: {keep}");
            assert_eq!(link.finish().0.trouble, None, "{text}, kept: {keep}");
            let kept_bytes = kept.metadata().expect("its size").len();
            assert!(kept_bytes <= 588_895 && (kept_bytes > 0) == keep, "{text}: {kept_bytes} bytes are kept");
        }
    }
}

/// Expected: a writer that ignores SIGPIPE gets an error from write(2), as over a pipe, and goes on.
/// Happened: from then on it could write no file at all (RLIMIT_FSIZE=0).
#[test]
fn a_writer_that_ignores_sigpipe_is_told_and_can_write_files() {
    let _alone = alone();
    for text in ["pipe", "tmpfile", "file", "pty"] {
        let folder = tempfile::tempdir().expect("temp dir");
        let marker = tempfile::NamedTempFile::new().expect("a file");
        let made = format!("head -c 5000 /dev/zero > '{}'", marker.path().display());
        let write = format!("trap '' PIPE; while echo y; do :; done; {made}; exit 7");
        let (writer, reader, report) = run(text, folder.path(), &write, "head -1");
        assert!(reader.success(), "{text}");
        assert_eq!((writer.code(), report.trouble), (Some(7), None), "{text}: {writer}");
        assert_eq!(fs::metadata(marker.path()).expect("made").len(), 5000, "{text}");
    }
}

#[test]
fn an_orphaned_writer_is_stopped_too() {
    let _alone = alone();
    for text in ["pipe", "tmpfile"] {
        let folder = tempfile::tempdir().expect("temp dir");
        let note = folder.path().join("pid");
        let write = format!("yes & echo $! > '{}'", note.display());
        run(text, folder.path(), &write, "head -1");
        assert!(ends_soon(&note), "{text}: yes goes on");
    }
}
