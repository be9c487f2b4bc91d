//! Messages of other hosts: to a rendezvous of nodes and from it, in this process.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;

use process::Wire;
use remote::fleet::{Rendezvous, Status, serve};

use super::fuzz;
use super::input::{Seed, corpus};

/// A wire, and the other end of its socket.
fn wire() -> (Wire, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let copy = ours.try_clone().expect("a copy");
    (Wire::new(OwnedFd::from(ours), OwnedFd::from(copy), "the other"), theirs)
}

#[test]
fn questions_to_a_rendezvous() {
    let outside = tempfile::tempdir().expect("a folder");
    let folder = outside.path().join("inside");
    std::fs::create_dir(&folder).expect("made");
    fuzz("rendezvous", &corpus("rendezvous"), |input| {
        let (wire, mut caller) = wire();
        let mut answers = caller.try_clone().map_err(|error| error.to_string())?;
        let served = thread::scope(|scope| {
            scope.spawn(move || {
                // One that is cut off says no more.
                let _ = caller.write_all(input).and_then(|()| caller.shutdown(Shutdown::Write));
            });
            scope.spawn(move || answers.read_to_end(&mut Vec::new()));
            let served = serve(&folder, wire);
            served.err().map(|error| error.to_string())
        });
        let entries = std::fs::read_dir(outside.path()).map_err(|error| error.to_string())?.count();
        match served {
            _ if entries != 1 => Err("a file outside of its folder".to_owned()),
            Some(error) if error.is_empty() => Err("an error without a word".to_owned()),
            _ => Ok(()),
        }
    });
}

#[test]
fn answers_of_a_rendezvous() {
    let status = r#"{"beat":7,"name":"a","size":2,"tool":{"version":"0.2.0","revision":null},"address":"127.0.0.1","step":1,"listening":{"Ok":"x"},"failure":null,"lost":[3]}"#;
    fuzz("answers", &[Seed::new("status", format!("{status}\n")), Seed::new("none", "null\n")], |input| {
        let (wire, mut server) = wire();
        let sent = server.write_all(input).and_then(|()| server.shutdown(Shutdown::Write));
        sent.map_err(|error| error.to_string())?;
        match Rendezvous::over(wire).get::<Status>("status-1") {
            Err(error) if error.to_string().is_empty() => Err("an error without a word".to_owned()),
            _ => Ok(()),
        }
    });
}
