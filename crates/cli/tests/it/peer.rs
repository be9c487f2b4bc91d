//! `bench --peer`: both ends on their own hosts, which are network namespaces joined by a pair of veth; over ssh; and a far side, or a
//! way to it, that is not as it should be.

mod faults;
mod proxy;
mod ssh;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::{BenchRecord, CaseRecord, DataLevel, Direction, Workload};

use crate::common::namespaces::{enter_network, rights, unshare};
use crate::common::{Done, Lab, Running, skip, soon, until};

/// What every trouble of another host is told within: 4 s of patience, and a loaded machine's time to end.
pub(crate) const TOLD_WITHIN: Duration = Duration::from_secs(8);

/// A token that both labs read.
fn token(lab: &Lab, text: &str) -> PathBuf {
    let path = lab.here("token");
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
    path
}

const TOKEN: &str = "a token that both sides have";

/// `hosepipe peer` in a lab of its own, behind a wrapper; and where it listens.
struct FarSide<'a> {
    running: Running<'a>,
    address: String,
}

fn far_side<'a>(lab: &'a Lab, wrapper: &[&str], listen: &str) -> FarSide<'a> {
    let token = token(lab, TOKEN);
    let args = ["peer", "--listen", listen, "--idle", "20s", "--token-file", token.to_str().expect("a path")];
    let mut command = lab.wrapped(wrapper, &args);
    let said = lab.here("said");
    command.stdout(File::create(&said).expect("a file"));
    let running = lab.start(command);
    let address = until("it listens", soon(), || {
        let text = fs::read_to_string(&said).ok()?;
        Some(text.strip_prefix("listening on ")?.strip_suffix('\n')?.to_owned())
    });
    FarSide { running, address }
}

/// The arguments of a bench against an address.
fn against<'a>(address: &'a str, token: &'a Path, args: &[&'a str]) -> Vec<&'a str> {
    let peer = ["bench", "--json", "-", "--peer", address, "--token-file", token.to_str().expect("a path")];
    [&peer[..], args].concat()
}

/// A bench here against a far side here; both end, and nothing is left.
fn over_loopback(args: &[&str]) -> (Done, Done) {
    shown_over_loopback(&Lab::new(), &[&["--json", "-"], args].concat())
}

/// The same, as a user sees it.
fn shown_over_loopback(near: &Lab, args: &[&str]) -> (Done, Done) {
    let (far, token) = (Lab::new(), token(near, TOKEN));
    let far = far_side(&far, &[], "127.0.0.1:0");
    let address = format!("tcp://{}", far.address);
    let peer = ["bench", "--peer", &address, "--token-file", token.to_str().expect("a path")];
    let done = near.run(&[&peer[..], args].concat());
    (done, far.running.wait_within(soon()))
}

fn case<'r>(record: &'r BenchRecord, spec: &str, workload: Workload, direction: Direction) -> &'r CaseRecord {
    let is = |case: &&CaseRecord| {
        case.mechanism == spec && case.workload == workload && case.direction == Some(direction)
    };
    record.cases.iter().find(is).unwrap_or_else(|| panic!("{spec} {workload} {direction}"))
}

fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// Two hosts: namespaces that are joined by a veth pair, 10.9.0.1 and 10.9.0.2.
struct Hosts([Child; 2]);

impl Hosts {
    /// `None`, with the reason, where that takes rights that we do not have.
    fn new() -> Option<Self> {
        unshare(&["--net"], "exec \"$0\" \"$@\"")?;
        let host = |wrapper: &[&str]| {
            let script = "ip link set lo up && echo && exec sleep 600";
            let mut command = Command::new(wrapper[0]);
            let command = command.args(&wrapper[1..]).args(["--net", "sh", "-c", script]);
            let mut child = command.stdout(Stdio::piped()).spawn().expect(wrapper[0]);
            let out = child.stdout.take().expect("piped");
            BufReader::new(out).read_line(&mut String::new()).expect("it is up");
            child
        };
        let first = host(&[&["unshare"], rights()].concat());
        // In the same user namespace: what joins the two takes rights in both.
        let second = host(&[&words(&enter_network(first.id()))[..], &["unshare"]].concat());
        let hosts = Self([first, second]);
        let far = hosts.0[1].id().to_string();
        hosts.on(0, &["ip", "link", "add", "v", "type", "veth", "peer", "name", "v", "netns", &far]);
        for (host, address) in [(0, "10.9.0.1/24"), (1, "10.9.0.2/24")] {
            hosts.on(host, &["ip", "addr", "add", address, "dev", "v"]);
            hosts.on(host, &["ip", "link", "set", "v", "up"]);
        }
        Some(hosts)
    }

