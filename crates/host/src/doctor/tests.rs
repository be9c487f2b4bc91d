//! The rules on invented machines.

use model::{Host, Limits};

use super::*;
use crate::CpuList;
use crate::fake::cpu;
use crate::vitals::{Boost, Confinement, FileSystem, Quota};

const SYS_RESOURCE: u64 = 1 << 24;

fn files(kind: &str, available_bytes: u64) -> FileSystem {
    let available_bytes = Some(available_bytes);
    FileSystem { folder: "/tmp".into(), kind: kind.into(), available_bytes, refusal: None }
}

/// Four idle cores of bare metal, on which every finding is good.
fn healthy() -> (Host, Vitals) {
    let host = Host {
        cpus: (0..4).map(|id| cpu(id, id, 0, 0)).collect(),
        governor: Some("performance".into()),
        mitigations: [("meltdown".into(), "Not affected".into())].into(),
        transparent_huge_pages: Some("madvise".into()),
        shmem_huge_pages: Some("advise".into()),
        load_average_1m: Some(0.01),
        limits: Limits {
            pipe_max_size: Some(1 << 20),
            pipe_user_pages_soft: Some(16384),
            msgmax: Some(1 << 20),
            msgmnb: Some(4 << 20),
            msgmni: Some(32000),
            mq_msg_max: Some(10),
            mq_msgsize_max: Some(1 << 20),
            wmem_max: Some(4 << 20),
            rmem_max: Some(4 << 20),
            ..Limits::default()
        },
        ..Host::default()
    };
    let vitals = Vitals {
        other_running_tasks: Some(0),
        memory_available_bytes: Some(8 << 30),
        clocksource: Some("tsc".into()),
        isolated: Some(CpuList::parse("2-3")),
        io_uring_disabled: Some(0),
        unix_max_dgram_qlen: Some(512),
        nr_hugepages: Some(64),
        shm: Some(files("tmpfs", 8 << 30)),
        temporary: Some(files("tmpfs", 8 << 30)),
        ..Vitals::default()
    };
    (host, vitals)
}

/// Each finding of a machine where all is good, and of one of which nothing is known, has its text in the table.
#[test]
fn each_finding_has_its_text() {
    let (host, vitals) = healthy();
    for finding in examine(&host, &vitals).into_iter().chain(examine(&Host::default(), &Vitals::default())) {
        assert!(finding.why.ends_with('.'), "{finding:?}");
    }
    assert!(TEXTS.values().flatten().all(|(_, text)| !text.is_empty()) && TEXTS.len() > 30, "{TEXTS:?}");
}

/// The finding of that name.
fn find(host: &Host, vitals: &Vitals, name: &str) -> Finding {
    examine(host, vitals)
        .into_iter()
        .find(|finding| finding.name == name)
        .inspect(|finding| assert!(finding.why.ends_with('.'), "{finding:?}"))
        .unwrap_or_else(|| panic!("no {name}"))
}

/// Everything wrong at once.
fn faulty() -> (Host, Vitals) {
    let host = Host {
        cpus: vec![cpu(0, 0, 0, 0), cpu(1, 1, 1, 1)],
        governor: Some("powersave".into()),
        hypervisor: Some("KVM".into()),
        mitigations: [("meltdown".into(), "Mitigation: PTI".into())].into(),
        transparent_huge_pages: Some("never".into()),
        shmem_huge_pages: Some("never".into()),
        load_average_1m: Some(3.0),
        limits: Limits {
            pipe_max_size: Some(65536),
            pipe_user_pages_soft: Some(64),
            msgmax: Some(8192),
            msgmnb: Some(16384),
            msgmni: Some(16),
            mq_msg_max: Some(5),
            mq_msgsize_max: Some(8192),
            mq_queues_max: Some(256),
            rlimit_msgqueue: Some(819_200),
            rlimit_memlock: Some(65536),
            rlimit_nofile: Some(64),
            wmem_max: Some(212_992),
            rmem_max: Some(212_992),
        },
        ..Host::default()
    };
    let vitals = Vitals {
        other_running_tasks: Some(4),
        online_cpus: Some(2),
        stolen_percent: Some(7.0),
        cpu_pressure_percent: Some(40.0),
        memory_available_bytes: Some(1 << 20),
        swap_used_bytes: Some(1 << 18),
        clocksource: Some("hpet".into()),
        clocksources: vec!["tsc".into(), "hpet".into()],
        boost: Some(Boost { on: true, file: "/sys/x/no_turbo".into(), off: "1" }),
        idle_exit_us: Some(133),
        isolated: Some(CpuList::default()),
        numa_balancing: Some(true),
        io_uring_disabled: Some(2),
        unix_max_dgram_qlen: Some(10),
        nr_hugepages: Some(0),
        shm: None,
        temporary: Some(files("ext4", 4096)),
        confinement: Confinement {
            sudo: "sudo ",
            seccomp_filter: Some(true),
            tracer_pid: Some(7),
            quota: Some(Quota { cpus: 0.5, file: "/sys/fs/cgroup/cpu.max".into(), lift: "max" }),
            ..Confinement::default()
        },
    };
    (host, vitals)
}

