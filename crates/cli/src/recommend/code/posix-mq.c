#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes} };
static char sent[BYTES], received[BYTES];

int main(void) {
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = BYTES};
    int status;
    mq_unlink("/hosepipe-example");
    mqd_t queue = mq_open("/hosepipe-example", O_CREAT | O_RDWR, 0600, &attributes);
    if (queue == (mqd_t)-1) return perror("mq_open"), 1;
    memset(sent, 'x', BYTES);
    if (fork() == 0) { /* the receiving program opens the same name; one call, one message */
        ssize_t n = mq_receive(queue, received, BYTES, NULL);
        _exit(n != BYTES || memcmp(sent, received, BYTES) != 0);
    }
    if (mq_send(queue, sent, BYTES, 0) != 0) return perror("mq_send"), 1;
    mq_unlink("/hosepipe-example"); /* it would outlive both */
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
