#include "options.hpp"

#include <windows.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "sweep.hpp"

const char *const HELP =
    "pipes: how fast Windows moves bytes through a named pipe (the study `bradford`)\n"
    "\n"
    "  pipes [--threads 1|2] [--type byte|message|both] [--overlapped [--depth N]] [--count N] [--block SIZE]\n"
    "  pipes --sweep bradford1|bradford2 [--type ...] [--overlapped ...]\n"
    "  pipes --check-24 [--block SIZE] [--type ...]\n"
    "\n"
    "  --threads 1|2     1: one thread writes a block and reads it back; 2: one writes, one reads (default 1)\n"
    "  --type TYPE       byte, message, or both (default byte)\n"
    "  --overlapped      overlapped I/O: every call is begun, and its event is waited for\n"
    "  --depth N         writes in flight at most, with --overlapped (default 2)\n"
    "  --count N         blocks in a trial; k is 1024 (default 100k)\n"
    "  --block SIZE      bytes handed over in one call: 4096, 4k, 256MiB (default 4k)\n"
    "  --sweep NAME      bradford1: the study's sizes and counts, one thread;\n"
    "                    bradford2: powers of two to 16 MiB, two threads, trials of about 2 s at most\n"
    "  --scale X         multiplies every count\n"
    "  --time SECONDS    reduces a trial's count to what fits in this time\n"
    "  --series N        rounds; each runs every case once, in random order (default 3)\n"
    "  --seed N          seed of that order and of the payload (default 1)\n"
    "  --slack N         bytes the pipe's buffers hold beyond one block (default 24, as in the study)\n"
    "  --check-24        looks for the smallest slack with which one thread does not block\n"
    "  --data LEVEL      none: the same block again, not examined on arrival (default, as in the study);\n"
    "                    write: every byte produced anew; verify: every byte checked as well\n"
    "  --verify          the same as --data verify\n"
    "  --hang SECONDS    time without progress after which a trial counts as hung (default 30; 1 with --check-24)\n"
    "  --json FILE       writes the record to FILE and not to standard output\n";

std::string utf8(const wchar_t *text) {
    const int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, nullptr, 0, nullptr, nullptr);
    std::string out(size > 0 ? size : 1, '\0');
    WideCharToMultiByte(CP_UTF8, 0, text, -1, out.data(), size, nullptr, nullptr);
    out.pop_back();
    return out;
}

namespace {

// Largest block, and largest slack: the lengths of calls and buffers have 32 bits, and a buffer holds a block and the slack.
constexpr std::uint64_t BLOCK_BYTES_MAX = 1ULL << 30;
constexpr std::uint64_t COUNT_MAX = 1ULL << 40;

struct Unit {
    const char *name;
    std::uint64_t factor;
};
constexpr Unit UNITS[] = {{"", 1},         {"b", 1},         {"k", 1 << 10},       {"ki", 1 << 10},
                          {"kib", 1 << 10}, {"kb", 1'000},    {"m", 1 << 20},       {"mi", 1 << 20},
                          {"mib", 1 << 20}, {"mb", 1'000'000}, {"g", 1 << 30},      {"gi", 1 << 30},
                          {"gib", 1 << 30}, {"gb", 1'000'000'000}};

std::uint64_t whole_number(const std::string &option, const std::string &text, std::uint64_t most,
                           bool with_unit, std::uint64_t least) {
    const auto wrong = [&](const std::string &why) {
        return UsageError(option + " `" + text + "` " + why);
    };
    std::size_t at = 0;
    std::uint64_t value = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        const std::uint64_t digit = text[at] - '0';
        if (value > (most - digit) / 10) throw wrong("is more than " + std::to_string(most));
        value = value * 10 + digit;
    }
    if (at == 0) throw wrong("is not a whole number: write for example 4096 or 4k");
    std::string unit = text.substr(at);
    for (char &letter : unit) letter = letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
    for (const Unit &known : UNITS) {
        if (unit != known.name || (!with_unit && known.factor != 1)) continue;
        if (value > most / known.factor) throw wrong("is more than " + std::to_string(most));
        if (value * known.factor < least) throw wrong("is less than " + std::to_string(least));
        return value * known.factor;
    }
    throw wrong(with_unit ? "has an unknown unit: write for example 4096, 4k (=1024s), 4kB (=1000s), 256MiB"
                          : "is not a plain whole number");
}

double positive(const std::string &option, const std::string &text, double most) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value > 0.0) || value > most) {
        throw UsageError(option + " `" + text + "` is not a number above 0 and up to " +
                         std::to_string(static_cast<long long>(most)));
    }
    return value;
}

// The options as typed, before it is checked that they fit together.
struct Typed {
    std::optional<std::uint64_t> threads, count, block, depth, slack, series;
    std::optional<double> hang_seconds;
    std::string types = "byte", sweep;
    bool overlapped = false;
    DataLevel data = DataLevel::None;
};

std::vector<PipeType> pipe_types(const std::string &text) {
    if (text == "byte") return {PipeType::Byte};
    if (text == "message") return {PipeType::Message};
    if (text == "both") return {PipeType::Byte, PipeType::Message};
    throw UsageError("--type `" + text + "` is unknown: choose byte, message, both");
}

