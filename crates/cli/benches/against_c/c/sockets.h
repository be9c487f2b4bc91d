/* Names for sockets and FIFOs, and sockets that are connected to each other. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "common.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The two ends of each of two directions, or of one connection. */
struct ends {
    int in, out;
};

static inline void no_such_kind(const char *kind) {
    fprintf(stderr, "no such kind here: %s\n", kind);
    exit(2);
}

/* A connection: each side reads and writes its own descriptor. */
static inline void over_connection(int near, int far, struct ends *asker, struct ends *answerer) {
    *asker = (struct ends){near, near};
    *answerer = (struct ends){far, far};
}

/* A fresh folder of our own; to be removed with rmdir(2). */
static inline void make_folder(char folder[static 32]) {
    strcpy(folder, "/tmp/against_c.XXXXXX");
    if (mkdtemp(folder) == NULL)
        die("mkdtemp");
}

static inline int new_socket(int family, int type) {
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket");
    return fd;
}

/* Binds to a port of the loopback interface, or to an abstract name of AF_UNIX, that the kernel chooses. */
static inline socklen_t bind_anywhere(int fd, int family, struct sockaddr_storage *name) {
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sa_family_t unnamed = AF_UNIX;
    int bound = family == AF_INET ? bind(fd, (struct sockaddr *)&port, sizeof port)
                                  : bind(fd, (struct sockaddr *)&unnamed, sizeof unnamed);
    if (bound != 0)
        die("bind");
    socklen_t len = sizeof *name;
    if (getsockname(fd, (struct sockaddr *)name, &len) != 0)
        die("getsockname");
    return len;
}

static inline void connect_to(int fd, const void *name, socklen_t len) {
    if (connect(fd, (const struct sockaddr *)name, len) != 0)
        die("connect");
}

static inline int accept_one(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        die("accept");
    close(listener);
    return fd;
}

#endif
