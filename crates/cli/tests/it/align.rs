//! Buffers at page offsets where some CPUs copy slowly: `run --stats` and `top` see where they lie, and say so only where it matters;
//! `--align-buffers` and `boost` put them elsewhere, on such a machine only.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{CompareRecord, RunRecord, StageRecord, TopRecord};

use crate::common::{Done, Lab, skip, soon, until};

/// Invents a machine that copies at this share of its speed 1 to 31 bytes into a page.
const MACHINE: &str = "HOSEPIPE_SLOW_COPIES";
/// What a machine without the fault is.
const EVEN: &str = "1";

/// Prints where in a page malloc puts a block of 1 MB.
const WHERE: &str = "
#include <stdio.h>
#include <stdlib.h>
int main(void) { printf(\"%d\\n\", (int)((size_t)malloc(1000000) % 4096)); return 0; }
";

/// `copies r OFFSET` reads its input into a buffer OFFSET bytes into a page, `copies w OFFSET BLOCKS` writes BLOCKS blocks from one.
const SOURCE: &str = "
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    char *buffer = (char *)aligned_alloc(4096, 131072) + atol(words[2]);
    if (words[1][0] == 'r')
        while (read(0, buffer, 65536) > 0) {}
    else
        for (long blocks = atol(words[3]); blocks > 0; blocks--)
            if (write(1, buffer, 65536) != 65536) return 1;
    return 0;
}
";

/// A lab with that program.
fn lab() -> Option<Lab> {
    let lab = Lab::new();
    let made = compile(&lab, "copies", SOURCE, &[]) && compile(&lab, "where", WHERE, &[]);
    if !made {
        skip("there is no C compiler");
    }
    made.then_some(lab)
}

fn compile(lab: &Lab, name: &str, source: &str, options: &[&str]) -> bool {
    let file = format!("{name}.c");
    std::fs::write(lab.here(&file), source).expect("a file");
    let mut cc = Command::new("cc");
    let made = cc.args(["-O1", "-o", name, &file]).args(options).current_dir(lab.here("")).output();
    made.is_ok_and(|made| made.status.success())
}

/// `hosepipe ARGUMENTS` on a machine that copies at this share of its speed.
fn on(machine: &str, lab: &Lab, arguments: &[&str]) -> Done {
    let mut command = lab.command(arguments);
    command.env(MACHINE, machine).env_remove("GLIBC_TUNABLES");
    lab.finish(command)
}

fn record(path: &Path) -> RunRecord {
    serde_json::from_slice(&std::fs::read(path).expect("a record")).expect("JSON")
}

fn offsets(stage: &StageRecord) -> [Option<u64>; 2] {
    [stage.read_buffer_offset, stage.write_buffer_offset]
}

/// Expected: the offsets that a C program reads into and writes from, and no sentence where no machine is slow.
#[test]
fn offsets_are_those_of_the_programs() {
    let Some(lab) = lab() else { return };
    for (writes, reads) in [(0, 0), (48, 48), (4080, 16), (16, 4080), (2048, 1)] {
        // The writer waits for the reader, and then the reader for the end.
        let text = format!("{{ ./copies w {writes} 64; sleep 0.5; }} | {{ sleep 0.5; ./copies r {reads}; }}");
        let done = on(EVEN, &lab, &["run", "--stats", "--json", "r.json", &text]).expect_code(0);
        let record = record(&lab.here("r.json"));
        assert_eq!(offsets(&record.stages[0]), [None, Some(writes)], "{text}");
        assert_eq!(offsets(&record.stages[1]), [Some(reads), None], "{text}");
        assert!(!done.stderr.contains("into a page"), "{}", done.stderr);
    }
    let done = on(EVEN, &lab, &["run", "--stats", "--json", "r.json", "seq 9 | cat"]).expect_code(0);
    assert_eq!(offsets(&record(&lab.here("r.json")).stages[0]), [None, None], "{}", done.stderr);
}

/// Expected: a sentence about the program that reads much 16 bytes into a page, and none about 0 and 48, or about a few bytes.
#[test]
fn a_sentence_is_printed_only_where_it_matters() {
    let Some(lab) = lab() else { return };
    let said = |machine: &str, blocks: u64, offset: u64| {
        let text = format!("{{ ./copies w 0 {blocks}; sleep 0.3; }} | ./copies r {offset}");
        let done = on(machine, &lab, &["run", "--stats", "--json", "r.json", &text]).expect_code(0);
        let slow = record(&lab.here("r.json")).stages[1].slow_copies;
        let words = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.contains("into a page"), slow.is_some(), "{words}");
        (slow.map(|slow| (slow.writes, slow.offset)), words)
    };
    const MANY: u64 = 32 << 10;
    // On a machine that does much else a run takes so long that the copies are a small part of it.
    let (slow, words) = until("a run long enough", soon(), || {
        Some(said("0.05", MANY, 16)).filter(|(slow, _)| slow.is_some())
    });
    assert_eq!(slow, Some((false, 16)), "{words}");
    assert!(
        words.contains("`./copies r 16` (stage 2) reads into a buffer 16 bytes into a page. This CPU"),
        "{words}"
    );
    assert!(words.contains("at 0.05 of its speed: with `--align-buffers` its reads take at most"), "{words}");
    for (machine, blocks, offset) in
        [("0.05", MANY, 0), ("0.05", MANY, 48), (EVEN, MANY, 16), ("0.05", 4, 16)]
    {
        assert_eq!(said(machine, blocks, offset).0, None, "{machine} {blocks} {offset}");
    }
}

