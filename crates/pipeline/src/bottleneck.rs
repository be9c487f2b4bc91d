//! The bottleneck of a pipeline: the stage that the others waited for, or the program before the first or after the last stage.

mod evidence;

use model::{Bottleneck, LinkRecord, StageRecord};
use observe::locale::Locale;

use crate::history::Blame;
use crate::tips::{Busy, real_name, tips_for};
use evidence::{Culprit, Support, named_by_cpu, sampled, sampled_shares, support};

/// A shorter run consists mostly of the start of its programs, and has too few samples.
const TOO_SHORT_NS: u64 = 50_000_000;
/// Smallest share of a stage's time that its main activity takes.
const MAIN_SHARE: f64 = 0.5;
/// Smallest share of waiting for a CPU or a disk that is reported.
const WORTH_SAYING_SHARE: f64 = 0.25;
/// Smallest share of a stage that is named in a pipeline without a clear bottleneck.
const NAMED_SHARE: f64 = 0.2;
/// Size from which on a larger pipe is not faster.
const LARGE_PIPE_BYTES: u64 = 1 << 20;

/// Longest command in a sentence; the rest is cut off.
const COMMAND_CHARACTERS_MAX: usize = 40;

/// One pipeline that has run.
pub(crate) struct Observed<'a> {
    /// Its stages, with the time that was attributed to each.
    pub(crate) stages: &'a [(StageRecord, Blame)],
    /// The locale of each stage's program, if it is known.
    pub(crate) locales: &'a [Option<Locale>],
    /// Its links.
    pub(crate) links: &'a [LinkRecord],
    /// Whether each stage began after the one before it had ended.
    pub(crate) is_sequential: bool,
}

/// Finds the bottleneck; its `stage` is an index into the pipeline's stages.
pub(crate) fn find_bottleneck(pipeline: &Observed<'_>) -> Option<Bottleneck> {
    let total_ns = pipeline.stages.iter().map(|(stage, _)| stage.wall_ns).max()?;
    let say = |stage, sentence| Some(Bottleneck { stage, sentence });
    if total_ns < TOO_SHORT_NS {
        return say(None, format!("Too short to judge: no stage took {} ms.", TOO_SHORT_NS / 1_000_000));
    }
    let shares = sampled_shares(pipeline);
    let whole_ns =
        if pipeline.is_sequential { shares.iter().map(|(_, ns)| ns).sum() } else { total_ns as f64 };
    let (culprit, ns) = *shares.first()?;
    let share = (ns / whole_ns.max(1.0)).min(1.0);
    let support = support(pipeline, &shares, whole_ns);
    if let Some(index) = named_by_cpu(pipeline, culprit, support, whole_ns) {
        return say(Some(index), busiest_sentence(pipeline, index, whole_ns));
    }
    let (stage, percent) = (|index| named(pipeline, index), percent(share));
    match culprit {
        _ if support == Support::NotClear => say(None, unclear_sentence(pipeline, &shares, whole_ns)),
        _ if support == Support::FewSamples => {
            let samples = sampled(pipeline);
            let unknown = "It is not known which stage holds the pipeline up";
            say(None, format!("{unknown}: {samples} samples are too few, or differ too much."))
        }
        Culprit::Before => {
            let (what, name) = ("What feeds the pipeline holds it up", stage(0));
            say(None, format!("{what}: for {percent} of the time the standard input of {name} was empty."))
        }
        Culprit::After => {
            let (what, name) =
                ("What reads the output holds the pipeline up", stage(pipeline.stages.len() - 1));
            say(
                None,
                format!("{what}: for {percent} of the time there was no room for the output of {name}."),
            )
        }
        Culprit::Unread(index) => say(None, unread_sentence(pipeline, index, percent)),
        Culprit::Stage(index) => say(Some(index), stage_sentence(pipeline, index, share)),
    }
}

/// The sentence for a stage that is named by its CPU time.
fn busiest_sentence(pipeline: &Observed<'_>, index: usize, whole_ns: f64) -> String {
    let stage = &pipeline.stages[index].0;
    let share = |ns: u64| ns as f64 / whole_ns.max(1.0);
    let computed = percent(share(stage.user_ns.saturating_add(stage.system_ns)));
    let queued = share(stage.queued_ns.unwrap_or(0));
    let queued = if queued >= WORTH_SAYING_SHARE {
        format!(" and waited for a CPU for {}", percent(queued))
    } else {
        String::new()
    };
    let help = tip(pipeline, index, !queued.is_empty());
    let holds = if pipeline.stages.len() == 1 { "" } else { " holds the pipeline up: it" };
    format!("{}{holds} computed for {computed} of the time{queued}.{help}", named(pipeline, index))
}

