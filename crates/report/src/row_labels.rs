//! The names of a record's rows: the spec, and what distinguishes rows of one spec.

use std::collections::HashMap;

use model::{AXES, Axis, AxisDisplay, AxisValue, BenchRecord, CaseRecord, Spec};

use crate::languages;
use crate::view::ranked;

/// The axes that the label of a spec may name.
pub(crate) struct RowLabels<'a>(HashMap<&'a Spec, Vec<LabelAxis>>);

/// An axis in the cases of one spec.
struct LabelAxis {
    axis: &'static Axis,
    /// Its value in the first case that has one.
    first: Option<AxisValue>,
    /// Whether another case has another value.
    differs: bool,
}

impl<'a> RowLabels<'a> {
    pub(crate) fn from_record(record: &'a BenchRecord) -> Self {
        Self::without(record, None)
    }

    /// The same for tables that show an axis beside the names.
    pub(crate) fn without(record: &'a BenchRecord, left_out: Option<&str>) -> Self {
        let mut specs: HashMap<&Spec, Vec<LabelAxis>> = HashMap::new();
        let axes = || {
            AXES.iter().filter(|axis| {
                matches!(axis.shown, AxisDisplay::Rows | AxisDisplay::LabelledRows) && axis.name != left_out
            })
        };
        for case in ranked(record) {
            let first = || axes().map(|axis| LabelAxis { axis, first: None, differs: false }).collect();
            for one in specs.entry(&case.spec).or_insert_with(first) {
                let value = (one.axis.value)(case);
                one.differs |= one.first.is_some() && value.is_some() && one.first != value;
                one.first = one.first.take().or(value);
            }
        }
        Self(specs)
    }

    pub(crate) fn label(&self, case: &CaseRecord) -> String {
        if let Some(worker) = &case.worker {
            return languages::title(worker);
        }
        let mut label = case.spec.to_string();
        for LabelAxis { axis, differs, .. } in self.0.get(&case.spec).into_iter().flatten() {
            match (axis.value)(case) {
                Some(value) if axis.shown == AxisDisplay::LabelledRows => {
                    label.push_str(&format!(" {}", value.raw().replace('-', " ")));
                }
                Some(value @ AxisValue::Word(_)) if *differs => label.push_str(&format!(" ({value})")),
                Some(value) if *differs => {
                    label.push_str(&format!(" ({} {value})", axis.name.unwrap_or(axis.column)));
                }
                _ => {}
            }
        }
        label
    }
}
