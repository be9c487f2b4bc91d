/* A realtime signal to and fro, taken by sigwaitinfo(2) and by no handler. KIND: any. See pingpong.h. */
#include "common.h"
#include <signal.h>

struct ends {
    pid_t peer;
    sigset_t ours;
};

static void put(struct ends *ends) {
    if (kill(ends->peer, SIGRTMIN) != 0)
        die("kill");
}

static void take(struct ends *ends) {
    while (sigwaitinfo(&ends->ours, NULL) < 0)
        if (errno != EINTR)
            die("sigwaitinfo");
}

#define MEET(ends, process) ((ends)->peer = (process))

/* Blocked before there are two processes: a signal that came sooner would end the one it came to. */
static void open_ends(const char *kind, struct ends *asker, struct ends *answerer) {
    (void)kind;
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGRTMIN);
    if (sigprocmask(SIG_BLOCK, &ours, NULL) != 0)
        die("sigprocmask");
    asker->ours = answerer->ours = ours;
}

#include "pingpong.h"
