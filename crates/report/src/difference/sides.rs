//! Two records as the sides of a comparison, or why they are none.

use std::collections::BTreeSet;

use model::{DiffSide, Host, Record, StudyRecord, Suite, Tool};
use stats::CaseFigures;
use stats::measured::{of_bench, of_comparison};

use crate::read::Loaded;
use crate::{numbers, words};

/// A share by which the memory of one machine may differ from boot to boot: kernels keep different amounts to themselves.
const SAME_MEMORY: f64 = 0.02;

/// The figures of a record; none of one that has none to compare.
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
/// They are of kinds that cannot be, or have nothing in common: a sentence.
pub fn check(old: &Loaded, new: &Loaded, figures: &[Vec<CaseFigures>; 2]) -> Result<(), String> {
    for Loaded { name, record } in [old, new] {
        if !matches!(record, Record::Bench(_) | Record::Compare(_) | Record::Study(_)) {
            return Err(format!(
                "{name} is a record of `hosepipe {}`, which says nothing of how far its figures vary: compare records of \
                 `bench` or `compare`, or let both sides take turns: hosepipe diff --run 'OLD COMMAND' 'NEW COMMAND'",
                record.kind()
            ));
        }
    }
    if old.record.kind() != new.record.kind() {
        let of = |loaded: &Loaded| format!("of `hosepipe {}`", loaded.record.kind());
        return Err(format!(
            "{} is {} and {} {}: only records of one command are comparable",
            old.name,
            of(old),
            new.name,
            of(new)
        ));
    }
    if let (Record::Study(old), Record::Study(new)) = (&old.record, &new.record)
        && (&old.study, old.scale) != (&new.study, new.scale)
    {
        let studied = |record: &StudyRecord| format!("{} at scale {}", record.study, record.scale);
        return Err(format!(
            "the two records are of different studies: {} and {}",
            studied(old),
            studied(new)
        ));
    }
    let known: BTreeSet<_> = figures[1].iter().map(CaseFigures::key).collect();
    if !figures[0].iter().any(|one| known.contains(&one.key())) {
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
    }
}

/// A hosepipe by its version, and its revision where it is known.
pub fn tool(tool: &Tool) -> String {
    let revision = tool.revision.as_ref().map(|revision| format!(" ({revision})"));
    format!("hosepipe {}{}", tool.version, revision.unwrap_or_default())
}

/// Why records of two suites, or of two versions of one, are not to be compared: their cases are not the same.
pub fn suites_differ(old: &Record, new: &Record) -> Option<String> {
    let suite = |record: &Record| match record {
        Record::Bench(record) => record.settings.suite.clone(),
        _ => None,
    };
    let (old, new) = suite(old).zip(suite(new)).filter(|(old, new)| old != new)?;
    let name = |suite: &Suite| format!("version {} of the suite `{}`", suite.version, suite.name);
    Some(format!(
        "{} and {} do not hold the same cases: measure both with one of them",
        name(&old),
        name(&new)
    ))
}

/// The same of the machines of two records, and of those that held the other ends (`--peer`).
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

/// Facts that make two machines of two hosts, each as "name: old, then new".
pub fn hosts_differ(old: &Host, new: &Host) -> Vec<String> {
    let cpus = |host: &Host| {
        let hypervisor = host.hypervisor.as_ref().map(|name| format!(" under {name}")).unwrap_or_default();
        format!("{}{hypervisor}", words::count(host.cpus.len(), "CPU"))
    };
    let text = |of: &dyn Fn(&Host) -> String| (of(old), of(new));
    let [less, more] = [old.memory_bytes.min(new.memory_bytes), old.memory_bytes.max(new.memory_bytes)];
    let memory = (more - less) as f64 > SAME_MEMORY * more as f64;
    let same_seats = old.cpus == new.cpus && old.hypervisor == new.hypervisor;
    let facts = [
        ("kernel", old.kernel != new.kernel, text(&|host| host.kernel.clone())),
        ("architecture", old.architecture != new.architecture, text(&|host| host.architecture.clone())),
        ("processor", old.cpu_model != new.cpu_model, text(&|host| host.cpu_model.clone())),
        ("CPUs", !same_seats, text(&cpus)),
        ("memory", memory, text(&|host| numbers::binary_size(host.memory_bytes as f64))),
    ];
    let said = facts.into_iter().filter(|(_, differs, _)| *differs);
    said.map(|(name, _, (old, new))| match old == new {
        true => format!("{name}: not the same ones"),
        false => format!("{name}: {old}, then {new}"),
    })
    .collect()
}
