//! The CPU's model name from /proc/cpuinfo, whose format differs between architectures.

use crate::names::name_of;
use crate::roots::field;

/// Keys of the CPU's name, the best one first: x86 and s390, MIPS, POWER, RISC-V, LoongArch, 32-bit Arm boards.
const NAMES: [&str; 6] = ["model name", "cpu model", "cpu", "uarch", "Model Name", "Hardware"];

/// The model name of the first CPU in the text of /proc/cpuinfo, if there is one.
pub(crate) fn model_name(cpuinfo: &str) -> Option<String> {
    let named = NAMES.iter().find_map(|key| field(cpuinfo, key)).filter(|name| !name.is_empty());
    named.map(str::to_owned).or_else(|| arm_name(cpuinfo))
}

/// The name found from the CPU's numeric codes: on aarch64 the file has no names.
fn arm_name(cpuinfo: &str) -> Option<String> {
    let implementer = field(cpuinfo, "CPU implementer")?;
    let part = field(cpuinfo, "CPU part").unwrap_or("?");
    Some(match (name_of("arm-implementer", implementer), name_of("arm-core", part)) {
        (Some("Arm"), Some(core)) => format!("Arm {core}"),
        (Some(maker), _) => format!("{maker} part {part}"),
        (None, _) => format!("implementer {implementer} part {part}"),
    })
}

/// Whether the CPU reports a hypervisor; `None` if the architecture has no such flag.
pub(crate) fn hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    field(cpuinfo, "flags").map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86() {
        let text =
            "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu vme hypervisor\n\nprocessor\t: 1\n";
        assert_eq!(model_name(text).as_deref(), Some("AMD EPYC"));
        assert_eq!(hypervisor_flag(text), Some(true));
        assert_eq!(hypervisor_flag("flags : fpu"), Some(false));
    }

    #[test]
    fn arm() {
        let text = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(model_name(text).as_deref(), Some("Arm Neoverse-N1"));
        assert_eq!(hypervisor_flag(text), None);
        let text = "CPU implementer\t: 0x61\nCPU part\t: 0x022\n";
        assert_eq!(model_name(text).as_deref(), Some("Apple part 0x022"));
        let text = "CPU implementer\t: 0x99\n";
        assert_eq!(model_name(text).as_deref(), Some("implementer 0x99 part ?"));
        assert_eq!(model_name(""), None);
    }
}
