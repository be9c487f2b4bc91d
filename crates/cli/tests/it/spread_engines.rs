//! `hosepipe spread --on slurm|spark`, by a real Slurm of two nodes and a real Spark of two executors.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::common::programs::script;
use crate::common::slurm::Slurm;
use crate::common::{Done, HANGS_AFTER, Lab, files_in, full, signal, skip, soon, until};
use crate::spread::{by_bash, lab};

/// How long Spark may take to see that it shall end, on a busy machine.
const SPARK_ENDS_WITHIN: Duration = Duration::from_secs(60);

/// A hundred files of one line, their number.
fn hundred(lab: &Lab) {
    for number in 0..100 {
        fs::write(lab.here(&format!("p{number:03}")), format!("{number}\n")).expect("written");
    }
}

/// Of them one fails, until it is mended.
const ONE_FAILS: &str =
    r#"read -r n; [ -e mended ] || [ "$n" != 37 ] || { echo boo >&2; exit 3; }; echo "$n""#;

fn on_slurm(slurm: &Slurm, lab: &Lab, args: &[&str]) -> Command {
    let mut command = lab.command(&[&["spread", "--on", "slurm"], args].concat());
    command.env("SLURM_CONF", slurm.configuration());
    command
}

fn contains(done: &Done, words: &[&str]) {
    for word in words {
        assert!(done.stderr.contains(word), "no `{word}` in {}", done.stderr);
    }
}

#[test]
fn slurm_gives_what_bash_gives_and_what_is_printed_can_be_run() {
    let Some(slurm) = Slurm::start("") else { return };
    let lab = lab();
    let text = "sort -n | uniq -c";
    let expected = by_bash(&lab, &format!("cat in1 in2 in3 in4 in5 | {text}"));
    let args = ["--map", text, "--split", "20k", "in1", "in2", "in3", "in4", "in5", "--work"];
    let printed = lab.finish(on_slurm(&slurm, &lab, &[&args[..], &["w"]].concat())).expect_code(0);
    contains(&printed, &["To run it: bash ", "slurm.sh"]);
    fs::write(lab.here("by-hand"), &printed.stdout).expect("written");
    let mut by_hand = Command::new("bash");
    by_hand.arg("by-hand").current_dir(lab.here("")).env("SLURM_CONF", slurm.configuration());
    let by_hand = by_hand.output().expect("bash");
    assert!(by_hand.status.success(), "{by_hand:?}");
    assert_eq!(fs::read_to_string(lab.here("w/reduced")).expect("what it wrote"), expected);
    let more = ["v", "--submit", "--stats", "--json", "r.json"];
    let done = lab.finish(on_slurm(&slurm, &lab, &[&args[..], &more].concat())).expect_code(0);
    assert_eq!(done.stdout, expected);
    contains(&done, &["partitions together", "sort -n"]);
    let record = fs::read_to_string(lab.here("r.json")).expect("a record");
    assert!(record.contains("\"partitions\""), "{record}");
}

#[test]
fn on_slurm_one_partition_of_a_hundred_fails_and_the_others_are_kept() {
    let Some(slurm) = Slurm::start("") else { return };
    let lab = lab();
    hundred(&lab);
    let args = ["--submit", "--work", "w", "--map", ONE_FAILS, "--reduce", "cat; exit 7", "p???"];
    let more = ["--keep-going", "--retries", "1", "--json", "r.json"];
    let done = lab.finish(on_slurm(&slurm, &lab, &[&args[..], &more].concat())).expect_code(1);
    assert_eq!(done.stdout, "");
    contains(
        &done,
        &["partition 38 of 100 (", "p037) exited with 3: boo", "99 of 100 partitions are finished"],
    );
    contains(&done, &["nothing was reduced", "--resume"]);
    let record = fs::read_to_string(lab.here("r.json")).expect("a record");
    assert!(record.contains("\"partitions\": 100"), "{record}");
    fs::write(lab.here("mended"), "").expect("written");
    let done = lab.finish(on_slurm(&slurm, &lab, &[&args[..], &["--resume"]].concat())).expect_code(7);
    assert_eq!(done.stdout, by_bash(&lab, "seq 0 99"));
    assert_eq!(fs::read_to_string(lab.here("w/left")).expect("what was left"), "37\n");
}

