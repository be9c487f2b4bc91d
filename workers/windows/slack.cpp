#include "slack.hpp"

#include <winternl.h>

#include <algorithm>
#include <cstdio>

#include "ends.hpp"

namespace {

// FILE_PIPE_LOCAL_INFORMATION of ntifs.h, which mingw-w64 has for drivers only.
struct PipeLocalInformation {
    ULONG type, configuration, instances_max, instances, inbound_quota, read_data_available, outbound_quota,
        write_quota_available, state, end;
};
constexpr int FILE_PIPE_LOCAL_INFORMATION_CLASS = 24;

// Bytes that the writing end may still write without waiting. Wine always answers 0.
std::optional<ULONG> quota_left(HANDLE pipe) {
    using Query = NTSTATUS NTAPI(HANDLE, IO_STATUS_BLOCK *, void *, ULONG, int);
    const HMODULE library = GetModuleHandleW(L"ntdll.dll");
    if (!library) return std::nullopt;
    void *found = reinterpret_cast<void *>(GetProcAddress(library, "NtQueryInformationFile"));
    PipeLocalInformation information{};
    IO_STATUS_BLOCK status{};
    const auto query = reinterpret_cast<Query *>(found);
    if (!query || query(pipe, &status, &information, sizeof information, FILE_PIPE_LOCAL_INFORMATION_CLASS) < 0) {
        return std::nullopt;
    }
    return information.write_quota_available;
}

// Bytes by which one write lowers the quota beyond its own length; none if the system does not report the quota.
std::optional<long> charge_beyond_data(PipeType type) {
    constexpr ULONG DATA_BYTES = 1000;
    const Channel channel(type, false, 64 << 10);
    const auto before = quota_left(channel.writer.get());
    const std::string data(DATA_BYTES, 'x');
    DWORD written = 0;
    if (!before || *before == 0 || !WriteFile(channel.writer.get(), data.data(), DATA_BYTES, &written, nullptr)) {
        return std::nullopt;
    }
    const auto after = quota_left(channel.writer.get());
    if (!after || *after > *before) return std::nullopt;
    return static_cast<long>(*before - *after) - static_cast<long>(DATA_BYTES);
}

// How many writes of one byte a pipe takes before one has to wait: its size divided by the charge for one write.
constexpr ULONG SMALL_PIPE_BYTES = 4096;
constexpr DWORD NO_ROOM_MS = 500;

ULONG writes_of_one_byte(PipeType type) {
    const Channel channel(type, true, SMALL_PIPE_BYTES);
    const HANDLE pipe = channel.writer.get();
    const char byte = 'x';
    Overlap call;
    DWORD written = 0;
    for (ULONG count = 0; count <= SMALL_PIPE_BYTES; ++count) {
        const bool done = WriteFile(pipe, &byte, 1, nullptr, call.fresh());
        if (!done && GetLastError() != ERROR_IO_PENDING) return count;
        if (!done && WaitForSingleObject(call.event.get(), NO_ROOM_MS) == WAIT_TIMEOUT) {
            CancelIoEx(pipe, &call.state);
            GetOverlappedResult(pipe, &call.state, &written, TRUE);
            return count;
        }
    }
    return SMALL_PIPE_BYTES + 1;
}

// The slacks that were tried with one type and one block, in ascending order.
struct Search {
    PipeType type;
    std::uint64_t block_bytes;
    std::string answers;                   // "-1 blocks, 0 works, ..."
    std::optional<std::int64_t> blocks;    // the largest slack that blocks
    std::optional<std::int64_t> works;     // the smallest slack that works as all larger ones do
    bool is_complete;                      // false if a slack was not tried
};

std::vector<Search> searches(const std::vector<Row> &rows) {
    std::vector<Search> found;
    for (const Row &row : rows) {
        const Case &wanted = row.wanted;
        if (found.empty() || found.back().type != wanted.type || found.back().block_bytes != wanted.block_bytes) {
            found.push_back({wanted.type, wanted.block_bytes, "", std::nullopt, std::nullopt, true});
        }
        Search &search = found.back();
        const bool blocks = row.trouble && row.trouble->kind == "hung";
        const bool was_tried = row.trouble || !row.samples.empty();
        if (!was_tried) search.is_complete = false;
        if (!search.answers.empty()) search.answers += ", ";
        search.answers += std::to_string(wanted.slack_bytes);
        search.answers += blocks ? " blocks" : row.trouble ? " fails" : was_tried ? " works" : " not tried";
        if (blocks) search.blocks = wanted.slack_bytes;
        if (row.trouble) {
            search.works.reset();
        } else if (!search.works) {
            search.works = wanted.slack_bytes;
        }
    }
    return found;
}

std::string meaning(const Search &search, const std::string &system) {
    if (!search.is_complete) return "stopped before every slack was tried: there is no conclusion.";
    if (!search.works) return "no slack that was tried is enough; --overlapped and --threads 2 need none.";
    if (!search.blocks) return system + " takes a write larger than the pipe's buffer: the size is advice only.";
    if (*search.works == 0) {
        return system + " charges a queued write for its data alone: a buffer of one block is enough, and the 24 bytes "
               "that the study found necessary are not needed.";
    }
    return system + " charges a queued write for more than its data, as the study found: for the header of its queue "
           "entry, of more than " + std::to_string(*search.blocks) + " and up to " + std::to_string(*search.works) +
           " bytes.";
}

}  // namespace

void report_slack(const Host &host, const std::vector<Row> &rows) {
    const std::string system = host.wine ? "Wine" : "this Windows";
    std::string last;
    std::fputs("One thread writes a block and reads it back; the pipe's buffers hold the block and this slack:\n",
               stderr);
    for (const Search &search : searches(rows)) {
        std::fprintf(stderr, "  %s type, %llu bytes: %s\n", word(search.type),
                     static_cast<unsigned long long>(search.block_bytes), search.answers.c_str());
        const std::string sentence = meaning(search, system);
        if (sentence != last) std::fprintf(stderr, "    %s\n", sentence.c_str());
        last = sentence;
    }
    for (PipeType type : {PipeType::Byte, PipeType::Message}) try {
        const auto charge = charge_beyond_data(type);
        std::fprintf(stderr, "  %s type, write quota taken by one write beyond its data: %s\n", word(type),
                     charge ? (std::to_string(*charge) + " bytes").c_str() : "not reported by this system");
        const ULONG writes = writes_of_one_byte(type);
        std::fprintf(stderr, "  %s type, writes of 1 byte that a pipe of %lu bytes takes unread: %s%lu\n", word(type),
                     SMALL_PIPE_BYTES, writes > SMALL_PIPE_BYTES ? "more than " : "",
                     std::min(writes, SMALL_PIPE_BYTES));
    } catch (const Failed &failed) {
        std::fprintf(stderr, "  %s type: %s\n", word(type), failed.what());
    }
}
