// A worker whose ends meet over ZeroMQ: a PUSH and a PULL socket of libzmq, over ipc. What is asked of it is in docs/WORKERS.md.

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
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
#include <zmq.h>

extern char **environ;

enum { PERIOD = 256, PATH_BYTES = 4096, WRONG_ARGUMENTS = 2, QUEUED_MESSAGES = 16 };

struct job {
    uint64_t bytes;
    uint64_t block;
    uint64_t warmup;
    const char *result;
    char **child;       // ends with NULL; only for `pair`
    const char *folder; // a private folder, the same for both ends
};

// Ends the program with one sentence on standard error.
__attribute__((noreturn, format(printf, 2, 3))) static void fail(int status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("worker: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    // Not exit(3): the threads of libzmq are running.
    _exit(status);
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

// ---- the two ends find each other ----

static void path_of(char path[PATH_BYTES], const struct job *job, const char *before, const char *name) {
    if (snprintf(path, PATH_BYTES, "%s%s/%s", before, job->folder, name) >= PATH_BYTES) {
        fail(1, "the name of TMPDIR is too long");
    }
}

// Tells the other end by a file that this one has come so far.
static void reach(const struct job *job, const char *step) {
    char path[PATH_BYTES];
    path_of(path, job, "", step);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || close(file) != 0) {
        fail(1, "%s: %s", path, strerror(errno));
    }
}

static void wait_for(const struct job *job, const char *step) {
    char path[PATH_BYTES];
    path_of(path, job, "", step);
    while (access(path, F_OK) != 0) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static void *open_socket(const struct job *job, int kind, int (*attach)(void *, const char *)) {
    void *context = zmq_ctx_new();
    void *socket = context == NULL ? NULL : zmq_socket(context, kind);
    if (socket == NULL) {
        fail(1, "zmq_socket: %s", zmq_strerror(zmq_errno()));
    }
    const int depth = QUEUED_MESSAGES;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &depth, sizeof depth);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &depth, sizeof depth);
    char endpoint[PATH_BYTES];
    path_of(endpoint, job, "ipc://", "socket");
    if (attach(socket, endpoint) != 0) {
        fail(1, "%s: %s", endpoint, zmq_strerror(zmq_errno()));
    }
    return socket;
}

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

// ---- the roles ----

// Sends `bytes` from position `from` on, a message for each block; returns the position reached.
static uint64_t send_part(void *socket, const uint8_t *sequence, uint64_t block, uint64_t from, uint64_t bytes) {
    uint64_t position = from;
    while (bytes > 0) {
        uint64_t length = bytes < block ? bytes : block;
        while (zmq_send(socket, sequence + position % PERIOD, length, 0) < 0) {
            if (zmq_errno() != EINTR) {
                fail(1, "zmq_send: %s", zmq_strerror(zmq_errno()));
            }
        }
        position += length;
        bytes -= length;
    }
    return position;
}

static void run_send(const struct job *job, const pthread_t *child) {
    uint64_t largest = job->warmup > job->bytes ? job->warmup : job->bytes;
    uint64_t block = job->block < largest ? job->block : largest;
    uint8_t *sequence = malloc(block + PERIOD);
    if (sequence == NULL) {
        fail(1, "no memory for a block of %" PRIu64 " bytes", block);
    }
    for (uint64_t i = 0; i < block + PERIOD; i++) {
        sequence[i] = (uint8_t)i;
    }
    wait_for(job, "bound");
    void *socket = open_socket(job, ZMQ_PUSH, zmq_connect);
    uint64_t ready_ns = now_ns();
    uint64_t sent = send_part(socket, sequence, block, 0, job->warmup);
    uint64_t began_ns = now_ns();
    sent = send_part(socket, sequence, block, sent, job->bytes);
    // What is queued when this process ends would be lost.
    wait_for(job, "received");
    if (child != NULL) {
        pthread_join(*child, NULL);
    }
    append_result(job, "send bytes=%" PRIu64 " ready_ns=%" PRIu64 " began_ns=%" PRIu64 "\n", sent, ready_ns, began_ns);
}

// Words of 64 bits, which the compiler turns into vectors, and what is left over byte by byte.
static uint8_t xor_of(const uint8_t *bytes, size_t length) {
    uint64_t folded = 0;
    size_t at = 0;
    for (; at + sizeof folded <= length; at += sizeof folded) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        folded ^= word;
    }
    uint8_t xor = 0;
    for (; at < length; at++) {
        xor ^= bytes[at];
    }
    for (size_t byte = 0; byte < sizeof folded; byte++) {
        xor ^= (uint8_t)(folded >> (8 * byte));
    }
    return xor;
}

static void run_recv(const struct job *job) {
    uint64_t expected = job->warmup + job->bytes;
    uint64_t received = 0;
    uint8_t xor = 0;
    void *socket = open_socket(job, ZMQ_PULL, zmq_bind);
    zmq_msg_t message;
    zmq_msg_init(&message);
    uint64_t ready_ns = now_ns();
    reach(job, "bound");
    while (received < expected) {
        if (zmq_msg_recv(&message, socket, 0) < 0) {
            if (zmq_errno() == EINTR) {
                continue;
            }
            fail(1, "zmq_msg_recv: %s", zmq_strerror(zmq_errno()));
        }
        xor ^= xor_of(zmq_msg_data(&message), zmq_msg_size(&message));
        received += zmq_msg_size(&message);
    }
    uint64_t ended_ns = now_ns();
    append_result(job, "recv bytes=%" PRIu64 " xor=%u ready_ns=%" PRIu64 " ended_ns=%" PRIu64 "\n", received, xor, ready_ns,
                  ended_ns);
    reach(job, "received");
    if (received != expected) {
        fail(1, "received %" PRIu64 " bytes instead of %" PRIu64, received, expected);
    }
}

// Waits for the receiver. Without it nothing would ever be taken: where it fails, this program ends.
static void *await_child(void *of) {
    char **command = ((const struct job *)of)->child;
    pid_t child;
    int error = posix_spawnp(&child, command[0], NULL, NULL, command, environ);
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
    return NULL;
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
    if (count < 6) {
        fail(WRONG_ARGUMENTS, "expected: send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]");
    }
    const char *folder = getenv("TMPDIR");
    struct job job = {.result = arguments[5], .child = arguments + 6, .folder = folder == NULL ? "/tmp" : folder};
    job.bytes = number("BYTES", arguments[2], 0);
    job.block = number("BLOCK", arguments[3], 1);
    job.warmup = number("WARMUP", arguments[4], 0);
    if (job.bytes + job.warmup > INT64_MAX) {
        fail(WRONG_ARGUMENTS, "BYTES and WARMUP together exceed 2^63 - 1");
    }
    const char *role = arguments[1];
    bool pair = strcmp(role, "pair") == 0;
    if (pair != (count > 6)) {
        fail(WRONG_ARGUMENTS, "pair needs the command of its child, and nothing else has one");
    }
    if (strcmp(role, "recv") == 0) {
        run_recv(&job);
    } else if (strcmp(role, "send") == 0) {
        run_send(&job, NULL);
    } else if (pair) {
        pthread_t child;
        int error = pthread_create(&child, NULL, await_child, &job);
        if (error != 0) {
            fail(1, "pthread_create: %s", strerror(error));
        }
        run_send(&job, &child);
    } else {
        fail(WRONG_ARGUMENTS, "the role is \"%s\", not send, recv or pair", role);
    }
    // Contexts and sockets end with the process: both ends have said that they are done.
    fflush(NULL);
    _exit(0);
}
