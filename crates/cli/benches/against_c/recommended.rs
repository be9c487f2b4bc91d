//! `hosepipe recommend` put to the test: many questions, each answered on this machine as a user would have it, and each answer judged by
//! the programs that are printed for it and for everything else that could have been the answer.
//!
//! The judge runs the programs in rounds, each once in a round, and compares their costs by the question's own objective within rounds, with
//! bounds that hold for all comparisons together (`stats/race.rs`). Right is an answer that no other program beats for sure, within 10 % one
//! that is beaten for sure, but costs at most a tenth more in the median; wrong is every other one. A program that does not
//! do what is asked (a rate, a budget) beats none. Questions with a rate are judged by programs that keep the rate.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use model::{
    BenchRecord, ByteSize, CaseRecord, DataLevel, Placement, Round, RoundLimits, Rounds, Sample, Spec, Tasks,
    Wait,
};
use stats::estimate::median;
use stats::load::keeps_up;
use stats::race::SAME_TIMES;
use stats::{Demand, Excluded, choose};

use crate::hosepipe::{PROGRAM, record};
use crate::printed::{C, Printed};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

const BLOCKS: [u64; 6] = [1, 64, 1 << 10, 1 << 14, 1 << 17, 1 << 20];
/// What is asked besides: nothing, and these in turn.
const BESIDES: [&str; 7] = [
    "--messages-per-second 1000",
    "--must boundaries",
    "--cpu-budget 200",
    "--must filter",
    "--must many-senders",
    "--cpu-budget 60",
    "--must persistent",
];
/// What the judge may take for questions that differ in demands only, when at least all of its programs were run so often.
const JUDGE_TIME: Duration = Duration::from_secs(9);
const JUDGE_ROUNDS_MIN: usize = 7;
/// One run of a program there, in nanoseconds.
const JUDGE_RUN_NS: f64 = 4e7;
/// The same at a rate: what starting a program takes must be little beside its messages.
const JUDGE_PACED_RUN_NS: f64 = 4e8;
/// Runs with one message, whose median is what a program costs without its messages.
const IDLE_RUNS: usize = 5;

pub(crate) const TARGETS: &[Target] = &[Target::slow(
    "recommend",
    "72 answers (or --every N-th), judged by the printed programs of all that could be taken: at least 95 % right or within 10 %",
    answers,
)];

/// A question: the messages and their ends, and what else is asked.
struct Question {
    kind: Kind,
    besides: &'static str,
}

/// What decides how the programs of a question look, whatever is asked besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    block: u64,
    pattern: &'static str,
    between: &'static str,
}

/// What `recommend` said.
struct Answer {
    question: Question,
    /// As it was typed.
    words: String,
    record: BenchRecord,
}

/// How an answer came out.
#[derive(PartialEq, Clone, Copy)]
enum Outcome {
    Right,
    Within10Percent,
    Wrong,
}

fn answers(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let mut of_kinds: BTreeMap<(Kind, bool), Vec<Question>> = BTreeMap::new();
    for question in questions().into_iter().step_by(lab.every) {
        let is_paced = question.demand().messages_per_s.is_some();
        of_kinds.entry((question.kind, is_paced)).or_default().push(question);
    }
    let (mut outcomes, mut seconds, mut times_best) = (Vec::new(), Vec::new(), Vec::new());
    for ((kind, _), questions) in of_kinds {
        let folder = tempfile::tempdir().context("a temporary folder")?;
        let answers: Vec<Answer> = questions.into_iter().map(ask).collect::<Result<_>>()?;
        seconds.extend(answers.iter().filter_map(|answer| answer.record.recommendation.as_ref()?.took_s));
        let judged = run_programs(kind, &answers, lab, folder.path())?;
        for answer in &answers {
            let Some((outcome, times, best)) = judge(answer, &judged) else {
                eprintln!("not judged: {}", answer.words);
                continue;
            };
            outcomes.push(outcome);
            times_best.push(times);
            if outcome != Outcome::Right {
                let taken = taken(answer).map(Spec::to_string).unwrap_or_default();
                let how = if outcome == Outcome::Wrong { "wrong" } else { "within 10 %" };
                eprintln!("{how}: {}: took {taken}, {times:.2} times the cost of {best}", answer.words);
            }
        }
    }
    ensure!(!outcomes.is_empty(), "no question could be judged");
    let all = outcomes.len() as f64;
    let count = |outcome: Outcome| outcomes.iter().filter(|one| **one == outcome).count() as f64;
    let wrong = count(Outcome::Wrong);
    let of_all = |name: String, number: f64, wanted| {
        BenchRow::beside(name, Unit::Count, [vec![number], vec![all]], wanted)
    };
    let shown = |more, outcome| of_all(format!("{name} / {more}"), count(outcome), Wanted::Nothing);
    let alone = |more, unit, ours| BenchRow::alone(format!("{name} / {more}"), unit, ours, Wanted::Nothing);
    Ok(vec![
        of_all(name.to_owned(), all - wrong, Wanted::AtLeast(0.95)),
        shown("right", Outcome::Right),
        shown("within 10 %", Outcome::Within10Percent),
        shown("wrong", Outcome::Wrong),
        alone("cost of the best", Unit::Count, times_best),
        alone("until the answer", Unit::Seconds, seconds),
    ])
}

