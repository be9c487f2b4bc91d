#include <sys/ipc.h>
#include <sys/msg.h>
static int queue[2]; /* of each end: the same one, since a message has a kind that says for whom it is */
static struct { long kind; char bytes[BYTES]; } text[2];

static key_t key(void) { return ftok(".", name[0]); } /* both know the folder and the letter */
static void remove_meeting_place(void) { msgctl(msgget(key(), 0), IPC_RMID, NULL); }
static void make_meeting_place(void) {
    remove_meeting_place(); /* a queue outlives its users */
    if (msgget(key(), IPC_CREAT | IPC_EXCL | 0600) < 0) err(1, "msgget");
    atexit(remove_meeting_place);
}
static void open_end(int me) {
    if ((queue[me] = msgget(key(), 0)) < 0) err(1, "msgget");
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
