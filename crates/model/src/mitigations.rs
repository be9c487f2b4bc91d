//! The mitigations of CPU vulnerabilities that make system calls slower.

use crate::Host;

/// Vulnerabilities, and the words by which the kernel reports mitigations that cost time at each entry to the kernel, at each return
/// from it, or at its indirect calls (kernel documentation, admin-guide/hw-vuln). Enhanced IBRS is not here: it is switched on once.
const COSTS: [(&str, &[&str]); 10] = [
    ("meltdown", &["Mitigation: PTI"]),
    ("mds", &["Mitigation: Clear CPU buffers"]),
    ("tsx_async_abort", &["Mitigation: Clear CPU buffers"]),
    ("mmio_stale_data", &["Mitigation: Clear CPU buffers"]),
    ("reg_file_data_sampling", &["Mitigation: Clear"]),
    ("tsa", &["Mitigation: Clear CPU buffers"]),
    (
        "retbleed",
        &[
            "Mitigation: untrained return thunk",
            "Mitigation: IBRS",
            "Mitigation: IBPB",
            "Mitigation: Stuffing",
        ],
    ),
    // Without the microcode it is "Vulnerable: Safe RET", but the safe returns are active.
    (
        "spec_rstack_overflow",
        &["Mitigation: safe RET", "Mitigation: Safe RET", "Vulnerable: Safe RET", "Mitigation: IBPB"],
    ),
    ("spectre_v2", &["Retpolines", "LFENCE", "Mitigation: IBRS", "BHI: SW loop", ", BHB"]),
    ("indirect_target_selection", &["Mitigation: Aligned branch", "Mitigation: Retpolines"]),
];

/// Mitigations that are active when a virtual machine exits, not at system calls.
const AT_VM_EXIT_ONLY: &str = "on VMEXIT only";

impl Host {
    /// The vulnerabilities whose mitigations make each system call slower; `None` if the kernel lists no vulnerabilities.
    pub fn mitigated_at_system_calls(&self) -> Option<Vec<&str>> {
        let costly = |(name, report): &(&String, &String)| costs(name, report);
        let names = self.mitigations.iter().filter(costly).map(|(name, _)| name.as_str());
        (!self.mitigations.is_empty()).then(|| names.collect())
    }

    /// The same as a sentence without a capital letter and a full stop.
    pub fn mitigations_in_words(&self) -> String {
        match self.mitigated_at_system_calls() {
            None => "the kernel does not list its mitigations".to_owned(),
            Some(names) if names.is_empty() => "no mitigation makes system calls much slower".to_owned(),
            Some(names) => format!("mitigations make system calls slower: {}", names.join(", ")),
        }
    }
}

/// Whether the mitigation that the kernel reports for a vulnerability makes system calls slower.
fn costs(name: &str, report: &str) -> bool {
    let words = COSTS.iter().find(|(cost, _)| *cost == name).map_or(&[][..], |(_, words)| words);
    !report.contains(AT_VM_EXIT_ONLY) && words.iter().any(|word| report.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mitigations_that_cost() {
        for (name, report) in [
            ("meltdown", "Mitigation: PTI"),
            ("mds", "Mitigation: Clear CPU buffers; SMT vulnerable"),
            ("spectre_v2", "Mitigation; Retpolines; STIBP disabled; RSB filling"),
            ("spectre_v2", "Mitigation: Retpolines; IBPB: conditional"),
            (
                "spectre_v2",
                "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; BHI: SW loop, KVM: SW loop",
            ),
            ("retbleed", "Mitigation: untrained return thunk; SMT enabled with STIBP protection"),
            ("retbleed", "Mitigation: IBPB"),
            ("spec_rstack_overflow", "Vulnerable: Safe RET, no microcode"),
            ("spec_rstack_overflow", "Mitigation: safe RET, no microcode"),
        ] {
            assert!(costs(name, report), "{name}: {report}");
        }
    }

    #[test]
    fn mitigations_that_do_not() {
        for (name, report) in [
            ("meltdown", "Not affected"),
            ("mds", "Vulnerable: Clear CPU buffers attempted, no microcode"),
            ("spectre_v1", "Mitigation: usercopy/swapgs barriers and __user pointer sanitization"),
            (
                "spectre_v2",
                "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; BHI: BHI_DIS_S, KVM: SW loop",
            ),
            ("retbleed", "Mitigation: Enhanced IBRS"),
            ("spec_rstack_overflow", "Mitigation: IBPB on VMEXIT only"),
            ("spec_rstack_overflow", "Vulnerable: Microcode, no safe RET"),
            ("spec_store_bypass", "Mitigation: Speculative Store Bypass disabled via prctl"),
        ] {
            assert!(!costs(name, report), "{name}: {report}");
        }
    }

    #[test]
    fn without_a_list_of_vulnerabilities_the_result_is_unknown() {
        let host = |report: &[(&str, &str)]| Host {
            mitigations: report.iter().map(|(name, report)| ((*name).into(), (*report).into())).collect(),
            ..Host::default()
        };
        assert_eq!(host(&[]).mitigated_at_system_calls(), None);
        let safe = host(&[("meltdown", "Not affected")]);
        assert_eq!(safe.mitigations_in_words(), "no mitigation makes system calls much slower");
        let slow = host(&[("mds", "Mitigation: Clear CPU buffers"), ("meltdown", "Mitigation: PTI")]);
        assert_eq!(slow.mitigations_in_words(), "mitigations make system calls slower: mds, meltdown");
    }
}
