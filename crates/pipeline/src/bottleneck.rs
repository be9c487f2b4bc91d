//! What held a run up: of all stages, the one that its neighbours waited for.

use std::env;
use std::path::PathBuf;

use model::{Bottleneck, LinkRecord, StageRecord, file_on_path};

/// Below this, starting the programs is most of what a run did.
const TOO_SHORT_NS: u64 = 20_000_000;
/// A stage that neither waits for its neighbours nor uses a CPU for this share of its time waits for something else.
const ELSEWHERE_SHARE: f64 = 0.5;
/// Where even the busiest stage waits for its neighbours this share of the time, the plumbing is the limit.
const PLUMBING_SHARE: f64 = 0.5;
/// A pipe this large gains nothing from being larger.
const LARGE_PIPE_BYTES: u64 = 1 << 20;

/// A command as it is named in a sentence.
const COMMAND_CHARACTERS_MAX: usize = 40;

/// Judges the longest pipeline of a run. `None` where nothing was watched.
pub fn judge(stages: &[StageRecord], links: &[LinkRecord]) -> Option<Bottleneck> {
    judge_among(stages, links, &Surroundings::read())
}

fn judge_among(stages: &[StageRecord], links: &[LinkRecord], around: &Surroundings) -> Option<Bottleneck> {
    let longest = stages.iter().max_by_key(|stage| stage.wall_ns)?.pipeline;
    let of_it: Vec<(usize, &StageRecord)> =
        stages.iter().enumerate().filter(|(_, stage)| stage.pipeline == longest).collect();
    let total_ns = of_it.iter().map(|(_, stage)| stage.wall_ns).max()?;
    if total_ns < TOO_SHORT_NS {
        let sentence = "Too short to judge: starting the programs took most of the time.".to_owned();
        return Some(Bottleneck { stage: None, sentence });
    }
    let &(place, slowest) = of_it.iter().max_by_key(|(_, stage)| busy_ns(stage).unwrap_or(0))?;
    let busy = busy_ns(slowest)?;
    let number = of_it.iter().position(|(index, _)| *index == place)? + 1;
    let name = format!("`{}` (stage {number})", shortened(&slowest.command));
    if of_it.len() > 1 && (busy as f64) < PLUMBING_SHARE * total_ns as f64 {
        return Some(Bottleneck { stage: None, sentence: plumbing(links, longest) });
    }
    let cpu_ns = slowest.user_ns + slowest.system_ns;
    let cpu_share = cpu_ns as f64 / busy.max(1) as f64;
    let share = percent(busy, total_ns);
    let mut sentence = if cpu_share < ELSEWHERE_SHARE {
        format!(
            "{name} holds the pipeline up, and not by computing: {share} of the time it waited for neither \
             neighbour, and used a CPU for {} of that. It waits for a disk, the network, or time to pass.",
            percent(cpu_ns, busy)
        )
    } else {
        format!("{name} holds the pipeline up: {share} of the time it worked while nobody kept it waiting.")
    };
    let before = of_it.iter().filter(|(index, _)| *index < place).map(|(_, stage)| stage.wall_ns).max();
    if let Some(had_everything_ns) = before
        && slowest.wall_ns.saturating_sub(had_everything_ns) > total_ns / 5
    {
        sentence.push_str(&format!(
            " It had everything at {} and worked alone for {}.",
            seconds(had_everything_ns),
            seconds(slowest.wall_ns - had_everything_ns)
        ));
    }
    if cpu_share >= ELSEWHERE_SHARE
        && let Some(help) = help_for(&slowest.command, around)
    {
        sentence.push_str(" Try ");
        sentence.push_str(help);
        sentence.push('.');
    }
    Some(Bottleneck { stage: Some(place), sentence })
}

/// Time in which a stage waited for neither neighbour; `None` where nobody watched it.
fn busy_ns(stage: &StageRecord) -> Option<u64> {
    Some(stage.wall_ns.saturating_sub(stage.blocked_read_ns? + stage.blocked_write_ns?))
}

fn plumbing(links: &[LinkRecord], pipeline: u32) -> String {
    let small = links
        .iter()
        .filter(|link| link.pipeline == pipeline)
        .find(|link| link.granted.get("pipe_bytes").is_some_and(|bytes| *bytes < LARGE_PIPE_BYTES));
    let what = "No stage holds the pipeline up: they wait for one another, so the links do.";
    match small {
        Some(link) => {
            let bytes = link.granted.get("pipe_bytes").copied().unwrap_or(0);
            format!("{what} Its pipes hold {}: try --via pipe:size=1MiB.", model::ByteSize(bytes))
        }
        None => format!("{what} `hosepipe compare` shows which link carries it best."),
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

fn percent(part_ns: u64, whole_ns: u64) -> String {
    format!("{:.0} %", 100.0 * part_ns as f64 / whole_ns.max(1) as f64)
}

fn seconds(ns: u64) -> String {
    if ns < 1_000_000_000 {
        format!("{:.0} ms", ns as f64 / 1e6)
    } else {
        format!("{:.1} s", ns as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(command: &str, wall_ms: u64, cpu_ms: u64, read_ms: u64, write_ms: u64) -> StageRecord {
        let ns = |ms: u64| ms * 1_000_000;
        StageRecord {
            pipeline: 0,
            command: command.to_owned(),
            pid: Some(1),
            status: 0,
            signal: None,
            wall_ns: ns(wall_ms),
            user_ns: ns(cpu_ms),
            system_ns: 0,
            read_bytes: None,
            write_bytes: None,
            bytes_at_least: false,
            blocked_read_ns: Some(ns(read_ms)),
            blocked_write_ns: Some(ns(write_ms)),
            max_rss_bytes: None,
        }
    }

    /// A French machine on which awk is mawk.
    const AROUND: Surroundings = Surroundings {
        c_locale: false,
        real_name: |program| Some(program.replace("awk", "mawk").rsplit('/').next()?.to_owned()),
    };

    fn judged(stages: &[StageRecord]) -> (Option<usize>, String) {
        let bottleneck = judge_among(stages, &[], &AROUND).expect("watched");
        (bottleneck.stage, bottleneck.sentence)
    }

    #[test]
    fn the_stage_that_works_is_named() {
        let stages = [
            stage("cat f", 2100, 250, 0, 1800),
            stage("sort", 6400, 4500, 2000, 100),
            stage("wc", 6400, 10, 6300, 0),
        ];
        let (place, sentence) = judged(&stages);
        assert_eq!(place, Some(1));
        assert!(sentence.contains("`sort` (stage 2)") && sentence.contains("LC_ALL=C"), "{sentence}");
        assert!(sentence.contains("worked alone for 4.3 s"), "{sentence}");
    }

    #[test]
    fn a_sleeper_is_not_told_to_compute_faster() {
        let (place, sentence) = judged(&[stage("sleep 2", 2000, 1, 0, 0), stage("wc", 2000, 1, 1990, 0)]);
        assert_eq!(place, Some(0));
        assert!(sentence.contains("not by computing"), "{sentence}");
    }

    #[test]
    fn stages_that_wait_for_one_another_blame_the_links() {
        let stages = [stage("cat f", 1000, 300, 0, 600), stage("wc -c", 1000, 200, 700, 0)];
        assert_eq!(judged(&stages).0, None);
        assert_eq!(judged(&[stage("true", 3, 1, 0, 0)]).0, None);
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
