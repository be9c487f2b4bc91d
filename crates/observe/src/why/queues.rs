//! Message queues and semaphores (sysvipc(7), mq_overview(7)).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use process::{semaphore_changed_by, semaphore_value};

use super::needs::{Need, Resource};
use super::scene::{Holder, Scene};
use super::wait::Queue;

/// Who has which POSIX message queue open, read once for all who wait.
#[derive(Default)]
pub(super) struct Queues(OnceCell<HashMap<PathBuf, Vec<Holder>>>);

impl Queues {
    /// What a process needs that waits for room in a queue, or for a message.
    pub(super) fn need(&self, scene: &Scene, pid: i32, queue: &Queue, sends: bool) -> Need {
        let resource = Resource::MessageQueue { sends };
        let (what, detail, wakers) = match queue {
            Queue::SystemV(-1) => (String::new(), String::new(), Vec::new()),
            Queue::SystemV(id) => system_v(*id, sends),
            Queue::Posix(fd) => self.posix(scene, pid, *fd),
        };
        let wakers: Vec<Holder> = wakers.into_iter().filter(|holder| holder.pid != pid).collect();
        // Any process with the rights may open it later.
        Need { what, detail, outside: true, wakers, ..Need::new(resource) }
    }

    fn posix(&self, scene: &Scene, pid: i32, fd: i32) -> (String, String, Vec<Holder>) {
        let Some(path) = link(pid, fd) else { return Default::default() };
        let holders = self.0.get_or_init(|| holders(scene));
        let queue = format!("POSIX message queue {}", path.display());
        (queue, String::new(), holders.get(&path).cloned().unwrap_or_default())
    }
}

fn link(pid: i32, fd: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()
}

/// The files without a folder, as /proc shows queues: in their own file system they have none.
fn holders(scene: &Scene) -> HashMap<PathBuf, Vec<Holder>> {
    let mut found: HashMap<PathBuf, Vec<Holder>> = HashMap::new();
    for pid in scene.processes.keys() {
        for fd in process::proc::descriptors(*pid).filter(|fd| scene.end(*pid, *fd).is_none()) {
            let queue = link(*pid, fd).filter(|path| path.parent() == Some(Path::new("/")));
            let Some(holders) = queue.map(|path| found.entry(path).or_default()) else { continue };
            if holders.last().is_none_or(|last| last.pid != *pid) {
                holders.push(Holder { pid: *pid, fd: Some(fd) });
            }
        }
    }
    found
}

fn system_v(id: i32, sends: bool) -> (String, String, Vec<Holder>) {
    let table = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    let row = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = row.into_iter().find(|words| words.get(1).and_then(|word| word.parse().ok()) == Some(id));
    let word = |at: usize| row.as_ref().and_then(|words| words.get(at).copied()).unwrap_or("?");
    let (bytes, messages, last_sender, last_receiver) = (word(3), word(4), word(5), word(6));
    let last = if sends { last_receiver } else { last_sender };
    let holder = last.parse().ok().filter(|pid| *pid > 0).map(|pid| Holder { pid, fd: None });
    let detail = format!("{messages} messages, {bytes} bytes");
    (format!("System V message queue {id}"), detail, holder.into_iter().collect())
}

/// What a process needs that waits in semop(2), and who changed that semaphore last. Others may raise it, too.
pub(super) fn semaphore(pid: i32, id: i32, operations: &[(u16, i16)]) -> Need {
    // It waits for one that is too small to be lowered, or that is not zero yet.
    let is_awaited = |value: i32, change: i16| value < -i32::from(change) || (change == 0 && value != 0);
    let number = operations.iter().find_map(|(number, change)| {
        semaphore_value(id, *number).filter(|value| is_awaited(*value, *change)).map(|_| *number)
    });
    let what = match number {
        _ if id < 0 => "System V semaphores".to_owned(),
        Some(number) => format!("semaphore {number} of the System V set {id}"),
        None => format!("System V semaphore set {id}"),
    };
    let last = number.and_then(|number| semaphore_changed_by(id, number)).filter(|last| *last != pid);
    let wakers = last.into_iter().map(|pid| Holder { pid, fd: None }).collect();
    Need { what, wakers, outside: true, ..Need::new(Resource::Semaphore) }
}
