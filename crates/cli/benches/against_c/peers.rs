//! `bench --peer` beside iperf3 (streams) and sockperf (round trips), over one pair of veth between two network namespaces.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use model::{BenchRecord, CaseRecord, Direction, decode_histogram};

use crate::hosepipe::{PROGRAM, bytes_per_s};
use crate::reference::succeed;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target, skip};

pub(crate) const TARGETS: &[Target] = &[
    Target::slow(
        "peer-stream",
        "a TCP stream between two network namespaces, its receiver woken by 128 KiB: at least 0.98 of iperf3's (root, iperf3)",
        streams,
    ),
    Target::slow(
        "peer-trip",
        "a TCP and a UDP round trip of 14 bytes there, the median: at most 1.02 of sockperf's (root, sockperf)",
        trips,
    ),
];

const ADDRESS: &str = "10.9.0.2";

/// A port that was not used yet: the kernel keeps the port of a connection for a while after it is closed (TIME_WAIT, tcp(7)).
fn port() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(4711);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// Bytes of one stream, and round trips of one turn: a good part of a second.
const STREAM_BYTES: u64 = 1 << 30;
const TRIPS: u64 = 20_000;

/// Two network namespaces with a pair of veth between them; each exists as long as its only process.
struct Hosts([Running; 2]);

