//! Every command of the README, docs/ and the help: each one is run, at a small size, and what it prints has the shape of what the
//! page shows.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{HANGS_AFTER, Lab, files_in, full, skip};

/// What is not run, by a part of it, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("hosepipe sh   ", "an interactive shell: sh_prompt.rs"),
    ("hosepipe sh --shell zsh  ", "an interactive shell: sh_prompt.rs"),
    ("--submit", "a scheduler: fleet.rs and spread_engines.rs start one"),
    ("--hosts a", "other hosts: spread_ssh.rs and fleet.rs have one here"),
    ("srun ", "a scheduler: fleet.rs"),
    ("s3a://", "another host's files"),
    ("hosepipe peer --listen", "waits for another host: peer.rs"),
    ("ssh:db2", "another host: compare.rs"),
    ("--send-binary", "another host: peer.rs"),
    ("sudo ", "another user: top.rs"),
    ("drop_caches", "slows everything else on the machine"),
    ("--build", "minutes: workers.rs"),
    (
        "hosepipe recommend --message",
        "seconds each, to compile and run programs: recommend.rs and HOSEPIPE_TEST_FULL=1",
    ),
    ("hosepipe reproduce", "minutes: reproduce.rs runs each study in small"),
    ("./hosepipe-old", "an older hosepipe: diff.rs has two"),
    ("-- bench pipe fifo", "an older hosepipe: diff.rs has two"),
    ("--pid 4711", "a process of another name: boost.rs"),
    ("top 812", "a process of another name: top.rs"),
    ("why 812", "a process of another name: why.rs"),
    ("why 4711", "a process of another name: why.rs"),
    ("why backup.sh", "a script that hangs: why.rs"),
    ("hosepipe demo", "demo.rs runs it"),
    ("hosepipe tune", "finds nothing faster in a small file: tune.rs"),
    ("--resume data/", "goes on with the one before it: spread.rs"),
    ("perf record", "a profiler"),
    ("a | b", "a placeholder"),
    ("--frozen", "needs vendored crates"),
    ("ls -R /", "reads the whole disk"),
    ("du -a", "reads the whole disk"),
];

/// What makes a command small, wherever it is in it.
const SMALLER: &[(&str, &str)] = &[
    ("10GiB", "1MiB"),
    ("10G", "1M"),
    ("4GiB", "1MiB"),
    ("1GiB", "1MiB"),
    ("1G", "1M"),
    ("64MiB", "64KiB"),
    ("16MiB", "16KiB"),
    ("2GiB", "64MiB"),
    ("/shared/", "shared/"),
    ("./ci-step.sh", "./backup.sh"),
    ("hosepipe top --once gzip", "yes | gzip | cat > /dev/null & hosepipe top --once gzip; kill $!"),
    ("tail -f log", "cat log"),
    ("hosepipe gen --payload", "hosepipe gen --bytes 2MiB --payload"),
    ("~/", "./"),
];

/// A command that takes longer is named, as it should be made smaller here.
const SLOW: Duration = Duration::from_secs(2);

/// A command, the page that has it, and what the page shows below it.
#[derive(Debug, Clone)]
struct Documented {
    command: String,
    page: String,
    shown: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands in the blocks of code of a page of Markdown.
fn of_page(page: &str, text: &str) -> Vec<Documented> {
    let mut found: Vec<Documented> = Vec::new();
    for block in text.split("\n```").skip(1).step_by(2) {
        let block = block.split_once('\n').map_or("", |(_, code)| code);
        let joined: Vec<&str> = block
            .split("\\\n")
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.trim_start() })
            .collect();
        let block = joined.concat();
        let is_session = block.starts_with("$ ");
        for line in block.lines() {
            let command = if is_session { line.strip_prefix("$ ") } else { Some(line) };
            match command {
                Some(command) if !command.starts_with([' ', '#']) => {
                    let command = command.split("  ").next().unwrap_or_default();
                    let command = command.split(" # ").next().unwrap_or_default().to_owned();
                    found.push(Documented { command, page: page.to_owned(), shown: String::new() });
                }
                _ => {
                    if let Some(last) = found.last_mut().filter(|_| is_session) {
                        last.shown += line;
                        last.shown += "\n";
                    }
                }
            }
        }
    }
    found
}

