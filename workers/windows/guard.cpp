#include "guard.hpp"

#include <algorithm>
#include <cstdio>

std::atomic<bool> interrupted{false};

namespace {

// How often the guard looks; seldom enough to cost nothing.
constexpr DWORD LOOK_MS_MAX = 100;

// After this long even cancelled calls should have come back.
constexpr ULONGLONG LAST_RESORT_MS = 10'000;

}  // namespace

Guard::Guard(const Channel &channel, std::chrono::milliseconds hangs_after)
    : channel(channel), hangs_after(hangs_after), over(CreateEventW(nullptr, TRUE, FALSE, nullptr)) {
    if (!over) throw Failed({"failed", "CreateEvent: " + error_name(GetLastError()), std::nullopt, false});
    watcher = std::thread([this] { watch(); });
}

Guard::~Guard() {
    SetEvent(over.get());
    watcher.join();
    for (std::atomic<HANDLE> &thread : threads) {
        if (HANDLE handle = thread.load()) CloseHandle(handle);
    }
}

void Guard::enlist_this_thread() noexcept {
    HANDLE self = nullptr;
    const HANDLE process = GetCurrentProcess();
    // Without a handle the thread's blocking calls cannot be cancelled; the last resort in `watch` remains.
    if (!DuplicateHandle(process, GetCurrentThread(), process, &self, 0, FALSE, DUPLICATE_SAME_ACCESS)) return;
    HANDLE none = nullptr;
    if (!threads[0].compare_exchange_strong(none, self)) threads[1].store(self);
}

// Only the first reason is kept: later ones follow from it.
bool Guard::stop_at(Stop why) {
    Stop none = Stop::None;
    return stop.compare_exchange_strong(none, why);
}

void Guard::watch() {
    const DWORD look_ms = std::min<DWORD>(LOOK_MS_MAX, static_cast<DWORD>(hangs_after.count() / 4 + 1));
    std::uint64_t seen = 0;
    ULONGLONG moved_at = GetTickCount64(), stopped_at = 0;
    while (WaitForSingleObject(over.get(), look_ms) == WAIT_TIMEOUT) {
        const ULONGLONG now = GetTickCount64();
        const std::uint64_t blocks = sent.blocks.load(std::memory_order_relaxed) +
                                     received.blocks.load(std::memory_order_relaxed);
        if (blocks != seen) moved_at = now;
        seen = blocks;
        if (interrupted) stop_at(Stop::Interrupted);
        if (now - moved_at >= static_cast<ULONGLONG>(hangs_after.count())) stop_at(Stop::Hung);
        if (stopped() == Stop::None) continue;
        if (stopped_at == 0) stopped_at = now;
        // Again at each look: a call may have begun after the last time.
        cancel_all();
        if (now - stopped_at > LAST_RESORT_MS) {
            std::fputs("pipes: a call does not come back although it was cancelled; giving up\n", stderr);
            TerminateProcess(GetCurrentProcess(), 1);
        }
    }
}

void Guard::cancel_all() {
    // Both answer ERROR_NOT_FOUND where no call is under way.
    if (channel.overlapped) {
        CancelIoEx(channel.reader.get(), nullptr);
        CancelIoEx(channel.writer.get(), nullptr);
        return;
    }
    for (std::atomic<HANDLE> &thread : threads) {
        if (HANDLE handle = thread.load()) CancelSynchronousIo(handle);
    }
}
