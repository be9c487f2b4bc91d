/* A message of one byte to and fro over two System V queues, removed at the end. KIND: any. See pingpong.h. */
#include "common.h"
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>

struct ends {
    int in, out;
};

struct message {
    long type;
    unsigned char byte;
};

static void put(struct ends *ends) {
    struct message message = {1, 0xA5};
    while (msgsnd(ends->out, &message, 1, 0) != 0)
        if (errno != EINTR)
            die("msgsnd");
}

static void take(struct ends *ends) {
    struct message message;
    while (msgrcv(ends->in, &message, 1, 0, 0) < 0)
        if (errno != EINTR)
            die("msgrcv");
}

static int queues[2];
static pid_t owner;

static void remove_queues(void) {
    if (getpid() == owner)
        for (int i = 0; i < 2; i++)
            msgctl(queues[i], IPC_RMID, NULL);
}

static void remove_queues_and_end(int signal) {
    remove_queues();
    _exit(128 + signal);
}

static void open_ends(const char *kind, struct ends *asker, struct ends *answerer) {
    (void)kind;
    for (int i = 0; i < 2; i++)
        if ((queues[i] = msgget(IPC_PRIVATE, 0600)) < 0)
            die("msgget");
    owner = getpid();
    atexit(remove_queues);
    const int ends_us[] = {SIGALRM, SIGHUP, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof ends_us / sizeof *ends_us; i++)
        signal(ends_us[i], remove_queues_and_end);
    *asker = (struct ends){.in = queues[1], .out = queues[0]};
    *answerer = (struct ends){.in = queues[0], .out = queues[1]};
}

#include "pingpong.h"