/// Expected: `top` sees the offset of a program that it did not start.
#[test]
fn top_sees_offsets_too() {
    let Some(lab) = lab() else { return };
    let text = "trap 'kill 0' EXIT; { ./copies w 0 64; sleep 60; } | ./copies r 16 & \
                \"$HOSEPIPE\" top --once --json - $$";
    let mut command = Command::new("bash");
    command.args(["-c", text]).current_dir(lab.here("")).env("HOSEPIPE", env!("CARGO_BIN_EXE_hosepipe"));
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let done = command.env(MACHINE, EVEN).output().expect("bash");
    let record: TopRecord = serde_json::from_slice(&done.stdout).expect("a record");
    let mut stages = record.seen.chains.iter().flat_map(|chain| &chain.stages);
    assert!(stages.any(|stage| stage.read_buffer_offset == Some(16)), "{record:#?}");
}

/// What the commands of this text print on such a machine, with the user's own GLIBC_TUNABLES.
fn printed(machine: &str, lab: &Lab, own: Option<&str>, arguments: &[&str]) -> String {
    let mut command = lab.command(arguments);
    command.env(MACHINE, machine).env_remove("GLIBC_TUNABLES");
    command.envs(own.map(|own| ("GLIBC_TUNABLES", own)));
    lab.finish(command).expect_code(0).stdout
}

/// Expected: malloc's large blocks do not begin 16 bytes into a page; a variable of the user's own stays, and a threshold of theirs counts.
#[test]
fn large_blocks_lie_elsewhere_and_the_users_own_tunables_stay() {
    let Some(lab) = lab() else { return };
    let own = "glibc.malloc.check=0";
    let threshold = "glibc.malloc.mmap_threshold=131072";
    for how in
        [&["run", "--align-buffers"][..], &["sh", "--align-buffers", "-c"], &["boost", "-q", "bash", "-c"]]
    {
        let printed = |machine, own, text| printed(machine, &lab, own, &[how, &[text]].concat());
        let lies = |machine, own| printed(machine, own, "./where | cat");
        assert_eq!(lies(EVEN, None), "16\n", "{how:?}");
        assert_ne!(lies("0.3", None), "16\n", "{how:?}");
        assert_ne!(lies("0.3", Some(own)), "16\n", "{how:?}");
        assert_eq!(lies("0.3", Some(threshold)), "16\n", "{how:?}: the user's own counts");
        let variable = |machine, own| printed(machine, own, "env | grep ^GLIBC_TUNABLES || true");
        assert_eq!(variable(EVEN, None), "", "{how:?}: nothing is changed");
        assert_eq!(variable(EVEN, Some(own)), format!("GLIBC_TUNABLES={own}\n"), "{how:?}");
        let both = variable("0.3", Some(own));
        assert!(both.ends_with(&format!(":{own}\n")) && both.contains("mmap_threshold="), "{how:?}: {both}");
    }
    // A variable that only one command has.
    let text = format!("GLIBC_TUNABLES={threshold} ./where | cat; ./where | cat");
    let lines = printed("0.3", &lab, None, &["run", "--align-buffers", &text]);
    let lines: Vec<&str> = lines.lines().collect();
    assert!(lines[0] == "16" && lines[1] != "16", "{lines:?}");
}

/// Expected: it is said that the user's own threshold counts. Happened: buffers that lay where they did were said to be aligned.
#[test]
fn a_threshold_of_the_users_own_is_named() {
    let Some(lab) = lab() else { return };
    let mut command = lab.command(&["run", "--align-buffers", "./where | cat"]);
    command.env(MACHINE, "0.3").env("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=131072");
    let done = lab.finish(command).expect_code(0);
    let why = "where: as it is: GLIBC_TUNABLES already sets the threshold";
    assert!(done.stdout == "16\n" && done.stderr.contains(why), "{}{}", done.stdout, done.stderr);
}

