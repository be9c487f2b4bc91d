#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static char sent[BYTES], received[BYTES];

int main(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "hosepipe-example.sock"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), status;
    unlink(name.sun_path);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) || listen(listener, 8)) return perror("bind"), 1;
    memset(sent, 'x', BYTES);
    if (fork() == 0) { /* the server; each client is a descriptor of its own, for both directions */
        int client = accept(listener, NULL, NULL);
        ssize_t n = recv(client, received, BYTES, MSG_WAITALL);
        _exit(n != BYTES || memcmp(sent, received, BYTES) != 0);
    }
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&name, sizeof name)) return perror("connect"), 1;
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = send(server, sent + at, BYTES - at, MSG_NOSIGNAL)) < 0) return perror("send"), 1;
    unlink(name.sun_path);
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
