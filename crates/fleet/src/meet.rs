//! Where nodes meet that see no common folder: the first one listens, and keeps a board for those who show that they have the token.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hmac::{Hmac, Mac};
use rustix::fs::{Mode, OFlags, open};
use sha2::Sha256;

use crate::board::{Board, serve};

/// How long either may take to show that it has the token.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often the first node is called until it listens.
const CALL_AGAIN: Duration = Duration::from_millis(500);
/// No more callers are heard at once who have not shown the token: each takes descriptors.
const UNPROVEN_MAX: usize = 64;
/// Bytes of a token at least.
const TOKEN_BYTES_MIN: usize = 16;

/// A secret of all nodes.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Reads it from a file that is nobody else's.
    ///
    /// # Errors
    /// It cannot be read, others can read it, or it is shorter than 16 bytes.
    pub fn read(path: &Path) -> io::Result<Self> {
        // Of a FIFO nobody may ever open the other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = open(path, flags, Mode::empty()).map(File::from)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut secret = Vec::new();
        file.read_to_end(&mut secret)?;
        match (file.metadata()?.mode() & 0o077, secret.trim_ascii().len()) {
            (0, TOKEN_BYTES_MIN..) => Ok(Self(secret.trim_ascii().to_owned())),
            (0, _) => Err(io::Error::other("it holds fewer than 16 bytes")),
            _ => Err(io::Error::other("others can read it: chmod 600")),
        }
    }

    /// HMAC-SHA256 (RFC 2104) over both random numbers, different for both sides.
    fn mac(&self, side: &str, numbers: [&str; 2]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("hosepipe fleet {side} {} {}", numbers[0], numbers[1]).as_bytes());
        Some(mac)
    }

    /// Shows the other side that we have it, and has it shown. Neither number is ever used again.
    fn meet(&self, stream: &TcpStream, own: &str, other: &str) -> io::Result<BufReader<TcpStream>> {
        let refused = || io::Error::new(ErrorKind::PermissionDenied, "the other side has another token");
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut to, mut from) = (stream.try_clone()?, BufReader::new(stream.try_clone()?));
        let mut line = || -> io::Result<String> {
            let mut line = String::new();
            from.by_ref().take(100).read_line(&mut line)?;
            Ok(line.trim_end().to_owned())
        };
        let number = random()?;
        to.write_all(format!("{number}\n").as_bytes())?;
        let theirs = line()?;
        let proof = self.mac(own, [&number, &theirs]).ok_or_else(refused)?.finalize().into_bytes();
        to.write_all(format!("{}\n", hex(&proof)).as_bytes())?;
        let shown = line()?;
        let shown: Option<Vec<u8>> = (0..shown.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(shown.get(at..at + 2)?, 16).ok())
            .collect();
        let mac = self.mac(other, [&theirs, &number]).ok_or_else(refused)?;
        mac.verify_slice(&shown.ok_or_else(refused)?).map_err(|_| refused())?;
        stream.set_read_timeout(None)?;
        Ok(from)
    }
}

/// Listens there, and answers everybody with the token from a folder, for as long as this process lives.
///
/// # Errors
/// What bind(2) answered.
pub fn listen(address: impl ToSocketAddrs, secret: &Secret, folder: PathBuf) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let secret = secret.clone();
    let _held = process::signals::NoSignals::hold();
    thread::spawn(move || {
        let unproven = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Without a descriptor left it would come back at once, again and again.
                thread::sleep(CALL_AGAIN);
                continue;
            };
            if unproven.load(Ordering::Relaxed) >= UNPROVEN_MAX {
                continue;
            }
            unproven.fetch_add(1, Ordering::Relaxed);
            let (secret, folder, unproven) = (secret.clone(), folder.clone(), Arc::clone(&unproven));
            // Who has no token, or goes away, is no trouble of the others.
            thread::spawn(move || -> io::Result<()> {
                let met = secret.meet(&stream, "first", "other");
                unproven.fetch_sub(1, Ordering::Relaxed);
                serve(&folder, &mut met?, &mut &stream)
            });
        }
    });
    Ok(())
}

/// The board of the node that listens there, or will, for so long at most.
///
/// # Errors
/// Nobody listens, or somebody with another token.
pub fn call(address: &str, secret: &Secret, patience: Duration) -> io::Result<Board> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => match secret.meet(&stream, "other", "first") {
                Ok(answers) => return Ok(Board::over(answers, stream)),
                // Let go in a crowd of strangers, perhaps.
                Err(error) if error.kind() == ErrorKind::PermissionDenied || began.elapsed() > patience => {
                    return Err(error);
                }
                Err(_) => thread::sleep(CALL_AGAIN),
            },
            Err(error) if began.elapsed() > patience => return Err(error),
            // Its name may not be known yet, either.
            Err(_) => thread::sleep(CALL_AGAIN),
        }
    }
}

/// A number that nobody can guess, in hexadecimal digits.
///
/// # Errors
/// What getrandom(2) answered.
pub fn random() -> io::Result<String> {
    let mut bytes = [0; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
