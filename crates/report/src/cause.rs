//! The sentence on the bottleneck of a run: the stage that the others waited for, what it did meanwhile, and what would help. The texts are those of
//! `cause.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::{Bottleneck, ByteSize, Cause, RunRecord, StageShare};
use serde_json::Value;

use crate::layout::shortened;
use crate::limits::COMMAND_COLUMNS;
use crate::lists::joined_if_any;
use crate::stages::stage_name;
use crate::template::fill_template;

static TEXTS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("cause.toml")).unwrap_or_default());

/// The record, with the sentence on its bottleneck.
pub fn with_sentence(mut record: RunRecord) -> RunRecord {
    let sentence = record.bottleneck.as_ref().map(|found| sentence(&record, found));
    if let (Some(found), Some(sentence)) = (&mut record.bottleneck, sentence) {
        found.sentence = sentence;
    }
    record
}

/// The bottleneck of a run as a sentence. Records of version 0.1 have only the sentence.
pub(crate) fn sentence(record: &RunRecord, found: &Bottleneck) -> String {
    let Some(cause) = &found.cause else { return found.sentence.clone() };
    let about = About { record, found, cause, fields: serde_json::to_value(cause).unwrap_or_default() };
    let kind = match (cause, found.stage) {
        (Cause::AllPartitions, None) => "no-partition",
        _ => about.fields["kind"].as_str().unwrap_or_default(),
    };
    about.said(kind).unwrap_or_default() + &about.said("no-pipeline").unwrap_or_default()
}

/// What a sentence is about.
struct About<'a> {
    record: &'a RunRecord,
    found: &'a Bottleneck,
    cause: &'a Cause,
    /// The cause as in JSON.
    fields: Value,
}

impl About<'_> {
    fn said(&self, text: &str) -> Option<String> {
        fill_template(TEXTS.get(text)?, &|name| self.value(name))
    }

    /// The value of a placeholder.
    fn value(&self, name: &str) -> Option<String> {
        let Self { record, found, .. } = self;
        let stages = &record.stages;
        // The stage after that of `seen_at`, in the same pipeline.
        let reader = || found.seen_at.filter(|at| self.are_neighbours(*at, at + 1));
        match (name, self.cause) {
            ("name", _) => self.named(found.stage?),
            ("command", _) => Some(stages.get(found.stage?)?.command.clone()),
            ("share", _) => Some(percent(found.share?)),
            ("seen_at", _) => self.named(found.seen_at?),
            ("subject", _) if found.stage.is_some_and(|at| self.is_alone(at)) => self.said("one-stage"),
            ("subject", _) => self.said(if found.in_turn { "in-turn" } else { "one-of-several" }),
            ("holds", _) => self.said("holds").filter(|_| found.stage.is_some_and(|at| !self.is_alone(at))),
            ("reader", _) => self.named(reader()? + 1),
            ("reader_ns", _) => Some(milliseconds(stages.get(reader()? + 1)?.wall_ns)),
            ("from_when", _) => self.said(if reader().is_some() { "reader-ended" } else { "reader-unknown" }),
            ("stages_before", _) => {
                let before = found.seen_at?.checked_sub(1)?;
                self.said("stages-before").filter(|_| self.are_neighbours(before, before + 1))
            }
            ("largest", Cause::NoStage { largest, .. }) => {
                let part = |of: &StageShare| Some(format!("{} {}", self.named(of.stage)?, percent(of.share)));
                joined_if_any(largest.iter().filter_map(part), ", ")
            }
            ("pipe_help", Cause::NoStage { quota_is_spent, .. }) => {
                self.said(if *quota_is_spent { "quota-is-spent" } else { "larger-pipe" })
            }
            ("tips", _) => {
                let text = |tip: &Value| TEXTS.get(tip.as_str()?).cloned();
                joined_if_any(self.fields["tips"].as_array()?.iter().filter_map(text), "; or ")
            }
            ("no_pipeline_share", _) => Some(percent(found.no_pipeline.as_ref()?.share)),
            ("no_pipeline_command", _) => found.no_pipeline.as_ref()?.command.clone(),
            (field, _) => shown(field, &self.fields[field]),
        }
    }

    fn are_neighbours(&self, before: usize, after: usize) -> bool {
        let pipeline = |at: usize| self.record.stages.get(at).map(|stage| stage.pipeline);
        pipeline(after).is_some() && pipeline(before) == pipeline(after)
    }

    /// Whether a stage is the only one of its pipeline.
    fn is_alone(&self, at: usize) -> bool {
        !self.are_neighbours(at, at + 1)
            && at.checked_sub(1).is_none_or(|before| !self.are_neighbours(before, at))
    }

    fn named(&self, at: usize) -> Option<String> {
        let stage = self.record.stages.get(at)?;
        let alone = || format!("`{}`", shortened(&stage.command, COMMAND_COLUMNS));
        Some(if self.is_alone(at) { alone() } else { stage_name(stage) })
    }
}

