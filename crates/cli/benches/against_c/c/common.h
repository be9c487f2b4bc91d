/*
 * What the reference programs share: dying with a reason, the clock, pinning, the start barrier.
 * These programs are the plainest honest way to do the job in C; hosepipe is measured against them.
 */
#ifndef COMMON_H
#define COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, TIME_LIMIT_S = 120 };
#define BARRIER_LIMIT_NS 5000000000u

/* What the two processes share. */
struct shared {
    atomic_uint arrived;  /* ends that have reached the barrier */
    uint64_t started_ns;  /* written by the sender, just behind the barrier */
    uint64_t finished_ns; /* written by the receiver, when it has the last byte */
    uint64_t checksum;    /* written by the receiver, before finished_ns */
};

static inline void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t number(const char *text) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

/* Pins the calling process, and bounds its life: alarm(2) is not inherited over fork(2), so each end calls this. */
static inline void settle_on(uint64_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        die("sched_setaffinity");
    alarm(TIME_LIMIT_S);
}

static inline struct shared *map_shared(void) {
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap");
    return shared;
}

/*
 * Both ends leave together. The yield lets it end at once when both sit on one CPU; the limit, when the other
 * end died before it came here.
 */
static inline void barrier(struct shared *shared) {
    uint64_t came_ns = now_ns();
    atomic_fetch_add(&shared->arrived, 1);
    while (atomic_load(&shared->arrived) < 2) {
        if (now_ns() - came_ns > BARRIER_LIMIT_NS) {
            fprintf(stderr, "the other end did not come to the start\n");
            exit(1);
        }
        sched_yield();
    }
}

/* A buffer on a page boundary with every page touched, so that no page fault waits in the timed part. */
static inline unsigned char *new_block(size_t bytes) {
    unsigned char *block = aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    if (block == NULL)
        die("aligned_alloc");
    memset(block, 0xA5, bytes);
    return block;
}

/* Waits for the other end, and fails if it failed. */
static inline void reap(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid");
    if (status != 0) {
        fprintf(stderr, "the other end ended with wait status %d\n", status);
        exit(1);
    }
}

#endif
