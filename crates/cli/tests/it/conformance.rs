//! Every mechanism of the registry × block sizes around a page and a pipe × who holds the ends × workload ×
//! data level: figures that agree with each other, or a reason that was to be expected. Nothing else.
//!
//! Smoke sizes by default; `HOSEPIPE_TEST_FULL=1` moves enough to wrap every buffer many times over.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{self, Done, Entry, Lab, full, is_root, registry};
use model::{
    BenchRecord, CaseError, CaseRecord, Check, DataLevel, ErrorKind, PayloadKind, Placement, Record, Tasks,
    Wait, Workload,
};
use payload::{Period, Tile, expected_checksum};

const BLOCKS: &str = "1,4095,4096,65536,65537";
const BLOCK_COUNT: usize = 5;

/// Blocks of a trial: enough that the payload's period and a pipe's buffer wrap.
fn count() -> &'static str {
    if full() { "1000" } else { "9" }
}

/// The seed of the runs when `--seed` is not given.
const SEED: u64 = 1;

/// Checks everything that must hold of a record, whatever was measured.
fn assert_sound(record: &BenchRecord, text: &str) {
    let kept: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let record_again = serde_json::to_value(Record::from(record.clone())).expect("JSON");
    assert_eq!(record_again, kept, "the record is what the model says");
    for case in &record.cases {
        let mut again = CaseRecord { throughput: None, latency_ns: None, noise: None, ..case.clone() };
        stats::summarise(&mut again, stats::Analyses::Once).expect("the histograms read back");
        assert_eq!(&again, case, "the summary follows from the samples");
        match &case.error {
            Some(error) => {
                assert!(error.expected, "{}: {error:?}", name(case));
                assert!(is_a_limit(case) || error.kind != ErrorKind::Limit, "{}: {error:?}", name(case));
                assert!(error.remedy.is_some(), "{}: no remedy: {error:?}", name(case));
                assert!(case.samples.is_empty(), "{}: samples and an error", name(case));
            }
            None => {
                assert_eq!(case.samples.len(), record.settings.trials as usize, "{}", name(case));
                case.samples.iter().for_each(|sample| assert_sample(case, sample));
            }
        }
    }
}

fn assert_sample(case: &CaseRecord, sample: &model::Sample) {
    let name = name(case);
    let ends = if case.tasks == Tasks::Single { 1 } else { 2 };
    assert!(sample.elapsed_ns > 0, "{name}: {sample:?}");
    assert_eq!(sample.bytes, sample.messages * case.block_bytes, "{name}: {sample:?}");
    assert!(sample.messages > 0, "{name}: {sample:?}");
    assert_eq!(sample.ends.len(), ends, "{name}: {sample:?}");
    assert_eq!(case.check.is_some(), case.data == DataLevel::Verify, "{name}");
    assert_eq!(sample.checksum.is_some(), case.data == DataLevel::Verify, "{name}: {sample:?}");
    assert_eq!(sample.latency_histogram.is_some(), case.workload == Workload::PingPong, "{name}");
    assert_eq!(case.latency_ns.is_some(), case.workload == Workload::PingPong, "{name}");
    assert_eq!(case.throughput.is_some(), case.workload == Workload::Stream, "{name}");
    let sum = |of: fn(&model::EndUsage) -> u64| sample.ends.iter().map(of).sum::<u64>();
    assert_eq!(sample.voluntary_switches, sum(|end| end.voluntary_switches), "{name}");
    assert_eq!(sample.user_ns, sum(|end| end.user_ns), "{name}");
    assert_eq!(sample.system_ns, sum(|end| end.system_ns), "{name}");
    if let Some(latency) = &case.latency_ns {
        let trips = case.samples.iter().map(|sample| sample.messages).sum::<u64>();
        assert_eq!(latency.count, trips, "{name}: every round trip is in the histogram");
    }
    if let Some(found) = &sample.checksum {
        assert_eq!(found, &oracle(case, sample.messages), "{name}: the checksum of the payload itself");
    }
}

/// What the payload's checksum must be, whichever way it went.
fn oracle(case: &CaseRecord, messages: u64) -> String {
    // One task that does round trips takes the bytes in on both sides.
    let both_ways = case.workload == Workload::PingPong && case.tasks == Tasks::Single;
    let bytes = messages * case.block_bytes * if both_ways { 2 } else { 1 };
    let tile = Tile::make(&case.payload, SEED, Period::Bench).expect("the payload");
    expected_checksum(&tile, case.check.unwrap_or(Check::Xxh3), bytes, &|| false)
        .expect("nobody asked to stop")
}

