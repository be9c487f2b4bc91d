//! The machines and the runs, side by side: what has to be known before figures of two records are compared.

use std::collections::BTreeMap;

use model::{Host, Limits};

use crate::figure::Table;
use crate::read::AnyRecord;
use crate::{numbers, words};

/// A column of facts: a machine, and the records made on it.
struct Machine<'a> {
    host: &'a Host,
    records: Vec<&'a str>,
}

/// Facts about every machine, a column for each; the load is told record by record in [`runs`].
pub(super) fn facts(records: &[(String, &AnyRecord)]) -> Table {
    let machines = machines(records);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let columns: Vec<BTreeMap<String, String>> = machines.iter().map(|machine| all(machine.host)).collect();
    for name in ORDER.iter().map(|name| (*name).to_owned()).chain(other_names(&columns)) {
        let cells: Vec<String> =
            columns.iter().map(|facts| facts.get(&name).cloned().unwrap_or_default()).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            rows.push(std::iter::once(name).chain(cells).collect());
        }
    }
    let several = machines.len() > 1;
    let heading = |machine: &Machine| if several { machine.records.join(", ") } else { "value".to_owned() };
    let columns = std::iter::once("fact".to_owned()).chain(machines.iter().map(heading)).collect();
    Table { caption: if several { "The machines" } else { "The machine" }.to_owned(), columns, rows }
}

/// Whether there is more than one machine.
pub(super) fn several(records: &[(String, &AnyRecord)]) -> bool {
    machines(records).len() > 1
}

fn machines<'a>(records: &'a [(String, &'a AnyRecord)]) -> Vec<Machine<'a>> {
    let mut machines: Vec<Machine<'a>> = Vec::new();
    for (name, record) in records {
        let host = record.host();
        match machines.iter_mut().find(|machine| same(machine.host, host)) {
            Some(machine) => machine.records.push(name),
            None => machines.push(Machine { host, records: vec![name] }),
        }
    }
    machines
}

/// The same machine in the same state, however busy it was.
fn same(one: &Host, other: &Host) -> bool {
    Host { load_average_1m: None, ..one.clone() } == Host { load_average_1m: None, ..other.clone() }
}

/// Each record: what made it, when and how.
pub(super) fn runs(records: &[(String, &AnyRecord)]) -> Table {
    let row = |(name, record): &(String, &AnyRecord)| {
        let tool = record.tool();
        let revision = tool.revision.as_ref().map(|revision| format!(" ({revision})")).unwrap_or_default();
        let load = record.host().load_average_1m.map(|load| format!("{load:.2}")).unwrap_or_default();
        vec![
            name.clone(),
            words::command(record.arguments()),
            record.started().replace('T', " ").replace('Z', " UTC"),
            format!("{}{revision}", tool.version),
            load,
        ]
    };
    let columns = ["record", "command", "began", "hosepipe", "load before"];
    Table {
        caption: "The records".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: records.iter().map(row).collect(),
    }
}

/// The order of the facts; others follow by name.
const ORDER: &[&str] = &[
    "kernel",
    "architecture",
    "processor",
    "CPUs",
    "caches",
    "memory",
    "hypervisor",
    "frequency governor",
    "huge pages",
    "huge pages of shared memory",
];

/// Every fact that is known, by name.
fn all(host: &Host) -> BTreeMap<String, String> {
    let caches = host.caches_bytes.iter().map(|(name, bytes)| format!("{name} {}", numbers::size(*bytes)));
    let mut facts: Vec<(String, Option<String>)> = [
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
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    facts.extend(limits(&host.limits));
    facts.extend(
        host.mitigations.iter().map(|(name, state)| (format!("mitigation: {name}"), Some(state.clone()))),
    );
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|text| !text.is_empty())?)))
        .collect()
}

fn cpus(host: &Host) -> String {
    let count = |of: fn(&model::Cpu) -> u32| {
        host.cpus.iter().map(of).collect::<std::collections::BTreeSet<_>>().len()
    };
    let cores =
        host.cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect::<std::collections::BTreeSet<_>>();
    format!(
        "{} on {}, {}, {}",
        words::count(host.cpus.len(), "CPU"),
        words::count(cores.len(), "core"),
        words::count(count(|cpu| cpu.package), "socket"),
        words::count(count(|cpu| cpu.node), "NUMA node"),
    )
}

/// The limits that cap mechanisms, by the name the system has for them.
fn limits(limits: &Limits) -> Vec<(String, Option<String>)> {
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
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Names that [`ORDER`] does not have.
fn other_names(columns: &[BTreeMap<String, String>]) -> impl Iterator<Item = String> + use<> {
    let names: std::collections::BTreeSet<String> =
        columns.iter().flat_map(BTreeMap::keys).cloned().collect();
    names.into_iter().filter(|name| !ORDER.contains(&name.as_str()))
}