    /// What becomes of a command before it starts there.
    fn wrapper(&self, host: usize) -> Vec<String> {
        enter_network(self.0[host].id())
    }

    fn on(&self, host: usize, words: &[&str]) {
        assert!(self.tries(host, words), "{words:?}");
    }

    fn tries(&self, host: usize, words: &[&str]) -> bool {
        let wrapper = self.wrapper(host);
        Command::new(&wrapper[0])
            .args(&wrapper[1..])
            .args(words)
            .stderr(Stdio::null())
            .status()
            .expect("nsenter")
            .success()
    }

    /// Benches from the first to the second.
    fn bench(&self, args: &[&str]) -> Done {
        let (near, far) = (Lab::new(), Lab::new());
        let token = token(&near, TOKEN);
        let (here, there) = (self.wrapper(0), self.wrapper(1));
        let far = far_side(&far, &words(&there), "10.9.0.2:0");
        let address = format!("tcp://{}", far.address);
        let args = against(&address, &token, args);
        let done = near.finish(near.wrapped(&words(&here), &args));
        far.running.wait_within(soon()).expect_code(0);
        done
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &mut self.0 {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}

#[test]
fn both_ways_over_two_hosts_and_the_record_says_what_was_granted() {
    let Some(hosts) = Hosts::new() else { return };
    let args = ["tcp", "--block", "1,65537", "--count", "300", "--trials", "2"];
    let record = hosts.bench(&args).expect_code(0).record();
    assert_eq!(record.cases.len(), 6, "two streams and a round trip of two sizes each");
    for case in &record.cases {
        assert_eq!((&case.error, case.samples.len()), (&None, 2), "{}", case.spec);
        for sample in &case.samples {
            assert_eq!(sample.bytes, 300 * case.block_bytes);
            assert!(sample.checksum.is_some() && sample.retransmits.is_some(), "{sample:?}");
            assert_eq!(sample.ends.len(), 2, "both ends reported");
        }
        let has = |size: &str| case.granted.get(size).is_some_and(|bytes| *bytes > 0);
        let sizes = ["sndbuf_bytes", "rcvbuf_bytes", "mss_bytes"];
        assert!(sizes.into_iter().all(has) && case.congestion_control.is_some(), "{:?}", case.granted);
    }
    let peer = record.peer.expect("who it was");
    assert!(peer.address.starts_with("10.9.0.2:"), "{}", peer.address);
    assert_eq!((peer.tool, peer.host.cpu_model), (record.head.tool, record.head.host.cpu_model));
}

#[test]
fn every_level_and_both_ways_of_waiting() {
    for (level, wait) in [("none", "block"), ("write", "poll"), ("verify", "spin")] {
        let args =
            ["tcp:nodelay,rcvbuf=64k", "--data", level, "--wait", wait, "--count", "100", "--trials", "1"];
        let (near, far) = over_loopback(&args);
        let record = near.expect_code(0).record();
        far.expect_code(0);
        assert_eq!(record.cases.len(), 3);
        for case in &record.cases {
            let checked = case.data == DataLevel::Verify;
            assert_eq!((&case.error, case.samples[0].checksum.is_some()), (&None, checked), "{level}");
        }
        let stream = case(&record, "tcp", Workload::Stream, Direction::Here);
        assert!(stream.granted["rcvbuf_bytes"] <= 256 << 10, "asked for: {:?}", stream.granted);
    }
}

/// Expected: messages at a rate, both ways. Happened: the other host sent them as fast as it could.
#[test]
fn a_rate_is_kept_by_the_sender_of_either_host() {
    let args =
        ["tcp", "--workload", "stream", "--rate", "100", "--block", "64", "--count", "21", "--trials", "1"];
    let (near, far) = over_loopback(&args);
    far.expect_code(0);
    for case in near.expect_code(0).record().cases {
        let elapsed_ns = case.samples[0].elapsed_ns;
        // The clocks of two hosts are compared by messages, whose time is not known exactly.
        assert!(
            elapsed_ns >= 195_000_000,
            "{:?}: the last of 21 is due after 200 ms, {elapsed_ns}",
            case.direction
        );
    }
}

/// A receiver that sleeps until much has come wakes for the rest of a stream too, whatever its size, and answers round trips.
#[test]
fn a_receiver_that_is_woken_late_gets_everything() {
    for (block, count) in [("1", "1000"), ("65537", "33")] {
        let args = ["tcp:lowat=48KiB", "--block", block, "--count", count, "--trials", "1"];
        let (near, far) = over_loopback(&args);
        far.expect_code(0);
        let record = near.expect_code(0).record();
        for case in &record.cases {
            assert_eq!(case.error, None, "{block}");
            let lowat = case.granted.get("lowat_bytes");
            assert_eq!(lowat.copied(), (case.workload == Workload::Stream).then_some(48 << 10), "{block}");
        }
    }
    // A row with its reason, as of all that a machine has not got; nothing was measured.
    let done = Lab::new().run(&["bench", "tcp:lowat=48KiB", "--count", "4", "--trials", "1"]).expect_code(1);
    assert!(done.stdout.contains("--peer"), "on one machine: {}", done.stdout);
}

/// Expected: a few small blocks are as fast as others. Happened: the last waited 40 ms for an acknowledgement of what was before it.
#[test]
fn a_last_small_block_is_not_held_back() {
    let (done, _) =
        over_loopback(&["tcp", "--workload", "stream", "--block", "1", "--count", "125", "--trials", "9"]);
    for case in done.expect_code(0).record().cases {
        // A block that is held back is so in every trial. On a busy machine each end may lose its CPU for as long in some of them.
        let fastest = case.samples.iter().map(|sample| sample.elapsed_ns).min().expect("a sample");
        assert!(fastest < 12_500_000, "{fastest} ns");
    }
}

#[test]
fn the_table_has_a_row_for_each_way() {
    let (near, far) = (Lab::new(), Lab::new());
    let token = token(&near, TOKEN);
    let far = far_side(&far, &[], "127.0.0.1:0");
    let address = format!("tcp://{}", far.address);
    let args =
        ["bench", "--peer", &address, "--token-file", token.to_str().expect("a path"), "--csv", "rows.csv"];
    let done = near.run(&[&args[..], &["--trials", "1", "--count", "50"]].concat()).expect_code(0);
    for row in ["tcp to peer", "tcp from peer", &format!("peer {}", far.address)] {
        assert!(done.stdout.contains(row), "{}", done.stdout);
    }
    let csv = fs::read_to_string(near.here("rows.csv")).expect("written");
    assert!(
        csv.lines().next().is_some_and(|line| line.ends_with("direction,congestion_control,retransmits"))
    );
    far.running.wait_within(soon()).expect_code(0);
}

#[test]
fn a_way_that_delays_loses_and_swaps() {
    let Some(hosts) = Hosts::new() else { return };
    for host in [0, 1] {
        let queue = "qdisc add dev v root netem delay 5ms 2ms loss 3% reorder 10%";
        if !hosts.tries(host, &[&["tc"], &queue.split(' ').collect::<Vec<_>>()[..]].concat()) {
            // No package brings a module for the kernel that runs.
            return skip("this kernel has no netem (CONFIG_NET_SCH_NETEM)");
        }
    }
    let args = ["tcp", "--bytes", "200k", "--block", "4k", "--trials", "2"];
    let record = hosts.bench(&args).expect_code(0).record();
    for case in &record.cases {
        assert_eq!(case.error, None, "{} {:?}", case.spec, case.direction);
        assert!(case.samples.iter().all(|sample| sample.elapsed_ns > 5_000_000), "a way takes 5 ms");
    }
}
