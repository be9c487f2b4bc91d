//! A queue of partitions, and the tasks that run them, on this machine or on hosts that ssh reaches. A task runs one partition after the
//! other, as it receives their numbers.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use model::shell_quoted;
use process::{
    Child, Wire, adopt_orphans, attend_and_read, describe_ending, finish_all, kill_children_except,
    reap_children_except, run, shown_status, ssh_words,
};

use crate::launcher::{last_words, logged};
use crate::spread::blocks::Blocks;
use crate::spread::job::{SpreadJob, describe};
use crate::spread::work::{PartResult, RESULTS};

/// Longest end of tasks that got SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// Most tasks that log in to a host at the same time: sshd refuses some from the tenth on (MaxStartups of sshd_config(5)).
const LOGINS_MAX: usize = 4;
/// Partitions between two times that ended background programs are reaped.
const REAPED_EVERY: usize = 100;
/// Longest line of a task: a result with the record of a pipeline.
const LINE_BYTES_MAX: usize = 1 << 30;
/// Beginning of a task's first line; the number of CPUs there follows.
pub const BEGUN: &str = "hosepipe has begun, CPUs: ";
/// Variables that decide how sort(1) orders and how programs decode characters: the reduce runs here, with the same ones.
const LOCALE: [&str; 5] = ["LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_NUMERIC"];

/// A host on which tasks run.
struct Host<'a> {
    /// Its name for ssh; `None` for this machine.
    name: Option<&'a str>,
    /// Most tasks at a time; 0 once the host is left out.
    at_most: usize,
}

struct Task {
    /// Its host, as an index.
    host: usize,
    child: Child<'static>,
    /// The numbers of partitions go to it, and its results come back. It ends when this is closed.
    wire: Wire,
    has_begun: bool,
    /// The partition that it runs, and how many more attempts that has.
    runs: Option<(usize, u32)>,
    /// The messages of ssh.
    log: Option<PathBuf>,
}

/// Partitions that wait, and the results of the others.
struct Queue<'a> {
    job: &'a SpreadJob<'a>,
    hosts: Vec<Host<'a>>,
    tasks: Vec<Task>,
    waiting: VecDeque<(usize, u32)>,
    finished: usize,
    failures: Vec<String>,
    results: File,
    /// Children of this process that are not tasks.
    others: Vec<i32>,
}

impl SpreadJob<'_> {
    /// As [`SpreadJob::map`], here or by ssh.
    pub(crate) fn map_each(
        &self,
        mut blocks: Option<Blocks<'_>>,
        progress: &mut dyn FnMut(usize, usize) -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> io::Result<Vec<String>> {
        let attempts_left = self.retries.unwrap_or(0);
        let waiting: VecDeque<_> =
            self.left().into_iter().map(|partition| (partition, attempts_left)).collect();
        let names = self.hosts.iter().map(|name| Some(name.as_str()));
        let names = names.chain(self.hosts.is_empty().then_some(None));
        let at_most = self.jobs.unwrap_or(1);
        let mut queue = Queue {
            job: self,
            hosts: names.map(|name| Host { name, at_most }).collect(),
            tasks: Vec::new(),
            finished: self.count() - waiting.len(),
            waiting,
            failures: Vec::new(),
            results: self.work.task_file(RESULTS)?,
            others: adopt_orphans()?,
        };
        while !progress(queue.finished, queue.running()) {
            let goes_on = queue.failures.is_empty() || self.keep_going;
            if goes_on {
                queue.hand_out()?;
            }
            // Read the next block while no other one waits, so that no task has to wait for it.
            let blocks =
                blocks.as_mut().filter(|blocks| goes_on && queue.waiting.is_empty() && !blocks.has_ended());
            if blocks.is_none() && queue.running() == 0 {
                break;
            }
            queue.attend(blocks, remark)?;
        }
        queue.end()?;
        Ok(queue.failures)
    }

    /// Starts a task.
    fn start(&self, host: usize, name: Option<&str>, number: usize) -> io::Result<Task> {
        let log = name.map(|_| self.work.folder().join(format!("ssh-{}.log", number + 1)));
        let mut command = match (name, &log) {
            (Some(name), Some(log)) => logged(&ssh_words(name, &self.line_there()?), log)?,
            _ => self.part(&self.task_options()),
        };
        let wire = Wire::to_program(&mut command, "the task")?.with_lines_of(LINE_BYTES_MAX);
        let child = Child::start(command)?;
        Ok(Task { host, child, wire, has_begun: false, runs: None, log })
    }

    /// The line that starts a task in a login shell.
    fn line_there(&self) -> io::Result<String> {
        let quoted = |text: &OsStr| shell_quoted(text.as_encoded_bytes());
        let set = |name: &str| format!(" {name}={}", quoted(&std::env::var_os(name).unwrap_or_default()));
        Ok(format!(
            "cd {} && exec env{} {} __part {} {} --log",
            quoted(std::env::current_dir()?.as_os_str()),
            LOCALE.map(set).concat(),
            quoted(self.hosepipe.as_os_str()),
            quoted(self.work.folder().as_os_str()),
            self.task_options().join(" "),
        ))
    }

    fn task_options(&self) -> Vec<&'static str> {
        ["--task"].into_iter().chain(self.records.then_some("--records")).collect()
    }

    /// The program that runs partitions, or the reduce, on this machine.
    fn part(&self, options: &[&str]) -> Command {
        let mut command = Command::new(self.hosepipe);
        command.arg("__part").arg(self.work.folder()).args(options);
        command
    }

    /// Runs the reduce here, with its standard output to `output` if given; gives its status.
    ///
    /// # Errors
    /// As [`SpreadJob::map`].
    pub fn reduce(&self, output: Option<File>, stops: &mut dyn FnMut() -> bool) -> io::Result<i32> {
        let mut command = self.part(&[]);
        command.stdout(output.map_or(Stdio::inherit(), Stdio::from));
        run(command, GRACE, stops).map(shown_status)
    }
}

