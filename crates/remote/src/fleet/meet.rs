//! Where nodes meet that see no common folder: the first one listens, and keeps a rendezvous for those who have the token.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::auth::{Protocol, Token};
use crate::handshake::{Listener, authenticate, connect};
use crate::wire::RemoteError;
use process::spawn_thread;

use crate::fleet::rendezvous::{Rendezvous, serve};

/// What is asked of a rendezvous.
const FLEET: Protocol = "fleet 1";
/// How often the first node is called until it listens.
const CALL_AGAIN: Duration = Duration::from_millis(500);
/// So often a call may be cut off before it is taken for a refusal: in a crowd of strangers who came first is let go.
const CUT_OFF_MAX: usize = 4;

/// Listens there, and answers everybody with the token from a folder, for as long as this process lives. `remark` is told of others.
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
            // Who has no token, or goes away, is no trouble of the others.
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

/// The rendezvous of the node that listens there, or will, for so long at most.
///
/// # Errors
/// Nobody listens, or somebody with another token or version.
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
