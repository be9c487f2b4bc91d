//! The terms of hosepipe as types: axes of a measurement, cases, and records. This crate depends on no other crate of the workspace;
//! `system` and `screen` are the system calls that every crate needs.

mod alignment;
mod axes;
mod boost;
mod bottleneck;
mod case;
mod case_axes;
mod compare;
mod copy_costs;
mod diff;
mod fleet;
mod held_back;
mod histogram;
mod host;
mod kinds;
mod machine;
mod mitigations;
mod observer;
mod one_based;
mod parse;
mod pipes;
mod quantity;
mod recommendation;
mod record;
mod rounds;
mod row;
mod run;
mod sample;
mod screen;
mod sizing;
mod slow_copies;
mod sort;
mod spec;
mod study;
mod system;
mod template;
mod top;
mod tune;
mod typed;
mod why;
mod worker;

pub use alignment::Alignment;
pub use axes::{Check, DataLevel, Direction, PayloadKind, Placement, Tasks, UnknownWord, Wait, Workload};
pub use boost::{BoostRecord, BoostedPipe, NamedProcess, SlowBuffer};
pub use bottleneck::{Bottleneck, Cause, NoPipeline, StageShare, Tip};
pub use case::{Amount, Case, Load, Role};
pub use case_axes::{AXES, Axis, AxisDisplay, AxisGroup, AxisValue};
pub use compare::{CompareRecord, CompareResult, Ratio, SHELLS};
pub use copy_costs::{CopyCosts, CopySpeed, SlowOffsets};
pub use diff::{CaseChange, ChangeKind, DiffFigure, DiffRecord, DiffSide, DiffUnit, RUNS_MIN, TAIL_MARGINS};
pub use fleet::{FleetMeeting, FleetNode, FleetRecord};
pub use held_back::HeldBack;
pub use histogram::{HistogramError, decode_histogram, encode_histogram, latency_histogram};
pub use host::{Cpu, Host, Limits};
pub use kinds::Record;
pub use machine::{MachineFigure, MachineFigureKind, MachineUnit};
pub use observer::{Observer, RunProgress, Silent};
pub use parse::{from_json, from_toml, tree_from_json};
pub use pipes::PipeQuota;
pub use quantity::{ByteSize, QuantityError, parse_duration, parse_size, shown_duration};
pub use recommendation::{ProgramFigures, Recommendation};
pub use record::{
    BenchRecord, CaseError, CaseRecord, ErrorKind, Latency, NoSample, NoiseLevel, OtherLoad, PeerRecord,
    RecordHead, SCHEMA, Settings, StopReason, Suite, Tails, Throughput, Tool, ZeroCopy,
};
pub use rounds::{Round, RoundLimits, Rounds};
pub use row::{Row, TrialMaker, Turn};
pub use run::{
    Certainty, Delays, LatencyRecord, LinkRecord, Matched, RunRecord, StageLatency, StageRecord, UnseenEnd,
};
pub use sample::{EndUsage, SIXTEENTHS, Sample, Share};
pub use screen::{colours_are_wanted, is_dumb, one_line, visible};
pub use sizing::{Sizing, Speed};
pub use slow_copies::{CopyFigures, SlowCopies};
pub use sort::{sort_by, sort_by_key};
pub use spec::{Spec, SpecError};
pub use study::{Measure, MechanismFacts, StudyPart, StudyRecord};
pub use system::{
    AS_ROOT, describe_errno, file_on_path, for_root, monotonic_ns, runtime_folder, signal_name, sudo,
    temporary_folder, thread_cpu_ns, to_see_other_users, vmsplice_refusal,
};
pub use template::{filled, filled_completely};
pub use top::{
    Chain, ChainLink, ChainLinkKind, ChainProcess, ChainStage, Jobserver, JobserverMake, StageActivity,
    TopRecord, TopSnapshot,
};
pub use tune::{TuneChange, TuneLeftOut, TuneReason, TuneRecord};
pub use typed::{nearest, script_word, shell_line, shell_quoted};
pub use why::{WhyAnswer, WhyCause, WhyEdge, WhyHolder, WhyRecord, WhyVerdict, descriptor_name};
pub use worker::{WorkerCase, WorkerEnd, WorkerStart};
