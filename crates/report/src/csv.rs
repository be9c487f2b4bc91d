//! CSV: one row for each case, stage or result, for spreadsheets and data frames. Raw figures in base units, empty where
//! there is none; the raw samples are in the JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use model::{
    AXES, Axis, AxisGroup, BenchRecord, BoostRecord, CaseChange, CaseRecord, ChainLink, ChainStage,
    CompareRecord, CompareResult, DiffRecord, FleetRecord, Measure, ProgramFigures, Ratio, Recommendation,
    Record, RunRecord, Spec, StudyRecord, TopRecord,
};
use serde::Serialize;
use serde_json::Value;
use stats::{CostModel, Estimate, bound_of, figure, load};

use crate::against_pipe::Pipes;
use crate::costs::models_of;
use crate::format::{Format, FormatError, only};
use crate::stages::links_behind;

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "CSV",
    flag: "csv",
    summary: "one row per case, stage or result",
    render: |records, _| {
        match only("CSV", records)? {
            Record::Bench(record) => of_cases(record),
            Record::Run(record) => of_run(record),
            Record::Compare(record) => of_comparison(record),
            Record::Study(record) => of_study(record),
            Record::Diff(record) => of_difference(record),
            Record::Boost(record) => of_boost(record),
            Record::Top(record) => of_chains(record),
            Record::Fleet(record) => of_fleet(record),
        }
        .text()
    },
};

/// A heading, and rows as long as it is.
pub(crate) struct Sheet {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// A column: its name, and its value of a thing.
type Column<T> = (&'static str, fn(&T) -> Option<String>);

impl Sheet {
    fn of<T>(columns: &[Column<T>], things: impl Iterator<Item = T>) -> Self {
        let row = |thing: T| columns.iter().map(|(_, value)| value(&thing).unwrap_or_default()).collect();
        Self { columns: columns.iter().map(|(name, _)| *name).collect(), rows: things.map(row).collect() }
    }

    /// Fields of things as records have them, `column` or `column=path/of/its/field`, with blanks between them.
    fn of_fields<T: Serialize>(columns: &'static str, things: impl Iterator<Item = T>) -> Self {
        let columns: Vec<_> =
            columns.split_whitespace().map(|name| name.split_once('=').unwrap_or((name, name))).collect();
        let row = |thing: T| {
            let fields = serde_json::to_value(thing).unwrap_or_default();
            let cell = |path: &str| fields.pointer(&format!("/{path}")).map_or_else(String::new, plain);
            columns.iter().map(|(_, path)| cell(path)).collect()
        };
        Self { rows: things.map(row).collect(), columns: columns.iter().map(|(name, _)| *name).collect() }
    }

    /// More columns for the same rows.
    fn with(mut self, more: Self) -> Self {
        self.columns.extend(more.columns);
        self.rows.iter_mut().zip(more.rows).for_each(|(row, more)| row.extend(more));
        self
    }

    /// Both under one heading: what the rows of one do not have is empty.
    fn beside(mut self, other: Self) -> Self {
        let (before, after) = (self.columns.len(), other.columns.len());
        self.rows.iter_mut().for_each(|row| row.resize(before + after, String::new()));
        let pad = |row: Vec<String>| std::iter::repeat_n(String::new(), before).chain(row).collect();
        self.rows.extend(other.rows.into_iter().map(pad));
        self.columns.extend(other.columns);
        self
    }

    /// The text.
    pub(crate) fn text(self) -> Result<String, FormatError> {
        let refused = |error: ::csv::Error| FormatError::Csv(error.to_string());
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns).map_err(refused)?;
        let cells =
            |row: &Vec<String>| row.iter().map(|cell| harmless(cell).into_owned()).collect::<Vec<_>>();
        self.rows.iter().try_for_each(|row| writer.write_record(cells(row))).map_err(refused)?;
        let bytes = writer.into_inner().map_err(|error| FormatError::Csv(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| FormatError::Csv(error.to_string()))
    }
}

/// A text that cannot steer a terminal; line ends and tabs are data.
fn harmless(cell: &str) -> Cow<'_, str> {
    if cell.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(cell);
    }
    Cow::Owned(cell.split('\t').map(model::visible).collect::<Vec<_>>().join("\t"))
}

