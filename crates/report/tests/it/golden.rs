//! What people and programs read, kept as golden files: a change of a single character shows here.

use crate::mock::{Mock, Work, ordinary, record};
use model::{BenchRecord, CaseRecord, Check, DataLevel, ErrorKind, Placement, Record, Role, ZeroCopy};
use report::read::Loaded;
use report::{FORMATS, Style, advice};

pub(crate) fn plain(record: &BenchRecord, width: usize) -> String {
    shown(record, &Style { width, ..Style::default() })
}

pub(crate) fn shown(record: &BenchRecord, style: &Style) -> String {
    report::terminal(&Record::Bench(record.clone()), style, report::study::StudyView::unknown)
}

pub(crate) fn format(record: &BenchRecord, flag: &str) -> String {
    let format = FORMATS.iter().find(|format| format.flag == flag).expect("a registered format");
    let loaded = [Loaded::new("this run", record.clone())];
    (format.render)(&loaded, report::study::StudyView::unknown).expect("a sound record")
}

#[test]
fn ordinary_at_three_widths() {
    let record = record(ordinary());
    for width in [80, 120, 160] {
        let text = plain(&record, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width} columns: {line}");
        }
        insta::assert_snapshot!(format!("ordinary_{width}"), text);
    }
}

/// Expected: a whole number wherever it is known. Happened: "831.5", "0" where a trial had some, "–" where none had.
#[test]
fn what_was_sent_again_is_a_whole_number_wherever_it_is_known() {
    let shown = |spec: &str, counts: [u64; 2]| {
        let mock = Mock::stream(spec).gb_per_s(1.0, 2.0, Work::Copying);
        mock.with(|case| {
            case.samples.truncate(8);
            let counts = counts.into_iter().cycle();
            case.samples.iter_mut().zip(counts).for_each(|(sample, count)| sample.retransmits = Some(count));
        })
    };
    let cases = [("tcp", [831, 832]), ("tcp:nodelay=off", [0, 0]), ("tcp:mss=1000", [0, 3])];
    let text = plain(&record(cases.map(|(spec, counts)| shown(spec, counts))), 250);
    let again: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    for (count, number) in [("832", 1), ("0", 1), ("2", 1), ("retransmits", 1)] {
        assert_eq!(again.iter().filter(|word| **word == count).count(), number, "{count} in {text}");
    }
}

#[test]
fn ordinary_in_colour_and_in_ascii() {
    let record = record(ordinary());
    let color = shown(&record, &Style { width: 100, color: true, ..Style::default() });
    insta::assert_snapshot!("ordinary_colour", color.replace('\u{1b}', "ESC"));
    let ascii = shown(&record, &Style { width: 120, unicode: false, ..Style::default() });
    assert!(ascii.is_ascii());
    insta::assert_snapshot!("ordinary_ascii", ascii);
}

#[test]
fn ordinary_as_data() {
    let record = record(ordinary());
    insta::assert_snapshot!("ordinary_csv", format(&record, "csv"));
    insta::assert_snapshot!("ordinary_markdown", format(&record, "md"));
}

#[test]
fn json_is_the_record_and_reads_back() {
    let mut small = record([Mock::round_trips("pipe").round_trip_ns(52_000, 1.0)]);
    small.cases[0].samples.truncate(1);
    let text = format(&small, "json");
    assert_eq!(serde_json::from_str::<BenchRecord>(&text).expect("our own JSON"), small);
    insta::assert_snapshot!("json", text);
}

