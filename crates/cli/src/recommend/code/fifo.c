#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static char sent[BYTES], received[BYTES];

int main(void) {
    const char *path = "hosepipe-example.fifo"; /* both programs know the name */
    int status;
    unlink(path);
    if (mkfifo(path, 0600) != 0) return perror("mkfifo"), 1;
    memset(sent, 'x', BYTES);
    if (fork() == 0) { /* the reading program; a FIFO is a stream, so it counts the bytes of a message */
        int fd = open(path, O_RDONLY);
        for (ssize_t at = 0, n; at < BYTES; at += n)
            if ((n = read(fd, received + at, BYTES - at)) <= 0) _exit(1);
        _exit(memcmp(sent, received, BYTES) != 0);
    }
    int fd = open(path, O_WRONLY); /* waits for the reader */
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = write(fd, sent + at, BYTES - at)) < 0) return perror("write"), 1;
    close(fd);
    unlink(path);
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
