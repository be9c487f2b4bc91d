//! What is to be measured, and the cases that it makes: one for each combination of its values that a mechanism has.

use std::time::Duration;

use mechanism::{Mechanism, Options};
use model::{
    Alignment, Amount, Case, Check, DataLevel, Direction, Load, PayloadKind, Placement, Role, Spec, Tasks,
    Wait, Workload,
};

/// Bytes in a block of a stream by default.
const STREAM_BLOCK_BYTES: u64 = 64 << 10;

/// Bytes in a message of a round trip by default: few, to measure how fast the other end answers.
const PINGPONG_BLOCK_BYTES: u64 = 1;

/// Most copying tasks between the two ends.
pub const RELAYS_MAX: u32 = 64;
/// Most pairs, senders or receivers.
pub const ENDS_MAX: u32 = 256;
/// The highest rate: the time between two messages is then 100 ns.
pub const RATE_MAX: u32 = 10_000_000;

/// What is to be measured. A list without values, or `None`, stands for the default.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The mechanisms.
    pub specs: AskedSpecs,
    /// Bytes handed over in one call. Default: 64 KiB, for round trips 1.
    pub blocks: Vec<u64>,
    /// Default: both, as far as a mechanism has them and the other values allow them.
    pub workload: Option<Workload>,
    /// Default: processes.
    pub tasks: Option<Tasks>,
    /// Default: the mechanism's own way.
    pub wait: Option<Wait>,
    /// Default: the scheduler's choice.
    pub placements: Vec<Placement>,
    /// Default: the highest level that a mechanism has.
    pub data: Vec<DataLevel>,
    /// How the receiver checks. Default: a hash.
    pub check: Option<Check>,
    /// Default: random bytes.
    pub payload: Option<PayloadKind>,
    /// Number of copying tasks between the two ends.
    pub relays: u32,
    /// The offsets of the ends' buffers. Default: 0.
    pub offsets: Vec<Alignment>,
    /// Numbers of independent pairs of ends.
    pub pairs: Vec<u32>,
    /// Numbers of senders to one receiver.
    pub senders: Vec<u32>,
    /// Numbers of receivers from one sender.
    pub receivers: Vec<u32>,
    /// Messages in a second.
    pub rates_per_s: Vec<u32>,
    /// Whether the other end is on another host.
    pub is_between_hosts: bool,
    /// Bytes of a trial.
    pub bytes: Option<u64>,
    /// Blocks of a trial.
    pub count: Option<u64>,
    /// Trials of each case.
    pub trials: Option<u32>,
    /// The longest time of the run.
    pub time: Option<Duration>,
    /// The half width of the interval at which a case has enough trials, in percent.
    pub precision: Option<f64>,
    /// Seed of the order of trials and of random payloads.
    pub seed: u64,
}

/// The mechanisms that are asked for.
#[derive(Debug, Clone, Default)]
pub enum AskedSpecs {
    /// The default set.
    #[default]
    Usual,
    /// Every mechanism.
    All,
    /// These.
    Named(Vec<Spec>),
}

impl Ask {
    /// Checks values that were not typed as options of `bench`, which have the same limits.
    ///
    /// # Errors
    /// Names the value.
    pub fn check(&self) -> Result<(), String> {
        let relays = if self.relays > 0 { vec![self.relays] } else { Vec::new() };
        let lists = [
            ("relays", &relays, RELAYS_MAX),
            ("pairs", &self.pairs, ENDS_MAX),
            ("senders", &self.senders, ENDS_MAX),
            ("receivers", &self.receivers, ENDS_MAX),
            ("messages in a second", &self.rates_per_s, RATE_MAX),
        ];
        for (what, values, most) in lists {
            if let Some(value) = values.iter().find(|value| !(1..=most).contains(*value)) {
                return Err(format!("{value} {what}: 1 to {most} can be measured"));
            }
        }
        if self.blocks.contains(&0) {
            return Err("a block of 0 bytes".to_owned());
        }
        let [has_pairs, has_senders, has_receivers, has_rates] =
            [&self.pairs, &self.senders, &self.receivers, &self.rates_per_s].map(|values| !values.is_empty());
        let has_relays = self.relays > 0;
        let shares_an_end = has_senders || has_receivers;
        let is_contradictory = shares_an_end && (has_pairs || has_rates || has_relays)
            || has_senders && has_receivers
            || has_rates && has_relays;
        if is_contradictory {
            return Err(
                "relays, pairs, senders, receivers or a rate that cannot be measured together".to_owned()
            );
        }
        Ok(())
    }

