//! Links between real programs: every byte arrives, the end of each program reaches the other, and nothing is left behind.

mod leaving;

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use mechanism::Folder;
use model::LinkRecord;
use pipeline::link::{Bell, Link, LinkSpec};

/// All links, with their options. Those that this machine does not have are skipped.
const SPECS: &[&str] = &[
    "pipe",
    "pipe:size=4KiB",
    "fifo",
    "fifo:size=64KiB",
    "socketpair",
    "unix-stream",
    "unix-stream:sndbuf=16KiB,rcvbuf=16KiB",
    "tcp",
    "tcp:nodelay",
    "tmpfile",
    "tmpfile:order=sequential",
    "file",
    "file:sync",
    "file:order=sequential",
    "pty",
    "pipe:ends=pipe",
    "fifo:ends=pipe",
    "socketpair:ends=pipe",
    "unix-stream:ends=pipe,sndbuf=16KiB",
    "tcp:ends=pipe",
    "pty:ends=pipe",
];

/// The tests count this process's descriptors and search for processes that hold a file, so only one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The first name that is made starts the cleaner of this process, whose descriptors stay open.
    static CLEANER: Once = Once::new();
    CLEANER.call_once(|| {
        let folder = tempfile::tempdir().expect("temp dir");
        let fifo = LinkSpec::parse("fifo").expect("a link");
        drop(fifo.connect(&Folder::at(folder.path()), &Bell::default()).expect("a fifo"));
    });
    alone
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// Descriptors that are left, compared with those before. A thread of its own closes what watched a file, which takes a little time.
fn descriptors_left(before: usize) -> usize {
    let left = || descriptors().saturating_sub(before);
    let deadline = Instant::now() + Duration::from_secs(20);
    std::iter::repeat_with(left).find(|left| *left == 0 || Instant::now() > deadline).unwrap_or_default()
}

/// Relays that are left, by the name of their threads: the test harness has other threads. A thread that was joined stays in
/// `/proc` a little longer: the kernel wakes who joins it before it takes it off the list.
fn relays_left() -> usize {
    let relays = || {
        let tasks = fs::read_dir("/proc/self/task").expect("proc").map(|task| task.expect("a task").path());
        let names = tasks.filter_map(|task| fs::read_to_string(task.join("comm")).ok());
        names.filter(|name| name.trim() == "hosepipe-relay").count()
    };
    let deadline = Instant::now() + Duration::from_secs(1);
    std::iter::repeat_with(relays).find(|left| *left == 0 || Instant::now() > deadline).unwrap_or_default()
}

fn is_available(spec: &LinkSpec) -> bool {
    let name = spec.to_string();
    let name = name.split(':').next().unwrap_or_default();
    let mechanism = mechanism::all().iter().find(|mechanism| mechanism.name == name);
    let probe = mechanism.expect("in the registry").probe();
    if let Err(missing) = &probe {
        eprintln!("skipped: {spec}: {missing}");
    }
    probe.is_ok()
}

/// The links that this machine has.
fn specs() -> impl Iterator<Item = (&'static str, LinkSpec)> {
    let spec = |text: &&'static str| (*text, LinkSpec::parse(text).expect(text));
    SPECS.iter().map(spec).filter(|(_, spec)| is_available(spec))
}

/// Those of them whose reader does not wait for the writer's end.
fn parallel_specs() -> impl Iterator<Item = &'static str> {
    specs().map(|(text, _)| text).filter(|text| !text.contains("sequential"))
}

/// Two programs over a link, started in its order.
struct Coupled {
    link: Link,
    writer: Child,
    reader: Child,
}

fn writer(link: &mut Link, script: &str) -> Child {
    let out = link.take_write().expect("the writer's end");
    // The command owns our copy of the end, and closes it on return.
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    let child = command.spawn().expect("bash");
    drop(command);
    link.await_writers(None).expect("a thread");
    child
}

fn reader(link: &mut Link, script: &str) -> Child {
    let input = link.take_read().expect("the reader's end");
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("bash")
}

