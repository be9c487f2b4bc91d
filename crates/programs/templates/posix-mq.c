#include <fcntl.h>
#include <mqueue.h>
static mqd_t in[2], out[2]; /* what each end receives from, and sends to */
@reply static char back[256];

static void remove_meeting_place(void) {
    if (made > 0) mq_unlink(name);
@reply     if (made > 1) mq_unlink(back);
}
static mqd_t open_queue(const char *path, int how) {
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = BYTES}; /* fs.mqueue.msg_max is 10 */
    mqd_t queue = mq_open(path, how, 0600, &attributes);
    return queue == (mqd_t)-1 ? err(1, "mq_open %s", path), queue : queue;
}
static void make_meeting_place(void) {
@reply     snprintf(back, sizeof back, "%s.back", name);
    mq_close(open_queue(name, O_CREAT | O_EXCL | O_RDWR)), made++; /* a queue outlives its users */
@reply     mq_close(open_queue(back, O_CREAT | O_EXCL | O_RDWR)), made++;
}
static void open_end(int me) {
    if (me == {FIRST}) out[me] = open_queue(name, O_WRONLY);
    else in[me] = open_queue(name, O_RDONLY);
@reply     if (me == {FIRST}) in[me] = open_queue(back, O_RDONLY);
@reply     else out[me] = open_queue(back, O_WRONLY);
}
/* One call, one message. */
static void send_message(int me, const char *message) {
    if (mq_send(out[me], message, BYTES, 0) != 0) err(1, "mq_send");
}
static void receive_message(int me, char *message) {
    if (mq_receive(in[me], message, BYTES, NULL) != BYTES) err(1, "mq_receive");
}
