//! Which calls of a shell make the pipes of pipelines: learnt once for each shell's file, by running it on examples.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::Signal;
use pipes::protocol::{Config, Plain, mode};
use pipes::sites::{SAMPLE_BYTES, SITES_MAX, SLOTS, Sample, Sites, find_sites};
use process::{ready_within, signals, why_open_to_others};
use rustix::event::PollFlags;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use tempfile::NamedTempFile;

use crate::preload::Library;
use crate::shell::{Kind, Shell};

/// Example scripts, each with the number of pipes that its pipelines have.
const PIPELINES: [(usize, &str); 4] = [
    (1, "true | true"),
    (2, "true | true | true"),
    // Some shells wait only for the last stage, so the inner pipeline is last.
    (2, "true | { true | true; }"),
    (2, "f() { true | true; }\nf\ntrue | true &\nwait"),
];

/// Example scripts without pipelines, whose pipes have other purposes. A shell that lacks the syntax makes no pipe.
const OTHERS: [&str; 6] = [
    "x=$(true)",
    "x=`true`",
    "cat <<E\nx\nE",
    "cat <<<x",
    "cat <(true); true > >(cat)",
    "coproc { true; }; wait",
];

/// The same for fish, which has another grammar.
const PIPELINES_OF_FISH: [(usize, &str); 4] = [
    (1, "true | true"),
    (2, "true | true | true"),
    (2, "true | begin; true | true; end"),
    (1, "function f; true | true; end; f"),
];
const OTHERS_OF_FISH: [&str; 1] = ["set x (true)"];

/// Time limit of one example, long enough for a slow machine.
const EXAMPLE_TIME_MAX: Duration = Duration::from_secs(10);

/// The calls that make the pipes of pipelines; `None` if nothing distinguishes them from others.
///
/// # Errors
/// The shell could not be started on an example.
pub(crate) fn sites(shell: &Shell, library: &Library) -> io::Result<Option<Sites>> {
    let (folder, name) = (cache(), format!("{}-{}", shell.fingerprint, pipes::FINGERPRINT));
    if let Some(text) = folder.as_ref().and_then(|folder| std::fs::read_to_string(folder.join(&name)).ok())
        && let Some(found) = read(&text)
    {
        return Ok(Some(found));
    }
    let found = learn(shell, library)?;
    // If nothing was found, an example may have failed (no process, no memory): the next run learns again.
    if let (Some(folder), Some(found)) = (folder, found) {
        // If it cannot be written, the next run learns again.
        let _ = keep(&folder, &name, &write(found));
    }
    Ok(found)
}

fn learn(shell: &Shell, library: &Library) -> io::Result<Option<Sites>> {
    let run = |text: &str| example(shell, library, text);
    let (pipelines, others) = match shell.kind {
        Kind::Fish => (&PIPELINES_OF_FISH, &OTHERS_OF_FISH[..]),
        _ => (&PIPELINES, &OTHERS[..]),
    };
    let seen = pipelines.iter().map(|(pipes, text)| Ok((*pipes, run(text)?)));
    let seen = seen.collect::<io::Result<Vec<_>>>()?;
    let foreign = others.iter().map(|text| run(text)).collect::<io::Result<Vec<_>>>()?.concat();
    let seen: Vec<(usize, &[Sample])> = seen.iter().map(|(pipes, samples)| (*pipes, &samples[..])).collect();
    Ok(find_sites(&seen, &foreign))
}

/// The calls that a shell makes while it runs a text.
fn example(shell: &Shell, library: &Library, text: &str) -> io::Result<Vec<Sample>> {
    let mut notes = File::from(memfd_create("notes", MemfdFlags::CLOEXEC)?);
    fcntl_setfd(&notes, FdFlags::empty())?;
    let mut command = Command::new(&shell.path);
    match shell.kind {
        Kind::Fish => command.arg("--no-config"),
        Kind::Zsh => command.arg("-f"),
        _ => &mut command,
    };
    let config = Config { mode: mode::LEARN, argument: notes.as_raw_fd() as u64, ..Config::OFF };
    command.env_clear().envs(library.environment(config)).env_remove("BASH_ENV").env_remove("ENV");
    // An empty file instead of /dev/null, which may be missing.
    let sink = memfd_create("output", MemfdFlags::CLOEXEC)?;
    command.args(["-c", text]).stdin(sink.try_clone()?).stdout(sink.try_clone()?).stderr(sink);
    let mut child = command.spawn()?;
    wait(&mut child)?;
    let mut bytes = Vec::new();
    notes.rewind()?;
    notes.read_to_end(&mut bytes)?;
    Ok(bytes.chunks_exact(SAMPLE_BYTES).filter_map(Sample::from_bytes).collect())
}

fn wait(child: &mut Child) -> io::Result<()> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let in_time = ready_within(&process, PollFlags::IN, Some(EXAMPLE_TIME_MAX))?;
    if !in_time {
        signals::send(child.id() as i32, Signal::SIGKILL);
    }
    child.wait()?;
    if in_time { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
}

/// The folder for what was learnt, in which no other user can write: in XDG_RUNTIME_DIR or /tmp. Not in TMPDIR: a script that sets it
/// may expect only its own files there.
fn cache() -> Option<PathBuf> {
    let user = geteuid().as_raw();
    model::runtime_folder().into_iter().chain(["/tmp".into()]).find_map(|base| {
        let folder = base.join(format!("hosepipe-shells-{user}"));
        // It may exist already.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        let found = std::fs::symlink_metadata(&folder).ok()?;
        (found.is_dir() && found.uid() == user && why_open_to_others(&folder).is_none()).then_some(folder)
    })
}

/// Writes a file under another name, then renames it, so that others read it whole.
fn keep(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut beside = NamedTempFile::new_in(folder)?;
    beside.write_all(text.as_bytes())?;
    beside.persist(folder.join(name))?;
    Ok(())
}

/// What was learnt, as text.
fn write(found: Sites) -> String {
    serde_json::json!((found.slot, found.offsets)).to_string()
}

fn read(text: &str) -> Option<Sites> {
    let (slot, offsets): (usize, [usize; SITES_MAX]) = model::from_json(text).ok()?;
    (slot < SLOTS && offsets[0] != 0).then_some(Sites { slot, offsets })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_reads_back() {
        let sites = Sites { slot: 2, offsets: [0x4d1d1, 77, 0, 0, 0, 0, 0, 0] };
        assert_eq!(read(&write(sites)), Some(sites));
        let nowhere = write(Sites { offsets: [0; SITES_MAX], ..sites });
        let too_deep = write(Sites { slot: SLOTS, ..sites });
        for text in ["", "2", "null", "[2,[5]]", &write(sites)[..9], &nowhere, &too_deep] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    /// Expected: for every installed shell, the pipes of pipelines are distinguished from all others, in the same way each time.
    #[test]
    fn the_shells_of_this_machine_are_told_apart() {
        let library = Library::load().expect("memory");
        for name in ["bash", "dash", "zsh", "fish", "yash"] {
            let Ok(shell) = Shell::find(name.as_ref()) else {
                assert!(std::env::var_os("CI").is_none(), "{name} is not here");
                continue;
            };
            let first = learn(&shell, &library).expect("it runs");
            assert!(first.is_some(), "{name}");
            assert_eq!(learn(&shell, &library).expect("it runs"), first, "{name}");
        }
    }
}
