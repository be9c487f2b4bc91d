/* A 1 added to an eventfd(2) for each direction, and taken out of it. KIND: any. See pingpong.h. */
#include "common.h"
#include <sys/eventfd.h>

struct ends {
    int in, out;
};

static void put(struct ends *ends) {
    uint64_t one = 1;
    ssize_t wrote;
    do
        wrote = write(ends->out, &one, sizeof one);
    while (wrote < 0 && errno == EINTR);
    if (wrote != sizeof one)
        die("write");
}

static void take(struct ends *ends) {
    uint64_t count;
    ssize_t got;
    do
        got = read(ends->in, &count, sizeof count);
    while (got < 0 && errno == EINTR);
    if (got != sizeof count)
        die("read");
}

static void open_ends(const char *kind, struct ends *asker, struct ends *answerer) {
    (void)kind;
    int there = eventfd(0, EFD_CLOEXEC), back = eventfd(0, EFD_CLOEXEC);
    if (there < 0 || back < 0)
        die("eventfd");
    *asker = (struct ends){.in = back, .out = there};
    *answerer = (struct ends){.in = there, .out = back};
}

#include "pingpong.h"
