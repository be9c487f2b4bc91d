//! `hosepipe recommend` put to the test: many questions, each answered from one record, and each answer judged by a second one that was
//! measured afterwards with another seed. Wrong is an answer that is not, in the second record, the best by the question's
//! own objective or within the interval of the best.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use model::{BenchRecord, ByteSize, CaseRecord, Spec, Tasks, Workload};
use stats::choice::SIMPLEST_FIRST;
use stats::{Demand, Excluded, Weighing};

use crate::hosepipe::{PROGRAM, bench};
use crate::table::{BenchRow, Unit, Wanted};
use crate::targets::{Laboratory, Target};

const BLOCKS: [u64; 6] = [1, 64, 1 << 10, 1 << 14, 1 << 17, 1 << 20];
/// What one record may take to measure.
const TIME: &str = "90s";
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

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "recommend",
    promise: "answers from one record, judged by another: at least 95 % right (and how much the others cost beside the best)",
    slow: true,
    measure: answers,
}];

/// A question, as it is typed and as it is judged.
struct Question {
    block: u64,
    workload: Workload,
    tasks: Tasks,
    words: String,
    demand: Demand,
}

/// Two records of the same cases.
struct Records {
    asked: BenchRecord,
    judge: BenchRecord,
}

fn answers(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let (mut right, mut all, mut regrets) = (0.0, 0.0, Vec::new());
    for tasks in [Tasks::Processes, Tasks::Threads] {
        let records = measure(tasks, lab.seed)?;
        let path = folder.path().join(format!("{tasks}.json"));
        std::fs::write(&path, serde_json::to_string(&records.asked)?).context("the record")?;
        for question in questions(tasks) {
            let words = format!("{} --from {}", question.words, path.display());
            let (taken, weighed) = ask(&words)?;
            let Some(regret) = judge(&question, taken.as_ref(), &weighed, &records.judge) else { continue };
            all += 1.0;
            right += f64::from(u8::from(regret.is_right));
            regrets.extend(regret.times_best);
            if !regret.is_right {
                eprintln!(
                    "wrong: {} {:?}: {:?}",
                    question.words,
                    taken.map(|spec| spec.to_string()),
                    regret.times_best
                );
            }
        }
    }
    ensure!(all >= 60.0, "only {all} questions could be judged");
    let row = |more: &str, unit, ours, reference, wanted| BenchRow {
        name: format!("{name}{more}"),
        unit,
        ours,
        reference,
        wanted,
    };
    Ok(vec![
        row("", Unit::Count, vec![right], vec![all], Wanted::AtLeast(0.95)),
        row(" / cost of the best", Unit::Count, regrets.clone(), vec![1.0; regrets.len()], Wanted::Nothing),
    ])
}

fn measure(tasks: Tasks, seed: u64) -> Result<Records> {
    let blocks = BLOCKS.map(|block| ByteSize(block).to_string()).join(",");
    let record = |seed: u64| {
        let specs = SIMPLEST_FIRST.join(" ");
        bench(&format!("{specs} --block {blocks} --tasks {tasks} --place any --time {TIME} --seed {seed}"))
    };
    Ok(Records { asked: record(seed)?, judge: record(seed + 1000)? })
}

/// Each size and pattern, between whom these tasks may be, plain and with one thing more.
fn questions(tasks: Tasks) -> Vec<Question> {
    let between: &[&str] =
        if tasks == Tasks::Threads { &["threads"] } else { &["parent-child", "processes"] };
    let mut besides = BESIDES.iter().cycle();
    let mut all = Vec::new();
    for block in BLOCKS {
        for (workload, pattern) in [(Workload::Stream, "stream"), (Workload::PingPong, "request-reply")] {
            for between in between {
                for besides in ["", besides.next().copied().unwrap_or_default()] {
                    let words = format!(
                        "--message {} --pattern {pattern} --between {between} {besides}",
                        ByteSize(block)
                    );
                    let number = |option: &str| {
                        besides.strip_prefix(option).and_then(|rest| rest.trim().parse::<f64>().ok())
                    };
                    let demand = Demand {
                        messages_per_s: number("--messages-per-second"),
                        cpus_max: number("--cpu-budget").map(|percent| percent / 100.0),
                    };
                    all.push(Question { block, workload, tasks, words, demand });
                }
            }
        }
    }
    all
}

/// What is recommended, and everything that was weighed.
fn ask(words: &str) -> Result<(Option<Spec>, Vec<Spec>)> {
    let output = Command::new(PROGRAM)
        .arg("recommend")
        .args(words.split_whitespace())
        .output()
        .context("recommend")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let taken = said.lines().find_map(|line| line.strip_prefix("Take `")?.split('`').next()?.parse().ok());
    let proof = said.lines().find_map(|line| line.strip_prefix("hosepipe bench ")).unwrap_or_default();
    let weighed =
        proof.split(" --block").next().unwrap_or_default().split(' ').filter_map(|spec| spec.parse().ok());
    Ok((taken, weighed.collect()))
}

/// How an answer came out.
struct Regret {
    is_right: bool,
    /// Its cost as a multiple of that of the best.
    times_best: Option<f64>,
}

/// Judges an answer; `None` where there is nothing to choose from. That nothing can be recommended is right where nothing is left.
fn judge(question: &Question, taken: Option<&Spec>, weighed: &[Spec], judge: &BenchRecord) -> Option<Regret> {
    let alike = |case: &&CaseRecord| {
        (case.workload, case.tasks, case.block_bytes) == (question.workload, question.tasks, question.block)
            && weighed.contains(&case.spec)
    };
    let cases: Vec<&CaseRecord> = judge.cases.iter().filter(alike).collect();
    if cases.is_empty() {
        return None;
    }
    let weighing = stats::choose(&cases, &question.demand);
    let Some(taken) = taken else {
        return Some(Regret { is_right: weighing.taken.is_none(), times_best: None });
    };
    let own = weighing.of(cases.iter().position(|case| case.spec == *taken)?)?;
    let cost = own.cost?;
    let best = best_ns(&weighing);
    // What is asked for is kept if the interval reaches what is asked: that of the first record lay within it.
    let keeps = match own.excluded {
        None => true,
        Some(Excluded::TooSlow) => {
            question.demand.messages_per_s.is_some_and(|rate| cost.time_ns.low * rate <= 1e9)
        }
        Some(Excluded::TooMuchCpu) => question.demand.cpus_max.is_some_and(|most| cost.cpus.low <= most),
        Some(_) => false,
    };
    let reaches = best.is_none_or(|(_, high)| cost.decisive_ns.low <= high);
    Some(Regret {
        is_right: keeps && reaches,
        times_best: best.map(|(median, _)| cost.decisive_ns.median / median),
    })
}

/// The cost of the best, and the upper end of its interval.
fn best_ns(weighing: &Weighing) -> Option<(f64, f64)> {
    let best = weighing.weighed.iter().find(|one| one.excluded.is_none())?.cost?;
    Some((best.decisive_ns.median, best.decisive_ns.high))
}