/// The examples of the help of hosepipe, or of a verb.
fn of_help(lab: &Lab, verb: &[&str]) -> Vec<Documented> {
    let mut program = lab.command(&[verb, &["--help"]].concat());
    program.env("COLUMNS", "1000");
    let help = lab.finish(program).expect_code(0).stdout;
    let (_, examples) = help.split_once("\nExamples:\n").expect("examples");
    let lines = examples.lines().take_while(|line| !line.is_empty());
    let of = |line: &str| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')).map(str::to_owned);
    let page = format!("hosepipe {} --help", verb.join(" "));
    let commands = lines.filter_map(of).map(|line| line.split("  ").next().unwrap_or_default().to_owned());
    commands.map(|command| Documented { command, page: page.clone(), shown: String::new() }).collect()
}

/// The pages of Markdown, by name.
fn pages() -> Vec<(String, String)> {
    let pages = files_in(&root().join("docs")).into_iter().filter(|page| page.ends_with(".md"));
    let pages =
        pages.chain(["README.md", "CONTRIBUTING.md"].map(|page| root().join(page).display().to_string()));
    let named = |page: String| {
        (page.rsplit('/').next().unwrap_or(&page).to_owned(), fs::read_to_string(&page).expect("a page"))
    };
    pages.map(named).collect()
}

/// All commands with `hosepipe` in them, once each.
fn documented() -> Vec<Documented> {
    let lab = Lab::new();
    let help = lab.run(&["--help"]).expect_code(0).stdout;
    let verbs =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let of_verbs =
        verbs.iter().filter(|verb| !["", "help"].contains(*verb)).flat_map(|verb| of_help(&lab, &[verb]));
    let pages = files_in(&root().join("docs")).into_iter().filter(|page| page.ends_with(".md"));
    let pages =
        pages.chain(["README.md", "CONTRIBUTING.md"].map(|page| root().join(page).display().to_string()));
    let of_pages = pages.flat_map(|page| {
        let text = fs::read_to_string(&page).expect("a page");
        of_page(page.rsplit('/').next().unwrap_or(&page), &text)
    });
    let all = of_help(&lab, &[]).into_iter().chain(of_verbs).chain(of_pages);
    let with_hosepipe = |one: &Documented| {
        !one.command.starts_with("cargo ") && one.command.split([' ', '|']).any(|word| word == "hosepipe")
    };
    let mut all: Vec<Documented> = all.filter(with_hosepipe).collect();
    // Of equal ones the one with an output.
    all.sort_by(|one, other| (&one.command, &other.shown).cmp(&(&other.command, &one.shown)));
    all.dedup_by(|one, before| one.command == before.command);
    all
}

/// Options that make a verb quick; the first one of a row is not added where the command has it already.
const QUICKER: &[(&str, &[&str])] = &[
    ("top", &["--interval 100ms"]),
    ("doctor", &["--quick"]),
    ("compare --fail-over 5", &["--trials 6"]),
    ("compare", &["--trials 1", "--warmup 0"]),
    ("diff --run", &["--trials 6"]),
];

/// The command at the size of a test. A `bench` is only planned, unless it is to be measured, or real sizes are asked for.
fn smaller(command: &str, is_measured: bool) -> String {
    let mut small = command.to_owned();
    for (large, less) in SMALLER {
        small = small.replace(large, less);
    }
    for (verb, options) in QUICKER {
        let options =
            options.iter().filter(|option| !small.contains(option.split(' ').next().unwrap_or(option)));
        let options: String = options.map(|option| format!(" {option}")).collect();
        small = small.replace(&format!("hosepipe {verb}"), &format!("hosepipe {verb}{options}"));
    }
    let is_far = ["--peer", "--workers", "--worker ", "--suite"].iter().any(|option| small.contains(option));
    let of_bench = match () {
        () if is_far => "--dry-run",
        // The floor and the ceiling are measured, too, which takes seconds.
        () if !full() && !is_measured => "--dry-run",
        () if small.contains("--rate") => "--trials 1 --count 200",
        () if small.contains("--workload pingpong") => "--trials 1 --count 20",
        () => "--trials 1 --bytes 64KiB",
    };
    small.replace("hosepipe bench", &format!("hosepipe bench {of_bench}"))
}