fn stage_sentence(pipeline: &Observed<'_>, index: usize, share: f64) -> String {
    let (_, blame) = &pipeline.stages[index];
    let alone = pipeline.stages.len() == 1;
    let name = named(pipeline, index);
    let begin = match (alone, pipeline.is_sequential) {
        (true, _) => name,
        (_, true) => {
            format!("One stage ran after the other, and {name} took {} of the time:", percent(share))
        }
        _ => format!("{name} holds the pipeline up: {} of the time was up to it, and", percent(share)),
    };
    let who = if alone { "" } else { " it" };
    let share_of = |ns: f64| ns / blame.total_ns.max(1.0);
    let elsewhere = blame.waited_elsewhere_ns.iter().max_by(|one, other| one.1.total_cmp(other.1));
    let (cpu, queued, disk) = (share_of(blame.cpu_ns), share_of(blame.queued_ns), share_of(blame.disk_ns));
    let computed = format!("computed for {}", percent(cpu));
    let did = if let Some((other, ns)) = elsewhere.filter(|(_, ns)| share_of(**ns) >= MAIN_SHARE) {
        let (other, share) = (shortened(other), percent(share_of(*ns)));
        format!("waited for `{other}`, with which it shares a pipe, for {share} of that.")
    } else if queued >= WORTH_SAYING_SHARE && queued + cpu >= MAIN_SHARE {
        let share = percent(queued);
        let tip = tip(pipeline, index, true);
        format!(
            "waited for a CPU for {share} of that, because others, stages of this pipeline or not, used the CPUs. It {computed}.{tip}"
        )
    } else if share_of(blame.stopped_ns) >= MAIN_SHARE {
        let stopped = percent(share_of(blame.stopped_ns));
        format!("was stopped by a signal (SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU) for {stopped} of that.")
    } else if disk >= WORTH_SAYING_SHARE && disk >= cpu {
        format!("waited for a disk for {} of that.", percent(disk))
    } else if cpu >= MAIN_SHARE {
        format!("{computed} of that.{}", tip(pipeline, index, false))
    } else {
        let computed = if cpu < 0.01 { String::new() } else { format!(" It {computed}.") };
        format!("slept, waiting for a timer or for something outside the pipeline.{computed}")
    };
    format!("{begin}{who} {did}")
}

/// What makes a stage that computes faster, as a sentence.
fn tip(pipeline: &Observed<'_>, index: usize, shares_cpus: bool) -> String {
    let busy = Busy {
        command: &pipeline.stages[index].0.command,
        locale: pipeline.locales.get(index).copied().flatten(),
        is_before_others: index == 0 && pipeline.stages.len() > 1,
        shares_cpus,
    };
    tips_for(&busy, real_name).map(|tips| format!(" Try {tips}.")).unwrap_or_default()
}

/// The sentence for a stage that goes on although its reader has ended. A reader that was ended soon after its start may not be known.
fn unread_sentence(pipeline: &Observed<'_>, index: usize, percent: String) -> String {
    let name = named(pipeline, index);
    let begin = match pipeline.stages.get(index + 1) {
        Some((reader, _)) => {
            let (next, ms) = (named(pipeline, index + 1), reader.wall_ns / 1_000_000);
            format!("{next} ended after {ms} ms: from then on, for {percent} of the time, no program read")
        }
        None => format!("For {percent} of the time no program read"),
    };
    let before = if index == 0 { "it" } else { "it and the stages before it" };
    format!(
        "{begin} the output of {name}, but {before} did not end. A program learns that its reader is gone only when it writes."
    )
}

