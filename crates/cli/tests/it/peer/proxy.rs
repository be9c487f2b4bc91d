//! Somebody between two hosts who passes everything on, but not as it was.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

/// What is not as it was.
#[derive(Clone, Copy)]
pub(super) enum Spoil {
    /// Datagrams: of seven one is lost, one comes twice, and two are swapped.
    Datagrams,
    /// The far side's reports: this text in them is replaced.
    Reports(fn(String) -> String),
    /// From the third line of the far side on nothing passes.
    Silence,
}

/// It ends with the test's process.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
}

impl Proxy {
    pub(super) fn start(target: &str, spoil: Spoil) -> Self {
        let target: SocketAddr = target.parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its port");
        if let Spoil::Datagrams = spoil {
            let socket = UdpSocket::bind(address).expect("the same port");
            thread::spawn(move || pass_datagrams(&socket, target));
        }
        thread::spawn(move || {
            for (number, near) in listener.incoming().flatten().enumerate() {
                let far = TcpStream::connect(target).expect("the far side");
                let (near_copy, far_copy) = (near.try_clone().expect("dup"), far.try_clone().expect("dup"));
                thread::spawn(move || pass(near_copy, far_copy));
                // The first connection is the one that they talk over.
                match spoil {
                    Spoil::Reports(change) if number == 0 => {
                        thread::spawn(move || pass_lines(&far, near, change))
                    }
                    Spoil::Silence if number == 0 => thread::spawn(move || pass_some_lines(&far, near)),
                    _ => thread::spawn(move || pass(far, near)),
                };
            }
        });
        Self { address }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut room = [0; 64 << 10];
    while let Ok(len @ 1..) = from.read(&mut room) {
        if to.write_all(&room[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn pass_lines(from: &TcpStream, mut to: TcpStream, change: fn(String) -> String) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let line = if line.contains("\"report\":") { change(line) } else { line };
        if to.write_all(format!("{line}\n").as_bytes()).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// The end of the far side is not passed on, either.
fn pass_some_lines(from: &TcpStream, mut to: TcpStream) {
    for line in BufReader::new(from).lines().map_while(Result::ok).take(3) {
        let _ = to.write_all(format!("{line}\n").as_bytes());
    }
    thread::sleep(Duration::from_secs(60));
}

fn pass_datagrams(front: &UdpSocket, target: SocketAddr) {
    front.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    let (mut back, mut caller): (Option<UdpSocket>, Option<SocketAddr>) = (None, None);
    let mut room = vec![0; 1 << 16];
    let (mut counts, mut held): ([u32; 2], [Option<Vec<u8>>; 2]) = ([0; 2], [None, None]);
    loop {
        if let Ok((len, from)) = front.recv_from(&mut room) {
            if caller != Some(from) {
                let fresh = UdpSocket::bind("127.0.0.1:0").expect("a port");
                fresh.connect(target).expect("the far side");
                fresh.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
                (back, caller) = (Some(fresh), Some(from));
                (counts, held) = ([0; 2], [None, None]);
            }
            let back = back.as_ref().expect("made");
            for datagram in spoilt(&room[..len], &mut counts[0], &mut held[0]) {
                let _ = back.send(&datagram);
            }
        }
        let Some((back, caller)) = back.as_ref().zip(caller) else { continue };
        if let Ok(len) = back.recv(&mut room) {
            for datagram in spoilt(&room[..len], &mut counts[1], &mut held[1]) {
                let _ = front.send_to(&datagram, caller);
            }
        }
    }
}

fn spoilt(datagram: &[u8], count: &mut u32, held: &mut Option<Vec<u8>>) -> Vec<Vec<u8>> {
    *count += 1;
    let mut passed = match *count % 7 {
        2 => Vec::new(),
        4 => vec![datagram.to_vec(); 2],
        6 => {
            *held = Some(datagram.to_vec());
            return Vec::new();
        }
        _ => vec![datagram.to_vec()],
    };
    passed.extend(held.take());
    passed
}
