#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static char sent[BYTES], received[BYTES];

int main(void) {
    const char *part = "hosepipe-example.part", *whole = "hosepipe-example.data";
    memset(sent, 'x', BYTES);
    int fd = open(part, O_CREAT | O_TRUNC | O_WRONLY, 0600); /* the writing program */
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = write(fd, sent + at, BYTES - at)) < 0) return perror("write"), 1;
    if (fsync(fd) || close(fd) || rename(part, whole)) return perror("rename"), 1; /* whole, or not there */

    fd = open(whole, O_RDONLY); /* the reading program, also when the writer has long gone */
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = read(fd, received + at, BYTES - at)) <= 0) return perror("read"), 1;
    unlink(whole); /* nobody else removes it */
    return memcmp(sent, received, BYTES) != 0 || puts("received as sent") < 0;
}
