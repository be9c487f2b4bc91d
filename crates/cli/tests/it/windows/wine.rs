//! `workers/windows` built, and run under Wine in a prefix of its own, of which nothing is left afterwards.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use model::BenchRecord;

use crate::common::HANGS_AFTER;

/// The cross-compiler, and what it is called where threads are chosen by a link.
const COMPILERS: [&str; 2] = ["x86_64-w64-mingw32-g++-posix", "x86_64-w64-mingw32-g++"];

/// Where a Wine for 64-bit programs may be; Debian keeps it out of the way.
const LOADERS: [&str; 4] = ["/usr/lib/wine/wine64", "wine64", "wine", "/opt/wine-stable/bin/wine64"];

/// Where a Wine keeps its own Windows libraries, below its folder of libraries.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows",
    "/usr/lib64/wine/x86_64-windows",
    "/usr/lib/wine/x86_64-windows",
    "/opt/wine-stable/lib64/wine/x86_64-windows",
];

/// How often a condition is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The first of these that is a file, or stands in PATH.
fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // An absolute name replaces the folder it is joined to.
    let everywhere = |name: &&str| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    names.iter().find_map(everywhere)
}

/// What is missing is a reason to skip; not in CI, whose machines have everything.
fn missing(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what}, and this is CI");
    eprintln!("SKIPPED: {what} (tools/toolchains)");
}

/// The program, built once for all tests of this process.
fn program() -> Option<PathBuf> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

/// The one command of the folder's README; warnings are errors here. Built again only where the source has changed.
fn build() -> Option<PathBuf> {
    let Some(compiler) = found(&COMPILERS) else {
        missing("no mingw-w64 compiler");
        return None;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers/windows");
    let files: Vec<PathBuf> = fs::read_dir(&source)
        .expect("workers/windows")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join("pipes.exe");
    let made = modified(&program);
    if made.is_some() && files.iter().all(|file| modified(file) < made) {
        return Some(program);
    }
    // Under a name of its own first: another run of these tests may be building, too.
    let fresh = folder.join(format!("pipes-{}.exe", std::process::id()));
    let output = Command::new(compiler)
        .args(["-O2", "-std=c++20", "-static", "-municode", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&fresh)
        .args(files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "cpp")))
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::rename(fresh, &program).expect("the program takes its place");
    Some(program)
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}

/// A Wine prefix with the program in it.
pub(crate) struct Wine {
    folder: tempfile::TempDir,
    loader: PathBuf,
}

/// What came of a run.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// Standard output as a record.
    pub(crate) fn record(&self) -> BenchRecord {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no record ({error}): {self}"))
    }

    /// Panics unless it ended with this status.
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}\nstatus {}", self.stdout, self.stderr, self.code)
    }
}

impl Wine {
    /// A fresh prefix; `None`, with the reason printed, where the tools for it are missing.
    pub(crate) fn new() -> Option<Self> {
        let program = program()?;
        let Some(loader) = found(&LOADERS) else {
            missing("no Wine");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("pipes-").tempdir().expect("a folder for the test");
        let wine = Self { folder, loader };
        fs::create_dir(wine.here("")).expect("mkdir");
        fs::copy(program, wine.here("pipes.exe")).expect("the program is copied");
        wine.furnish();
        // A server that ends some time after its last program refuses one that finds it in the midst of that (`wine client error: recvmsg`).
        wine.server("-p");
        Some(wine)
    }

    /// A path in the folder the program starts in.
    pub(crate) fn here(&self, name: &str) -> PathBuf {
        self.folder.path().join("here").join(name)
    }

    fn prefix(&self) -> PathBuf {
        self.folder.path().join("prefix")
    }

    /// Left alone, Wine fills a new prefix with 700 MB in half a minute. A program of the console needs no
    /// more than the libraries, which may be links.
    fn furnish(&self) {
        let Some(libraries) = LIBRARIES.iter().map(Path::new).find(|folder| folder.is_dir()) else { return };
        let system = self.prefix().join("drive_c/windows/system32");
        fs::create_dir_all(&system).expect("mkdir");
        for library in fs::read_dir(libraries).expect("Wine's libraries").flatten() {
            symlink(library.path(), system.join(library.file_name())).expect("a link to a library");
        }
        fs::write(self.prefix().join(".update-timestamp"), "disable\n").expect("a word to Wine");
    }

    fn environment(&self, command: &mut Command) {
        let home = self.folder.path().join("here");
        command.env("WINEPREFIX", self.prefix()).env("HOME", home).env("WINEDEBUG", "-all");
        // Wine takes arguments and names of files for text of the locale.
        command.env("LC_ALL", "C.UTF-8");
        // Nothing of a desktop: no .NET, no browser, no menus.
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml,winemenubuilder.exe=");
        command.env_remove("DISPLAY").env_remove("WINESERVER").env_remove("WINELOADER");
    }

    /// Starts `pipes.exe ARGS`, with output to files.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let file = |name| File::create(self.here(name)).expect("a file for the output");
        let mut command = Command::new(&self.loader);
        command.arg("pipes.exe").args(args).current_dir(self.here("")).stdin(Stdio::null());
        command.stdout(file("stdout")).stderr(file("stderr"));
        self.environment(&mut command);
        command.spawn().expect("Wine starts")
    }

