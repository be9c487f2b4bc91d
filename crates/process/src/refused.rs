//! System calls that are refused to a program and to the programs that it starts: a filter of seccomp(2) returns ENOSYS, as a kernel
//! without these calls does.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use crate::signals::restore;
use crate::spawn::{Environment, spawn};

/// Calls that are to be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(Vec<(&'static str, i64)>);

impl FromStr for Refused {
    type Err = String;

    /// Parses names that are separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || [COMMON, OF_THIS_MACHINE].into_iter().flatten();
        let call = |name: &str| match known().find(|(known, _)| *known == name) {
            Some(("execve", _)) => {
                Err("execve cannot be refused: it is needed to start the program".to_owned())
            }
            Some(call) => Ok(*call),
            None => {
                let near = model::nearest(name, known().map(|(name, _)| *name));
                let near = near.map_or_else(String::new, |name| format!(": did you mean `{name}`?"));
                Err(format!("there is no system call `{name}`{near}"))
            }
        };
        text.split(',').map(|name| call(name.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        f.write_str(&names.join(","))
    }
}

impl Refused {
    /// A BPF program that filters `struct seccomp_data` (seccomp(2)). Calls of a 32-bit program have other numbers and are allowed.
    fn filter(&self) -> Vec<libc::sock_filter> {
        let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
        let answer = |what| step(libc::BPF_RET | libc::BPF_K, what, 0, 0);
        let is = |value, then, otherwise| {
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, then, otherwise)
        };
        let mut steps =
            vec![load(ARCHITECTURE_AT), is(ARCHITECTURE, 1, 0), answer(libc::SECCOMP_RET_ALLOW), load(0)];
        for (_, number) in &self.0 {
            steps.extend([is(*number as u32, 0, 1), answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32)]);
        }
        steps.push(answer(libc::SECCOMP_RET_ALLOW));
        steps
    }
}

fn step(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// Starts a program as [`crate::spawn`] does, with these calls refused to it and to the programs that it starts.
///
/// # Errors
/// The error of execve(2), or of an earlier step in the child; EINVAL if the kernel has no seccomp(2).
pub fn spawn_refusing(
    path: &Path,
    words: &[OsString],
    environment: &Environment,
    copies: &[(OwnedFd, RawFd)],
    refused: Option<&Refused>,
) -> io::Result<i32> {
    let Some(refused) = refused else { return spawn(path, words, environment, copies) };
    let filter = refused.filter();
    let numbers: Vec<(RawFd, RawFd)> = copies.iter().map(|(fd, number)| (fd.as_raw_fd(), *number)).collect();
    let mut command = Command::new(path);
    let (name, arguments) = words.split_first().map_or((OsStr::new(""), words), |(name, rest)| (name, rest));
    command.arg0(name).args(arguments).env_clear().envs(environment.iter().cloned());
    let install = move || {
        for (from, to) in &numbers {
            // SAFETY: both are descriptors of this new process; all its descriptors are copies of the parent's.
            if unsafe { libc::dup2(*from, *to) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        restore();
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        let set = || {
            // SAFETY: the program and its steps exist until the call returns, and the kernel makes a copy.
            let done =
                unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
            if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        set().or_else(|error| match error.raw_os_error() {
            // Without CAP_SYS_ADMIN a filter requires no_new_privs, which makes set-user-ID programs run without their privileges.
            Some(libc::EACCES) => {
                // SAFETY: takes numbers only.
                unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
                set()
            }
            _ => Err(error),
        })
    };
    // SAFETY: between fork(2) and execve(2) the closure makes system calls only, and reads memory that was allocated before.
    unsafe { command.pre_exec(install) };
    Ok(command.spawn()?.id() as i32)
}

/// Offset of the architecture in `struct seccomp_data`. Its value (audit.h, `AUDIT_ARCH_…`) is the ELF machine number with two flag bits.
const ARCHITECTURE_AT: u32 = 4;
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Pairs of a name and a number, of constants of the C library's crate.
macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name).split_at(4).1, libc::$name)),*] };
}

