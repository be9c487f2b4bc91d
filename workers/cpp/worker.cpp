// A worker in C++: one end of a pipe, or both. The contract is docs/WORKERS.md; README.md says how the two ways differ.

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::uint64_t PERIOD = 256;
constexpr std::size_t PAGE = 4096;
constexpr std::uint64_t LARGEST = std::numeric_limits<std::int64_t>::max();

struct WrongArguments : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Job {
    std::uint64_t bytes;
    std::uint64_t block;
    std::uint64_t warmup;
    std::string result;
    std::vector<char *> child; // ends with a null pointer; only for `pair`
};

[[noreturn]] void fail_with_errno(const std::string &what) { throw std::system_error(errno, std::generic_category(), what); }

std::int64_t now_ns() {
    // libstdc++ and libc++ take steady_clock from CLOCK_MONOTONIC on Linux.
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- the idiomatic way: streams ----

namespace idiomatic {

using Buffer = std::unique_ptr<std::uint8_t[]>;

Buffer buffer_of(std::size_t bytes) { return std::make_unique_for_overwrite<std::uint8_t[]>(bytes); }

void write_all(std::span<const std::uint8_t> block) {
    std::cout.write(reinterpret_cast<const char *>(block.data()), static_cast<std::streamsize>(block.size()));
}

void flush() {
    if (!std::cout.flush()) {
        fail_with_errno("write");
    }
}

std::size_t read_some(std::span<std::uint8_t> block) {
    std::cin.read(reinterpret_cast<char *>(block.data()), static_cast<std::streamsize>(block.size()));
    if (std::cin.bad()) {
        fail_with_errno("read");
    }
    return static_cast<std::size_t>(std::cin.gcount());
}

std::uint8_t xor_of(std::span<const std::uint8_t> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint8_t{0}, std::bit_xor<std::uint8_t>{});
}

// C++ has no processes; POSIX has fork(2).
pid_t start(const std::vector<char *> &command, int input, int unused) {
    pid_t child = fork();
    if (child < 0) {
        fail_with_errno("fork");
    }
    if (child == 0) {
        dup2(input, STDIN_FILENO);
        close(input);
        close(unused);
        execvp(command[0], command.data());
        std::cerr << "worker: " << command[0] << ": " << std::strerror(errno) << '\n';
        _exit(127);
    }
    return child;
}

} // namespace idiomatic

// ---- the tuned way: read(2) and write(2) on aligned memory ----

namespace tuned {

struct Free {
    void operator()(std::uint8_t *buffer) const { ::operator delete(buffer, std::align_val_t{PAGE}); }
};

using Buffer = std::unique_ptr<std::uint8_t[], Free>;

Buffer buffer_of(std::size_t bytes) {
    return Buffer(static_cast<std::uint8_t *>(::operator new(bytes, std::align_val_t{PAGE})));
}

void write_all(std::span<const std::uint8_t> block) {
    while (!block.empty()) {
        ssize_t written = write(STDOUT_FILENO, block.data(), block.size());
        if (written >= 0) {
            block = block.subspan(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            fail_with_errno("write");
        }
    }
}

void flush() {}

std::size_t read_some(std::span<std::uint8_t> block) {
    for (;;) {
        ssize_t got = read(STDIN_FILENO, block.data(), block.size());
        if (got >= 0) {
            return static_cast<std::size_t>(got);
        }
        if (errno != EINTR) {
            fail_with_errno("read");
        }
    }
}

// Words of 64 bits, which the compiler combines into vectors; then the remaining bytes one by one.
std::uint8_t xor_of(std::span<const std::uint8_t> bytes) {
    const std::uint8_t *aligned = std::assume_aligned<PAGE>(bytes.data());
    const std::size_t words = bytes.size() / sizeof(std::uint64_t);
    std::uint64_t folded = 0;
    for (std::size_t i = 0; i < words; i++) {
        std::uint64_t word;
        std::memcpy(&word, aligned + i * sizeof word, sizeof word);
        folded ^= word;
    }
    folded ^= folded >> 32;
    folded ^= folded >> 16;
    folded ^= folded >> 8;
    return static_cast<std::uint8_t>(folded) ^ idiomatic::xor_of(bytes.subspan(words * sizeof folded));
}

// posix_spawn(3) does not copy this process's page tables as fork(2) does.
pid_t start(const std::vector<char *> &command, int input, int unused) {
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_addclose(&actions, input);
    posix_spawn_file_actions_addclose(&actions, unused);
    errno = posix_spawnp(&child, command[0], &actions, nullptr, command.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno != 0) {
        fail_with_errno(command[0]);
    }
    return child;
}

} // namespace tuned

// ---- the roles, for either way ----

// Appends the line in one write, because the two ends of a pair share the file; a stream does not guarantee that.
void append_result(const Job &job, const std::string &line) {
    int result = open(job.result.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (result < 0 || write(result, line.data(), line.size()) != static_cast<ssize_t>(line.size()) || close(result) != 0) {
        fail_with_errno(job.result);
    }
}

// Writes to standard output and returns the result line.
template <auto buffer_of, auto write_all, auto flush> std::string send_stream(const Job &job) {
    const std::uint64_t block = std::min(job.block, std::max(job.warmup, job.bytes));
    const auto sequence = buffer_of(block + PERIOD);
    std::iota(sequence.get(), sequence.get() + block + PERIOD, std::uint8_t{0});
    std::uint64_t position = 0;
    const auto write_part = [&](std::uint64_t bytes) {
        for (const std::uint64_t end = position + bytes; position < end;) {
            const std::uint64_t length = std::min(block, end - position);
            write_all({sequence.get() + position % PERIOD, length});
            position += length;
        }
        flush();
    };
    const auto ready_ns = now_ns();
    write_part(job.warmup);
    const auto began_ns = now_ns();
    write_part(job.bytes);
    return "send bytes=" + std::to_string(position) + " ready_ns=" + std::to_string(ready_ns) +
           " began_ns=" + std::to_string(began_ns) + "\n";
}

template <auto buffer_of, auto read_some, auto xor_of> void run_recv(const Job &job) {
    const auto block = buffer_of(job.block);
    const std::uint64_t expected = job.warmup + job.bytes;
    std::uint64_t received = 0;
    std::uint8_t folded = 0;
    std::optional<std::int64_t> ended_ns;
    const auto ready_ns = now_ns();
    for (std::size_t got = 1; got != 0;) {
        got = read_some({block.get(), job.block});
        folded ^= xor_of({block.get(), got});
        received += got;
        if (!ended_ns && (received >= expected || got == 0)) {
            ended_ns = now_ns();
        }
    }
    append_result(job, "recv bytes=" + std::to_string(received) + " xor=" + std::to_string(folded) +
                           " ready_ns=" + std::to_string(ready_ns) + " ended_ns=" + std::to_string(*ended_ns) + "\n");
    if (received != expected) {
        throw std::runtime_error("received " + std::to_string(received) + " bytes instead of " + std::to_string(expected));
    }
}

// The pipe replaces standard output, which a parent does not use, so that both roles send in the same way.
template <auto start, auto send> void run_pair(const Job &job) {
    int ends[2];
    if (pipe(ends) != 0) {
        fail_with_errno("pipe");
    }
    const pid_t child = start(job.child, ends[0], ends[1]);
    close(ends[0]);
    if (dup2(ends[1], STDOUT_FILENO) < 0) {
        fail_with_errno("dup2");
    }
    close(ends[1]);
    const std::string line = send(job);
    close(STDOUT_FILENO);
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            fail_with_errno("waitpid");
        }
    }
    append_result(job, line);
    if (WIFSIGNALED(status)) {
        throw std::runtime_error("the child ended by signal " + std::to_string(WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) != 0) {
        throw std::runtime_error("the child exited with status " + std::to_string(WEXITSTATUS(status)));
    }
}

// ---- the command line ----

std::uint64_t number(std::string_view name, std::string_view text, std::uint64_t smallest) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    if (error != std::errc{} || end != text.end() || value < smallest || value > LARGEST) {
        throw WrongArguments(std::string(name) + " is \"" + std::string(text) + "\", not a whole number from " +
                             std::to_string(smallest) + " to 2^63 - 1");
    }
    return value;
}

