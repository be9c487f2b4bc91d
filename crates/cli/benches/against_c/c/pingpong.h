/*
 * Round trips between two ends, whatever they pass to each other. The program that includes this says what that is:
 *
 *   struct ends                                  what one side holds to reach the other and to be reached
 *   void open_ends(const char *kind, struct ends *asker, struct ends *answerer)
 *   void put(struct ends *), void take(struct ends *)
 *
 * so that put and take are compiled into the loops. ENDS_ARE_THREADS: two threads, not two processes.
 * MEET(ends, process): what a side does once it knows the other's process.
 *
 *   PROGRAM KIND ROUND_TRIPS ASKER_CPU ANSWERER_CPU total|each
 *
 * total: the clock is read before the first and after the last round trip.
 * each: the clock is read after every round trip too, which is what a distribution costs; the median of the
 * round trips is then known.
 * Prints "ROUND_TRIPS ELAPSED_NS P50_NS" (P50_NS is 0 under `total`).
 */
#ifndef PINGPONG_H
#define PINGPONG_H

#include "common.h"
#ifdef ENDS_ARE_THREADS
#include <pthread.h>
#endif

#ifndef MEET
#define MEET(ends, process) ((void)(process))
#endif

/* What the answering side needs to know. */
struct answerer {
    struct ends ends;
    uint64_t round_trips;
    uint64_t cpu;
    int asker; /* the other side's process */
    struct shared *shared;
};

static void *answer_all(void *argument) {
    struct answerer *self = argument;
    settle_on(self->cpu);
    MEET(&self->ends, self->asker);
    barrier(self->shared);
    for (uint64_t i = 0; i < self->round_trips; i++) {
        take(&self->ends);
        put(&self->ends);
    }
    return NULL;
}

/* `times_ns` has room for every round trip, or is null. */
static void ask_all(struct ends *ends, uint64_t round_trips, uint64_t *times_ns, struct shared *shared) {
    barrier(shared);
    shared->started_ns = now_ns();
    uint64_t before_ns = shared->started_ns;
    for (uint64_t i = 0; i < round_trips; i++) {
        put(ends);
        take(ends);
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
    if (argc != 6 || (strcmp(argv[5], "total") != 0 && strcmp(argv[5], "each") != 0)) {
        fprintf(stderr, "usage: %s KIND ROUND_TRIPS ASKER_CPU ANSWERER_CPU total|each\n", argv[0]);
        return 2;
    }
    uint64_t round_trips = number(argv[2]), asker_cpu = number(argv[3]);
    if (round_trips == 0) {
        fprintf(stderr, "at least one round trip\n");
        return 2;
    }

    struct ends asker;
    struct answerer answerer = {
        .round_trips = round_trips, .cpu = number(argv[4]), .asker = getpid(), .shared = map_shared()};
    open_ends(argv[1], &asker, &answerer.ends);
    uint64_t *times_ns = NULL;
    if (strcmp(argv[5], "each") == 0)
        times_ns = (uint64_t *)new_block(round_trips * sizeof *times_ns);

#ifdef ENDS_ARE_THREADS
    int other = getpid();
    pthread_t thread;
    if ((errno = pthread_create(&thread, NULL, answer_all, &answerer)) != 0)
        die("pthread_create");
#else
    pid_t other = fork();
    if (other < 0)
        die("fork");
    if (other == 0) {
        answer_all(&answerer);
        exit(0);
    }
#endif
    settle_on(asker_cpu);
    MEET(&asker, other);
    ask_all(&asker, round_trips, times_ns, answerer.shared);
#ifdef ENDS_ARE_THREADS
    if ((errno = pthread_join(thread, NULL)) != 0)
        die("pthread_join");
#else
    reap(other);
#endif

    uint64_t p50_ns = 0;
    if (times_ns != NULL) {
        qsort(times_ns, round_trips, sizeof *times_ns, by_size);
        p50_ns = times_ns[round_trips / 2];
    }
    printf("%llu %llu %llu\n", (unsigned long long)round_trips,
           (unsigned long long)(answerer.shared->finished_ns - answerer.shared->started_ns),
           (unsigned long long)p50_ns);
    return 0;
}

#endif
