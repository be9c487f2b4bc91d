// A worker in C: one end of a pipe, or both. docs/WORKERS.md describes its arguments and results, README.md its two variants.

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { PERIOD = 256, PAGE = 4096, WRONG_ARGUMENTS = 2 };

struct job {
    bool tuned;
    uint64_t bytes;
    uint64_t block;
    uint64_t warmup;
    const char *result;
    char **child; // ends with NULL; only for `pair`
};

// Ends the program with one sentence on standard error.
__attribute__((noreturn, format(printf, 2, 3))) static void fail(int status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("worker: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    exit(status);
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

// ---- the ends ----

// A buffer of `bytes` rounded up to whole pages; in the tuned variant it begins at a page boundary, so that vectors and copies are aligned.
static uint8_t *buffer_of(const struct job *job, uint64_t bytes) {
    size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
    uint8_t *buffer = job->tuned ? aligned_alloc(PAGE, rounded) : malloc(rounded);
    if (buffer == NULL) {
        fail(1, "no memory for a block of %" PRIu64 " bytes", job->block);
    }
    return buffer;
}

static void write_all(int output, const uint8_t *block, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(output, block, bytes);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail(1, "write: %s", strerror(errno));
        }
        block += written;
        bytes -= (size_t)written;
    }
}

// Writes `bytes` bytes from position `from` on in blocks, of which the last may be shorter; returns the new position.
static uint64_t write_part(int output, const uint8_t *sequence, uint64_t block, uint64_t from, uint64_t bytes) {
    uint64_t position = from;
    while (bytes > 0) {
        uint64_t length = bytes < block ? bytes : block;
        write_all(output, sequence + position % PERIOD, length);
        position += length;
        bytes -= length;
    }
    return position;
}

static uint8_t xor_idiomatic(const uint8_t *bytes, size_t length) {
    uint8_t xor = 0;
    for (size_t i = 0; i < length; i++) {
        xor ^= bytes[i];
    }
    return xor;
}

// Words of 64 bits, which the compiler vectorises; the remaining bytes one by one.
static uint8_t xor_tuned(const uint8_t *bytes, size_t length) {
    const uint8_t *aligned = __builtin_assume_aligned(bytes, PAGE);
    const size_t words = length / sizeof(uint64_t);
    uint64_t folded = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, aligned + i * sizeof word, sizeof word);
        folded ^= word;
    }
    folded ^= folded >> 32;
    folded ^= folded >> 16;
    folded ^= folded >> 8;
    return (uint8_t)folded ^ xor_idiomatic(bytes + words * sizeof folded, length % sizeof folded);
}

// ---- the roles ----

// Appends the line in one write, because the two ends of a pair share the file.
__attribute__((format(printf, 2, 3))) static void append_result(const struct job *job, const char *format, ...) {
    char line[160];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    int result = open(job->result, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (result < 0 || write(result, line, (size_t)length) != length || close(result) != 0) {
        fail(1, "%s: %s", job->result, strerror(errno));
    }
}

struct sent {
    uint64_t bytes;
    uint64_t ready_ns;
    uint64_t began_ns;
};

static struct sent send_stream(const struct job *job, int output) {
    uint64_t largest = job->warmup > job->bytes ? job->warmup : job->bytes;
    uint64_t block = job->block < largest ? job->block : largest;
    uint8_t *sequence = buffer_of(job, block + PERIOD);
    for (uint64_t i = 0; i < block + PERIOD; i++) {
        sequence[i] = (uint8_t)i;
    }
    struct sent sent = {.ready_ns = now_ns()};
    sent.bytes = write_part(output, sequence, block, 0, job->warmup);
    sent.began_ns = now_ns();
    sent.bytes = write_part(output, sequence, block, sent.bytes, job->bytes);
    free(sequence);
    return sent;
}

static void append_sent(const struct job *job, struct sent sent) {
    append_result(job, "send bytes=%" PRIu64 " ready_ns=%" PRIu64 " began_ns=%" PRIu64 "\n", sent.bytes, sent.ready_ns,
                  sent.began_ns);
}

static int run_send(const struct job *job) {
    append_sent(job, send_stream(job, STDOUT_FILENO));
    return 0;
}

static int run_recv(const struct job *job) {
    uint8_t *block = buffer_of(job, job->block);
    uint8_t (*xor_of)(const uint8_t *, size_t) = job->tuned ? xor_tuned : xor_idiomatic;
    uint64_t expected = job->warmup + job->bytes;
    uint64_t received = 0;
    uint64_t ended_ns = 0;
    uint8_t xor = 0;
    uint64_t ready_ns = now_ns();
    for (;;) {
        ssize_t got = read(STDIN_FILENO, block, job->block);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail(1, "read: %s", strerror(errno));
        }
        xor ^= xor_of(block, (size_t)got);
        received += (uint64_t)got;
        if (ended_ns == 0 && (received >= expected || got == 0)) {
            ended_ns = now_ns();
        }
        if (got == 0) {
            break;
        }
    }
    free(block);
    append_result(job, "recv bytes=%" PRIu64 " xor=%u ready_ns=%" PRIu64 " ended_ns=%" PRIu64 "\n", received, xor, ready_ns,
                  ended_ns);
    if (received != expected) {
        fail(1, "received %" PRIu64 " bytes instead of %" PRIu64, received, expected);
    }
    return 0;
}

