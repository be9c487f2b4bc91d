//! Two records as the sides of a comparison, or why they cannot be compared.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use model::{DiffSide, Host, Record, StudyRecord, Tool};
use stats::CaseFigures;
use stats::measured::{of_bench, of_comparison};

use crate::read::Loaded;
use crate::{numbers, words};

/// Share by which the memory of one machine may differ from boot to boot, as kernels reserve different amounts.
const SAME_MEMORY: f64 = 0.02;

/// The figures of a record; empty if its kind has none to compare.
pub fn figures(loaded: &Loaded) -> Vec<CaseFigures> {
    match &loaded.record {
        Record::Bench(record) => of_bench(record),
        Record::Compare(record) => of_comparison(record),
        Record::Study(record) => of_study(record),
        _ => Vec::new(),
    }
}

/// Whether two records and their figures can be compared.
///
/// # Errors
/// A sentence: their kinds cannot be compared, or they have nothing in common.
pub fn check(old: &Loaded, new: &Loaded, figures: &[impl Borrow<Vec<CaseFigures>>; 2]) -> Result<(), String> {
    for Loaded { name, record } in [old, new] {
        if !matches!(record, Record::Bench(_) | Record::Compare(_) | Record::Study(_)) {
            return Err(format!(
                "{name} is a record of `hosepipe {}`, which measures only once, so that its variation is unknown: compare records of \
                 `bench` or `compare`, or measure both sides in turns: hosepipe compare 'OLD COMMAND' 'NEW COMMAND'",
                record.kind()
            ));
        }
    }
    if old.record.kind() != new.record.kind() {
        let [old, new] = [old, new].map(|one| format!("{} is of `hosepipe {}`", one.name, one.record.kind()));
        return Err(format!("{old} and {new}: only records of one command are comparable"));
    }
    if let (Record::Study(old), Record::Study(new)) = (&old.record, &new.record)
        && (&old.study, old.scale) != (&new.study, new.scale)
    {
        let [old, new] = [old, new].map(|record| format!("{} at scale {}", record.study, record.scale));
        return Err(format!("the two records are of different studies: {old} and {new}"));
    }
    let [of_old, of_new] = figures;
    let known: BTreeSet<_> = of_new.borrow().iter().map(CaseFigures::key).collect();
    if !of_old.borrow().iter().any(|one| known.contains(&one.key())) {
        return Err(format!(
            "{} and {} have no case in common: measure the same mechanisms, blocks, tasks, placement and data level, to the same \
             --peer; or the same pipelines with the same --shell, -P, --prepare and the like",
            old.name, new.name
        ));
    }
    Ok(())
}

/// The cases and the pipelines of every part.
fn of_study(record: &StudyRecord) -> Vec<CaseFigures> {
    let parts = record.parts.iter().flat_map(|part| {
        let cases = part.cases.iter().flat_map(stats::measured::of_case);
        let all = cases.chain(part.results.iter().map(stats::measured::of_result));
        all.map(|mut one| {
            one.case.insert("part".to_owned(), part.name.clone());
            one
        })
    });
    stats::measured::number_repeats(parts.collect())
}

/// A record as a side.
pub fn side(loaded: &Loaded) -> DiffSide {
    let head = loaded.record.head();
    DiffSide {
        name: loaded.name.clone(),
        tool: tool(&head.tool),
        arguments: head.arguments.clone(),
        started: head.started.clone(),
        other_load: head.other_load.clone(),
        further_runs: Vec::new(),
    }
}

/// Whether two records are of one run: one of them is a copy of the other.
pub fn are_one_run(one: &Record, other: &Record) -> bool {
    let run = |record: &Record| (record.head().started.clone(), record.head().arguments.clone());
    run(one) == run(other)
}

/// A hosepipe by its version, and its revision if known.
pub fn tool(tool: &Tool) -> String {
    format!("hosepipe {}", words::version(tool))
}

/// Why records of two suites, or of two versions of one, cannot be compared: their cases are not the same.
pub fn suites_differ(old: &Record, new: &Record) -> Option<String> {
    let [old, new] = [old, new].map(|record| match record {
        Record::Bench(record) => record.settings.suite.clone(),
        _ => None,
    });
    let (old, new) = old.zip(new).filter(|(old, new)| old != new)?;
    let [old, new] =
        [old, new].map(|suite| format!("version {} of the suite `{}`", suite.version, suite.name));
    Some(format!("{old} and {new} do not hold the same cases: measure both with one of them"))
}

/// The facts in which the machines of two records differ, with those of the other ends (`--peer`).
pub fn machines_differ(old: &Record, new: &Record) -> Vec<String> {
    let peer = |record: &Record| match record {
        Record::Bench(record) => record.peer.as_ref().map(|peer| peer.host.clone()),
        _ => None,
    };
    let mut facts = hosts_differ(&old.head().host, &new.head().host);
    if let (Some(old), Some(new)) = (peer(old), peer(new)) {
        facts.extend(hosts_differ(&old, &new).into_iter().map(|fact| format!("the peer's {fact}")));
    }
    facts
}

/// The name of a fact, whether two hosts differ in it, and its text.
type Fact<'a> = (&'static str, bool, &'a dyn Fn(&Host) -> String);

/// A setting of a host; `None` if its record does not have it.
type Setting = fn(&Host) -> &Option<String>;

/// Settings of a host by name, which change the speed of copies and of memory that is mapped anew.
const SETTINGS: [(&str, Setting); 3] = [
    ("frequency governor", |host| &host.governor),
    ("huge pages", |host| &host.transparent_huge_pages),
    ("huge pages of shared memory", |host| &host.shmem_huge_pages),
];

/// The facts in which two hosts differ, each as "name: old, then new". A setting that one of the records does not have is no difference.
pub fn hosts_differ(old: &Host, new: &Host) -> Vec<String> {
    let cpus = |host: &Host| {
        let hypervisor = host.hypervisor.as_ref().map(|name| format!(" under {name}")).unwrap_or_default();
        format!("{}{hypervisor}", words::count(host.cpus.len(), "CPU"))
    };
    let [less, more] = [old.memory_bytes.min(new.memory_bytes), old.memory_bytes.max(new.memory_bytes)];
    let memory = (more - less) as f64 > SAME_MEMORY * more as f64;
    let same_cpus = old.cpus == new.cpus && old.hypervisor == new.hypervisor;
    let facts: [Fact; 5] = [
        ("kernel", old.kernel != new.kernel, &|host| host.kernel.clone()),
        ("architecture", old.architecture != new.architecture, &|host| host.architecture.clone()),
        ("processor", old.cpu_model != new.cpu_model, &|host| host.cpu_model.clone()),
        ("CPUs", !same_cpus, &cpus),
        ("memory", memory, &|host| numbers::binary_size(host.memory_bytes as f64)),
    ];
    let differing = facts.into_iter().filter(|(_, differs, _)| *differs);
    let sentence = |(name, _, text): Fact| match (text(old), text(new)) {
        (old, new) if old == new => format!("{name}: not the same ones"),
        (old, new) => format!("{name}: {old}, then {new}"),
    };
    let settings = SETTINGS.iter().filter_map(|(name, of)| {
        let (old, new) = of(old).as_ref().zip(of(new).as_ref()).filter(|(old, new)| old != new)?;
        Some(format!("{name}: {old}, then {new}"))
    });
    differing.map(sentence).chain(settings).collect()
}