/// Whether a limit forbids this case: nothing else may be called a limit.
fn is_a_limit(case: &CaseRecord) -> bool {
    let kernel = |path: &str| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/sys/{path}")).unwrap_or_default();
        text.trim().parse().unwrap_or(u64::MAX)
    };
    let block = case.block_bytes;
    let is_of_locked_memory = |error: &CaseError| error.message.contains("RLIMIT_MEMLOCK");
    match case.mechanism.as_str() {
        // An ordinary user may lock little memory, and another test has some of it.
        "io-uring" if !is_root() && case.error.as_ref().is_some_and(is_of_locked_memory) => true,
        "pipe" | "splice"
            if case.spec.to_string().contains("send=vmsplice") && model::vmsplice_refusal().is_some() =>
        {
            true
        }
        "sysv-msgq" => block > kernel("kernel/msgmax").min(kernel("kernel/msgmnb")),
        "posix-mq" => block > kernel("fs/mqueue/msgsize_max"),
        // One task that sends a block before it receives needs room for the whole block.
        _ if case.tasks == Tasks::Single => block >= 4096,
        // What says of itself that a block has a limit may meet it, at sizes that a page does not reach.
        _ => block > 4096 && says_that_blocks_have_a_limit(case),
    }
}

fn says_that_blocks_have_a_limit(case: &CaseRecord) -> bool {
    let (mechanism, _) = mechanism::resolve(&case.spec).expect("the record's spec is known");
    mechanism.limits.contains("block")
}

fn name(case: &CaseRecord) -> String {
    format!(
        "{} {} of {} B, {}, wait {}, data {}",
        case.spec, case.workload, case.block_bytes, case.tasks, case.wait, case.data
    )
}

/// Measures all specs at all block sizes, and checks the record.
fn measure(lab: &Lab, specs: &[String], more: &[&str]) -> BenchRecord {
    // With floor and ceiling among the specs nothing of adaptive length is added.
    let mut args = vec!["null", "memcpy"];
    args.extend(specs.iter().map(String::as_str).filter(|spec| !["null", "memcpy"].contains(spec)));
    args.extend(["--trials", "1"]);
    if !more.contains(&"--block") {
        args.extend(["--block", BLOCKS]);
    }
    if !more.contains(&"--count") {
        args.extend(["--count", count()]);
    }
    args.extend(more);
    let done: Done = lab.bench(&args).expect_code(0);
    let record = done.record();
    assert_sound(&record, &done.stdout);
    record
}

fn names(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.name.clone()).collect()
}

/// Every mechanism has a case for each workload and block size.
fn assert_complete(record: &BenchRecord, entries: &[Entry]) {
    for entry in entries {
        for workload in &entry.workloads {
            let of_it = |case: &&CaseRecord| case.mechanism == entry.name && case.workload == *workload;
            let blocks: BTreeSet<u64> =
                record.cases.iter().filter(of_it).map(|case| case.block_bytes).collect();
            assert_eq!(blocks.len(), BLOCK_COUNT, "{} {workload}", entry.name);
        }
    }
}

fn every_case_with(tasks: &str) {
    let lab = Lab::new();
    let entries = registry(&lab);
    for data in ["none", "write", "verify"] {
        let record = measure(&lab, &names(&entries), &["--tasks", tasks, "--data", data]);
        assert_complete(&record, &entries);
        for case in record.cases.iter().filter(|case| case.role == model::Role::Ranked) {
            assert_eq!(case.data.word(), data, "{}", name(case));
            assert_eq!(case.tasks.word(), tasks, "{}", name(case));
        }
    }
}

#[test]
fn every_mechanism_moves_every_block_size_between_two_processes() {
    every_case_with("processes");
}

#[test]
fn every_mechanism_moves_every_block_size_between_two_threads() {
    every_case_with("threads");
}

#[test]
fn every_mechanism_moves_every_block_size_within_one_task_or_says_that_it_would_wait_for_itself() {
    every_case_with("single");
}

#[test]
fn every_way_of_waiting_works_and_the_others_are_refused_by_name() {
    let lab = Lab::new();
    for tasks in [Tasks::Processes, Tasks::Threads] {
        let mut entries = registry(&lab);
        entries.retain(|entry| entry.tasks.contains(&tasks));
        for wait in Wait::ALL {
            // An end waits in the same way whatever the size, as long as one fits in a buffer and one does not.
            let more = ["--wait", wait.word(), "--tasks", tasks.word(), "--block", "1,65537"];
            let record = measure(&lab, &names(&entries), &more);
            for case in record.cases.iter().filter(|case| case.role == model::Role::Ranked) {
                assert_eq!(case.wait, *wait, "{}", name(case));
                let entry = entries.iter().find(|entry| entry.name == case.mechanism).expect("registered");
                let refused = case.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Unsupported);
                assert_eq!(refused, !entry.waits.contains(wait), "{}: {:?}", name(case), case.error);
            }
        }
    }
}