    /// What the run under way has written to standard error.
    pub(crate) fn stderr(&self) -> String {
        let bytes = fs::read(self.here("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for the end of a run; kills it and panics at the deadline.
    pub(crate) fn wait(&self, mut child: Child) -> Done {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("wait") {
                break status;
            }
            if began.elapsed() > HANGS_AFTER {
                child.kill().expect("kill");
                child.wait().expect("wait");
                panic!("no end within {HANGS_AFTER:?}: {}", self.stderr());
            }
            std::thread::sleep(LOOK_AGAIN);
        };
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        let stdout = String::from_utf8(fs::read(self.here("stdout")).expect("stdout")).expect("UTF-8");
        Done { code, stdout, stderr: self.stderr() }
    }

    /// Runs `pipes.exe ARGS` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.wait(self.start(args))
    }

    /// The folder outside of the prefix that holds its server's socket: Debian's Wine makes one of a random name and
    /// notes it in the prefix, others name it after the prefix' inode.
    fn server_folders(&self) -> Vec<PathBuf> {
        let noted = fs::read_to_string(self.prefix().join("wineserver")).unwrap_or_default();
        let debian = noted.trim().starts_with("wine-").then(|| Path::new("/tmp").join(noted.trim()));
        let named = fs::metadata(self.prefix()).ok().map(|prefix| {
            let user = rustix::process::geteuid().as_raw();
            PathBuf::from(format!("/tmp/.wine-{user}/server-{:x}-{:x}", prefix.dev(), prefix.ino()))
        });
        debian.into_iter().chain(named).collect()
    }

    /// Ends the prefix's server, and with it every process of the prefix; panics where one stays.
    pub(crate) fn close(self) {
        self.server("-k");
        let began = Instant::now();
        while let Some(process) = self.a_process() {
            assert!(began.elapsed() < HANGS_AFTER, "{process} is left of the prefix");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Starts the prefix's server, which stays (`-p`), or kills it (`-k`).
    fn server(&self, option: &str) {
        let beside = |name| self.loader.with_file_name(name);
        let servers = [beside("wineserver64"), beside("wineserver"), "/usr/lib/wine/wineserver".into()];
        let Some(server) = servers.iter().find(|file| file.is_file()) else { return };
        let mut command = Command::new(server);
        self.environment(&mut command);
        // To kill, it answers 1 where the server has ended by itself.
        let _ = command.arg(option).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// A process whose environment names this prefix.
    fn a_process(&self) -> Option<String> {
        let mut marker = OsString::from("WINEPREFIX=");
        marker.push(self.prefix());
        let marker = marker.into_encoded_bytes();
        let of_ours = |folder: &PathBuf| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == marker)
        };
        let folders = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
        folders.into_iter().find(of_ours).map(|folder| folder.display().to_string())
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        // Also where a test panicked; a second time it does nothing.
        self.server("-k");
        for folder in self.server_folders() {
            // Only one of the two is there.
            let _ = fs::remove_dir_all(folder);
        }
    }
}
