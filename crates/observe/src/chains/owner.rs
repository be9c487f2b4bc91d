//! The user of a process, and its container.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Prefixes of a container's name in its control group: systemd's scopes of docker, podman and others, folders of docker and LXC.
const PREFIXES: [&str; 8] =
    ["docker-", "libpod-", "crio-", "cri-containerd-", "machine-", "lxc.payload.", "docker/", "lxc/"];
/// Shown digits of a name of 64 hexadecimal digits, as many as docker ps shows.
const SHOWN_DIGITS: usize = 12;

/// Names of users, read once.
#[derive(Default)]
pub(super) struct Owners {
    names: OnceCell<HashMap<u32, String>>,
    /// Our own container.
    own: OnceCell<Option<String>>,
}

impl Owners {
    /// The user of a process; `None` if it is the current user.
    pub(super) fn user(&self, pid: i32) -> Option<String> {
        let user = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
        if user == rustix::process::geteuid().as_raw() {
            return None;
        }
        let names = self.names.get_or_init(|| {
            let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
            let user = |line: &str| {
                let mut fields = line.split(':');
                let (name, number) = (fields.next()?, fields.nth(1)?);
                Some((number.parse().ok()?, name.to_owned()))
            };
            known.lines().filter_map(user).collect()
        });
        Some(names.get(&user).cloned().unwrap_or_else(|| user.to_string()))
    }

    /// The container of a process; `None` if it is our own.
    pub(super) fn container(&self, pid: i32) -> Option<String> {
        let container_of = |pid: &str| container_in(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?);
        let own = self.own.get_or_init(|| container_of("self"));
        container_of(&pid.to_string()).filter(|container| own.as_ref() != Some(container))
    }
}

/// The container of a process's control groups, one a line: with version 1 a process has a group for each controller, and not all of them need be
/// a container's.
fn container_in(groups: &str) -> Option<String> {
    groups.lines().find_map(|line| container_of_group(line.splitn(3, ':').nth(2)?))
}

/// The container of a control group: the last folder of its path that is the name of a container.
fn container_of_group(path: &str) -> Option<String> {
    let named = PREFIXES.iter().filter_map(|prefix| {
        let (before, name) = path.rsplit_once(prefix)?;
        (before.ends_with('/') || before.is_empty()).then_some(name)
    });
    let pod = path.contains("kubepods").then(|| path.rsplit('/').next()).flatten();
    let name = named.chain(pod).min_by_key(|name| name.len())?;
    let name = name.split('/').next()?.trim_end_matches(".scope").trim_end_matches(".service");
    let is_digits = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = if is_digits { &name[..SHOWN_DIGITS] } else { name };
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_by_its_control_group() {
        let id = "0123456789ab".to_owned() + &"c".repeat(52);
        let short = Some("0123456789ab".to_owned());
        assert_eq!(container_in(&format!("0::/system.slice/docker-{id}.scope\n")), short);
        assert_eq!(container_in(&format!("12:pids:/docker/{id}\n0::/\n")), short);
        let hybrid =
            format!("13:rdma:/\n12:pids:/user.slice\n1:name=systemd:/docker/{id}\n0::/system.slice\n");
        assert_eq!(container_in(&hybrid), short);
        assert_eq!(container_in(&format!("0::/kubepods/burstable/pod1-2/{id}\n")), short);
        assert_eq!(container_in("0::/lxc.payload.web/init.scope\n"), Some("web".to_owned()));
        assert_eq!(container_in("0::/user.slice/user-1000.slice/session-2.scope\n"), None);
        assert_eq!(container_in("0::/\n"), None);
        assert_eq!(container_in(""), None);
    }
}
