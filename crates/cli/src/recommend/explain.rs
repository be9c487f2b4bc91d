//! The answer in words: a table of what was weighed, three sentences, the command that proves it.

use std::time::Duration;

use model::{CaseError, CaseRecord, ErrorKind, ProgramFigures, Recommendation, Workload};
use report::document::{Block, Document};
use report::table::{Column, Fit, Row, Table, Tone};
use report::{first_of, numbers, words};
use stats::{Excluded, MessageCost, Weighed, Weighing};

use super::contest::{Contest, ProgramCost};
use super::figures::Figures;
use super::program::{CodeLanguage, Program};
use super::question::{Candidate, Question};

/// Names in a sentence.
const NAMES_MAX: usize = 3;
/// What a ring cannot do.
const RING: &str = "A ring has no end of stream, does not notice when the other end dies, and cannot be polled beside descriptors.";
/// The same of a message queue.
const QUEUE: &str = "A message queue has no end of stream, and does not notice when the other end dies: who waits there waits for ever.";
/// What the program does beside writing a file.
const FILE: &str =
    "The program puts each message on the disk before the next: two fsync(2) and a rename(2) for each.";
/// An interval wider than this on either side should be measured again.
const WIDE: f64 = 0.25;

/// A question and all that the answer is made of.
pub(super) struct Answer<'a> {
    pub(super) question: &'a Question,
    pub(super) candidates: &'a [Candidate],
    pub(super) figures: &'a Figures<'a>,
    pub(super) weighing: &'a Weighing,
    /// Whether the user stopped the measuring. That its time is over is no news: the number of trials is said where it matters.
    pub(super) is_stopped: bool,
    /// The programs that were run, and their language.
    pub(super) programs: &'a [ProgramFigures],
    /// How they stand to each other.
    pub(super) contest: &'a Contest,
    /// From the question to the answer; `None` where nothing was measured.
    pub(super) took: Option<Duration>,
    pub(super) language: CodeLanguage,
    /// What the loops of `bench` alone would take.
    pub(super) taken_by_loops: Option<usize>,
}

