// Sees to it that nothing hangs: cancels the calls of a trial that makes no progress, that failed at the other
// end, or that the user wants to end.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "channel.hpp"

// Set by Ctrl-C; ends the trial under way and the run.
extern std::atomic<bool> interrupted;

enum class Stop { None, Hung, Interrupted, Failed };

class Guard {
  public:
    Guard(const Channel &channel, std::chrono::milliseconds hangs_after);
    // No call of the trial may be under way any more.
    ~Guard();
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

    // Of each thread that makes calls, before its first one. Never throws: the other end waits for this one.
    void enlist_this_thread() noexcept;
    // An end failed: the other one must not wait for it for ever. False where the trial was being stopped already,
    // and the failure may only be what came of that.
    bool give_up() { return stop_at(Stop::Failed); }
    Stop stopped() const { return stop.load(std::memory_order_relaxed); }

    // One counter for each end, a cache line apart, so that counting costs the ends nothing.
    struct alignas(64) Progress {
        std::atomic<std::uint64_t> blocks{0};
        void set(std::uint64_t value) { blocks.store(value, std::memory_order_relaxed); }
    };
    Progress sent, received;

  private:
    void watch();
    void cancel_all();
    bool stop_at(Stop why);

    const Channel &channel;
    const std::chrono::milliseconds hangs_after;
    std::atomic<Stop> stop{Stop::None};
    std::atomic<HANDLE> threads[2] = {nullptr, nullptr};
    Handle over;
    std::thread watcher;
};
