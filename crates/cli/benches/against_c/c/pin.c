/* Preloaded (LD_PRELOAD) into a program that forks once: its two processes on the two CPUs that PIN names, "0 1". */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int cpus[2];

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) perror("sched_setaffinity"), abort();
}

static void pin_child(void) { pin(cpus[1]); }

__attribute__((constructor)) static void pin_parent(void) {
    const char *asked = getenv("PIN");
    if (asked == NULL || sscanf(asked, "%d %d", &cpus[0], &cpus[1]) != 2) abort();
    pin(cpus[0]);
    pthread_atfork(NULL, NULL, pin_child);
}
