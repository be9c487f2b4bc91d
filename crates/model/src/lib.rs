//! The terms of hosepipe as types: axes of a measurement, cases, and records. This crate depends on no other crate of the workspace;
//! `system` and `screen` are the system calls that every crate needs.

mod axes;
mod boost;
mod case;
mod case_axes;
mod compare;
mod diff;
mod fleet;
mod histogram;
mod host;
mod kinds;
mod machine;
mod mitigations;
mod observer;
mod pipes;
mod places;
mod quantity;
mod recommendation;
mod record;
mod run;
mod screen;
mod spec;
mod study;
mod system;
mod top;
mod typed;
mod worker;

pub use axes::{Check, DataLevel, PayloadKind, Placement, Tasks, Toward, UnknownWord, Wait, Workload};
pub use boost::{BoostRecord, BoostedPipe, NamedProcess};
pub use case::{Amount, Case, Load, Role};
pub use case_axes::{AXES, Axis, AxisDisplay, AxisGroup, AxisValue};
pub use compare::{CompareRecord, CompareResult, Ratio, SHELLS};
pub use diff::{CaseChange, ChangeKind, DiffFigure, DiffRecord, DiffSide};
pub use fleet::{FleetMeeting, FleetNode, FleetRecord};
pub use histogram::{HistogramError, decode_histogram, encode_histogram, latency_histogram};
pub use host::{Cpu, Host, Limits};
pub use kinds::Record;
pub use machine::{MachineFigure, MachineFigureKind, MachineUnit};
pub use observer::{Observer, RunProgress, Silent};
pub use pipes::PipeQuota;
pub use quantity::{ByteSize, QuantityError, parse_duration, parse_size, shown_duration};
pub use recommendation::{ProgramFigures, Recommendation};
pub use record::{
    BenchRecord, CaseError, CaseRecord, EndUsage, ErrorKind, Latency, NoSample, NoiseLevel, OtherLoad,
    PeerRecord, RecordHead, SCHEMA, Sample, Settings, Share, Suite, Throughput, Tool, ZeroCopy,
};
pub use run::{Bottleneck, Certainty, LinkRecord, RunRecord, StageRecord};
pub use screen::{colours_are_wanted, is_dumb, one_line, visible};
pub use spec::{Spec, SpecError};
pub use study::{Measure, MechanismFacts, StudyPart, StudyRecord};
pub use system::{
    AS_ROOT, describe_errno, file_on_path, for_root, monotonic_ns, signal_name, sudo, temporary_folder,
};
pub use top::{
    Chain, ChainLink, ChainLinkKind, ChainProcess, ChainStage, StageActivity, TopRecord, TopSnapshot,
};
pub use typed::{nearest, script_word, shell_line, shell_quoted};
pub use worker::{WorkerCase, WorkerEnd, WorkerStart};
