//! CSV: one row for each case, stage or result, for spreadsheets and data frames. Figures are in base units; a cell without a figure
//! is empty. The raw samples are in the JSON.

use std::fmt::Display;

use model::{
    AXES, Axis, AxisGroup, BenchRecord, CaseChange, CaseRecord, ChainLink, ChainStage, CompareResult,
    DiffRecord, FleetRecord, Measure, ProgramFigures, Ratio, Recommendation, Record, RunRecord, Spec,
    StudyRecord, Throughput, TopRecord,
};
use serde::Serialize;
use serde_json::Value;
use stats::choice::costly_cpu_ns;
use stats::tail::Tail;
use stats::{CostModel, Demand, Estimate, bound_of, figure, load};

use crate::against_pipe::Pipes;
use crate::costs::models_of;
use crate::formats::{Format, FormatError, only};
use crate::stages::links_behind;
use crate::{tail, versus};

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "CSV",
    flag: "csv",
    summary: "one row per case, stage or result",
    render: |records, _| {
        match only("CSV", records)? {
            Record::Bench(record) => bench_sheet(record),
            Record::Run(record) => run_sheet(record),
            Record::Compare(record) => results_sheet(&record.results).with(compared_sheet(&record.results)),
            Record::Study(record) => study_sheet(record),
            Record::Diff(record) => difference_sheet(record),
            Record::Boost(record) => Sheet::from_fields(PIPE_FIELDS, record.boosted.iter()),
            Record::Top(record) => chains_sheet(record),
            Record::Fleet(record) => fleet_sheet(record),
            Record::Why(record) => Sheet::from_fields(ANSWER_FIELDS, record.answers.iter()),
        }
        .text()
    },
};

/// Fields of an answer of `why`.
const ANSWER_FIELDS: &str = "asked_pid=asked/pid asked=asked/command verdict cause who_pid=who/pid who=who/command what detail for_ns";
/// Fields of a pipe in the record of a boost.
const PIPE_FIELDS: &str = "inode writer=writer/command writer_pid=writer/pid reader=reader/command \
    reader_pid=reader/pid before_bytes after_bytes watched_ns full_ns left";
/// Fields of a stage in the record of a run.
const STAGE_FIELDS: &str = "pipeline stage command status signal wall_ns user_ns system_ns queued_ns blocked_read_ns \
    blocked_write_ns max_rss_bytes read_buffer_offset write_buffer_offset";
/// Fields of the link that a stage writes to.
const LINK_FIELDS: &str = "link=spec link_bytes=bytes link_bytes_is=bytes_is link_lines=lines link_stored_bytes=stored_bytes \
    link_watched_ns=watched_ns link_full_ns=full_ns link_empty_ns=empty_ns";
/// Fields of a result of `compare`; times are in seconds.
const RESULT_FIELDS: &str = "pipeline via trials=times_s mean_s stddev_s median_s low_s high_s \
    times_first=times_first/median times_shell=times_shell/median times_fastest=times_fastest/median \
    times_fastest_low=times_fastest/low times_fastest_high=times_fastest/high stored_bytes output_bytes \
    output_hash status equal same_output parameters error";