/// Expected: one job with a task for each CPU, whatever the number of partitions. How long it took is said: with real sizes they are 10,000.
#[test]
fn on_slurm_many_short_partitions_are_one_job() {
    let Some(slurm) = Slurm::start("") else { return };
    let lab = lab();
    let count = if full() { 10_000 } else { 200 };
    by_bash(&lab, &format!("seq -w {count} > lines"));
    let split = count.to_string().len().to_string();
    let args = ["--submit", "--map", "sleep 0.001; cat", "--reduce", "cat", "--split", &split, "--work", "w"];
    let done = lab.finish(on_slurm(&slurm, &lab, &[&args[..], &["lines"]].concat())).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "cat lines"));
    eprintln!("{count} partitions through Slurm: {:.1} s", done.elapsed.as_secs_f64());
    let files = files_in(&lab.here("w"));
    let count_of = |end: &str| files.iter().filter(|name| name.ends_with(end)).count();
    assert_eq!((count_of(".out"), count_of(".results")), (count, 2), "a file for each task");
    assert!(files.len() < count + 20, "{}", files.len());
}

#[test]
fn on_slurm_an_interruption_cancels_and_keeps() {
    let Some(slurm) = Slurm::start("") else { return };
    let lab = lab();
    let map = "[ -e done ] && { echo $$ > slow; sleep 1000; }; touch done; cat";
    let args = ["--submit", "-j", "1", "--work", "w", "--map", map, "--reduce", "cat", "in1", "in2"];
    let running = lab.start(on_slurm(&slurm, &lab, &args));
    until("the second partition", HANGS_AFTER, || {
        fs::metadata(lab.here("slow")).ok().filter(|file| file.len() > 0)
    });
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(2 * soon()).expect_code(130);
    contains(&done, &["1 of 2 partitions are finished", "stopped"]);
    let queue = slurm.client("squeue").arg("-h").output().expect("squeue");
    assert_eq!(String::from_utf8_lossy(&queue.stdout), "");
    fs::remove_file(lab.here("done")).expect("removed");
    let done = lab.finish(on_slurm(&slurm, &lab, &[&args[..], &["--resume"]].concat())).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "cat in1 in2"));

    // By hand.
    let args =
        ["spread", "--on", "slurm", "-j", "1", "--work", "hand", "--map", map, "--reduce", "cat", "in1"];
    lab.run(&args).expect_code(0);
    fs::remove_file(lab.here("slow")).expect("removed");
    let mut by_hand = Command::new("bash");
    by_hand.arg("hand/slurm.sh").current_dir(lab.here("")).env("SLURM_CONF", slurm.configuration());
    let mut by_hand = by_hand.process_group(0).spawn().expect("bash");
    until("the partition", HANGS_AFTER, || fs::metadata(lab.here("slow")).ok().filter(|file| file.len() > 0));
    let group = Pid::from_child(&by_hand);
    kill_process_group(group, Signal::INT).expect("sent");
    assert_eq!(by_hand.wait().expect("waited for").code(), Some(130));
    let queue = slurm.client("squeue").arg("-h").output().expect("squeue");
    assert_eq!(String::from_utf8_lossy(&queue.stdout), "");

    // An input that vanishes, a folder that only we can see, and a queue that is not there.
    let args =
        ["--submit", "-j", "1", "--work", "v", "--map", "rm -f in5; cat", "--reduce", "cat", "in1", "in5"];
    let done = lab.finish(on_slurm(&slurm, &lab, &args)).expect_code(1);
    contains(&done, &["in5) could not be run", "ENOENT", "1 of 2"]);
    let args = ["spread", "--on", "slurm", "--submit", "--work", "/dev/fd/9/u", "--map", "wc", "in1"];
    let mut command = lab.wrapped(&["sh", "-c", "exec 9<.; exec \"$@\"", "sh"], &args);
    command.env("SLURM_CONF", slurm.configuration());
    let done = lab.finish(command).expect_code(1);
    contains(&done, &["partition 1 of 1 (", "a node does not see the folder"]);
    let args = ["--submit", "--work", "t", "--map", "wc", "in1", "--engine-option=--partition=nowhere"];
    let done = lab.finish(on_slurm(&slurm, &lab, &args)).expect_code(1);
    contains(&done, &["was not run to its end", "invalid partition"]);
}