    /// The cases.
    pub fn cases(&self) -> Vec<Case> {
        let specs = match &self.specs {
            AskedSpecs::Usual => mechanism::default_specs(),
            AskedSpecs::All => mechanism::all_specs(),
            AskedSpecs::Named(specs) => specs.clone(),
        };
        specs.iter().flat_map(|spec| self.cases_of(spec)).collect()
    }

    fn cases_of(&self, spec: &Spec) -> Vec<Case> {
        let Ok((mechanism, options)) = mechanism::resolve(spec) else { return Vec::new() };
        let levels = self.levels(mechanism, &options);
        let any = [Placement::Any];
        let all = if self.placements.is_empty() { &any[..] } else { &self.placements };
        // A mechanism of one task has the same figures at every placement.
        let placements = if mechanism.tasks == [Tasks::Single] { &all[..1] } else { all };
        let mut cases = Vec::new();
        for placement in placements {
            let workloads = [Workload::Stream, Workload::PingPong].into_iter();
            for workload in workloads.filter(|workload| self.is_wanted(mechanism, *workload)) {
                for block_bytes in self.blocks(workload) {
                    let case = |data: &DataLevel| Case {
                        spec: spec.clone(),
                        role: mechanism.role,
                        workload,
                        tasks: self.tasks(mechanism),
                        placement: *placement,
                        wait: self.wait(mechanism, &options),
                        data: *data,
                        check: self.check.unwrap_or(Check::Xxh3),
                        payload: self.payload.clone().unwrap_or(PayloadKind::Random),
                        block_bytes,
                        align: Alignment::default(),
                        relays: if mechanism.role == Role::Ranked { self.relays } else { 0 },
                        direction: None,
                        load: Load::default(),
                        amount: self.amount(workload),
                    };
                    let ways = levels.iter().map(case).flat_map(|case| self.ways(case));
                    cases.extend(ways.flat_map(|case| self.loads(&case)).flat_map(|case| self.aligned(case)));
                }
            }
        }
        cases
    }

    /// Whether a workload is measured: if it was asked for and goes with the other values, and if the mechanism runs it.
    fn is_wanted(&self, mechanism: &Mechanism, workload: Workload) -> bool {
        let is_one_way = self.relays > 0 || !self.senders.is_empty() || !self.receivers.is_empty();
        let is_asked = match self.workload {
            Some(asked) => asked == workload,
            // A chain, and many senders or receivers, have no way back; a rate alone is for round trips.
            None if workload == Workload::PingPong => !is_one_way,
            None => self.rates_per_s.is_empty(),
        };
        // A mechanism that was named gets a row, which says that it does not run the workload that was named.
        let both_are_named = self.workload.is_some() && matches!(self.specs, AskedSpecs::Named(_));
        is_asked && (mechanism.workloads.contains(&workload) || both_are_named)
    }

    fn blocks(&self, workload: Workload) -> Vec<u64> {
        match workload {
            _ if !self.blocks.is_empty() => self.blocks.clone(),
            Workload::Stream => vec![STREAM_BLOCK_BYTES],
            Workload::PingPong => vec![PINGPONG_BLOCK_BYTES],
        }
    }

