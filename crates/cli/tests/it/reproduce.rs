//! `hosepipe reproduce` as a user meets it: every study in small, resumed, stopped, refused.

use std::fs;
use std::path::Path;

use crate::common::{Done, Lab, namespaces::unshare, promptly, signal, soon, until};
use crate::outputs::csv_rows;
use model::{SCHEMA, StudyPart, StudyRecord};
use rustix::process::Signal;

fn reproduce(lab: &Lab, args: &[&str]) -> Done {
    lab.run(&[&["reproduce"], args].concat())
}

fn read(text: &str) -> StudyRecord {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no record ({error}): {text}"))
}

fn record(lab: &Lab, name: &str) -> StudyRecord {
    read(&fs::read_to_string(lab.here(name)).expect("a record was written"))
}

fn names(record: &StudyRecord) -> Vec<&str> {
    record.parts.iter().map(|part| part.name.as_str()).collect()
}

fn part<'a>(record: &'a StudyRecord, name: &str) -> &'a StudyPart {
    record.parts.iter().find(|part| part.name == name).unwrap_or_else(|| panic!("no part {name}"))
}

/// A small run of a study, or of parts of it: its text and its record.
fn small(lab: &Lab, study: &str, more: &[&str]) -> (String, StudyRecord) {
    let args = [&[study, "--scale", "0.001", "--json", "r.json", "--csv", "r.csv"], more].concat();
    let done = reproduce(lab, &args).expect_code(0);
    assert_eq!(done.stderr, "", "no progress where there is no terminal");
    let record = record(lab, "r.json");
    assert_eq!((record.head.schema.as_str(), record.study.as_str(), record.scale), (SCHEMA, study, 0.001));
    assert!(!record.interrupted && record.parts.iter().all(|part| part.complete), "{record:?}");
    let csv = csv_rows(&fs::read_to_string(lab.here("r.csv")).expect("CSV was written"));
    let rows = |part: &StudyPart| part.cases.len() + part.results.len() + part.measures.len();
    assert_eq!(
        csv.len(),
        1 + record.parts.iter().map(rows).sum::<usize>(),
        "the names, and each figure's row"
    );
    assert!(csv.iter().all(|row| row.len() == csv[0].len()), "{csv:?}");
    let words = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("--scale 0.001"), "the scale is told: {}", done.stdout);
    (done.stdout, record)
}

