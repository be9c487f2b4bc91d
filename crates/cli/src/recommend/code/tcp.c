#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes}, PORT = 7077 };
static char sent[BYTES], received[BYTES];

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* or the other host's address */
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, status;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8)) return perror("bind"), 1;
    memset(sent, 'x', BYTES);
    if (fork() == 0) { /* the server; TCP is a stream, so it counts the bytes of a message */
        int client = accept(listener, NULL, NULL);
        ssize_t n = recv(client, received, BYTES, MSG_WAITALL);
        _exit(n != BYTES || memcmp(sent, received, BYTES) != 0);
    }
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address)) return perror("connect"), 1;
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = send(server, sent + at, BYTES - at, MSG_NOSIGNAL)) < 0) return perror("send"), 1;
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