/// The files that documented commands read.
const FIXTURE: &str = r#"
set -e
seq 3000 | sed 's/7$/7 GET error x/' | tee words big log f file.txt words.txt big.txt BIG text a b > trace.bin
gzip -k log; cp log.gz access.log.gz
mkdir -p logs data texts shared/text shared/logs; cp log.gz logs/1.gz; cp log.gz logs/2.gz; cp log data/1; cp log data/2
cp log texts/1.txt; cp log shared/text/1.txt; cp log shared/text.txt; echo 'cat log | sort' > script.sh; cp log access.log
printf '#!/bin/sh\nexec cat\n' > slow; printf '#!/bin/sh\nexec sort "$@"\n' > sort-old; cp sort-old sort-new
printf '#!/bin/sh\necho all saved\n' > backup.sh; printf 'all:\n\t@echo made\n' > Makefile
chmod +x slow sort-old sort-new backup.sh; cp slow my-program
mkdir -p .local/share/bash-completion/completions .config/fish/completions .zsh hosepipe-fleet
for name in old new here there monday tuesday run a b bench; do cp "$1"/bench.json $name.json; done
cp "$1"/compare.json .; cp "$1"/fleet.json .; cp "$1"/fleet.json hosepipe-fleet/fleet
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' > token; chmod 600 token; cp token .token
"#;

/// The lines of what a page shows that have to come again: what a single line begins with, and headings of
/// tables; figures do not count.
fn shape(shown: &str) -> Vec<String> {
    let is_heading = |line: &&str| {
        let columns = line.trim().split("  ").filter(|column| !column.is_empty()).count();
        !line.contains(|letter: char| letter.is_ascii_digit()) && columns > 2
    };
    match shown.lines().count() {
        1 => vec![without_figures(shown.split(':').next().unwrap_or_default())],
        _ => shown.lines().filter(is_heading).map(without_figures).collect(),
    }
}

/// A line with its figures and their units taken out.
fn without_figures(line: &str) -> String {
    let units = ["s", "ms", "µs", "ns", "GB/s", "MB/s", "kB/s", "B/s"];
    let is_figure = |word: &str| word.contains(|letter: char| letter.is_ascii_digit());
    let word = |word: &str| {
        let bare = word.trim_end_matches([',', '.', ':']);
        if is_figure(word) || units.contains(&bare) { "#".to_owned() } else { word.to_owned() }
    };
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    words.join(" ")
}

