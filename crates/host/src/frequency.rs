//! The frequency of a busy CPU, from which a run finds out whether heat or a power limit made the machine slower.

use std::time::{Duration, Instant};

use crate::Roots;
use crate::cpuinfo::hypervisor_flag;
use crate::roots::field;

/// Time for which a CPU is kept busy before each reading: governors need about ten milliseconds to raise the frequency of an idle CPU.
const BUSY: Duration = Duration::from_millis(15);
/// Number of readings; the highest one counts.
const READINGS: usize = 3;
/// Index of the CPU number among the fields of /proc/PID/stat after the program's name (proc_pid_stat(5), field 39).
const PROCESSOR_FIELD: usize = 36;

/// The frequency of the CPU of this process, which is kept busy meanwhile: as a share of the CPU's highest frequency, or else in MHz.
/// `None` if the machine does not report it; a virtual machine reports at most a constant.
pub(crate) fn busy_frequency(roots: &Roots) -> Option<f64> {
    let readings = (0..READINGS).map_while(|_| {
        frequency(roots)?;
        let until = Instant::now() + BUSY;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        frequency(roots)
    });
    readings.max_by(f64::total_cmp)
}

fn frequency(roots: &Roots) -> Option<f64> {
    let stat = roots.proc_text("self/stat")?;
    let cpu: usize = stat.rsplit_once(')')?.1.split_whitespace().nth(PROCESSOR_FIELD)?.parse().ok()?;
    let number = |name: &str| roots.sys_number(&format!("devices/system/cpu/cpu{cpu}/cpufreq/{name}"));
    let scaled = number("scaling_cur_freq").zip(number("cpuinfo_max_freq").filter(|most| *most > 0));
    scaled
        .map(|(now, most)| now as f64 / most as f64)
        .or_else(|| cpuinfo_mhz(&roots.proc_text("cpuinfo")?, cpu))
}

/// "cpu MHz" of an x86 CPU, unless it is virtual.
fn cpuinfo_mhz(cpuinfo: &str, cpu: usize) -> Option<f64> {
    let is_processor = |part: &&str| field(part, "processor") == Some(&cpu.to_string());
    let part = cpuinfo.split("\n\n").find(is_processor)?;
    let is_virtual = hypervisor_flag(part)?;
    field(part, "cpu MHz").filter(|_| !is_virtual)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    fn on_cpu(cpu: usize) -> Fake {
        let fake = Fake::new();
        fake.proc("self/stat", &format!("9 (a) b) S{} {cpu} 0 0", " 1".repeat(PROCESSOR_FIELD - 1)));
        fake
    }

    #[test]
    fn the_frequency_is_that_of_the_own_cpu() {
        let fake = on_cpu(3);
        assert_eq!(busy_frequency(&fake.roots()), None, "the machine does not say");
        fake.sys("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000");
        fake.sys("devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "3000000");
        fake.sys("devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq", "4000000");
        assert_eq!(busy_frequency(&fake.roots()), Some(0.75));
    }

    #[test]
    fn cpuinfo_counts_only_on_a_real_machine() {
        let fake = on_cpu(1);
        let cpuinfo = |flags: &str| {
            let part = |cpu, mhz| format!("processor\t: {cpu}\ncpu MHz\t\t: {mhz}\nflags\t\t: fpu {flags}");
            [part(0, "800.0"), part(1, "2600.5")].join("\n\n")
        };
        fake.proc("cpuinfo", &cpuinfo("lm"));
        assert_eq!(busy_frequency(&fake.roots()), Some(2600.5));
        fake.proc("cpuinfo", &cpuinfo("hypervisor lm"));
        assert_eq!(busy_frequency(&fake.roots()), None);
    }
}