/// Happened: Ctrl-C also ended the `squeue` of that moment, whose silence was taken for the end of the job, which went on.
#[test]
fn an_interruption_of_squeue_too_cancels_the_job() {
    for shell in ["bash", "sh"] {
        let lab = lab();
        let squeue = "if [ -e cancelled ]; then echo CANCELLED; else kill -INT 0; sleep 10; fi";
        for (name, does) in [("sbatch", "echo 7"), ("squeue", squeue), ("scancel", "echo $1 > cancelled")] {
            script(&lab, name, &format!("#!/bin/bash\n{does}\n"));
        }
        let follows = include_str!("../../../remote/src/slurm.sh");
        let mut command = Command::new(shell);
        command.args(["-c", follows, shell, "log"]).current_dir(lab.here("")).process_group(0);
        let path = std::env::var("PATH").expect("a PATH");
        command.env("PATH", format!("{}:{path}", lab.here("").display()));
        assert_eq!(command.status().expect("it runs").code(), Some(130), "{shell}");
        assert_eq!(fs::read_to_string(lab.here("cancelled")).expect("it was cancelled"), "7\n", "{shell}");
    }
}

/// Where Spark is: `None`, said on standard error, where it is not. Under `CI=true` that is a failure.
fn spark_home() -> Option<PathBuf> {
    let of_the_checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/spark/pyspark").into();
    let home = std::env::var_os("SPARK_HOME").map_or(of_the_checkout, PathBuf::from);
    let is_there = home.join("bin/spark-submit").is_file() && model::file_on_path("java").is_some();
    let found = is_there.then_some(home);
    if found.is_none() {
        let why = "no Spark: pip install --target target/spark pyspark, or SPARK_HOME, and Java 17";
        assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{why}");
        skip(why);
    }
    found
}

