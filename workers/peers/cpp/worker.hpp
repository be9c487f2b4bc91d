// The common code of the C++ peers: command line, stream, check and result lines. See docs/WORKERS.md.
#pragma once

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace worker {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint64_t PERIOD = 256;
// Largest size of a slot in a queue. The sequence is longer than a block by this, so that a whole slot can be copied.
constexpr std::size_t SLOT_MAX = 64;
constexpr int WRONG_ARGUMENTS = 2;

// Ends the program with one sentence on standard error. It calls _exit(2), because threads of a library may run.
[[noreturn, gnu::format(printf, 2, 3)]] inline void fail(int status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    std::fputs("worker: ", stderr);
    std::vfprintf(stderr, format, values);
    std::fputc('\n', stderr);
    va_end(values);
    _exit(status);
}

inline std::uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::uint64_t(time.tv_sec) * 1'000'000'000 + std::uint64_t(time.tv_nsec);
}

struct Job {
    std::string role;
    std::uint64_t bytes, block, warmup;
    std::string result;
    char **child;       // ends with a null pointer; empty where the other end is not this program's child
    std::string folder; // TMPDIR: private, the same for both ends

    std::uint64_t total() const { return warmup + bytes; }
    bool is_round_trips() const { return role == "trip" || role == "echo"; }
    bool is_first() const { return role != "recv" && role != "echo"; }
    // Length of the longest message.
    std::size_t message_max() const { return std::min(block, std::max({warmup, bytes, std::uint64_t(1)})); }
    // Messages that a queue holds: 1 MiB of them, at least 16 and at most 1024.
    std::size_t depth() const { return std::clamp<std::size_t>((1 << 20) / message_max(), 16, 1024); }

    std::string path(const char *name) const { return folder + "/" + name; }
    // Creates a file by which the other end sees that this end has reached the step.
    void reach(const char *step) const {
        int file = open(path(step).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || close(file) != 0) {
            fail(1, "%s: %s", path(step).c_str(), strerror(errno));
        }
    }
    void wait_for(const char *step) const {
        while (access(path(step).c_str(), F_OK) != 0) {
            timespec pause{0, 100'000};
            nanosleep(&pause, nullptr);
        }
    }
    // Appends the line in one write, because the two ends share the file.
    [[gnu::format(printf, 2, 3)]] void append_result(const char *format, ...) const {
        char line[160];
        va_list values;
        va_start(values, format);
        int length = std::vsnprintf(line, sizeof line, format, values);
        va_end(values);
        int file = open(result.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0 || write(file, line, std::size_t(length)) != length || close(file) != 0) {
            fail(1, "%s: %s", result.c_str(), strerror(errno));
        }
    }
};

// Busy waiting, for queues that cannot block: it spins at first, then yields the CPU.
class Backoff {
    unsigned tries = 0;

  public:
    void pause() {
        if (++tries < 1000) {
            __builtin_ia32_pause();
        } else {
            sched_yield();
        }
    }
};

// Computes the XOR of all bytes, in words that are reduced to a byte at the end.
class Xor {
    std::uint64_t folded = 0;

    template <class Word> void fold(const std::uint8_t *bytes) {
        Word word;
        std::memcpy(&word, bytes, sizeof word);
        folded ^= word;
    }

  public:
    std::uint64_t received = 0;