#[test]
fn rows_without_figures_say_why() {
    let why = "open of the queue failed: the system answered EMFILE, 10 descriptors are open and RLIMIT_NOFILE is 10";
    insta::assert_snapshot!(
        "errors",
        plain(
            &record([
                Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking),
                Mock::round_trips("pipe").fails(
                    ErrorKind::Hung,
                    "no progress for 10 s after 512 round trips.",
                    None
                ),
                Mock::stream("eventfd").fails(
                    ErrorKind::Unsupported,
                    "an event counter carries no bytes",
                    None
                ),
                Mock::round_trips("eventfd").round_trip_ns(40_000, 1.0),
                Mock::stream("posix-mq:depth=10").fails(
                    ErrorKind::Open,
                    why,
                    Some("raise it with `ulimit -n 1024`")
                ),
                Mock::round_trips("posix-mq:depth=10").fails(
                    ErrorKind::Open,
                    why,
                    Some("raise it with `ulimit -n 1024`")
                ),
            ]),
            80
        )
    );
}

#[test]
fn noise_few_trials_and_an_early_end() {
    let mut record = record([
        Mock::stream("pipe").gb_per_s(1.4, 12.0, Work::Waking),
        Mock::stream("unix-stream").gb_per_s(1.5, 40.0, Work::Copying),
        Mock::stream("fifo").gb_per_s(1.6, 35.0, Work::Copying),
        Mock::stream("shm-ring"),
    ]);
    record.settings.interrupted = true;
    record.cases[0].samples.truncate(4);
    record.cases[1].samples[0].bytes *= 100;
    record
        .cases
        .iter_mut()
        .for_each(|case| stats::summarise(case, stats::Analyses::Once).expect("sound samples"));
    insta::assert_snapshot!("noise", plain(&record, 80));
    insta::assert_debug_snapshot!("noise_advice", advice(&record));
    // A run with a precision of 5 % needs other advice than one of 50 %.
    for (percent, expected) in [(5.0, "(--time, --trials)"), (50.0, "--precision 5 ")] {
        record.settings.precision_percent = Some(percent);
        let lines = advice(&record);
        let first = lines.iter().find(|text| text.contains("wider than ±15 %")).expect("the advice");
        assert!(first.contains(expected) && first.contains("--precision 5") == (percent > 5.0), "{first}");
    }
}

/// Streams of `pipe` with one rate for each of nine rounds, in GB/s.
fn rates(placement: Placement, cpus: &[u32], rates: [u64; 9]) -> Mock {
    Mock::stream("pipe").gb_per_s(1.0, 0.0, Work::Copying).on(placement, cpus).with(|case| {
        for (sample, rate) in case.samples.iter_mut().zip(rates) {
            sample.bytes = rate * 1_000_000_000;
        }
    })
}

/// Expected: the heading and the notice name the same number of trials. Happened: `9 trials` beside `1 of 9 trials were made`.
#[test]
fn after_an_early_end_the_heading_has_the_trials_that_were_made() {
    let mut record = record([Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking)]);
    record.settings.interrupted = true;
    record.cases[0].samples.truncate(1);
    let text = plain(&record, 120);
    assert!(
        text.contains("1 of 9 trials, interleaved") && text.contains("1 of 9 trials were made"),
        "{text}"
    );
    // Happened: "9 to 10 of 9 trials were made", and "1 of 1 trials were made" where other cases had none.
    for (planned, made) in [(5, 9), (9, 9), (1, 1)] {
        let mut record = self::record([Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking)]);
        (record.settings.interrupted, record.settings.trials) = (true, planned);
        record.cases[0].samples.truncate(made);
        let (text, were) = (plain(&record, 120), if made == 1 { " was" } else { "s were" });
        assert!(text.contains(&format!(": {made} trial{were} made.")), "{text}");
        assert!(!text.contains(&format!("of {planned} trial")), "{text}");
    }
}