/// Runs a command in a folder of its own; says what is wrong.
fn wrong(one: &Documented, template: &Path) -> Option<String> {
    let lab = Lab::new();
    let command = smaller(&one.command, !one.shown.is_empty() || one.command.contains("| hosepipe"));
    let copied = Command::new("cp").arg("-a").arg(template.join(".")).arg(lab.here("")).status();
    assert!(copied.expect("cp").success());
    let mut bash = lab.wrapped(&["bash", "-c", &command], &[]);
    let folder = Path::new(env!("CARGO_BIN_EXE_hosepipe")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    bash.env("PATH", format!("{}:{path}", folder.display())).env("HOME", lab.here("")).env("COLUMNS", "100");
    let done = lab.start(bash).end_within(HANGS_AFTER);
    if done.elapsed > SLOW {
        eprintln!("{:.1?}: {command}", done.elapsed);
    }
    let printed = format!("{}{}", done.stdout, done.stderr);
    let said: Vec<String> = printed.lines().map(without_figures).collect();
    let lacks = shape(&one.shown).into_iter().find(|line| !said.iter().any(|said| said.starts_with(line)));
    // Of two commands that are timed, one may be found slower. A record of the same run twice has no change.
    let found = command.contains("--fail-over 5")
        && done.code() == 1
        && done.stdout.contains(" surely takes more than ");
    // Standard output may have command lines of any process.
    let failed = (done.code() != 0 && !found) || done.stderr.contains("panicked");
    let reason = lacks.map(|line| format!("no line like {line:?}"));
    let reason = reason.or(failed.then(|| format!("status {}", done.code())))?;
    Some(format!("{}: {}\n  as {command}\n  {reason}\n{printed}", one.page, one.command))
}

/// The programs that a command starts; what follows an option is none.
fn missing_program(command: &str) -> Option<String> {
    let programs = ["jq", "dot", "benchstat", "zstd", "b3sum", "rg", "zsh", "fish", "jps", "make"];
    let here = |program: &str| Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    let words = command.split(|letter: char| !letter.is_ascii_alphanumeric());
    let mut used = words.filter(|word| programs.contains(word));
    used.find(|program| !here(program).is_ok_and(|found| found.status.success())).map(str::to_owned)
}

#[test]
fn every_documented_command_runs_and_prints_what_its_page_shows() {
    let all = documented();
    assert!(all.len() > 100, "{} commands were found", all.len());
    let template = tempfile::tempdir().expect("a folder");
    let records = root().join("records/0.1.0");
    let mut fixture = Command::new("bash");
    fixture.args(["-c", FIXTURE, "bash"]).arg(records).current_dir(template.path());
    assert!(fixture.status().expect("bash").success());
    let mut unused: BTreeSet<&str> = NOT_RUN.iter().map(|(part, _)| *part).collect();
    let mut to_run = Vec::new();
    for one in all {
        let padded = format!("{}   ", one.command);
        if let Some((part, reason)) = NOT_RUN.iter().find(|(part, _)| padded.contains(part)) {
            unused.remove(part);
            if full() && reason.contains("HOSEPIPE_TEST_FULL") {
                to_run.push(one);
            }
        } else if let Some(program) = missing_program(&one.command) {
            skip(&format!("no {program} here: {}", one.command));
        } else {
            to_run.push(one);
        }
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || to_run.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(take).filter_map(|one| wrong(one, template.path())).collect::<Vec<_>>()
    };
    let found: Vec<String> = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    assert!(found.is_empty(), "{} of {} commands:\n\n{}", found.len(), to_run.len(), found.join("\n\n"));
    assert!(unused.is_empty(), "no command is left out for {unused:?}");
}

/// Options that the help does not show, and that pages for contributors name; and what is the shell's own.
const INTERNAL: [(&str, &str); 3] = [("peer", "--stdio"), ("reproduce", "--figures"), ("sh", "--norc")];

/// The verbs and long options that pages name within sentences exist.
#[test]
fn verbs_and_options_that_pages_name_exist() {
    let lab = Lab::new();
    let mut helps: HashMap<String, String> = HashMap::new();
    for (page, text) in pages() {
        // Blocks of code are run by the other test.
        let outside: String = text.split("\n```").step_by(2).collect();
        let spans = outside.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("hosepipe "));
        for span in spans {
            let mut words = span.split([' ', '\n', ']', '[', '=']);
            let verb = words.next().unwrap_or_default();
            if !verb.starts_with(|letter: char| letter.is_ascii_lowercase())
                || ["help", "manual"].contains(&verb)
            {
                continue;
            }
            let help = helps.entry(verb.to_owned()).or_insert_with(|| lab.run(&[verb, "--help"]).stdout);
            assert!(help.contains("Usage: hosepipe"), "{page}: `hosepipe {span}`: there is no verb {verb}");
            // What is in quotes, or behind a pipe, is of another program.
            let own = words.take_while(|word| !word.starts_with(['\'', '"', '|']) && *word != "--");
            let is_internal = |word: &str| INTERNAL.contains(&(verb, word));
            let mut options = own.filter(|word| word.starts_with("--") && !is_internal(word));
            let unknown = options.find(|option| !help.contains(*option));
            assert!(unknown.is_none(), "{page}: `hosepipe {span}`: hosepipe {verb} has no {unknown:?}");
        }
    }
}