    void add(Bytes bytes) {
        received += bytes.size();
        const std::uint8_t *at = bytes.data(), *end = at + bytes.size();
        for (; end - at >= 8; at += 8) {
            fold<std::uint64_t>(at);
        }
        if (end - at >= 4) {
            fold<std::uint32_t>(at);
            at += 4;
        }
        for (; at < end; at++) {
            folded ^= *at;
        }
    }
    unsigned value() const {
        std::uint64_t words = folded ^ folded >> 32;
        words ^= words >> 16;
        return unsigned((words ^ words >> 8) & 0xff);
    }
};

// Calls `each` with the position and the length of every block of the `bytes` bytes from position `from` on; returns the new position.
template <class Each> std::uint64_t for_blocks(const Job &job, std::uint64_t from, std::uint64_t bytes, Each each) {
    std::uint64_t position = from, end = from + bytes;
    while (position < end) {
        std::size_t length = std::min(job.block, end - position);
        each(position, length);
        position += length;
    }
    return position;
}

inline std::vector<std::uint8_t> sequence_of(const Job &job) {
    std::vector<std::uint8_t> sequence(job.message_max() + PERIOD + SLOT_MAX);
    for (std::size_t i = 0; i < sequence.size(); i++) {
        sequence[i] = std::uint8_t(i);
    }
    return sequence;
}

inline void check_count(const Job &job, const Xor &arrived) {
    if (arrived.received != job.total()) {
        fail(1, "received %" PRIu64 " bytes instead of %" PRIu64, arrived.received, job.total());
    }
}

// A channel has `send(Bytes)` and `Bytes receive(length)`: the next message, which has this length unless something was lost, valid
// until the next call of receive; and `flush()`, after the last send.
template <class Channel> void send(const Job &job, Channel &channel, std::thread child) {
    auto sequence = sequence_of(job);
    bool comes_back = job.is_round_trips();
    Xor arrived;
    auto one = [&](std::uint64_t position, std::size_t length) {
        channel.send(Bytes(sequence.data() + position % PERIOD, length));
        if (comes_back) {
            arrived.add(channel.receive(length));
        }
    };
    std::uint64_t ready_ns = now_ns();
    std::uint64_t sent = for_blocks(job, 0, job.warmup, one);
    std::uint64_t began_ns = now_ns();
    sent = for_blocks(job, sent, job.bytes, one);
    std::uint64_t ended_ns = now_ns();
    channel.flush();
    if (comes_back) {
        job.append_result("recv bytes=%" PRIu64 " xor=%u ready_ns=%" PRIu64 " ended_ns=%" PRIu64 "\n", arrived.received,
                          arrived.value(), ready_ns, ended_ns);
        check_count(job, arrived);
        job.reach("received");
    }
    // Messages that are still queued when this process ends would be lost.
    job.wait_for("received");
    if (child.joinable()) {
        child.join();
    }
    job.append_result("send bytes=%" PRIu64 " ready_ns=%" PRIu64 " began_ns=%" PRIu64 "\n", sent, ready_ns, began_ns);
}

template <class Channel> void receive(const Job &job, Channel &channel) {
    bool goes_back = job.is_round_trips();
    Xor arrived;
    std::uint64_t ready_ns = now_ns();
    auto one = [&](std::uint64_t, std::size_t length) {
        Bytes message = channel.receive(length);
        if (goes_back) {
            channel.send(message);
        } else {
            arrived.add(message);
        }
    };
    for_blocks(job, for_blocks(job, 0, job.warmup, one), job.bytes, one);
    std::uint64_t ended_ns = now_ns();
    channel.flush();
    if (goes_back) {
        job.wait_for("received");
        return;
    }
    job.append_result("recv bytes=%" PRIu64 " xor=%u ready_ns=%" PRIu64 " ended_ns=%" PRIu64 "\n", arrived.received,
                      arrived.value(), ready_ns, ended_ns);
    job.reach("received");
    check_count(job, arrived);
}

// Starts the other end and waits for it. If it fails, this program ends, because its messages would never be received.
inline void await_child(char **command) {
    pid_t child;
    int error = posix_spawnp(&child, command[0], nullptr, nullptr, command, environ);
    if (error != 0) {
        fail(1, "%s: %s", command[0], strerror(error));
    }
    int status;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            fail(1, "waitpid: %s", strerror(errno));
        }
    }
    if (WIFSIGNALED(status)) {
        fail(1, "%s ended by signal %d", command[0], WTERMSIG(status));
    }
    if (WEXITSTATUS(status) != 0) {
        fail(1, "%s exited with status %d", command[0], WEXITSTATUS(status));
    }
}

inline std::uint64_t number(const char *name, const char *text, std::uint64_t smallest) {
    std::uint64_t value = 0;
    const char *end = text + std::strlen(text);
    auto [stopped, error] = std::from_chars(text, end, value);
    if (error != std::errc() || stopped != end || value < smallest || value > INT64_MAX) {
        fail(WRONG_ARGUMENTS, "%s is \"%s\", not a whole number from %" PRIu64 " to 2^63 - 1", name, text, smallest);
    }
    return value;
}

// Reads ROLE BYTES BLOCK WARMUP RESULT [CHILD...]; `is_alone`: the program runs both ends, without a child.
inline Job parse(int count, char **arguments, bool is_alone = false) {
    if (count < 6) {
        fail(WRONG_ARGUMENTS, "expected: send|recv|pair|trip|echo BYTES BLOCK WARMUP RESULT [CHILD...]");
    }
    const char *folder = getenv("TMPDIR");
    Job job{arguments[1],
            number("BYTES", arguments[2], 1),
            number("BLOCK", arguments[3], 1),
            number("WARMUP", arguments[4], 0),
            arguments[5],
            arguments + 6,
            folder == nullptr ? "/tmp" : folder};
    if (job.total() > INT64_MAX) {
        fail(WRONG_ARGUMENTS, "BYTES and WARMUP together exceed 2^63 - 1");
    }
    bool starts_other = job.role == "pair" || job.role == "trip";
    if (!starts_other && (is_alone || (job.role != "send" && job.role != "recv" && job.role != "echo"))) {
        fail(WRONG_ARGUMENTS, "the role is \"%s\", not %s", job.role.c_str(),
             is_alone ? "pair or trip" : "send, recv, pair, trip or echo");
    }
    if ((starts_other && !is_alone) != (count > 6)) {
        fail(WRONG_ARGUMENTS, "%s", is_alone ? "this program runs both ends: CHILD is not allowed"
                                             : "pair and trip need the command of their child; no other role has one");
    }
    return job;
}

// Runs one end over `Channel(job)`.
template <class Channel> int run_end(const Job &job) {
    std::thread child;
    if (*job.child != nullptr) {
        child = std::thread(await_child, job.child);
    }
    Channel channel(job);
    if (job.is_first()) {
        send(job, channel, std::move(child));
    } else {
        receive(job, channel);
    }
    // Threads of libraries end with the process: both ends are done by now.
    std::fflush(nullptr);
    _exit(0);
}

} // namespace worker
