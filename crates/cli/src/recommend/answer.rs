//! The answer: which mechanism to take and what it costs, a table of all candidates, and the command that repeats the measurement.

use std::time::Duration;

use model::{CaseError, CaseRecord, ErrorKind, ProgramFigures, Recommendation, Sample, StopReason, Workload};
use report::document::{Block, Document};
use report::sheet::{Sheet, col};
use report::table::{Fit, Row, Table, Tone};
use report::{RaceWords, Unit, numbers, words};
use stats::choice::ranking_cost_ns;
use stats::estimate::median;
use stats::paired::paired_ratios;
use stats::{Choice, Excluded, MessageCost, RankedCase};

use super::RecommendArgs;
use super::figures::Figures;
use super::program::Program;
use super::program_race::{ProgramCost, ProgramRace};
use super::question::{Candidate, Question};

/// A question and everything that its answer depends on.
pub(super) struct Answer<'a> {
    pub(super) args: &'a RecommendArgs,
    pub(super) candidates: &'a [Candidate],
    pub(super) figures: &'a Figures<'a>,
    /// The ranking of the loops of `bench`; `taken` is the mechanism of the best program, if programs were run.
    pub(super) choice: &'a Choice,
    /// The row that the loops of `bench` alone would take.
    pub(super) taken_by_loops: Option<usize>,
    pub(super) race: &'a ProgramRace,
    /// The signal by which the user stopped the measurement.
    pub(super) stopped_by: Option<StopReason>,
    /// From the question to the answer; `None` if nothing was measured.
    pub(super) took: Option<Duration>,
}

