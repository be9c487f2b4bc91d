/*
 * One byte to and fro over two pipes of default size, between two processes.
 *
 *   pipe_pingpong ROUND_TRIPS ASKER_CPU ANSWERER_CPU total|each
 *
 * total: the clock is read before the first and after the last round trip.
 * each: the clock is read after every round trip too, which is what a distribution costs; the median of the
 * round trips is then known.
 * Prints "ROUND_TRIPS ELAPSED_NS P50_NS" (P50_NS is 0 under `total`).
 */
#include "common.h"

static void put(int fd, const unsigned char *byte) {
    ssize_t wrote;
    do
        wrote = write(fd, byte, 1);
    while (wrote < 0 && errno == EINTR);
    if (wrote != 1)
        die("write");
}

static void take(int fd, unsigned char *byte) {
    ssize_t got;
    do
        got = read(fd, byte, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1)
        return;
    if (got < 0)
        die("read");
    fprintf(stderr, "the other end ended early\n");
    exit(1);
}

static void answer_all(int in, int out, uint64_t round_trips, struct shared *shared) {
    unsigned char byte = 0xA5;
    barrier(shared);
    for (uint64_t i = 0; i < round_trips; i++) {
        take(in, &byte);
        put(out, &byte);
    }
}

/* `times_ns` has room for every round trip, or is null. */
static void ask_all(int in, int out, uint64_t round_trips, uint64_t *times_ns, struct shared *shared) {
    unsigned char byte = 0xA5;
    barrier(shared);
    shared->started_ns = now_ns();
    uint64_t before_ns = shared->started_ns;
    for (uint64_t i = 0; i < round_trips; i++) {
        put(out, &byte);
        take(in, &byte);
        if (times_ns != NULL) {
            uint64_t after_ns = now_ns();
            times_ns[i] = after_ns - before_ns;
            before_ns = after_ns;
        }
    }
    shared->finished_ns = now_ns();
}

static int by_size(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    if (argc != 5 || (strcmp(argv[4], "total") != 0 && strcmp(argv[4], "each") != 0)) {
        fprintf(stderr, "usage: pipe_pingpong ROUND_TRIPS ASKER_CPU ANSWERER_CPU total|each\n");
        return 2;
    }
    uint64_t round_trips = number(argv[1]);
    uint64_t asker_cpu = number(argv[2]), answerer_cpu = number(argv[3]);
    if (round_trips == 0) {
        fprintf(stderr, "at least one round trip\n");
        return 2;
    }

    struct shared *shared = map_shared();
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0)
        die("pipe");

    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        settle_on(answerer_cpu);
        answer_all(there[0], back[1], round_trips, shared);
        exit(0);
    }
    close(there[0]);
    close(back[1]);
    settle_on(asker_cpu);
    uint64_t *times_ns = NULL;
    if (strcmp(argv[4], "each") == 0)
        times_ns = (uint64_t *)new_block(round_trips * sizeof *times_ns);
    ask_all(back[0], there[1], round_trips, times_ns, shared);
    reap(child);

    uint64_t p50_ns = 0;
    if (times_ns != NULL) {
        qsort(times_ns, round_trips, sizeof *times_ns, by_size);
        p50_ns = times_ns[round_trips / 2];
    }
    printf("%llu %llu %llu\n", (unsigned long long)round_trips,
           (unsigned long long)(shared->finished_ns - shared->started_ns), (unsigned long long)p50_ns);
    return 0;
}
