//! Puts the commit and the kind of build into the program, for `--version`, and links it so that it starts quickly and is small.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let revision = revision();
    if let Some(revision) = &revision {
        println!("cargo:rustc-env=HOSEPIPE_REVISION={revision}");
    }
    println!("cargo:rerun-if-env-changed=HOSEPIPE_PIE");
    let has_fixed_address = variable("HOSEPIPE_PIE").is_empty() && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if has_fixed_address {
        link_for_a_quick_start();
    }
    if variable("PROFILE") == "release" && variable("DEBUG") == "false" && panics_abort() {
        leave_out_unwind_tables();
    }
    let is_static = variable("CARGO_CFG_TARGET_ENV") == "musl";
    let is_debug = variable("PROFILE") == "debug";
    let features = [(is_static, "static"), (has_fixed_address, "fixed address"), (is_debug, "debug")];
    let features = features.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word.to_owned());
    let build: Vec<String> = revision.into_iter().chain([variable("TARGET")]).chain(features).collect();
    println!("cargo:rustc-env=HOSEPIPE_VERSION={} ({})", variable("CARGO_PKG_VERSION"), build.join(", "));
}

/// The first digits of the commit. Another repository may be around the sources: git is only asked in a checkout of ours.
fn revision() -> Option<String> {
    const PACKAGED: &str = ".cargo_vcs_info.json";
    const DIGITS: usize = 12;
    if Path::new("../../.git").exists() {
        println!("cargo:rerun-if-changed=../../.git/HEAD");
        println!("cargo:rerun-if-changed=../../.git/refs/heads");
        let output = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
        let revision = String::from_utf8(output.stdout).ok()?;
        return output.status.success().then(|| revision.chars().take(DIGITS).collect());
    }
    // Written by `cargo package`.
    println!("cargo:rerun-if-changed=build.rs");
    let info = std::fs::read_to_string(PACKAGED).ok()?;
    Some(info.split_once("\"sha1\": \"")?.1.chars().take(DIGITS).collect())
}

/// At a fixed address, so that the loader has no pointers to adjust in some seventy pages, and with GCC's unwinder inside, so that it has
/// one library fewer to load (docs/DECISIONS.md).
fn link_for_a_quick_start() {
    println!("cargo:rustc-link-arg-bins=-no-pie");
    let unwinder = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let unwinder = unwinder.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let folder = variable("OUT_DIR");
    // Without the static library, or for another machine, the shared one stays.
    if let Ok(unwinder) = unwinder
        && unwinder.is_absolute()
        && variable("HOST") == variable("TARGET")
        // The linker reads it where rustc asks for the shared library: a script (ld(1), INPUT).
        && std::fs::write(Path::new(&folder).join("libgcc_s.so"), format!("INPUT({})\n", unwinder.display())).is_ok()
    {
        println!("cargo:rustc-link-arg-bins=-L{folder}");
    }
}

/// Whether the profile of the workspace is used; `cargo install` has a profile of its own, in which panics unwind. CARGO_CFG_PANIC does not know.
fn panics_abort() -> bool {
    println!("cargo:rerun-if-env-changed=CARGO_PROFILE_RELEASE_PANIC");
    let workspace = std::fs::read_to_string("../../Cargo.toml").unwrap_or_default();
    workspace.contains("\npanic = \"abort\"\n") && variable("CARGO_PROFILE_RELEASE_PANIC") != "unwind"
}

/// Without the tables of the unwinder, a tenth of the file: a panic aborts a release, and nothing else reads them there.
/// A profile with debug information keeps them, for perf(1) and gdb(1). The script adds to the linker's own (ld(1), INSERT).
fn leave_out_unwind_tables() {
    // The start files of musl name their own part.
    const SCRIPT: &str = "SECTIONS { /DISCARD/ : { *(EXCLUDE_FILE(*crtbegin*.o *crtend*.o) .eh_frame .gcc_except_table .gcc_except_table.*) } }\nINSERT AFTER .text;\n";
    let path = Path::new(&variable("OUT_DIR")).join("no-unwind-tables.ld");
    if std::fs::write(&path, SCRIPT).is_ok() {
        println!("cargo:rustc-link-arg-bins=-Wl,--no-eh-frame-hdr,-T,{}", path.display());
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