/// Waits until the writer's end is closed, if the reader may begin only then.
fn wait_until_written(link: &mut Link) {
    while !link.is_written() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn couple(spec: &LinkSpec, folder: &Path, write: &str, read: &str) -> Coupled {
    let mut link =
        spec.connect(&Folder::at(folder), &Bell::default()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let writer = writer(&mut link, write);
    wait_until_written(&mut link);
    let reader = reader(&mut link, read);
    Coupled { link, writer, reader }
}

impl Coupled {
    fn end(mut self) -> (ExitStatus, ExitStatus, LinkRecord) {
        let reader = self.reader.wait().expect("reader");
        let writer = self.writer.wait().expect("writer");
        (writer, reader, self.link.finish().0)
    }
}

fn run(text: &str, folder: &Path, write: &str, read: &str) -> (ExitStatus, ExitStatus, LinkRecord) {
    couple(&LinkSpec::parse(text).expect(text), folder, write, read).end()
}

/// Whether the process whose PID is in this file ends within two seconds.
fn ends_soon(note: &Path) -> bool {
    let pid = fs::read_to_string(note).expect("its PID");
    let stat = format!("/proc/{}/stat", pid.trim());
    let lives = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
    let deadline = Instant::now() + Duration::from_secs(2);
    while lives() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    !lives()
}

/// Pseudo-random bytes, the same in every run.
fn payload(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn every_byte_arrives_over_every_link() {
    let _alone = alone();
    let outside = tempfile::tempdir().expect("temp dir");
    let (source, arrived) = (outside.path().join("source"), outside.path().join("arrived"));
    for len in [0, 1, 3 << 20] {
        let data = payload(len);
        fs::File::create(&source).and_then(|mut file| file.write_all(&data)).expect("source");
        for (text, spec) in specs() {
            let folder = tempfile::tempdir().expect("temp dir");
            let before = descriptors();
            let write = format!("cat '{}'", source.display());
            let read = format!("cat > '{}'", arrived.display());
            let (writer, reader, report) = couple(&spec, folder.path(), &write, &read).end();
            assert!(writer.success() && reader.success(), "{text}, {len} bytes: {writer}, {reader}");
            assert!(fs::read(&arrived).expect("arrived") == data, "{text}: {len} bytes differ");
            assert_eq!(report.trouble, None, "{text}");
            assert!(report.bytes.is_none_or(|bytes| bytes == len as u64), "{text}: {report:?}");
            assert!(report.stored_bytes.is_none_or(|bytes| bytes == len as u64), "{text}: {report:?}");
            let stores = text.contains("file");
            assert_eq!(report.stored_bytes.is_some(), stores, "{text}");
            assert_eq!(report.path.is_some(), text.starts_with("file"), "{text}");
            let pipe_ends = text.contains("ends=pipe") && !text.starts_with("pipe");
            let relay = stores && !text.contains("sequential") || text.starts_with("pty") || pipe_ends;
            assert_eq!(report.relay, relay, "{text}");
            assert_eq!(descriptors_left(before), 0, "{text}: descriptors are left");
            assert_eq!(relays_left(), 0, "{text}: threads are left");
            assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 0, "{text}: names are left");
        }
    }
}

/// Expected: over a file or a terminal both programs find a true pipe. Happened: the writer had the file, or the terminal, itself.
#[test]
fn both_programs_find_a_pipe() {
    let _alone = alone();
    for (text, _) in specs().filter(|(text, _)| {
        text.contains("ends=pipe") || ["tmpfile", "file", "file:sync", "pty"].contains(text)
    }) {
        let folder = tempfile::tempdir().expect("temp dir");
        let read = "[ -p /dev/stdin ] && [ $(cat) = x ]";
        let (writer, reader, _) =
            run(text, folder.path(), "[ -p /dev/stdout ] && [ ! -t 1 ] && echo x", read);
        assert!(writer.success() && reader.success(), "{text}: {writer}, {reader}");
    }
}

#[test]
fn a_second_description_of_the_writers_end_is_not_its_end() {
    let _alone = alone();
    for text in ["tmpfile", "file", "tmpfile:order=sequential"] {
        let folder = tempfile::tempdir().expect("temp dir");
        let write = "echo a >> /dev/stdout; sleep 0.2; echo b";
        let (writer, reader, report) = run(text, folder.path(), write, "[ \"$(cat)\" = $'a\\nb' ]");
        assert!(writer.success() && reader.success(), "{text}: {writer}, {reader}, {report:?}");
    }
}

#[test]
fn a_program_in_the_background_does_not_hold_the_link() {
    let _alone = alone();
    for text in parallel_specs() {
        let folder = tempfile::tempdir().expect("temp dir");
        let before = descriptors();
        let start = Instant::now();
        let (writer, reader, _) = run(text, folder.path(), "sleep 3 & echo x", "read line");
        assert!(writer.success() && reader.success(), "{text}: {writer}, {reader}");
        assert!(start.elapsed() < Duration::from_secs(2), "{text}: {:?}", start.elapsed());
        assert_eq!(descriptors_left(before), 0, "{text}");
    }
}

#[test]
fn two_programs_in_the_background_do_not_hold_the_link() {
    let _alone = alone();
    for text in ["tmpfile", "file", "pty"] {
        let folder = tempfile::tempdir().expect("temp dir");
        let note = folder.path().join("pid");
        let write = format!("yes & echo $! > '{}'", note.display());
        let start = Instant::now();
        let (.., report) = run(text, folder.path(), &write, "cat <&0 > /dev/null &");
        assert!(start.elapsed() < Duration::from_secs(3), "{text}: {:?}", start.elapsed());
        assert!(report.trouble.is_some_and(|trouble| trouble.contains("in the background")), "{text}");
        assert!(ends_soon(&note), "{text}: yes goes on");
    }
}

#[test]
fn a_reader_in_the_background_gets_what_was_written() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("temp dir");
    let arrived = tempfile::NamedTempFile::new().expect("a file");
    let read = format!("{{ sleep 0.1; exec cat; }} <&0 > '{}' &", arrived.path().display());
    let (.., report) = run("tmpfile", folder.path(), "head -c 3M /dev/zero", &read);
    assert_eq!((report.bytes, report.trouble), (Some(3 << 20), None));
    let deadline = Instant::now() + Duration::from_secs(2);
    let len = || fs::metadata(arrived.path()).expect("arrived").len();
    while len() < 3 << 20 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(len(), 3 << 20);
}

#[test]
fn links_stand_in_a_row() {
    let _alone = alone();
    for text in ["pipe", "tcp", "tmpfile", "pty", "file:order=sequential"] {
        let folder = tempfile::tempdir().expect("temp dir");
        let spec = LinkSpec::parse(text).expect(text);
        let mut first = spec.connect(&Folder::at(folder.path()), &Bell::default()).expect(text);
        let mut numbers = writer(&mut first, "seq 100000");
        wait_until_written(&mut first);
        let mut second = spec.connect(&Folder::at(folder.path()), &Bell::default()).expect(text);
        let mut sort = Command::new("sort");
        sort.arg("-rn")
            .stdin(first.take_read().expect("an end"))
            .stdout(second.take_write().expect("an end"));
        let mut sorter = sort.stderr(Stdio::null()).spawn().expect("sort");
        drop(sort);
        second.await_writers(None).expect("a thread");
        wait_until_written(&mut second);
        let mut last = reader(&mut second, "[ $(head -1) = 100000 ]");
        for child in [&mut last, &mut numbers] {
            assert!(child.wait().expect("a child").success(), "{text}");
        }
        // SIGPIPE stops it, unless it has ended before.
        sorter.wait().expect("sort");
        assert_eq!(first.finish().0.trouble, None, "{text}");
        assert_eq!(second.finish().0.trouble, None, "{text}");
    }
}

#[test]
fn a_sequential_reader_starts_after_the_writer() {
    let _alone = alone();
    for text in ["tmpfile:order=sequential", "file:order=sequential", "file:sync,order=sequential"] {
        let folder = tempfile::tempdir().expect("temp dir");
        let start = Instant::now();
        let mut link = LinkSpec::parse(text)
            .expect(text)
            .connect(&Folder::at(folder.path()), &Bell::default())
            .expect(text);
        let mut writing = writer(&mut link, "echo a; (sleep 0.3; echo b) &");
        wait_until_written(&mut link);
        assert!(start.elapsed() > Duration::from_millis(300), "{text}: the child of the writer still wrote");
        assert!(writing.wait().expect("writer").success());
        let mut reading = reader(&mut link, "[ -f /dev/stdin ] && [ \"$(cat)\" = $'a\\nb' ]");
        assert!(reading.wait().expect("reader").success(), "{text}");
        assert_eq!(link.finish().0.bytes, Some(4), "{text}");
    }
}

#[test]
fn a_link_that_is_dropped_leaves_nothing() {
    let _alone = alone();
    for (text, spec) in specs() {
        let folder = tempfile::tempdir().expect("temp dir");
        let before = descriptors();
        let start = Instant::now();
        drop(spec.connect(&Folder::at(folder.path()), &Bell::default()).expect(text));
        assert!(start.elapsed() < Duration::from_secs(1), "{text}");
        assert_eq!((descriptors_left(before), relays_left()), (0, 0), "{text}");
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 0, "{text}");
    }
}

