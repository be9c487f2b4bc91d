#include "host.hpp"

#include <windows.h>

#include <cpuid.h>

#include <cstring>

namespace {

template <typename Function> Function *ntdll(const char *name) {
    const HMODULE library = GetModuleHandleW(L"ntdll.dll");
    return library ? reinterpret_cast<Function *>(reinterpret_cast<void *>(GetProcAddress(library, name))) : nullptr;
}

// Wine exports functions that give its version; Windows does not have them.
std::optional<std::string> wine_version() {
    const auto version = ntdll<const char *CDECL()>("wine_get_version");
    if (!version) return std::nullopt;
    std::string text = std::string("Wine ") + version();
    if (const auto system = ntdll<void CDECL(const char **, const char **)>("wine_get_host_version")) {
        const char *name = "", *release = "";
        system(&name, &release);
        text += std::string(" on ") + name + " " + release;
    }
    return text;
}

// The result of GetVersionEx depends on the program's manifest; RtlGetVersion returns the true version.
std::string windows_version() {
    OSVERSIONINFOW version{};
    version.dwOSVersionInfoSize = sizeof version;
    const auto get = ntdll<LONG WINAPI(OSVERSIONINFOW *)>("RtlGetVersion");
    if (!get || get(&version) != 0) return "Windows, version unknown";
    return "Windows " + std::to_string(version.dwMajorVersion) + "." + std::to_string(version.dwMinorVersion) + "." +
           std::to_string(version.dwBuildNumber);
}

std::string trimmed(const std::string &text) {
    const std::size_t from = text.find_first_not_of(' ');
    const std::size_t to = text.find_last_not_of(' ');
    return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

// The brand of the CPU: 48 characters in the CPUID leaves 0x80000002 to 0x80000004.
std::string cpu_brand() {
    unsigned words[12] = {};
    if (__get_cpuid_max(0x80000000, nullptr) < 0x80000004) return "unknown CPU";
    for (unsigned leaf = 0; leaf < 3; ++leaf) {
        unsigned *at = words + 4 * leaf;
        __cpuid(0x80000002 + leaf, at[0], at[1], at[2], at[3]);
    }
    char text[sizeof words + 1] = {};
    std::memcpy(text, words, sizeof words);
    const std::string brand = trimmed(text);
    return brand.empty() ? "unknown CPU" : brand;
}

// The signature in CPUID leaf 0x40000000, if a bit of leaf 1 shows that there is a hypervisor. With Hyper-V enabled, Windows itself
// is a guest of Hyper-V.
std::optional<std::string> hypervisor_name() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31 & 1)) return std::nullopt;
    unsigned words[3] = {};
    __cpuid(0x40000000, a, words[0], words[1], words[2]);
    char signature[sizeof words + 1] = {};
    std::memcpy(signature, words, sizeof words);
    constexpr const char *KNOWN[][2] = {{"KVMKVMKVM", "KVM"},           {"Microsoft Hv", "Hyper-V"},
                                        {"VMwareVMware", "VMware"},     {"XenVMMXenVMM", "Xen"},
                                        {"TCGTCGTCGTCG", "QEMU"},       {"VBoxVBoxVBox", "VirtualBox"},
                                        {"bhyve bhyve ", "bhyve"},      {"prl hyperv  ", "Parallels"}};
    for (const auto &known : KNOWN) {
        if (std::strcmp(signature, known[0]) == 0) return known[1];
    }
    return "unknown";
}

std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> topology() {
    DWORD bytes = 0;
    GetLogicalProcessorInformation(nullptr, &bytes);
    std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> entries(bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
    if (entries.empty() || !GetLogicalProcessorInformation(entries.data(), &bytes)) return {};
    return entries;
}

std::string cache_name(const CACHE_DESCRIPTOR &cache) {
    const char *suffix = cache.Type == CacheData ? "d" : cache.Type == CacheInstruction ? "i" : "";
    return "L" + std::to_string(cache.Level) + suffix;
}

void add_topology(Host &host) {
    DWORD_PTR allowed = 0, system = 0;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &allowed, &system) || allowed == 0) return;
    const auto entries = topology();
    const auto has = [](ULONG_PTR mask, unsigned id) { return (mask >> id & 1) != 0; };
    for (unsigned id = 0; id < 8 * sizeof allowed; ++id) {
        if (!has(allowed, id)) continue;
        Processor processor{id, id, 0, 0};
        std::uint32_t packages = 0;
        for (const auto &entry : entries) {
            const bool here = has(entry.ProcessorMask, id);
            if (entry.Relationship == RelationProcessorPackage) {
                if (here) processor.package = packages;
                ++packages;
            } else if (here && entry.Relationship == RelationProcessorCore) {
                processor.core = static_cast<std::uint32_t>(__builtin_ctzll(entry.ProcessorMask));
            } else if (here && entry.Relationship == RelationNumaNode) {
                processor.node = entry.NumaNode.NodeNumber;
            } else if (here && entry.Relationship == RelationCache && host.processors.empty()) {
                host.caches_bytes[cache_name(entry.Cache)] = entry.Cache.Size;
            }
        }
        host.processors.push_back(processor);
    }
}

}  // namespace

Host this_host() {
    Host host;
    const auto wine = wine_version();
    host.wine = wine.has_value();
    host.kernel = wine ? *wine : windows_version();
    host.cpu_model = cpu_brand();
    host.hypervisor = hypervisor_name();
    add_topology(host);
    MEMORYSTATUSEX memory{};
    memory.dwLength = sizeof memory;
    if (GlobalMemoryStatusEx(&memory)) host.memory_bytes = memory.ullTotalPhys;
    return host;
}
