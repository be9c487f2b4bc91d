//! The hypervisor of which this machine is a guest, if any. No single source works on all machines, so several are read in turn: the
//! CPU, /sys/hypervisor, the device tree, the firmware's tables, the kernel's clock sources.

use crate::Roots;
use crate::cpuinfo::hypervisor_flag;
use crate::names::name_in;
use crate::roots::CLOCKS;

/// The hypervisor below this machine; `None` on bare metal. `signature` is the result of [`signature`].
/// "unknown" if the CPU reports a hypervisor that no source names.
pub(crate) fn hypervisor(roots: &Roots, signature: Option<&str>) -> Option<String> {
    let flag = hypervisor_flag(&roots.proc_text("cpuinfo").unwrap_or_default());
    if flag == Some(false) && signature.is_none() {
        return None;
    }
    let clocks = roots.sys_text(&format!("{CLOCKS}/available_clocksource"));
    let named = signature
        .and_then(|text| name_in("hypervisor-signature", text))
        .or_else(|| roots.sys_text("hypervisor/type").filter(|kind| kind == "xen").map(|_| "Xen"))
        .or_else(|| device_tree(roots))
        .or_else(|| firmware(roots))
        .or_else(|| name_in("hypervisor-clock", &clocks?));
    named.or_else(|| (flag == Some(true)).then_some("unknown")).map(str::to_owned)
}

/// Vendor and product from DMI. The product name of a cloud's bare-metal machine contains ".metal".
fn firmware(roots: &Roots) -> Option<&'static str> {
    let names = ["sys_vendor", "product_name", "bios_vendor", "board_vendor"];
    let texts: Vec<_> =
        names.iter().filter_map(|name| roots.sys_text(&format!("class/dmi/id/{name}"))).collect();
    let text = texts.join("\n");
    if text.contains(".metal") { None } else { name_in("hypervisor-firmware", &text) }
}

/// From the device tree, which Arm and RISC-V guests have.
fn device_tree(roots: &Roots) -> Option<&'static str> {
    let compatible = ["device-tree/hypervisor/compatible", "device-tree/compatible"];
    let text = compatible.iter().filter_map(|path| roots.proc_text(path)).collect::<Vec<_>>().join("\n");
    name_in("hypervisor-device-tree", &text)
}

/// The hypervisor's signature in cpuid, the only source in a guest without firmware tables; `None` on bare metal and on other
/// architectures.
// __cpuid is unsafe in the oldest Rust this builds with (1.88), and safe in newer ones.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, unused_unsafe)]
pub(crate) fn signature() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    // SAFETY: every x86_64 CPU has cpuid, which only writes four registers.
    let (features, leaf) = unsafe { (__cpuid(1), __cpuid(0x4000_0000)) };
    // Leaf 1, ECX bit 31: "a hypervisor is present" (reserved for that use by Intel and AMD).
    if features.ecx >> 31 == 0 {
        return None;
    }
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn the_cpu_comes_before_other_sources() {
        let fake = Fake::new();
        fake.proc("cpuinfo", "flags : fpu hypervisor");
        assert_eq!(hypervisor(&fake.roots(), Some("KVMKVMKVM")).as_deref(), Some("KVM"));
        assert_eq!(hypervisor(&fake.roots(), Some("Something else")).as_deref(), Some("unknown"));
        fake.sys("devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock");
        assert_eq!(hypervisor(&fake.roots(), None).as_deref(), Some("KVM"));
        fake.sys("class/dmi/id/sys_vendor", "Microsoft Corporation");
        fake.sys("class/dmi/id/product_name", "Virtual Machine");
        assert_eq!(hypervisor(&fake.roots(), None).as_deref(), Some("Hyper-V"));
    }

    #[test]
    fn bare_metal_has_no_hypervisor_whatever_the_names_in_the_firmware() {
        let fake = Fake::new();
        fake.proc("cpuinfo", "flags : fpu");
        fake.sys("class/dmi/id/sys_vendor", "Amazon EC2");
        assert_eq!(hypervisor(&fake.roots(), None), None);
        let arm = Fake::new();
        arm.sys("class/dmi/id/sys_vendor", "Amazon EC2");
        arm.sys("class/dmi/id/product_name", "c7g.metal");
        assert_eq!(hypervisor(&arm.roots(), None), None);
    }

    #[test]
    fn arm_guests_are_named_by_the_device_tree() {
        let fake = Fake::new();
        fake.proc("device-tree/compatible", "linux,dummy-virt\0");
        assert_eq!(hypervisor(&fake.roots(), None).as_deref(), Some("KVM"));
        assert_eq!(hypervisor(&Fake::new().roots(), None), None);
    }
}
