//! Somebody between two hosts who passes everything on, but not as it was.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// What is not as it was.
#[derive(Clone, Copy)]
pub(super) enum Spoil {
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
