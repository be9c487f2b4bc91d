//! Cases in CSV: a row for each, with its axes, its numbers, and the axes and numbers of further groups.

use model::{AXES, AxisGroup, BenchRecord, CaseRecord, ProgramFigures, Ratio, Recommendation, Spec};
use serde::Serialize;
use stats::choice::costly_cpu_ns;
use stats::tail::Tail;
use stats::{Demand, Estimate, bound_of, figure};

use crate::estimate::median_value;
use crate::groups::Pipes;
use crate::sheet::{Sheet, pairs};
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;
use crate::{load, tail};

/// A case, and how many times as fast as the pipe it is.
#[derive(Clone, Copy)]
pub(crate) struct CaseRow<'a> {
    case: &'a CaseRecord,
    times_pipe: Option<Ratio>,
}

impl<'a> CaseRow<'a> {
    /// A case that is not compared with a pipe.
    pub(crate) fn of(case: &'a CaseRecord) -> Self {
        Self { case, times_pipe: None }
    }
}

/// One row for each case, and below them the answer of `hosepipe recommend`: a row for each program that was run, and for the
/// recommended one. Each kind of row has columns of its own, which are empty in rows of the other kind: those are `None` here.
pub(super) fn table(record: &BenchRecord) -> Table {
    let pipes = Pipes::from_record(record);
    let cases = record.cases.iter().map(|case| Some(CaseRow { case, times_pipe: pipes.against(case) }));
    let programs = record.recommendation.as_deref().map(programs).unwrap_or_default();
    let case_rows: Vec<_> = cases.chain(programs.iter().map(|_| None)).collect();
    let table = cases_table(&case_rows, record.peer.is_some());
    if record.recommendation.is_none() {
        return table;
    }
    let no_programs = record.cases.iter().map(|_| None);
    let program_rows: Vec<_> = no_programs.chain(programs.into_iter().map(Some)).collect();
    table.with(programs_table(&program_rows))
}

/// A mechanism of an answer.
#[derive(Clone, Copy)]
struct AnswerRow<'a> {
    answer: &'a Recommendation,
    spec: &'a Spec,
    /// `None` if its program was not run.
    run: Option<&'a ProgramFigures>,
}

/// The programs that were run, and the recommended mechanism if its program was not.
fn programs(recommendation: &Recommendation) -> Vec<AnswerRow<'_>> {
    let row = |spec, run| AnswerRow { answer: recommendation, spec, run };
    let run = recommendation.programs.iter().map(|run| row(&run.spec, Some(run)));
    let is_run = |spec: &&Spec| recommendation.programs.iter().any(|run| run.spec == **spec);
    let not_run = recommendation.taken.iter().filter(|spec| !is_run(spec));
    run.chain(not_run.map(|spec| row(spec, None))).collect()
}

fn run<'a>(row: &Option<AnswerRow<'a>>) -> Option<&'a ProgramFigures> {
    (*row)?.run
}

fn programs_table(rows: &[Option<AnswerRow>]) -> Table {
    let mut sheet = Sheet::of_data(rows);
    let median = |values: &[f64]| Some(Unit::Ns.of(Estimate::of(values)?.median));
    sheet.data("question", |row| Some((&(*row)?.answer.title).into()));
    sheet.data("program", |row| Some((*row)?.spec.to_string().into()));
    sheet.data("program_language", |row| Some((&(*row)?.answer.language).into()));
    sheet.data("program_taken", |row| {
        let AnswerRow { answer, spec, .. } = (*row)?;
        Some((answer.taken.as_ref() == Some(spec)).to_string().into())
    });
    sheet.data("program_runs", |row| Some(Value::count(run(row)?.time_ns.len() as u64)));
    sheet.data("program_messages", |row| Some(Value::count(run(row)?.messages)));
    sheet.data("program_time_ns", |row| median(&run(row)?.time_ns));
    sheet.data("program_cpu_ns", |row| median(&run(row)?.cpu_ns));
    sheet.data("program_failure", |row| Some(run(row)?.failure.as_ref()?.into()));
    sheet.data("answered_after_s", |row| Some(Unit::Decimals(4).of((*row)?.answer.took_s?)));
    sheet.table()
}

