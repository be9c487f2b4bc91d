#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static char sent[BYTES], received[BYTES];

int main(void) {
    int ends[2], status;
    if (socketpair(AF_UNIX, {type}, 0, ends) != 0) return perror("socketpair"), 1;
    memset(sent, 'x', BYTES);
    if (fork() == 0) { /* the child receives; it may answer on the same descriptor */
        close(ends[0]);
        ssize_t n = recv(ends[1], received, BYTES, MSG_WAITALL);
        _exit(n != BYTES || memcmp(sent, received, BYTES) != 0);
    }
    close(ends[1]);
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = send(ends[0], sent + at, BYTES - at, MSG_NOSIGNAL)) < 0) return perror("send"), 1;
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
