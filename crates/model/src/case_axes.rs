//! The table of properties that identify a case. Differences, CSV columns, plans, row labels, suites and `recommend --from` use it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use AxisDisplay::{LabelledRows, Lists, Otherwise, Rows};
use AxisGroup::{Case, Further, Load, Peer, Worker};

use crate::{Alignment, ByteSize, CaseRecord, Spec};

/// The value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AxisValue {
    /// Text.
    Word(Cow<'static, str>),
    /// A number of things.
    Count(u32),
    /// A number of things in a second.
    PerSecond(u32),
    /// A size.
    Bytes(u64),
    /// A number for each end.
    Ends(Alignment),
}

/// Which cases have an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisGroup {
    /// Every case.
    Case,
    /// Cases of programs in other languages.
    Worker,
    /// Cases that were started or relayed in another way than the default.
    Further,
    /// Cases with a requested load.
    Load,
    /// Cases with one end on another host.
    Peer,
}

/// How cases that differ in an axis are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisDisplay {
    /// In different lists: they are never ranked against each other.
    Lists,
    /// As rows of one list; the label names the value where cases of one spec differ in it.
    Rows,
    /// As rows of one list; the label always names the value.
    LabelledRows,
    /// In another way: in the row's name, in a sentence or in a column.
    Otherwise,
}

/// A property of a case: it identifies the case, or follows from such properties.
pub struct Axis {
    /// The heading of its column in CSV.
    pub column: &'static str,
    /// Its name in differences between records; `None` where it is not part of the identity.
    pub name: Option<&'static str>,
    /// Whether `bench` has an option of that name, and a suite a key.
    pub is_option: bool,
    /// Which cases have it.
    pub group: AxisGroup,
    /// How cases that differ in it are shown.
    pub shown: AxisDisplay,
    /// Its value in a case.
    pub value: fn(&CaseRecord) -> Option<AxisValue>,
}

/// Every axis, in the order of CSV.
pub const AXES: &[Axis] = &[
    follows("mechanism", Case, |case| word(case.mechanism.clone())),
    axis("spec", "spec", Case, Otherwise, |case| word(case.spec.to_string())),
    axis("role", "role", Case, Otherwise, |case| word(case.role.word())),
    axis("writer", "writer", Worker, Otherwise, |case| word(case.worker.as_ref()?.writer.label())),
    axis("reader", "reader", Worker, Otherwise, |case| word(case.worker.as_ref()?.reader.label())),
    axis("workload", "workload", Case, Otherwise, |case| word(case.workload.word())).option(),
    axis("tasks", "tasks", Case, Lists, |case| word(case.tasks.word())).option(),
    axis("placement", "place", Case, Lists, |case| word(case.placement.to_string())).option(),
    follows("cpus", Case, |case| word(case.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))),
    axis("wait", "wait", Case, Rows, |case| word(case.wait.word())).option(),
    axis("data", "data", Case, Lists, |case| word(case.data.word())).option(),
    axis("check", "check", Case, Rows, |case| word(case.check?.word())).option(),
    axis("payload", "payload", Case, Rows, |case| word(case.payload.to_string())).option(),
    axis("block_bytes", "block", Case, Lists, |case| Some(AxisValue::Bytes(case.block_bytes))).option(),
    axis("start", "start", Further, Otherwise, |case| word(case.worker.as_ref()?.start.word())),
    axis("warmup_bytes", "warm-up", Further, Otherwise, |case| {
        Some(AxisValue::Bytes(case.worker.as_ref()?.warmup_bytes))
    }),
    axis("relays", "chain", Further, Rows, |case| Some(AxisValue::Count(case.relays))).option(),
    axis("align", "align", Further, Rows, |case| Some(AxisValue::Ends(case.align))).option(),
    axis("pairs", "pairs", Load, Otherwise, |case| case.pairs.map(AxisValue::Count)).option(),
    axis("senders", "senders", Load, Otherwise, |case| case.senders.map(AxisValue::Count)).option(),
    axis("receivers", "receivers", Load, Otherwise, |case| case.receivers.map(AxisValue::Count)).option(),
    axis("rate_per_s", "rate", Load, Otherwise, |case| case.rate_per_s.map(AxisValue::PerSecond)).option(),
    axis("direction", "direction", Peer, LabelledRows, |case| word(case.direction?.word())),
    follows("congestion_control", Peer, |case| word(case.congestion_control.clone()?)),
];

/// A case with every default. If a value differs from it, the user requested the value.
static USUAL: LazyLock<CaseRecord> = LazyLock::new(|| CaseRecord::new(Spec::plain("pipe")));

impl Axis {
    /// Marks it as an option of `bench`.
    const fn option(self) -> Self {
        Self { is_option: true, ..self }
    }

    /// Its value in a case, if it differs from the default.
    pub fn unusual(&self, case: &CaseRecord) -> Option<AxisValue> {
        let value = (self.value)(case)?;
        (Some(&value) != (self.value)(&USUAL).as_ref()).then_some(value)
    }
}

impl AxisValue {
    /// The text for CSV: a number in base units, without the unit.
    pub fn raw(&self) -> String {
        match self {
            Self::Word(word) => word.to_string(),
            Self::Count(number) | Self::PerSecond(number) => number.to_string(),
            Self::Bytes(bytes) => bytes.to_string(),
            Self::Ends(ends) => ends.to_string(),
        }
    }
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
            Self::Bytes(bytes) => ByteSize(*bytes).fmt(f),
            other => f.write_str(&other.raw()),
        }
    }
}