#[test]
fn bradford() {
    let lab = Lab::new();
    let (text, record) = small(&lab, "bradford", &[]);
    assert!(text.starts_with("Linux "), "it begins as `uname -s -r`: {text}");
    assert_eq!(names(&record), ["single", "threads", "named", "huge"]);
    let single = part(&record, "single");
    assert_eq!(single.cases.len(), 62);
    for case in &single.cases {
        assert!(case.error.is_none() && case.samples.len() == single.series as usize, "{case:?}");
        let blocks = if case.block_bytes < 1000 { 512 } else { 102 };
        assert!(case.samples.iter().all(|sample| sample.messages == blocks), "{case:?}");
    }
    assert_eq!(part(&record, "threads").cases.len(), 3 * 25);
    let [alone, ..] = part(&record, "huge").cases.as_slice() else { panic!("no cases") };
    assert!(alone.error.as_ref().is_some_and(|error| error.expected), "{alone:?}");
    for words in ["about 700 MB/s", "FIFO / pipe", "verdict", "unix-stream", "What changed"] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

#[test]
fn comp517() {
    let lab = Lab::new();
    let (text, record) = small(&lab, "comp517", &[]);
    assert_eq!(names(&record), ["ps", "sort", "ls-h", "ls-l"]);
    for part in &record.parts {
        assert_eq!(part.results.len(), 8);
        for result in &part.results {
            assert_eq!((result.times_s.len(), &result.error), (part.series as usize, &None), "{result:?}");
            assert_eq!(result.stored_bytes.is_some(), result.via.contains("file"), "{result:?}");
            // `ps` shows other numbers each time; `wc` that reads a file pads by the file's size.
            let may_differ = part.name == "ps" || (part.name == "ls-l" && result.via.contains("sequential"));
            assert!(may_differ || result.equal == Some(true), "{result:?}");
        }
    }
    assert!(text.contains("19.0608 ± 7.2001 s") && text.contains("named + O_SYNC"), "{text}");
}

#[test]
fn stover() {
    let lab = Lab::new();
    let (text, record) = small(&lab, "stover", &[]);
    let columns = part(&record, "columns");
    let names: Vec<&str> = columns.measures.iter().map(|measure| measure.name.as_str()).collect();
    let ways = ["msgq", "tmp file", "unix socket", "pipe", "|cat >/dev/null", ">/dev/null"];
    let starts = ways.map(|way| format!("start of {way}"));
    assert_eq!(names, ways.into_iter().chain(starts.iter().map(String::as_str)).collect::<Vec<_>>());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no conclusions are drawn") && !text.contains("times the pipe's time"), "{text}");
    for measure in &columns.measures {
        assert_eq!((measure.samples.len(), &measure.error), (columns.series as usize, &None), "{measure:?}");
    }
    assert!(columns.cases.iter().all(|case| case.samples.iter().all(|sample| sample.checksum.is_some())));
    let mechanisms = &part(&record, "mechanisms").mechanisms;
    assert!(mechanisms.iter().any(|one| one.name == "fifo" && one.filters && one.lines > 20));
    for words in ["palsy", "ebola", "2450", "relative, truncated", "largest message"] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

#[test]
fn a_pipeline_of_stover_that_fails_says_why() {
    let lab = Lab::new();
    let small_files = ["sh", "-c", "ulimit -f 100; exec \"$@\"", "sh"];
    let words = ["reproduce", "stover", "--part", "columns", "--scale", "0.001", "--json", "-"];
    let done = lab.finish(lab.wrapped(&small_files, &words)).expect_code(1);
    let record = read(&done.stdout);
    let file = &part(&record, "columns").measures[1];
    let error = file.error.as_deref().expect("no file may be so large");
    assert!(error.contains("ended with status") && error.contains("File too large"), "{error}");
}

/// A folder of workers with one language, so that a test does not wait for ten compilers.
fn one_language(lab: &Lab) -> std::path::PathBuf {
    let workers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers");
    let all = fs::read_to_string(workers.join("workers.toml")).expect("the registry");
    let c = all.split("[[language]]").find(|text| text.contains("key = \"c\"\n")).expect("C is registered");
    let folder = lab.here("workers");
    fs::create_dir_all(folder.join("c")).expect("a folder");
    fs::write(folder.join("workers.toml"), format!("[[language]]{c}")).expect("written");
    for entry in fs::read_dir(workers.join("c")).expect("the worker's folder") {
        let path = entry.expect("readable").path();
        fs::copy(&path, folder.join("c").join(path.file_name().expect("a name"))).expect("copied");
    }
    folder
}

#[test]
fn kernel_pipe() {
    let lab = Lab::new();
    let workers = one_language(&lab);
    let mut command = lab.command(&["reproduce", "kernel-pipe", "--scale", "0.001", "--json", "r.json"]);
    command.env("HOSEPIPE_WORKERS", workers);
    let done = lab.finish(command).expect_code(0);
    let record = record(&lab, "r.json");
    let parts = ["languages", "buffers", "calls", "copies", "atomicity", "room", "alternatives"];
    assert_eq!(names(&record), parts);
    assert_eq!(part(&record, "languages").cases.len(), 2, "C, idiomatic and tuned");
    let measure = |of: &str, name: &str| {
        let measure = part(&record, of).measures.iter().find(|measure| measure.name == name);
        measure.unwrap_or_else(|| panic!("no {name}")).samples.clone()
    };
    assert_eq!(measure("atomicity", "512 bytes: torn"), [0.0]);
    assert_eq!(measure("atomicity", "4096 bytes: torn"), [0.0]);
    assert_eq!(measure("room", "PIPE_BUF"), [4096.0]);
    assert!(measure("calls", "getppid").iter().all(|ns| *ns > 1.0));
    for words in ["4641 ms", "0.53 GB/s", "n/a", "20,971,520", "1 to 5 µs", "vmsplice()"] {
        assert!(done.stdout.contains(words), "no `{words}` in {}", done.stdout);
    }
}

#[test]
fn a_record_is_resumed_part_by_part() {
    let lab = Lab::new();
    let (_, first) = small(&lab, "kernel-pipe", &["--part", "calls,room"]);
    assert_eq!(names(&first), ["calls", "room"]);
    let scale = ["--scale", "0.001"];
    let more = ["kernel-pipe", "--resume", "r.json", "--part", "copies,room"];
    reproduce(&lab, &[&more[..], &scale].concat()).expect_code(0);
    let second = record(&lab, "r.json");
    assert_eq!(names(&second), ["calls", "copies", "room"], "in the study's order");
    assert_eq!(second.parts[0], first.parts[0], "what was there is kept");
    assert_eq!(second.head.started, first.head.started);

    // Nothing is left to run of these parts: it is shown again, at once.
    let again =
        reproduce(&lab, &[&["kernel-pipe", "--resume", "r.json", "--part", "room"][..], &scale].concat());
    let again = again.expect_code(0);
    assert!(
        again.stdout.contains("The capacity of a pipe") && again.elapsed < promptly(),
        "{}",
        again.stdout
    );
    assert_eq!(record(&lab, "r.json"), second);
}

#[test]
fn what_cannot_be_resumed_is_told() {
    let lab = Lab::new();
    small(&lab, "kernel-pipe", &["--part", "room"]);
    let good = fs::read_to_string(lab.here("r.json")).expect("the record");
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        good.replacen(from, to, 1)
    };
    let kernel = format!("\"kernel\": \"{}\"", record(&lab, "r.json").head.host.kernel);
    for (text, args, words) in [
        (good.clone(), ["bradford", "--scale", "0.001"], "of the study `kernel-pipe`, not of `bradford`"),
        (good.clone(), ["kernel-pipe", "--scale", "0.5"], "--scale 0.001"),
        (
            changed(&kernel, "\"kernel\": \"Linux 2.4.2\""),
            ["kernel-pipe", "--scale", "0.001"],
            "another machine",
        ),
        (changed("hosepipe/1", "hosepipe/9"), ["kernel-pipe", "--scale", "0.001"], "hosepipe/9"),
        (good[..good.len() / 2].to_owned(), ["kernel-pipe", "--scale", "0.001"], "cut off"),
        ("hello".to_owned(), ["kernel-pipe", "--scale", "0.001"], "not JSON"),
    ] {
        fs::write(lab.here("other.json"), text).expect("written");
        let done = reproduce(&lab, &[&args[..], &["--resume", "other.json"]].concat()).expect_code(2);
        assert!(
            done.stderr.contains("other.json") && done.stderr.contains(words),
            "{words}: {}",
            done.stderr
        );
        assert_eq!(done.stdout, "");
    }
    let done = reproduce(&lab, &["kernel-pipe", "--resume", "missing.json"]).expect_code(2);
    assert!(done.stderr.contains("missing.json") && done.stderr.contains("ENOENT"), "{}", done.stderr);
}

/// Expected: a study that finds no room says where, why, and what to do. On a file system of its own with few inodes.
#[test]
fn a_small_disk_is_an_error_with_a_remedy() {
    let lab = Lab::new();
    let script = "mount -t tmpfs -o size=16m,nr_inodes=600 none \"$TMPDIR\" && exec \"$0\" \"$@\"";
    let Some(wrapper) = unshare(&["--mount"], script) else { return };
    let args = ["reproduce", "comp517", "--part", "ls-l", "--scale", "0.01"];
    let done = lab.finish(lab.wrapped(&wrapper, &args)).expect_code(1);
    for words in ["input cannot be made in ", "ENOSPC", "TMPDIR=DIR", "--scale"] {
        assert!(done.stderr.contains(words), "no {words} in {}", done.stderr);
    }
}

#[test]
fn wrong_command_lines_say_what_is_right() {
    let lab = Lab::new();
    for (args, words) in [
        (&["bradfort"][..], "bradford, comp517, kernel-pipe, stover"),
        (&[], "STUDY"),
        (&["stover", "--scale", "0"], "as in 0.1"),
        (&["stover", "--scale", "lots"], "as in 0.1"),
        (&["stover", "--part", "rows"], "columns (six ways"),
        (&["stover", "--windows", "w.json"], "--windows goes with the study bradford"),
        (&["stover", "--json", "-", "--html", "-"], "cannot share standard output"),
        (&["stover", "--json", "/nonexistent/r"], "ENOENT"),
    ] {
        let done = reproduce(&lab, args).expect_code(2);
        assert!(done.stderr.contains(words), "{args:?}: no `{words}` in {}", done.stderr);
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn a_record_made_elsewhere_stands_beside_ours() {
    let lab = Lab::new();
    let bench =
        ["bench", "pipe", "--block", "64KiB", "--count", "4", "--trials", "2", "--workload", "stream"];
    lab.run(&[&bench[..], &["--tasks", "threads", "--json", "w.json"]].concat()).expect_code(0);
    let text = fs::read_to_string(lab.here("w.json")).expect("the record");
    let kernel = text.lines().find(|line| line.contains("\"kernel\"")).expect("a kernel");
    fs::write(lab.here("w.json"), text.replace(kernel, "\"kernel\": \"Windows 11\",")).expect("written");
    let (text, record) = small(&lab, "bradford", &["--windows", "w.json", "--part", "huge,threads"]);
    assert_eq!(names(&record), ["threads", "huge", "elsewhere: w.json"]);
    assert!(text.contains("Windows 11: pipe"), "{text}");
    let done = reproduce(&lab, &["bradford", "--windows", "r.json"]).expect_code(2);
    assert!(done.stderr.contains("r.json"), "{}", done.stderr);
}

#[test]
fn an_interruption_saves_what_was_finished_and_leaves_nothing_behind() {
    let lab = Lab::new();
    let args = ["reproduce", "kernel-pipe", "--part", "room,alternatives", "--json", "r.json"];
    let running = lab.start(lab.wrapped(&["env", "--default-signal"], &args));
    until("the first part is saved", soon(), || lab.here("r.json").exists().then_some(()));
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(promptly()).expect_code(130);
    let record = record(&lab, "r.json");
    assert!(record.interrupted && part(&record, "room").complete, "{record:?}");
    assert!(record.parts.iter().all(|part| part.name == "room" || !part.complete));
    assert!(done.stdout.contains("Interrupted"), "{}", done.stdout);
}

#[test]
fn a_stopped_comparison_removes_its_material() {
    let lab = Lab::new();
    let args = ["reproduce", "comp517", "--scale", "0.05", "--part", "ls-l", "--json", "r.json"];
    let running = lab.start(lab.wrapped(&["env", "--default-signal"], &args));
    until("the material is being made", soon(), || {
        let entries = fs::read_dir(lab.tmp()).expect("TMPDIR").flatten();
        entries.map(|entry| entry.path().join("files")).find(|folder| folder.exists())
    });
    signal(running.pid(), Signal::INT);
    running.wait_within(soon()).expect_code(130);
    assert!(record(&lab, "r.json").interrupted);
}

#[test]
fn the_page_and_the_figures_are_written() {
    let lab = Lab::new();
    let more = ["--part", "buffers", "--html", "page.html", "--figures", "."];
    small(&lab, "kernel-pipe", &more);
    let page = fs::read_to_string(lab.here("page.html")).expect("the page");
    assert!(page.contains("Kernel Pipe Throughput Benchmark") && page.contains("<svg"), "the study is on it");
    let figure = fs::read_to_string(lab.here("kernel-pipe-buffers.svg")).expect("the figure");
    assert!(figure.starts_with("<svg"));
}

/// What docs/STUDY-*.md show comes from the records that they name.
#[test]
fn the_figures_of_the_docs_come_from_their_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for study in ["bradford", "comp517", "kernel-pipe", "stover"] {
        let lab = Lab::new();
        let file = root.join("records").join(format!("{study}.json"));
        let scale = read(&fs::read_to_string(&file).expect("the record")).scale.to_string();
        fs::copy(&file, lab.here("r.json")).expect("copied");
        let args = [study, "--scale", &scale, "--resume", "r.json", "--json", "again.json", "--figures", "."];
        // Another machine may show the record, and draw its figures.
        assert!(reproduce(&lab, &args).expect_code(0).elapsed < promptly());
        let page = format!("docs/STUDY-{}.md", study.to_uppercase());
        let text = fs::read_to_string(root.join(&page)).expect("the page");
        let shown: Vec<&str> =
            text.split("(figures/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(!shown.is_empty(), "{page} shows something");
        for figure in shown {
            let kept = fs::read_to_string(root.join("docs/figures").join(figure)).expect(figure);
            let drawn = fs::read_to_string(lab.here(figure)).expect("the record has this figure");
            assert!(
                kept == drawn,
                "docs/figures/{figure} is stale: hosepipe reproduce {study} --scale {scale} --resume \
                 records/{study}.json --figures docs/figures"
            );
        }
    }
}