template <auto buffer_of, auto write_all, auto flush, auto read_some, auto xor_of, auto start>
void run(std::string_view role, const Job &job) {
    constexpr auto send = send_stream<buffer_of, write_all, flush>;
    if (role == "pair") {
        run_pair<start, send>(job);
    } else if (role == "send") {
        append_result(job, send(job));
    } else {
        run_recv<buffer_of, read_some, xor_of>(job);
    }
}

void work(std::span<char *> arguments) {
    if (arguments.size() < 7) {
        throw WrongArguments("expected: idiomatic|tuned send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]");
    }
    const std::string_view way = arguments[1];
    const std::string_view role = arguments[2];
    if (way != "idiomatic" && way != "tuned") {
        throw WrongArguments("the way is \"" + std::string(way) + "\", not idiomatic or tuned");
    }
    if (role != "send" && role != "recv" && role != "pair") {
        throw WrongArguments("the role is \"" + std::string(role) + "\", not send, recv or pair");
    }
    Job job{number("BYTES", arguments[3], 0), number("BLOCK", arguments[4], 1), number("WARMUP", arguments[5], 0),
            arguments[6], {arguments.begin() + 7, arguments.end()}};
    if (job.bytes + job.warmup > LARGEST) {
        throw WrongArguments("BYTES and WARMUP together exceed 2^63 - 1");
    }
    if ((role == "pair") == job.child.empty()) {
        throw WrongArguments(role == "pair" ? "pair needs the command of its child" : "an argument too many");
    }
    job.child.push_back(nullptr);
    std::ios::sync_with_stdio(false); // as textbooks advise: otherwise streams go through the buffers of C
    if (way == "idiomatic") {
        using namespace idiomatic;
        run<&idiomatic::buffer_of, &write_all, &flush, &read_some, &xor_of, &start>(role, job);
    } else {
        using namespace tuned;
        run<&tuned::buffer_of, &write_all, &flush, &read_some, &xor_of, &start>(role, job);
    }
}

} // namespace

int main(int count, char **arguments) {
    try {
        work({arguments, static_cast<std::size_t>(count)});
        return 0;
    } catch (const WrongArguments &error) {
        std::cerr << "worker: " << error.what() << '\n';
        return 2;
    } catch (const std::bad_alloc &) {
        std::cerr << "worker: no memory for the block\n";
        return 1;
    } catch (const std::exception &error) {
        std::cerr << "worker: " << error.what() << '\n';
        return 1;
    }
}
