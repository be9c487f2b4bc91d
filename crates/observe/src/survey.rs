//! All pipes that can be seen, by the users to whom they are charged and by the processes that have them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt;

use model::{NamedProcess, NarrowPipe, PipeHolder, PipeSurvey, PipeUser};
use nix::unistd::{Uid, User};
use process::proc::{named, others};
use rustix::fs::fstat;
use rustix::io::ioctl_fionread;
use rustix::param::page_size;
use rustix::pipe::fcntl_getpipe_size;

use crate::end::{End, ends};
use crate::moment::Moment;
use crate::open_file::Identity;
use crate::quota::{MIN_PIPE_PAGES, PipeLimits, nameless};

/// A pipe, as it was found.
#[derive(Default)]
struct Found {
    uid: u32,
    bytes: u64,
    held_bytes: u64,
    is_full: bool,
    writers: Vec<NamedProcess>,
    readers: Vec<NamedProcess>,
}

/// Looks at the descriptors of every process but this one.
pub fn survey() -> PipeSurvey {
    let limits = PipeLimits::read();
    let page_bytes = page_size() as u64;
    let mut pipes: BTreeMap<Identity, Option<Found>> = BTreeMap::new();
    let mut held: Vec<(NamedProcess, Vec<Identity>)> = Vec::new();
    let mut unseen = 0;
    for pid in others() {
        let own = match ends(pid) {
            Ok(own) => own,
            Err(error) => {
                unseen += u64::from(error.kind() == io::ErrorKind::PermissionDenied);
                continue;
            }
        };
        let Some(process) = named(pid) else { continue };
        let mut has = Vec::new();
        for end in own.filter(|end| end.reads || end.writes) {
            let Some(pipe) = end.joint.pipe() else { continue };
            let found = pipes.entry(pipe).or_default();
            if found.is_none() {
                *found = look(pid, &end, pipe);
            }
            has.push(pipe);
            let Some(found) = found else { continue };
            for (is, list) in [(end.writes, &mut found.writers), (end.reads, &mut found.readers)] {
                if is && list.last() != Some(&process) {
                    list.push(process.clone());
                }
            }
        }
        has.sort_unstable();
        has.dedup();
        held.push((process, has));
    }
    let pages = |pipe: &Identity| {
        pipes.get(pipe).and_then(Option::as_ref).map_or(0, |found| found.bytes / page_bytes)
    };
    let mut processes: Vec<PipeHolder> = held
        .into_iter()
        .filter(|(_, has)| !has.is_empty())
        .map(|(process, has)| PipeHolder {
            process,
            pipes: has.len() as u64,
            pages: has.iter().map(pages).sum(),
        })
        .collect();
    processes.sort_by_key(|holder| std::cmp::Reverse(holder.pages));
    let unknown = pipes.values().filter(|found| found.is_none()).count() as u64;
    let known = || pipes.iter().filter_map(|(pipe, found)| Some((pipe.1, found.as_ref()?)));
    let mut users = users(known().map(|(_, found)| (found.uid, found.bytes / page_bytes)));
    users.sort_by_key(|user| std::cmp::Reverse(user.pages));
    let is_narrow = |found: &Found| found.is_full || found.bytes <= MIN_PIPE_PAGES * page_bytes;
    let narrow = known().filter(|(_, found)| is_narrow(found)).map(|(inode, found)| NarrowPipe {
        inode,
        uid: found.uid,
        bytes: found.bytes,
        held_bytes: found.held_bytes,
        is_full: found.is_full,
        writers: found.writers.clone(),
        readers: found.readers.clone(),
    });
    let PipeLimits { soft_pages, hard_pages, .. } = limits;
    PipeSurvey {
        page_bytes,
        soft_pages,
        hard_pages,
        narrow: narrow.collect(),
        users,
        processes,
        unknown,
        unseen,
    }
}

/// Opens a pipe for a moment; a FIFO only at a reading end, as whoever waits for its reader would go on.
fn look(pid: i32, end: &End, pipe: Identity) -> Option<Found> {
    let is_nameless = Some(pipe.0) == nameless();
    if !is_nameless && !end.reads {
        return None;
    }
    let moment = Moment::open(pid, end.fd, Some(pipe)).ok()?;
    let bytes = fcntl_getpipe_size(&moment).ok()? as u64;
    let held_bytes = ioctl_fionread(&moment).ok()?;
    let is_full = held_bytes + page_size() as u64 > bytes;
    // A FIFO is charged to who opened it first, and its file may be anybody's.
    let uid = match is_nameless {
        true => fstat(&moment).ok()?.st_uid,
        false => std::fs::metadata(format!("/proc/{pid}")).ok()?.uid(),
    };
    Some(Found { uid, bytes, held_bytes, is_full, ..Found::default() })
}

/// What is charged to each user.
fn users(pipes: impl Iterator<Item = (u32, u64)>) -> Vec<PipeUser> {
    let mut users: HashMap<u32, PipeUser> = HashMap::new();
    for (uid, pages) in pipes {
        let user = users.entry(uid).or_insert_with(|| {
            let name = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
            PipeUser { uid, name, pipes: 0, pages: 0 }
        });
        user.pipes += 1;
        user.pages += pages;
    }
    users.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_full_pipe_is_found_with_both_its_ends_and_charged_to_its_maker() {
        let mut yes = Command::new("yes").stdout(Stdio::piped()).spawn().expect("yes");
        let output = yes.stdout.take().expect("a pipe");
        let mut reader = Command::new("sleep").arg("100").stdin(output).spawn().expect("sleep");
        let pids = [yes.id(), reader.id()].map(|pid| pid as i32);
        let seen = (0..2000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let seen = survey();
            let has = |list: &[NamedProcess], pid: i32| list.iter().any(|process| process.pid == pid);
            let is_it = |pipe: &&NarrowPipe| has(&pipe.writers, pids[0]) && has(&pipe.readers, pids[1]);
            let pipe = seen.narrow.iter().find(is_it)?.clone();
            Some((seen, pipe))
        });
        for child in [&mut yes, &mut reader] {
            child.kill().and_then(|()| child.wait()).expect("ended");
        }
        let (seen, pipe) = seen.expect("it is full");
        assert!(pipe.is_full && pipe.held_bytes > 0 && pipe.held_bytes <= pipe.bytes, "{pipe:?}");
        assert_eq!(pipe.uid, Uid::current().as_raw());
        let pages = pipe.bytes / seen.page_bytes;
        let user = seen.users.iter().find(|user| user.uid == pipe.uid).expect("its user");
        assert!(user.pipes > 0 && user.pages >= pages, "{user:?}");
        let holder = seen.processes.iter().find(|holder| holder.process.pid == pids[0]).expect("yes");
        assert!(holder.process.command == "yes" && holder.pages >= pages, "{holder:?}");
    }
}
