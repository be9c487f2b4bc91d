#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static struct { long kind; char text[BYTES]; } sent = {.kind = 1}, received;

int main(void) {
    int queue = msgget(ftok(".", 'h'), IPC_CREAT | 0600), status; /* both programs know the folder */
    if (queue < 0) return perror("msgget"), 1;
    memset(sent.text, 'x', BYTES);
    if (fork() == 0) { /* the receiving program: one call, one message */
        ssize_t n = msgrcv(queue, &received, BYTES, 0, 0);
        _exit(n != BYTES || memcmp(sent.text, received.text, BYTES) != 0);
    }
    if (msgsnd(queue, &sent, BYTES, 0) != 0) return perror("msgsnd"), 1;
    int failed = wait(&status) < 0 || status != 0;
    msgctl(queue, IPC_RMID, NULL); /* it would outlive both */
    return failed || puts("received as sent") < 0;
}