impl CaseRecord {
    /// The values of all axes with a name. Cases of two records with equal identity are the same case.
    pub fn identity(&self) -> BTreeMap<String, String> {
        let values = AXES.iter().filter_map(|axis| Some((axis.name?, (axis.value)(self)?)));
        values.map(|(name, value)| (name.to_owned(), value.to_string())).collect()
    }
}

type ValueOf = fn(&CaseRecord) -> Option<AxisValue>;

const fn axis(
    column: &'static str,
    name: &'static str,
    group: AxisGroup,
    shown: AxisDisplay,
    value: ValueOf,
) -> Axis {
    Axis { column, name: Some(name), is_option: false, group, shown, value }
}

/// A column that is not part of the identity: it follows from other axes, or was found while measuring.
const fn follows(column: &'static str, group: AxisGroup, value: ValueOf) -> Axis {
    Axis { name: None, ..axis(column, "", group, Otherwise, value) }
}

fn word(word: impl Into<Cow<'static, str>>) -> Option<AxisValue> {
    Some(AxisValue::Word(word.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, WorkerCase, WorkerEnd, WorkerStart};

    /// Fields of a case that are figures of it, or follow from the figures.
    const FIGURES: [&str; 10] = [
        "atomic_bytes",
        "zero_copy",
        "granted",
        "samples",
        "disturbed",
        "throughput",
        "latency_ns",
        "noise",
        "outliers",
        "error",
    ];
    /// Fields that the table has under another heading.
    const RENAMED: [(&str, &[&str]); 2] =
        [("toward", &["direction"]), ("worker", &["writer", "reader", "start", "warmup_bytes"])];

    #[test]
    fn every_field_of_a_case_is_an_axis_or_a_figure() {
        let end = || WorkerEnd { language: "C".to_owned(), variant: "tuned".to_owned(), toolchain: None };
        let usual = CaseRecord::new(Spec::plain("pipe"));
        // Every field is named: one that is left out where it has its usual value is not in the JSON of such a case.
        let case = CaseRecord {
            mechanism: usual.mechanism,
            spec: usual.spec,
            role: usual.role,
            workload: usual.workload,
            tasks: usual.tasks,
            placement: usual.placement,
            cpus: usual.cpus,
            wait: usual.wait,
            data: usual.data,
            check: usual.check,
            payload: usual.payload,
            block_bytes: 1,
            relays: 0,
            atomic_bytes: Some(1),
            zero_copy: None,
            granted: BTreeMap::new(),
            samples: Vec::new(),
            throughput: None,
            latency_ns: None,
            noise: None,
            outliers: 0,
            error: None,
            direction: Some(Direction::Peer),
            congestion_control: Some("cubic".to_owned()),
            pairs: Some(2),
            senders: Some(2),
            receivers: Some(2),
            rate_per_s: Some(2),
            align: Alignment { sender: 0, receiver: 16 },
            worker: Some(WorkerCase {
                writer: end(),
                reader: end(),
                start: WorkerStart::Pair,
                warmup_bytes: 1,
            }),
            disturbed: vec![crate::Sample::default()],
        };
        let fields = serde_json::to_value(&case).expect("JSON");
        let is_axis = |column: &str| AXES.iter().any(|axis| axis.column == column);
        for field in fields.as_object().expect("an object").keys() {
            let renamed = RENAMED.iter().find(|(old, _)| old == field);
            let known = renamed.map_or(is_axis(field), |(_, columns)| columns.iter().all(|one| is_axis(one)));
            assert!(known || FIGURES.contains(&field.as_str()), "`{field}` is neither in AXES nor a figure");
        }
        assert!(AXES.iter().all(|axis| (axis.value)(&case).is_some()), "this case has a value on every axis");
    }

    #[test]
    fn defaults_are_not_unusual() {
        let case = CaseRecord { rate_per_s: Some(9), ..CaseRecord::new(Spec::plain("pipe")) };
        let unusual = AXES.iter().filter_map(|axis| Some((axis.column, axis.unusual(&case)?.to_string())));
        assert_eq!(unusual.collect::<Vec<_>>(), [("rate_per_s", "9/s".to_owned())]);
        assert_eq!(case.identity()["chain"], "0");
        assert_eq!(case.identity()["block"], "64KiB");
    }

    #[test]
    fn options_have_the_names_of_their_axes() {
        let options: Vec<&str> =
            AXES.iter().filter(|axis| axis.is_option).filter_map(|axis| axis.name).collect();
        for (name, is_option) in [("tasks", true), ("chain", true), ("spec", false), ("direction", false)] {
            assert_eq!(options.contains(&name), is_option, "{name}");
        }
    }

    #[test]
    fn what_follows_from_other_axes_is_not_part_of_the_identity() {
        let unnamed: Vec<&str> =
            AXES.iter().filter(|axis| axis.name.is_none()).map(|axis| axis.column).collect();
        assert_eq!(unnamed, ["mechanism", "cpus", "congestion_control"]);
        assert!(AXES.iter().all(|axis| axis.name != Some("")));
    }
}