DataLevel data_level(const std::string &text) {
    for (DataLevel level : {DataLevel::None, DataLevel::Write, DataLevel::Verify}) {
        if (text == word(level)) return level;
    }
    throw UsageError("--data `" + text + "` is unknown: choose none, write, verify");
}

void check_together(const Typed &typed, const Options &options) {
    const bool sized = typed.count || typed.block;
    if (!typed.sweep.empty() && (sized || typed.threads)) {
        throw UsageError("--sweep brings its own --threads, --count and --block: leave those out");
    }
    const bool timed = typed.series || options.trial_seconds || options.scale != 1.0;
    const bool method = !typed.sweep.empty() || typed.threads || typed.overlapped || typed.slack;
    if (options.check_24 && (typed.count || timed || method)) {
        throw UsageError("--check-24 tries slacks with one blocking thread: it takes --block, --type, --data, --hang");
    }
    if (typed.depth && !typed.overlapped) throw UsageError("--depth has a meaning only with --overlapped");
}

std::vector<Case> cases_of(const Typed &typed, const Options &options) {
    Case plain;
    plain.threads = static_cast<unsigned>(typed.threads.value_or(1));
    plain.overlapped = typed.overlapped;
    plain.depth = static_cast<unsigned>(typed.overlapped ? typed.depth.value_or(2) : 1);
    plain.slack_bytes = static_cast<std::int64_t>(typed.slack.value_or(24));
    plain.data = typed.data;
    plain.block_bytes = typed.block.value_or(4096);
    plain.count = typed.count.value_or(100 << 10);
    std::vector<Case> cases;
    for (PipeType type : pipe_types(typed.types)) {
        plain.type = type;
        if (options.check_24) {
            add_slack_search(plain, typed.block.has_value(), cases);
        } else if (typed.sweep == "bradford1") {
            add_bradford1(plain, cases);
        } else if (typed.sweep == "bradford2") {
            add_bradford2(plain, cases);
        } else {
            cases.push_back(plain);
        }
    }
    for (Case &one : cases) {
        const double scaled = std::round(static_cast<double>(one.count) * options.scale);
        one.count = static_cast<std::uint64_t>(std::clamp(scaled, 1.0, static_cast<double>(COUNT_MAX)));
    }
    return cases;
}

}  // namespace

Options read_options(int argc, wchar_t **argv) {
    Options options;
    Typed typed;
    for (int i = 1; i < argc; ++i) options.arguments.push_back(utf8(argv[i]));
    for (int i = 1; i < argc; ++i) {
        const std::string option = options.arguments[i - 1];
        const auto value = [&] {
            if (i + 1 >= argc) throw UsageError(option + " needs a value (see --help)");
            return options.arguments[++i - 1];
        };
        const auto number = [&](std::uint64_t least, std::uint64_t most, bool with_unit) {
            return whole_number(option, value(), most, with_unit, least);
        };
        if (option == "--help" || option == "-h") throw HelpWanted{};
        else if (option == "--threads") typed.threads = number(1, 2, false);
        else if (option == "--type") typed.types = value();
        else if (option == "--overlapped") typed.overlapped = true;
        else if (option == "--depth") typed.depth = number(1, 64, false);
        else if (option == "--count") typed.count = number(1, COUNT_MAX, true);
        else if (option == "--block") typed.block = number(1, BLOCK_BYTES_MAX, true);
        else if (option == "--sweep") typed.sweep = value();
        else if (option == "--scale") options.scale = positive(option, value(), 1e6);
        else if (option == "--time") options.trial_seconds = positive(option, value(), 86'400);
        else if (option == "--series") typed.series = number(1, 1000, false);
        else if (option == "--seed") options.seed = number(0, std::numeric_limits<std::uint64_t>::max() / 2, false);
        else if (option == "--slack") typed.slack = number(0, BLOCK_BYTES_MAX, true);
        else if (option == "--check-24") options.check_24 = true;
        else if (option == "--data") typed.data = data_level(value());
        else if (option == "--verify") typed.data = DataLevel::Verify;
        else if (option == "--hang") typed.hang_seconds = positive(option, value(), 86'400);
        else if (option == "--json") {
            value();
            options.json_path = argv[i];
        } else throw UsageError("`" + option + "` is no option of this program (see --help)");
    }
    if (!typed.sweep.empty() && typed.sweep != "bradford1" && typed.sweep != "bradford2") {
        throw UsageError("--sweep `" + typed.sweep + "` is unknown: choose bradford1, bradford2");
    }
    check_together(typed, options);
    options.cases = cases_of(typed, options);
    if (typed.sweep == "bradford2" && !options.trial_seconds) options.trial_seconds = 2.0;
    options.series = static_cast<std::uint32_t>(typed.series.value_or(options.check_24 ? 1 : 3));
    // In the search for the slack a write either returns at once or never.
    const double hang_seconds = typed.hang_seconds.value_or(options.check_24 ? 1.0 : 30.0);
    options.hangs_after = std::chrono::milliseconds(std::max(1LL, std::llround(hang_seconds * 1000)));
    return options;
}
