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

/// The protocol of a rendezvous.
const FLEET: Protocol = "fleet 3";
/// Time between two calls of the first node until it listens.
const CALL_AGAIN: Duration = Duration::from_millis(500);
/// Connections that may be closed before this counts as a refusal: a listener with many unknown callers closes the oldest.
const CUT_OFF_MAX: usize = 4;

/// Listens there, and serves the rendezvous in a folder to callers that have the token, until this process ends. `remark` is called with the
/// reason why another caller was refused.
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
            match listening.next(&token, FLEET, Duration::MAX, &|| false, &mut remark) {
                Ok(Some(wire)) => {
                    let folder = folder.clone();
                    // Without a thread the connection is closed.
                    let _ = spawn_thread("hosepipe-meet", move || serve(&folder, wire));
                }
                _ => thread::sleep(CALL_AGAIN),
            }
        }
    };
    spawn_thread("hosepipe-meet", answer).map_err(RemoteError::system("cannot start a thread: clone"))?;
    Ok(())
}

/// Connects to the rendezvous of the node that listens there, or will within `patience`.
///
/// # Errors
/// No program listens, or one with another token or version.
pub fn call(address: &str, token: &Token, patience: Duration) -> Result<Rendezvous, RemoteError> {
    let (began, mut cut_off) = (Instant::now(), 0);
    loop {
        // The name may not be resolvable yet.
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