impl Hosts {
    fn new(program: &str) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return skip("network namespaces need root");
        }
        if model::file_on_path(program).is_none() {
            return skip(format!("needs {program} (Debian: apt-get install {program})"));
        }
        let host = || -> Result<Running> {
            let script = "ip link set lo up && echo && exec sleep 3600";
            let words = ["-n", "sh", "-c", script];
            let mut host = Command::new("unshare").args(words).stdout(Stdio::piped()).spawn()?;
            BufReader::new(host.stdout.take().context("a pipe")?).read_line(&mut String::new())?;
            Ok(Running(host))
        };
        let hosts = Self([host()?, host()?]);
        let far = hosts.0[1].0.id();
        let link =
            format!("ip link add v type veth peer name v netns {far} && ip addr add 10.9.0.1/24 dev v");
        succeed(hosts.on(0, &["sh", "-c", &format!("{link} && ip link set v up")]))?;
        succeed(hosts.on(1, &["sh", "-c", &format!("ip addr add {ADDRESS}/24 dev v && ip link set v up")]))?;
        Ok(hosts)
    }

    fn on(&self, host: usize, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        // Each has a CPU of its own: both on one take turns, which is faster or slower, and chance.
        let cpu = host % std::thread::available_parallelism().map_or(1, usize::from);
        command.arg(format!("--net=/proc/{}/ns/net", self.0[host].0.id()));
        command.args(["taskset", "-c", &cpu.to_string()]).args(words);
        command
    }

    /// A server on the second host, which runs until the returned value is dropped.
    fn server(&self, words: &[&str], port: &str) -> Result<Running> {
        let mut command = self.on(1, words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Running(command.spawn()?);
        let local = format!(":{:04X} ", port.parse::<u16>()?);
        let sockets = |table| fs::read_to_string(format!("/proc/{}/net/{table}", self.0[1].0.id()));
        for _ in 0..500 {
            if ["tcp", "tcp6", "udp"]
                .iter()
                .any(|table| sockets(table).is_ok_and(|text| text.contains(&local)))
            {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        anyhow::bail!("{words:?} does not listen within 5 s")
    }

    /// One run of ours.
    fn bench(&self, words: &str) -> Result<CaseRecord> {
        let token = token()?;
        let path = token.to_str().context("a path")?;
        let port = port();
        let listen = format!("{ADDRESS}:{port}");
        let _far = self.server(&[PROGRAM, "peer", "--listen", &listen, "--token-file", path], &port)?;
        let peer = format!("tcp://{listen}");
        let base = [PROGRAM, "bench", "--json", "-", "--peer", &peer, "--token-file", path, "--trials", "1"];
        let words: Vec<&str> = base.into_iter().chain(words.split(' ')).collect();
        let output = succeed(self.on(0, &words))?;
        let record: BenchRecord = serde_json::from_slice(&output.stdout)?;
        let case = record
            .cases
            .into_iter()
            .find(|case| case.direction == Some(Direction::Peer))
            .context("a case")?;
        ensure!(case.samples.len() == 1, "no sample: {:?}", case.error);
        Ok(case)
    }
}

/// A process, until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn token() -> Result<PathBuf> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("peer-token");
    fs::write(&path, "a token for two namespaces")?;
    File::open(&path)?.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

fn streams(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let hosts = Hosts::new("iperf3")?;
    let bench = |spec: &str| {
        let words = format!("{spec} --workload stream --data none --block 128KiB --bytes {STREAM_BYTES}");
        Ok(bytes_per_s(&hosts.bench(&words)?.samples[0]))
    };
    let reference = || {
        let port = port();
        let _server = hosts.server(&["iperf3", "-s", "-1", "-p", &port], &port)?;
        let bytes = STREAM_BYTES.to_string();
        let words = ["iperf3", "-c", ADDRESS, "-p", &port, "-n", &bytes, "-l", "128K", "-J"];
        let output = succeed(hosts.on(0, &words))?;
        let told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let bits = told["end"]["sum_received"]["bits_per_second"].as_f64().context("what iperf3 received")?;
        Ok(bits / 8.0)
    };
    let (plain, woken_late) = (|| bench("tcp"), || bench("tcp:lowat=128KiB"));
    let [plain, woken_late, reference] = lab.interleave(25, [&plain, &woken_late, &reference])?;
    let plain = [plain, reference.clone()];
    let woken_late = [woken_late, reference];
    let (lowat, wanted) = (format!("{name} lowat"), Wanted::AtLeast(0.98));
    Ok(vec![
        BenchRow::beside(name, Unit::BytesPerSecond, plain, Wanted::Nothing),
        BenchRow::beside(lowat, Unit::BytesPerSecond, woken_late, wanted),
    ])
}

fn trips(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let hosts = Hosts::new("sockperf")?;
    let mut rows = Vec::new();
    for (protocol, option) in [("tcp", Some("--tcp")), ("udp", None)] {
        let ours = || {
            let case = hosts
                .bench(&format!("{protocol} --workload pingpong --data none --block 14 --count {TRIPS}"))?;
            let times = case.samples[0].latency_histogram.as_deref().context("round trips")?;
            Ok(decode_histogram(times)?.value_at_quantile(0.5) as f64)
        };
        let reference = || {
            let port = port();
            let words = ["sockperf", "sr", "-i", ADDRESS, "-p", &port];
            let words: Vec<&str> = words.into_iter().chain(option).collect();
            let _server = hosts.server(&words, &port)?;
            let words = ["sockperf", "pp", "-i", ADDRESS, "-p", &port, "-t", "1", "-m", "14", "--full-rtt"];
            let output = succeed(hosts.on(0, &words.into_iter().chain(option).collect::<Vec<_>>()))?;
            sockperf_p50_ns(&String::from_utf8_lossy(&output.stdout))
        };
        let pair = lab.interleave(9, [&ours, &reference])?;
        let (name, wanted) = (format!("{name} {protocol}"), Wanted::AtMost(1.02));
        rows.push(BenchRow::beside(name, Unit::Nanoseconds, pair, wanted));
    }
    Ok(rows)
}

/// From "---> percentile 50.000 =   12.345", in microseconds.
fn sockperf_p50_ns(said: &str) -> Result<f64> {
    let line = said.lines().find(|line| line.contains("percentile 50.000"));
    let line = line.with_context(|| format!("sockperf says {said}"))?;
    let number = line.rsplit('=').next().context("a number")?.trim();
    Ok(number.parse::<f64>()? * 1000.0)
}
