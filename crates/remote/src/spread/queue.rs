//! A program for each partition, at most N at a time: on this machine, or on hosts that ssh reaches.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use model::shell_quoted;
use process::{Child, attend, describe_ending, end_all, ready_within, run, shown_status, ssh_words};
use rustix::event::PollFlags;

use crate::launcher::{last_words, logged};
use crate::spread::job::{SpreadJob, describe};

/// How long programs that were asked to end may take.
const GRACE: Duration = Duration::from_secs(2);
/// Programs that may log in to a host at the same time: sshd refuses some from the tenth on (MaxStartups of sshd_config(5)).
const LOGINS_MAX: usize = 4;
/// What a program for a partition prints first where ssh has started it; the number of CPUs there follows.
pub const BEGUN: &str = "hosepipe has begun, CPUs: ";
/// The variables by which sort(1) orders, and programs take bytes for characters: the reduce runs here.
const LOCALE: [&str; 5] = ["LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_NUMERIC"];

/// Where programs run.
struct Host<'a> {
    /// As ssh takes it; `None` is this machine.
    name: Option<&'a str>,
    /// How many at a time; 0 once it is left out.
    at_most: usize,
}

struct Running {
    partition: usize,
    attempts_left: u32,
    /// Its place in the list of hosts.
    host: usize,
    child: Child<'static>,
    /// Of an ssh.
    connection: Option<Connection>,
}

/// The streams of an ssh: a program there ends when its standard input does.
struct Connection {
    _input: PipeWriter,
    output: PipeReader,
    has_begun: bool,
}

impl Connection {
    /// The number of CPUs there, once, when the program there has begun.
    fn begins(&mut self) -> io::Result<Option<usize>> {
        if self.has_begun || !ready_within(&self.output, PollFlags::IN, Some(Duration::ZERO))? {
            return Ok(None);
        }
        // A start-up file of the login shell may print something before it.
        let mut said = [0; 4096];
        let len = rustix::io::read(&self.output, &mut said)?;
        let said = String::from_utf8_lossy(&said[..len]);
        let cpus = said.lines().find_map(|line| line.strip_prefix(BEGUN)?.parse().ok());
        self.has_begun = cpus.is_some();
        Ok(cpus)
    }
}

