//! The reference: straightforward C programs (`c/*.c`), compiled here as well as the compiler can and run for
//! their figures. They print numbers; the first comment of each program says what they mean.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Where cargo lets a bench leave files.
const BUILD_DIR: &str = env!("CARGO_TARGET_TMPDIR");
const SOURCE_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/against_c/c");

/// As cargo's release profile does; and for this very machine, as hosepipe's checks are chosen when it starts. A
/// slower check would not only cost more: between two CPUs it would make the C receiver sleep less, and win.
pub(crate) const OPTIMISATION: [&str; 2] = ["-O3", "-march=native"];

/// The compiled reference programs.
pub(crate) struct References {
    /// The compiler's own first line of `--version`.
    pub(crate) compiler: String,
    /// False where the header `xxhash.h` is not installed: then there is no XXH3 in C to compare with.
    pub(crate) has_xxhash: bool,
    cc: OsString,
    pipe_stream: PathBuf,
}

impl References {
    /// Finds the compiler, and compiles what several rows need.
    ///
    /// # Errors
    /// No C compiler (with what to install), or what the compiler complained of.
    pub(crate) fn compile() -> Result<Self> {
        let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let compiler = version_of(&cc)?;
        let has_xxhash = has_header(&cc, "xxhash.h");
        let with_xxhash: &[&str] = if has_xxhash { &["-DWITH_XXHASH"] } else { &[] };
        let pipe_stream = build(&cc, "pipe_stream", with_xxhash)?;
        Ok(Self { compiler, has_xxhash, cc, pipe_stream })
    }

    /// Bytes per second through a pipe; `check` is `none`, `xor` or `xxh3`.
    pub(crate) fn pipe_stream(
        &self,
        bytes: u64,
        block_bytes: u64,
        cpus: [u32; 2],
        check: &str,
    ) -> Result<f64> {
        let line = format!("{bytes} {block_bytes} {} {} {check}", cpus[0], cpus[1]);
        let [moved, elapsed_ns] = numbers(&self.pipe_stream, &line)?;
        Ok(moved * 1e9 / elapsed_ns)
    }

    /// Compiles another program, by its name in `c/`.
    ///
    /// # Errors
    /// What the compiler complained of.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        build(&self.cc, name, &[])
    }

    /// Compiles a library to preload, by its name in `c/`.
    ///
    /// # Errors
    /// What the compiler complained of.
    pub(crate) fn library(&self, name: &str) -> Result<PathBuf> {
        build(&self.cc, name, &["-shared", "-fPIC", "-pthread"])
    }
}

/// One byte to and fro in a ping-pong program, `count` times: the mean in nanoseconds. `kind` tells the program's mechanisms apart. Its clock
/// is `total` (before the first and after the last only: the fastest a C program can be) or `each` (after every round trip as well, as a
/// distribution needs it).
pub(crate) fn pingpong_ns(
    program: &Path,
    kind: &str,
    count: u64,
    cpus: [u32; 2],
    clock: &str,
) -> Result<f64> {
    let line = format!("{kind} {count} {} {} {clock}", cpus[0], cpus[1]);
    let [made, elapsed_ns, _p50_ns] = numbers(program, &line)?;
    Ok(elapsed_ns / made)
}

fn version_of(cc: &OsString) -> Result<String> {
    let output = Command::new(cc).arg("--version").output().with_context(|| {
        format!(
            "`{}` does not start: install a C compiler (Debian: apt-get install gcc libc6-dev), or name one in CC",
            cc.display()
        )
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("unknown compiler").to_owned())
}

fn has_header(cc: &OsString, header: &str) -> bool {
    let mut probe = Command::new(cc);
    probe.args(["-fsyntax-only", "-include", header, "-x", "c", "/dev/null"]);
    probe.stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn build(cc: &OsString, name: &str, options: &[&str]) -> Result<PathBuf> {
    let program = Path::new(BUILD_DIR).join(name);
    let mut command = Command::new(cc);
    command.args(OPTIMISATION).args(options).arg("-o").arg(&program);
    command.arg(Path::new(SOURCE_DIR).join(name).with_extension("c"));
    succeed(command)?;
    Ok(program)
}

/// Runs a program that prints `N` numbers.
fn numbers<const N: usize>(program: &Path, arguments: &str) -> Result<[f64; N]> {
    let mut command = Command::new(program);
    command.args(arguments.split(' '));
    let output = succeed(command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok().with_context(|| {
        format!("{} {arguments} was to print {N} numbers and printed {text:?}", program.display())
    })
}

/// Runs a command to its end and gives its output; an error quotes the command and its standard error.
pub(crate) fn succeed(mut command: Command) -> Result<Output> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("{command:?} does not start"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output)
}
