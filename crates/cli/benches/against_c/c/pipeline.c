/* A pipeline by hand: every pipe as large as is asked, every stage on the CPU that is asked.
 * pipeline BYTES CPU,CPU,...|- STAGE -- STAGE ...: a stage is a program and its words. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long bytes = atol(argv[1]);
    char *cpus = argv[2][0] == '-' ? NULL : argv[2];
    int input = 0, stage = 3, children = 0, status, failed = 0;
    while (stage < argc) {
        int end = stage, ends[2] = {0, 1};
        while (end < argc && strcmp(argv[end], "--")) end++;
        int last = end >= argc;
        argv[end] = NULL;
        if (!last && pipe2(ends, O_CLOEXEC)) return perror("pipe"), 1;
        if (!last && bytes && fcntl(ends[1], F_SETPIPE_SZ, bytes) < 0) return perror("F_SETPIPE_SZ"), 1;
        pid_t child = vfork();
        if (child < 0) return perror("vfork"), 1;
        if (!child) {
            if (cpus) {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET(atoi(cpus), &set);
                sched_setaffinity(0, sizeof set, &set);
            }
            if (input != 0) dup2(input, 0);
            if (!last) dup2(ends[1], 1);
            execvp(argv[stage], argv + stage);
            _exit(127);
        }
        children++;
        if (input != 0) close(input);
        if (!last) close(ends[1]);
        input = ends[0];
        if (cpus && strchr(cpus, ',')) cpus = strchr(cpus, ',') + 1;
        stage = end + 1;
    }
    while (children-- && wait(&status) > 0) failed |= status;
    return failed != 0;
}
