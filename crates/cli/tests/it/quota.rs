//! An ordinary user whose budget of pipe pages (fs.pipe-user-pages-soft) is spent by other pipes: pipes are small,
//! and cannot be made larger. Figures come with the sizes really granted, or a row says the reason and the remedy.
//!
//! Only root can run as another user; without it all of this is skipped.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::{Done, Lab, another_user, error_of, is_root, registry, skip, soon, until};
use model::{ErrorKind, Tasks, Workload};

/// The first of the users without any process: one each, because a pipe that one test has closed lives on in a child
/// that another test has forked and that has not executed its program yet. (The other tests run programs as `nobody`.)
static NEXT_USER: AtomicU32 = AtomicU32::new(65000);
/// What a pipe holds where nothing is in the way, in bytes.
const ORDINARY_PIPE_BYTES: u64 = 64 << 10;

/// A place where a user can run hosepipe and has no pages left for pipes. `None` where only root could make it.
struct Poor {
    lab: Lab,
    user: u32,
    /// As long as they are open, the budget is spent. The last one was made when it was.
    pipes: Vec<OwnedFd>,
    /// `top` names one user: the one with the fullest budget.
    _turn: MutexGuard<'static, ()>,
}

impl Poor {
    fn new() -> Option<Self> {
        if !is_root() {
            skip("only root can run as another user");
            return None;
        }
        let soft = fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").expect("a setting of the kernel");
        if soft.trim() == "0" {
            skip("fs.pipe-user-pages-soft is 0: there is no budget to spend");
            return None;
        }
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = Lab::new();
        let user = NEXT_USER.fetch_add(1, Ordering::Relaxed);
        let pipes = another_user::spend_pipe_pages(user).expect("pipes of another user");
        Some(Self { lab, user, pipes, _turn: turn })
    }

    /// A script of the shell, run by the user; `./program` is hosepipe, and `"$@"` the arguments.
    fn script(&self, script: &str, args: &[&str]) -> Command {
        another_user::script(self.user, &self.lab, script, args)
    }

    fn bench(&self, args: &[&str]) -> Done {
        let words = [&["bench", "--json", "-"], args].concat();
        self.lab.finish(self.script("exec ./program \"$@\"", &words))
    }
}

/// Expected: without `size=` a pipe works, as small as it is, and the record says how small; with `size=` the row
/// says which limit refused it, and what to do.
#[test]
fn a_pipe_has_the_size_it_was_granted_or_a_reason() {
    let Some(poor) = Poor::new() else { return };
    let done = poor.bench(&[
        "pipe",
        "pipe:size=1MiB",
        "fifo",
        "null",
        "memcpy",
        "--workload",
        "stream",
        "--bytes",
        "1MiB",
        "--trials",
        "1",
    ]);
    let done = done.expect_code(0);
    for case in done.record().cases.iter().filter(|case| ["pipe", "fifo"].contains(&case.mechanism.as_str()))
    {
        if case.spec.to_string() == "pipe:size=1MiB" {
            let error = error_of(case);
            assert_eq!((error.kind, error.expected), (ErrorKind::Limit, true), "{error:?}");
            assert!(error.message.contains("fs.pipe-user-pages-soft"), "{error:?}");
            let remedy = error.remedy.as_deref().unwrap_or_default();
            assert!(remedy.contains("close other pipes") && remedy.contains("smaller size="), "{error:?}");
        } else {
            assert!(case.error.is_none() && !case.samples.is_empty(), "{case:?}");
            let granted = case.granted.get("pipe_bytes").copied().unwrap_or_default();
            assert!((1..ORDINARY_PIPE_BYTES).contains(&granted), "{}: {granted} bytes", case.spec);
        }
    }
}

/// Whatever a mechanism needs pipes for: it has its figures, or a reason that has a name and is no bug of ours.
#[test]
fn every_mechanism_has_figures_or_a_reason() {
    let Some(poor) = Poor::new() else { return };
    let entries = registry(&Lab::new());
    let two_ends = entries.iter().filter(|entry| {
        entry.tasks.contains(&Tasks::Processes) && entry.workloads.contains(&Workload::Stream)
    });
    let mut specs: Vec<&str> = two_ends.map(|entry| entry.name.as_str()).collect();
    specs.extend(["pipe:packet", "pipe:send=writev", "pipe:send=vmsplice", "pipe:send=vmsplice,size=1MiB"]);
    specs.extend(["splice:size=1MiB", "splice:to=socket", "io-uring:size=1MiB"]);
    let args = ["--workload", "stream", "--block", "8KiB", "--count", "32", "--trials", "1"];
    let done = poor.bench(&[&specs[..], &args].concat()).expect_code(0);
    for case in done.record().cases {
        let Some(error) = &case.error else {
            assert_eq!(case.samples.len(), 1, "{}", case.spec);
            continue;
        };
        let stated = [ErrorKind::Limit, ErrorKind::Unavailable].contains(&error.kind);
        assert!(stated && error.expected && error.remedy.is_some(), "{}: {error:?}", case.spec);
    }
}