/// Expected: one figure everywhere, that of the rounds. Happened: a sentence and the table had the quotient of the medians, 3.0 here, and CSV the
/// median of the ratios within the rounds.
#[test]
fn a_factor_is_that_of_the_median_round_everywhere() {
    let [fast, slow] = [[5, 5, 5, 5, 6, 12, 12, 12, 12], [1, 1, 1, 1, 2, 3, 3, 3, 3]];
    let both = record([rates(Placement::Any, &[], fast), rates(Placement::Cross, &[0, 1], slow)]);
    let sentence = "In the median round, `pipe` placed by the scheduler moves 4.0 times as much as on CPUs 0,1: do not pin";
    assert!(advice(&both).join("\n").contains(sentence), "{:?}", advice(&both));
    let socket = rates(Placement::Cross, &[0, 1], fast).with(|case| {
        case.spec = "socketpair".parse().expect("a spec");
        case.mechanism = "socketpair".to_owned();
    });
    let against = record([rates(Placement::Cross, &[0, 1], slow), socket]);
    let csv = format(&against, "csv");
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let at = lines.next().and_then(|names| names.iter().position(|name| *name == "times_pipe")).expect("it");
    assert!(lines.any(|cells| cells[at].starts_with("4.0")), "{csv}");
    let text = plain(&against, 160);
    let row = text.lines().find(|line| line.contains("socketpair")).expect("its row");
    assert!(text.contains("× pipe") && row.contains(" 4.0 ") && !row.contains(" 3.0 "), "{text}");
}

/// Expected: an interval that a reader can use. Happened: `±9275 %`.
#[test]
fn a_wide_interval_is_shown_by_its_ends() {
    let text = plain(&record([rates(Placement::Any, &[], [1, 1, 1, 2, 2, 2, 90, 90, 90])]), 100);
    assert!(text.contains(" 2.00 (1.0–90) "), "{text}");
    assert!(text.contains("(a–b) is the same interval where it is wider than ±100 %."), "{text}");
}

#[test]
fn data_levels_are_never_in_one_list() {
    let mut cases = Vec::new();
    for (data, factor) in [(DataLevel::None, 4.0), (DataLevel::Write, 2.0), (DataLevel::Verify, 1.0)] {
        cases.push(Mock::stream("pipe").gb_per_s(1.4 * factor, 1.0, Work::Copying).data(data));
        let vmsplice = Mock::stream("pipe:send=vmsplice,recv=splice,size=1MiB");
        cases.push(
            vmsplice.gb_per_s(33.0 * factor, 1.0, Work::Copying).data(data).granted("pipe_bytes", 4096),
        );
        cases.push(Mock::stream("memcpy").gb_per_s(117.0, 1.0, Work::Copying).role(Role::Ceiling).data(data));
    }
    cases.push(Mock::stream("dev-null").gb_per_s(60.0, 1.0, Work::Copying).role(Role::Reference));
    let record = record(cases);
    insta::assert_snapshot!("data_levels", plain(&record, 100));
    insta::assert_snapshot!("data_levels_140", plain(&record, 140));
    insta::assert_debug_snapshot!("data_levels_advice", advice(&record));
}

/// Rows that pass bytes by reference, shown by the same experiment or not at all, are told of in one sentence.
#[test]
fn equal_evidence_of_zero_copy_is_one_sentence() {
    let shown = |spec: &str, proven: bool, how: &str| {
        let evidence = ZeroCopy { copies_per_byte: Some(0), proven, how: how.to_owned() };
        let with = move |mock: Mock| mock.with(|case| case.zero_copy = Some(evidence));
        let stream = Mock::stream(spec).gb_per_s(15.0, 1.0, Work::Copying);
        [with.clone()(stream), with(Mock::round_trips(spec).round_trip_ns(50_000, 1.0))]
    };
    let (changed, same) = ("a changed page was read changed.", "a changed page was read as it had been");
    let record = record(
        [
            shown("pipe:send=vmsplice,size=1MiB", true, changed),
            shown("memfd", false, same),
            shown("sendfile", true, changed),
            shown("splice", false, changed),
        ]
        .into_iter()
        .flatten(),
    );
    insta::assert_snapshot!("zero_copy", plain(&record, 100));
}