impl Answer<'_> {
    /// Everything except the program; `proof` is the command that repeats the measurement.
    pub(super) fn document(&self, proof: &str) -> Document {
        let mut blocks = Vec::new();
        if let Some(signal) = self.stopped_by {
            let stopped = words::stopped_early(Some(signal));
            blocks.push(Block::Notice(words::only_finished(stopped, "figures")));
        }
        blocks.push(Block::Title(title(&self.args.question, self.figures)));
        blocks.extend(self.sentences().into_iter().map(Block::Line));
        blocks.push(Block::Table(self.table()));
        blocks.extend(self.notes().into_iter().map(Block::Note));
        let proves = if self.choice.taken.is_some() {
            "The command that proves it:"
        } else {
            "The command that measures it again:"
        };
        // A command is never wrapped, so that it can be pasted.
        blocks.extend([Block::Paragraph(proves.to_owned()), Block::Command(proof.to_owned())]);
        Document::from_blocks(blocks)
    }

    /// The answer for a record.
    pub(super) fn recommendation(&self, program: Option<&Program>) -> Recommendation {
        let taken = self.choice.taken.and_then(|at| self.choice.case(at));
        Recommendation {
            title: title(&self.args.question, self.figures),
            taken: taken.map(|taken| self.case(taken).spec.clone()),
            sentences: self.sentences(),
            language: self.args.code.word().to_owned(),
            took_s: self.took.map(|took| took.as_secs_f64()),
            program_ns: taken.and_then(|taken| self.program_cost(taken)).map(|cost| cost.time_ns),
            programs: self.race.programs.clone(),
            program: program.map(Program::text),
        }
    }

    /// Which mechanism to take, what the next one costs, and further facts.
    fn sentences(&self) -> Vec<String> {
        let taken = self.choice.taken.and_then(|at| self.choice.case(at));
        let Some((taken, cost)) = taken.and_then(|taken| Some((taken, taken.cost?))) else {
            let none = "Nothing that was measured can be recommended: the table gives the reason for each.";
            return std::iter::once(none.to_owned()).chain(self.within_budget()).collect();
        };
        let took = self.took.map(|took| format!("Answered after {}.", numbers::time(took.as_nanos() as f64)));
        let mut sentences =
            vec![self.headline(taken, &cost), self.program(taken, &cost), self.others(taken, &cost)];
        sentences.extend(self.overruled(taken));
        sentences.extend(self.few_trials());
        sentences.extend(self.spinning(&cost).or_else(|| self.pinning(taken, &cost)));
        sentences.extend(self.shortcomings(taken));
        sentences.extend(took);
        sentences
    }

    pub(super) fn case(&self, row: &RankedCase) -> &CaseRecord {
        self.figures.cases[row.at]
    }

    pub(super) fn name(&self, row: &RankedCase) -> String {
        format!("`{}`", self.case(row).spec)
    }

    fn program_of(&self, row: &RankedCase) -> Option<&ProgramFigures> {
        self.race.programs.iter().find(|program| program.spec == self.case(row).spec)
    }

    fn program_cost(&self, row: &RankedCase) -> Option<ProgramCost> {
        ProgramCost::new(self.program_of(row)?)
    }

    /// What is sent: a message or a round trip.
    fn unit(&self) -> &'static str {
        if self.args.question.pattern.workload() == Workload::Stream { "message" } else { "round trip" }
    }

    /// "Take `pipe`: a message takes 900 ns, and 900 ns of CPU at both ends." The figures are the program's if it was run.
    fn headline(&self, taken: &RankedCase, cost: &MessageCost) -> String {
        let own = self.program_cost(taken);
        let ProgramCost { time_ns, cpu_ns } =
            own.unwrap_or(ProgramCost { time_ns: cost.time_ns.median, cpu_ns: cost.cpu_ns.median });
        let (name, unit) = (self.name(taken), self.unit());
        let cpu = format!("{} of CPU at both ends", numbers::time(cpu_ns));
        if let Some(rate) = self.args.question.messages_per_second {
            // Measured at the rate: a run's time is that between its messages.
            let cpus = own.map_or(cost.cpus.median, |own| own.cpu_ns / own.time_ns);
            return format!(
                "Take {name}: at {} a second a {unit} takes {cpu}, and all of them keep {} of a CPU busy.",
                numbers::grouped(rate, 0),
                numbers::percent(cpus)
            );
        }
        let cpu = if cpu_ns > 0.0 { format!(", and {cpu}") } else { String::new() };
        format!("Take {name}: a {unit} takes {}{cpu}.", numbers::time(time_ns))
    }

    /// The figure of programs and loops that is compared: the time of a message, or at a rate its CPU time.
    fn compared_text(&self, time_ns: f64, cpu_ns: f64) -> String {
        match self.args.question.messages_per_second {
            Some(_) => format!("{} of CPU", numbers::time(cpu_ns)),
            None => numbers::time(time_ns),
        }
    }

    /// The time of the program and of hosepipe's own loop, or why the program was not timed.
    fn program(&self, taken: &RankedCase, cost: &MessageCost) -> String {
        let program = match &self.args.code_to {
            Some(file) => format!("The program in {}", file.display()),
            None => "The program below".to_owned(),
        };
        let Some(figures) = self.program_of(taken) else {
            return format!("{program} was not run: give it a COUNT to time it.");
        };
        match (self.program_cost(taken), &figures.failure) {
            (Some(own), _) => format!(
                "{program}: {} (median of {} of {} each); hosepipe's own loop: {}.",
                self.compared_text(own.time_ns, own.cpu_ns),
                words::count(figures.time_ns.len(), "run"),
                words::grouped_count(figures.messages, self.unit()),
                self.compared_text(cost.time_ns.median, cost.cpu_ns.median),
            ),
            (None, Some(why)) => format!("{program} was not timed: {why}."),
            (None, None) if figures.time_ns.is_empty() => format!("{program} was not timed."),
            (None, None) => format!(
                "{program}: the CPU time of its messages is too small beside that of its start to be measured; hosepipe's own loop: {}.",
                self.compared_text(cost.time_ns.median, cost.cpu_ns.median)
            ),
        }
    }

    /// If the loops of `bench` alone would take another mechanism whose program was run, too: which one.
    fn overruled(&self, taken: &RankedCase) -> Option<String> {
        let other = self.choice.case(self.taken_by_loops.filter(|at| *at != taken.at)?)?;
        self.program_cost(other)?;
        Some(format!("By hosepipe's own loops it would be {}, but the programs decide.", self.name(other)))
    }

    /// How the others compare with what is taken: by their programs, or by the loops of `bench` if no other program was run.
    fn others(&self, taken: &RankedCase, cost: &MessageCost) -> String {
        let ProgramRace { cases, choice, .. } = self.race;
        let own = self.race.row(&self.case(taken).spec).and_then(|own| Some((own, own.cost?)));
        let has_others =
            |own: &RankedCase| choice.ranked.iter().any(|one| one.at != own.at && one.excluded.is_none());
        match own.filter(|(own, _)| has_others(own)) {
            Some((own, cost)) => {
                let cases: Vec<&CaseRecord> = cases.iter().collect();
                self.compared(own.at, &cost, choice, &cases, ["program", "run"])
            }
            None => self.compared(taken.at, cost, self.choice, &self.figures.cases, ["one", "trial"]),
        }
    }

    /// How the others of a ranking compare with the one that is taken. `noun` is the word for a row of it, `trial` for one measurement of a
    /// row.
    fn compared(
        &self,
        taken: usize,
        cost: &MessageCost,
        choice: &Choice,
        cases: &[&CaseRecord],
        [noun, trial]: [&str; 2],
    ) -> String {
        let demand = &self.args.question.demand();
        let what = if demand.messages_per_s.is_some() { "CPU" } else { "time and CPU" };
        let words = RaceWords { cases, choice, taken, demand };
        let trials = words::count(cost.ranking_ns.count, trial);
        let simplest = words
            .simplest()
            .map(|simplest| format!("By {what} in {trials}, `{}` is {simplest}.", cases[taken].spec));
        let lead = words.lead(what).map(|(next, lead)| format!("The next {noun}, {next}, {lead}."));
        let more = self.more_time("; a larger --time may tell");
        let open = words.not_told_apart().map(|open| format!("After {trials}, {open}{more}."));
        let sentences: Vec<String> = [simplest, lead, open].into_iter().flatten().collect();
        match sentences.is_empty() {
            true => "No other mechanism that was measured can be taken.".to_owned(),
            false => sentences.join(" "),
        }
    }

    /// The advice to allow more time; empty if the answer did not use all of its time, or was read from a record.
    pub(super) fn more_time(&self, advice: &'static str) -> &'static str {
        if self.took.is_some_and(|took| took >= self.args.time) { advice } else { "" }
    }

    /// Rows with too few trials for an interval, and the number of their trials.
    pub(super) fn with_few_trials(&self) -> impl Iterator<Item = (&RankedCase, usize)> {
        let rows = self.choice.ranked.iter().filter_map(|one| Some((one, one.cost?)));
        rows.filter(|(_, cost)| cost.has_few_trials()).map(|(one, cost)| (one, cost.ranking_ns.count))
    }

    fn table(&self) -> Table {
        let rows = &self.choice.ranked;
        let mut sheet = Sheet::new(rows);
        let ns = |ns: f64| Some(Unit::Ns.of(ns));
        let unit = self.unit();
        let interval = if self.with_few_trials().next().is_some() { "range" } else { "95 %" };
        sheet.add(col("mechanism").fit(Fit::Spec), |one| Some(self.case(one).spec.to_string().into()));
        let rate = self.args.question.messages_per_second;
        let is_stream = self.args.question.pattern.workload() == Workload::Stream;
        match rate {
            // The time between messages is given.
            Some(rate) if is_stream => sheet.add(col("reached").drop(4), |one| {
                Some(Unit::PerS.of((1e9 / one.cost?.elapsed_ns.median).min(rate)))
            }),
            _ => sheet.add(col(format!("time per {unit}")).short("time"), |one| ns(one.cost?.time_ns.median)),
        }
        sheet.add(col(format!("CPU per {unit}")).short("CPU"), |one| ns(one.cost?.cpu_ns.median));
        sheet.add(col("of a CPU").drop(3), |one| {
            let reached = one.excluded != Some(Excluded::TooSlow);
            reached.then(|| Some(Unit::Share.of(one.cost?.cpus.median)))?
        });
        // At a rate the CPU time is the cost.
        if rate.is_none() {
            sheet.add(col("time + CPU").short("cost"), |one| ns(one.cost?.ranking_ns.median));
        }
        sheet.add(col(interval).drop(2), |one| {
            let cost = one.cost?.ranking_ns;
            Some(Unit::Ns.of(cost.low).and(" to ", Unit::Ns.of(cost.high)))
        });
        if !self.race.programs.is_empty() {
            let title = format!("program in {}", self.args.code.facts().name);
            sheet.add(col(title).short("program"), |one| {
                let own = self.program_cost(one)?;
                ns(if rate.is_some() { own.cpu_ns } else { own.time_ns })
            });
        }
        // In the rounds that both have, as the race compares them.
        let demand = self.args.question.demand();
        sheet.add(col("× taken").drop(1), |one| {
            let taken = self.figures.cases[self.choice.taken?];
            let cost = |sample: &Sample| ranking_cost_ns(taken, sample, &demand);
            let ratios = paired_ratios(&self.case(one).samples, &taken.samples, cost);
            Some(Unit::Times.of(median(&ratios)?))
        });
        let mut table = sheet.table();
        for (row, one) in table.rows.iter_mut().zip(rows) {
            self.mark(one, row);
        }
        table
    }

    /// Marks the row to take, and adds the reason to an excluded one.
    fn mark(&self, one: &RankedCase, row: &mut Row) {
        if self.choice.taken == Some(one.at) {
            // Its loop may be excluded although its program does what is asked.
            row.tone = Tone::Bold;
            row.reasons.push("taken".to_owned());
        } else if let Some(why) = one.excluded {
            row.reasons.push(self.exclusion(why, self.case(one), one.cost));
        } else if let Some(reached) = self.slow_program(one) {
            row.reasons.push(format!("its program reached only {} a second", numbers::grouped(reached, 0)));
        }
    }

    /// How many messages a second the program of a row reached, if that is less than what is asked.
    fn slow_program(&self, one: &RankedCase) -> Option<f64> {
        let program = self.race.row(&self.case(one).spec).filter(|_| self.race.does_all)?;
        let cost = program.cost.filter(|_| program.excluded == Some(Excluded::TooSlow))?;
        Some(1e9 / cost.elapsed_ns.median)
    }

    fn exclusion(&self, why: Excluded, case: &CaseRecord, cost: Option<MessageCost>) -> String {
        let cpu = numbers::percent(cost.map_or(0.0, |cost| cost.cpus.high));
        let why = match why {
            Excluded::NoFigures => return case.error.as_ref().map_or("no figures".to_owned(), reason),
            Excluded::LessData => "its bytes were checked less than those of others".to_owned(),
            Excluded::TornBlocks => "its blocks did not all arrive in one piece".to_owned(),
            Excluded::Spins if self.args.question.cpu_budget.is_some() => {
                format!("its ends spin while they wait, and may take {cpu} of a CPU")
            }
            Excluded::Spins => {
                let pinned = if stats::ever_shared_cpu(case) { ", pinned" } else { "" };
                format!("its ends spin while they wait (--cpu-budget 200 allows it{pinned})")
            }
            Excluded::SpinsOnOneCpu => {
                "its ends spin, and shared one CPU in some trials: it needs two CPUs of its own, pinned"
                    .to_owned()
            }
            Excluded::TooSlow => {
                let reached = cost.map_or(0.0, |cost| 1e9 / cost.elapsed_ns.median);
                format!("it reached only {} a second", numbers::grouped(reached, 0))
            }
            Excluded::TooMuchCpu => format!("it may take {cpu} of a CPU"),
        };
        format!("excluded: {why}")
    }
}