impl SpreadJob<'_> {
    /// As [`SpreadJob::map`], here or by ssh.
    pub(crate) fn map_each(
        &self,
        look: &mut dyn FnMut(usize, usize) -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> io::Result<Vec<String>> {
        let attempts_left = self.retries.unwrap_or(0);
        let mut waiting: VecDeque<_> = self.left().map(|partition| (partition, attempts_left)).collect();
        let mut finished = self.plan.partitions.len() - waiting.len();
        let (mut running, mut failures) = (Vec::<Running>::new(), Vec::new());
        let names = self.hosts.iter().map(|name| Some(name.as_str()));
        let names = names.chain(self.hosts.is_empty().then_some(None));
        let at_most = self.jobs.unwrap_or(1);
        let mut hosts: Vec<Host<'_>> = names.map(|name| Host { name, at_most }).collect();
        while !look(finished, running.len()) {
            while (failures.is_empty() || self.keep_going)
                && !waiting.is_empty()
                && let Some(host) = free_host(&hosts, &running)
                && let Some((partition, attempts_left)) = waiting.pop_front()
            {
                match self.start(partition, hosts[host].name) {
                    Ok((child, connection)) => {
                        running.push(Running { partition, attempts_left, host, child, connection });
                    }
                    Err(error) if running.is_empty() => return Err(error),
                    // The system may have enough for fewer at a time.
                    Err(_) => {
                        waiting.push_front((partition, attempts_left));
                        break;
                    }
                }
            }
            if running.is_empty() {
                break;
            }
            attend(&mut running.iter_mut().map(|one| &mut one.child).collect::<Vec<_>>())?;
            for one in &mut running {
                let cpus = one.connection.as_mut().map(Connection::begins).transpose()?.flatten();
                if let (Some(cpus), None, 1..) = (cpus, self.jobs, hosts[one.host].at_most) {
                    hosts[one.host].at_most = cpus.max(1);
                }
            }
            for one in running.extract_if(.., |one| one.child.ended().is_some()) {
                let Running { partition, attempts_left, host, child, connection } = one;
                let Some(status) = child.ended().map(|ended| ended.status) else { continue };
                // Its descriptor may be the last that we may have.
                drop(child);
                // A folder on a file server may show here later what was finished there.
                if status.success() && (connection.is_some() || self.work.is_finished(partition)) {
                    finished += 1;
                    continue;
                }
                let is_reached = connection.is_none_or(|connection| connection.has_begun);
                let how = self.how(partition, status, hosts[host].name, is_reached);
                let others = hosts.iter().enumerate().any(|(at, other)| at != host && other.at_most > 0);
                if !is_reached && others {
                    if std::mem::take(&mut hosts[host].at_most) > 0 {
                        let name = hosts[host].name.unwrap_or_default();
                        remark(&format!("{name} is left out: {}", self.failed(partition, &how)));
                    }
                    waiting.push_front((partition, attempts_left));
                } else if attempts_left > 0 {
                    waiting.push_back((partition, attempts_left - 1));
                } else {
                    failures.push(self.failed(partition, &how));
                }
            }
        }
        let mut left: Vec<_> = running.into_iter().map(|one| one.child).collect();
        end_all(&mut left, GRACE)?;
        Ok(failures)
    }

    /// How the program for a partition ended, and its last words where they are kept.
    fn how(&self, partition: usize, status: ExitStatus, host: Option<&str>, is_reached: bool) -> String {
        let Some(host) = host else { return describe(status) };
        let words = last_words(&self.work.file(Some(partition), "log"));
        if is_reached {
            return format!("{} on {host}{words}", describe(status));
        }
        let hint = match status.code() {
            Some(255) => format!(" (does `ssh {host} true` work?)"),
            Some(126 | 127) => " (hosepipe has to be there under the same path as here)".to_owned(),
            _ => String::new(),
        };
        format!("did not begin on {host}: ssh {}{words}{hint}", describe_ending(status))
    }

    /// Starts the program for a partition.
    fn start(
        &self,
        partition: usize,
        host: Option<&str>,
    ) -> io::Result<(Child<'static>, Option<Connection>)> {
        let Some(host) = host else {
            let mut command = self.part(Some(partition));
            command.stdin(Stdio::null());
            return Ok((Child::start(command)?, None));
        };
        let quoted = |text: &OsStr| shell_quoted(text.as_encoded_bytes());
        let set = |name: &str| format!(" {name}={}", quoted(&std::env::var_os(name).unwrap_or_default()));
        let line = format!(
            "cd {} && exec env{} {} __part --connected {} {partition}",
            quoted(std::env::current_dir()?.as_os_str()),
            LOCALE.map(set).concat(),
            quoted(self.hosepipe.as_os_str()),
            quoted(self.work.folder().as_os_str()),
        );
        let ((theirs, input), (output, says)) = (io::pipe()?, io::pipe()?);
        let mut command = logged(&ssh_words(host, &line), &self.work.file(Some(partition), "log"))?;
        command.stdin(theirs).stdout(says);
        Ok((Child::start(command)?, Some(Connection { _input: input, output, has_begun: false })))
    }

    /// The program for a partition, or for the reduce, on this machine.
    fn part(&self, number: Option<usize>) -> Command {
        let mut command = Command::new(self.hosepipe);
        command.arg("__part").arg(self.work.folder()).args(number.map(|number| number.to_string()));
        command
    }

    /// Runs the reduce here, with standard output elsewhere if that is asked for; gives its status.
    ///
    /// # Errors
    /// As [`SpreadJob::map`].
    pub fn reduce(&self, output: Option<File>, stops: &mut dyn FnMut() -> bool) -> io::Result<i32> {
        let mut command = self.part(None);
        command.stdout(output.map_or(Stdio::inherit(), Stdio::from));
        run(command, GRACE, stops).map(shown_status)
    }
}

/// The host with the fewest programs that may run one more.
fn free_host(hosts: &[Host<'_>], running: &[Running]) -> Option<usize> {
    let load = |at: usize| running.iter().filter(|one| one.host == at).count();
    let log_in = |one: &&Running| one.connection.as_ref().is_some_and(|connection| !connection.has_begun);
    let logins = |at: usize| running.iter().filter(|one| one.host == at).filter(log_in).count();
    let free = (0..hosts.len()).filter(|at| load(*at) < hosts[*at].at_most && logins(*at) < LOGINS_MAX);
    free.min_by_key(|at| load(*at))
}
