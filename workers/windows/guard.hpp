// Keeps trials from hanging: cancels the calls of a trial that makes no progress, of which the other end failed, or
// that the user wants to end.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "channel.hpp"

// Set by Ctrl-C; ends the current trial and the run.
extern std::atomic<bool> interrupted;

enum class Stop { None, Hung, Interrupted, Failed };

class Guard {
  public:
    Guard(const Channel &channel, std::chrono::milliseconds hangs_after);
    // The trial's calls must have returned.
    ~Guard();
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

    // Makes the calling thread's calls cancellable; each thread calls it before its first call. Never throws: the other end
    // waits for this one.
    void register_this_thread() noexcept;
    // Stops the trial because an end failed: the other one would wait for it for ever. False if the trial was already
    // being stopped, which may have caused the failure.
    bool stop_after_failure() { return stop_at(Stop::Failed); }
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
    Handle trial_ended;
    std::thread watcher;
};