impl Queue<'_> {
    fn running(&self) -> usize {
        self.tasks.iter().filter(|task| task.runs.is_some()).count()
    }

    /// Gives each idle task a partition, and starts more tasks for the partitions that are left.
    fn hand_out(&mut self) -> io::Result<()> {
        while let Some(runs) = self.waiting.front().copied() {
            let is_idle = |task: &Task| task.runs.is_none() && self.hosts[task.host].at_most > 0;
            let at = match self.tasks.iter().position(is_idle) {
                Some(at) => at,
                None => {
                    let Some(host) = self.free_host() else { break };
                    match self.job.start(host, self.hosts[host].name, self.tasks.len()) {
                        Ok(task) => self.tasks.push(task),
                        Err(error) if self.tasks.is_empty() => return Err(error),
                        // The system may have resources for fewer tasks.
                        Err(_) => break,
                    }
                    self.tasks.len() - 1
                }
            };
            self.waiting.pop_front();
            let idle = &mut self.tasks[at];
            idle.runs = Some(runs);
            // Its end is noticed later: a task that got no number would wait for ever, also after a SIGTERM that comes before it waits.
            if idle.wire.write(format!("{}\n", runs.0).as_bytes(), GRACE).is_err() {
                idle.child.kill();
            }
        }
        Ok(())
    }

    /// Waits for results, ends of tasks, and the next bytes of the input.
    fn attend(&mut self, blocks: Option<&mut Blocks<'_>>, remark: &mut dyn FnMut(&str)) -> io::Result<()> {
        let is_there = blocks.as_ref().is_some_and(|blocks| blocks.awaited().is_none());
        let (mut children, mut read): (Vec<_>, Vec<_>) =
            self.tasks.iter_mut().map(|task| (&mut task.child, task.wire.input())).unzip();
        let input = blocks.as_ref().and_then(|blocks| blocks.awaited());
        read.extend(input);
        let mut can_be_read =
            if is_there { vec![true; read.len()] } else { attend_and_read(&mut children, &read)? };
        let has_input = is_there || input.is_some() && can_be_read.pop() == Some(true);
        if let Some(number) = blocks.filter(|_| has_input).map(Blocks::advance).transpose()?.flatten() {
            self.waiting.push_back((number, self.job.retries.unwrap_or(0)));
        }
        for (at, _) in can_be_read.into_iter().enumerate().filter(|(_, can)| *can) {
            self.receive(at)?;
        }
        while let Some(at) = self.tasks.iter().position(|task| task.child.ended().is_some()) {
            self.receive(at)?;
            let task = self.tasks.remove(at);
            self.end_of(task, remark)?;
        }
        Ok(())
    }

    /// Handles the lines that a task has sent.
    fn receive(&mut self, at: usize) -> io::Result<()> {
        while let Ok(Some(line)) = self.tasks[at].wire.line(Duration::ZERO) {
            self.handle(at, &line)?;
        }
        Ok(())
    }

    /// Handles a line: a task has begun, or a partition has ended. Other lines come from a start-up file of the login shell.
    fn handle(&mut self, at: usize, line: &str) -> io::Result<()> {
        let (task, hosts) = (&mut self.tasks[at], &mut self.hosts);
        if let Some(cpus) = line.strip_prefix(BEGUN).and_then(|cpus| cpus.parse::<usize>().ok()) {
            task.has_begun = true;
            let host = &mut hosts[task.host];
            if self.job.jobs.is_none() && host.at_most > 0 {
                host.at_most = cpus.max(1);
            }
        }
        let Ok(mut result) = model::from_json::<PartResult>(line) else { return Ok(()) };
        let Some((_, attempts_left)) = task.runs.take_if(|runs| runs.0 == result.partition) else {
            return Ok(());
        };
        if let (Some(failure), Some(host)) = (&mut result.failure, hosts[task.host].name) {
            *failure = format!("on {host} {failure}");
        }
        self.finish(attempts_left, result)
    }

    /// Notes the result of an attempt.
    fn finish(&mut self, attempts_left: u32, result: PartResult) -> io::Result<()> {
        let partition = result.partition;
        result.note(&self.results)?;
        match result.failure {
            None => {
                self.finished += 1;
                if self.finished.is_multiple_of(REAPED_EVERY) {
                    reap_children_except(&self.kept());
                }
                if self.job.plan.is_stdin {
                    std::fs::remove_file(self.job.work.file(Some(partition), "in"))?;
                }
            }
            Some(_) if attempts_left > 0 => self.waiting.push_back((partition, attempts_left - 1)),
            Some(failure) => self.failures.push(self.job.failed(partition, &failure)),
        }
        Ok(())
    }

    /// Handles the end of a task that was not asked to end.
    fn end_of(&mut self, task: Task, remark: &mut dyn FnMut(&str)) -> io::Result<()> {
        let Some(((partition, attempts_left), ended)) = task.runs.zip(task.child.ended()) else {
            return Ok(());
        };
        // The programs of a task that was killed would run on.
        kill_children_except(&self.kept());
        let is_reached = task.has_begun || task.log.is_none();
        let failure = how(ended.status, self.hosts[task.host].name, &task);
        let others = self.hosts.iter().enumerate().any(|(at, other)| at != task.host && other.at_most > 0);
        if is_reached || !others {
            let result = PartResult { partition, bytes: 0, failure: Some(failure), record: None };
            return self.finish(attempts_left, result);
        }
        let host = &mut self.hosts[task.host];
        if std::mem::take(&mut host.at_most) > 0 {
            let name = host.name.unwrap_or_default();
            remark(&format!("{name} is left out: {}", self.job.failed(partition, &failure)));
        }
        self.waiting.push_front((partition, attempts_left));
        Ok(())
    }

    /// The host with the fewest tasks among those that may run one more.
    fn free_host(&self) -> Option<usize> {
        let load = |at: usize| self.tasks.iter().filter(|task| task.host == at).count();
        let logs_in = |task: &&Task| task.log.is_some() && !task.has_begun;
        let logins = |at: usize| self.tasks.iter().filter(|task| task.host == at).filter(logs_in).count();
        let free = 0..self.hosts.len();
        let free = free.filter(|at| load(*at) < self.hosts[*at].at_most && logins(*at) < LOGINS_MAX);
        free.min_by_key(|at| load(*at))
    }

    /// The children of this process that must not be killed.
    fn kept(&self) -> Vec<i32> {
        self.tasks.iter().map(|task| task.child.pid()).chain(self.others.iter().copied()).collect()
    }

    /// Ends all tasks, which end their programs; programs that they leave behind are killed.
    fn end(&mut self) -> io::Result<()> {
        let is_cut_short = self.running() > 0;
        let mut children: Vec<_> = self.tasks.drain(..).map(|task| task.child).collect();
        finish_all(&mut children, GRACE)?;
        if is_cut_short {
            kill_children_except(&self.others);
        }
        Ok(())
    }
}

/// How a task ended, and the last messages of ssh.
fn how(status: ExitStatus, host: Option<&str>, task: &Task) -> String {
    let Some((host, log)) = host.zip(task.log.as_deref()) else { return describe(status) };
    let words = last_words(log, 0);
    if task.has_begun {
        return format!("on {host} {}{words}", describe(status));
    }
    let hint = match status.code() {
        Some(255) => format!(" (does `ssh {host} true` work?)"),
        Some(126 | 127) => " (hosepipe has to be there under the same path as here)".to_owned(),
        _ => String::new(),
    };
    format!("did not begin on {host}: ssh {}{words}{hint}", describe_ending(status))
}
