//! The workers' sources are part of the binary: a new or changed one makes a new binary.

fn main() {
    println!("cargo::rerun-if-changed=workers");
    println!("cargo::rerun-if-changed=build.rs");
}
