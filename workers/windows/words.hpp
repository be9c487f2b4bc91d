// The types of a measurement: requests, results of a trial, errors. No I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

enum class PipeType { Byte, Message };
enum class DataLevel { None, Write, Verify };

inline const char *word(PipeType type) { return type == PipeType::Byte ? "byte" : "message"; }

inline const char *word(DataLevel level) {
    switch (level) {
    case DataLevel::None: return "none";
    case DataLevel::Write: return "write";
    case DataLevel::Verify: return "verify";
    }
    return "";
}

// One row: everything that decides how a trial is run.
struct Case {
    unsigned threads = 1;
    PipeType type = PipeType::Byte;
    bool overlapped = false;
    unsigned depth = 1;            // writes in flight at most; overlapped only
    std::uint64_t block_bytes = 0;
    std::uint64_t count = 0;       // blocks in a trial
    std::int64_t slack_bytes = 0;  // what the pipe's buffers hold beyond one block
    DataLevel data = DataLevel::None;
};

// As docs/RECORD.md has it: `kind` is one of its words.
struct Trouble {
    std::string kind;
    std::string message;
    std::optional<std::string> remedy;
    bool expected = false;
};

// What one end used between the start and its last block.
struct EndUsage {
    std::uint64_t syscalls = 0;
    std::uint64_t user_ns = 0;
    std::uint64_t system_ns = 0;
};

struct Sample {
    std::uint32_t round = 0;
    std::uint64_t elapsed_ns = 0;
    std::uint64_t setup_ns = 0;
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
    std::optional<std::string> checksum;
    std::vector<EndUsage> ends;
};

// Sizes the system says it gave, in bytes.
struct Granted {
    std::uint64_t in_buffer_bytes = 0;
    std::uint64_t out_buffer_bytes = 0;
};

// A case, and what came of it.
struct Row {
    Case wanted;
    Granted granted;
    std::vector<Sample> samples;
    std::optional<Trouble> trouble;
};

struct Options {
    std::vector<Case> cases;  // in the order of the study
    std::uint32_t series = 0;
    std::uint64_t seed = 1;
    double scale = 1.0;
    std::optional<double> trial_seconds;  // COUNT is cut to what fits in about this time
    std::chrono::milliseconds hangs_after{};
    bool check_24 = false;
    std::optional<std::wstring> json_path;  // none: standard output
    std::vector<std::string> arguments;     // as typed, UTF-8
};