/// A case, how many times as fast as the pipe it is, and the model of its sweep.
type Case<'a> = (&'a CaseRecord, Option<Ratio>, Option<&'a CostModel>);

/// The figures of a case.
fn case_columns<'a>() -> &'a [Column<Case<'a>>] {
    &[
        ("granted", |(case, ..)| Some(pairs(&case.granted))),
        ("samples", |(case, ..)| Some(case.samples.len().to_string())),
        ("throughput_median_bytes_per_s", |(case, ..)| {
            Some(whole(case.throughput.as_ref()?.median_bytes_per_s))
        }),
        ("throughput_low_bytes_per_s", |(case, ..)| Some(whole(case.throughput.as_ref()?.low))),
        ("throughput_high_bytes_per_s", |(case, ..)| Some(whole(case.throughput.as_ref()?.high))),
        ("throughput_mean_bytes_per_s", |(case, ..)| Some(whole(case.throughput.as_ref()?.mean))),
        ("throughput_stddev_bytes_per_s", |(case, ..)| Some(whole(case.throughput.as_ref()?.stddev))),
        ("round_trip_p50_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p50.to_string())),
        ("round_trip_p50_low_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p50_low.to_string())),
        ("round_trip_p50_high_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p50_high.to_string())),
        ("round_trip_p90_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p90.to_string())),
        ("round_trip_p99_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p99.to_string())),
        ("round_trip_p999_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.p999.to_string())),
        ("round_trip_max_ns", |(case, ..)| Some(case.latency_ns.as_ref()?.max.to_string())),
        ("round_trips", |(case, ..)| Some(case.latency_ns.as_ref()?.count.to_string())),
        ("times_pipe", |(_, times_pipe, _)| Some(digits((*times_pipe)?.median))),
        ("times_pipe_low", |(_, times_pipe, _)| Some(digits((*times_pipe)?.low))),
        ("times_pipe_high", |(_, times_pipe, _)| Some(digits((*times_pipe)?.high))),
        ("elapsed_per_block_ns", |(case, ..)| median(case, figure::elapsed_per_block_ns)),
        ("cpu_per_block_ns", |(case, ..)| median(between_the_clocks(case)?, figure::cpu_per_block_ns)),
        ("model_overhead_ns", |(.., model)| Some(digits((*model)?.overhead_ns.value))),
        ("model_bandwidth_bytes_per_s", |(.., model)| Some(whole((*model)?.bandwidth_bytes_per_s()?.value))),
        ("model_per_block_ns", |(case, _, model)| Some(digits((*model)?.ns(case.block_bytes)))),
        ("syscalls_per_block", |(case, ..)| median(case, figure::syscalls_per_block)),
        ("set_up_ns", |(case, ..)| median(case, |sample| Some(sample.setup_ns as f64))),
        ("voluntary_switches_per_block", |(case, ..)| {
            median(between_the_clocks(case)?, figure::voluntary_switches_per_block)
        }),
        ("bound_by", |(case, ..)| bound_of(between_the_clocks(case)?).map(|bound| bound.to_string())),
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
        ("reached_per_s", |case| load::reached_per_s(case).filter(|_| case.latency_ns.is_some()).map(digits)),
        ("each_bytes_per_s", |case| median(case, load::share_bytes_per_s)),
        ("fairness", |case| median(case, load::fairness)),
        ("torn_share", |case| load::torn_share(case).map(digits)),
        ("service_p50_ns", |case| Some(load::service_ns(case, [0.5]).ok()??[0].to_string())),
        ("service_p99_ns", |case| Some(load::service_ns(case, [0.99]).ok()??[0].to_string())),
    ]
}

/// One row for each case, and below them what `hosepipe recommend` answered.
fn of_cases(record: &BenchRecord) -> Sheet {
    let pipes = Pipes::of(record);
    let models = models_of(record);
    let model = |case: &CaseRecord| models.get(&std::ptr::from_ref(case));
    let rows: Vec<Case> = record.cases.iter().map(|case| (case, pipes.against(case), model(case))).collect();
    let cases: Vec<&CaseRecord> = record.cases.iter().collect();
    let sheet = cases_under(&groups_of(&cases, record.peer.is_some()), &rows);
    match &record.recommendation {
        Some(recommendation) => sheet.beside(of_programs(recommendation)),
        None => sheet,
    }
}

/// One row for each program that was run, and for the one to take.
fn of_programs(recommendation: &Recommendation) -> Sheet {
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
    Sheet::of(columns, run.chain(not_run.map(|spec| (recommendation, spec, None))))
}

/// Cases that no pipe and no sweep stands beside.
fn without_models(cases: &[CaseRecord]) -> Vec<Case<'_>> {
    cases.iter().map(|case| (case, None, None)).collect()
}

/// The groups of axes that are columns: those of every case, and others where a case has anything of them.
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

/// Cases as rows: what they are, their figures, and what further groups of axes have.
fn cases_under(groups: &[AxisGroup], rows: &[Case]) -> Sheet {
    let axes = |wanted: &[AxisGroup]| {
        let axes: Vec<&Axis> = AXES.iter().filter(|axis| wanted.contains(&axis.group)).collect();
        let value = |axis: &Axis, case| (axis.value)(case).map(|value| value.raw()).unwrap_or_default();
        Sheet {
            columns: axes.iter().map(|axis| axis.column).collect(),
            rows: rows.iter().map(|(case, ..)| axes.iter().map(|axis| value(axis, case)).collect()).collect(),
        }
    };
    let (always, further) = groups.split_at(2);
    let sheet = axes(always).with(Sheet::of(case_columns(), rows.iter().copied()));
    further.iter().fold(sheet, |sheet, group| {
        let figures = match group {
            AxisGroup::Load => load_columns(),
            AxisGroup::Peer => peer_columns(),
            AxisGroup::Case | AxisGroup::Worker | AxisGroup::Further => &[],
        };
        sheet.with(axes(&[*group])).with(Sheet::of(figures, rows.iter().map(|(case, ..)| *case)))
    })
}

/// The figures of a case whose ends were on two hosts.
fn peer_columns<'a>() -> &'a [Column<&'a CaseRecord>] {
    &[("retransmits", |case| median(case, |sample| Some(sample.retransmits? as f64)))]
}

/// A row for each stage and each link that it writes to.
fn of_chains(record: &TopRecord) -> Sheet {
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
    Sheet::of(columns, rows)
}

fn of_run(record: &RunRecord) -> Sheet {
    const STAGE: &str = "pipeline stage command status signal wall_ns user_ns system_ns queued_ns blocked_read_ns \
        blocked_write_ns max_rss_bytes read_buffer_offset write_buffer_offset";
    const LINK: &str = "link=spec link_bytes=bytes link_bytes_is=bytes_is link_lines=lines link_stored_bytes=stored_bytes \
        link_watched_ns=watched_ns link_full_ns=full_ns link_empty_ns=empty_ns";
    let links = Sheet::of_fields(LINK, links_behind(record).into_iter());
    Sheet::of_fields(STAGE, record.stages.iter()).with(links)
}

/// One row for each pipe.
fn of_boost(record: &BoostRecord) -> Sheet {
    const PIPE: &str = "inode writer=writer/command writer_pid=writer/pid reader=reader/command \
        reader_pid=reader/pid before_bytes after_bytes watched_ns full_ns left";
    Sheet::of_fields(PIPE, record.boosted.iter())
}

/// One row for each pipeline and link, times in seconds.
pub(crate) fn of_comparison(record: &CompareRecord) -> Sheet {
    of_results(&record.results)
}

fn of_results(results: &[CompareResult]) -> Sheet {
    const RESULT: &str = "pipeline via trials=times_s mean_s stddev_s median_s low_s high_s \
        times_first=times_first/median times_shell=times_shell/median times_fastest=times_fastest/median \
        times_fastest_low=times_fastest/low times_fastest_high=times_fastest/high stored_bytes output_bytes \
        output_hash status equal same_output parameters error";
    Sheet::of_fields(RESULT, results.iter())
}

/// One row for each case, result and measure of each part: the columns of the others are empty.
fn of_study(record: &StudyRecord) -> Sheet {
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
        let cases = cases_under(&groups, &without_models(&part.cases));
        let of_part = cases.beside(of_results(&part.results));
        let mut of_part = of_part.beside(Sheet::of(measures, part.measures.iter()));
        of_part.columns.insert(0, "part");
        of_part.rows.iter_mut().for_each(|row| row.insert(0, part.name.clone()));
        all.columns = of_part.columns;
        all.rows.append(&mut of_part.rows);
    }
    all
}

/// One row for each case of each node, and for each of each pair; for those without any, one that says why.
fn of_fleet(record: &FleetRecord) -> Sheet {
    let name = |rank: usize| record.nodes[rank].name.clone();
    let own = record.nodes.iter().map(|node| {
        let cases = node.bench.as_ref().map_or(&[][..], |bench| &bench.cases);
        (node.name.clone(), String::new(), cases, &node.failure)
    });
    let pairs = record
        .meetings
        .iter()
        .map(|meeting| (name(meeting.from), name(meeting.to), meeting.cases.as_slice(), &meeting.failure));
    let of_nodes = record.nodes.iter().filter_map(|node| Some(&node.bench.as_ref()?.cases)).flatten();
    let cases: Vec<&CaseRecord> =
        of_nodes.chain(record.meetings.iter().flat_map(|meeting| &meeting.cases)).collect();
    let groups = groups_of(&cases, true);
    let sheet = |cases: &[CaseRecord]| cases_under(&groups, &without_models(cases));
    let mut all = sheet(&[]);
    for (node, partner, cases, failure) in own.chain(pairs) {
        let mut of_one = sheet(cases).rows;
        if of_one.is_empty() || failure.is_some() {
            of_one.push(vec![String::new(); all.columns.len()]);
        }
        let why = failure.clone().unwrap_or_default();
        let last = of_one.len() - 1;
        for (at, row) in of_one.iter_mut().enumerate() {
            let failure = if at == last { why.clone() } else { String::new() };
            row.splice(0..0, [node.clone(), partner.clone(), failure]);
        }
        all.rows.append(&mut of_one);
    }
    all.columns.splice(0..0, ["node", "partner", "failure"]);
    all
}

/// One row for each figure of each case.
fn of_difference(record: &DiffRecord) -> Sheet {
    type Row<'a> = (&'a DiffRecord, &'a CaseChange);
    let columns: &[Column<Row>] = &[
        ("spec", |(_, change)| change.case.get("spec").cloned()),
        ("case", |(_, change)| {
            let fields = change.case.iter().filter(|(name, _)| *name != "spec");
            Some(fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
        }),
        ("figure", |(_, change)| word(&change.figure)),
        ("unit", |(_, change)| Some(change.figure.unit().to_owned())),
        ("control", |(_, change)| Some(change.control.to_string())),
        ("old_samples", |(_, change)| Some(change.old.len().to_string())),
        ("new_samples", |(_, change)| Some(change.new.len().to_string())),
        ("old_median", |(_, change)| seconds(change.old_median)),
        ("new_median", |(_, change)| seconds(change.new_median)),
        ("ratio", |(_, change)| seconds(change.ratio)),
        ("low", |(_, change)| seconds(change.low)),
        ("high", |(_, change)| seconds(change.high)),
        ("p", |(_, change)| text(change.p)),
        ("p_corrected", |(_, change)| text(change.p_corrected)),
        ("verdict", |(_, change)| word(&change.kind)),
        ("regressed", |(record, change)| Some(change.is_regression(record.fail_over_percent).to_string())),
        ("remark", |(_, change)| change.remark.clone()),
        ("different_hosts", |(record, _)| Some(record.hosts_differ.join("; "))),
    ];
    Sheet::of(columns, record.changes.iter().map(|change| (record, change)))
}

/// The word that stands for a value in records.
fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// A field: of a list its length, of an object its pairs.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => seconds(number.as_f64()).unwrap_or_default(),
        Value::Array(list) => list.len().to_string(),
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| format!("{name}={}", plain(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// `name=value` pairs with blanks between them.
fn pairs<V: Display>(named: &BTreeMap<String, V>) -> String {
    named.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// A case whose CPU time and switches are those of its blocks alone: workers' are of whole processes, start-up and warm-up
/// included.
fn between_the_clocks(case: &CaseRecord) -> Option<&CaseRecord> {
    case.worker.is_none().then_some(case)
}

fn median(case: &CaseRecord, of: impl Fn(&model::Sample) -> Option<f64>) -> Option<String> {
    figure::median_of(case, of).map(digits)
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Digits enough for any of these figures, and never `1e-7`.
fn digits(value: f64) -> String {
    format!("{value:.4}")
}

fn seconds(value: Option<f64>) -> Option<String> {
    value.filter(|value| value.is_finite()).map(|value| format!("{value:.6}"))
}
