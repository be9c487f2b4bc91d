//! The kinds of records. To add one: a line here and a file with its type.

use serde::Serialize;

use crate::{
    BenchRecord, BoostRecord, CompareRecord, DiffRecord, FleetRecord, RecordHead, RunRecord, StudyRecord,
    TopRecord, TuneRecord, WhyRecord,
};

/// Each kind: its variant and its type; and the value of `kind` in JSON, which is the command that makes it.
macro_rules! kinds {
    ($($name:ident($record:ident) $kind:literal),+ $(,)?) => {
        /// A record of any kind.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind")]
        pub enum Record {
            $(
                /// A record of the command of this name.
                #[serde(rename = $kind)]
                $name($record),
            )+
        }

        impl Record {
            /// The kinds.
            pub const KINDS: &[&'static str] = &[$($kind),+];

            /// The command that made it.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => $kind),+ }
            }

            /// The fields that every record has.
            pub fn head(&self) -> &RecordHead {
                match self { $(Self::$name(record) => &record.head),+ }
            }

            /// Reads a record of a kind.
            ///
            /// # Errors
            /// There is no such kind, or the record lacks something.
            pub fn of_kind(kind: &str, record: serde_json::Value) -> serde_json::Result<Self> {
                match kind {
                    $($kind => serde_json::from_value(record).map(Self::$name),)+
                    other => Err(serde::de::Error::custom(format_args!("there is no kind `{other}`"))),
                }
            }
        }

        $(
            impl From<$record> for Record {
                fn from(record: $record) -> Self {
                    Self::$name(record)
                }
            }
        )+
    };
}
kinds! {
    Bench(BenchRecord) "bench",
    Run(RunRecord) "run",
    Compare(CompareRecord) "compare",
    Study(StudyRecord) "reproduce",
    Diff(DiffRecord) "diff",
    Boost(BoostRecord) "boost",
    Top(TopRecord) "top",
    Fleet(FleetRecord) "fleet",
    Why(WhyRecord) "why",
    Tune(TuneRecord) "tune",
}

impl Record {
    /// Whether it was interrupted before its last trial.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Bench(record) => record.settings.interrupted,
            Self::Compare(record) => record.interrupted,
            Self::Study(record) => record.interrupted,
            Self::Diff(record) => record.interrupted,
            Self::Tune(record) => record.interrupted,
            Self::Run(_) | Self::Boost(_) | Self::Top(_) | Self::Fleet(_) | Self::Why(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_of_several_trials_can_be_interrupted() {
        for interrupted in [false, true] {
            let compare = CompareRecord { interrupted, ..CompareRecord::default() };
            assert_eq!(Record::from(compare).is_interrupted(), interrupted);
            let diff = DiffRecord { interrupted, ..DiffRecord::default() };
            assert_eq!(Record::from(diff).is_interrupted(), interrupted);
        }
        assert!(!Record::from(TopRecord::default()).is_interrupted());
    }
}
