//! Tips: what makes a well-known program faster. A row holds what was measured, and the conditions under which it holds; what was measured and gave
//! less than a quarter is not here (`uniq`, `cut`, `tr`, `wc`, `grep -E`, `sort --parallel`, `sort -S`; `zstd -T0`, `xz -T0`, `xz -dc -T0` and
//! `lbzip2 -dc`, which need idle CPUs and had no gain that was certain on busy ones), nor what changes a result
//! (`LC_ALL=C wc -m`).
//!
//! Measured with a web server's log of 110 MB in which 1 line of 80 has a letter beyond ASCII, in a pipe, over three rounds in turn on two busy
//! CPUs (Debian 12: coreutils 9.1, grep 3.8, sed 4.9, gawk 5.2.1, mawk 1.3.4, gzip 1.12, pigz 2.6, xz 5.4.1, zstd 1.5.4): medians before →
//! after, in seconds of CPU time, or of wall time where that is said.

use std::path::PathBuf;

use model::{Tip, file_on_path};
use observe::locale::{Letters, Locale};

/// A tip for the stage that the others wait for: the programs' file names, whether it holds, what to try, and what it saves.
type Row = (&'static [&'static str], fn(&Busy<'_>) -> bool, Tip, Saves);

/// What is saved by following a tip.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saves {
    /// CPU time: it helps most where the CPUs are shared.
    CpuTime,
    /// Wall time only, by other CPUs, which must be idle.
    IdleCpus,
}
use Saves::{CpuTime, IdleCpus};

/// A stage that computes.
#[derive(Clone, Copy)]
pub(crate) struct Busy<'a> {
    /// Its words, as a shell reads them.
    pub(crate) command: &'a str,
    /// The locale of its program, if it is known.
    pub(crate) locale: Option<Locale>,
    /// Whether it is the first stage of several.
    pub(crate) is_before_others: bool,
    /// Whether it also waited for a CPU.
    pub(crate) shares_cpus: bool,
}

const ROWS: &[Row] = &[
    // en_US.UTF-8, `sort`: 2.17 → 0.51; `sort -k6`: 4.56 → 1.06. C.UTF-8 has the order of C already: 1.42 → 1.06, ranges overlap. `sort -sn`: none.
    (&["sort"], sorts_by_language, Tip::OrderByBytes, CpuTime),
    // C.UTF-8, `grep -o 'host[0-9]*'`: 0.60 → 0.30; `-oE '[0-9]{3} [0-9]+'`: 3.58 → 1.03; `-c '^[^ ]* host1[0-9] .*GET'`: 0.79 → 0.12;
    // `-o '.*GET'`: 0.81 → 0.36. None for `-o GET`, `-on GET` and `-oi get`.
    (&["grep", "egrep"], greps_characters, Tip::TextIsAscii, CpuTime),
    // `sed 's/.*GET//'`: 1.54 → 0.61; `'s/[0-9][0-9]*/N/g'`: 3.97 → 1.65; `-E 's/([^ ]*) ([^ ]*)/\2 \1/'`: 4.04 → 2.38. None for
    // `-E 's/ +/ /g'`, `s/GET/PUT/`, `s/GET/[&]/`, `s/[.]/,/`, `s/nginx.//` and `-n '/ERROR.*404/p'`.
    (&["sed"], replaces_characters, Tip::TextIsAscii, CpuTime),
    // C.UTF-8, `gawk '{gsub(/[0-9]+/,"N"); print}'`: 4.87 → 1.71, and 0.86 with mawk; `{sub(/GET.*/,""); print}`: 1.13 → 0.57, and 0.19.
    // `{print $6}`, `{n+=$9}`, `{n[$6]++}`: none with either.
    (&["awk", "gawk"], substitutes_characters, Tip::TextIsAscii, CpuTime),
    (&["awk", "gawk"], substitutes, Tip::Mawk, CpuTime),
    // 2.17 → 0.51 with zstd; with pigz 1.88, and 3.50 → 1.44 of wall time (again, over seven rounds: 2.57 → 1.94).
    (&["gzip"], compresses, Tip::Zstd, CpuTime),
    (&["gzip"], compresses, Tip::Pigz, IdleCpus),
    // 7.50 → 4.11.
    (&["bzip2"], compresses, Tip::Lbzip2, CpuTime),
    // 0.42 → 0.15.
    (&["gzip", "gunzip", "zcat"], unpacks, Tip::Zstd, CpuTime),
    // 0.18 → 0.03 (b3sum), 0.02 (xxhsum).
    (&["md5sum"], makes_a_sum, Tip::B3sumOrXxhsum, CpuTime),
    // 0.16 → 0.03, 0.32 → 0.03, on a CPU with instructions for SHA.
    (&["sha1sum", "sha256sum"], makes_a_sum, Tip::B3sum, CpuTime),
    // `cat log | wc -l`, `| grep -c`: 0.065 → 0.032, 0.062 → 0.028; `| wc -c`, `| tail -n 3`, which seek in a file: 0.07 → 0.003.
    (&["cat"], hands_one_file_on, Tip::RedirectInput, CpuTime),
];

