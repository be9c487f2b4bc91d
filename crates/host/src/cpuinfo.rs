//! The CPU's model name from /proc/cpuinfo, whose format differs between architectures.

use crate::roots::field;

/// Keys of the CPU's name, best first: x86 and s390, MIPS, POWER, RISC-V, boards of 32-bit Arm.
const NAMES: [&str; 6] = ["model name", "cpu model", "cpu", "uarch", "Model Name", "Hardware"];

/// Arm's own and others' implementer codes (MIDR_EL1; the list of util-linux' lscpu-arm.c).
const IMPLEMENTERS: [(&str, &str); 10] = [
    ("0x41", "Arm"),
    ("0x42", "Broadcom"),
    ("0x43", "Cavium"),
    ("0x46", "Fujitsu"),
    ("0x48", "HiSilicon"),
    ("0x4e", "NVIDIA"),
    ("0x51", "Qualcomm"),
    ("0x61", "Apple"),
    ("0x6d", "Microsoft"),
    ("0xc0", "Ampere"),
];

/// Part numbers of Arm's own cores in current servers and boards.
const PARTS: [(&str, &str); 12] = [
    ("0xd03", "Cortex-A53"),
    ("0xd05", "Cortex-A55"),
    ("0xd08", "Cortex-A72"),
    ("0xd0b", "Cortex-A76"),
    ("0xd0c", "Neoverse-N1"),
    ("0xd40", "Neoverse-V1"),
    ("0xd41", "Cortex-A78"),
    ("0xd44", "Cortex-X1"),
    ("0xd49", "Neoverse-N2"),
    ("0xd4f", "Neoverse-V2"),
    ("0xd84", "Neoverse-V3"),
    ("0xd8e", "Neoverse-N3"),
];

/// The model name of the first CPU in the text of /proc/cpuinfo, if there is one.
pub(crate) fn model_name(cpuinfo: &str) -> Option<String> {
    let named = NAMES.iter().find_map(|key| field(cpuinfo, key)).filter(|name| !name.is_empty());
    named.map(str::to_owned).or_else(|| arm_name(cpuinfo))
}

/// aarch64 has codes, but no name.
fn arm_name(cpuinfo: &str) -> Option<String> {
    let implementer = field(cpuinfo, "CPU implementer")?;
    let part = field(cpuinfo, "CPU part").unwrap_or("?");
    let known =
        |table: &[(&str, &'static str)], code| table.iter().find(|(c, _)| *c == code).map(|(_, name)| *name);
    Some(match (known(&IMPLEMENTERS, implementer), known(&PARTS, part)) {
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