/// Names of columns, and rows of as many cells.
pub(crate) struct Sheet {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A column: its name, and its cell in the row of an item.
type Column<T> = (&'static str, fn(&T) -> Option<String>);

impl Sheet {
    fn from_columns<T>(columns: &[Column<T>], items: impl Iterator<Item = T>) -> Self {
        let row = |item: T| columns.iter().map(|(_, cell)| cell(&item).unwrap_or_default()).collect();
        Self {
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: items.map(row).collect(),
        }
    }

    /// `columns` lists fields of records, with blanks between them: `field`, or `column=path/of/its/field`.
    fn from_fields<T: Serialize>(columns: &'static str, items: impl Iterator<Item = T>) -> Self {
        let columns: Vec<_> =
            columns.split_whitespace().map(|name| name.split_once('=').unwrap_or((name, name))).collect();
        let row = |item: T| {
            let fields = serde_json::to_value(item).unwrap_or_default();
            let cell = |path: &str| fields.pointer(&format!("/{path}")).map_or_else(String::new, plain);
            columns.iter().map(|(_, path)| cell(path)).collect()
        };
        Self {
            rows: items.map(row).collect(),
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    }

    /// More columns for the same rows.
    fn with(mut self, more: Self) -> Self {
        self.columns.extend(more.columns);
        self.rows.iter_mut().zip(more.rows).for_each(|(row, more)| row.extend(more));
        self
    }

    /// The rows of `other` below, its columns to the right; cells that a row does not have are empty.
    fn beside(mut self, other: Self) -> Self {
        let (before, after) = (self.columns.len(), other.columns.len());
        self.rows.iter_mut().for_each(|row| row.resize(before + after, String::new()));
        let pad = |row: Vec<String>| std::iter::repeat_n(String::new(), before).chain(row).collect();
        self.rows.extend(other.rows.into_iter().map(pad));
        self.columns.extend(other.columns);
        self
    }

    /// The sheet as CSV.
    pub(crate) fn text(self) -> Result<String, FormatError> {
        let refused = |error: ::csv::Error| FormatError::Csv(error.to_string());
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns).map_err(refused)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| harmless(cell))).map_err(refused)?;
        }
        let bytes = writer.into_inner().map_err(|error| FormatError::Csv(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| FormatError::Csv(error.to_string()))
    }
}

/// The text with control characters made visible, except line ends and tabs, which are data.
fn harmless(cell: &str) -> String {
    if cell.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return cell.to_owned();
    }
    cell.split('\t').map(model::visible).collect::<Vec<_>>().join("\t")
}

/// A case, how many times as fast as the pipe it is, and the model of its sweep.
type Case<'a> = (&'a CaseRecord, Option<Ratio>, Option<&'a CostModel>);