#[cfg(not(target_arch = "x86_64"))]
// The crate libc defines this call only for glibc.
const OF_THIS_MACHINE: &[(&str, i64)] = &[("kexec_file_load", 294)];
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[(&str, i64)] = calls! {
    SYS__sysctl SYS_access SYS_afs_syscall SYS_alarm SYS_arch_prctl SYS_chmod SYS_chown SYS_creat SYS_dup2 SYS_epoll_create
    SYS_epoll_ctl_old SYS_epoll_wait SYS_epoll_wait_old SYS_eventfd SYS_fchmodat2 SYS_fork SYS_futimesat SYS_get_thread_area SYS_getdents
    SYS_getpgrp SYS_getpmsg SYS_getrlimit SYS_inotify_init SYS_ioperm SYS_iopl SYS_kexec_file_load SYS_lchown SYS_link SYS_lstat SYS_mkdir SYS_mknod
    SYS_modify_ldt SYS_open SYS_pause SYS_pipe SYS_poll SYS_putpmsg SYS_readlink SYS_rename SYS_renameat SYS_rmdir SYS_security SYS_select
    SYS_set_thread_area SYS_setrlimit SYS_signalfd SYS_stat SYS_symlink SYS_sync_file_range SYS_sysfs SYS_time SYS_tuxcall SYS_unlink
    SYS_uselib SYS_ustat SYS_utime SYS_utimes SYS_vfork SYS_vserver
};
const COMMON: &[(&str, i64)] = calls! {
    SYS_accept SYS_accept4 SYS_acct SYS_add_key SYS_adjtimex SYS_bind SYS_bpf SYS_brk SYS_capget SYS_capset SYS_chdir SYS_chroot
    SYS_clock_adjtime SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_clock_settime SYS_clone SYS_clone3 SYS_close
    SYS_close_range SYS_connect SYS_copy_file_range SYS_delete_module SYS_dup SYS_dup3 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait
    SYS_epoll_pwait2 SYS_eventfd2 SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_faccessat SYS_faccessat2 SYS_fadvise64 SYS_fallocate
    SYS_fanotify_init SYS_fanotify_mark SYS_fchdir SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_fcntl SYS_fdatasync SYS_fgetxattr
    SYS_finit_module SYS_flistxattr SYS_flock SYS_fremovexattr SYS_fsconfig SYS_fsetxattr SYS_fsmount SYS_fsopen SYS_fspick SYS_fstat
    SYS_fstatfs SYS_fsync SYS_ftruncate SYS_futex SYS_futex_waitv SYS_get_mempolicy SYS_get_robust_list SYS_getcpu SYS_getcwd
    SYS_getdents64 SYS_getegid SYS_geteuid SYS_getgid SYS_getgroups SYS_getitimer SYS_getpeername SYS_getpgid SYS_getpid SYS_getppid
    SYS_getpriority SYS_getrandom SYS_getresgid SYS_getresuid SYS_getrusage SYS_getsid SYS_getsockname SYS_getsockopt SYS_gettid
    SYS_gettimeofday SYS_getuid SYS_getxattr SYS_init_module SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch SYS_io_cancel
    SYS_io_destroy SYS_io_getevents SYS_io_setup SYS_io_submit SYS_io_uring_enter SYS_io_uring_register SYS_io_uring_setup SYS_ioctl
    SYS_ioprio_get SYS_ioprio_set SYS_kcmp SYS_kexec_load SYS_keyctl SYS_kill SYS_landlock_add_rule
    SYS_landlock_create_ruleset SYS_landlock_restrict_self SYS_lgetxattr SYS_linkat SYS_listen SYS_listxattr SYS_llistxattr
    SYS_lookup_dcookie SYS_lremovexattr SYS_lseek SYS_lsetxattr SYS_madvise SYS_mbind SYS_membarrier SYS_memfd_create SYS_memfd_secret
    SYS_migrate_pages SYS_mincore SYS_mkdirat SYS_mknodat SYS_mlock SYS_mlock2 SYS_mlockall SYS_mmap SYS_mount SYS_mount_setattr
    SYS_move_mount SYS_move_pages SYS_mprotect SYS_mq_getsetattr SYS_mq_notify SYS_mq_open SYS_mq_timedreceive SYS_mq_timedsend
    SYS_mq_unlink SYS_mremap SYS_mseal SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_msync SYS_munlock SYS_munlockall SYS_munmap
    SYS_name_to_handle_at SYS_nanosleep SYS_newfstatat SYS_nfsservctl SYS_open_by_handle_at SYS_open_tree SYS_openat SYS_openat2
    SYS_perf_event_open SYS_personality SYS_pidfd_getfd SYS_pidfd_open SYS_pidfd_send_signal SYS_pipe2 SYS_pivot_root SYS_pkey_alloc
    SYS_pkey_free SYS_pkey_mprotect SYS_ppoll SYS_prctl SYS_pread64 SYS_preadv SYS_preadv2 SYS_prlimit64 SYS_process_madvise
    SYS_process_mrelease SYS_process_vm_readv SYS_process_vm_writev SYS_pselect6 SYS_ptrace SYS_pwrite64 SYS_pwritev SYS_pwritev2
    SYS_quotactl SYS_quotactl_fd SYS_read SYS_readahead SYS_readlinkat SYS_readv SYS_reboot SYS_recvfrom SYS_recvmmsg SYS_recvmsg
    SYS_remap_file_pages SYS_removexattr SYS_renameat2 SYS_request_key SYS_restart_syscall SYS_rseq SYS_rt_sigaction SYS_rt_sigpending
    SYS_rt_sigprocmask SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo
    SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam SYS_sched_getscheduler
    SYS_sched_rr_get_interval SYS_sched_setaffinity SYS_sched_setattr SYS_sched_setparam SYS_sched_setscheduler SYS_sched_yield SYS_seccomp
    SYS_semctl SYS_semget SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_set_mempolicy
    SYS_set_mempolicy_home_node SYS_set_robust_list SYS_set_tid_address SYS_setdomainname SYS_setfsgid SYS_setfsuid SYS_setgid
    SYS_setgroups SYS_sethostname SYS_setitimer SYS_setns SYS_setpgid SYS_setpriority SYS_setregid SYS_setresgid SYS_setresuid SYS_setreuid
    SYS_setsid SYS_setsockopt SYS_settimeofday SYS_setuid SYS_setxattr SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget SYS_shutdown
    SYS_sigaltstack SYS_signalfd4 SYS_socket SYS_socketpair SYS_splice SYS_statfs SYS_statx SYS_swapoff SYS_swapon SYS_symlinkat SYS_sync
    SYS_syncfs SYS_sysinfo SYS_syslog SYS_tee SYS_tgkill SYS_timer_create SYS_timer_delete SYS_timer_getoverrun SYS_timer_gettime
    SYS_timer_settime SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime SYS_times SYS_tkill SYS_truncate SYS_umask SYS_umount2
    SYS_uname SYS_unlinkat SYS_unshare SYS_userfaultfd SYS_utimensat SYS_vhangup SYS_vmsplice SYS_wait4 SYS_waitid SYS_write SYS_writev
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_near_ones_suggested() {
        let read = |text: &str| text.parse::<Refused>();
        assert_eq!(read("splice, vmsplice").map(|calls| calls.to_string()), Ok("splice,vmsplice".to_owned()));
        assert_eq!("bogus".parse::<Refused>(), Err("there is no system call `bogus`".to_owned()));
        let near = "there is no system call `splise`: did you mean `splice`?";
        assert_eq!(read("splice,splise"), Err(near.to_owned()));
        assert_eq!(read(""), Err("there is no system call ``".to_owned()));
        assert!(read("execve").is_err_and(|problem| problem.contains("start the program")));
    }

    #[test]
    fn a_program_finds_a_refused_call_missing() {
        // mkdir(1) says what mkdir(2), or mkdirat(2), answers; a folder that exists would be EEXIST.
        let refused: Refused = "mkdir,mkdirat".parse().expect("calls");
        let shell = |text: &str, refused: &Refused| {
            let words = ["sh", "-c", text].map(OsString::from);
            let pid = spawn_refusing(
                Path::new("/bin/sh"),
                &words,
                &std::env::vars_os().collect(),
                &[],
                Some(refused),
            );
            let pid = rustix::process::Pid::from_raw(pid.expect("a shell"));
            let status =
                rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).expect("its end");
            status.and_then(|(_, status)| status.exit_status())
        };
        let text = "LC_ALL=C mkdir / 2>&1 | grep -q 'Function not implemented'";
        assert_eq!(shell(text, &refused), Some(0));
        assert_eq!(shell(text, &"splice".parse().expect("a call")), Some(1));
    }
}