impl Answer<'_> {
    /// Everything but the program; `proof` is the command that repeats it.
    pub(super) fn document(&self, proof: &str) -> Document {
        let mut blocks = Vec::new();
        if self.is_stopped {
            blocks.push(Block::Notice("Stopped early: what stands here is what was finished.".to_owned()));
        }
        blocks.push(Block::Title(title(self.question, self.figures)));
        blocks.extend(self.sentences().into_iter().map(Block::Line));
        blocks.push(Block::Table(self.table()));
        blocks.extend(self.notes().into_iter().map(Block::Note));
        // A command is one line however long, so that it can be pasted.
        let proves =
            if self.weighing.taken.is_some() { "What proves it:" } else { "What measures it again:" };
        blocks.extend([Block::Paragraph(proves.to_owned()), Block::Command(proof.to_owned())]);
        Document::from_blocks(blocks)
    }

    /// What to take, how the others stand to it, and what to know besides.
    fn sentences(&self) -> Vec<String> {
        let taken = self.weighing.taken.and_then(|at| self.weighing.of(at));
        match taken.and_then(|taken| Some((taken, taken.cost?))) {
            Some((taken, cost)) => {
                let against = self.overruled(taken).or_else(|| self.against_programs(taken));
                let against = against.unwrap_or_else(|| {
                    self.against(taken, &cost, self.weighing, &self.figures.cases, ["one", "trial"])
                });
                let mut said = vec![self.taking(taken, &cost), self.program(taken, &cost), against];
                said.extend(self.few_trials());
                said.extend(self.besides(taken, &cost));
                said.extend(match self.case(taken).mechanism.as_str() {
                    "shm-ring" => Some(RING.to_owned()),
                    "posix-mq" | "sysv-msgq" => Some(QUEUE.to_owned()),
                    "file" => Some(FILE.to_owned()),
                    _ => None,
                });
                said.extend(
                    self.took
                        .map(|took| format!("Answered after {}.", numbers::time(took.as_nanos() as f64))),
                );
                said
            }
            None => {
                let mut said = vec![
                    "Nothing that was measured can be recommended: the table says why of each.".to_owned(),
                ];
                said.extend(self.within_budget());
                said
            }
        }
    }

    pub(super) fn case(&self, weighed: &Weighed) -> &CaseRecord {
        self.figures.cases[weighed.at]
    }

    pub(super) fn name(&self, weighed: &Weighed) -> String {
        format!("`{}`", self.case(weighed).spec)
    }

    fn taking(&self, taken: &Weighed, cost: &MessageCost) -> String {
        let one = if self.question.pattern.workload() == Workload::Stream { "message" } else { "round trip" };
        // What one gets is the program; the loop stands for it where it was not run.
        let own = self.program_cost(taken);
        let (time_ns, cpu_ns) =
            own.map_or((cost.time_ns.median, cost.cpu_ns.median), |own| (own.time_ns, own.cpu_ns));
        let cpu = match cpu_ns > 0.0 {
            true => format!(", and {} of CPU at both ends", numbers::time(cpu_ns)),
            false => String::new(),
        };
        let rate = self.question.demand.messages_per_s.map(|rate| {
            let share = numbers::percent(own.map_or(cost.cpus.median, |own| own.cpu_ns * rate / 1e9));
            format!("; {} of them a second keep {share} of a CPU busy", numbers::grouped(rate, 0))
        });
        format!(
            "Take {}: a {one} takes {}{cpu}{}.",
            self.name(taken),
            numbers::time(time_ns),
            rate.unwrap_or_default()
        )
    }

    fn program_of(&self, weighed: &Weighed) -> Option<&ProgramFigures> {
        self.programs.iter().find(|program| program.spec == self.case(weighed).spec)
    }

    pub(super) fn program_cost(&self, weighed: &Weighed) -> Option<ProgramCost> {
        ProgramCost::new(self.program_of(weighed)?)
    }

    /// What the program takes beside the loop of `bench`, or why that is not known.
    fn program(&self, taken: &Weighed, cost: &MessageCost) -> String {
        let figures = self.program_of(taken);
        if let Some((figures, own)) = figures.and_then(|figures| Some((figures, ProgramCost::new(figures)?)))
        {
            return format!(
                "The program below: {} (median of {} of {} messages each); hosepipe's own loop: {}.",
                numbers::time(own.time_ns),
                words::count(figures.time_ns.len(), "run"),
                numbers::grouped(figures.messages as f64, 0),
                numbers::time(cost.time_ns.median),
            );
        }
        match figures.and_then(|figures| figures.failure.as_ref()) {
            Some(why) => format!("The program below was not timed: {why}."),
            None => "The program below was not run: give it a COUNT to time it.".to_owned(),
        }
    }

    /// That the programs are ranked otherwise than the loops of `bench`.
    fn overruled(&self, taken: &Weighed) -> Option<String> {
        let loops = self.weighing.of(self.taken_by_loops.filter(|at| *at != taken.at)?)?;
        let [own, other] = [taken, loops].map(|one| self.program_cost(one));
        let (own, other) = (own?, other?);
        let Contest { cases, weighing, .. } = self.contest;
        if weighing.level().any(|one| cases[one.at].spec == self.case(loops).spec) {
            return Some(format!(
                "By hosepipe's own loops it would be {}; as programs they cannot be told apart, and {} is the simpler.",
                self.name(loops),
                self.name(taken),
            ));
        }
        Some(format!(
            "By hosepipe's own loops it would be {}, but its program in {} takes {}, and {} of CPU, where that of {} takes {}, and {}.",
            self.name(loops),
            self.language.name(),
            numbers::time(other.time_ns),
            numbers::time(other.cpu_ns),
            self.name(taken),
            numbers::time(own.time_ns),
            numbers::time(own.cpu_ns),
        ))
    }

    /// The answer as a record has it.
    pub(super) fn recommendation(&self, program: Option<&Program>) -> Recommendation {
        let taken = self.weighing.taken.and_then(|at| self.weighing.of(at));
        Recommendation {
            title: title(self.question, self.figures),
            taken: taken.map(|taken| self.case(taken).spec.clone()),
            sentences: self.sentences(),
            language: self.language.word().to_owned(),
            took_s: self.took.map(|took| took.as_secs_f64()),
            program_ns: taken.and_then(|taken| self.program_cost(taken)).map(|cost| cost.time_ns),
            programs: self.programs.to_vec(),
            program: program.map(Program::text),
        }
    }

    /// How the other programs stand to that of what is taken; `None` where it is the only one.
    fn against_programs(&self, taken: &Weighed) -> Option<String> {
        let Contest { cases, weighing, .. } = self.contest;
        let rows: Vec<&CaseRecord> = cases.iter().collect();
        let own = weighing.of(rows.iter().position(|case| case.spec == self.case(taken).spec)?)?;
        let is_alone = weighing.weighed.iter().all(|one| one.at == own.at || one.excluded.is_some());
        (!is_alone).then(|| Some(self.against(own, &own.cost?, weighing, &rows, ["program", "run"])))?
    }

    /// How the others stand to it; `words` are what they are and what they were measured in.
    fn against(
        &self,
        taken: &Weighed,
        cost: &MessageCost,
        weighing: &Weighing,
        cases: &[&CaseRecord],
        [one, trial]: [&str; 2],
    ) -> String {
        let what = if self.question.demand.messages_per_s.is_some() { "CPU" } else { "time and CPU" };
        let name = |one: &Weighed| format!("`{}`", cases[one.at].spec);
        let level: Vec<String> = weighing.level().filter(|one| one.at != taken.at).map(name).collect();
        let next = weighing.weighed.iter().find(|one| one.excluded.is_none() && one.at != taken.at);
        match (level.len(), next.and_then(|next| Some((next, next.cost?)))) {
            (0, None) => "Nothing else is left of what was measured.".to_owned(),
            (0, Some((next, other))) => {
                let times = numbers::ratio(other.decisive_ns.median / cost.decisive_ns.median);
                let (time, cpu) = (numbers::time(other.time_ns.median), numbers::time(other.cpu_ns.median));
                if cost.has_few_trials() || other.has_few_trials() {
                    return format!("The next {one}, {}, took {time}, and {cpu} of CPU.", name(next));
                }
                let standing = &weighing.standing;
                let sure = match standing.beaten.iter().any(|(at, _)| *at == next.at) {
                    true if standing.lead > 1.0 => format!("; at least {}", numbers::ratio(standing.lead)),
                    true => String::new(),
                    false => "; too few rounds to be sure: a larger --time".to_owned(),
                };
                format!(
                    "The next {one}, {}, costs {times} times as much {what} ({time}, {cpu} of CPU{sure}).",
                    name(next)
                )
            }
            (count, _) => {
                let are = if count == 1 { "is" } else { "are" };
                let names = first_of(&level, NAMES_MAX, ", ", String::clone);
                format!(
                    "{names} {are} as good in {what} as far as can be told after {}; {} is the simplest of them.",
                    words::count(cost.decisive_ns.count, trial),
                    name(taken)
                )
            }
        }
    }

    /// Mechanisms with too few trials for an interval.
    fn with_few_trials(&self) -> impl Iterator<Item = (&Weighed, usize)> {
        let few = |one: &'_ &Weighed| one.cost.is_some_and(|cost| cost.has_few_trials());
        let all = self.weighing.weighed.iter().filter(few);
        all.filter_map(|one| Some((one, one.cost?.decisive_ns.count)))
    }

    /// That nothing is sure yet, where that is so.
    fn few_trials(&self) -> Option<String> {
        let least = self.with_few_trials().map(|(_, trials)| trials).min()?;
        let names: Vec<String> = self.with_few_trials().map(|(one, _)| self.name(one)).collect();
        let names = first_of(&names, NAMES_MAX, ", ", String::clone);
        let least = words::count(least, "trial");
        Some(format!(
            "Too few trials of {names} (the least: {least}; an interval needs 6): no difference is sure, and the figures \
             may be far off; a larger --time gives more."
        ))
    }

    /// What else to know of the figures.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.figures.block_bytes != self.question.message_bytes {
            let [block, asked] = [self.figures.block_bytes, self.question.message_bytes].map(numbers::size);
            notes.push(format!(
                "The figures are of {block}, the size in the record that is nearest to {asked}."
            ));
        }
        notes.extend(self.buffers());
        let missing =
            self.candidates.iter().filter_map(|one| Some((one.spec.to_string(), one.missing.as_ref()?)));
        notes.extend(
            missing.map(|(spec, why)| format!("`{spec}` is not there on this machine: {}.", own_words(why))),
        );
        let unfit = self.candidates.iter().filter_map(|one| Some((&one.spec, one.unfit?)));
        notes.extend(unfit.map(|(spec, why)| format!("`{spec}` is left out: {why}.")));
        if !self.contest.cases.is_empty() && !self.contest.does_all && self.weighing.taken.is_some() {
            let language = self.language.name();
            notes.push(format!(
                "No program in {language} surely does all that is asked: what is taken is the best of them."
            ));
        }
        if self.taken_by_loops.is_none() && self.weighing.taken.is_some() {
            notes.push(
                "No loop of `bench` surely does all that is asked; the program that is taken does."
                    .to_owned(),
            );
        }
        let failed = self.programs.iter().filter_map(|one| Some((&one.spec, one.failure.as_ref()?)));
        notes.extend(failed.map(|(spec, why)| format!("The program of `{spec}` was not timed: {why}.")));
        let wide = self.weighing.level().filter_map(|one| one.cost).filter(|cost| !cost.has_few_trials());
        let wide = wide.filter_map(|cost| cost.decisive_ns.relative_half_width());
        if wide.fold(0.0, f64::max) > WIDE {
            let remedy = "a quieter machine, or more --time, may tell more of them apart";
            notes.push(format!("Some intervals are wider than ±{}: {remedy}.", numbers::percent(WIDE)));
        }
        notes
    }

    fn table(&self) -> Table {
        let taken = self.weighing.taken.and_then(|at| self.weighing.of(at)?.cost);
        let mut table = Table::default();
        let mut add = |column: Column, cell: &dyn Fn(&Weighed) -> Option<String>| {
            table.add(column, self.weighing.weighed.iter().map(cell));
        };
        let one = if self.question.pattern.workload() == Workload::Stream { "message" } else { "round trip" };
        let what = if self.question.demand.messages_per_s.is_some() { "CPU" } else { "time + CPU" };
        add(Column::left("mechanism").fit(Fit::Spec), &|one| Some(self.case(one).spec.to_string()));
        add(Column::right(format!("time per {one}")).short("time"), &|one| {
            Some(numbers::time(one.cost?.time_ns.median))
        });
        add(Column::right(format!("CPU per {one}")).short("CPU"), &|one| {
            Some(numbers::time(one.cost?.cpu_ns.median))
        });
        let reached = |one: &&Weighed| one.excluded != Some(Excluded::TooSlow);
        add(Column::right("of a CPU").drop(3), &|one| {
            Some(numbers::percent(Some(one).filter(reached)?.cost?.cpus.median))
        });
        add(Column::right(what).short("cost"), &|one| Some(numbers::time(one.cost?.decisive_ns.median)));
        let interval = if self.with_few_trials().next().is_some() { "range" } else { "95 %" };
        add(Column::right(interval).drop(2), &|one| {
            let cost = one.cost?.decisive_ns;
            Some(format!("{} to {}", numbers::time(cost.low), numbers::time(cost.high)))
        });
        if !self.programs.is_empty() {
            let title = format!("program in {}", self.language.name());
            add(Column::right(title).short("program"), &|one| {
                Some(numbers::time(self.program_cost(one)?.time_ns))
            });
        }
        add(Column::right("× taken").drop(1), &|one| {
            Some(numbers::ratio(one.cost?.decisive_ns.median / taken?.decisive_ns.median))
        });
        for (row, weighed) in table.rows.iter_mut().zip(&self.weighing.weighed) {
            self.say_of(weighed, row);
        }
        table
    }

    /// Why a row is out, or that it is the one.
    fn say_of(&self, weighed: &Weighed, row: &mut Row) {
        if self.weighing.taken == Some(weighed.at) {
            row.tone = Tone::Bold;
            row.reasons.push("taken".to_owned());
        }
        let case = self.case(weighed);
        let cost = weighed.cost;
        // The loop of what is taken may not do what is asked where its program does.
        let excluded = weighed.excluded.filter(|_| self.weighing.taken != Some(weighed.at));
        row.reasons.extend(excluded.map(|why| {
            match why {
                Excluded::NoFigures => match &case.error {
                    Some(error) => reason(error),
                    None => "no figures".to_owned(),
                },
                Excluded::LessData => "out: its bytes were not checked as those of others".to_owned(),
                Excluded::Spins if self.question.demand.cpus_max.is_some() => {
                    let most = cost.map_or(0.0, |cost| cost.cpus.high);
                    format!(
                        "out: its ends spin while they wait, and may take {} of a CPU",
                        numbers::percent(most)
                    )
                }
                Excluded::Spins if stats::sat_on_one_cpu(case) => {
                    "out: its ends spin while they wait (--cpu-budget 200 allows it, pinned)".to_owned()
                }
                Excluded::Spins => {
                    "out: its ends spin while they wait (--cpu-budget 200 allows it)".to_owned()
                }
                Excluded::SpinsOnOneCpu => {
                    "out: its ends spin, and sat on one CPU in some trials: it needs two of its own, pinned"
                        .to_owned()
                }
                Excluded::TooSlow => {
                    let reached = numbers::grouped(cost.map_or(0.0, |cost| 1e9 / cost.time_ns.high), 0);
                    if cost.is_some_and(|cost| cost.has_few_trials()) {
                        format!("out: in its slowest trial it reached only {reached} a second")
                    } else {
                        format!("out: for sure it reaches only {reached} a second")
                    }
                }
                Excluded::TooMuchCpu => {
                    let most = cost.map_or(0.0, |cost| cost.cpus.high);
                    format!("out: it may take {} of a CPU", numbers::percent(most))
                }
            }
        }));
    }
}

/// "Streams of 200 B between parent and child, placed by the scheduler".
pub(super) fn title(question: &Question, figures: &Figures<'_>) -> String {
    let size = numbers::size(question.message_bytes);
    let what = match question.pattern.workload() {
        Workload::Stream => "Streams",
        Workload::PingPong => "Round trips",
    };
    let place = figures.cases.first().map_or(String::new(), |case| words::whereabouts(case));
    format!("{what} of {size}, {}, {place}", question.between)
}

/// Why a case has no figures, and what to try.
fn reason(error: &CaseError) -> String {
    match (&error.remedy, error.kind) {
        (_, ErrorKind::Time) => format!("{}: a larger --time, or a smaller --message", error.message),
        (Some(remedy), _) => format!("{}: {}", error.message, own_words(remedy)),
        (None, _) => error.message.clone(),
    }
}

/// A remedy of `bench` in the options that there are here.
fn own_words(remedy: &str) -> String {
    let others = [
        ("--block", "--message"),
        ("--tasks processes", "--between parent-child"),
        ("a smaller --bytes", "a smaller --time"),
        (", or --data write", ""),
    ];
    others.iter().fold(remedy.to_owned(), |text, (theirs, own)| text.replace(theirs, own))
}
