#include "guard.hpp"

#include <algorithm>
#include <cstdio>

std::atomic<bool> interrupted{false};

namespace {

// Longest time between two checks of the guard. Checks this rare cost no measurable time.
constexpr DWORD CHECK_INTERVAL_MS_MAX = 100;

// Longest time until a cancelled call returns. After it, the process is ended.
constexpr ULONGLONG LAST_RESORT_MS = 10'000;

}  // namespace

Guard::Guard(const Channel &channel, std::chrono::milliseconds hangs_after)
    : channel(channel), hangs_after(hangs_after), trial_ended(CreateEventW(nullptr, TRUE, FALSE, nullptr)) {
    if (!trial_ended) throw Failed({"failed", "CreateEvent: " + error_name(GetLastError()), std::nullopt, false});
    watcher = std::thread([this] { watch(); });
}

Guard::~Guard() {
    SetEvent(trial_ended.get());
    watcher.join();
    for (std::atomic<HANDLE> &thread : threads) {
        if (HANDLE handle = thread.load()) CloseHandle(handle);
    }
}

void Guard::register_this_thread() noexcept {
    HANDLE self = nullptr;
    const HANDLE process = GetCurrentProcess();
    // Without a handle the thread's blocking calls cannot be cancelled; then `watch` ends the process.
    if (!DuplicateHandle(process, GetCurrentThread(), process, &self, 0, FALSE, DUPLICATE_SAME_ACCESS)) return;
    HANDLE none = nullptr;
    if (!threads[0].compare_exchange_strong(none, self)) threads[1].store(self);
}

// Only the first reason is kept: it causes the later ones.
bool Guard::stop_at(Stop why) {
    Stop none = Stop::None;
    return stop.compare_exchange_strong(none, why);
}

void Guard::watch() {
    const DWORD interval_ms = std::min<DWORD>(CHECK_INTERVAL_MS_MAX, static_cast<DWORD>(hangs_after.count() / 4 + 1));
    std::uint64_t seen = 0;
    ULONGLONG moved_at = GetTickCount64(), stopped_at = 0;
    while (WaitForSingleObject(trial_ended.get(), interval_ms) == WAIT_TIMEOUT) {
        const ULONGLONG now = GetTickCount64();
        const std::uint64_t blocks = sent.blocks.load(std::memory_order_relaxed) +
                                     received.blocks.load(std::memory_order_relaxed);
        if (blocks != seen) moved_at = now;
        seen = blocks;
        if (interrupted) stop_at(Stop::Interrupted);
        if (now - moved_at >= static_cast<ULONGLONG>(hangs_after.count())) stop_at(Stop::Hung);
        if (stopped() == Stop::None) continue;
        if (stopped_at == 0) stopped_at = now;
        // Repeated at each check: a call may have begun after the last one.
        cancel_all();
        if (now - stopped_at > LAST_RESORT_MS) {
            std::fputs("pipes: a call was cancelled and does not return: the process is ended\n", stderr);
            TerminateProcess(GetCurrentProcess(), 1);
        }
    }
}

void Guard::cancel_all() {
    // CancelIoEx and CancelSynchronousIo return ERROR_NOT_FOUND if there is no call to cancel.
    if (channel.overlapped) {
        CancelIoEx(channel.reader.get(), nullptr);
        CancelIoEx(channel.writer.get(), nullptr);
        return;
    }
    for (std::atomic<HANDLE> &thread : threads) {
        if (HANDLE handle = thread.load()) CancelSynchronousIo(handle);
    }
}