/// Each size and pattern, between whom there may be, plain and with one thing more.
fn questions() -> Vec<Question> {
    let mut besides = BESIDES.iter().cycle();
    let mut all = Vec::new();
    for block in BLOCKS {
        for pattern in ["stream", "request-reply"] {
            for between in ["parent-child", "processes", "threads"] {
                let kind = Kind { block, pattern, between };
                for besides in ["", besides.next().copied().unwrap_or_default()] {
                    all.push(Question { kind, besides });
                }
            }
        }
    }
    all
}

impl Kind {
    fn words(self) -> String {
        format!("--message {} --pattern {} --between {}", ByteSize(self.block), self.pattern, self.between)
    }
}

impl Question {
    fn demand(&self) -> Demand {
        let number =
            |option: &str| self.besides.strip_prefix(option).and_then(|rest| rest.trim().parse::<f64>().ok());
        Demand {
            messages_per_s: number("--messages-per-second"),
            cpus_max: number("--cpu-budget").map(|percent| percent / 100.0),
        }
    }
}

fn ask(question: Question) -> Result<Answer> {
    let words = format!("{} {}", question.kind.words(), question.besides);
    let mut recommend = Command::new(PROGRAM);
    recommend.arg("recommend").args(words.split_whitespace()).args(["--json", "-"]);
    Ok(Answer { question, words, record: record(recommend)? })
}

fn taken(answer: &Answer) -> Option<&Spec> {
    answer.record.recommendation.as_ref()?.taken.as_ref()
}

/// What could be an answer, with figures.
fn measured(answer: &Answer) -> impl Iterator<Item = &CaseRecord> {
    let cases = answer.record.cases.iter();
    cases.filter(|case| case.placement == Placement::Any && !case.samples.is_empty())
}

