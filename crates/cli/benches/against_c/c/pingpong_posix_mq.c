/* A message of one byte to and fro over two POSIX queues. KIND: any. See pingpong.h. */
#include "common.h"
#include <fcntl.h>
#include <mqueue.h>

struct ends {
    mqd_t in, out;
};

static void put(struct ends *ends) {
    char byte = 'A';
    while (mq_send(ends->out, &byte, 1, 0) != 0)
        if (errno != EINTR)
            die("mq_send");
}

static void take(struct ends *ends) {
    char byte;
    while (mq_receive(ends->in, &byte, 1, NULL) < 0)
        if (errno != EINTR)
            die("mq_receive");
}

/* The name goes at once: both sides inherit the descriptor. */
static mqd_t new_queue(int which) {
    char name[64];
    snprintf(name, sizeof name, "/against_c-%d-%d", (int)getpid(), which);
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 1};
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attributes);
    if (queue == (mqd_t)-1)
        die("mq_open");
    mq_unlink(name);
    return queue;
}

static void open_ends(const char *kind, struct ends *asker, struct ends *answerer) {
    (void)kind;
    mqd_t there = new_queue(0), back = new_queue(1);
    *asker = (struct ends){.in = back, .out = there};
    *answerer = (struct ends){.in = there, .out = back};
}

#include "pingpong.h"
