/*
 * One byte to and fro by write(2) and read(2).
 * KIND: pipe, fifo, socketpair, unix-stream, tcp, pty. See pingpong.h.
 */
#include "sockets.h"
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

static void put(struct ends *ends) {
    unsigned char byte = 0xA5;
    ssize_t wrote;
    do
        wrote = write(ends->out, &byte, 1);
    while (wrote < 0 && errno == EINTR);
    if (wrote != 1)
        die("write");
}

static void take(struct ends *ends) {
    unsigned char byte;
    ssize_t got;
    do
        got = read(ends->in, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1)
        return;
    if (got < 0)
        die("read");
    fprintf(stderr, "the other end ended early\n");
    exit(1);
}

static void open_fifo(int ends[2]) {
    char folder[32], name[64];
    make_folder(folder);
    snprintf(name, sizeof name, "%s/fifo", folder);
    if (mkfifo(name, 0600) != 0)
        die("mkfifo");
    /* Without waiting, or this would wait for the other end, which is opened next; then as usual. */
    ends[0] = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ends[1] = open(name, O_WRONLY | O_CLOEXEC);
    unlink(name);
    rmdir(folder);
    if (ends[0] < 0 || ends[1] < 0 || fcntl(ends[0], F_SETFL, 0) != 0)
        die("open a FIFO");
}

static void open_unix_stream(int *near, int *far) {
    char folder[32];
    make_folder(folder);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", folder);
    int listener = new_socket(AF_UNIX, SOCK_STREAM);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 1) != 0)
        die("bind and listen");
    *near = new_socket(AF_UNIX, SOCK_STREAM);
    connect_to(*near, &name, sizeof name);
    *far = accept_one(listener);
    unlink(name.sun_path);
    rmdir(folder);
}

static void open_tcp(int *near, int *far) {
    struct sockaddr_storage name;
    int listener = new_socket(AF_INET, SOCK_STREAM);
    socklen_t len = bind_anywhere(listener, AF_INET, &name);
    if (listen(listener, 1) != 0)
        die("listen");
    *near = new_socket(AF_INET, SOCK_STREAM);
    connect_to(*near, &name, len);
    *far = accept_one(listener);
}

/* A terminal in raw mode: the asker types at the master, the answerer is the program at the slave. */
static void open_pty(int *master, int *slave) {
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0 || grantpt(*master) != 0 || unlockpt(*master) != 0)
        die("posix_openpt");
    struct termios settings;
    *slave = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0 || tcgetattr(*slave, &settings) != 0)
        die("the slave of a terminal");
    cfmakeraw(&settings);
    if (tcsetattr(*slave, TCSANOW, &settings) != 0)
        die("tcsetattr");
}

static void open_two_ways(const char *kind, struct ends *asker, struct ends *answerer) {
    int there[2], back[2];
    if (strcmp(kind, "fifo") == 0) {
        open_fifo(there);
        open_fifo(back);
    } else if (pipe(there) != 0 || pipe(back) != 0) {
        die("pipe");
    }
    *asker = (struct ends){.in = back[0], .out = there[1]};
    *answerer = (struct ends){.in = there[0], .out = back[1]};
}

static void open_ends(const char *kind, struct ends *asker, struct ends *answerer) {
    int pair[2];
    if (strcmp(kind, "pipe") == 0 || strcmp(kind, "fifo") == 0) {
        open_two_ways(kind, asker, answerer);
        return;
    }
    if (strcmp(kind, "socketpair") == 0) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            die("socketpair");
    } else if (strcmp(kind, "unix-stream") == 0) {
        open_unix_stream(&pair[0], &pair[1]);
    } else if (strcmp(kind, "tcp") == 0) {
        open_tcp(&pair[0], &pair[1]);
    } else if (strcmp(kind, "pty") == 0) {
        open_pty(&pair[0], &pair[1]);
    } else {
        no_such_kind(kind);
    }
    over_connection(pair[0], pair[1], asker, answerer);
}

#include "pingpong.h"
