#include <fcntl.h>
#include <mqueue.h>
@receiver @unshared #include <sys/file.h>
@sender @broadcast #include <sys/file.h>

/* Either end makes the queue, which outlives both, with what is unread. */
static mqd_t open_queue(const char *path, int how) {
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = BYTES}; /* fs.mqueue.msg_max is 10 */
    mqd_t queue = mq_open(path, O_RDWR | O_CREAT | how, 0600, &attributes);
    if (queue == (mqd_t)-1) err(1, "mq_open %s for messages of %d bytes", path, BYTES);
    if (mq_getattr(queue, &attributes) != 0 || attributes.mq_msgsize != BYTES)
        errx(1, "%s is there already, for messages of %ld bytes", path, attributes.mq_msgsize);
    return queue;
}
@empties static bool is_empty(mqd_t queue) {
@empties     struct mq_attr attributes;
@empties     return mq_getattr(queue, &attributes) == 0 && attributes.mq_curmsgs == 0;
@empties }
@reply static char back[256]; /* the queue of replies */

@sender typedef struct {
@sender     const char *link;
@sender     mqd_t queue;
@sender @reply     mqd_t back;
@sender } Sender;
@sender static void open_sender(Sender *to, const char *link) {
@sender     to->link = link, to->queue = open_queue(link, 0);
@sender @broadcast     for (; flock(to->queue, LOCK_SH | LOCK_NB) == 0; usleep(10000)) flock(to->queue, LOCK_UN); /* until a receiver has locked it */
@sender @reply     snprintf(back, sizeof back, "%s.back", link);
@sender @reply     to->back = open_queue(back, 0);
@sender }
@sender /* Waits while the queue is full, whether there is a receiver or not. */
@sender static void send_message(Sender *to, const void *message) {
@sender     if (mq_send(to->queue, message, BYTES, 0) != 0) err(1, "mq_send");
@sender }
@sender @reply /* False after half a second: its server may have gone. */
@sender @reply static bool receive_reply(Sender *to, void *reply) {
@sender @reply     struct timespec until;
@sender @reply     clock_gettime(CLOCK_REALTIME, &until);
@sender @reply     until.tv_sec += (until.tv_nsec += 500000000) / 1000000000, until.tv_nsec %= 1000000000;
@sender @reply     if (mq_timedreceive(to->back, reply, BYTES, NULL, &until) == BYTES) return true;
@sender @reply     return errno == ETIMEDOUT ? false : (err(1, "mq_receive"), false);
@sender @reply }
@sender static void finish_sender(Sender *to, const void *mark) {
@sender @unshared     send_message(to, mark);
@sender @shared     for (int i = 0; i < {receivers}; i++) send_message(to, mark);
@sender @shared @onesender     while (!is_empty(to->queue)) usleep(10000);
@sender @shared @onesender     mq_unlink(to->link);
@sender @reply     mq_unlink(back);
@sender }

@receiver typedef struct {
@receiver     const char *link;
@receiver     mqd_t queue;
@receiver @reply     mqd_t back;
@receiver } Receiver;
@receiver static bool open_receiver(Receiver *from, const char *link) {
@receiver @poll     from->link = link, from->queue = open_queue(link, O_NONBLOCK); /* on Linux a queue is a descriptor that poll(2) knows */
@receiver @blocking     from->link = link, from->queue = open_queue(link, 0);
@receiver @unshared     if (flock(from->queue, LOCK_EX | LOCK_NB) != 0) return mq_close(from->queue), false; /* two would share the messages */
@receiver @reply     snprintf(back, sizeof back, "%s.back", link);
@receiver @reply     from->back = open_queue(back, 0);
@receiver     return true;
@receiver }
@receiver static void receive_message(Receiver *from, void *message) {
@receiver @poll     do wait_readable(from->queue);
@receiver @poll     while (mq_receive(from->queue, message, BYTES, NULL) != BYTES && (errno == EAGAIN || (err(1, "mq_receive"), true)));
@receiver @blocking     if (mq_receive(from->queue, message, BYTES, NULL) != BYTES) err(1, "mq_receive");
@receiver }
@receiver @reply static void send_reply(Receiver *from, const void *reply) {
@receiver @reply     if (mq_send(from->back, reply, BYTES, 0) != 0) err(1, "mq_send");
@receiver @reply }
@receiver static void close_receiver(Receiver *from) {
@receiver @unshared     if (is_empty(from->queue)) mq_unlink(from->link); /* else there is more, of the next sender */
@receiver @shared     (void)from; /* the sender removes it */
@receiver }
