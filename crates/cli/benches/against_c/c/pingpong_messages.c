/*
 * A message of one byte to and fro by send(2) and recv(2).
 * KIND: unix-seqpacket, unix-dgram, udp. See pingpong.h.
 */
#include "sockets.h"

static void put(struct ends *ends) {
    unsigned char byte = 0xA5;
    ssize_t sent;
    do
        sent = send(ends->out, &byte, 1, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != 1)
        die("send");
}

static void take(struct ends *ends) {
    unsigned char byte;
    ssize_t got;
    do
        got = recv(ends->in, &byte, 1, 0);
    while (got < 0 && errno == EINTR);
    if (got == 1)
        return;
    if (got < 0)
        die("recv");
    fprintf(stderr, "the other end ended early\n");
    exit(1);
}

/* A receiver with a name, and a sender connected to it. */
static void open_unix_dgram(int *in, int *out) {
    struct sockaddr_storage name;
    *in = new_socket(AF_UNIX, SOCK_DGRAM);
    socklen_t len = bind_anywhere(*in, AF_UNIX, &name);
    *out = new_socket(AF_UNIX, SOCK_DGRAM);
    connect_to(*out, &name, len);
}

static void open_udp(int *near, int *far) {
    struct sockaddr_storage near_name, far_name;
    *near = new_socket(AF_INET, SOCK_DGRAM);
    *far = new_socket(AF_INET, SOCK_DGRAM);
    socklen_t near_len = bind_anywhere(*near, AF_INET, &near_name);
    socklen_t far_len = bind_anywhere(*far, AF_INET, &far_name);
    connect_to(*near, &far_name, far_len);
    connect_to(*far, &near_name, near_len);
}

static void open_ends(const char *kind, struct ends *asker, struct ends *answerer) {
    int pair[2];
    if (strcmp(kind, "unix-dgram") == 0) {
        open_unix_dgram(&answerer->in, &asker->out);
        open_unix_dgram(&asker->in, &answerer->out);
        return;
    }
    if (strcmp(kind, "unix-seqpacket") == 0) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
            die("socketpair");
    } else if (strcmp(kind, "udp") == 0) {
        open_udp(&pair[0], &pair[1]);
    } else {
        no_such_kind(kind);
    }
    over_connection(pair[0], pair[1], asker, answerer);
}

#include "pingpong.h"