#[test]
fn a_sweep_is_a_grid() {
    let mut cases = Vec::new();
    for (step, block) in [64, 1024, 4096, 16384, 65536].into_iter().enumerate() {
        let speed = (block as f64).sqrt() / 150.0;
        cases.push(Mock::stream("pipe").block(block).gb_per_s(speed, 1.0, Work::Waking));
        cases.push(Mock::stream("unix-stream").block(block).gb_per_s(
            speed * (0.7 + 0.2 * step as f64),
            20.0,
            Work::Copying,
        ));
        let queue = Mock::stream("posix-mq").block(block);
        cases.push(match block {
            ..=8192 => queue.gb_per_s(speed * 0.8, 1.0, Work::Copying),
            _ => queue.fails(
                ErrorKind::Limit,
                "the message is longer than 8KiB",
                Some("see `hosepipe doctor`"),
            ),
        });
    }
    cases.push(Mock::round_trips("pipe").round_trip_ns(52_000, 1.0));
    let record = record(cases);
    insta::assert_snapshot!("sweep_80", plain(&record, 80));
    insta::assert_snapshot!("sweep_40", plain(&record, 40));
}

#[test]
fn a_sweep_says_where_mechanisms_cross() {
    let mut cases = Vec::new();
    for power in 0..=20 {
        let (block, bytes) = (1 << power, f64::from(1 << power));
        for (spec, ns) in [("pipe", 400.0 + 0.25 * bytes), ("unix-stream", 1300.0 + 0.2 * bytes)] {
            cases.push(Mock::stream(spec).block(block).gb_per_s(bytes / ns, 2.0, Work::Waking));
        }
        let ring = Mock::stream("shm-ring").block(block);
        cases.push(if power < 3 { ring.gb_per_s(bytes / 40.0, 2.0, Work::Waking) } else { ring });
    }
    let crossings = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("is faster than"));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    let found = crossings(plain(&record(cases.clone()), 200));
    assert_eq!(found, ["`pipe` is faster than `unix-stream` up to 16 KiB, and slower from 32 KiB on."]);
    let markdown = format(&record(cases), "md");
    assert_eq!(crossings(markdown), found);
}

#[test]
fn a_sweep_of_both_workloads_has_two_grids_and_its_own_ceilings() {
    let mut cases = Vec::new();
    for block in [1 << 10, 1 << 12, 1 << 14, 1 << 16] {
        let trip_ns = 50_000 + block / 10;
        cases.push(Mock::stream("pipe").block(block).gb_per_s(1.4, 1.0, Work::Waking));
        cases.push(Mock::round_trips("pipe").block(block).round_trip_ns(trip_ns, 1.0));
        let memcpy = Mock::stream("memcpy").block(block).gb_per_s(block as f64 / 600.0, 1.0, Work::Copying);
        cases.push(memcpy.role(Role::Ceiling));
    }
    insta::assert_snapshot!("sweep_both", plain(&record(cases), 80));
}

#[test]
fn two_blocks_are_two_lists() {
    let both = |block: u64| {
        [
            Mock::stream("pipe").block(block).gb_per_s(1.4, 1.0, Work::Waking),
            Mock::round_trips("pipe").block(block).round_trip_ns(52_000, 1.0),
            Mock::stream("fifo").block(block).gb_per_s(1.3, 1.0, Work::Waking),
            Mock::round_trips("fifo").block(block).round_trip_ns(53_000, 1.0),
        ]
    };
    insta::assert_snapshot!("two_blocks", plain(&record(both(4096).into_iter().chain(both(65536))), 80));
}

/// Makes a case one that the scheduler placed: in these trials both ends shared a CPU, and they were so many times as fast.
fn by_scheduler(together: &'static [usize], times: f64) -> impl FnOnce(&mut CaseRecord) {
    move |case| {
        (case.placement, case.cpus) = (Placement::Any, Vec::new());
        for (at, sample) in case.samples.iter_mut().enumerate() {
            sample.same_cpu_share = Some(if together.contains(&at) { 0.97 } else { 0.02 });
            if together.contains(&at) {
                sample.elapsed_ns = (sample.elapsed_ns as f64 / times) as u64;
            }
        }
    }
}

