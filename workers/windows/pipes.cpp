// pipes: how fast Windows moves bytes through a named pipe. The study `bradford` (2001), with what it left out:
// message pipes and overlapped I/O. Prints hosepipe's record on standard output, a table on standard error.
#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>

#include "guard.hpp"
#include "options.hpp"
#include "record.hpp"
#include "slack.hpp"
#include "summary.hpp"
#include "trial.hpp"

namespace {

// A warm-up, from which the count that fits is estimated, takes about this long.
constexpr std::uint64_t WARM_UP_NS = 50'000'000;
constexpr std::uint64_t WARM_UP_BLOCKS = 16;

BOOL WINAPI on_console_event(DWORD) {
    interrupted = true;
    return TRUE;
}

// RFC 3339, UTC.
std::string time_of_day() {
    SYSTEMTIME now;
    GetSystemTime(&now);
    char text[32];
    std::snprintf(text, sizeof text, "%04u-%02u-%02uT%02u:%02u:%02uZ", now.wYear, now.wMonth, now.wDay, now.wHour,
                  now.wMinute, now.wSecond);
    return text;
}

// Runs more and more blocks until the time is long enough to measure, and reduces the count to fit the wanted time.
void warm_up(Row &row, const Tile &tile, const Options &options) {
    Case few = row.wanted;
    few.count = std::min(WARM_UP_BLOCKS, row.wanted.count);
    std::uint64_t elapsed_ns = 0;
    while ((elapsed_ns = run_trial(few, tile, options.hangs_after).sample.elapsed_ns) < WARM_UP_NS) {
        if (few.count == row.wanted.count) break;
        few.count = std::min(few.count * 4, row.wanted.count);
    }
    if (!options.trial_seconds) return;
    const double block_ns = static_cast<double>(elapsed_ns) / static_cast<double>(few.count);
    const double fits = std::max(1.0, *options.trial_seconds * 1e9 / block_ns);
    if (fits < static_cast<double>(row.wanted.count)) row.wanted.count = static_cast<std::uint64_t>(fits);
}

void run_row(Row &row, const Tile &tile, const Options &options, std::uint32_t round) {
    try {
        // The search for the slack finds out whether the first write returns, so it has no warm-up.
        if (round == 0 && !options.check_24) warm_up(row, tile, options);
        Outcome outcome = run_trial(row.wanted, tile, options.hangs_after);
        outcome.sample.round = round;
        row.granted = outcome.granted;
        row.samples.push_back(std::move(outcome.sample));
    } catch (const Failed &failed) {
        row.trouble = failed.trouble;
        // In that search a write that blocks is a result.
        row.trouble->expected = options.check_24 && failed.trouble.kind == "hung";
    }
}

// Each round runs every case once, in a new random order; a case that failed is not tried again.
std::vector<Row> run_all(const Options &options) {
    const Tile tile(options.seed);
    Random random(options.seed);
    std::vector<Row> rows;
    for (const Case &wanted : options.cases) rows.push_back({wanted, {}, {}, std::nullopt});
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    try {
        for (std::uint32_t round = 0; round < options.series; ++round) {
            for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
            for (std::size_t at : order) {
                if (interrupted) throw Interrupted{};
                if (!rows[at].trouble) run_row(rows[at], tile, options, round);
            }
        }
    } catch (const Interrupted &) {
        std::fputs("stopped; the finished trials are kept\n", stderr);
    }
    return rows;
}

const char *meaning_of(DataLevel level) {
    switch (level) {
    case DataLevel::None: return "none (the same block again, and nothing is examined)";
    case DataLevel::Write: return "write (every byte is produced, and nothing is examined)";
    case DataLevel::Verify: return "verify (every byte is produced, and checked on arrival)";
    }
    return "";
}

void print_table(const Options &options, const std::vector<Row> &rows) {
    std::fprintf(stderr, "data: %s\n", meaning_of(options.cases.front().data));
    if (options.scale != 1.0) std::fprintf(stderr, "scale: every count times %g\n", options.scale);
    std::size_t width = 0;
    for (const Row &row : rows) width = std::max(width, spec_of(row.wanted).size());
    std::fprintf(stderr, "%-*s %12s %10s %10s   each series, in MB/s (10^6 bytes)\n", static_cast<int>(width), "spec",
                 "block", "count", "median");
    for (const Row &row : rows) {
        std::fprintf(stderr, "%-*s %12llu %10llu", static_cast<int>(width), spec_of(row.wanted).c_str(),
                     static_cast<unsigned long long>(row.wanted.block_bytes),
                     static_cast<unsigned long long>(row.wanted.count));
        if (const auto summary = summarise(row.samples)) {
            std::fprintf(stderr, " %10.3f  ", summary->median / 1e6);
            for (const Sample &sample : row.samples) {
                std::fprintf(stderr, " %.3f", throughput_bytes_per_s(sample) / 1e6);
            }
        }
        if (row.trouble) {
            std::fprintf(stderr, "  %s: %s", row.trouble->kind.c_str(), row.trouble->message.c_str());
            if (row.trouble->remedy) std::fprintf(stderr, "; try %s", row.trouble->remedy->c_str());
        }
        std::fputc('\n', stderr);
    }
}

// Writes another file and renames it, so that an older record survives a full disk.
bool save(const std::wstring &path, const std::string &text) {
    const std::wstring beside = path + L".part";
    FILE *file = _wfopen(beside.c_str(), L"wb");
    if (!file) return false;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !written || !MoveFileExW(beside.c_str(), path.c_str(), MOVEFILE_REPLACE_EXISTING)) {
        const DWORD code = GetLastError();
        _wremove(beside.c_str());
        SetLastError(code);
        return false;
    }
    return true;
}

