//! The programs that `hosepipe recommend` prints: printed, compiled as their first comment says, and run for their figures.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use model::{BenchRecord, CaseRecord};
use process::reap;
use rustix::process::Pid;

use crate::hosepipe::PROGRAM;
use crate::reference::succeed;

/// A language of programs: how it is typed, and what compiles `source` to `program`.
pub(crate) struct Language {
    pub(crate) word: &'static str,
    compiler: &'static str,
}

pub(crate) const C: Language =
    Language { word: "c", compiler: "cc -O2 -pthread -x c -o program source -lrt" };
pub(crate) const RUST: Language =
    Language { word: "rust", compiler: "rustc -O --edition 2021 -o program source" };
pub(crate) const PYTHON: Language = Language { word: "python", compiler: "" };

/// A program that can be run.
pub(crate) struct Printed {
    folder: PathBuf,
    words: Vec<String>,
    /// Messages in a second, if the question has a rate: then the program keeps it.
    rate_per_s: Option<u32>,
}

/// What a run took per message, or round trip, in nanoseconds: wall time as the program says it, and CPU time of the whole run.
#[derive(Clone, Copy)]
pub(crate) struct RunFigures {
    pub(crate) time_ns: f64,
    pub(crate) cpu_ns: f64,
}

impl Printed {
    /// What `recommend` prints for a case: the answer to a question, in its words, where there is a record of nothing else. `None` where
    /// it is no answer. The folder is made, and everything of the program is in it.
    ///
    /// # Errors
    /// What the compiler said.
    pub(crate) fn new(
        record: &BenchRecord,
        case: &CaseRecord,
        question: &str,
        language: &Language,
        folder: &Path,
    ) -> Result<Option<Self>> {
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        let alone = BenchRecord { cases: vec![case.clone()], recommendation: None, ..record.clone() };
        fs::write(folder.join("row.json"), serde_json::to_string(&alone)?).context("the record")?;
        let mut recommend = Command::new(PROGRAM);
        recommend.arg("recommend").args(question.split_whitespace()).current_dir(folder);
        recommend.args(["--from", "row.json", "--code", language.word, "--code-to", "source"]);
        if !recommend.output().context("recommend")?.status.success() {
            return Ok(None);
        }
        let mut compiler = language.compiler.split_whitespace();
        let program = match compiler.next() {
            Some(first) => {
                let mut compile = Command::new(first);
                compile.args(compiler).current_dir(folder);
                succeed(compile)?;
                vec![folder.join("program").display().to_string()]
            }
            None => vec!["python3".to_owned(), "source".to_owned()],
        };
        let own = std::process::id();
        let meeting = match case.spec.mechanism.as_str() {
            "tcp" => TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string(),
            "posix-mq" | "shm-ring" => format!("/hosepipe-bench-{own}"),
            "sysv-msgq" => own.to_string(),
            _ => "meeting".to_owned(),
        };
        let rate = case.rate_per_s.map(|rate| rate.to_string());
        let words = program.into_iter().chain(["COUNT".to_owned()]).chain(rate).chain([meeting]).collect();
        Ok(Some(Self { folder: folder.to_owned(), words, rate_per_s: case.rate_per_s }))
    }

    /// Sends `count` messages, with this environment.
    ///
    /// # Errors
    /// It fails, with what it said.
    pub(crate) fn run(&self, count: u64, environment: &[(&str, &str)]) -> Result<RunFigures> {
        let count_word = count.to_string();
        let words = self.words.iter().map(|word| if word == "COUNT" { &count_word } else { word });
        let words: Vec<&String> = words.collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.folder).envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut said = String::new();
        child.stdout.take().context("its output")?.read_to_string(&mut said)?;
        let (status, usage) = reap(Pid::from_child(&child))?;
        ensure!(status.success(), "{command:?} ended with {status}");
        let number = said.split(' ').next().unwrap_or_default();
        let time_ns = number.parse().with_context(|| format!("{command:?} printed `{said}`"))?;
        Ok(RunFigures { time_ns, cpu_ns: (usage.user_ns + usage.system_ns) as f64 / count as f64 })
    }

    /// The number of messages of a run that takes about `run_ns`.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn count_for(&self, run_ns: f64) -> Result<u64> {
        if let Some(rate) = self.rate_per_s {
            return Ok(((run_ns / 1e9 * f64::from(rate)) as u64).max(1));
        }
        // The first runs are mostly start-up.
        (0..3).try_fold(100, |count, _| Ok((run_ns / self.run(count, &[])?.time_ns).max(1.0) as u64))
    }
}