#[test]
fn a_relay_takes_no_signals() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("temp dir");
    let _link = LinkSpec::parse("tmpfile")
        .expect("a link")
        .connect(&Folder::at(folder.path()), &Bell::default())
        .expect("link");
    let relay = || {
        let tasks = fs::read_dir("/proc/self/task").expect("proc").map(|task| task.expect("a task").path());
        let mut status = tasks.map(|task| fs::read_to_string(task.join("status")).unwrap_or_default());
        status.find(|status| status.contains("hosepipe-relay"))
    };
    // A new thread sets its name itself, a little later.
    let deadline = Instant::now() + Duration::from_secs(1);
    let relay = std::iter::repeat_with(relay)
        .find(|relay| relay.is_some() || Instant::now() > deadline)
        .flatten()
        .expect("a relay");
    let blocked = relay.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask");
    let mask = u64::from_str_radix(blocked.trim(), 16).expect("hexadecimal");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGCHLD] {
        assert!(mask & 1 << (signal - 1) != 0, "{signal} reaches the relay: {blocked}");
    }
}

#[test]
fn sizes_are_what_was_granted() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("temp dir");
    let granted = |text: &str, name: &str| {
        let link = LinkSpec::parse(text)
            .expect(text)
            .connect(&Folder::at(folder.path()), &Bell::default())
            .expect(text);
        link.record().granted.get(name).copied().unwrap_or_else(|| panic!("{text} grants {name}"))
    };
    assert_eq!(granted("pipe:size=100KiB", "pipe_bytes"), 128 << 10);
    assert_eq!(granted("fifo:size=4KiB", "pipe_bytes"), 4 << 10);
    for text in ["pipe", "fifo", "tmpfile", "pty"] {
        // An ordinary user who has spent fs.pipe-user-pages-soft gets less.
        assert!(granted(text, "pipe_bytes") >= 4 << 10, "{text}");
        println!("{text}: {} bytes", granted(text, "pipe_bytes"));
    }
    // The kernel doubles what is asked for, and keeps a least size.
    assert_eq!(granted("unix-stream:sndbuf=16KiB", "sndbuf_bytes"), 32 << 10);
    assert!(granted("tcp", "rcvbuf_bytes") > 0);
    let refused = LinkSpec::parse("pipe:size=4GiB")
        .expect("a size")
        .connect(&Folder::at(folder.path()), &Bell::default())
        .err();
    assert!(refused.is_some_and(|error| error.to_string().contains("more than the kernel can make")));
}

/// A mounted file system of 1 MiB, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("temp dir");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path()).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_told() {
    let _alone = alone();
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    };
    for text in ["tmpfile", "file", "tmpfile:order=sequential"] {
        let (writer, reader, report) = run(text, disk.0.path(), "exec head -c 3M /dev/zero", "cat");
        let is_sequential = text.contains("sequential");
        let by_sigpipe = writer.signal() == Some(libc::SIGPIPE);
        assert_eq!(by_sigpipe, !is_sequential, "{text}: {writer}");
        assert!(!writer.success() && reader.success(), "{text}: {writer}, {reader}");
        if is_sequential {
            // The server knows how the writer ended, and says so: `run::trouble` of the command line.
            assert_eq!(report.trouble, None);
            continue;
        }
        let trouble = report.trouble.unwrap_or_default();
        assert!(trouble.starts_with(&format!("link {text}: no room left in ")), "{trouble}");
        assert!(trouble.contains(&disk.0.path().display().to_string()), "{trouble}");
        assert!(report.stored_bytes.is_some_and(|bytes| bytes > 900 << 10), "{text}");
        println!("{trouble}");
    }
}