/// What to try for a stage. Its name may be a link to another program (awk to mawk, gzip to pigz).
pub(crate) fn tips_for(busy: &Busy<'_>, real_name: fn(&str) -> Option<String>) -> Vec<Tip> {
    let program = busy.command.split(' ').next().unwrap_or_default();
    let name = file_name(program);
    let real_name = real_name(program);
    let holds = |(programs, holds, _, saves): &&Row| {
        let is_it = |name: &str| programs.contains(&name);
        is_it(name)
            && real_name.as_deref().is_none_or(is_it)
            && (*saves == CpuTime || !busy.shares_cpus)
            && holds(busy)
    };
    ROWS.iter().filter(holds).map(|(.., tip, _)| *tip).collect()
}

/// Whether a tip may depend on the locale of this program.
pub(crate) fn needs_locale(program: &str) -> bool {
    ["sort", "grep", "egrep", "sed", "awk", "gawk"].contains(&program)
}

/// The file name of the program that a command's first word starts, with symbolic links resolved.
pub(crate) fn real_name(program: &str) -> Option<String> {
    let place = if program.contains('/') { PathBuf::from(program) } else { file_on_path(program)? };
    Some(place.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
}

pub(crate) fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

impl Busy<'_> {
    /// Its arguments that are not in quotes.
    fn arguments(&self) -> impl Iterator<Item = &str> {
        self.command.split('\'').step_by(2).flat_map(str::split_whitespace).skip(1)
    }

    /// Whether it has an option of one of these letters, also among others (`-dc`), or a long one that begins like one of these.
    fn has_option(&self, letters: &str, long: &[&str]) -> bool {
        self.arguments().any(|word| match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(word), _) => long.iter().any(|long| word.starts_with(long)),
            (None, Some(word)) => word.contains(|letter| letters.contains(letter)),
            (None, None) => false,
        })
    }

    fn reads_characters(&self) -> bool {
        self.locale.is_some_and(|locale| locale.ctype != Letters::Bytes)
    }

    fn has_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.command.contains(part))
    }
}

/// Numbers, versions and months are not compared as letters, and what was sorted before must stay in its order.
fn sorts_by_language(busy: &Busy<'_>) -> bool {
    let others = ["n", "g", "hu", "mo", "v", "ra", "c", "me", "sort", "key"];
    busy.locale.is_some_and(|locale| locale.collate == Letters::Language)
        && !busy.has_option("nghMVRcCm", &others)
}

/// `-o` with a pattern of plain letters has no gain.
fn greps_characters(busy: &Busy<'_>) -> bool {
    let matches_sets = busy.has_any(&["[^"]) || busy.has_option("o", &["only"]) && busy.has_any(&["[", ".*"]);
    busy.reads_characters() && !busy.has_option("FP", &[]) && matches_sets
}

/// What counts is the pattern: `s/GET/[&]/` and a set of one letter, `s/[.]/,/`, have no gain.
fn replaces_characters(busy: &Busy<'_>) -> bool {
    let is_slow = |pattern: &str| {
        let mut sets = pattern.split('[').skip(1).filter_map(|set| set.split(']').next());
        pattern.contains(".*") || sets.any(|set| set.starts_with('^') || set.chars().count() > 1)
    };
    let command = busy.command;
    // A letter before the `s` makes it the end of a word, as in `s/news/x/`.
    let follows_letter = |at: usize| command[..at].ends_with(char::is_alphabetic);
    let has_slow = |begin: &str| {
        let patterns = command.match_indices(begin).filter(|(at, _)| !follows_letter(*at));
        let mark = &begin[1..];
        patterns.filter_map(|(at, _)| command[at + 2..].split(mark).next()).any(is_slow)
    };
    busy.reads_characters() && ["s/", "s,", "s|", "s#"].into_iter().any(has_slow)
}

fn substitutes_characters(busy: &Busy<'_>) -> bool {
    busy.reads_characters() && substitutes(busy)
}

fn substitutes(busy: &Busy<'_>) -> bool {
    busy.has_any(&["sub("])
}

fn compresses(busy: &Busy<'_>) -> bool {
    !unpacks(busy) && !busy.has_option("1", &["fast"])
}

fn unpacks(busy: &Busy<'_>) -> bool {
    let name = file_name(busy.command.split(' ').next().unwrap_or_default());
    name.ends_with("cat") || name.contains("un") || busy.has_option("dtl", &["de", "unc", "te", "li"])
}

fn makes_a_sum(busy: &Busy<'_>) -> bool {
    !busy.has_option("c", &["check"])
}

