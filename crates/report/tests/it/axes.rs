//! Everything that identifies a case is seen wherever cases are told apart: in differences, in CSV, in lists and the names of their rows.

use model::{
    AXES, AxisDisplay, CaseRecord, Check, DataLevel, Direction, Role, Tasks, Wait, WorkerCase, WorkerEnd,
    WorkerStart,
};

use crate::golden::{format, plain};
use crate::mock::{Mock, Work, record};

type Change = fn(&mut CaseRecord);

/// The name of an axis, and what gives a case another value of it.
const CHANGES: [(&str, Change); 21] = [
    ("spec", |case| case.spec = "fifo".parse().expect("a spec")),
    ("role", |case| case.role = Role::Floor),
    ("writer", |case| case.worker = Some(worker("Java", "C", WorkerStart::Pair, 0))),
    ("reader", |case| case.worker = Some(worker("C", "Java", WorkerStart::Pair, 0))),
    ("workload", |case| case.workload = model::Workload::PingPong),
    ("tasks", |case| case.tasks = Tasks::Threads),
    ("place", |case| case.placement = model::Placement::Same),
    ("wait", |case| case.wait = Wait::Spin),
    ("data", |case| (case.data, case.check) = (DataLevel::Write, None)),
    ("check", |case| case.check = Some(Check::Xor)),
    ("payload", |case| case.payload = model::PayloadKind::Zero),
    ("block", |case| case.block_bytes = 4096),
    ("start", |case| case.worker = Some(worker("C", "C", WorkerStart::Harness, 0))),
    ("warm-up", |case| case.worker = Some(worker("C", "C", WorkerStart::Pair, 9))),
    ("chain", |case| case.relays = 3),
    ("align", |case| case.align = "5,16".parse().expect("offsets")),
    ("pairs", |case| case.pairs = Some(4)),
    ("senders", |case| case.senders = Some(4)),
    ("receivers", |case| case.receivers = Some(4)),
    ("rate", |case| case.rate_per_s = Some(4)),
    ("direction", |case| case.direction = Some(Direction::Peer)),
];

fn worker(writer: &str, reader: &str, start: WorkerStart, warmup_bytes: u64) -> WorkerCase {
    let end = |language: &str| WorkerEnd {
        language: language.to_owned(),
        variant: "tuned".to_owned(),
        toolchain: None,
    };
    WorkerCase { writer: end(writer), reader: end(reader), start, warmup_bytes }
}

#[test]
fn an_axis_is_seen_in_differences_and_in_csv() {
    for axis in AXES {
        let Some(name) = axis.name else { continue };
        let (_, change) = CHANGES
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("no case with another {name}"));
        let usual = Mock::stream("pipe").gb_per_s(1.0, 2.0, Work::Copying);
        let mut record = record([usual.clone(), usual.with(change)]);
        record.peer = Some(Box::new(model::PeerRecord {
            name: "db2".to_owned(),
            address: String::new(),
            tool: record.head.tool.clone(),
            host: record.head.host.clone(),
        }));
        let [one, other] = [0, 1].map(|at: usize| record.cases[at].identity());
        assert_ne!(one.get(name), other.get(name), "{name}");
        let csv = format(&record, "csv");
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let column = rows[0].iter().position(|column| *column == axis.column);
        let column = column.unwrap_or_else(|| panic!("no column {} in {csv}", axis.column));
        assert_ne!(rows[1][column], rows[2][column], "{name}: {csv}");
    }
}

#[test]
fn cases_that_differ_in_an_axis_are_in_two_lists_or_have_two_names() {
    for axis in AXES.iter().filter(|axis| axis.shown != AxisDisplay::Otherwise) {
        let change = CHANGES.iter().find(|(name, _)| Some(*name) == axis.name).expect("a change").1;
        let usual = Mock::stream("pipe").gb_per_s(1.0, 2.0, Work::Copying);
        let text = plain(&record([usual.clone(), usual.with(change)]), 200);
        let lists = text.lines().filter(|line| line.trim_start().starts_with("mechanism ")).count();
        let mut rows: Vec<&str> = text.lines().filter(|line| line.starts_with(" pipe")).collect();
        rows.iter_mut().for_each(|row| *row = row.trim_start().split("  ").next().unwrap_or_default());
        assert!(lists == 2 || rows.len() == 2 && rows[0] != rows[1], "{:?}: {text}", axis.name);
        assert_eq!(lists == 2, axis.shown == AxisDisplay::Lists, "{:?}: {text}", axis.name);
    }
}
