//! What held a pipeline up: of all stages, the one that it waited for; or what stands before the first or behind the last.

use std::env;
use std::path::PathBuf;

use model::{Bottleneck, LinkRecord, StageRecord, file_on_path};

use crate::attention::Held;

/// Below this, starting the programs is most of what a run did, and there were too few looks.
const TOO_SHORT_NS: u64 = 50_000_000;
/// Who is waited for this share of the time is named.
const NAMED_SHARE: f64 = 0.5;
/// And for so many times as long as anybody else.
const AHEAD: f64 = 1.4;
/// A stage that does one thing for this share of its time is said to do that.
const MAIN_SHARE: f64 = 0.5;
/// Waiting for a CPU or a disk is said from this share on.
const WORTH_SAYING_SHARE: f64 = 0.25;
/// A pipe this large gains nothing from being larger.
const LARGE_PIPE_BYTES: u64 = 1 << 20;

/// A command as it is named in a sentence.
const COMMAND_CHARACTERS_MAX: usize = 40;

/// One pipeline that has run.
pub(crate) struct Observed<'a> {
    /// Its stages, and what was put down to each.
    pub(crate) stages: &'a [(StageRecord, Held)],
    /// Its links.
    pub(crate) links: &'a [LinkRecord],
    /// Whether each stage began when the one before it had ended.
    pub(crate) is_sequential: bool,
}

/// Who was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Culprit {
    Stage(usize),
    Before,
    After,
}

/// Judges a pipeline. The stage is its place among the pipeline's own.
pub(crate) fn judge(pipeline: &Observed<'_>) -> Option<Bottleneck> {
    judge_among(pipeline, &Surroundings::read())
}

fn judge_among(pipeline: &Observed<'_>, around: &Surroundings) -> Option<Bottleneck> {
    let total_ns = pipeline.stages.iter().map(|(stage, _)| stage.wall_ns).max()?;
    let say = |stage, sentence| Some(Bottleneck { stage, sentence });
    if total_ns < TOO_SHORT_NS {
        return say(None, "Too short to judge: starting the programs took most of the time.".to_owned());
    }
    let mut shares: Vec<(Culprit, f64)> = Vec::new();
    for (index, (_, held)) in pipeline.stages.iter().enumerate() {
        shares.push((Culprit::Stage(index), held.total_ns));
        shares.push((Culprit::Before, held.before_ns));
        shares.push((Culprit::After, held.after_ns));
    }
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    let whole_ns =
        if pipeline.is_sequential { shares.iter().map(|(_, ns)| ns).sum() } else { total_ns as f64 };
    let (culprit, ns) = *shares.first()?;
    let next_ns = shares.get(1).map_or(0.0, |(_, ns)| *ns);
    let share = (ns / whole_ns.max(1.0)).min(1.0);
    if share < NAMED_SHARE || ns < AHEAD * next_ns {
        return say(None, nobody(pipeline, &shares, whole_ns));
    }
    match culprit {
        Culprit::Before => say(
            None,
            format!(
                "What feeds the pipeline holds it up: for {} of the time nothing was there at the standard input of {}.",
                percent(share),
                named(pipeline, 0)
            ),
        ),
        Culprit::After => say(
            None,
            format!(
                "What reads the output holds the pipeline up: for {} of the time it left no room to {}.",
                percent(share),
                named(pipeline, pipeline.stages.len() - 1)
            ),
        ),
        Culprit::Stage(index) => say(Some(index), of_stage(pipeline, index, share, around)),
    }
}

fn of_stage(pipeline: &Observed<'_>, index: usize, share: f64, around: &Surroundings) -> String {
    let (stage, held) = &pipeline.stages[index];
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
    let of = |ns: f64| ns / held.total_ns.max(1.0);
    let aside = held.aside_ns.iter().max_by(|one, other| one.1.total_cmp(other.1));
    let (cpu, queued, disk) = (of(held.cpu_ns), of(held.queued_ns), of(held.disk_ns));
    if let Some((other, ns)) = aside.filter(|(_, ns)| of(**ns) >= MAIN_SHARE) {
        let other = shortened(other);
        return format!(
            "{begin}{who} waited for `{other}`, with which it shares a pipe, for {} of that.",
            percent(of(*ns))
        );
    }
    if queued >= WORTH_SAYING_SHARE && queued + cpu >= MAIN_SHARE {
        return format!(
            "{begin}{who} queued for a CPU for {} of that, which something else used. It computed for {}.",
            percent(queued),
            percent(cpu)
        );
    }
    if disk >= WORTH_SAYING_SHARE && disk >= cpu {
        return format!("{begin}{who} waited for a disk for {} of that.", percent(disk));
    }
    if cpu >= MAIN_SHARE {
        let help = help_for(&stage.command, around).map(|help| format!(" Try {help}.")).unwrap_or_default();
        return format!("{begin}{who} computed for {} of that.{help}", percent(cpu));
    }
    let computed = if cpu < 0.01 { String::new() } else { format!(" It computed for {}.", percent(cpu)) };
    format!(
        "{begin}{who} slept, until time had passed or something came from outside the pipeline.{computed}"
    )
}