/// What `hosepipe bench` measures by default: the scheduler's choice ranks, pinned ends stand beside.
#[test]
fn the_schedulers_choice_stands_beside_pinned_ends() {
    let pipe = |spec: &str, gb_per_s: f64, shared: &'static [usize], pinned: f64| {
        [
            Mock::stream(spec).gb_per_s(gb_per_s, 1.0, Work::Waking).with(by_scheduler(shared, 4.0)),
            Mock::stream(spec).gb_per_s(pinned, 2.0, Work::Waking),
            Mock::round_trips(spec)
                .round_trip_ns(5_000, 2.0)
                .with(by_scheduler(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 1.0)),
            Mock::round_trips(spec).round_trip_ns(40_000, 2.0),
        ]
    };
    let spin = "shm-ring:wait=spin";
    let cases = pipe("pipe", 4.8, &[], 0.6)
        .into_iter()
        .chain(pipe("pipe:size=1MiB", 1.2, &[0, 1, 2, 3, 4], 1.8))
        .chain(pipe("socketpair", 4.75, &[], 2.4))
        .chain([
            Mock::stream(spin).gb_per_s(24.0, 1.0, Work::Spinning).with(by_scheduler(&[], 1.0)),
            Mock::stream(spin).gb_per_s(25.0, 1.0, Work::Spinning),
            Mock::round_trips(spin).round_trip_ns(120, 1.0).with(by_scheduler(&[], 1.0)),
            Mock::round_trips(spin).round_trip_ns(119, 1.0),
            Mock::round_trips("cache-line").round_trip_ns(100, 1.0).role(Role::Floor),
        ]);
    let record = record(cases);
    for width in [80, 120, 160] {
        insta::assert_snapshot!(format!("placed_{width}"), plain(&record, width));
    }
    insta::assert_snapshot!("placed_markdown", format(&record, "md"));
    insta::assert_debug_snapshot!("placed_advice", advice(&record));
}

/// A larger pipe that helps pinned ends only is advice for pinned ends only. However much figures vary, what every round says is
/// sure; nothing follows from rows of which now one and now the other is faster.
#[test]
fn advice_holds_for_the_placement_it_names() {
    let stream = |spec: &str, free: f64, pinned: f64, spread: f64| {
        [
            Mock::stream(spec)
                .gb_per_s(free, spread, Work::Waking)
                .with(by_scheduler(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 1.0)),
            Mock::stream(spec).gb_per_s(pinned, spread, Work::Waking),
        ]
    };
    let both = |spread| {
        let cases =
            stream("pipe", 4.8, 0.6, spread).into_iter().chain(stream("pipe:size=1MiB", 4.5, 1.8, spread));
        record(cases)
    };
    for spread in [1.0, 12.0, 40.0] {
        let sure = advice(&both(spread));
        let larger: Vec<&String> =
            sure.iter().filter(|sentence| sentence.contains("waits for wake-ups")).collect();
        assert!(matches!(larger.as_slice(), [one] if one.starts_with("A pipe on CPUs 0,1 ")), "{sure:#?}");
        let placed = "In the median round, `pipe` placed by the scheduler moves 8.0 times as much";
        assert!(sure.iter().any(|sentence| sentence.starts_with(placed)), "{sure:#?}");
    }
    let mut changing = both(1.0);
    for case in &mut changing.cases {
        let own = case.spec.options.len() + case.cpus.len();
        for sample in case.samples.iter_mut().filter(|sample| (sample.round as usize + own).is_multiple_of(3))
        {
            sample.elapsed_ns *= 20;
        }
    }
    let unsure = advice(&changing).join("\n");
    assert!(!unsure.contains("times as much"), "{unsure}");
}