    /// What is asked, by default processes; what a mechanism, floor or ceiling does not have only if it is asked of a mechanism.
    fn tasks(&self, mechanism: &Mechanism) -> Tasks {
        let asked = self.tasks.unwrap_or(Tasks::Processes);
        let is_required = mechanism.role == Role::Ranked && self.tasks.is_some();
        if is_required || mechanism.tasks.contains(&asked) {
            return asked;
        }
        mechanism.tasks.first().copied().unwrap_or(asked)
    }

    /// The option `wait` of the spec, else what is asked for, else the mechanism's default.
    fn wait(&self, mechanism: &Mechanism, options: &Options) -> Wait {
        let own = mechanism.wait(options);
        if options.word("wait").is_some() || mechanism.role != Role::Ranked {
            own
        } else {
            self.wait.unwrap_or(own)
        }
    }

    fn levels(&self, mechanism: &Mechanism, options: &Options) -> Vec<DataLevel> {
        let mut asked: Vec<Option<DataLevel>> = self.data.iter().copied().map(Some).collect();
        asked.sort_unstable();
        if asked.is_empty() {
            asked.push(None);
        }
        let mut levels: Vec<DataLevel> = asked.iter().map(|level| data(*level, mechanism, options)).collect();
        // The same level may be typed twice, or be the best that the mechanism has for several.
        levels.dedup();
        levels
    }

    /// The amount of a trial. Bytes are for streams, unless round trips alone are asked for: the gigabytes of a stream would be days of
    /// round trips of a byte.
    fn amount(&self, workload: Workload) -> Amount {
        let has_bytes = workload == Workload::Stream || self.workload == Some(Workload::PingPong);
        match (self.bytes, self.count) {
            (Some(bytes), _) if has_bytes => Amount::Bytes(bytes),
            (_, Some(blocks)) => Amount::Blocks(blocks),
            _ => Amount::Adaptive,
        }
    }

    /// Between two hosts a stream in each direction, or round trips that begin on this host; else the case itself.
    fn ways(&self, case: Case) -> Vec<Case> {
        let ways: &[Direction] = match case.workload {
            _ if !self.is_between_hosts => return vec![case],
            Workload::Stream => Direction::ALL,
            Workload::PingPong => &[Direction::Peer],
        };
        let way = |way: &Direction| Case { direction: Some(*way), tasks: Tasks::Processes, ..case.clone() };
        ways.iter().map(way).collect()
    }

    /// The case once for each load; a floor or ceiling only once, as it is.
    fn loads(&self, case: &Case) -> Vec<Case> {
        if case.role != Role::Ranked {
            return vec![case.clone()];
        }
        let choices = |asked: &[u32]| -> Vec<Option<u32>> {
            if asked.is_empty() { vec![None] } else { asked.iter().copied().map(Some).collect() }
        };
        let mut cases = Vec::new();
        for pairs in choices(&self.pairs) {
            for senders in choices(&self.senders) {
                for receivers in choices(&self.receivers) {
                    for rate_per_s in choices(&self.rates_per_s) {
                        let load = Load { pairs, senders, receivers, rate_per_s };
                        let case = Case { load, ..case.clone() };
                        // The same load may be typed twice.
                        if !cases.contains(&case) {
                            cases.push(case);
                        }
                    }
                }
            }
        }
        cases
    }

    /// The case once for each offset of its buffers.
    fn aligned(&self, case: Case) -> Vec<Case> {
        let places = if self.offsets.is_empty() { &[case.align][..] } else { &self.offsets };
        places.iter().map(|align| Case { align: *align, ..case.clone() }).collect()
    }
}

/// The level that is measured. By default, and for a floor or ceiling, the highest level up to the asked one that the mechanism has: tables
/// separate the levels.
fn data(level: Option<DataLevel>, mechanism: &Mechanism, options: &Options) -> DataLevel {
    let asked = match (mechanism.role, level) {
        // The ceiling is copying without a check, unless a level is asked for.
        (Role::Ceiling, None) => DataLevel::None,
        (_, level) => level.unwrap_or(DataLevel::Verify),
    };
    if mechanism.role == Role::Ranked && level.is_some() {
        return asked;
    }
    let possible = mechanism.data(options).iter().copied().filter(|level| *level <= asked);
    possible.max().unwrap_or(DataLevel::None)
}

