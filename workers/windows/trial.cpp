#include "trial.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <thread>

#include "ends.hpp"

namespace {

// QueryPerformanceCounter in nanoseconds; only differences have a meaning.
std::uint64_t now_ns() {
    static const std::uint64_t per_second = [] {
        LARGE_INTEGER frequency;
        QueryPerformanceFrequency(&frequency);
        return static_cast<std::uint64_t>(frequency.QuadPart);
    }();
    LARGE_INTEGER ticks;
    QueryPerformanceCounter(&ticks);
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(ticks.QuadPart) * 1'000'000'000 / per_second);
}

// CPU time of the calling thread so far. Its resolution is the clock tick, about 15.6 ms on Windows.
EndUsage thread_usage() {
    FILETIME created, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user)) return {};
    const auto in_ns = [](const FILETIME &time) {
        return (static_cast<std::uint64_t>(time.dwHighDateTime) << 32 | time.dwLowDateTime) * 100;
    };
    return {0, in_ns(user), in_ns(kernel)};
}

EndUsage usage_since(const EndUsage &start, std::uint64_t calls) {
    const EndUsage end = thread_usage();
    return {calls, end.user_ns - start.user_ns, end.system_ns - start.system_ns};
}

std::uint64_t buffer_bytes(const Case &wanted) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(wanted.block_bytes) + wanted.slack_bytes);
}

struct Times {
    std::uint64_t began_ns = 0;
    std::uint64_t ended_ns = 0;
    std::vector<EndUsage> ends;
};

// The study's first program: each block is written and read back. With overlapped calls up to `depth` blocks are in the pipe.
Times one_thread(const Case &wanted, Sender &sender, Receiver &receiver, Guard &guard) {
    guard.register_this_thread();
    const EndUsage before = thread_usage();
    Times times;
    times.began_ns = now_ns();
    std::uint64_t taken = 0;
    for (std::uint64_t sent = 0; sent < wanted.count;) {
        if (guard.stopped() != Stop::None) break;
        sender.begin_block();
        if (++sent - taken == wanted.depth) {
            receiver.take_block();
            ++taken;
        }
    }
    while (taken < wanted.count && guard.stopped() == Stop::None) {
        receiver.take_block();
        ++taken;
    }
    if (guard.stopped() == Stop::None) sender.finish();
    times.ended_ns = now_ns();
    times.ends = {usage_since(before, sender.calls() + receiver.calls())};
    return times;
}

// The study's second program. The clock stops when all blocks are sent and the reading thread has ended.
Times two_threads(const Case &wanted, Sender &sender, Receiver &receiver, Guard &guard) {
    Times times;
    times.ends.resize(2);
    std::uint64_t began_ns[2] = {0, 0};
    std::atomic<unsigned> ready{0};
    std::exception_ptr trouble;
    // Written by the end that fails first, and read when both have ended.
    const auto run_end = [&](std::size_t end, auto &&loop, const auto &calls) {
        guard.register_this_thread();
        const EndUsage before = thread_usage();
        ready.fetch_add(1);
        while (ready.load() < 2) SwitchToThread();
        began_ns[end] = now_ns();
        try {
            loop();
        } catch (...) {
            if (guard.stop_after_failure()) trouble = std::current_exception();
        }
        times.ends[end] = usage_since(before, calls.calls());
    };
    std::thread reader([&] {
        const auto loop = [&] {
            for (std::uint64_t i = 0; i < wanted.count && guard.stopped() == Stop::None; ++i) receiver.take_block();
        };
        run_end(1, loop, receiver);
    });
    const auto loop = [&] {
        for (std::uint64_t i = 0; i < wanted.count && guard.stopped() == Stop::None; ++i) sender.begin_block();
        if (guard.stopped() == Stop::None) sender.finish();
    };
    run_end(0, loop, sender);
    reader.join();
    times.ended_ns = now_ns();
    times.began_ns = std::min(began_ns[0], began_ns[1]);
    if (trouble) std::rethrow_exception(trouble);
    return times;
}

[[noreturn]] void hung(const Case &wanted, std::chrono::milliseconds hangs_after, std::uint64_t blocks) {
    Trouble trouble{"hung",
                    "no progress for " + std::to_string(hangs_after.count()) + " ms after " +
                        std::to_string(blocks) + " blocks",
                    std::nullopt, false};
    if (wanted.threads == 1 && !wanted.overlapped) {
        trouble.message += ": a write of " + std::to_string(wanted.block_bytes) +
                           " bytes found no room in a pipe of " + std::to_string(buffer_bytes(wanted)) +
                           ", and the thread that should read the pipe waits in this write";
        trouble.remedy = "a larger --slack (see --check-24), --overlapped, or --threads 2";
    }
    throw Failed(std::move(trouble));
}

}  // namespace

Outcome run_trial(const Case &wanted, const Tile &tile, std::chrono::milliseconds hangs_after) {
    const std::uint64_t setup_from_ns = now_ns();
    Outcome outcome;
    const Channel channel(wanted.type, wanted.overlapped, buffer_bytes(wanted));
    Guard guard(channel, hangs_after);
    try {
        Sender sender(wanted, channel, guard, tile);
        Receiver receiver(wanted, channel, guard, tile);
        const auto loop = wanted.threads == 1 ? one_thread : two_threads;
        Times times = loop(wanted, sender, receiver, guard);
        if (guard.stopped() == Stop::None) {
            outcome.granted = channel.granted;
            // The clock's resolution may be 100 ns, and a trial of one small block can be shorter.
            outcome.sample.elapsed_ns = std::max<std::uint64_t>(times.ended_ns - times.began_ns, 1);
            outcome.sample.setup_ns = times.began_ns - setup_from_ns;
            outcome.sample.bytes = receiver.bytes();
            outcome.sample.messages = wanted.count;
            outcome.sample.checksum = receiver.checksum();
            outcome.sample.ends = std::move(times.ends);
            return outcome;
        }
    } catch (const std::bad_alloc &) {
        throw Failed({"open", "no memory for blocks of " + std::to_string(wanted.block_bytes) + " bytes",
                      "a smaller --block, or a smaller --depth", false});
    } catch (const Failed &) {
        // A cancelled call fails; the reason for cancelling it is reported below.
        if (guard.stopped() == Stop::None || guard.stopped() == Stop::Failed) throw;
    }
    if (guard.stopped() == Stop::Interrupted) throw Interrupted{};
    hung(wanted, hangs_after, guard.received.blocks.load());
}