/// Nobody in particular, then; the first two are told all the same.
fn nobody(pipeline: &Observed<'_>, shares: &[(Culprit, f64)], whole_ns: f64) -> String {
    let part = |(culprit, ns): &(Culprit, f64)| match culprit {
        Culprit::Stage(index) if ns / whole_ns > 0.2 => {
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
        sentence.push_str(&format!(" A pipe holds {}: try --via pipe:size=1MiB.", model::ByteSize(*bytes)));
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

/// Compares bytes, not letters.
const C_LOCALE: &str = "LC_ALL=C";

/// What makes a well-known program faster, where the command does not do so already.
const HELP: &[(&str, &str, &str)] = &[
    (
        "sort",
        C_LOCALE,
        "LC_ALL=C (bytes instead of the language's order), `sort --parallel` or a larger `-S`",
    ),
    ("uniq", C_LOCALE, "LC_ALL=C, which compares bytes and not letters"),
    ("grep", C_LOCALE, "LC_ALL=C, or `grep -F` where the pattern is a plain text"),
    ("egrep", C_LOCALE, "LC_ALL=C, or `grep -F` where the pattern is a plain text"),
    ("cut", C_LOCALE, "LC_ALL=C, which cuts bytes and not letters"),
    ("tr", C_LOCALE, "LC_ALL=C"),
    ("wc", C_LOCALE, "LC_ALL=C, which counts bytes and not letters"),
    ("sed", C_LOCALE, "LC_ALL=C"),
    ("awk", C_LOCALE, "LC_ALL=C, or mawk, which is often several times as fast"),
    ("gawk", C_LOCALE, "LC_ALL=C, or mawk, which is often several times as fast"),
    ("gzip", "--fast", "pigz, which uses every CPU, or zstd, which is several times as fast"),
    ("gunzip", "", "zstd for files of your own: it unpacks several times as fast"),
    ("zcat", "", "zstd for files of your own: it unpacks several times as fast"),
    ("bzip2", "", "lbzip2, which uses every CPU"),
    ("bzcat", "", "lbzip2 -dc, which uses every CPU"),
    ("xz", "-T", "`xz -T0`, which uses every CPU"),
    ("xzcat", "-T", "`xz -dc -T0`, which uses every CPU for files of many blocks"),
    ("zstd", "-T", "`zstd -T0`, which uses every CPU"),
    ("md5sum", "", "b3sum or xxhsum, if the sum is yours to choose"),
    ("sha256sum", "", "b3sum, if the sum is yours to choose"),
    ("cat", "", "giving the file to the next stage with `<`: cat only copies"),
];

/// What the programs of a pipeline find around them.
struct Surroundings {
    /// Whether bytes are compared as bytes where a command does not say so itself.
    c_locale: bool,
    /// The name of the file that a command's first word starts, behind all symbolic links.
    real_name: fn(&str) -> Option<String>,
}

impl Surroundings {
    fn read() -> Self {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        // The first that is set decides (locale(7)).
        let is_c = |category| {
            let locale = ["LC_ALL", category, "LANG"].into_iter().find_map(set);
            locale.is_none_or(|locale| locale == "C" || locale == "POSIX")
        };
        Self { c_locale: is_c("LC_COLLATE") && is_c("LC_CTYPE"), real_name }
    }
}

fn real_name(program: &str) -> Option<String> {
    let place = if program.contains('/') { PathBuf::from(program) } else { file_on_path(program)? };
    Some(place.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
}

/// Help for a command that does not follow it already, be it by its words, by the locale or because the name stands for
/// another program (awk for mawk, gzip for pigz).
fn help_for(command: &str, around: &Surroundings) -> Option<&'static str> {
    let program = command.split_whitespace().find(|word| !word.contains('='))?;
    let entry = |name: &str| HELP.iter().find(|(program, ..)| *program == name);
    let (_, already, help) = entry(program.rsplit('/').next()?)?;
    let told = !already.is_empty() && command.contains(already);
    let by_locale = around.c_locale && *already == C_LOCALE;
    let another = (around.real_name)(program).is_some_and(|real| entry(&real).is_none());
    (!told && !by_locale && !another).then_some(*help)
}

/// A command as sentences name it: in one line, and the beginning of it.
pub fn shortened(command: &str) -> String {
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
    use super::*;

    const MS: f64 = 1e6;

    fn stage(command: &str, wall_ms: u64, held: Held) -> (StageRecord, Held) {
        let stage = StageRecord {
            pipeline: 0,
            command: command.to_owned(),
            pid: Some(1),
            status: 0,
            signal: None,
            wall_ns: wall_ms * 1_000_000,
            user_ns: 0,
            system_ns: 0,
            blocked_read_ns: None,
            blocked_write_ns: None,
            queued_ns: None,
            held_up_ns: None,
            max_rss_bytes: None,
        };
        (stage, held)
    }

    fn held(total_ms: f64, cpu_ms: f64) -> Held {
        Held { total_ns: total_ms * MS, cpu_ns: cpu_ms * MS, ..Held::default() }
    }

    /// A French machine on which awk is mawk.
    const AROUND: Surroundings = Surroundings {
        c_locale: false,
        real_name: |program| Some(program.replace("awk", "mawk").rsplit('/').next()?.to_owned()),
    };

    fn judged(stages: &[(StageRecord, Held)], is_sequential: bool) -> (Option<usize>, String) {
        let observed = Observed { stages, links: &[], is_sequential };
        let bottleneck = judge_among(&observed, &AROUND).expect("stages");
        (bottleneck.stage, bottleneck.sentence)
    }

    #[test]
    fn the_stage_that_is_waited_for_is_named_with_what_it_did() {
        let others = || [stage("cat f", 2000, held(100.0, 50.0)), stage("wc", 2000, Held::default())];
        let around = |middle: Held| {
            let [first, last] = others();
            judged(&[first, stage("sort", 2000, middle), last], false)
        };
        let (place, sentence) = around(held(1900.0, 1800.0));
        assert_eq!(place, Some(1));
        assert!(sentence.contains("`sort` (stage 2)") && sentence.contains("LC_ALL=C"), "{sentence}");
        let cases = [
            (Held { queued_ns: 900.0 * MS, ..held(1900.0, 900.0) }, "queued for a CPU"),
            (Held { disk_ns: 1500.0 * MS, ..held(1900.0, 100.0) }, "waited for a disk"),
            (
                Held { aside_ns: [("sleep 1".to_owned(), 1800.0 * MS)].into(), ..held(1900.0, 0.0) },
                "`sleep 1`",
            ),
            (held(1900.0, 10.0), "slept"),
        ];
        for (middle, said) in cases {
            let (place, sentence) = around(middle);
            assert!(place == Some(1) && sentence.contains(said) && !sentence.contains("Try"), "{sentence}");
        }
    }

    #[test]
    fn what_stands_outside_is_told_from_the_stages() {
        let before = Held { before_ns: 950.0 * MS, ..Held::default() };
        let (place, sentence) =
            judged(&[stage("cat", 1000, before), stage("wc", 1000, Held::default())], false);
        assert!(
            place.is_none() && sentence.contains("feeds the pipeline") && sentence.contains("`cat`"),
            "{sentence}"
        );
        let after = Held { after_ns: 950.0 * MS, ..Held::default() };
        let (place, sentence) =
            judged(&[stage("cat", 1000, Held::default()), stage("tr", 1000, after)], false);
        assert!(
            place.is_none() && sentence.contains("reads the output") && sentence.contains("`tr`"),
            "{sentence}"
        );
    }

    #[test]
    fn nobody_is_named_without_reason() {
        let even = [stage("cat f", 1000, held(480.0, 400.0)), stage("wc -c", 1000, held(450.0, 400.0))];
        let (place, sentence) = judged(&even, false);
        assert!(place.is_none() && sentence.contains("No stage in particular"), "{sentence}");
        assert_eq!(judged(&[stage("true", 3, held(3.0, 1.0))], false).0, None);
        let unseen = [stage("a", 1000, held(100.0, 0.0)), stage("b", 1000, Held::default())];
        assert_eq!(judged(&unseen, false).0, None);
    }

    #[test]
    fn in_sequential_order_each_has_its_own_time() {
        let stages = [stage("a", 300, held(300.0, 290.0)), stage("b", 1000, held(650.0, 600.0))];
        let (place, sentence) = judged(&stages, true);
        assert!(place == Some(1) && sentence.contains("after the other"), "{sentence}");
    }

    #[test]
    fn help_is_not_given_twice() {
        let help = |command| help_for(command, &AROUND);
        assert!(help("sort").is_some());
        assert!(help("LC_ALL=C sort").is_none());
        assert!(help("/usr/bin/gzip -c").is_some());
        assert!(help("frobnicate").is_none());
    }

    /// Expected: advice that changes something.
    /// Happened: "try mawk" where awk was mawk, and LC_ALL=C in the C locale.
    #[test]
    fn help_is_not_what_the_machine_does_already() {
        assert_eq!(help_for("awk '{print $1}'", &AROUND), None);
        let gawk = Surroundings { real_name: |_| Some("gawk".to_owned()), ..AROUND };
        assert!(help_for("awk '{print $1}'", &gawk).is_some_and(|help| help.contains("mawk")));
        let bytes = Surroundings { c_locale: true, ..AROUND };
        assert_eq!(help_for("sort", &bytes), None);
        assert!(help_for("gzip", &bytes).is_some());
    }

    #[test]
    fn a_real_name_is_behind_all_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("awk");
        std::fs::write(folder.path().join("mawk"), "").expect("a file");
        std::os::unix::fs::symlink("mawk", &link).expect("a link");
        assert_eq!(real_name(&link.to_string_lossy()).as_deref(), Some("mawk"));
        assert_eq!(real_name("no such program"), None);
        assert!(real_name("sh").is_some(), "found on PATH");
    }
}
