//! Tables of machines and of runs, side by side, for comparing records.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cpu, Host, Limits, Record};

use crate::sheet::col;
use crate::table::Table;
use crate::{numbers, words};

/// Prefix of a CPU bug's name, and the kernel's word if the CPU does not have the bug.
const MITIGATION: &str = "mitigation: ";
const NOT_AFFECTED: &str = "Not affected";

/// A machine, and the records made on it: a column of facts.
struct Machine<'a> {
    host: &'a Host,
    records: Vec<&'a str>,
}

/// A known fact.
pub(crate) struct HostFact {
    /// Where its row is in the table. Facts at one place are ordered by name.
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The facts of each machine, in a column. The load of each record is in [`runs`].
pub(crate) fn facts(records: &[(String, &Record)]) -> Table {
    let machines = machines(records);
    let mut rows: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    for (at, machine) in machines.iter().enumerate() {
        for HostFact { place, name, value } in host_facts(machine.host) {
            let cells = rows.entry((place, name)).or_insert_with(|| vec![String::new(); machines.len()]);
            cells[at] = value;
        }
    }
    // Bugs that no machine has are one row.
    let mut absent_bugs = Vec::new();
    rows.retain(|(_, name), cells| {
        let is_absent = cells.iter().all(|cell| cell == NOT_AFFECTED);
        absent_bugs.extend(is_absent.then(|| name.trim_start_matches(MITIGATION).to_owned()));
        !is_absent
    });
    if !absent_bugs.is_empty() {
        let cells = vec![absent_bugs.join(", "); machines.len()];
        rows.insert((usize::MAX, "not affected by".to_owned()), cells);
    }
    let several = machines.len() > 1;
    let heading = |machine: &Machine| if several { machine.records.join(", ") } else { "value".to_owned() };
    let columns = std::iter::once("fact".to_owned()).chain(machines.iter().map(heading));
    let row = |((_, name), cells): (_, Vec<String>)| std::iter::once(name).chain(cells).collect();
    let caption = if several { "The machines" } else { "The machine" };
    Table::new(caption, columns.map(|head| col(head).left()), rows.into_iter().map(row))
}

/// Whether there is more than one machine.
pub(crate) fn several(records: &[(String, &Record)]) -> bool {
    machines(records).len() > 1
}

fn machines<'a>(records: &'a [(String, &'a Record)]) -> Vec<Machine<'a>> {
    let mut machines: Vec<Machine<'a>> = Vec::new();
    for (name, record) in records {
        let host = &record.head().host;
        match machines.iter_mut().find(|machine| same(machine.host, host)) {
            Some(machine) => machine.records.push(name),
            None => machines.push(Machine { host, records: vec![name] }),
        }
    }
    machines
}

/// Whether two records are of the same machine in the same state, with any load.
fn same(one: &Host, other: &Host) -> bool {
    Host { load_average_1m: None, ..one.clone() } == Host { load_average_1m: None, ..other.clone() }
}

/// The command, version and time of each record.
pub(crate) fn runs(records: &[(String, &Record)]) -> Table {
    let row = |(name, record): &(String, &Record)| {
        let load = record.head().host.load_average_1m.map(|load| format!("{load:.2}")).unwrap_or_default();
        vec![
            name.clone(),
            words::command(&record.head().arguments),
            record.head().started.replace('T', " ").replace('Z', " UTC"),
            words::version(&record.head().tool),
            load,
        ]
    };
    let columns = ["record", "command", "began", "hosepipe", "load before"];
    Table::new("The records", columns.map(|head| col(head).left()), records.iter().map(row))
}

pub(crate) fn host_facts(host: &Host) -> Vec<HostFact> {
    let caches = host.caches_bytes.iter().map(|(name, bytes)| format!("{name} {}", numbers::size(*bytes)));
    let facts = [
        ("kernel", Some(host.kernel.clone())),
        ("architecture", Some(host.architecture.clone())),
        ("processor", Some(host.cpu_model.clone())),
        ("CPUs", (!host.cpus.is_empty()).then(|| cpus(host))),
        ("caches", Some(caches.collect::<Vec<String>>().join(", "))),
        ("memory", (host.memory_bytes > 0).then(|| numbers::binary_size(host.memory_bytes as f64))),
        ("hypervisor", host.hypervisor.clone()),
        ("frequency governor", host.governor.clone()),
        ("huge pages", host.transparent_huge_pages.clone()),
        ("huge pages of shared memory", host.shmem_huge_pages.clone()),
    ];
    let last = facts.len();
    let fact = |place, name: &str, value: Option<String>| {
        let value = value.filter(|text| !text.is_empty())?;
        Some(HostFact { place, name: name.to_owned(), value })
    };
    let numbered =
        facts.into_iter().enumerate().filter_map(|(place, (name, value))| fact(place, name, value));
    let limits = limits(&host.limits).into_iter().filter_map(|(name, value)| fact(last, name, value));
    let mitigations = host.mitigations.iter();
    let mitigations = mitigations
        .filter_map(|(name, state)| fact(last, &format!("{MITIGATION}{name}"), Some(state.clone())));
    numbered.chain(limits).chain(mitigations).collect()
}

fn cpus(host: &Host) -> String {
    fn count<T: Ord>(host: &Host, of: impl Fn(&Cpu) -> T) -> usize {
        host.cpus.iter().map(of).collect::<BTreeSet<T>>().len()
    }
    format!(
        "{} on {}, {}, {}",
        words::count(host.cpus.len(), "CPU"),
        words::count(count(host, |cpu| (cpu.package, cpu.core)), "core"),
        words::count(count(host, |cpu| cpu.package), "socket"),
        words::count(count(host, |cpu| cpu.node), "NUMA node"),
    )
}

/// The limits of mechanisms, with the names that the system has for them.
fn limits(limits: &Limits) -> [(&'static str, Option<String>); 13] {
    let bytes = |value: Option<u64>| value.map(numbers::size);
    let count = |value: Option<u64>| value.map(|value| numbers::grouped(value as f64, 0));
    [
        ("fs.pipe-max-size", bytes(limits.pipe_max_size)),
        ("fs.pipe-user-pages-soft", count(limits.pipe_user_pages_soft)),
        ("kernel.msgmax", bytes(limits.msgmax)),
        ("kernel.msgmnb", bytes(limits.msgmnb)),
        ("kernel.msgmni", count(limits.msgmni)),
        ("fs.mqueue.msg_max", count(limits.mq_msg_max)),
        ("fs.mqueue.msgsize_max", bytes(limits.mq_msgsize_max)),
        ("fs.mqueue.queues_max", count(limits.mq_queues_max)),
        ("RLIMIT_MSGQUEUE", bytes(limits.rlimit_msgqueue)),
        ("RLIMIT_MEMLOCK", bytes(limits.rlimit_memlock)),
        ("RLIMIT_NOFILE", count(limits.rlimit_nofile)),
        ("net.core.wmem_max", bytes(limits.wmem_max)),
        ("net.core.rmem_max", bytes(limits.rmem_max)),
    ]
}