#[test]
fn a_healthy_machine_is_all_good() {
    let (host, vitals) = healthy();
    let findings = examine(&host, &vitals);
    let ill: Vec<_> = findings.iter().filter(|finding| finding.state != Severity::Good).collect();
    assert!(ill.is_empty(), "{ill:#?}");
    assert!(findings.iter().all(|finding| finding.remedy.is_none()));
}

#[test]
fn a_machine_with_every_fault_has_every_finding_and_every_cap_a_command() {
    let (host, vitals) = faulty();
    let findings = examine(&host, &vitals);
    for finding in &findings {
        assert!(finding.state != Severity::Caps || finding.remedy.is_some(), "{finding:?}");
        assert!(!finding.what.ends_with('.') && finding.why.ends_with('.'), "{finding:?}");
        // Two cores of one thread each: only these two findings are good.
        assert!(
            finding.state != Severity::Good || ["smt", "isolation"].contains(&finding.name),
            "{finding:?}"
        );
    }
    let names: std::collections::BTreeSet<_> = findings.iter().map(|finding| finding.name).collect();
    assert_eq!(names.len(), findings.len(), "each name is there once");
    for name in ["governor", "hypervisor", "thp", "pipe-max-size", "msgmax", "msgmnb", "msgqueue", "load"] {
        assert!(names.contains(name), "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_unknown_and_not_good() {
    let findings = examine(&Host::default(), &Vitals::default());
    for name in
        ["governor", "load", "thp", "pipe-max-size", "msg-limits", "mq-limits", "clocksource", "mitigations"]
    {
        let finding =
            findings.iter().find(|finding| finding.name == name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(finding.state, Severity::Unknown, "{finding:?}");
    }
}

#[test]
fn commands_are_exact() {
    let (host, vitals) = faulty();
    for (name, command) in [
        ("governor", "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
        ("pipe-max-size", "sudo sysctl -w fs.pipe-max-size=1048576"),
        ("msgmax", "sudo sysctl -w kernel.msgmax=1048576 kernel.msgmnb=4194304"),
        ("cpu-quota", "echo max | sudo tee /sys/fs/cgroup/cpu.max"),
        ("boost", "echo 1 | sudo tee /sys/x/no_turbo"),
        (
            "clocksource",
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        ("thp", "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
    ] {
        assert_eq!(find(&host, &vitals, name).remedy.as_deref(), Some(command));
    }
}

#[test]
fn without_sudo_no_command_contains_it() {
    let (host, mut vitals) = faulty();
    vitals.confinement.sudo = model::AS_ROOT;
    let commands = examine(&host, &vitals).into_iter().filter_map(|finding| finding.remedy);
    let commands: Vec<String> = commands.collect();
    assert!(commands.contains(&"as root: sysctl -w fs.pipe-max-size=1048576".to_owned()), "{commands:?}");
    assert!(commands.iter().all(|command| !command.contains("sudo")), "{commands:?}");
}

#[test]
fn root_needs_no_sudo_and_its_capabilities_override_some_limits() {
    let (host, mut vitals) = faulty();
    vitals.confinement.root = true;
    vitals.confinement.sudo = "";
    vitals.confinement.capabilities = SYS_RESOURCE;
    assert!(
        examine(&host, &vitals)
            .iter()
            .all(|f| f.remedy.as_ref().is_none_or(|command| !command.contains("sudo")))
    );
    for name in ["pipe-max-size", "pipe-user-pages-soft", "mq-msgsize-max", "mq-msg-max"] {
        assert_eq!(find(&host, &vitals, name).state, Severity::Good, "{name}");
    }
    for name in ["msgmax", "msgqueue"] {
        assert_eq!(find(&host, &vitals, name).state, Severity::Caps, "{name} binds root too");
    }
}

/// Expected: a user who may raise a limit gets the command. Happened: `prlimit` answered EPERM to root without CAP_SYS_RESOURCE. After a first
/// correction root was referred to the host, but an ordinary user of the same container still to root.
#[test]
fn without_its_capability_no_user_gets_a_command_to_raise_limits() {
    let (host, mut vitals) = faulty();
    for (root, bounding) in [(true, None), (true, Some(0)), (false, Some(0))] {
        (vitals.confinement.root, vitals.confinement.bounding) = (root, bounding);
        for name in ["msgqueue", "memlock"] {
            let finding = find(&host, &vitals, name);
            assert_eq!((finding.state, &finding.remedy), (Severity::Note, &None), "{name}");
            let command = format!("root on its host can: prlimit --pid PID --{name}=unlimited");
            assert!(finding.what.ends_with(&command), "{finding:?}");
        }
    }
    for (root, bounding) in [(false, Some(SYS_RESOURCE)), (false, None)] {
        (vitals.confinement.root, vitals.confinement.bounding) = (root, bounding);
        let finding = find(&host, &vitals, "msgqueue");
        assert_eq!(finding.state, Severity::Caps);
        assert_eq!(finding.remedy.as_deref(), Some("sudo prlimit --pid $$ --msgqueue=unlimited"));
    }
}

#[test]
fn load_is_judged_by_the_number_of_cpus() {
    let (mut host, vitals) = healthy();
    for (cpus, load, state) in [
        (2, 0.2, Severity::Good),
        (2, 0.5, Severity::Spoils),
        (64, 20.0, Severity::Good),
        (4, 1.5, Severity::Spoils),
    ] {
        host.cpus = (0..cpus).map(|id| cpu(id, id, 0, 0)).collect();
        host.load_average_1m = Some(load);
        assert_eq!(find(&host, &vitals, "load").state, state, "{load} on {cpus}");
    }
    // Expected, under `taskset -c 0`: the load is compared with all CPUs of the machine.
    // Happened: "the load average is 20.00 on 1 CPU" was reported as spoiling the figures.
    let mut vitals = vitals;
    vitals.online_cpus = Some(64);
    (host.cpus, host.load_average_1m) = (vec![cpu(0, 0, 0, 0)], Some(20.0));
    vitals.other_running_tasks = Some(20);
    let load = find(&host, &vitals, "load");
    assert_eq!(
        (load.state, &*load.what),
        (Severity::Good, "the load average is 20.00 on the machine's 64 CPUs")
    );
    assert_eq!(find(&host, &vitals, "running").state, Severity::Good);
}

#[test]
fn numa_balancing_does_not_matter_on_one_node() {
    let (host, mut vitals) = healthy();
    vitals.numa_balancing = Some(true);
    assert!(examine(&host, &vitals).iter().all(|finding| finding.name != "numa-balancing"));
}

#[test]
fn this_machine_can_be_examined_and_written_as_json() {
    let findings = diagnose();
    assert!(findings.len() > 15);
    assert!(
        findings.iter().all(|finding| finding.state != Severity::Caps || finding.remedy.is_some()),
        "{findings:#?}"
    );
    serde_json::to_string(&findings).expect("findings are data");
}

/// Expected: a folder that cannot be written is not good even if it has free space.
/// Happened: a read-only /tmp was a "good tmpdir".
#[test]
fn a_folder_in_which_no_file_can_be_made_is_not_good() {
    let (host, mut vitals) = healthy();
    for files in [&mut vitals.shm, &mut vitals.temporary] {
        files.as_mut().expect("there").refusal = Some("EROFS (Read-only file system)".into());
    }
    for name in ["tmpdir", "dev-shm"] {
        let found = find(&host, &vitals, name);
        assert_eq!(found.state, Severity::Caps);
        assert!(found.what.contains("no file can be made in /") && found.what.contains("EROFS"), "{found:?}");
        assert!(
            found.remedy.as_ref().is_some_and(|command| !command.contains("TMPDIR=/dev/shm")),
            "{found:?}"
        );
    }
}

/// Expected: a tmpfs without a size is as good as a large one.
/// Happened: it had "0 B free".
#[test]
fn a_file_system_without_a_limit_has_room() {
    let (host, mut vitals) = healthy();
    for files in [&mut vitals.shm, &mut vitals.temporary] {
        files.as_mut().expect("there").available_bytes = None;
    }
    for name in ["tmpdir", "dev-shm"] {
        let found = find(&host, &vitals, name);
        assert_eq!((found.state, found.remedy.clone()), (Severity::Good, None), "{found:?}");
        assert!(found.what.ends_with("which has no limit of its own"), "{found:?}");
    }
}