#[test]
fn a_workload_that_a_mechanism_does_not_run_is_a_row_with_the_reason() {
    let lab = Lab::new();
    let entries = registry(&lab);
    for workload in Workload::ALL {
        let record = measure(&lab, &names(&entries), &["--workload", workload.word()]);
        for entry in &entries {
            let mut of_it = record.cases.iter().filter(|case| case.mechanism == entry.name).peekable();
            assert!(of_it.peek().is_some(), "{} has no row", entry.name);
            let unsupported = |case: &CaseRecord| {
                case.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Unsupported)
            };
            assert!(
                of_it.all(|case| unsupported(case) != entry.workloads.contains(workload)),
                "{}",
                entry.name
            );
        }
    }
}

/// Values to try for an option, from its shape in the list; a new shape must be added here.
fn values_of(entry: &Entry, option: &common::OptionEntry, folder: &str) -> Vec<Option<String>> {
    match option.value.as_str() {
        "" => vec![None],
        "DIR" => vec![Some(folder.to_owned())],
        // Message queues hold little, and there is no telling whether this user may have more.
        "SIZE" if entry.name.contains("msgq") => vec![Some("4096".into()), Some("8192".into())],
        "SIZE" => vec![Some("4096".into()), Some("100000".into()), Some("1MiB".into())],
        choice if choice.contains('|') => choice.split('|').map(|word| Some(word.to_owned())).collect(),
        other => panic!("{}:{}: how is {other} to be tried?", entry.name, option.name),
    }
}

#[test]
fn every_option_of_every_mechanism_works() {
    let lab = Lab::new();
    let folder = lab.here("elsewhere");
    std::fs::create_dir(&folder).expect("mkdir");
    let folder = folder.to_str().expect("a plain path");
    let mut specs = Vec::new();
    for entry in registry(&lab) {
        for option in &entry.options {
            let spec = |value: Option<String>| match value {
                Some(value) => format!("{}:{}={value}", entry.name, option.name),
                None => format!("{}:{}", entry.name, option.name),
            };
            specs.extend(values_of(&entry, option, folder).into_iter().map(spec));
        }
        let all: Vec<String> = entry
            .options
            .iter()
            .map(|option| match values_of(&entry, option, folder).pop().flatten() {
                Some(value) => format!("{}={value}", option.name),
                None => option.name.clone(),
            })
            .collect();
        if all.len() > 1 {
            specs.push(format!("{}:{}", entry.name, all.join(",")));
        }
    }
    assert!(specs.len() > 15, "{specs:?}");
    // Few: TCP with small buffers waits for its delayed acknowledgement, 40 ms a block, and a disk for each write. The payload's
    // period, two of the largest blocks, wraps in four.
    let record = measure(&lab, &specs, &["--count", "4"]);
    for spec in &specs {
        let spec: model::Spec = spec.parse().expect("a spec");
        // All options at once may contradict each other, which is a row with a remedy.
        let of_it = record.cases.iter().filter(|case| case.spec == spec && spec.options.len() == 1);
        let unmeasured: Vec<_> = of_it
            .filter(|case| {
                let error = case.error.as_ref();
                // An option that means nothing without another says which.
                error.is_some_and(|error| error.kind != ErrorKind::Unsupported)
                    && !is_a_limit_of_a_small_queue(case)
            })
            .map(name)
            .collect();
        assert!(unmeasured.is_empty(), "{unmeasured:?}");
    }
    assert_eq!(common::files_in(&lab.here("elsewhere")), Vec::<String>::new());
}

/// A queue made smaller by `size=` holds smaller blocks.
fn is_a_limit_of_a_small_queue(case: &CaseRecord) -> bool {
    is_a_limit(case) || case.mechanism == "sysv-msgq" && case.block_bytes > 4096
}