/// Runs the programs of everything that could be the answer to questions of one kind: each program is a case, each run a sample.
fn run_programs(kind: Kind, answers: &[Answer], lab: &Laboratory, folder: &Path) -> Result<Vec<CaseRecord>> {
    let mut programs: Vec<(Printed, u64, f64, CaseRecord)> = Vec::new();
    for (answer, row) in answers.iter().flat_map(|answer| measured(answer).map(move |row| (answer, row))) {
        if programs.iter().any(|(.., case)| case.spec == row.spec) {
            continue;
        }
        // Its program waits for the disk with each message, its row does not: it is an answer to one question only.
        if row.mechanism == "file" && answer.question.besides != "--must persistent" {
            continue;
        }
        // What spins is an answer only where its CPUs can be spent.
        let budget =
            if answer.question.besides.contains("--cpu-budget 200") { "--cpu-budget 200" } else { "" };
        let rate = row.rate_per_s.map(|rate| format!("--messages-per-second {rate}")).unwrap_or_default();
        let question = format!("{} {budget} {rate}", kind.words());
        let own = folder.join(programs.len().to_string());
        let Some(program) = Printed::new(&answer.record, row, &question, &C, &own)? else { continue };
        let run_ns = if row.rate_per_s.is_some() { JUDGE_PACED_RUN_NS } else { JUDGE_RUN_NS };
        let tried = idle_ns(&program).and_then(|idle_ns| Ok((program.count_for(run_ns)?, idle_ns)));
        let (count, idle_ns) = match tried {
            Ok(tried) => tried,
            Err(error) => {
                eprintln!("not judged: {question}: {}: {error:#}", row.spec);
                continue;
            }
        };
        let case = CaseRecord {
            wait: row.wait,
            workload: row.workload,
            rate_per_s: row.rate_per_s,
            tasks: if kind.between == "threads" { Tasks::Threads } else { Tasks::Processes },
            data: DataLevel::Verify,
            ..CaseRecord::new(row.spec.clone())
        };
        programs.push((program, count, idle_ns, case));
    }
    let least = lab.rounds_or(JUDGE_ROUNDS_MIN) as u32;
    let until = Some(Instant::now() + JUDGE_TIME);
    let mut rounds = Rounds::new(lab.seed, RoundLimits { most: u32::MAX, least, until, unshuffled: 0 });
    while let Some(Round { number, rows }) = rounds.next(programs.iter_mut().collect()) {
        for (program, count, idle_ns, case) in rows {
            let run = program.run(*count, &[])?;
            let whole_ns = |each_ns: f64| ((each_ns * *count as f64) as u64).max(1);
            case.samples.push(Sample {
                round: number,
                messages: *count,
                elapsed_ns: whole_ns(run.time_ns),
                system_ns: whole_ns(run.cpu_ns).saturating_sub(*idle_ns as u64).max(1),
                ..Sample::default()
            });
        }
    }
    Ok(programs.into_iter().map(|(.., case)| case).collect())
}

/// The CPU time of a run with one message.
fn idle_ns(program: &Printed) -> Result<f64> {
    let runs: Vec<f64> = (0..IDLE_RUNS).map(|_| Ok(program.run(1, &[])?.cpu_ns)).collect::<Result<_>>()?;
    median(&runs).context("no run")
}

/// How an answer came out, how many times the cost of the best it has, and which that is; `None` where its program was not run, or
/// no program does what is asked.
fn judge(answer: &Answer, judged: &[CaseRecord]) -> Option<(Outcome, f64, String)> {
    // Ends that spin on one CPU wait for the scheduler: `recommend` saw that of the rows, and a few runs of a program may not.
    let may_be = |row: &CaseRecord| !(row.wait == Wait::Spin && stats::ever_shared_cpu(row));
    let could_be = |case: &&CaseRecord| measured(answer).any(|row| row.spec == case.spec && may_be(row));
    let rows: Vec<&CaseRecord> = judged.iter().filter(could_be).collect();
    let demand = answer.question.demand();
    let choice = choose(&rows, &demand);
    let best = choice.ranked.iter().find(|one| one.excluded.is_none())?;
    let (best_name, best_cost) = (rows[best.at].spec.to_string(), best.cost?.ranking_ns);
    let Some(taken) = taken(answer) else { return Some((Outcome::Wrong, f64::INFINITY, best_name)) };
    let own = choice.case(rows.iter().position(|case| case.spec == *taken)?)?;
    let cost = own.cost?;
    let times = cost.ranking_ns.median / best_cost.median;
    let is_beaten = match own.excluded {
        None => choice.standing.beaten.iter().any(|one| one.at == own.at),
        // It may do what is asked: it takes no part in the race, and its interval decides.
        Some(Excluded::TooSlow)
            if keeps_up(1e9 / cost.elapsed_ns.low, demand.messages_per_s.unwrap_or(0.0)) =>
        {
            cost.ranking_ns.low > best_cost.high
        }
        Some(Excluded::TooMuchCpu) if demand.cpus_max.is_some_and(|most| cost.cpus.low <= most) => {
            cost.ranking_ns.low > best_cost.high
        }
        Some(_) => return Some((Outcome::Wrong, times, best_name)),
    };
    let outcome = match is_beaten {
        false => Outcome::Right,
        true if times <= SAME_TIMES => Outcome::Within10Percent,
        true => Outcome::Wrong,
    };
    Some((outcome, times, best_name))
}
