//! The CPU time of `hosepipe top` while it shows 50 chains on a terminal, at its default interval.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::hosepipe;
use crate::prompt::pty::{Person, home};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

pub(crate) const TARGETS: &[Target] = &[Target::quick(
    "top-cost",
    "`hosepipe top` with 50 chains, idle or at work: at most 1 % of a CPU",
    cost,
)];

/// After this time the first samples, which read more than later ones, are over.
const SETTLED: Duration = Duration::from_secs(3);
const WATCHED: Duration = Duration::from_secs(10);

/// Chains, which end with their group.
struct Chains(Child);

impl Chains {
    fn start(each: &str) -> Result<Self> {
        let script = format!("for i in $(seq 50); do ( {each} | cat | cat > /dev/null ) & done; wait");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn().context("bash")?))
    }
}

impl Drop for Chains {
    fn drop(&mut self) {
        let _ = Pid::from_raw(self.0.id() as i32).map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.0.wait();
    }
}

fn cost(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let kinds = [(" idle", "sleep 1000"), (" busy", "while :; do head -c 100000 /dev/zero; sleep 0.5; done")];
    let row = |(more, each): (&str, &str)| {
        let _chains = Chains::start(each)?;
        let (name, wanted) = (format!("{name}{more}"), Wanted::AtMost(1.0));
        Ok(BenchRow::alone(name, Unit::Percent, lab.repeat(3, || Ok(share()? * 100.0))?, wanted))
    };
    kinds.into_iter().map(row).collect()
}

/// CPU time over wall time of a live screen.
fn share() -> Result<f64> {
    let home = home();
    let mut person = Person::before(home.path(), &[hosepipe::PROGRAM, "top"]);
    person.sees("quit");
    std::thread::sleep(SETTLED);
    let (began, before) = (Instant::now(), cpu_s(person.child.id())?);
    std::thread::sleep(WATCHED);
    let share = (cpu_s(person.child.id())? - before) / began.elapsed().as_secs_f64();
    person.types("q");
    person.leaves();
    Ok(share)
}

/// CPU time of a process of one thread (proc_pid_schedstat(5)).
fn cpu_s(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let ns: f64 = text.split_whitespace().next().context("schedstat is empty")?.parse()?;
    Ok(ns / 1e9)
}