static pid_t start_idiomatic(char **command, const int ends[2]) {
    pid_t child = fork();
    if (child < 0) {
        fail(1, "fork: %s", strerror(errno));
    }
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(command[0], command);
        fprintf(stderr, "worker: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    return child;
}

// posix_spawn(3) does not copy this process's page tables as fork(2) does.
static pid_t start_tuned(char **command, const int ends[2]) {
    pid_t child;
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_addclose(&actions, ends[0]);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_addclose(&actions, ends[1]);
    }
    if (error == 0) {
        error = posix_spawnp(&child, command[0], &actions, NULL, command, environ);
    }
    if (error != 0) {
        fail(1, "%s: %s", command[0], strerror(error));
    }
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static int run_pair(const struct job *job) {
    int ends[2];
    if (pipe(ends) != 0) {
        fail(1, "pipe: %s", strerror(errno));
    }
    pid_t child = job->tuned ? start_tuned(job->child, ends) : start_idiomatic(job->child, ends);
    close(ends[0]);
    struct sent sent = send_stream(job, ends[1]);
    close(ends[1]);
    int status;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            fail(1, "waitpid: %s", strerror(errno));
        }
    }
    append_sent(job, sent);
    if (WIFSIGNALED(status)) {
        fail(1, "%s ended by signal %d", job->child[0], WTERMSIG(status));
    }
    if (WEXITSTATUS(status) != 0) {
        fail(1, "%s exited with status %d", job->child[0], WEXITSTATUS(status));
    }
    return 0;
}

// ---- the command line ----

static uint64_t number(const char *name, const char *text, uint64_t smallest) {
    uint64_t value = 0;
    bool valid = *text != '\0';
    for (const char *digit = text; valid && *digit != '\0'; digit++) {
        valid = *digit >= '0' && *digit <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
                !__builtin_add_overflow(value, (uint64_t)(*digit - '0'), &value);
    }
    if (!valid || value < smallest || value > INT64_MAX) {
        fail(WRONG_ARGUMENTS, "%s is \"%s\", not a whole number from %" PRIu64 " to 2^63 - 1", name, text, smallest);
    }
    return value;
}

int main(int count, char **arguments) {
    if (count < 7) {
        fail(WRONG_ARGUMENTS, "expected: idiomatic|tuned send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]");
    }
    struct job job = {.tuned = strcmp(arguments[1], "tuned") == 0, .result = arguments[6], .child = arguments + 7};
    if (!job.tuned && strcmp(arguments[1], "idiomatic") != 0) {
        fail(WRONG_ARGUMENTS, "the way is \"%s\", not idiomatic or tuned", arguments[1]);
    }
    job.bytes = number("BYTES", arguments[3], 0);
    job.block = number("BLOCK", arguments[4], 1);
    job.warmup = number("WARMUP", arguments[5], 0);
    if (job.bytes + job.warmup > INT64_MAX) {
        fail(WRONG_ARGUMENTS, "BYTES and WARMUP together exceed 2^63 - 1");
    }
    const char *role = arguments[2];
    bool pair = strcmp(role, "pair") == 0;
    if (pair != (count > 7)) {
        fail(WRONG_ARGUMENTS, pair ? "pair needs the command of its child" : "\"%s\" is an argument too many", arguments[7]);
    }
    if (pair) {
        return run_pair(&job);
    }
    if (strcmp(role, "send") == 0) {
        return run_send(&job);
    }
    if (strcmp(role, "recv") == 0) {
        return run_recv(&job);
    }
    fail(WRONG_ARGUMENTS, "the role is \"%s\", not send, recv or pair", role);
}
