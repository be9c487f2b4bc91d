//! The answer: which mechanism to take and what it costs, a table of all candidates, and the command that repeats the measurement.

use std::time::Duration;

use model::{CaseError, CaseRecord, ErrorKind, ProgramFigures, Recommendation, Sample, Spec, StopReason};
use programs::race::{ProgramCost, ProgramRace};
use programs::{Pattern, Program, Question, Share};
use report::document::{Block, Document};
use report::sheet::{Sheet, col};
use report::table::{Fit, Row, Table, Tone};
use report::{RaceWords, Unit, numbers, words};
use stats::choice::ranking_cost_ns;
use stats::estimate::median;
use stats::paired::paired_ratios;
use stats::{Choice, Excluded, MessageCost, RankedCase};

use super::RecommendArgs;
use super::candidates::Candidate;
use super::figures::Figures;

/// A question and everything that its answer depends on.
pub(super) struct Answer<'a> {
    pub(super) args: &'a RecommendArgs,
    pub(super) question: &'a Question,
    pub(super) candidates: &'a [Candidate],
    pub(super) figures: &'a Figures<'a>,
    /// The ranking of the loops of `bench`, whose rows are places in the cases of `figures`; `taken` is the mechanism of the best program, if programs
    /// were run.
    pub(super) choice: &'a Choice,
    /// The row that the loops of `bench` alone would take.
    pub(super) taken_by_loops: Option<usize>,
    /// The programs that were run; the rows of its own ranking are places in its own cases.
    pub(super) race: &'a ProgramRace,
    /// The signal by which the user stopped the measurement.
    pub(super) stopped_by: Option<StopReason>,
    /// From the question to the answer; `None` if nothing was measured.
    pub(super) took: Option<Duration>,
}