/// The sentence for a pipeline without a clear bottleneck; it names the two largest shares.
fn unclear_sentence(pipeline: &Observed<'_>, shares: &[(Culprit, f64)], whole_ns: f64) -> String {
    let part = |(culprit, ns): &(Culprit, f64)| match culprit {
        Culprit::Stage(index) if ns / whole_ns > NAMED_SHARE => {
            Some(format!("{} {}", named(pipeline, *index), percent(ns / whole_ns)))
        }
        _ => None,
    };
    let parts: Vec<String> = shares.iter().take(2).filter_map(part).collect();
    let mut sentence = "No stage in particular holds the pipeline up".to_owned();
    if !parts.is_empty() {
        sentence.push_str(&format!("; of the time, this much was up to: {}", parts.join(", ")));
    }
    sentence.push('.');
    let sizes = pipeline.links.iter().filter_map(|link| link.granted.get("pipe_bytes"));
    if let Some(bytes) = sizes.min().filter(|bytes| **bytes < LARGE_PIPE_BYTES).filter(|_| parts.len() > 1) {
        let help = if *bytes < mechanism::default_pipe_bytes() {
            "this user's quota of pipe pages is spent: `hosepipe top` shows its pipes and the quota"
        } else {
            "try --via pipe:size=1MiB"
        };
        sentence.push_str(&format!(" A pipe holds {}: {help}.", model::ByteSize(*bytes)));
    }
    sentence
}

fn named(pipeline: &Observed<'_>, index: usize) -> String {
    let command = shortened(&pipeline.stages[index].0.command);
    if pipeline.stages.len() == 1 {
        format!("`{command}`")
    } else {
        format!("`{command}` (stage {})", index + 1)
    }
}