/// The floors and ceilings of a workload, or of all, for each block size, if they are not among the cases already.
pub fn references(workload: Option<Workload>, cases: &[Case]) -> Vec<Case> {
    let mut references: Vec<Case> = Vec::new();
    for mechanism in mechanism::all() {
        let is_reference = matches!(mechanism.role, Role::Floor | Role::Ceiling);
        if !is_reference || cases.iter().any(|case| case.spec.mechanism == mechanism.name) {
            continue;
        }
        let tasks = mechanism.tasks.first().copied().unwrap_or(Tasks::Single);
        // A single task has the same figures at every placement.
        let alone = tasks == Tasks::Single;
        for measured in cases.iter().filter(|case| case.role == Role::Ranked) {
            let reference = Case {
                spec: Spec::plain(mechanism.name),
                role: mechanism.role,
                tasks,
                placement: if alone { cases[0].placement } else { measured.placement },
                wait: mechanism.waits.first().copied().unwrap_or(Wait::Block),
                data: DataLevel::None,
                relays: 0,
                align: Alignment::default(),
                load: Load::default(),
                amount: Amount::Adaptive,
                ..measured.clone()
            };
            // Two tasks that spin on one CPU measure the scheduler's clock tick, and two tasks are not a floor for a case of one task.
            let may_share = matches!(reference.placement, Placement::Same | Placement::Any);
            let is_meaningless =
                mechanism.waits == [Wait::Spin] && may_share || measured.tasks == Tasks::Single && !alone;
            let wanted = workload.is_none_or(|asked| asked == measured.workload) && !is_meaningless;
            if wanted && mechanism.workloads.contains(&measured.workload) && !references.contains(&reference)
            {
                references.push(reference);
            }
        }
    }
    references
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Ask {
        Ask { specs: AskedSpecs::Named(vec![text.parse().expect("a spec")]), ..Ask::default() }
    }

    #[test]
    fn each_combination_is_a_case_once() {
        let blocks = |ask: &Ask| -> Vec<(Workload, u64)> {
            ask.cases().iter().map(|case| (case.workload, case.block_bytes)).collect()
        };
        let both = [(Workload::Stream, 64 << 10), (Workload::PingPong, 1)];
        assert_eq!(blocks(&named("pipe")), both);
        let ask = Ask { blocks: vec![1, 2], workload: Some(Workload::Stream), ..named("pipe") };
        assert_eq!(blocks(&ask), [(Workload::Stream, 1), (Workload::Stream, 2)]);
        let ask = Ask { pairs: vec![1, 2, 1], data: vec![DataLevel::None; 2], ..ask };
        assert_eq!(ask.cases().len(), 4, "what is asked for twice is measured once");
        let ask = Ask { is_between_hosts: true, ..named("tcp") };
        let ways: Vec<Option<Direction>> = ask.cases().iter().map(|case| case.direction).collect();
        assert_eq!(ways, [Some(Direction::Peer), Some(Direction::Here), Some(Direction::Peer)]);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let check = |ask: Ask| ask.check().expect_err("wrong");
        assert_eq!(check(Ask { relays: 65, ..named("pipe") }), "65 relays: 1 to 64 can be measured");
        assert!(check(Ask { senders: vec![1, 0], ..named("pipe") }).starts_with("0 senders"));
        assert!(check(Ask { blocks: vec![0], ..named("pipe") }).contains("0 bytes"));
        let both = Ask { senders: vec![2], rates_per_s: vec![5], ..named("pipe") };
        assert!(check(both).contains("cannot be measured together"));
        let paced = Ask { pairs: vec![2], rates_per_s: vec![5], ..named("pipe") };
        assert_eq!(paced.check(), Ok(()));
        let relayed_pairs = Ask { pairs: vec![2], relays: 1, ..named("pipe") };
        assert!(relayed_pairs.check().is_ok());
    }
}