/// The axes that every case has, and others if a case has an unusual value in them; and the numbers of each group.
pub(crate) fn cases_table(rows: &[Option<CaseRow>], has_peer: bool) -> Table {
    let is_asked = |group: AxisGroup| {
        let mut axes = AXES.iter().filter(|axis| axis.group == group);
        axes.any(|axis| rows.iter().flatten().any(|row| axis.unusual(row.case).is_some()))
    };
    let mut sheet = Sheet::of_data(rows);
    axes(&mut sheet, &[AxisGroup::Case, AxisGroup::Worker]);
    columns(&mut sheet);
    if is_asked(AxisGroup::Further) {
        axes(&mut sheet, &[AxisGroup::Further]);
    }
    if is_asked(AxisGroup::Load) {
        axes(&mut sheet, &[AxisGroup::Load]);
        load::columns(&mut sheet, |row| Some(row.as_ref()?.case), &[]);
    }
    if has_peer {
        axes(&mut sheet, &[AxisGroup::Peer]);
        sheet.data("retransmits", |row| {
            median_value(row.as_ref()?.case, |sample| Some(sample.retransmits? as f64), Unit::Decimals(4))
        });
    }
    sheet.table()
}

fn axes(sheet: &mut Sheet<Option<CaseRow>>, groups: &[AxisGroup]) {
    for axis in AXES.iter().filter(|axis| groups.contains(&axis.group)) {
        sheet.data(axis.column, |row| Some((axis.value)(row.as_ref()?.case)?.raw().into()));
    }
}

/// A column of one value of each case.
fn add(sheet: &mut Sheet<Option<CaseRow>>, name: &str, cell: fn(&CaseRecord) -> Option<Value>) {
    sheet.data(name, |row| cell((*row)?.case));
}

fn columns(sheet: &mut Sheet<Option<CaseRow>>) {
    add(sheet, "granted", |case| Some(pairs(&case.granted).into()));
    add(sheet, "samples", |case| Some(Value::count(case.samples.len() as u64)));
    let throughput = "throughput_median_bytes_per_s=median_bytes_per_s throughput_low_bytes_per_s=low \
        throughput_high_bytes_per_s=high throughput_mean_bytes_per_s=mean throughput_stddev_bytes_per_s=stddev";
    sheet.fields_in(Unit::BytesPerS, throughput, |row| (*row)?.case.throughput.as_ref());
    let round_trips = "round_trip_p50_ns=p50 round_trip_p50_low_ns=p50_low round_trip_p50_high_ns=p50_high";
    sheet.fields(round_trips, |row| (*row)?.case.latency_ns.as_ref());
    for (name, percentile) in [
        ("round_trip_p90_ns", Tail::P90),
        ("round_trip_p99_ns", Tail::P99),
        ("round_trip_p999_ns", Tail::P999),
    ] {
        sheet.data(name, |row| tail::cell((*row)?.case.latency_ns.as_ref(), percentile));
    }
    sheet.fields("round_trip_max_ns=max round_trips=count", |row| (*row)?.case.latency_ns.as_ref());
    let times_pipe = "times_pipe=median times_pipe_low=low times_pipe_high=high";
    sheet.fields_in(Unit::Times, times_pipe, |row| (*row)?.times_pipe);
    add(sheet, "elapsed_per_block_ns", |case| median_value(case, figure::elapsed_per_block_ns, Unit::Ns));
    add(sheet, "cpu_per_block_ns", |case| {
        let case = of_blocks_alone(case)?;
        median_value(case, |sample| costly_cpu_ns(case, sample, &Demand::default()), Unit::Ns)
    });
    add(sheet, "syscalls_per_block", |case| {
        median_value(case, figure::syscalls_per_block, Unit::Decimals(4))
    });
    add(sheet, "set_up_ns", |case| median_value(case, |sample| Some(sample.setup_ns as f64), Unit::Ns));
    add(sheet, "voluntary_switches_per_block", |case| {
        median_value(of_blocks_alone(case)?, figure::voluntary_switches_per_block, Unit::Decimals(4))
    });
    add(sheet, "bound_by", |case| Some(bound_of(case)?.to_string().into()));
    add(sheet, "noise", |case| word(&case.noise?));
    add(sheet, "outliers", |case| Some(Value::count(case.outliers.into())));
    sheet.fields("error_kind=kind error=message remedy", |row| (*row)?.case.error.as_ref());
}

/// The word that records have for a value.
fn word(value: &impl Serialize) -> Option<Value> {
    Some(serde_json::to_value(value).ok()?.as_str()?.into())
}

/// The case, if its CPU time and context switches are those of its blocks alone; those of workers include start-up and warm-up.
fn of_blocks_alone(case: &CaseRecord) -> Option<&CaseRecord> {
    case.worker.is_none().then_some(case)
}
