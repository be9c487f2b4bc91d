//! What disturbed a run: other programs, other virtual machines on the same host, and CPUs that became slower.

use std::collections::HashMap;

use model::OtherLoad;

use crate::Roots;
use crate::frequency::busy_frequency;
use crate::roots::stat_numbers;

/// Largest number of programs that are named.
const PROGRAMS_MAX: usize = 2;

/// CPU time of the whole machine and of this process, in ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CpuTicks {
    /// Used by all programs: user, nice and system time (proc_stat(5)).
    busy: u64,
    steal: u64,
    total: u64,
    /// Used by this process and its reaped children.
    own: u64,
}

/// The state at the beginning of a run.
#[derive(Debug)]
pub struct LoadWatch {
    roots: Roots,
    began: Option<CpuTicks>,
    programs: HashMap<u32, (String, u64)>,
    frequency: Option<f64>,
}

impl LoadWatch {
    /// Reads the state at the beginning of a run.
    pub fn start() -> Self {
        Self::start_in(Roots::default())
    }

    fn start_in(roots: Roots) -> Self {
        let frequency = busy_frequency(&roots);
        Self { began: CpuTicks::read(&roots), programs: programs(&roots), frequency, roots }
    }

    /// What else has used the CPUs since the start; `None` if /proc does not report it.
    pub fn finish(self) -> Option<OtherLoad> {
        let roots = &self.roots;
        let (began, now) = (self.began?, CpuTicks::read(roots)?);
        let since = |ticks: fn(&CpuTicks) -> u64| ticks(&now).saturating_sub(ticks(&began));
        let (total, busy, own) = (since(|cpu| cpu.total), since(|cpu| cpu.busy), since(|cpu| cpu.own));
        let share = |ticks: u64| if total == 0 { 0.0 } else { ticks as f64 / total as f64 };
        let mut largest: Vec<(u64, String)> = programs(roots)
            .into_iter()
            .map(|(pid, (name, ticks))| {
                let before = self.programs.get(&pid).filter(|(known, _)| *known == name);
                (ticks.saturating_sub(before.map_or(0, |(_, ticks)| *ticks)), format!("{name} ({pid})"))
            })
            .filter(|(ticks, _)| *ticks > 0)
            .collect();
        model::sort_by(&mut largest, |one, other| other.cmp(one));
        let programs = largest.into_iter().take(PROGRAMS_MAX).map(|(_, name)| name).collect();
        Some(OtherLoad {
            programs_share: share(busy.saturating_sub(own)),
            stolen_share: share(since(|cpu| cpu.steal)),
            programs,
            frequency_fell: self
                .frequency
                .filter(|began| *began > 0.0)
                .zip(busy_frequency(roots))
                .map(|(began, now)| (1.0 - now / began).max(0.0)),
        })
    }
}

impl CpuTicks {
    fn read(roots: &Roots) -> Option<Self> {
        let ticks = stat_numbers(&roots.proc_text("stat")?, "cpu");
        let [user, nice, system, .., steal] = ticks.get(..8)? else { return None };
        let own = process_ticks(&roots.proc_text("self/stat")?)?;
        Some(Self {
            busy: user + nice + system,
            steal: *steal,
            total: ticks[..8].iter().sum(),
            own: own.1 + own.2,
        })
    }
}

/// The name of a process, its ticks, and the ticks of its reaped children (proc_pid_stat(5), fields 14 to 17).
fn process_ticks(stat: &str) -> Option<(String, u64, u64)> {
    let (begin, rest) = stat.rsplit_once(')')?;
    let name = begin.split_once('(')?.1.to_owned();
    let fields: Vec<u64> =
        rest.split_whitespace().skip(11).take(4).map_while(|word| word.parse().ok()).collect();
    let [user, system, child_user, child_system] = fields[..] else { return None };
    Some((name, user + system, child_user + child_system))
}

/// Name and ticks of every visible process, except this one and its children, by PID.
fn programs(roots: &Roots) -> HashMap<u32, (String, u64)> {
    let own = std::process::id();
    let found = roots.proc_pids().into_iter().filter_map(|pid| {
        let stat = roots.proc_text(&format!("{pid}/stat"))?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()?;
        let (name, ticks, _) = process_ticks(&stat)?;
        (pid != own && parent != own).then_some((pid, (name, ticks)))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    fn process(fake: &Fake, folder: &str, name: &str, ticks: [u64; 4]) {
        let [user, system, child_user, child_system] = ticks;
        let stat =
            format!("9 ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} {system} {child_user} {child_system} 20 0");
        fake.proc(&format!("{folder}/stat"), &stat);
    }

    #[test]
    fn own_and_children_s_time_is_not_other_load() {
        let fake = Fake::new();
        fake.proc("stat", "cpu  100 0 100 800 0 50 50 10 0 0");
        process(&fake, "self", "hosepipe", [10, 10, 0, 0]);
        process(&fake, "7001", "make) x (y", [5, 5, 900, 900]);
        process(&fake, "7002", "idle", [3, 3, 0, 0]);
        let watch = LoadWatch::start_in(fake.roots());
        // 1,000 ticks later: 600 of programs, of which ours are 200, and 50 stolen.
        fake.proc("stat", "cpu  400 0 400 1150 0 50 50 60 0 0");
        process(&fake, "self", "hosepipe", [60, 60, 50, 50]);
        process(&fake, "7001", "make) x (y", [205, 105, 950, 950]);
        process(&fake, "7003", "new", [50, 50, 0, 0]);
        let found = watch.finish().expect("a load");
        assert_eq!((found.programs_share, found.stolen_share), (0.4, 0.05));
        assert_eq!(found.programs, ["make) x (y (7001)", "new (7003)"]);
    }

    #[test]
    fn the_share_by_which_a_frequency_falls_is_recorded() {
        let fake = Fake::new();
        fake.proc("stat", "cpu  100 0 100 800 0 50 50 10 0 0");
        fake.proc("self/stat", &format!("9 (hosepipe) S{} 0 0", " 1".repeat(35)));
        let frequency = |khz: &str| fake.sys("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", khz);
        fake.sys("devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4000000");
        for (before, after, fell) in [("4000000", "3000000", 0.25), ("3000000", "4000000", 0.0)] {
            frequency(before);
            let watch = LoadWatch::start_in(fake.roots());
            frequency(after);
            assert_eq!(watch.finish().and_then(|load| load.frequency_fell), Some(fell));
        }
    }

    #[test]
    fn without_proc_nothing_is_known() {
        let nothing = Fake::new();
        assert_eq!(LoadWatch::start_in(nothing.roots()).finish(), None);
        assert!(LoadWatch::start().finish().is_some(), "every Linux has /proc");
    }
}