/// Expected: what cannot be helped is told, on such a machine; on another one, that there is nothing to do.
#[test]
fn what_is_not_helped_is_said() {
    let Some(lab) = lab() else { return };
    let own = "#include <stdlib.h>\nvoid *malloc(size_t n) { (void)n; return NULL; }\nint main(void) { return 0; }\n";
    assert!(compile(&lab, "with_its_own", own, &["-rdynamic"]));
    assert!(compile(&lab, "set_id", "int main(void) { return 0; }\n", &[]));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(lab.here("set_id"), mode).expect("chmod");
    let text = "./where | cat | ./with_its_own | ./set_id | cat";
    let arguments = ["run", "--align-buffers", "--stats", "--json", "r.json", text];
    let said = on("0.3", &lab, &arguments).expect_code(0).stderr;
    let stages = record(&lab.here("r.json")).stages;
    let words: Vec<_> =
        stages.iter().map(|stage| stage.align_buffers.as_deref().unwrap_or_default()).collect();
    let own = "as it is: it has an allocator of its own";
    let privileged = "as it is: glibc ignores its variable in a set-user-ID program";
    assert_eq!(words, ["by GLIBC_TUNABLES", "by GLIBC_TUNABLES", own, privileged, "by GLIBC_TUNABLES"]);
    assert!(said.contains(&format!("hosepipe: buffers: with_its_own: {own}\n")), "{said}");
    assert!(!said.contains("buffers: cat"), "{said}");
    if compile(&lab, "where", WHERE, &["-static"]) {
        let said = on("0.3", &lab, &["run", "--align-buffers", "./where | cat"]).stderr;
        assert!(said.contains("buffers: where: as it is: it is linked statically"), "{said}");
    }
    let said = on(EVEN, &lab, &["run", "--align-buffers", "./where | cat"]).stderr;
    assert!(said.contains("--align-buffers changes nothing: this CPU"), "{said}");
}

/// Expected: every pipeline with and without, and the memory of both.
#[test]
fn compare_runs_each_with_and_without() {
    let Some(lab) = lab() else { return };
    let compare = |machine, via: &str| {
        let options = ["compare", "--align-buffers", "--trials", "2", "--via", via, "--json", "c.json"];
        let shown = on(machine, &lab, &[&options[..], &["./where | cat"]].concat()).expect_code(0);
        let text = std::fs::read(lab.here("c.json")).expect("a record");
        (serde_json::from_slice::<CompareRecord>(&text).expect("JSON").results, shown.stdout)
    };
    for via in ["shell", "pipe"] {
        let (results, shown) = compare("0.3", via);
        assert_eq!((results.len(), shown.contains("memory")), (2, true), "{via}: {shown}");
        assert_eq!(results[1].pipeline, "./where | cat # align-buffers=yes");
        assert!(results.iter().all(|result| result.error.is_none() && result.max_rss_bytes > Some(0)));
        assert_ne!(results[0].output_hash, results[1].output_hash, "{via}: the block lies elsewhere");
        let (results, shown) = compare(EVEN, via);
        assert_eq!((results.len(), shown.contains("memory")), (1, false), "{via}: {shown}");
    }
}

/// Expected: of a program that runs already it is said that nothing can be changed, and the line to start it with.
#[test]
fn boost_of_a_process_says_what_it_cannot_change() {
    let Some(lab) = lab() else { return };
    for (machine, says) in [("0.3", true), (EVEN, false)] {
        let mut reader = Command::new("./copies");
        reader.args(["r", "16"]).current_dir(lab.here("")).stdin(Stdio::piped());
        let mut reader = reader.spawn().expect("started");
        let pid = reader.id().to_string();
        let mut command = lab.command(&["boost", "--pid", &pid]);
        command.env(MACHINE, machine);
        let boost = lab.start(command);
        let folder = format!("/proc/{}/fd", boost.pid());
        until("boost watches it", soon(), || {
            let mut open = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let is_pidfd = |path: std::path::PathBuf| path.to_string_lossy().contains("pidfd");
            open.any(|entry| std::fs::read_link(entry.path()).is_ok_and(is_pidfd)).then_some(())
        });
        std::thread::sleep(Duration::from_millis(300));
        drop(reader.stdin.take());
        let done = boost.wait_within(soon()).expect_code(0);
        reader.wait().expect("ended");
        let words = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected =
            format!("Process {pid} keeps a buffer 16 bytes into a page, where this CPU copies slowly.");
        assert_eq!(words.contains(&expected), says, "{words}");
        assert_eq!(words.contains("hosepipe boost ./copies r 16"), says, "{words}");
    }
}
