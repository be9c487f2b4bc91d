//! Authentication of two sides: each proves that it has the token by a MAC over new random numbers of both. The token is never sent.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use model::{describe_errno, visible};
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use process::WireError;

/// A random number that is used once.
type Nonce = [u8; 32];
/// HMAC-SHA256 (RFC 2104).
pub(crate) type Proof = [u8; 32];

/// Shortest and longest token.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: u64 = 4096;

/// The name of a protocol, and the version of its messages.
pub(crate) type Protocol = &'static str;

/// A side's protocol, version and nonce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: String,
    /// The version of hosepipe.
    pub(crate) version: String,
    pub(crate) nonce: Nonce,
}

impl Hello {
    pub(crate) fn new(protocol: Protocol) -> Result<Self, WireError> {
        let nonce = nonce().map_err(WireError::system("getrandom"))?;
        Ok(Self { protocol: protocol.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), nonce })
    }

    /// Refuses another protocol or another version.
    pub(crate) fn check(&self, name: &str, own: Protocol) -> Result<(), WireError> {
        let own_version = env!("CARGO_PKG_VERSION");
        if self.protocol == own && self.version == own_version {
            return Ok(());
        }
        let [version, protocol] = [&self.version, &self.protocol].map(|text| visible(text));
        Err(WireError(format!(
            "{name} is hosepipe {version} (protocol {protocol}), this is {own_version} (protocol {own}): \
             install the same version on both hosts"
        )))
    }
}

/// The first message of each side. The server, which is the side that listens or was started, sends first, and its proof later.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) hello: Hello,
    /// The client's proof, if a token is used.
    pub(crate) proof: Option<Proof>,
}

/// A secret that both sides have. It is never printed.
pub struct Token(Vec<u8>);

/// The side that makes a proof. The proof depends on it, so that no side can send back the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prover {
    Client,
    Server,
}

impl Token {
    /// Reads a token from a file that only its owner may read, without white space at its end.
    ///
    /// # Errors
    /// What is wrong with the file, and how to make one.
    pub fn read(path: &Path) -> Result<Self, WireError> {
        let problem = |what: String| WireError(format!("the token file {} {what}", path.display()));
        let make = "make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE)";
        let cannot =
            |error: io::Error| problem(format!("cannot be read: {}; {make}", describe_errno(&error)));
        // Opening a FIFO must not wait for its other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map(File::from).map_err(|error| cannot(error.into()))?;
        let metadata = file.metadata().map_err(cannot)?;
        if !metadata.is_file() {
            return Err(problem(format!("is not a regular file; {make}")));
        }
        let user = rustix::process::geteuid().as_raw();
        if ![0, user].contains(&metadata.uid()) {
            return Err(problem(format!("belongs to another user ({}): chown {user} it", metadata.uid())));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(problem("can be read or written by others: chmod 600 it".to_owned()));
        }
        let mut token = Vec::new();
        file.take(TOKEN_BYTES_MAX + 1).read_to_end(&mut token).map_err(cannot)?;
        let len = token.trim_ascii_end().len();
        token.truncate(len);
        if len < TOKEN_BYTES_MIN || len as u64 > TOKEN_BYTES_MAX {
            return Err(problem(format!(
                "holds {len} bytes, not {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX}; {make}"
            )));
        }
        Ok(Self(token))
    }

    fn mac(&self, prover: Prover, server: &Hello, client: &Hello) -> Hmac<Sha256> {
        // HMAC accepts keys of every length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!());
        mac.update(if prover == Prover::Client { b"hosepipe client" } else { b"hosepipe server" });
        for hello in [server, client] {
            for text in [&hello.protocol, &hello.version] {
                mac.update(&(text.len() as u64).to_be_bytes());
                mac.update(text.as_bytes());
            }
            mac.update(&hello.nonce);
        }
        mac
    }

    /// The proof of one side, over the hellos of both.
    pub(crate) fn prove(&self, prover: Prover, server: &Hello, client: &Hello) -> Proof {
        self.mac(prover, server, client).finalize().into_bytes().into()
    }

    /// Whether that side has made the proof. The comparison takes constant time.
    pub(crate) fn verify(&self, proof: &Proof, prover: Prover, server: &Hello, client: &Hello) -> bool {
        self.mac(prover, server, client).verify_slice(proof).is_ok()
    }
}

/// The text of a new token.
///
/// # Errors
/// What getrandom(2) answers.
pub(crate) fn new_token() -> io::Result<String> {
    Ok(nonce()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A new random number.
///
/// # Errors
/// What getrandom(2) answers.
fn nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())?;
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_side_one_token_and_both_numbers() {
        let (token, other) = (Token(vec![1; 16]), Token(vec![2; 16]));
        let hello = |number| Hello { nonce: [number; 32], ..Hello::new("test 1").expect("random") };
        let (server, client) = (hello(1), hello(2));
        let proof = token.prove(Prover::Client, &server, &client);
        assert!(token.verify(&proof, Prover::Client, &server, &client));
        assert!(!token.verify(&proof, Prover::Server, &server, &client), "reflected");
        assert!(!token.verify(&proof, Prover::Client, &server, &hello(3)), "replayed");
        assert!(!token.verify(&proof, Prover::Client, &client, &server));
        assert!(!other.verify(&proof, Prover::Client, &server, &client));
    }
}
