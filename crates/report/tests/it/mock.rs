//! Records made by hand: a builder of cases whose samples say exactly what a test wants said.
//! Trials differ by a fixed pattern, so that every figure is the same on every run.

use hdrhistogram::Histogram;
use model::{
    BenchRecord, Bottleneck, CaseError, CaseRecord, Check, Cpu, DataLevel, EndUsage, ErrorKind, Host,
    Placement, RecordHead, Role, Sample, Settings, Spec, Tool, Wait, Workload,
};

/// Trials of each case.
const TRIALS: u32 = 9;
/// How far each trial is from the median, in units of the case's spread.
const PATTERN: [f64; TRIALS as usize] = [0.0, 1.0, -1.0, 0.5, -0.5, 0.25, -0.25, 0.75, -0.75];

/// A bottleneck as in records of version 0.1.
pub(crate) fn held_up_by_the_second() -> Bottleneck {
    let sentence = "`sort` holds the pipeline up.".to_owned();
    Bottleneck { stage: Some(1), sentence, ..Bottleneck::default() }
}

/// A case in the making.
#[derive(Debug, Clone)]
pub(crate) struct Mock(CaseRecord);

/// What the ends of a stream were busy with.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Asleep half of the time, woken once per block.
    Waking,
    /// In the kernel all of the time.
    Copying,
    /// Polling memory.
    Spinning,
}

impl Mock {
    /// A stream of 64 KiB blocks between two processes on two CPUs.
    pub(crate) fn stream(spec: &str) -> Self {
        let spec: Spec = spec.parse().expect("a spec");
        let wait = if spec.to_string().contains("wait=spin") { Wait::Spin } else { Wait::Block };
        Self(CaseRecord { placement: Placement::Cross, cpus: vec![0, 1], wait, ..CaseRecord::new(spec) })
    }

    /// Round trips of one byte between the same two processes.
    pub(crate) fn round_trips(spec: &str) -> Self {
        let mut mock = Self::stream(spec);
        mock.0.workload = Workload::PingPong;
        mock.0.block_bytes = 1;
        mock
    }

    /// A second of streaming per trial, so fast in the median, with a spread of so many percent.
    pub(crate) fn gb_per_s(mut self, median: f64, spread_percent: f64, work: Work) -> Self {
        self.0.samples = (0..TRIALS)
            .map(|round| {
                let factor = 1.0 + PATTERN[round as usize] * spread_percent / 100.0;
                let messages = (median * 1e9 * factor / self.0.block_bytes as f64).round() as u64;
                Sample { bytes: messages * self.0.block_bytes, ..sample(round, messages, work) }
            })
            .collect();
        self.0.samples.iter_mut().for_each(|sample| sample.checksum = Some("5eed".to_owned()));
        self
    }

    /// A thousand round trips per trial: most take the median, one in fifty three times as long.
    pub(crate) fn round_trip_ns(mut self, median: u64, spread_percent: f64) -> Self {
        self.0.samples = (0..TRIALS)
            .map(|round| {
                let factor = 1.0 + PATTERN[round as usize] * spread_percent / 100.0;
                let mut histogram = Histogram::<u64>::new(3).expect("three digits");
                let usual = (median as f64 * factor) as u64;
                histogram.record_n(usual, 980).expect("in range");
                histogram.record_n(3 * usual, 20).expect("in range");
                let text = model::encode_histogram(&histogram).expect("a histogram");
                Sample { latency_histogram: Some(text), bytes: 1000, ..sample(round, 1000, Work::Waking) }
            })
            .collect();
        self
    }

    /// The case as it is, without a summary.
    pub(crate) fn into_case(self) -> CaseRecord {
        self.0
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut CaseRecord)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn granted(self, name: &str, bytes: u64) -> Self {
        self.with(|case| {
            case.granted.insert(name.to_owned(), bytes);
        })
    }

    pub(crate) fn block(self, bytes: u64) -> Self {
        self.with(|case| case.block_bytes = bytes)
    }

    pub(crate) fn data(self, data: DataLevel) -> Self {
        self.with(|case| {
            case.data = data;
            case.check = (data == DataLevel::Verify).then_some(Check::Xxh3);
        })
    }

