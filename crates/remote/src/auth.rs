//! Who both sides are: each shows that it has the token, over fresh numbers of both, and never the token.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hmac::{Hmac, Mac};
use model::describe_errno;
use rustix::fs::{Mode, OFlags, open};
use sha2::Sha256;

use crate::peer::wire::{Hello, PeerError};

/// A random number that is used once.
pub(crate) type Nonce = [u8; 32];
/// HMAC-SHA256 (RFC 2104).
pub(crate) type Proof = [u8; 32];

/// Bytes of a token.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: u64 = 4096;

/// What both sides know and nobody else. It is never shown.
pub struct Token(Vec<u8>);

/// Whose proof it is: neither can be handed back as the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prover {
    Near,
    Far,
}

impl Token {
    /// Reads a token from a file that only its owner may read; a last line end does not belong to it.
    ///
    /// # Errors
    /// What is wrong with the file, and how it is made.
    pub fn read(path: &Path) -> Result<Self, PeerError> {
        let problem = |what: String| PeerError(format!("the token file {} {what}", path.display()));
        let make = "make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE)";
        let cannot =
            |error: io::Error| problem(format!("cannot be read: {}; {make}", describe_errno(&error)));
        // Of a FIFO nobody may ever open the other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map(File::from).map_err(|error| cannot(error.into()))?;
        let about = file.metadata().map_err(cannot)?;
        if !about.is_file() {
            return Err(problem(format!("is no file; {make}")));
        }
        let user = rustix::process::geteuid().as_raw();
        if ![0, user].contains(&about.uid()) {
            return Err(problem(format!("belongs to another user ({}): chown {user} it", about.uid())));
        }
        if about.mode() & 0o077 != 0 {
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

    fn mac(&self, prover: Prover, far: &Hello, near: &Hello) -> Hmac<Sha256> {
        // A key of any length will do.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!());
        mac.update(if prover == Prover::Near { b"hosepipe near" } else { b"hosepipe far " });
        for hello in [far, near] {
            for text in [&hello.protocol, &hello.version] {
                mac.update(&(text.len() as u64).to_be_bytes());
                mac.update(text.as_bytes());
            }
            mac.update(&hello.nonce);
        }
        mac
    }

    /// The proof of one side, over what both have said.
    pub(crate) fn prove(&self, prover: Prover, far: &Hello, near: &Hello) -> Proof {
        self.mac(prover, far, near).finalize().into_bytes().into()
    }

    /// Whether a proof is that side's; takes the same time for every wrong one.
    pub(crate) fn verify(&self, proof: &Proof, prover: Prover, far: &Hello, near: &Hello) -> bool {
        self.mac(prover, far, near).verify_slice(proof).is_ok()
    }
}

/// The text of a new token.
///
/// # Errors
/// What getrandom(2) answers.
pub fn new_token() -> io::Result<String> {
    Ok(nonce()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A fresh number.
///
/// # Errors
/// What getrandom(2) answers.
pub(crate) fn nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())?;
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::wire::BENCH;

    #[test]
    fn a_proof_is_of_one_side_one_token_and_both_numbers() {
        let (token, other) = (Token(vec![1; 16]), Token(vec![2; 16]));
        let hello = |number| Hello { nonce: [number; 32], ..Hello::new(BENCH).expect("random") };
        let (far, near) = (hello(1), hello(2));
        let proof = token.prove(Prover::Near, &far, &near);
        assert!(token.verify(&proof, Prover::Near, &far, &near));
        assert!(!token.verify(&proof, Prover::Far, &far, &near), "reflected");
        assert!(!token.verify(&proof, Prover::Near, &far, &hello(3)), "repeated");
        assert!(!token.verify(&proof, Prover::Near, &near, &far));
        assert!(!other.verify(&proof, Prover::Near, &far, &near));
    }
}
