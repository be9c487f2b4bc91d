//! Those who read a pipe, found in /proc (proc(5)) whosever children they are by now, and ended.

use std::fs;
use std::path::Path;

use rustix::fs::stat;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::fullness::identity;

/// Ends every process but this one that has an end of the pipe, which is the reading one. `shell` holds the ends of pipes that it makes
/// for others: it is meant only where it reads by itself, and at a prompt it is interrupted as by Ctrl-C, and lives on.
pub(crate) fn end(pipe: (u64, u64), shell: i32, at_prompt: bool) {
    let own = std::process::id() as i32;
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in pids.filter(|pid| *pid != own) {
        let is_shell = pid == shell;
        let folder = format!("/proc/{pid}/fd");
        // The number may be another process's later; what is asked of this descriptor is not.
        let Some(process) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        else {
            continue;
        };
        let reads =
            if is_shell { is_it(Path::new(&folder).join("0").as_path(), pipe) } else { any(&folder, pipe) };
        if reads {
            let signal = if is_shell && at_prompt { Signal::INT } else { Signal::KILL };
            // One beyond our reach reads on, and the status of the whole tells.
            let _ = pidfd_send_signal(&process, signal);
        }
    }
}

fn any(folder: &str, pipe: (u64, u64)) -> bool {
    let descriptors = fs::read_dir(folder).into_iter().flatten().flatten();
    descriptors.into_iter().any(|descriptor| is_it(&descriptor.path(), pipe))
}

/// Whether a descriptor is of the pipe. What it shows is compared first: to ask a file on a dead network disk may take forever.
fn is_it(descriptor: &Path, pipe: (u64, u64)) -> bool {
    let shown = fs::read_link(descriptor).unwrap_or_default();
    shown.to_str() == Some(&format!("pipe:[{}]", pipe.1))
        && stat(descriptor).is_ok_and(|found| identity(&found) == pipe)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn readers_are_ended_and_nobody_else() {
        let spawn = || Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let (mut reader, mut other) = (spawn(), spawn());
        let pipe = stat(format!("/proc/{}/fd/0", reader.id())).expect("its pipe");
        end(identity(&pipe), -1, false);
        assert_eq!(reader.wait().expect("ended").signal(), Some(9));
        assert!(other.try_wait().expect("asked").is_none());
        drop(other.stdin.take());
        assert!(other.wait().expect("ended").success());
    }
}