fn hands_one_file_on(busy: &Busy<'_>) -> bool {
    let mut words = busy.command.split_whitespace().skip(1);
    let is_file = words.next().is_some_and(|word| !word.starts_with('-'));
    busy.is_before_others && is_file && words.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn locale(letters: Letters) -> Option<Locale> {
        Some(Locale { collate: letters, ctype: letters })
    }

    const ALONE: Busy<'_> = Busy { command: "", locale: None, is_before_others: false, shares_cpus: false };

    fn asked(busy: Busy<'_>) -> Vec<Tip> {
        tips_for(&busy, |_| None)
    }

    /// Expected: a tip that was measured and holds. Happened: `wc -w` took 1.6 times as long with LC_ALL=C, `wc -m` gave another answer, and
    /// `gzip -dc`, `md5sum -c` and `sort -m` cannot follow theirs.
    #[test]
    fn a_tip_holds() {
        for (command, expected) in [
            ("sort", Some(Tip::OrderByBytes)),
            ("/usr/bin/sort -k2,2 -t: -u", Some(Tip::OrderByBytes)),
            ("sort -t: -k3n", None),
            ("sort -m a b", None),
            ("sort --check f", None),
            ("uniq -c", None),
            ("wc -w", None),
            ("wc -m", None),
            ("cut -d: -f1", None),
            ("tr a-z A-Z", None),
            ("grep ERROR", None),
            ("grep -E 'host1.*(404|500)'", None),
            ("grep 'x -o y'", None),
            ("grep -oE '[0-9]+'", Some(Tip::TextIsAscii)),
            ("grep -Fo x", None),
            ("grep -oi get", None),
            ("grep -o '.*GET'", Some(Tip::TextIsAscii)),
            ("grep -c '^[^ ]* host'", Some(Tip::TextIsAscii)),
            ("sed 's/.*GET//'", Some(Tip::TextIsAscii)),
            ("sed -E 's/ +/ /g'", None),
            ("sed 's/GET/[&]/'", None),
            ("sed 's/[.]/,/;s/news/b.*/'", None),
            ("sed 's/[^/]*//'", Some(Tip::TextIsAscii)),
            ("sed -e 's/a/b/' -e 's,/path/[0-9]*,x,'", Some(Tip::TextIsAscii)),
            ("sed -n '/ERROR.*404/p'", None),
            ("gawk '{print $6, substr($1, 2)}'", None),
            ("gawk '{gsub(/[0-9]+/, \"\"); print}'", Some(Tip::Mawk)),
            ("gzip -c", Some(Tip::Pigz)),
            ("gzip -1", None),
            ("gzip -dc f.gz", Some(Tip::Zstd)),
            ("bzip2", Some(Tip::Lbzip2)),
            ("bzip2 -dc f.bz2", None),
            ("xz", None),
            ("zstd", None),
            ("md5sum", Some(Tip::B3sumOrXxhsum)),
            ("md5sum -c f", None),
            ("frobnicate", None),
        ] {
            let busy = Busy { command, locale: locale(Letters::Language), ..ALONE };
            let tips = asked(busy);
            let is_it = expected.map_or(tips.is_empty(), |tip| tips.contains(&tip));
            assert!(is_it, "{command}: {tips:?}");
        }
    }

    /// Expected: a tip where the locale has an effect. Happened: `export LC_ALL=C; … | sort` got "Try LC_ALL=C".
    #[test]
    fn a_tip_is_not_what_is_done_already() {
        for (letters, expected) in [
            (None, [false, false]),
            (locale(Letters::Bytes), [false, false]),
            // It has the order of C, but characters of several bytes.
            (locale(Letters::Characters), [false, true]),
            (locale(Letters::Language), [true, true]),
        ] {
            let has_tip = |command| !asked(Busy { command, locale: letters, ..ALONE }).is_empty();
            assert_eq!(["sort", "sed 's/.*x//'"].map(has_tip), expected, "{letters:?}");
        }
        let gsub = Busy { command: "awk '{gsub(/x/, \"\")}'", ..ALONE };
        assert_eq!(tips_for(&gsub, |_| Some("mawk".to_owned())), []);
        assert_eq!(tips_for(&gsub, |_| Some("gawk".to_owned())), [Tip::Mawk]);
    }

    /// Expected: on a CPU that is shared what saves CPU time, its best case. Happened: no tip.
    #[test]
    fn a_shared_cpu_has_the_tips_that_save_cpu_time() {
        let shared = |command| asked(Busy { command, shares_cpus: true, ..ALONE });
        assert_eq!(shared("gzip"), [Tip::Zstd]);
        assert!(!shared("md5sum").is_empty());
    }

    /// Expected: `<` where one file goes to a next stage. Happened: of `cat a b > c`, too.
    #[test]
    fn a_file_is_given_to_a_next_stage() {
        for (command, is_before_others, expected) in [
            ("cat f", true, true),
            ("cat f", false, false),
            ("cat a b", true, false),
            ("cat -n f", true, false),
            ("cat", true, false),
        ] {
            let tips = asked(Busy { command, is_before_others, ..ALONE });
            assert_eq!(tips == [Tip::RedirectInput], expected, "{command}: {tips:?}");
        }
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
