// What machine the figures are from: a Windows, or a Wine that plays one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

struct Processor {
    std::uint32_t id, core, package, node;
};

struct Host {
    std::string kernel;  // "Windows 10.0.19045", or "Wine 8.0 on Linux 6.18.0": never one as the other
    bool wine = false;
    std::string cpu_model;
    std::vector<Processor> processors;  // those this process may use, of its first processor group (64 at most)
    std::map<std::string, std::uint64_t> caches_bytes;
    std::uint64_t memory_bytes = 0;
    std::optional<std::string> hypervisor;
};

Host this_host();
