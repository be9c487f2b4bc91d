//! The rendezvous of nodes without a common folder: the first node listens, and serves the nodes that have the token.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::auth::{Protocol, Token};
use crate::handshake::{Listener, authenticate, connect};
use process::{WireError, spawn_thread};

use crate::fleet::rendezvous::{Rendezvous, serve};

/// The protocol of a rendezvous.
const FLEET: Protocol = "fleet 3";
/// Pause between two attempts to reach the first node, which may not listen yet; also after a failed accept(2).
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Failed authentications after which the attempt to connect fails. Up to this number the listener may have closed the connection because it had
/// too many unauthenticated ones.
const CLOSED_MAX: usize = 4;

/// Listens at `address` and serves the rendezvous in `folder` to nodes that have the token, until this process ends. `remark` is called with the
/// reason for each refused connection.
///
/// # Errors
/// The error of bind(2).
pub fn listen(
    address: SocketAddr,
    token: Token,
    folder: PathBuf,
    mut remark: impl FnMut(&str) + Send + 'static,
) -> Result<(), WireError> {
    let mut listening = Listener::at(address)?;
    let answer = move || {
        loop {
            match listening.next(&token, FLEET, Duration::MAX, &|| false, &mut remark) {
                Ok(Some(wire)) => {
                    let folder = folder.clone();
                    // If no thread can be started, the connection is closed.
                    let _ = spawn_thread("hosepipe-meet", move || serve(&folder, wire));
                }
                _ => thread::sleep(RETRY_PAUSE),
            }
        }
    };
    spawn_thread("hosepipe-meet", answer).map_err(WireError::system("cannot start a thread: clone"))?;
    Ok(())
}

/// Connects to the rendezvous of the node that listens at `address`, or that begins to listen within `patience`.
///
/// # Errors
/// No program listens there, or it has another token or version.
pub fn call(address: &str, token: &Token, patience: Duration) -> Result<Rendezvous, WireError> {
    let (began, mut closed) = (Instant::now(), 0);
    loop {
        // The name may not be resolvable yet.
        let reached = connect(address).map_err(|error| (error, began.elapsed() > patience));
        let met = reached.and_then(|stream| {
            closed += 1;
            authenticate(stream, address, token, FLEET).map_err(|error| (error, closed > CLOSED_MAX))
        });
        match met {
            Ok(wire) => return Ok(Rendezvous::over(wire)),
            Err((error, true)) => return Err(error),
            Err(_) => thread::sleep(RETRY_PAUSE),
        }
    }
}