    pub(crate) fn on(self, placement: Placement, cpus: &[u32]) -> Self {
        self.with(|case| {
            case.placement = placement;
            case.cpus = cpus.to_vec();
        })
    }

    pub(crate) fn role(self, role: Role) -> Self {
        self.with(|case| case.role = role)
    }

    pub(crate) fn fails(self, kind: ErrorKind, message: &str, remedy: Option<&str>) -> Self {
        self.with(|case| {
            case.error = Some(CaseError {
                kind,
                message: message.to_owned(),
                remedy: remedy.map(str::to_owned),
                expected: kind == ErrorKind::Limit,
            });
        })
    }
}

fn sample(round: u32, messages: u64, work: Work) -> Sample {
    let (user, system, calls, sleeps) = match work {
        Work::Waking => (0.1, 0.35, 1, 1),
        Work::Copying => (0.15, 0.8, 1, 0),
        Work::Spinning => (1.0, 0.0, 0, 0),
    };
    let end = EndUsage {
        syscalls: Some(calls * messages),
        voluntary_switches: sleeps * messages,
        user_ns: (user * 1e9) as u64,
        system_ns: (system * 1e9) as u64,
        ..EndUsage::default()
    };
    Sample {
        round,
        elapsed_ns: 1_000_000_000,
        setup_ns: 250_000,
        messages,
        involuntary_switches: 3,
        ..Sample::of_ends(vec![end.clone(), end])
    }
}

/// A record of these cases, summarised, on a machine that exists nowhere.
pub(crate) fn record(cases: impl IntoIterator<Item = Mock>) -> BenchRecord {
    let mut cases: Vec<CaseRecord> = cases.into_iter().map(|mock| mock.0).collect();
    cases.iter_mut().for_each(|case| stats::summarise(case, stats::Analyses::Once).expect("sound samples"));
    let cpu = |id| Cpu { id, core: id, package: 0, node: 0, kind: None };
    BenchRecord {
        head: RecordHead {
            tool: Tool { version: "0.1.0".to_owned(), revision: None },
            host: Host {
                kernel: "Linux 6.18.0".to_owned(),
                architecture: "x86_64".to_owned(),
                cpu_model: "AMD EPYC 9B14".to_owned(),
                cpus: vec![cpu(0), cpu(1)],
                hypervisor: Some("KVM".to_owned()),
                ..Host::default()
            },
            arguments: vec!["bench".to_owned()],
            started: "2026-01-02T03:04:05Z".to_owned(),
            ..RecordHead::default()
        },
        peer: None,
        recommendation: None,
        settings: Settings { seed: 1, trials: TRIALS, ..Settings::default() },
        cases,
    }
}

/// What `hosepipe bench` makes on a good day: both workloads, a queue that is too small, floor and ceiling.
pub(crate) fn ordinary() -> Vec<Mock> {
    let mut cases = Vec::new();
    for (spec, gb_per_s, spread, work, trip_ns) in [
        ("pipe", 1.4, 3.0, Work::Waking, 52_000),
        ("pipe:size=1MiB", 3.9, 2.1, Work::Copying, 52_400),
        ("unix-stream", 3.7, 1.9, Work::Copying, 48_000),
        ("shm-ring:wait=spin", 24.1, 0.8, Work::Spinning, 120),
    ] {
        cases.push(Mock::stream(spec).gb_per_s(gb_per_s, spread, work));
        cases.push(Mock::round_trips(spec).round_trip_ns(trip_ns, 2.0));
    }
    cases[0] = cases[0].clone().granted("pipe_bytes", 65536);
    cases[2] = cases[2].clone().granted("pipe_bytes", 1 << 20);
    let queue = "the message of 64KiB is longer than the limit of 8KiB (EMSGSIZE)";
    cases.push(Mock::stream("posix-mq").fails(ErrorKind::Limit, queue, Some("see `hosepipe doctor`")));
    cases.push(Mock::round_trips("posix-mq").round_trip_ns(49_000, 2.0));
    cases.push(Mock::stream("memcpy").gb_per_s(117.0, 1.0, Work::Copying).role(Role::Ceiling));
    cases.push(Mock::stream("null").gb_per_s(54_000.0, 1.0, Work::Copying).role(Role::Floor));
    cases
}
