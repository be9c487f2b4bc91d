//! Puts the revision into the binary, where it is built from a git checkout.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
    let revision = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Ok(output) = revision
        && output.status.success()
    {
        println!("cargo:rustc-env=HOSEPIPE_REVISION={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