impl Answer<'_> {
    /// Everything except the program; `proof` is the command that repeats the measurement, `build_and_time` those of two programs.
    pub(super) fn document(&self, proof: &str, build_and_time: Option<String>) -> Document {
        let mut blocks = Vec::new();
        if let Some(signal) = self.stopped_by {
            let stopped = words::stopped_early(Some(signal));
            blocks.push(Block::Notice(words::only_finished(stopped, "figures")));
        }
        blocks.push(Block::Title(title(self.question, self.figures)));
        blocks.extend(self.sentences().into_iter().map(Block::Line));
        blocks.push(Block::Table(self.table()));
        blocks.extend(self.promises().map(Block::Table));
        blocks.extend(self.notes().into_iter().map(Block::Note));
        let proves = match (&self.args.code_to, self.choice.taken) {
            (Some(folder), _) if build_and_time.is_some() => {
                let folder = folder.display();
                format!("In {folder} the first command builds and times the two programs; the second measures the loops that chose what to run:")
            }
            _ if build_and_time.is_some() => {
                "The first command builds and times the two programs; the second measures the loops that chose what to run:".to_owned()
            }
            (_, Some(_)) => "The command that proves it:".to_owned(),
            (_, None) => "The command that measures it again:".to_owned(),
        };
        // A command is never wrapped, so that it can be pasted.
        blocks.push(Block::Paragraph(proves));
        blocks.extend(build_and_time.into_iter().chain([proof.to_owned()]).map(Block::Command));
        Document::from_blocks(blocks)
    }

    /// The answer for a record.
    pub(super) fn recommendation(&self, programs: &[Program]) -> Recommendation {
        let taken = self.choice.taken.and_then(|at| self.choice.case(at));
        Recommendation {
            title: title(self.question, self.figures),
            taken: taken.map(|taken| self.case(taken).spec.clone()),
            sentences: self.sentences().into_iter().chain(self.notes()).collect(),
            language: self.question.code.to_string(),
            took_s: self.took.map(|took| took.as_secs_f64()),
            program_ns: taken.and_then(|taken| self.program_cost(taken)).map(|cost| cost.time_ns),
            programs: self.race.programs.clone(),
            program: programs.first().map(Program::text),
            receiver: programs.get(1).map(Program::text),
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

    /// The case of a row of `choice`.
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

    /// "Take `pipe`: a message takes 900 ns, and 900 ns of CPU at both ends." The figures are the program's if it was run.
    fn headline(&self, taken: &RankedCase, cost: &MessageCost) -> String {
        let own = self.program_cost(taken);
        let ProgramCost { time_ns, cpu_ns } =
            own.unwrap_or(ProgramCost { time_ns: cost.time_ns.median, cpu_ns: cost.cpu_ns.median });
        let (name, unit) = (self.name(taken), self.question.pattern.unit());
        if self.question.is_of_pair() && own.is_none() {
            return format!(
                "Take {name}: hosepipe's own loop of it, with one sender and one receiver, takes {} for a {unit}; the pair of programs was not measured.",
                numbers::time(time_ns)
            );
        }
        let ends = if self.question.has_several_ends() { "of all ends" } else { "at both ends" };
        let cpu = format!("{} of CPU {ends}", numbers::time(cpu_ns));
        if let Some(rate) = self.question.demand.messages_per_s {
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
        match self.question.demand.messages_per_s {
            Some(_) => format!("{} of CPU", numbers::time(cpu_ns)),
            None => numbers::time(time_ns),
        }
    }

    /// The time of the program and of hosepipe's own loop, or why the program was not timed.
    fn program(&self, taken: &RankedCase, cost: &MessageCost) -> String {
        let noun = if self.question.is_of_pair() { "pair of programs" } else { "program" };
        let program = match &self.args.code_to {
            Some(file) => format!("The {noun} in {}", file.display()),
            None => format!("The {noun} below"),
        };
        let Some(figures) = self.program_of(taken) else {
            return match self.question.is_of_pair() {
                true => format!("{program} was not run: the first command below times it."),
                false => format!("{program} was not run: give it a COUNT to time it."),
            };
        };
        match (self.program_cost(taken), &figures.failure) {
            (Some(own), _) => format!(
                "{program}: {} (median of {} of {} each); hosepipe's own loop: {}.",
                self.compared_text(own.time_ns, own.cpu_ns),
                words::count(figures.time_ns.len(), "run"),
                words::grouped_count(figures.messages, self.question.pattern.unit()),
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
        let race = &self.race.choice;
        let program = self.race.row(&self.case(taken).spec).and_then(|own| Some((own, own.cost?)));
        let has_others =
            |own: &RankedCase| race.ranked.iter().any(|one| one.at != own.at && one.excluded.is_none());
        match program.filter(|(own, _)| has_others(own)) {
            Some((own, own_cost)) => {
                let cases: Vec<&CaseRecord> = self.race.cases.iter().collect();
                self.compared(own.at, &own_cost, race, &cases, ["program", "run"])
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
        let demand = &self.question.demand;
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

    /// What decides a row: its program, or, where no program has figures, its loop of `bench`.
    fn decides<'s>(&'s self, one: &'s RankedCase) -> Option<(&'s RankedCase, &'s CaseRecord)> {
        if self.race.cases.is_empty() {
            return Some((one, self.case(one)));
        }
        let own = self.race.row(&self.case(one).spec)?;
        Some((own, &self.race.cases[own.at]))
    }

    fn table(&self) -> Table {
        let (demand, rate) = (self.question.demand, self.question.demand.messages_per_s);
        let has_programs = !self.race.cases.is_empty();
        let mut rows: Vec<&RankedCase> = self.choice.ranked.iter().collect();
        // The best program first, then what only has figures of a loop.
        let place = |spec: &Spec| {
            let programs = &self.race.choice.ranked;
            programs.iter().position(|one| self.race.cases[one.at].spec == *spec).unwrap_or(usize::MAX)
        };
        rows.sort_by_key(|one| place(&self.case(one).spec));
        let mut sheet = Sheet::new(&rows);
        let ns = |ns: f64| Some(Unit::Ns.of(ns));
        let unit = self.question.pattern.unit();
        let cost = |one: &RankedCase| self.decides(one)?.0.cost;
        let has_few = |one: &&RankedCase| cost(one).is_some_and(|cost| cost.has_few_trials());
        let interval = if rows.iter().any(has_few) { "range" } else { "95 %" };
        sheet.add(col("mechanism").fit(Fit::Spec), |one| Some(self.case(one).spec.to_string().into()));
        let is_stream = self.question.pattern == Pattern::Stream;
        match rate {
            // The time between messages is given.
            Some(rate) if is_stream => sheet.add(col("reached").drop(4), |one| {
                Some(Unit::PerS.of((1e9 / cost(one)?.elapsed_ns.median).min(rate)))
            }),
            _ => {
                // Its time may be known where its CPU time is not.
                let alone = |one: &RankedCase| median(&self.program_of(one)?.time_ns);
                let time_ns =
                    move |one: &RankedCase| cost(one).map(|cost| cost.time_ns.median).or_else(|| alone(one));
                sheet.add(col(format!("time per {unit}")).short("time"), move |one| ns(time_ns(one)?))
            }
        }
        sheet.add(col(format!("CPU per {unit}")).short("CPU"), |one| ns(cost(one)?.cpu_ns.median));
        sheet.add(col("of a CPU").drop(3), |one| {
            let reached = one.excluded != Some(Excluded::TooSlow);
            reached.then(|| Some(Unit::Share.of(cost(one)?.cpus.median)))?
        });
        // At a rate the CPU time is the cost.
        if rate.is_none() {
            sheet.add(col("time + CPU").short("cost").drop(4), |one| ns(cost(one)?.ranking_ns.median));
        }
        // Not without the figure that it is of.
        sheet.add(col(interval).drop(5), |one| {
            let cost = cost(one)?.ranking_ns;
            Some(Unit::Ns.of(cost.low).and(" to ", Unit::Ns.of(cost.high)))
        });
        // In the rounds that both have, as the race compares them.
        let taken = self.choice.taken.and_then(|at| self.choice.case(at)).and_then(|one| self.decides(one));
        sheet.add(col("× taken").drop(1), |one| {
            let ((_, taken), (_, case)) = (taken?, self.decides(one)?);
            let cost = |sample: &Sample| ranking_cost_ns(taken, sample, &demand);
            Some(Unit::Times.of(median(&paired_ratios(&case.samples, &taken.samples, cost))?))
        });
        if has_programs {
            sheet.add(col("loop of bench").short("loop").drop(6), |one| {
                let own = one.cost?;
                ns(if rate.is_some() { own.cpu_ns.median } else { own.time_ns.median })
            });
        }
        sheet.add(col("why"), |one| Some(self.why(one)?.into()));
        let mut table = sheet.table();
        for (row, one) in table.rows.iter_mut().zip(&rows) {
            self.mark(one, row);
        }
        table
    }

    /// Why a row is taken or not, in a few words; of an excluded one the reason is below it.
    fn why(&self, one: &RankedCase) -> Option<String> {
        if self.choice.taken == Some(one.at) {
            // Its loop may be excluded although its program does what is asked.
            return Some("taken".to_owned());
        }
        if one.excluded.is_some() {
            return None;
        }
        if let Some(reached) = self.slow_program(one) {
            return Some(format!("reached {} a second", numbers::grouped(reached, 0)));
        }
        let Some((own, _)) = self.decides(one) else {
            let why = match self.program_of(one) {
                None => "not run: slower as a loop",
                Some(program) if program.failure.is_some() => "not run: see below",
                Some(_) => "its CPU time is not known",
            };
            return Some(why.to_owned());
        };
        let choice = if self.race.cases.is_empty() { self.choice } else { &self.race.choice };
        Some(self.defeat(choice, own).to_owned())
    }

    /// Marks the row to take, and adds the reason to an excluded one.
    fn mark(&self, one: &RankedCase, row: &mut Row) {
        if self.choice.taken == Some(one.at) {
            row.tone = Tone::Bold;
        } else if let Some(why) = one.excluded {
            row.reasons.push(self.exclusion(why, self.case(one), one.cost));
        }
    }

    /// Why a row lost that does what is asked.
    fn defeat(&self, choice: &Choice, own: &RankedCase) -> &'static str {
        if own.may_be_taken {
            "as good, not as simple"
        } else if let Some(open) = choice.standing.first.iter().find(|one| one.at == own.at) {
            let has_few = own.cost.is_some_and(|cost| cost.has_few_trials());
            match (open.is_dearer_in_each(), has_few) {
                (true, _) => "dearer in each run",
                (_, true) => "too few runs",
                _ => "not told apart",
            }
        } else if self.question.demand.messages_per_s.is_some() {
            "more CPU"
        } else {
            "slower"
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
            Excluded::Spins if self.question.demand.cpus_max.is_some() => {
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

/// "Streams of 200 B, parent-child, 1,000 a second, placed by the scheduler, must: boundaries"; of two programs the languages and the number of
/// ends, too.
pub(super) fn title(question: &Question, figures: &Figures<'_>) -> String {
    let size = numbers::size(question.message_bytes);
    let what = match question.pattern {
        Pattern::Stream => "Streams",
        Pattern::RequestReply => "Round trips",
    };
    let place = figures.cases.first().map_or(String::new(), |case| words::whereabouts(case));
    let rate = question.demand.messages_per_s.map(|rate| format!(", {} a second", numbers::grouped(rate, 0)));
    let budget =
        question.demand.cpus_max.map(|cpus| format!(", at most {} of a CPU", numbers::percent(cpus)));
    let ends = if question.is_of_pair() { ends(question) } else { question.between().to_string() };
    let must: Vec<&str> = question.must.iter().map(|must| must.word()).collect();
    let must = if must.is_empty() { String::new() } else { format!(", must: {}", must.join(", ")) };
    let [rate, budget] = [rate, budget].map(Option::unwrap_or_default);
    format!("{what} of {size}, {ends}{rate}{budget}, {place}{must}")
}

/// "from 2 senders in Rust to 4 receivers in Python that compete".
fn ends(question: &Question) -> String {
    let [sends, receives] = question.code.both().map(|language| language.facts().name);
    let [first, second] = match question.pattern {
        Pattern::Stream => ["sender", "receiver"],
        Pattern::RequestReply => ["client", "server"],
    };
    let ends = |number: u32, noun: &str| match number {
        1 => format!("a {noun}"),
        _ => format!("{number} {noun}s"),
    };
    let share = match question.share {
        Some(Share::Compete) => " that compete",
        Some(Share::Broadcast) => " that each get all",
        None => "",
    };
    format!(
        "from {} in {sends} to {} in {receives}{share}",
        ends(question.senders, first),
        ends(question.receivers, second),
    )
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