/// Three programs in Java at a time are enough.
fn one_spark() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Programs that end after seconds are not worth a second compilation.
const QUICK_JAVA: &str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// With two executors, which are processes of their own; nothing of it can be reached from elsewhere.
fn on_spark(home: &Path, lab: &Lab, args: &[&str]) -> Command {
    let executors = format!("spark.executor.extraJavaOptions={QUICK_JAVA}");
    let options =
        ["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false", "--conf", &executors];
    let options: Vec<String> = options.iter().map(|option| format!("--engine-option={option}")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let submit = ["spread", "--on", "spark", "--submit"];
    let mut command = lab.command(&[&submit[..], &options, args].concat());
    command
        .env("SPARK_HOME", home)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("SPARK_WORKER_DIR", lab.here("spark"));
    command.env("SPARK_LOCAL_DIRS", lab.here("spark")).env("SPARK_SUBMIT_OPTS", QUICK_JAVA);
    command
}

#[test]
fn spark_gives_what_bash_gives() {
    let Some(home) = spark_home() else { return };
    let _turn = one_spark();
    let lab = lab();
    fs::write(lab.here("first"), "head -n 100").expect("written");
    let url = format!("file://{}", lab.here("in2").display());
    // The variables and the folder are ours; of a URL Spark reads the bytes.
    let map = ". ./first | sed \"s/$/ $MARK/\"";
    let args =
        ["--work", "w", "--map", map, "--reduce", "cat; exit 7", "--json", "r.json", "in5", &url, "in1"];
    let mut command = on_spark(&home, &lab, &args);
    command.env("MARK", "it's \"so\"");
    let done = lab.finish(command).expect_code(7);
    let expected = "(head -n 100 in5; cat in2; head -n 100 in1) | sed \"s/$/ it's \\\"so\\\"/\"";
    assert_eq!(done.stdout, by_bash(&lab, expected));
    let record = fs::read_to_string(lab.here("r.json")).expect("a record");
    assert!(record.contains("\"partitions\": 3") && record.contains("\"status\": 7"), "{record}");
}

#[test]
fn on_spark_one_partition_of_a_hundred_fails_and_the_others_are_kept() {
    let Some(home) = spark_home() else { return };
    let _turn = one_spark();
    let lab = lab();
    hundred(&lab);
    let args =
        ["--work", "w", "--map", ONE_FAILS, "--reduce", "cat", "--keep-going", "--retries", "1", "p???"];
    let done = lab.finish(on_spark(&home, &lab, &args)).expect_code(1);
    assert_eq!(done.stdout, "");
    contains(
        &done,
        &["partition 38 of 100 (", "p037) exited with 3: boo", "99 of 100 partitions are finished"],
    );
    fs::write(lab.here("mended"), "").expect("written");
    // Another engine may go on.
    let done = lab.run(&[&["spread", "--resume"], &args[..]].concat()).expect_code(0);
    assert_eq!(done.stdout, by_bash(&lab, "seq 0 99"));
}

#[test]
fn on_spark_an_interruption_keeps_what_is_finished_and_leaves_nothing() {
    let Some(home) = spark_home() else { return };
    let _turn = one_spark();
    let lab = lab();
    fs::write(lab.here("stuck"), "stuck\n").expect("written");
    let map = "read -r line; [ \"$line\" != stuck ] || { echo $$ > slow; sleep 1000; }; cat";
    let args = ["--work", "w", "--map", map, "--reduce", "cat", "in1", "stuck", "in4"];
    let running = lab.start(on_spark(&home, &lab, &args));
    until("a partition", HANGS_AFTER, || fs::metadata(lab.here("slow")).ok().filter(|file| file.len() > 0));
    until("the others", HANGS_AFTER, || fs::metadata(lab.here("w/000003.out")).ok());
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(SPARK_ENDS_WITHIN).expect_code(130);
    contains(&done, &["of 3 partitions are finished", "--resume"]);
}

/// Happened: with a master of local[N] each partition was tried once, whatever --retries said, and --keep-going did nothing.
#[test]
fn on_spark_without_a_cluster_attempts_count_too() {
    let Some(home) = spark_home() else { return };
    let _turn = one_spark();
    let lab = lab();
    let map = "read -r n; echo >> tried-${n%% *}; [ $(wc -l < tried-${n%% *}) = 2 ]";
    let args = ["--engine-option=--master=local[2]", "--work", "w", "--reduce", "cat", "--keep-going"];
    let words = ["--map", map, "--retries", "1", "in1", "in2", "in4", "in5"];
    let done = lab.finish(on_spark(&home, &lab, &[&args[..], &words].concat())).expect_code(0);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
    let words = ["--map", "grep -c word", "in3", "in1", "in2"];
    let done =
        lab.finish(on_spark(&home, &lab, &[&args[..1], &["--work", "v"], &args[3..], &words].concat()));
    contains(&done.expect_code(1), &["partition 1 of 3 (", "2 of 3 partitions are finished"]);
}

/// Happened: `./pyspark.py` was run to find out where Spark is.
#[test]
fn pyspark_is_not_looked_for_in_the_folder_that_one_is_in() {
    let lab = lab();
    let python = "python3 -c 'import sys; print(sys.executable)'";
    let links = format!("ln -s $(command -v bash) bin; ln -s $({python}) bin/python3");
    by_bash(&lab, &format!("mkdir -p bin lib/pyspark/bin; {links}"));
    fs::write(lab.here("pyspark.py"), "open('ran', 'w')\n").expect("written");
    let run = |variable: &str| {
        let words = ["spread", "--on", "spark", "--submit", "--work", "w", "--map", "wc", "in1"];
        let mut command = lab.command(&words);
        command.env("PATH", lab.here("bin")).env_remove("SPARK_HOME").env("PYTHONPATH", variable);
        lab.finish(command)
    };
    contains(&run("").expect_code(2), &["pip install pyspark"]);
    assert!(!lab.here("ran").exists(), "code in the folder was run");
    fs::write(lab.here("lib/pyspark/__init__.py"), "").expect("written");
    let submit = lab.here("lib/pyspark/bin/spark-submit");
    fs::write(&submit, "#!bin/bash\necho found by PYTHONPATH; exit 1\n").expect("written");
    fs::set_permissions(&submit, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
    contains(&run("lib").expect_code(1), &["found by PYTHONPATH"]);
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let lab = lab();
    fs::create_dir(lab.here("bin")).expect("made");
    let bash = model::file_on_path("bash").expect("bash");
    std::os::unix::fs::symlink(bash, lab.here("bin/bash")).expect("linked");
    for (args, words) in [
        (&["--on", "slurm", "--submit", "--work", "w", "--map", "wc", "in1"][..], "slurm-client"),
        (&["--on", "spark", "--submit", "--work", "w", "--map", "wc", "in1"], "pip install pyspark"),
        (&["--on", "slurm", "--map", "wc", "in1"], "--work DIR"),
        (&["--on", "slurm", "--work", "a\nb", "--map", "wc", "in1"], "holds a control character"),
        (&["--on", "slurm", "--work", "w", "--json", "r", "--map", "wc", "in1"], "need --submit"),
        (&["--on", "spark", "--work", "w", "--stats", "--map", "wc", "in1"], "need --submit"),
        (&["--submit", "--map", "wc", "in1"], "--on slurm"),
        (&["--on", "moon", "--map", "wc", "in1"], "slurm"),
        (&["--on", "slurm", "--work", "w", "--map", "wc", "s3a://bucket/in1"], "--on spark"),
        (&["--on", "spark", "--work", "w", "--split", "1k", "--map", "wc", "s3a://bucket/in1"], "--split"),
        (&["--on", "spark", "--work", "w", "--map", "wc", "no*"], "no file matches"),
        (&["--on", "spark", "--work", "w", "--map", "wc"], "INPUT"),
    ] {
        let mut command = lab.command(&[&["spread"], args].concat());
        command.env("PATH", lab.here("bin")).env_remove("SPARK_HOME");
        let done = lab.finish(command).expect_code(2);
        assert!(done.stderr.contains(words), "{args:?}: no `{words}` in {}", done.stderr);
    }
}

#[test]
fn another_version_of_hosepipe_is_told() {
    let lab = lab();
    let args = ["spread", "--on", "spark", "--work", "w", "--map", "wc", "in1", "s3a://bucket/in2"];
    let printed = lab.run(&args).expect_code(0);
    assert!(
        printed.stdout.contains("sc.parallelize(") && !printed.stdout.contains('\r'),
        "{}",
        printed.stdout
    );
    let plan = fs::read_to_string(lab.here("w/plan.jsonl")).expect("a plan");
    let other = plan.replace("\"version\":\"", "\"version\":\"9");
    assert_ne!(plan, other);
    fs::write(lab.here("w/plan.jsonl"), other).expect("written");
    for part in [&["__part", "w", "0"][..], &["__part", "w"]] {
        let done = lab.run(part).expect_code(125);
        contains(&done, &["the work was started by hosepipe 9"]);
    }
    let done = lab.run(&[&args[..], &["--resume"]].concat()).expect_code(2);
    contains(&done, &["another version of hosepipe"]);
    let done = lab.run(&["__part", "nowhere", "0"]).expect_code(125);
    contains(&done, &["ENOENT", "every node"]);
}