/// A field of a cause, by its unit.
fn shown(field: &str, value: &Value) -> Option<String> {
    match (field.rsplit('_').next()?, value) {
        ("share", value) => Some(percent(value.as_f64()?)),
        ("ns", value) => Some(milliseconds(value.as_u64()?)),
        ("bytes", value) => Some(ByteSize(value.as_u64()?).to_string()),
        (_, Value::String(text)) => Some(shortened(text, COMMAND_COLUMNS)),
        (_, value) => Some(value.as_u64()?.to_string()),
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{} ms", ns / 1_000_000)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share.clamp(0.0, 1.0))
}
#[cfg(test)]
mod tests {
    use model::{NoPipeline, StageRecord, Tip};

    use super::*;

    /// Runs of one pipeline, whose third stage ended after 2 ms.
    fn run(commands: &[&str]) -> RunRecord {
        let stage = |(at, command): (usize, &&str)| StageRecord {
            stage: at as u32,
            command: (*command).to_owned(),
            wall_ns: if at == 2 { 2_900_000 } else { 300_000_000 },
            ..StageRecord::default()
        };
        RunRecord { stages: commands.iter().enumerate().map(stage).collect(), ..RunRecord::default() }
    }

    /// A cause with a share of 0.634.
    fn found(stage: Option<usize>, cause: Cause) -> Bottleneck {
        Bottleneck { stage, share: Some(0.634), cause: Some(cause), ..Bottleneck::default() }
    }

    #[test]
    fn each_cause_has_its_sentence() {
        let largest = [(0, 0.48), (1, 0.45)].map(|(stage, share)| StageShare { stage, share }).to_vec();
        let sorts = vec![Tip::OrderByBytes];
        let compresses = vec![Tip::Zstd, Tip::Pigz];
        let holds = "`sort -u` (stage 2) holds the pipeline up: ";
        for (cause, stage, expected) in [
            (
                Cause::Computes { cpu_share: 0.95, tips: sorts.clone() },
                Some(1),
                format!(
                    "{holds}the others waited for it 63 % of the time, and it computed for 95 % of that. Try LC_ALL=C, which orders by bytes instead of \
                     the language."
                ),
            ),
            (
                Cause::MostCpuTime { queued_share: Some(0.3), tips: compresses },
                Some(1),
                format!(
                    "{holds}it computed for 63 % of the time and waited for a CPU for 30 %. Try zstd, if the format is yours to choose; or \
                     pigz, which uses every CPU."
                ),
            ),
            (
                Cause::Queues { queued_share: 0.5, cpu_share: 0.0, tips: sorts },
                Some(1),
                format!(
                    "{holds}the others waited for it 63 % of the time, and it waited for a CPU for 50 % of that, because others, stages of this pipeline \
                     or not, used the CPUs. It computed for 0 %. Try LC_ALL=C, which orders by bytes instead of the language."
                ),
            ),
            (
                Cause::Disk { disk_share: 0.8 },
                Some(1),
                format!("{holds}the others waited for it 63 % of the time, and it waited for a disk for 80 % of that."),
            ),
            (
                Cause::Stopped { stopped_share: 0.9 },
                Some(1),
                format!(
                    "{holds}the others waited for it 63 % of the time, and it was stopped by a signal (SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU) for 90 % of that."
                ),
            ),
            (
                Cause::SharedPipe { with: "sleep 1".to_owned(), waited_share: 0.9 },
                Some(1),
                format!(
                    "{holds}the others waited for it 63 % of the time, and it waited for `sleep 1`, with which it shares a pipe, for 90 % of that."
                ),
            ),
            (
                Cause::Sleeps { cpu_share: Some(0.05) },
                Some(1),
                format!(
                    "{holds}the others waited for it 63 % of the time, and it slept, waiting for a timer or for something outside the pipeline. It \
                     computed for 5 %."
                ),
            ),
            (
                Cause::NoStage { largest: largest.clone(), pipe_bytes: Some(65536), quota_is_spent: false },
                None,
                "No stage in particular holds the pipeline up; of the time, this much was up to: `cat f` (stage 1) 48 %, `sort -u` (stage 2) \
                 45 %. A pipe holds 64KiB: try --via pipe:size=1MiB."
                    .to_owned(),
            ),
            (
                Cause::NoStage { largest: Vec::new(), pipe_bytes: None, quota_is_spent: false },
                None,
                "No stage in particular holds the pipeline up.".to_owned(),
            ),
            (
                Cause::TooShort { min_ns: 50_000_000 },
                None,
                "Too short to judge: no stage took 50 ms.".to_owned(),
            ),
            (
                Cause::AllPartitions,
                Some(1),
                "`sort -u` holds the runs up: the others waited for it 63 % of their time.".to_owned(),
            ),
        ] {
            assert_eq!(sentence(&run(&["cat f", "sort -u"]), &found(stage, cause)), expected);
        }
    }

    #[test]
    fn each_tip_has_its_text_and_each_name_in_records_is_its_key() {
        for tip in Tip::ALL {
            assert_eq!(serde_json::to_value(tip).expect("JSON"), tip.word());
            let said =
                sentence(&run(&["a"]), &found(Some(0), Cause::Computes { cpu_share: 1.0, tips: vec![*tip] }));
            assert!(said.starts_with("`a` computed for 100 % of that. Try "), "{tip}: {said}");
        }
    }

    #[test]
    fn what_is_no_stage_is_named_by_the_stage_where_it_was_seen() {
        let record = run(&["tail -f log", "sed", "grep -m1 x"]);
        let said =
            |record, at, cause| sentence(record, &Bottleneck { seen_at: Some(at), ..found(None, cause) });
        let unread = "for 63 % of the time, no program read the output of `sed` (stage 2), but it and the stages before it did not end.";
        let ended = "`grep -m1 x` (stage 3) ended after 2 ms: from then on, ";
        assert!(said(&record, 1, Cause::Unread).starts_with(&format!("{ended}{unread}")));
        // Happened: a panic, and no table, where a signal had ended the reader before it was seen.
        let one = run(&["sed"]);
        let alone = said(&one, 0, Cause::Unread);
        assert!(
            alone
                .starts_with("For 63 % of the time no program read the output of `sed`, but it did not end.")
        );
        let fed = "What feeds the pipeline holds it up: for 63 % of the time the standard input of `tail -f log` (stage 1) was empty.";
        assert_eq!(said(&record, 0, Cause::Before), fed);
        let read = "for 63 % of the time there was no room for the output of `grep -m1 x` (stage 3).";
        assert!(said(&record, 2, Cause::After).ends_with(read));
    }

    #[test]
    fn time_without_a_pipeline_is_said_and_an_old_sentence_stays() {
        let no_pipeline = Some(NoPipeline { share: 0.759, command: Some("sleep 9".to_owned()) });
        let short = Bottleneck { no_pipeline, ..found(None, Cause::FewSamples { samples: 3 }) };
        assert_eq!(
            sentence(&run(&["cat"]), &short),
            "It is not known which stage holds the pipeline up: 3 samples are too few, or differ too much. For 76 % of the whole time no \
             pipeline ran: the shell worked itself, or waited for a program that is no stage: `sleep 9`."
        );
        let old = Bottleneck { sentence: "Too short.".to_owned(), ..Bottleneck::default() };
        assert_eq!(sentence(&run(&["cat"]), &old), "Too short.");
    }
}
