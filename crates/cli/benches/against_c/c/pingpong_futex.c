/* A word of shared memory for each direction, and futex(2) to sleep until it changes. KIND: any. See pingpong.h. */
#include "common.h"
#include <linux/futex.h>
#include <sys/syscall.h>

struct ends {
    atomic_uint *in, *out;
    unsigned heard, given;
};

/* The word is the count of knocks; the wake-up is always asked for, since somebody always sleeps. */
static void put(struct ends *ends) {
    atomic_store_explicit(ends->out, ++ends->given, memory_order_release);
    if (syscall(SYS_futex, ends->out, FUTEX_WAKE, 1, NULL, NULL, 0) < 0)
        die("futex(FUTEX_WAKE)");
}

static void take(struct ends *ends) {
    while (atomic_load_explicit(ends->in, memory_order_acquire) == ends->heard)
        if (syscall(SYS_futex, ends->in, FUTEX_WAIT, ends->heard, NULL, NULL, 0) < 0 && errno != EAGAIN &&
            errno != EINTR)
            die("futex(FUTEX_WAIT)");
    ends->heard++;
}

static atomic_uint *new_word(void) {
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        die("mmap");
    return page;
}

static void open_ends(const char *kind, struct ends *asker, struct ends *answerer) {
    (void)kind;
    atomic_uint *there = new_word(), *back = new_word();
    *asker = (struct ends){.in = back, .out = there};
    *answerer = (struct ends){.in = there, .out = back};
}

#include "pingpong.h"
