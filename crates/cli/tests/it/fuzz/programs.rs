//! Damaged inputs to the program itself, where nothing smaller takes them: records into `diff` and `recommend`, suites, and the messages of
//! both sides of `bench --peer`.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::input::{Seed, corpus, files};
use super::records::seeds;
use super::{ANSWER_MAX, fuzz};

/// A run with its files in a folder, which is its folder for temporary files, too.
struct Runs(tempfile::TempDir);

impl Runs {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain path").to_owned()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<String, String> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(|error| error.to_string())?;
        Ok(path)
    }

    /// Runs it; says what is wrong with how it ended.
    fn run(&self, arguments: &[&str], stdin: &[u8]) -> Result<(), String> {
        let open = |name: &str| File::create(self.path(name)).map_err(|error| error.to_string());
        let stdin = self.put("stdin", stdin)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_hosepipe"));
        command
            .args(arguments)
            .env("TMPDIR", self.0.path())
            .env("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22");
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin")));
        command.stdin(File::open(stdin).map_err(|error| error.to_string())?);
        command.stdout(open("stdout")?).stderr(Stdio::from(open("stderr")?));
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let began = Instant::now();
        let status = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if began.elapsed() > ANSWER_MAX => {
                    let _ = child.kill().and_then(|()| child.wait());
                    return Err(format!("no end after {ANSWER_MAX:?}"));
                }
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        let text = |name: &str| fs::read(self.path(name)).unwrap_or_default();
        let (out, errors) = (text("stdout"), String::from_utf8_lossy(&text("stderr")).into_owned());
        match status.code() {
            None => Err(format!("ended by signal {:?}: {errors}", status.signal())),
            Some(101) => Err(format!("a panic: {errors}")),
            Some(code) if code > 2 => Err(format!("status {code}: {errors}")),
            Some(1 | 2) if out.is_empty() && errors.trim().is_empty() => {
                Err("an error without a word".to_owned())
            }
            Some(_) => Ok(()),
        }
    }
}

#[test]
fn records_into_diff() {
    let runs = Runs::new();
    let seeds: Vec<Seed> = seeds().into_iter().filter(|seed| seed.name.contains("bench")).collect();
    let sound = runs.put("sound", &seeds[0].bytes).expect("written");
    fuzz("diff", &seeds, |input| {
        let damaged = runs.put("damaged", input)?;
        runs.run(&["diff", "--across-hosts", &sound, &damaged], b"")
    });
}

#[test]
fn records_into_recommend() {
    let runs = Runs::new();
    let mut seeds = seeds();
    seeds.retain(|seed| seed.name.contains("bench") || seed.name.contains("recommend"));
    fuzz("recommend", &seeds, |input| {
        let damaged = runs.put("damaged", input)?;
        runs.run(&["recommend", "--message", "64KiB", "--from", &damaged], b"")
    });
}

#[test]
fn suites_of_cases() {
    let runs = Runs::new();
    fuzz("suites", &files("suites"), |input| {
        let damaged = runs.put("suite.toml", input)?;
        runs.run(&["bench", "--suite", &damaged, "--dry-run"], b"")
    });
}

/// With this version in the place of the one that the corpus was recorded with.
fn of_this_version(seeds: Vec<Seed>) -> Vec<Seed> {
    let version = |seed: Seed| {
        let text = String::from_utf8(seed.bytes).expect("text");
        Seed::new(&seed.name, text.replace("\"0.2.0\"", &format!("{:?}", env!("CARGO_PKG_VERSION"))))
    };
    seeds.into_iter().map(version).collect()
}

/// Trials of a damaged size may take as long as was asked for.
fn is_small(line: &str) -> bool {
    let numbers = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
    numbers.filter_map(|word| word.parse::<f64>().ok()).all(|number| number < 1e6)
}

#[test]
fn orders_of_a_caller() {
    let runs = Runs::new();
    fuzz("caller", &of_this_version(corpus("caller")), |input| {
        let text = String::from_utf8_lossy(input);
        let orders: Vec<&str> = text.lines().filter(|line| is_small(line)).collect();
        runs.run(&["peer", "--stdio", "--idle", "1s"], orders.join("\n").as_bytes())
    });
}

/// Another host's answers, which come from a program by the name of ssh.
#[test]
fn answers_of_a_peer() {
    let runs = Runs::new();
    let (bin, answers) = (runs.path("bin"), runs.path("answers"));
    fs::create_dir(&bin).expect("made");
    let ssh = Path::new(&bin).join("ssh");
    fs::write(&ssh, format!("#!/bin/sh\ncat {answers}\n")).expect("written");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a mode");
    fuzz("peer", &of_this_version(corpus("answers")), |input| {
        // No program of another machine may be called.
        let here = String::from_utf8_lossy(input).lines().all(|line| {
            let message: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            let address = message["address"].as_str().and_then(|text| text.parse::<SocketAddr>().ok());
            address.is_none_or(|address| address.ip().is_loopback())
        });
        if !here {
            return Ok(());
        }
        runs.put("answers", input)?;
        let small = ["--bytes", "64KiB", "--trials", "1", "--workload", "stream", "--place", "any"];
        runs.run(&[&["bench", "tcp", "--peer", "host"], &small[..]].concat(), b"")
    });
}