#[test]
fn placements_are_sections_and_give_advice() {
    let at = |placement, cpus: &[u32], trip_ns| {
        [
            Mock::round_trips("pipe").round_trip_ns(trip_ns, 1.0).on(placement, cpus),
            Mock::round_trips("unix-stream").round_trip_ns(trip_ns * 11 / 10, 1.0).on(placement, cpus),
        ]
    };
    let cases = at(Placement::Cross, &[0, 1], 52_000).into_iter().chain(at(Placement::Same, &[0, 0], 4_700));
    let record = record(cases);
    insta::assert_snapshot!("placements", plain(&record, 80));
    insta::assert_debug_snapshot!("placements_advice", advice(&record));
}

#[test]
fn round_trips_alone() {
    let trips = [("pipe", 52_000), ("unix-stream", 48_000), ("shm-ring:wait=spin", 120)];
    let record = record(trips.map(|(spec, ns)| Mock::round_trips(spec).round_trip_ns(ns, 2.0)));
    insta::assert_snapshot!("round_trips_80", plain(&record, 80));
    insta::assert_snapshot!("round_trips_120", plain(&record, 120));
}

#[test]
fn advice_names_only_what_was_measured() {
    insta::assert_debug_snapshot!("ordinary_advice", advice(&record(ordinary())));
    let lone = record([Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking)]);
    insta::assert_debug_snapshot!("lone_pipe_advice", advice(&lone));
    let spinning = advice(&record([Mock::stream("shm-ring").gb_per_s(9.0, 1.0, Work::Spinning)]));
    assert!(spinning.len() == 1 && spinning[0].contains("only `shm-ring` was measured"), "{spinning:?}");
    let untouched = advice(&record(ordinary().into_iter().map(|mock| mock.data(DataLevel::None))));
    assert!(untouched.iter().any(|one| one.contains("the bytes were not touched")), "{untouched:?}");
}

#[test]
fn what_the_payload_costs_stands_in_one_row() {
    let level = |data, gb_per_s| Mock::stream("shm-ring").gb_per_s(gb_per_s, 1.0, Work::Spinning).data(data);
    let all = [level(DataLevel::None, 40.0), level(DataLevel::Write, 20.0), level(DataLevel::Verify, 10.0)];
    let record = record(all.into_iter().chain([Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking)]));
    let text = plain(&record, 160);
    let costs = text.split("What the payload costs").nth(1).expect("a table");
    let row = costs.lines().find(|line| line.contains("shm-ring")).expect("a row");
    // 65,536 bytes at 40, 20 and 10 GB/s.
    for time in ["1.64 µs", "3.28 µs", "6.55 µs"] {
        assert!(row.contains(time), "{time}: {row}");
    }
    let of_pipe = |line: &str| line.trim_start().starts_with("pipe ");
    assert!(!costs.lines().any(of_pipe), "measured at one level: {costs}");
    assert!(format(&record, "html").contains("What the payload costs"));
}

#[test]
fn an_xor_that_zeros_would_have_too_is_told() {
    let with_sum = |sum: &str| {
        let mock = Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking);
        plain(
            &record([mock.with(|case| {
                case.check = Some(Check::Xor);
                case.samples.iter_mut().for_each(|sample| sample.checksum = Some(sum.to_owned()));
            })]),
            200,
        )
    };
    assert!(with_sum("00").contains("pipe: the XOR of all bytes is 0, as it would be of zeros"));
    assert!(!with_sum("0a").contains("as it would be of zeros"));
}

#[test]
fn an_empty_record_is_a_heading() {
    let text = plain(&record([]), 80);
    assert_eq!(text, "AMD EPYC 9B14, 2 cores (KVM), Linux 6.18.0 · 9 trials, interleaved\n");
    assert!(advice(&record([])).is_empty());
    for format in FORMATS {
        assert!(self::format(&record([]), format.flag).ends_with('\n'));
    }
}
