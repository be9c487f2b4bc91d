//! The rendezvous of nodes without a common folder: the first node listens, and serves those that have the token.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::auth::{Protocol, Token};
use crate::handshake::{Listener, authenticate, connect};
use crate::wire::RemoteError;
use process::spawn_thread;

use crate::fleet::rendezvous::{Rendezvous, serve};

/// The questions to a rendezvous.
const FLEET: Protocol = "fleet 3";
/// How often the first node is called until it listens.
const CALL_AGAIN: Duration = Duration::from_millis(500);
/// Calls that may be cut off before that is taken for a refusal: a listener with many unknown callers drops the oldest.
const CUT_OFF_MAX: usize = 4;

/// Listens there, and answers callers that have the token from a folder, for as long as this process lives. `remark` gets what was wrong with
/// others.
///
/// # Errors
/// What bind(2) answered.
pub fn listen(
    address: SocketAddr,
    token: Token,
    folder: PathBuf,
    mut remark: impl FnMut(&str) + Send + 'static,
) -> Result<(), RemoteError> {
    let mut listening = Listener::at(address)?;
    let answer = move || {
        loop {
            // A caller without the token, or one that goes away, costs the others nothing.
            match listening.next(&token, FLEET, Duration::MAX, &|| false, &mut remark) {
                Ok(Some(wire)) => {
                    let folder = folder.clone();
                    // One that cannot be served is cut off, as one without the token is.
                    let _ = spawn_thread("hosepipe-meet", move || serve(&folder, wire));
                }
                _ => thread::sleep(CALL_AGAIN),
            }
        }
    };
    spawn_thread("hosepipe-meet", answer).map_err(RemoteError::system("cannot start a thread: clone"))?;
    Ok(())
}

/// The rendezvous of the node that listens there, or will within `patience`.
///
/// # Errors
/// Nothing listens, or a program with another token or version.
pub fn call(address: &str, token: &Token, patience: Duration) -> Result<Rendezvous, RemoteError> {
    let (began, mut cut_off) = (Instant::now(), 0);
    loop {
        // Its name may not be known yet, either.
        let reached = connect(address).map_err(|error| (error, began.elapsed() > patience));
        let met = reached.and_then(|stream| {
            cut_off += 1;
            authenticate(stream, address, token, FLEET).map_err(|error| (error, cut_off > CUT_OFF_MAX))
        });
        match met {
            Ok(wire) => return Ok(Rendezvous::over(wire)),
            Err((error, true)) => return Err(error),
            Err(_) => thread::sleep(CALL_AGAIN),
        }
    }
}
