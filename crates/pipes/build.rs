//! Compiles the shared object that is preloaded into shells; its bytes are a constant of this crate.
//!
//! Calls rustc directly: cargo cannot yet include one crate's shared object in another crate (artifact dependencies are unstable).

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::{Command, exit};

fn main() {
    let source = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("src");
    println!("cargo::rerun-if-changed={}", source.display());
    let library = PathBuf::from(variable("OUT_DIR")).join("libpipes.so");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition", "2024", "--crate-name", "pipes", "--crate-type", "cdylib", "--cfg", "preload"]);
    rustc.args(["--target", &variable("TARGET")]);
    // The flags of the user or a distribution come first, then those that this code needs. Each `-C` and its value become one word, so that
    // those of coverage can be left out: its counters need a library.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace("-C\u{1f}", "-C");
    rustc
        .args(flags.split('\u{1f}').filter(|flag| !flag.is_empty() && !flag.contains("instrument-coverage")));
    // The C library is not linked: the few symbols that are needed are in every shell's own C library.
    let codegen = [
        "panic=abort",
        "opt-level=s",
        "strip=symbols",
        "force-unwind-tables=no",
        "relocation-model=pic",
        "target-feature=-crt-static",
        "link-arg=-nostartfiles",
        "link-arg=-nostdlib",
    ];
    rustc.args(codegen.iter().flat_map(|option| ["-C", option]));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let made = rustc.arg("-o").arg(&library).arg(source.join("lib.rs")).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("cargo::error=the library that is preloaded into shells could not be compiled");
        exit(1);
    }
    let mut hasher = DefaultHasher::new();
    fs::read(&library).expect("it was just made").hash(&mut hasher);
    println!("cargo::rustc-env=PIPES_FINGERPRINT={:016x}", hasher.finish());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
