//! What token files hold, and what strangers say: taken where it is right, a sentence where it is not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use model::{Host, Tool};
use peer::{Listening, Near, Token};
use proptest::prelude::*;

fn token_file(folder: &tempfile::TempDir, text: &str, mode: u32) -> PathBuf {
    let path = folder.path().join("token");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    path
}

fn token() -> Token {
    let folder = tempfile::tempdir().expect("a folder");
    Token::read(&token_file(&folder, "0123456789abcdef", 0o600)).expect("a token")
}

#[test]
fn a_token_is_its_owners_and_long_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |text: &str, mode: u32| {
        let problem = Token::read(&token_file(&folder, text, mode)).err();
        problem.map(|problem| problem.to_string()).unwrap_or_default()
    };
    assert_eq!(said("0123456789abcdef\n", 0o600), "");
    assert!(said("0123456789abcdef\n", 0o640).contains("chmod 600"));
    assert!(said("0123456789abcde\n", 0o600).contains("holds 15 bytes"));
    assert!(said(&"x".repeat(5000), 0o600).contains("not 16 to 4096"));
}

/// What comes of a call to somebody who says this, in pieces of so many bytes, and hangs up.
fn called(says: Vec<u8>, piece: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its port").to_string();
    let stranger = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a call");
        for piece in says.chunks(piece) {
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let outcome = Near::over_tcp(&address, &token()).err().map(|error| error.to_string());
    stranger.join().expect("it ends");
    outcome.expect("it is no hosepipe")
}

const NONCE: &str = "[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7]";

#[test]
fn who_says_hello_and_has_no_token_is_not_trusted() {
    let version = env!("CARGO_PKG_VERSION");
    let hello =
        format!("{{\"hello\":{{\"protocol\":\"bench 2\",\"version\":\"{version}\",\"nonce\":{NONCE}}}}}\n");
    let known = format!("{{\"known\":{NONCE}}}\n");
    let said = called([&hello[..], &known].concat().into_bytes(), 4096);
    assert!(said.ends_with("does not have the token: it is not trusted"), "{said}");
    let said = called([&hello[..], "{\"news\":[1,{\"Ok\":{\"moved\":2}}]}\n"].concat().into_bytes(), 4096);
    assert!(said.contains("does not begin as it must"), "{said}");
}

/// Expected: what a stranger says is one line. Happened: each line end of it began another one, as if hosepipe said it.
#[test]
fn a_stranger_is_quoted_in_one_line() {
    let listening = Listening::at("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let mut caller = TcpStream::connect(listening.address().expect("it")).expect("a call");
    caller.write_all(b"a\nb\nhosepipe peer: all is well\n").expect("said");
    let mut told = Vec::new();
    let own = (Tool::default(), Host::default());
    let idle = Duration::from_millis(200);
    let _ = listening.await_near(&token(), own, idle, &|| false, &mut |text| told.push(text.to_owned()));
    assert!(told.len() == 1 && told[0].contains("it says `a`") && !told[0].contains('\n'), "{told:?}");
}

#[test]
fn a_line_has_an_end() {
    let said = called(vec![b'x'; 3 << 20], 1 << 16);
    assert!(said.ends_with("sends a line without an end"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever bytes come, in whatever pieces: a sentence.
    #[test]
    fn garbage_is_a_sentence(says in proptest::collection::vec(any::<u8>(), 0..200), piece in 1usize..50) {
        let said = called(says.clone(), piece);
        let expected = if says.contains(&b'\n') { "does not talk as hosepipe does" } else { "has ended" };
        prop_assert!(said.contains(expected), "{}", said);
    }

    #[test]
    fn another_version_is_told_in_whatever_pieces(protocol in 3u32.., piece in 1usize..50) {
        let hello = format!("{{\"hello\":{{\"protocol\":\"bench {protocol}\",\"version\":\"9.9\",\"nonce\":{NONCE}}}}}\n");
        let said = called(hello.into_bytes(), piece);
        prop_assert!(said.contains(&format!("is hosepipe 9.9 (protocol bench {protocol})")), "{}", said);
    }

    /// Nobody gets in by talking, and nobody who talks keeps it from ending.
    #[test]
    fn a_caller_without_the_token_is_let_go(says in proptest::collection::vec(any::<u8>(), 0..6000)) {
        let listening = Listening::at("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let mut caller = TcpStream::connect(listening.address().expect("it")).expect("a call");
        let _ = caller.write_all(&[&says[..], b"\n"].concat());
        let own = (Tool::default(), Host::default());
        let idle = Duration::from_millis(20);
        let came = listening.await_near(&token(), own, idle, &|| false, &mut |_| ());
        prop_assert!(came.is_err_and(|error| error.to_string().contains("nobody with the token")));
    }
}