/// "Streams of 200 B, parent-child, 1,000 a second, placed by the scheduler".
pub(super) fn title(question: &Question, figures: &Figures<'_>) -> String {
    let size = numbers::size(question.message.0);
    let what = match question.pattern.workload() {
        Workload::Stream => "Streams",
        Workload::PingPong => "Round trips",
    };
    let place = figures.cases.first().map_or(String::new(), |case| words::whereabouts(case));
    let rate = question.messages_per_second.map(|rate| format!(", {} a second", numbers::grouped(rate, 0)));
    format!("{what} of {size}, {}{}, {place}", question.between, rate.unwrap_or_default())
}

/// Why a case has no figures, and what to try.
fn reason(error: &CaseError) -> String {
    match (&error.remedy, error.kind) {
        (_, ErrorKind::Time) => format!("{}: a larger --time, or a smaller --message", error.message),
        (Some(remedy), _) => format!("{}: {}", error.message, in_own_options(remedy)),
        (None, _) => error.message.clone(),
    }
}

/// A remedy of `bench` with the options of `recommend`.
pub(super) fn in_own_options(remedy: &str) -> String {
    let options = [
        ("--block", "--message"),
        ("--tasks processes", "--between parent-child"),
        ("a smaller --bytes", "a smaller --time"),
        (", or --data write", ""),
    ];
    options.iter().fold(remedy.to_owned(), |text, (bench, own)| text.replace(bench, own))
}
