//! The far side, or the way to it, is not as it should be: a sentence, soon, and nothing left on either side.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::proxy::{Proxy, Spoil};
use super::{FarSide, Hosts, TOKEN, TOLD_WITHIN, against, far_side, token, words};
use crate::common::{Lab, Running, promptly, signal, soon};

const LONG_STREAM: [&str; 7] = ["tcp", "--workload", "stream", "--bytes", "4TiB", "--trials", "1"];
const SHORT: [&str; 5] = ["tcp", "--count", "10", "--trials", "1"];

/// A bench against something that listens and is no hosepipe.
fn against_a_stranger(answer: impl Fn(&mut dyn Write) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp://{}", listener.local_addr().expect("its port"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            answer(&mut stream);
            let _ = stream.read(&mut [0; 4096]);
            thread::sleep(Duration::from_secs(30));
        }
    });
    let lab = Lab::new();
    let token = token(&lab, TOKEN);
    let running = lab.start(lab.command(&against(&address, &token, &SHORT)));
    running.wait_within(TOLD_WITHIN).expect_code(1).stderr
}

#[test]
fn who_is_no_hosepipe_is_told_of() {
    let silent = against_a_stranger(|_| {});
    assert!(silent.contains("says nothing for 4 s: is a hosepipe there?"), "{silent}");
    let garbage = against_a_stranger(|stream| drop(stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\x1b[2J\n")));
    assert!(
        garbage.contains("does not speak hosepipe's protocol, it sent `SSH-2.0-OpenSSH_9.2"),
        "{garbage}"
    );
    let endless = against_a_stranger(|stream| while stream.write_all(&[b'{'; 4096]).is_ok() {});
    assert!(endless.contains("sends a line without an end"), "{endless}");
    let nonce = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";
    let hello =
        format!("{{\"hello\":{{\"protocol\":\"bench 77\",\"version\":\"9.9.9\",\"nonce\":{nonce}}}}}\n");
    let other = against_a_stranger(move |stream| drop(stream.write_all(hello.as_bytes())));
    assert!(
        other.contains("is hosepipe 9.9.9 (protocol bench 77), this is") && other.contains("same version"),
        "{other}"
    );
}

#[test]
fn who_does_not_have_the_token_gets_nowhere() {
    let (near, far) = (Lab::new(), Lab::new());
    let wrong = token(&near, "another token, as long");
    let far = far_side(&far, &[], "127.0.0.1:0");
    let address = format!("tcp://{}", far.address);
    let done =
        near.start(near.command(&against(&address, &wrong, &SHORT))).wait_within(TOLD_WITHIN).expect_code(1);
    assert!(done.stderr.contains("does it have another token?"), "{}", done.stderr);
    // It still waits for a caller with the token; other callers, which send nothing or too much, do not disturb it.
    let _silent = std::net::TcpStream::connect(&far.address).expect("a call");
    let mut loud = std::net::TcpStream::connect(&far.address).expect("a call");
    let _ = loud.write_all(&[b'x'; 10_000]);
    let right = token(&near, TOKEN);
    near.run(&against(&address, &right, &SHORT)).expect_code(0);
    let done = far.running.wait_within(soon()).expect_code(0);
    assert!(done.stderr.contains("a client with another token was refused"), "{}", done.stderr);
}

#[test]
fn what_cannot_be_is_refused_before_anything() {
    let lab = Lab::new();
    let token = token(&lab, TOKEN);
    let refused = |args: &[&str], says: &str| {
        let done = lab.run(&[&["bench", "--peer"], args].concat()).expect_code(2);
        assert!(done.stderr.contains(says), "{}", done.stderr);
    };
    let file = token.to_str().expect("a path");
    refused(&["h", "pipe"], "`pipe` does not leave this machine");
    refused(&["h", "udp:datagram=1000"], "for UDP between two hosts take `iperf3 -u`");
    refused(&["h", "tcp", "--place", "cross"], "the ends are on two hosts");
    refused(&["h", "tcp", "--payload", "file:/etc/passwd"], "a file is not there on the other host");
    refused(&["tcp://127.0.0.1:9", "tcp"], "--token-file");
    refused(&["h", "--token-file", file], "ssh needs no token");
    refused(&["-oProxyCommand=x"], "");
    for target in ["a b", "a\nb", ""] {
        refused(&[target], "is not a host");
    }
    for target in ["tcp://", "tcp://a", "tcp://a:99999", "tcp://a b:1"] {
        refused(&[target], "is not an address");
    }
    refused(&["tcp://127.0.0.1:9", "--token-file", "/nonexistent"], "cannot be read: ENOENT");
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("chmod");
    refused(&["tcp://127.0.0.1:9", "--token-file", file], "chmod 600");
    // Happened: it waited for a writer, and only SIGKILL ended that.
    let fifo = lab.here("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).expect("mkfifo");
    refused(&["tcp://127.0.0.1:9", "--token-file", fifo.to_str().expect("a path")], "is not a regular file");
    let unreachable = lab.run(&["bench", "--peer", "tcp://127.0.0.1:9", "--token-file", file]);
    assert!(unreachable.elapsed < TOLD_WITHIN);
    let done = lab.run(&["peer"]).expect_code(2);
    assert!(done.stderr.contains("--listen ADDR:PORT --token-file F"), "{}", done.stderr);
    // Nobody comes.
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("chmod");
    let done = lab.run(&["bench", "--peer", "tcp://127.0.0.1:9", "--token-file", file]).expect_code(1);
    assert!(done.stderr.contains("cannot reach a hosepipe at 127.0.0.1:9: ECONNREFUSED"), "{}", done.stderr);
    let args = ["peer", "--listen", "127.0.0.1:0", "--token-file", file, "--idle", "200ms"];
    let done = lab.run(&args).expect_code(1);
    assert!(done.stderr.contains("no caller with the token came to"), "{}", done.stderr);
}

/// Wrong counts, a wrong hash, a report that is none, numbers beyond any measure.
#[test]
fn a_far_side_that_lies_is_not_believed() {
    type Lie = fn(String) -> String;
    let lies: [(Lie, &str); 4] = [
        (
            |line| line.replace("\"received_bytes\":655360", "\"received_bytes\":655359"),
            "says that it received 655359",
        ),
        (
            |line| line.replace("\"checksum\":\"", "\"checksum\":\"0"),
            "bytes were lost, repeated, swapped or changed",
        ),
        (|_| "{\"news\":[1,{\"Ok\":{\"report\":[]}}]}".to_owned(), "report is invalid"),
        (
            |line| {
                let end_ns = line.find("\"start_ns\":").expect("a time") + "\"start_ns\":".len();
                format!("{}99999999999999999999{}", &line[..end_ns], &line[end_ns..])
            },
            "report is invalid",
        ),
    ];
    for (lie, says) in lies {
        let (near, far) = (Lab::new(), Lab::new());
        let token = token(&near, TOKEN);
        let far = far_side(&far, &[], "127.0.0.1:0");
        let address = format!("tcp://{}", Proxy::start(&far.address, Spoil::Reports(lie)).address);
        let args = ["tcp", "--workload", "stream", "--count", "10", "--trials", "1"];
        let done = near
            .start(near.command(&against(&address, &token, &args)))
            .wait_within(TOLD_WITHIN)
            .expect_code(1);
        let record = done.record();
        let said = record.cases[0].error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        assert!(said.contains(says), "{said}");
        far.running.wait_within(soon()).expect_code(0);
    }
}

/// A stream that takes long, and the far side that it goes to.
fn long_stream<'l>(near: &'l Lab, far: &'l Lab) -> (Running<'l>, FarSide<'l>) {
    let token = token(near, TOKEN);
    let far = far_side(far, &[], "127.0.0.1:0");
    let address = straight(&far.address);
    (near.start(near.command(&against(&address, &token, &LONG_STREAM))), far)
}

/// A far side, a stream to it that takes long, and what is done to it; what the row says then.
fn in_a_long_stream(act: impl Fn(u32)) -> (crate::common::Done, crate::common::Done) {
    let (near, far_lab) = (Lab::new(), Lab::new());
    let (mut running, far) = long_stream(&near, &far_lab);
    running.child_in_a_long_trial("hosepipe-send");
    act(far.running.pid());
    let done = running.wait_within(TOLD_WITHIN);
    signal(far.running.pid(), Signal::CONT);
    (done, far.running.wait_within(soon()))
}

fn straight(address: &str) -> String {
    format!("tcp://{address}")
}

fn said(done: &crate::common::Done) -> String {
    done.record().cases[0].error.as_ref().map(|error| error.message.clone()).unwrap_or_default()
}

#[test]
fn a_far_side_that_dies_costs_the_rest() {
    let (done, far) = in_a_long_stream(|far| signal(far, Signal::KILL));
    let said = said(&done.expect_code(1));
    assert!(said.contains("has ended") || said.contains("is gone"), "{said}");
    far.expect_code(137);
}

#[test]
fn a_far_side_that_stands_still_is_not_waited_for() {
    let (done, far) = in_a_long_stream(|far| signal(far, Signal::STOP));
    let said = said(&done.expect_code(1));
    assert!(said.contains("says nothing for 4 s"), "{said}");
    far.expect_code(0);
}

#[test]
fn a_way_on_which_nothing_is_heard_any_more_is_given_up() {
    let (near, far) = (Lab::new(), Lab::new());
    let token = token(&near, TOKEN);
    let far = far_side(&far, &[], "127.0.0.1:0");
    let address = format!("tcp://{}", Proxy::start(&far.address, Spoil::Silence).address);
    let done = near.start(near.command(&against(&address, &token, &LONG_STREAM))).wait_within(TOLD_WITHIN);
    let said = said(&done.expect_code(1));
    assert!(said.contains("says nothing for 4 s"), "{said}");
    far.running.wait_within(soon()).expect_code(0);
}

/// Expected: the far side goes, whatever lies unsent. Happened: it and its end were there minutes later.
#[test]
fn a_way_that_breaks_leaves_nothing_on_the_far_side() {
    let Some(hosts) = Hosts::new() else { return };
    let (near, far) = (Lab::new(), Lab::new());
    let token = token(&near, TOKEN);
    let [wrapper, there] = [0, 1].map(|host| hosts.wrapper(host));
    let far = far_side(&far, &words(&there), "10.9.0.2:0");
    let address = straight(&far.address);
    let args = against(&address, &token, &LONG_STREAM);
    let mut running = near.start(near.wrapped(&words(&wrapper), &args));
    running.child_in_a_long_trial("hosepipe-send");
    hosts.on(0, &["ip", "link", "set", "v", "down"]);
    let said = said(&running.wait_within(TOLD_WITHIN).expect_code(1));
    assert!(said.contains("for 4 s"), "{said}");
    far.running.wait_within(2 * soon()).expect_code(0);
}

#[test]
fn an_end_here_that_dies_is_told_of_and_the_far_one_goes() {
    let (near, far) = (Lab::new(), Lab::new());
    let (mut running, far) = long_stream(&near, &far);
    signal(running.child_stopped_in_a_long_trial("hosepipe-send"), Signal::KILL);
    // The other way has its row all the same.
    running.child_in_a_long_trial("hosepipe-recv");
    signal(running.pid(), Signal::INT);
    let said = said(&running.wait_within(promptly()).expect_code(130));
    assert!(said.contains("the sender (process") && said.contains("SIGKILL"), "{said}");
    far.running.wait_within(promptly()).expect_code(0);
}

#[test]
fn control_c_here_ends_the_far_side() {
    let (near, far) = (Lab::new(), Lab::new());
    let (mut running, far) = long_stream(&near, &far);
    running.child_in_a_long_trial("hosepipe-send");
    running.stop_as_ctrl_c_does("tcp to peer");
    far.running.wait_within(promptly()).expect_code(0);
}
