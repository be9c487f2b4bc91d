#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static char sent[BYTES], received[BYTES];

int main(void) {
    int ends[2], status;
    if (pipe(ends) != 0) return perror("pipe"), 1;
@size    if (fcntl(ends[1], 1031 /* F_SETPIPE_SZ */, {size}) < 0) perror("fcntl");
    memset(sent, 'x', BYTES);
    if (fork() == 0) { /* the child reads; a pipe is a stream, so it counts the bytes of a message */
        close(ends[1]);
        for (ssize_t at = 0, n; at < BYTES; at += n)
            if ((n = read(ends[0], received + at, BYTES - at)) <= 0) _exit(1);
        _exit(memcmp(sent, received, BYTES) != 0);
    }
    close(ends[0]);
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = write(ends[1], sent + at, BYTES - at)) < 0) return perror("write"), 1;
    close(ends[1]);
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
