#include <sys/ipc.h>
#include <sys/msg.h>
@sender @reply #include <sys/time.h>
@locks #include <sys/socket.h>
@locks #include <sys/un.h>

typedef struct {
    key_t key;
    int queue;
} Queue;
static struct { long kind; char bytes[BYTES]; } text = {.kind = 1}; /* a message has a kind before it */

/* Either end makes the queue, which outlives both, with what is unread. */
static Queue open_queue(key_t key) {
    Queue opened = {key, msgget(key, IPC_CREAT | 0600)};
    return opened.queue < 0 ? err(1, "msgget %d", key), opened : opened;
}
static key_t key_of(const char *link) {
    char *rest;
    long key = strtol(link, &rest, 10);
    return *rest || key < 1 || key >= INT32_MAX ? errx(2, "NAME is a key, a number from 1 to %d, not %s", INT32_MAX - 1, link), 0 : key;
}
@receiver @unshared static atomic_bool is_removed; /* by this program: its other thread ends it */
/* A queue that was removed (ipcrm(1)) is made again. */
static void open_again(Queue *queue, const char *call) {
    int why = errno;
@receiver @unshared     if (is_removed) pause();
    Queue opened = open_queue(queue->key);
    errno = why;
    if ((why != EIDRM && why != EINVAL) || opened.queue == queue->queue) err(1, "%s of %d bytes", call, BYTES);
    *queue = opened;
}
@locks /* A queue cannot be locked: a socket is bound, to a name that is no file and lasts as long as the socket. */
@locks static int lock_link(const char *link) {
@locks     struct sockaddr_un lock = {.sun_family = AF_UNIX};
@locks     int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), n = snprintf(lock.sun_path + 1, sizeof lock.sun_path - 1, "hosepipe.%s", link);
@locks     if (fd < 0 || bind(fd, (struct sockaddr *)&lock, sizeof lock.sun_family + 1 + n) == 0) return fd;
@locks     return close(fd), -1;
@locks }
@empties static bool is_empty(const Queue *queue) {
@empties     struct msqid_ds facts;
@empties     return msgctl(queue->queue, IPC_STAT, &facts) != 0 || facts.msg_qnum == 0;
@empties }
@sends /* Waits while the queue is full, whether there is a receiver or not. */
@sends static void send_to(Queue *queue, const void *message) {
@sends     memcpy(text.bytes, message, BYTES);
@sends     while (msgsnd(queue->queue, &text, BYTES, 0) != 0)
@sends         if (errno != EINTR) open_again(queue, "msgsnd");
@sends }
@receives /* False: a signal came. */
@receives static bool receive_from(Queue *queue, void *message) {
@receives     ssize_t n;
@receives     while ((n = msgrcv(queue->queue, &text, BYTES, 0, 0)) < 0 && errno != EINTR) open_again(queue, "msgrcv");
@receives     if (n >= 0 && n != BYTES) errx(1, "a message of %zd bytes came", n);
@receives     if (n >= 0) memcpy(message, text.bytes, BYTES);
@receives     return n >= 0;
@receives }

@sender typedef struct {
@sender     Queue queue;
@sender @reply     Queue back;
@sender } Sender;
@sender @reply static void wake(int number) { (void)number; }
@sender static void open_sender(Sender *to, const char *link) {
@sender     to->queue = open_queue(key_of(link));
@sender @broadcast     for (int fd; (fd = lock_link(link)) >= 0; usleep(10000)) close(fd); /* until a receiver has locked it */
@sender @reply     struct itimerval half_second = {{0, 500000}, {0, 500000}};
@sender @reply     to->back = open_queue(key_of(link) + 1);
@sender @reply     signal(SIGALRM, wake), setitimer(ITIMER_REAL, &half_second, NULL); /* a reply that does not come: its server may have gone */
@sender }
@sender static void send_message(Sender *to, const void *message) { send_to(&to->queue, message); }
@sender @reply static bool receive_reply(Sender *to, void *reply) { return receive_from(&to->back, reply); }
@sender static void finish_sender(Sender *to, const void *mark) {
@sender @unshared     send_message(to, mark);
@sender @shared     for (int i = 0; i < {receivers}; i++) send_message(to, mark);
@sender @shared @onesender     while (!is_empty(&to->queue)) usleep(10000);
@sender @shared @onesender     msgctl(to->queue.queue, IPC_RMID, NULL);
@sender @reply     msgctl(to->back.queue, IPC_RMID, NULL);
@sender }

@receiver typedef struct {
@receiver     Queue queue;
@receiver @reply     Queue back;
@receiver } Receiver;
@receiver static bool open_receiver(Receiver *from, const char *link) {
@receiver     from->queue = open_queue(key_of(link));
@receiver @unshared     if (lock_link(link) < 0) return false; /* two would share the messages */
@receiver @reply     from->back = open_queue(key_of(link) + 1);
@receiver     return true;
@receiver }
@receiver static void receive_message(Receiver *from, void *message) {
@receiver     while (!receive_from(&from->queue, message)) {}
@receiver }
@receiver @reply static void send_reply(Receiver *from, const void *reply) { send_to(&from->back, reply); }
@receiver static void close_receiver(Receiver *from) {
@receiver @reply     msgctl(from->back.queue, IPC_RMID, NULL); /* also if a reply to a request that came again has made it again */
@receiver @unshared     if (!is_empty(&from->queue)) return; /* there is more, of the next sender */
@receiver @unshared     is_removed = true;
@receiver @unshared     msgctl(from->queue.queue, IPC_RMID, NULL);
@receiver @shared     (void)from; /* the sender removes it */
@receiver }
