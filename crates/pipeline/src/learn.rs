//! Which call of a shell makes a pipeline's pipe: learnt once for each shell's file, by running it on examples.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pipes::protocol::SITES_MAX;
use pipes::sites::{SAMPLE_BYTES, SLOTS, Sample, Sites, tell_apart};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::geteuid;

use crate::preload::{FINGERPRINT, Library};
use crate::shell::{Kind, Shell};

/// Texts with as many pipes of pipelines as are said.
const PIPELINES: [(usize, &str); 4] = [
    (1, "true | true"),
    (2, "true | true | true"),
    // Not every shell waits for another stage than the last one.
    (2, "true | { true | true; }"),
    (2, "f() { true | true; }\nf\ntrue | true &\nwait"),
];

/// Texts with none. Where a shell lacks one of these it makes no pipe for it.
const OTHERS: [&str; 6] = [
    "x=$(true)",
    "x=`true`",
    "cat <<E >/dev/null\nx\nE",
    "cat <<<x >/dev/null",
    "cat <(true); true > >(cat)",
    "coproc { true; }; wait",
];

/// The same for a shell of another grammar.
const PIPELINES_OF_FISH: [(usize, &str); 4] = [
    (1, "true | true"),
    (2, "true | true | true"),
    (2, "true | begin; true | true; end"),
    (1, "function f; true | true; end; f"),
];
const OTHERS_OF_FISH: [&str; 1] = ["set x (true)"];

/// No example takes longer, on the slowest machine.
const EXAMPLE_TIME_MAX: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// What tells a shell's pipelines from its other pipes; `None` where nothing does.
///
/// # Errors
/// The shell could not be started on an example.
pub(crate) fn sites(shell: &Shell, library: &Library) -> io::Result<Option<Sites>> {
    let known = cache().map(|folder| folder.join(format!("{}-{}", shell.fingerprint, FINGERPRINT)));
    if let Some(text) = known.as_ref().and_then(|path| std::fs::read_to_string(path).ok())
        && let Some(found) = read(&text)
    {
        return Ok(found);
    }
    let found = learn(shell, library)?;
    if let Some(path) = known {
        // It is learnt again where it cannot be kept.
        let _ = keep(&path, &write(found));
    }
    Ok(found)
}

fn learn(shell: &Shell, library: &Library) -> io::Result<Option<Sites>> {
    let run = |text: &str| example(shell, library, text);
    let (pipelines, others) = match shell.kind {
        Kind::Fish => (&PIPELINES_OF_FISH, &OTHERS_OF_FISH[..]),
        _ => (&PIPELINES, &OTHERS[..]),
    };
    let seen =
        pipelines.iter().map(|(pipes, text)| Ok((*pipes, run(text)?))).collect::<io::Result<Vec<_>>>()?;
    let mut foreign = Vec::new();
    for text in others {
        foreign.extend(run(text)?);
    }
    let seen: Vec<(usize, &[Sample])> = seen.iter().map(|(pipes, samples)| (*pipes, &samples[..])).collect();
    Ok(tell_apart(&seen, &foreign))
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
    let none = Sites { slot: 0, offsets: [0; SITES_MAX] };
    let mode = format!("learn:{}", notes.as_raw_fd());
    let pairs = library.environment(&mode, none, None);
    let pairs = pairs.iter().filter_map(|entry| {
        let bytes = entry.to_bytes();
        let end = bytes.iter().position(|byte| *byte == b'=')?;
        let text = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes;
        Some((text(&bytes[..end]), text(&bytes[end + 1..])))
    });
    command.env_clear().envs(pairs).env_remove("BASH_ENV").env_remove("ENV");
    command.args(["-c", text]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    wait(&mut child)?;
    let mut bytes = Vec::new();
    notes.rewind()?;
    notes.read_to_end(&mut bytes)?;
    let word = |bytes: &[u8]| usize::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let sample = |bytes: &[u8]| {
        let mut sample = [0; SLOTS];
        let words = bytes.chunks_exact(size_of::<usize>()).map(word);
        sample.iter_mut().zip(words).for_each(|(own, seen)| *own = seen);
        sample
    };
    Ok(bytes.chunks_exact(SAMPLE_BYTES).map(sample).collect())
}

fn wait(child: &mut Child) -> io::Result<()> {
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > EXAMPLE_TIME_MAX {
            // With all that it started: it leads a group.
            crate::signals::send(child.id() as i32, libc::SIGKILL);
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// The folder for what was learnt, where nobody else can change it.
fn cache() -> Option<PathBuf> {
    // A home that is not there stays so.
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let of_home = || Some(home()?.join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(of_home);
    let folder = base.filter(|base| base.is_absolute())?.join("hosepipe/shells");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let found = std::fs::symlink_metadata(&folder).ok()?;
    (found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0).then_some(folder)
}

/// Puts a text where other runs look for it, all at once.
fn keep(path: &std::path::Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension(std::process::id().to_string());
    let mut file = File::create_new(&beside)?;
    let done = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&beside, path));
    if done.is_err() {
        std::fs::remove_file(&beside)?;
    }
    done
}

/// `SLOT OFFSET…`, or `none`.
fn write(found: Option<Sites>) -> String {
    let Some(sites) = found else { return "none\n".to_owned() };
    let offsets = sites.offsets.iter().take_while(|offset| **offset != 0);
    let words: Vec<String> = std::iter::once(&sites.slot).chain(offsets).map(usize::to_string).collect();
    words.join(" ") + "\n"
}

fn read(text: &str) -> Option<Option<Sites>> {
    if text == "none\n" {
        return Some(None);
    }
    let mut words = text.strip_suffix('\n')?.split(' ').map(str::parse);
    let slot = words.next()?.ok().filter(|slot| *slot < SLOTS)?;
    let mut offsets = [0; SITES_MAX];
    for (at, word) in words.enumerate() {
        *offsets.get_mut(at)? = word.ok()?;
    }
    (offsets[0] != 0).then_some(Some(Sites { slot, offsets }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_reads_back() {
        let mut offsets = [0; SITES_MAX];
        offsets[..2].copy_from_slice(&[0x4d1d1, 77]);
        let sites = Sites { slot: 2, offsets };
        for found in [Some(sites), None] {
            assert_eq!(read(&write(found)), Some(found));
        }
        for text in ["", "2\n", "2 5", "900 5\n", "2 x\n", "0 1 2 3 4 5 6 7 8 9\n"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    /// Expected: of every shell that is here, the pipes of pipelines are told from all others, the same way each time.
    #[test]
    fn the_shells_of_this_machine_are_told_apart() {
        let library = Library::load().expect("memory");
        for name in ["bash", "dash", "zsh", "fish", "yash"] {
            let Ok(shell) = Shell::find(OsStr::new(name)) else {
                assert!(std::env::var_os("CI").is_none(), "{name} is not here");
                continue;
            };
            let first = learn(&shell, &library).expect("it runs");
            assert!(first.is_some(), "{name}");
            assert_eq!(learn(&shell, &library).expect("it runs"), first, "{name}");
        }
    }
}
