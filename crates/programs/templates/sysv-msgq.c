#include <sys/ipc.h>
#include <sys/msg.h>
static int queue[2]; /* of each end: the same one, since a message has a kind that says for whom it is */
@fork static struct { long kind; char bytes[BYTES]; } text[2];
@threads static _Thread_local struct { long kind; char bytes[BYTES]; } text[2]; /* several senders fill one each */

static key_t key; /* NAME is the key, a number that both know */

static void remove_meeting_place(void) {
    if (made) msgctl(msgget(key, 0), IPC_RMID, NULL);
}
static void make_meeting_place(void) {
    if ((key = atoi(name)) == IPC_PRIVATE) errx(2, "NAME is a key, a number other than 0, not %s", name);
    if (msgget(key, IPC_CREAT | IPC_EXCL | 0600) < 0) err(1, "msgget %s", name);
    made = 1; /* a queue outlives its users */
}
static void open_end(int me) {
    if ((queue[me] = msgget(key, 0)) < 0) err(1, "msgget");
}
/* One call, one message. */
static void send_message(int me, const char *message) {
    text[me].kind = me + 1; /* whose it is */
    memcpy(text[me].bytes, message, BYTES);
    if (msgsnd(queue[me], &text[me], BYTES, 0) != 0) err(1, "msgsnd");
}
static void receive_message(int me, char *message) {
    if (msgrcv(queue[me], &text[me], BYTES, !me + 1, 0) != BYTES) err(1, "msgrcv");
    memcpy(message, text[me].bytes, BYTES);
}