/// The beginning of a command, in one line.
fn shortened(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= COMMAND_CHARACTERS_MAX {
        return line;
    }
    line.chars().take(COMMAND_CHARACTERS_MAX - 1).chain(['…']).collect()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use observe::locale::Letters;

    use super::*;

    const MS: f64 = 1e6;

    fn stage(command: &str, wall_ms: u64, blame: Blame) -> (StageRecord, Blame) {
        let command = command.to_owned();
        let stage = StageRecord { command, wall_ns: wall_ms * 1_000_000, ..StageRecord::default() };
        (stage, Blame { samples: 100, ..blame })
    }

    fn blame(total_ms: f64, cpu_ms: f64) -> Blame {
        Blame { total_ns: total_ms * MS, cpu_ns: cpu_ms * MS, ..Blame::default() }
    }

    /// A French one.
    const LOCALE: Option<Locale> = Some(Locale { collate: Letters::Language, ctype: Letters::Language });

    fn judged(stages: &[(StageRecord, Blame)], is_sequential: bool) -> (Option<usize>, String) {
        let observed = Observed { stages, locales: &[LOCALE; 3], links: &[], is_sequential };
        let bottleneck = find_bottleneck(&observed).expect("stages");
        (bottleneck.stage, bottleneck.sentence)
    }

    #[test]
    fn the_one_that_is_waited_for_is_named_with_what_it_did() {
        let none = Blame::default;
        let among = |middle: Blame| {
            vec![
                stage("cat f", 2000, blame(100.0, 50.0)),
                stage("sort", 2000, middle),
                stage("wc", 2000, none()),
            ]
        };
        let waited_elsewhere_ns = [("sleep 1".to_owned(), 1800.0 * MS)].into();
        let before = Blame { before_ns: 950.0 * MS, ..none() };
        let after = Blame { after_ns: 950.0 * MS, ..none() };
        let cases = [
            (among(blame(1900.0, 1800.0)), Some(1), ["`sort` (stage 2)", "LC_ALL=C"]),
            (
                among(Blame { queued_ns: 900.0 * MS, ..blame(1900.0, 900.0) }),
                Some(1),
                ["waited for a CPU", "LC_ALL=C"],
            ),
            (
                among(Blame { disk_ns: 1500.0 * MS, ..blame(1900.0, 100.0) }),
                Some(1),
                ["waited for a disk", ""],
            ),
            (among(Blame { waited_elsewhere_ns, ..blame(1900.0, 0.0) }), Some(1), ["`sleep 1`", ""]),
            (among(blame(1900.0, 10.0)), Some(1), ["slept", ""]),
            (
                vec![stage("cat", 1000, before), stage("wc", 1000, none())],
                None,
                ["feeds the pipeline", "`cat`"],
            ),
            (vec![stage("cat", 1000, none()), stage("tr", 1000, after)], None, ["reads the output", "`tr`"]),
            // Two nearly equal shares: no stage is named.
            (
                vec![stage("cat f", 1000, blame(480.0, 400.0)), stage("wc -c", 1000, blame(450.0, 400.0))],
                None,
                ["No stage in particular", ""],
            ),
            (vec![stage("true", 3, blame(3.0, 1.0))], None, ["Too short", ""]),
            (vec![stage("a", 1000, blame(100.0, 0.0)), stage("b", 1000, none())], None, ["No stage", ""]),
        ];
        for (stages, expected, said) in cases {
            let (place, sentence) = judged(&stages, false);
            assert_eq!(place, expected, "{sentence}");
            assert!(said.iter().all(|said| sentence.contains(said)), "{sentence}");
            assert_eq!(sentence.contains("Try "), said[1] == "LC_ALL=C", "{sentence}");
        }
        let stages = [stage("a", 300, blame(300.0, 290.0)), stage("b", 1000, blame(650.0, 600.0))];
        let (place, sentence) = judged(&stages, true);
        assert!(place == Some(1) && sentence.contains("after the other"), "{sentence}");
    }

    fn computing(command: &str, cpu_ms: u64, blame: Blame) -> (StageRecord, Blame) {
        let (record, blame) = stage(command, 300, blame);
        (StageRecord { user_ns: cpu_ms * 1_000_000, ..record }, blame)
    }

    /// Expected: python3, which computes for 171 of 283 ms, or that it is not known. Happened: `cat`, `uniq` and `wc` by turns.
    #[test]
    fn cpu_time_outranks_samples_and_few_samples_name_no_stage() {
        let few = |(record, blame): (StageRecord, Blame)| (record, Blame { samples: 3, ..blame });
        let slept = blame(290.0, 0.0);
        for (case, stages, expected, says) in [
            (
                "cat copies",
                [computing("cat f", 60, blame(200.0, 190.0)), computing("python3", 171, blame(80.0, 70.0))],
                Some(1),
                "computed for 57 %",
            ),
            (
                "no sample",
                [computing("cat f", 60, Blame::default()), computing("python3", 171, Blame::default())],
                Some(1),
                "computed for 57 %",
            ),
            (
                "few samples",
                [few(computing("sort", 171, Blame::default())), few(computing("wc", 1, slept.clone()))],
                Some(0),
                "computed for 57 %",
            ),
            (
                "a reader at a low rate",
                [computing("gzip", 171, Blame::default()), computing("pv", 1, slept.clone())],
                Some(1),
                "slept",
            ),
            (
                "both compute",
                [computing("a", 160, blame(200.0, 190.0)), computing("b", 155, blame(80.0, 70.0))],
                Some(0),
                "of the time was up to it",
            ),
            (
                "nothing is known",
                [few(computing("uniq", 20, blame(100.0, 0.0))), few(computing("wc", 1, slept.clone()))],
                None,
                "not known",
            ),
        ] {
            let (place, sentence) = judged(&stages, false);
            assert_eq!(place, expected, "{case}: {sentence}");
            assert!(sentence.contains(says), "{case}: {sentence}");
        }
        let half = |samples| {
            let with = |stage: (StageRecord, Blame)| (stage.0, Blame { samples, ..stage.1 });
            judged(
                &[with(computing("a", 9, blame(110.0, 9.0))), with(computing("b", 9, blame(190.0, 9.0)))],
                false,
            )
            .0
        };
        assert_eq!((half(8), half(100)), (None, Some(1)), "0.63 of the samples");
    }

    #[test]
    fn what_runs_on_without_a_reader_is_not_to_blame() {
        let unread = Blame { unread_ns: 290.0 * MS, ..Blame::default() };
        let stages = [
            stage("tail -f log", 300, Blame::default()),
            stage("sed", 300, unread),
            stage("grep -m1 x", 2, Blame::default()),
        ];
        let (place, sentence) = judged(&stages, false);
        assert_eq!(place, None, "{sentence}");
        assert!(sentence.starts_with("`grep -m1 x` (stage 3) ended after 2 ms"), "{sentence}");
        // Happened: a panic, and no table, where a signal had ended the reader before it was seen.
        let (place, sentence) = judged(&stages[1..2], false);
        assert_eq!(place, None, "{sentence}");
        assert!(sentence.contains("no program read the output of `sed`"), "{sentence}");
    }
}
