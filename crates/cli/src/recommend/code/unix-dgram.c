#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static char sent[BYTES], received[BYTES];

int main(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "hosepipe-example.dgram"};
    int receiver = socket(AF_UNIX, SOCK_DGRAM, 0), status;
    unlink(name.sun_path);
    if (bind(receiver, (struct sockaddr *)&name, sizeof name)) return perror("bind"), 1;
    memset(sent, 'x', BYTES);
    if (fork() == 0) { /* the receiving program: one call, one message, whoever sent it */
        ssize_t n = recv(receiver, received, BYTES, 0);
        _exit(n != BYTES || memcmp(sent, received, BYTES) != 0);
    }
    int sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (connect(sender, (struct sockaddr *)&name, sizeof name)) return perror("connect"), 1;
    if (send(sender, sent, BYTES, 0) != BYTES) return perror("send"), 1;
    unlink(name.sun_path);
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