#[test]
fn sizes_are_read_back_as_granted_and_not_as_asked() {
    let lab = Lab::new();
    let args = ["pipe", "pipe:size=100000", "pipe:size=1", "fifo:size=100000", "shm-ring:size=100000"];
    let more = ["shm-ring", "socketpair:sndbuf=50000,rcvbuf=60000", "unix-stream:sndbuf=50000"];
    let queues = ["tcp:sndbuf=50000,rcvbuf=60000", "sysv-msgq:size=8192", "posix-mq", "null", "memcpy"];
    let amount = ["--block", "512", "--count", "4", "--trials", "1", "--workload", "stream"];
    let record = lab.bench(&[&args[..], &more, &queues, &amount].concat()).expect_code(0).record();
    let granted = |spec: &str, size: &str| {
        let case = record.cases.iter().find(|case| case.spec.to_string() == spec).expect(spec);
        *case.granted.get(size).unwrap_or_else(|| panic!("{spec}: no {size} in {:?}", case.granted))
    };
    assert_eq!(granted("pipe", "pipe_bytes"), 65536);
    assert_eq!(granted("pipe:size=100000", "pipe_bytes"), 131_072);
    assert_eq!(granted("pipe:size=1", "pipe_bytes"), 4096);
    assert_eq!(granted("fifo:size=100000", "pipe_bytes"), 131_072);
    assert_eq!(granted("shm-ring:size=100000", "ring_bytes"), 131_072);
    assert_eq!(granted("shm-ring", "ring_bytes"), 1 << 20);
    for spec in ["socketpair:rcvbuf=60000,sndbuf=50000", "tcp:rcvbuf=60000,sndbuf=50000"] {
        assert_eq!(granted(spec, "sndbuf_bytes"), 100_000, "socket(7): the kernel doubles it");
        assert_eq!(granted(spec, "rcvbuf_bytes"), 120_000, "socket(7): the kernel doubles it");
    }
    assert_eq!(granted("unix-stream:sndbuf=50000", "sndbuf_bytes"), 100_000);
    assert_eq!(granted("sysv-msgq:size=8192", "queue_bytes"), 8192);
    let messages = granted("posix-mq", "queue_messages");
    assert_eq!(granted("posix-mq", "queue_bytes"), 512 * messages);
}

#[test]
fn one_payload_has_one_checksum_whatever_carried_it() {
    let lab = Lab::new();
    let file = lab.here("payload");
    let mut bytes = vec![0u8; 65_537];
    fastrand::Rng::with_seed(7).fill(&mut bytes);
    std::fs::write(&file, &bytes).expect("write");
    let own = format!("file:{}", file.display());
    let entries = registry(&lab);
    // Each payload with one check, and each check with one payload: neither knows the other.
    let payloads = ["sequence", "printable", "random", "zero", own.as_str()];
    let first = payloads.map(|payload| (payload, Check::Xxh3));
    let others = Check::ALL.iter().filter(|check| **check != Check::Xxh3).map(|check| ("random", *check));
    for (payload, check) in first.into_iter().chain(others) {
        let more = ["--payload", payload, "--check", check.word()];
        let record = measure(&lab, &names(&entries), &more);
        // By what was checked: the bytes that came, and both ways where one task holds all four ends.
        let mut sums: BTreeMap<(u64, bool), BTreeSet<String>> = BTreeMap::new();
        for case in record.cases.iter().filter(|case| case.data == DataLevel::Verify) {
            assert_eq!((case.check, case.payload.to_string()), (Some(check), payload.to_owned()));
            let both_ways = case.workload == Workload::PingPong && case.tasks == Tasks::Single;
            for sample in &case.samples {
                let sums = sums.entry((sample.bytes, both_ways)).or_default();
                sums.insert(sample.checksum.clone().expect("checked"));
            }
        }
        assert_eq!(sums.len(), BLOCK_COUNT);
        assert!(sums.values().all(|sums| sums.len() == 1), "{payload} {check}: {sums:?}");
    }
}

/// The checksum by XOR of one's own file, folded here from its bytes.
#[test]
fn the_users_own_file_is_what_is_moved() {
    let lab = Lab::new();
    std::fs::write(lab.here("abc"), b"abc").expect("write");
    let args =
        ["pipe", "shm-ring", "tmpfile", "memcpy", "null", "--block", "7", "--count", "3", "--trials", "1"];
    let own = ["--payload", "file:abc", "--check", "xor", "--workload", "stream", "--data", "verify"];
    let record = lab.bench(&[&args[..], &own].concat()).expect_code(0).record();
    let expected = (0..21).fold(0u8, |sum, index| sum ^ b"abc"[index % 3]);
    for case in record.cases.iter().filter(|case| case.mechanism != "null") {
        assert_eq!(case.payload, PayloadKind::File("abc".into()));
        assert_eq!(
            case.samples[0].checksum.as_deref(),
            Some(format!("{expected:02x}").as_str()),
            "{}",
            name(case)
        );
    }
}

