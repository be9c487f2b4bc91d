//! Message queues and semaphores (sysvipc(7), mq_overview(7)).

use std::fs;

use super::needs::{Need, Resource};
use super::scene::{Holder, Scene};
use super::wait::Queue;

/// What a process needs that waits for room in a queue, or for a message.
pub(super) fn need(scene: &Scene, pid: i32, queue: &Queue, sends: bool) -> Need {
    let resource = Resource::MessageQueue { sends };
    let (what, detail, wakers) = match queue {
        Queue::SystemV(-1) => (String::new(), String::new(), Vec::new()),
        Queue::SystemV(id) => system_v(*id, sends),
        Queue::Posix(fd) => posix(scene, pid, *fd),
    };
    let wakers: Vec<Holder> = wakers.into_iter().filter(|holder| holder.pid != pid).collect();
    // Any process with the rights may open it later.
    Need { what, detail, outside: true, wakers, ..Need::new(resource) }
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

fn posix(scene: &Scene, pid: i32, fd: i32) -> (String, String, Vec<Holder>) {
    let name = |pid: i32, fd: i32| fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok();
    let Some(path) = name(pid, fd) else { return Default::default() };
    let holds = |other: &i32| {
        let mut fds = process::proc::descriptors(*other);
        let fd = fds.find(|fd| name(*other, *fd).as_ref() == Some(&path))?;
        Some(Holder { pid: *other, fd: Some(fd) })
    };
    let queue = format!("POSIX message queue {}", path.display());
    (queue, String::new(), scene.processes.keys().filter_map(holds).collect())
}

/// What a process needs that waits in semop(2). Who could raise the semaphore is not shown by the kernel.
pub(super) fn semaphore(id: i32) -> Need {
    let what = if id < 0 { "System V semaphores".to_owned() } else { format!("System V semaphore set {id}") };
    Need { what, outside: true, ..Need::new(Resource::Semaphore) }
}