/// By reference into /dev/null, nothing looked at: the roads that work on the pipe itself.
#[test]
fn bytes_by_reference_pass_a_small_pipe() {
    if model::vmsplice_refusal().is_some() {
        return skip("vmsplice(2) is forbidden here");
    }
    let Some(poor) = Poor::new() else { return };
    let specs = ["pipe:send=vmsplice,recv=splice", "pipe:send=tee,recv=splice"];
    let args = ["--workload", "stream", "--data", "none", "--count", "32", "--trials", "1"];
    let done = poor.bench(&[&specs[..], &args].concat()).expect_code(0);
    for case in done.cases_of("pipe") {
        assert!(case.error.is_none() && case.samples.len() == 1, "{}: {:?}", case.spec, case.error);
    }
}

/// Expected: the filters ask for a large pipe and go on with the one they have.
#[test]
fn the_filters_go_on_with_a_small_pipe() {
    let Some(poor) = Poor::new() else { return };
    let script = "./program gen --bytes 16MiB | ./program sink --verify";
    let done = poor.lab.finish(poor.script(script, &[])).expect_code(0);
    assert!(!done.stderr.contains("EPERM"), "{}", done.stderr);
}

/// Past the soft quota new pipes have two pages (one before Linux 5.14), and `top` names the user who has spent it.
#[test]
fn top_shows_the_user_who_has_spent_the_quota() {
    if !another_user::are_seen() {
        return skip("only root sees the pipes of another user, and only with CAP_SYS_PTRACE");
    }
    let Some(poor) = Poor::new() else { return };
    let made = poor.pipes.last().and_then(|pipe| rustix::pipe::fcntl_getpipe_size(pipe).ok());
    let page = rustix::param::page_size();
    assert!(made == Some(2 * page) || made == Some(page), "{made:?}");
    let done = poor.lab.run(&["top", "--once", "--json", "-"]).expect_code(0);
    let record: model::TopRecord = serde_json::from_str(&done.stdout).expect("a record");
    let quota = record.seen.pipe_quota.expect("pipes");
    assert_eq!(quota.uid, poor.user);
    assert!(quota.soft_pages > 0 && quota.used_pages + 16 > quota.soft_pages, "{quota:?}");
    let text = poor.lab.run(&["top", "--once"]).expect_code(0).stdout;
    assert!(text.contains(&format!("Pipes of user {}", poor.user)) && text.contains("100 %"), "{text}");
}

/// Expected: a writer whose pipe is small for that reason, with the process that has most of the quota.
#[test]
fn why_names_the_process_that_has_most_of_a_spent_quota() {
    if is_root() && !another_user::are_seen() {
        return skip("only root sees the pipes of another user, and only with CAP_SYS_PTRACE");
    }
    if model::file_on_path("python3").is_none() {
        return skip("no python3");
    }
    let Some(poor) = Poor::new() else { return };
    // 96 unread bytes in one page and 1 in the other: a third page is not free.
    let script = "exec python3 -c '
import os, time
r, w = os.pipe()
if os.fork() == 0:
    os.close(r); os.write(w, b\"t\" * 4096); os.write(w, b\"+\"); os.write(w, b\"-\" * 4096); os._exit(0)
os.close(w); os.read(r, 4000); time.sleep(100)'";
    let running = poor.lab.start(poor.script(script, &[]));
    let pid = running.pid().to_string();
    let edges = until("a small pipe", soon(), || {
        // What still runs in the other folder was not left behind.
        let done = Lab::new().run(&["why", "--json", "-", &pid]);
        let record: model::WhyRecord = serde_json::from_str(&done.stdout).ok()?;
        let answer = record.answers.into_iter().next()?;
        eprintln!("{answer:?}");
        (answer.cause == model::WhyCause::SmallPipe).then_some(answer.edges)
    });
    let last = edges.last().expect("edges");
    assert_eq!(last.from.pid, std::process::id().cast_signed(), "{edges:?}");
    assert!(last.does.contains("fs.pipe-user-pages-soft"), "{edges:?}");
}

#[test]
fn a_boost_without_quota_says_so_and_harms_nobody() {
    let Some(poor) = Poor::new() else { return };
    let script = "exec ./program boost --json - bash -c 'yes | sleep 0.3; exit 3'";
    let done = poor.lab.finish(poor.script(script, &[])).expect_code(3);
    let record: model::BoostRecord = serde_json::from_str(&done.stdout).expect("a record");
    assert!(record.boosted.is_empty(), "{record:?}");
    assert!(
        record.refused.is_some_and(|why| why.contains("quota of pipe pages is spent")),
        "{}",
        done.stderr
    );
    assert_eq!(record.pipe_quota.map(|quota| quota.uid), Some(poor.user));
    assert!(done.stderr.starts_with("No pipe was enlarged in"), "{}", done.stderr);
}