#[test]
fn the_ends_sit_where_they_were_put() {
    let lab = Lab::new();
    let cpus = host::cpus();
    let [first, second, ..] = cpus.as_slice() else {
        return common::skip("there is one CPU");
    };
    let (a, b) = (first.id, second.id);
    let pair = format!("{b},{a}");
    for (place, placement, expected) in [
        ("same", Placement::Same, vec![a, a]),
        ("any", Placement::Any, vec![]),
        (pair.as_str(), Placement::Cpus(b, a), vec![b, a]),
    ] {
        let more = ["--place", place, "--tasks", "processes"];
        let record = measure(&lab, &["pipe".into(), "shm-ring".into()], &more);
        for case in record.cases.iter().filter(|case| case.role == model::Role::Ranked) {
            assert_eq!((case.placement, &case.cpus), (placement, &expected), "{}", name(case));
        }
        let record =
            measure(&lab, &["pipe".into(), "shm-ring".into()], &["--place", place, "--tasks", "single"]);
        for case in &record.cases {
            assert_eq!(case.cpus, expected[..expected.len().min(1)], "{}", name(case));
        }
    }
    let plan = lab.run(&["bench", "pipe", "--dry-run"]).expect_code(0).stdout;
    assert!(
        plan.contains(" any ") && plan.contains(" cross "),
        "the scheduler's choice beside pinned ends: {plan}"
    );
    let record = measure(&lab, &["pipe".into()], &["--place", "all"]);
    let there = Placement::NAMED.iter().filter(|placement| host::resolve(**placement, &cpus).is_ok());
    let found: BTreeSet<_> = record.cases.iter().map(|case| case.placement).collect();
    assert_eq!(found, there.copied().collect());
}

/// Expected: a long stream through a small buffer arrives whole (short writes, wraps, wake-ups lost).
#[test]
fn small_buffers_wrap_many_times() {
    let lab = Lab::new();
    let bytes = if full() { "1GiB" } else { "4MiB" };
    // With floor and ceiling among the specs nothing of adaptive length is added, and no time is needed to bound it: on a busy
    // machine a second was too short.
    let specs = [
        "null",
        "memcpy",
        "pipe:size=4096",
        "fifo:size=4096",
        "socketpair:sndbuf=5000",
        "tcp:rcvbuf=5000",
        "posix-mq",
    ];
    let rings = ["shm-ring:size=4096,wait=futex", "shm-ring:size=1,wait=futex", "sysv-msgq:size=8192"];
    let amount = ["--block", "7777", "--bytes", bytes, "--trials", "1", "--workload", "stream"];
    // A ring of one byte moves one byte a wake-up: it gets an amount of its own.
    let (large, mut tiny): (Vec<&str>, Vec<&str>) =
        [&specs[..], &rings].concat().into_iter().partition(|spec| !spec.contains("size=1,"));
    tiny.extend(["null", "memcpy"]);
    let done = lab.bench(&[&large[..], &amount].concat()).expect_code(0);
    assert_sound(&done.record(), &done.stdout);
    let amount = ["--block", "777", "--count", "4", "--trials", "1", "--workload", "stream"];
    let done = lab.bench(&[&tiny[..], &amount].concat()).expect_code(0);
    assert_sound(&done.record(), &done.stdout);
}

/// Expected: bytes in their order.
/// Happened: on a busy machine one trial in a hundred was corrupt. Requests linked into a chain were shown to the kernel's thread
/// one by one; it ran the first half as a chain of its own, beside the second.
#[test]
fn chains_of_requests_keep_their_order_also_before_the_kernels_thread() {
    let lab = Lab::new();
    let specs = ["null", "memcpy", "io-uring:sqpoll", "io-uring:depth=16,sqpoll"];
    let amount = ["--block", "1,4096", "--count", "33", "--trials", "40", "--workload", "stream"];
    let done = lab.bench(&[&specs[..], &amount].concat()).expect_code(0);
    assert_sound(&done.record(), &done.stdout);
}

/// Expected: one task that sends over TCP and then receives finds its bytes there, every time. The kernel
/// hands them over the loopback interface later when it is busy: that is not "would wait for itself".
#[test]
fn one_task_over_tcp_does_not_mistake_bytes_under_way_for_bytes_that_never_come() {
    let lab = Lab::new();
    let count = if full() { "200000" } else { "20000" };
    let amount = ["--tasks", "single", "--block", "4096", "--count", count, "--trials", "1"];
    let done = lab.bench(&[&["tcp"][..], &amount].concat()).expect_code(0);
    assert_sound(&done.record(), &done.stdout);
}