bool print(const std::string &text) {
    _setmode(_fileno(stdout), _O_BINARY);
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

int measure(const Options &options) {
    const std::string started = time_of_day();
    const Host host = this_host();
    std::fprintf(stderr, "%s, %s, %zu processors\n", host.kernel.c_str(), host.cpu_model.c_str(),
                 host.processors.size());
    if (host.wine) std::fputs("These are Wine's figures, and say nothing about Windows.\n", stderr);
    const std::vector<Row> rows = run_all(options);
    if (options.check_24) {
        report_slack(host, rows);
    } else {
        print_table(options, rows);
    }
    const std::string record = record_json(options, host, started, rows, interrupted);
    if (options.json_path ? !save(*options.json_path, record) : !print(record)) {
        std::fprintf(stderr, "pipes: cannot write the record to %s (%s)\n",
                     options.json_path ? utf8(options.json_path->c_str()).c_str() : "standard output",
                     error_name(GetLastError()).c_str());
        return 1;
    }
    if (interrupted) return 130;
    const auto went_wrong = [](const Row &row) { return row.trouble && !row.trouble->expected; };
    return std::any_of(rows.begin(), rows.end(), went_wrong) ? 1 : 0;
}

}  // namespace

int wmain(int argc, wchar_t **argv) {
    SetConsoleCtrlHandler(on_console_event, TRUE);
    // Wine's C library buffers output to files and pipes; Windows' does not.
    std::setvbuf(stderr, nullptr, _IONBF, 0);
    try {
        return measure(read_options(argc, argv));
    } catch (const HelpWanted &) {
        std::fputs(HELP, stdout);
        return 0;
    } catch (const UsageError &error) {
        std::fprintf(stderr, "pipes: %s\n", error.what());
        return 2;
    } catch (const Failed &failed) {
        std::fprintf(stderr, "pipes: %s\n", failed.what());
        return 1;
    } catch (const std::exception &error) {
        // There is no memory, or no thread can be started.
        std::fprintf(stderr, "pipes: %s\n", error.what());
        return 1;
    }
}