/// The figures of a case.
fn case_columns<'a>() -> &'a [Column<Case<'a>>] {
    &[
        ("granted", |(case, ..)| Some(pairs(&case.granted))),
        ("samples", |(case, ..)| Some(case.samples.len().to_string())),
        ("throughput_median_bytes_per_s", |(case, ..)| throughput(case, |found| found.median_bytes_per_s)),
        ("throughput_low_bytes_per_s", |(case, ..)| throughput(case, |found| found.low)),
        ("throughput_high_bytes_per_s", |(case, ..)| throughput(case, |found| found.high)),
        ("throughput_mean_bytes_per_s", |(case, ..)| throughput(case, |found| found.mean)),
        ("throughput_stddev_bytes_per_s", |(case, ..)| throughput(case, |found| found.stddev)),
        ("round_trip_p50_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p50.to_string())),
        ("round_trip_p50_low_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p50_low.to_string())),
        ("round_trip_p50_high_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p50_high.to_string())),
        ("round_trip_p90_ns", |(case, ..)| tail::digits(case, Tail::P90)),
        ("round_trip_p99_ns", |(case, ..)| tail::digits(case, Tail::P99)),
        ("round_trip_p999_ns", |(case, ..)| tail::digits(case, Tail::P999)),
        ("round_trip_max_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.max.to_string())),
        ("round_trips", |(case, ..)| Some(case.latency_ns.as_ref()?.count.to_string())),
        ("times_pipe", |(_, times_pipe, _)| Some(digits((*times_pipe)?.median))),
        ("times_pipe_low", |(_, times_pipe, _)| Some(digits((*times_pipe)?.low))),
        ("times_pipe_high", |(_, times_pipe, _)| Some(digits((*times_pipe)?.high))),
        ("elapsed_per_block_ns", |(case, ..)| median(case, figure::elapsed_per_block_ns)),
        ("cpu_per_block_ns", |(case, ..)| {
            of_blocks_alone(case)?;
            median(case, |sample| costly_cpu_ns(case, sample, &Demand::default()))
        }),
        ("model_overhead_ns", |(.., model)| Some(digits((*model)?.overhead_ns.value))),
        ("model_bandwidth_bytes_per_s", |(.., model)| Some(whole((*model)?.bandwidth_bytes_per_s()?.value))),
        ("model_per_block_ns", |(case, _, model)| Some(digits((*model)?.ns(case.block_bytes)))),
        ("syscalls_per_block", |(case, ..)| median(case, figure::syscalls_per_block)),
        ("set_up_ns", |(case, ..)| median(case, |sample| Some(sample.setup_ns as f64))),
        ("voluntary_switches_per_block", |(case, ..)| {
            median(of_blocks_alone(case)?, figure::voluntary_switches_per_block)
        }),
        ("bound_by", |(case, ..)| bound_of(of_blocks_alone(case)?).map(|bound| bound.to_string())),
        ("noise", |(case, ..)| word(&case.noise?)),
        ("outliers", |(case, ..)| Some(case.outliers.to_string())),
        ("error_kind", |(case, ..)| word(&case.error.as_ref()?.kind)),
        ("error", |(case, ..)| Some(case.error.as_ref()?.message.clone())),
        ("remedy", |(case, ..)| case.error.as_ref()?.remedy.clone()),
    ]
}

/// The figures of a case under a load.
fn load_columns<'a>() -> &'a [Column<&'a CaseRecord>] {
    &[
        ("reached_per_s", |case| {
            let is_counted = case.latency_ns.is_some() || case.rate_per_s.is_some();
            load::reached_per_s(case).filter(|_| is_counted).map(digits)
        }),
        ("each_bytes_per_s", |case| median(case, load::share_bytes_per_s)),
        ("fairness", |case| median(case, load::fairness)),
        ("torn_share", |case| load::torn_share(case).map(digits)),
        ("service_p50_ns", |case| Some(load::service_ns(case, [0.5]).ok()??[0].to_string())),
        ("service_p99_ns", |case| {
            tail::digits(case, Tail::P99)?;
            Some(load::service_ns(case, [0.99]).ok()??[0].to_string())
        }),
    ]
}

/// One row for each case, and below them the answer of `hosepipe recommend`.
fn bench_sheet(record: &BenchRecord) -> Sheet {
    let pipes = Pipes::from_record(record);
    let models = models_of(record);
    let model = |case: &CaseRecord| models.get(&std::ptr::from_ref(case));
    let rows: Vec<Case> = record.cases.iter().map(|case| (case, pipes.against(case), model(case))).collect();
    let cases: Vec<&CaseRecord> = record.cases.iter().collect();
    let sheet = cases_sheet(&groups_of(&cases, record.peer.is_some()), &rows);
    match &record.recommendation {
        Some(recommendation) => sheet.beside(programs_sheet(recommendation)),
        None => sheet,
    }
}

/// One row for each program that was run, and for the recommended one.
fn programs_sheet(recommendation: &Recommendation) -> Sheet {
    type Program<'a> = (&'a Recommendation, &'a Spec, Option<&'a ProgramFigures>);
    let columns: &[Column<Program>] = &[
        ("question", |(whole, ..)| Some(whole.title.clone())),
        ("program", |(_, spec, _)| Some(spec.to_string())),
        ("program_language", |(whole, ..)| Some(whole.language.clone())),
        ("program_taken", |(whole, spec, _)| Some((whole.taken.as_ref() == Some(*spec)).to_string())),
        ("program_runs", |(.., run)| Some((*run)?.time_ns.len().to_string())),
        ("program_messages", |(.., run)| Some((*run)?.messages.to_string())),
        ("program_time_ns", |(.., run)| Some(digits(Estimate::of(&(*run)?.time_ns)?.median))),
        ("program_cpu_ns", |(.., run)| Some(digits(Estimate::of(&(*run)?.cpu_ns)?.median))),
        ("program_failure", |(.., run)| (*run)?.failure.clone()),
        ("answered_after_s", |(whole, ..)| whole.took_s.map(digits)),
    ];
    let run = recommendation.programs.iter().map(|run| (recommendation, &run.spec, Some(run)));
    let is_run = |spec: &&Spec| recommendation.programs.iter().any(|run| run.spec == **spec);
    let not_run = recommendation.taken.iter().filter(|spec| !is_run(spec));
    Sheet::from_columns(columns, run.chain(not_run.map(|spec| (recommendation, spec, None))))
}

/// Cases that are not compared with a pipe and have no model.
fn without_models(cases: &[CaseRecord]) -> Vec<Case<'_>> {
    cases.iter().map(|case| (case, None, None)).collect()
}

/// The groups of axes that are columns: those of every case, and others if a case has an unusual value in them.
fn groups_of(cases: &[&CaseRecord], has_peer: bool) -> Vec<AxisGroup> {
    let asked = |group: AxisGroup| {
        let mut axes = AXES.iter().filter(|axis| axis.group == group);
        axes.any(|axis| cases.iter().any(|case| axis.unusual(case).is_some()))
    };
    let mut groups = vec![AxisGroup::Case, AxisGroup::Worker];
    groups.extend([AxisGroup::Further, AxisGroup::Load].into_iter().filter(|group| asked(*group)));
    groups.extend(has_peer.then_some(AxisGroup::Peer));
    groups
}

/// One row for each case: its axes, its figures, and the axes and figures of further groups.
fn cases_sheet(groups: &[AxisGroup], rows: &[Case]) -> Sheet {
    let axes = |wanted: &[AxisGroup]| {
        let axes: Vec<&Axis> = AXES.iter().filter(|axis| wanted.contains(&axis.group)).collect();
        let value = |axis: &Axis, case| (axis.value)(case).map(|value| value.raw()).unwrap_or_default();
        Sheet {
            columns: axes.iter().map(|axis| axis.column.to_owned()).collect(),
            rows: rows.iter().map(|(case, ..)| axes.iter().map(|axis| value(axis, case)).collect()).collect(),
        }
    };
    let (always, further) = groups.split_at(2);
    let sheet = axes(always).with(Sheet::from_columns(case_columns(), rows.iter().copied()));
    further.iter().fold(sheet, |sheet, group| {
        let figures: &[Column<&CaseRecord>] = match group {
            AxisGroup::Load => load_columns(),
            AxisGroup::Peer => {
                &[("retransmits", |case| median(case, |sample| Some(sample.retransmits? as f64)))]
            }
            AxisGroup::Case | AxisGroup::Worker | AxisGroup::Further => &[],
        };
        sheet.with(axes(&[*group])).with(Sheet::from_columns(figures, rows.iter().map(|(case, ..)| *case)))
    })
}

/// A row for each stage and each link that it writes to.
fn chains_sheet(record: &TopRecord) -> Sheet {
    type Stage<'a> = (usize, &'a ChainStage, Option<&'a ChainLink>);
    let columns: &[Column<Stage>] = &[
        ("chain", |(at, ..)| Some((at + 1).to_string())),
        ("stage", |(_, stage, _)| Some(crate::chains::name(stage))),
        ("pid", |(_, stage, _)| text(stage.processes.first().map(|process| process.pid))),
        ("cpus", |(_, stage, _)| Some(digits(stage.cpus))),
        ("read_bytes_per_s", |(_, stage, _)| stage.read_bytes_per_s.map(whole)),
        ("write_bytes_per_s", |(_, stage, _)| stage.write_bytes_per_s.map(whole)),
        ("doing", |(_, stage, _)| Some(stage.doing.to_string())),
        ("held_up", |(_, stage, _)| Some(digits(stage.held_up))),
        ("link", |(.., link)| Some((*link)?.name.clone())),
        ("link_bytes_per_s", |(.., link)| (*link)?.bytes_per_s.map(whole)),
        ("link_at_least", |(.., link)| Some((*link)?.at_least.to_string())),
        ("link_held_bytes", |(.., link)| text((*link)?.held_bytes)),
        ("link_capacity_bytes", |(.., link)| text((*link)?.capacity_bytes)),
        ("link_fullness", |(.., link)| (*link)?.fullness.map(digits)),
    ];
    let rows = record.seen.chains.iter().enumerate().flat_map(|(number, chain)| {
        chain.stages.iter().zip(crate::chains::links_behind(chain)).flat_map(move |(stage, links)| {
            let none = links.is_empty().then_some(None);
            links.into_iter().map(Some).chain(none).map(move |link| (number, stage, link))
        })
    });
    Sheet::from_columns(columns, rows)
}

fn run_sheet(record: &RunRecord) -> Sheet {
    let links = Sheet::from_fields(LINK_FIELDS, links_behind(record).into_iter());
    Sheet::from_fields(STAGE_FIELDS, record.stages.iter()).with(links)
}

/// One row for each pipeline and link.
pub(crate) fn results_sheet(results: &[CompareResult]) -> Sheet {
    Sheet::from_fields(RESULT_FIELDS, results.iter())
}

/// The name, the mean CPU times in seconds, and a column for each parameter (`-P`).
fn compared_sheet(results: &[CompareResult]) -> Sheet {
    let names = versus::parameters(&results.iter().collect::<Vec<_>>());
    let shown = |seconds: Option<f64>| six_decimals(seconds).unwrap_or_default();
    let row = |result: &CompareResult| {
        let times = versus::cpu_times(result);
        let own = [
            result.name.clone().unwrap_or_default(),
            shown(times.map(|(user, _)| user)),
            shown(times.map(|(_, system)| system)),
        ];
        let values = names.iter().map(|name| result.parameters.get(*name).cloned().unwrap_or_default());
        own.into_iter().chain(values).collect()
    };
    let own = ["name", "user_s", "system_s"].map(str::to_owned).into_iter();
    Sheet {
        rows: results.iter().map(row).collect(),
        columns: own.chain(names.iter().map(|name| format!("parameter_{name}"))).collect(),
    }
}

/// One row for each case, result and measure of each part: the columns of the others are empty.
fn study_sheet(record: &StudyRecord) -> Sheet {
    let measures: &[Column<&Measure>] = &[
        ("measure", |measure| Some(measure.name.clone())),
        ("measure_samples", |measure| Some(measure.samples.len().to_string())),
        ("measure_median", |measure| Estimate::of(&measure.samples).map(|found| digits(found.median))),
        ("measure_error", |measure| measure.error.clone()),
    ];
    let mut all = Sheet { columns: Vec::new(), rows: Vec::new() };
    let cases: Vec<&CaseRecord> = record.parts.iter().flat_map(|part| &part.cases).collect();
    let groups = groups_of(&cases, false);
    for part in &record.parts {
        let mut sheet = cases_sheet(&groups, &without_models(&part.cases))
            .beside(results_sheet(&part.results))
            .beside(Sheet::from_columns(measures, part.measures.iter()));
        sheet.columns.insert(0, "part".to_owned());
        sheet.rows.iter_mut().for_each(|row| row.insert(0, part.name.clone()));
        all.columns = sheet.columns;
        all.rows.append(&mut sheet.rows);
    }
    all
}

/// One row for each case of each node and of each pair; a node or a pair that failed or has no cases gets a row with the reason.
fn fleet_sheet(record: &FleetRecord) -> Sheet {
    let name = |rank: usize| record.nodes[rank].name.clone();
    let own = record.nodes.iter().map(|node| {
        let cases = node.bench.as_ref().map_or(&[][..], |bench| &bench.cases);
        (node.name.clone(), String::new(), cases, &node.failure)
    });
    let pairs = record.meetings.iter();
    let pairs = pairs.map(|one| (name(one.from), name(one.to), one.cases.as_slice(), &one.failure));
    let measured: Vec<_> = own.chain(pairs).collect();
    let cases: Vec<&CaseRecord> = measured.iter().flat_map(|(.., cases, _)| *cases).collect();
    let groups = groups_of(&cases, true);
    let sheet = |cases: &[CaseRecord]| cases_sheet(&groups, &without_models(cases));
    let mut all = sheet(&[]);
    let width = all.columns.len();
    for (node, partner, cases, failure) in measured {
        let with_names = |row: Vec<String>, failure: String| {
            [node.clone(), partner.clone(), failure].into_iter().chain(row).collect()
        };
        all.rows.extend(sheet(cases).rows.into_iter().map(|row| with_names(row, String::new())));
        if cases.is_empty() || failure.is_some() {
            let reason = failure.clone().unwrap_or_default();
            all.rows.push(with_names(vec![String::new(); width], reason));
        }
    }
    all.columns.splice(0..0, ["node", "partner", "failure"].map(str::to_owned));
    all
}

/// One row for each figure of each case.
fn difference_sheet(record: &DiffRecord) -> Sheet {
    type Row<'a> = (&'a DiffRecord, &'a CaseChange);
    let columns: &[Column<Row>] = &[
        ("spec", |(_, change)| change.case.get("spec").cloned()),
        ("case", |(_, change)| {
            let fields = change.case.iter().filter(|(name, _)| *name != "spec");
            Some(pairs(fields))
        }),
        ("figure", |(_, change)| word(&change.figure)),
        ("unit", |(_, change)| Some(change.figure.unit().to_owned())),
        ("control", |(_, change)| Some(change.control.to_string())),
        ("old_samples", |(_, change)| Some(change.old.len().to_string())),
        ("new_samples", |(_, change)| Some(change.new.len().to_string())),
        ("old_median", |(_, change)| six_decimals(change.old_median)),
        ("new_median", |(_, change)| six_decimals(change.new_median)),
        ("ratio", |(_, change)| six_decimals(change.ratio)),
        ("low", |(_, change)| six_decimals(change.low)),
        ("high", |(_, change)| six_decimals(change.high)),
        ("p", |(_, change)| text(change.p)),
        ("p_corrected", |(_, change)| text(change.p_corrected)),
        ("verdict", |(_, change)| word(&change.kind)),
        ("regressed", |(record, change)| Some(record.is_regression(change).to_string())),
        ("remark", |(_, change)| change.remark.clone()),
        ("different_hosts", |(record, _)| Some(record.hosts_differ.join("; "))),
    ];
    Sheet::from_columns(columns, record.changes.iter().map(|change| (record, change)))
}

/// The word that records have for a value.
fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// The text of a field: for a list its length, for an object its `name=value` pairs.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => six_decimals(number.as_f64()).unwrap_or_default(),
        Value::Array(list) => list.len().to_string(),
        Value::Object(fields) => pairs(fields.iter().map(|(name, value)| (name, plain(value)))),
        other => other.to_string(),
    }
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// `name=value` pairs with blanks between them.
fn pairs<'a>(named: impl IntoIterator<Item = (&'a String, impl Display)>) -> String {
    named.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The case, if its CPU time and context switches are those of its blocks alone; those of workers include start-up and warm-up.
fn of_blocks_alone(case: &CaseRecord) -> Option<&CaseRecord> {
    case.worker.is_none().then_some(case)
}

fn median(case: &CaseRecord, of: impl Fn(&model::Sample) -> Option<f64>) -> Option<String> {
    figure::median_of(case, of).map(digits)
}

fn throughput(case: &CaseRecord, of: fn(&Throughput) -> f64) -> Option<String> {
    case.throughput.as_ref().map(|found| whole(of(found)))
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Four decimals, enough for any of these figures, and no exponent.
fn digits(value: f64) -> String {
    format!("{value:.4}")
}

fn six_decimals(value: Option<f64>) -> Option<String> {
    value.filter(|value| value.is_finite()).map(|value| format!("{value:.6}"))
}
