//! An end of 32 bits and one of 64 share a ring, whichever of them sends, and when either is killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use crate::ends::{FUTEX, Lab, Language, Running, SPIN, compiled};

/// The end in C for 32 bits, compiled once; `None` where the compiler makes none, which an x86 machine that tests every change does not
/// allow.
fn end_of_32_bits() -> Option<&'static Path> {
    static BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let binary = BINARY.get_or_init(|| compiled(&["-m32"], "end32")).as_deref();
    let is_needed = std::env::var_os("CI").is_some() && cfg!(target_arch = "x86_64");
    assert!(binary.is_some() || !is_needed, "cc -m32 needs gcc-multilib");
    binary
}

#[test]
fn ends_of_32_and_of_64_bits_read_each_other() {
    let Some(binary) = end_of_32_bits() else { return };
    for other in [None, Some(Language::C), Some(Language::Rust), Some(Language::Python)] {
        for roles in [["sender", "receiver"], ["receiver", "sender"]] {
            let mut lab = Lab::new();
            for wait in [FUTEX, SPIN] {
                let [first, second] = roles.map(|role| (role, if role == "sender" { 3000 } else { 0 }));
                let narrow = lab.start_binary(Command::new(binary), first.0, first.1, wait);
                let wide = match other {
                    Some(language) => lab.start(language, second.0, second.1, wait),
                    None => lab.start_binary(Command::new(binary), second.0, second.1, wait),
                };
                narrow.succeeds();
                wide.succeeds();
                lab.assert_all_arrived();
            }
        }
    }
}

/// What one end leaves when it is killed, the next one goes on with, of 32 bits or of 64.
#[test]
fn kills_of_ends_of_32_and_of_64_bits_lose_nothing() {
    let Some(binary) = end_of_32_bits() else { return };
    let mut lab = Lab::new();
    let start = |lab: &mut Lab, role: &str, count: u64| -> Running {
        match lab.random(2) {
            0 => lab.start(Language::C, role, count, FUTEX),
            _ => lab.start_binary(Command::new(binary), role, count, FUTEX),
        }
    };
    let roles = ["sender", "receiver"];
    let mut ends = roles.map(|role| start(&mut lab, role, 0));
    for _ in 0..60 {
        sleep(Duration::from_micros(lab.random(12_000)));
        let at = lab.random(2) as usize;
        assert_eq!(ends[at].0.try_wait().expect("its status"), None, "an end failed");
        ends[at].0.kill().expect("to be killed");
        ends[at].0.wait().expect("its status");
        ends[at] = start(&mut lab, roles[at], 0);
    }
    let [sender, receiver] = ends;
    drop(sender);
    start(&mut lab, "sender", 3000).succeeds();
    receiver.succeeds();
    lab.assert_all_arrived();
}
