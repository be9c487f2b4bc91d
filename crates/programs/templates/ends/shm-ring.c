#include <pthread.h>
#include <stdatomic.h>
@library
enum { CAPACITY = {capacity} }; /* bytes of messages in flight */

/* Says within half a second that the other end has gone, and that another one has come. */
static atomic_bool is_done;
static void *watch_peer(void *ring) {
@sender     const char *other = "receiver";
@receiver     const char *other = "sender";
    for (int there = 0, told = 0; !is_done; usleep(250000)) {
        int before = there;
        there = ring_peer_is_there(ring);
        if (before && !there) usleep(50000); /* it may have ended as it should: then this end is done as well */
        if (before && !there && !is_done) warnx("the %s has gone: waiting for another", other), told = 1;
        if (!before && there && told) warnx("another %s has come", other);
    }
    return NULL;
}
/* False: such an end is alive. The file may be what an end before has left: then this one goes on where that one stopped. */
static bool open_end(struct ring_end *ring, const char *path, enum ring_role role) {
    if (ring_open(ring, path, CAPACITY, role, RING_{SLEEP}) == 0) return true;
    if (errno == EPROTO) errx(1, "%s is there already, and is no ring", path);
    if (errno != EBUSY) err(1, "%s", path);
    return false;
}
@reply static char back[4096]; /* the name of the ring of replies */
static void ring_failed(const char *link, enum ring_result result) {
    if (result == RING_TOO_LARGE) errx(1, "%s: the ring is for other messages", link);
    if (result != RING_ABSENT) errx(1, "%s: the ring is damaged", link);
}
@sends static void send_over(struct ring_end *ring, const char *link, const void *message) {
@sends     enum ring_result result;
@sends     while ((result = ring_send(ring, message, BYTES)) != RING_OK) ring_failed(link, result); /* or waits for another */
@sends }
@receives /* A message is in hand until the next one is asked for: an end that dies before leaves it to the next end. */
@receives static const void *peek_over(struct ring_end *ring, const char *link) {
@receives     enum ring_result result;
@receives     const void *message;
@receives     size_t bytes = 0;
@receives     while ((result = ring_peek(ring, &message, &bytes)) != RING_OK) ring_failed(link, result);
@receives     return bytes == BYTES ? message : (errx(1, "%s: a message has %zu bytes", link, bytes), message);
@receives }
static void start_watching(struct ring_end *ring) {
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch_peer, ring) != 0) errx(1, "no thread");
}

@sender typedef struct {
@sender     const char *link;
@sender     struct ring_end ring;
@sender @reply     struct ring_end back;
@sender } Sender;
@sender static void open_sender(Sender *to, const char *link) {
@sender     to->link = link;
@sender     for (int tries = 0; !open_end(&to->ring, link, RING_SENDER); usleep(10000))
@sender         if (++tries == 100) errx(1, "%s: another sender is there", link);
@sender @reply     snprintf(back, sizeof back, "%s.back", link);
@sender @reply     if (!open_end(&to->back, back, RING_RECEIVER)) errx(1, "%s: another client is there", back);
@sender @links     while (!ring_peer_is_there(&to->ring)) usleep(10000);
@sender     start_watching(&to->ring);
@sender }
@sender static void send_message(Sender *to, const void *message) { send_over(&to->ring, to->link, message); }
@sender @stream static void *reserve_message(Sender *to) {
@sender @stream     enum ring_result result;
@sender @stream     void *message;
@sender @stream     while ((result = ring_reserve(&to->ring, BYTES, &message)) != RING_OK) ring_failed(to->link, result);
@sender @stream     return message;
@sender @stream }
@sender @reply /* A request stays in the ring until it is answered: where the server dies, the next one gets it. */
@sender @reply static bool receive_reply(Sender *to, void *reply) { return memcpy(reply, peek_over(&to->back, back), BYTES), true; }
@sender /* Until the receiver has done with all, the mark as well. */
@sender static void finish_sender(Sender *to, const void *mark) {
@sender     send_message(to, mark);
@sender     while (!ring_is_drained(&to->ring)) usleep(1000);
@sender     is_done = true;
@sender }

@receiver typedef struct {
@receiver     const char *link;
@receiver     struct ring_end ring;
@receiver @reply     struct ring_end back;
@receiver } Receiver;
@receiver static bool open_receiver(Receiver *from, const char *link) {
@receiver     from->link = link;
@receiver     if (!open_end(&from->ring, link, RING_RECEIVER)) return false;
@receiver @reply     snprintf(back, sizeof back, "%s.back", link);
@receiver @reply     if (!open_end(&from->back, back, RING_SENDER)) errx(1, "%s: another server is there", back);
@receiver     start_watching(&from->ring);
@receiver     return true;
@receiver }
@receiver @stream static const char *peek_message(Receiver *from) { return peek_over(&from->ring, from->link); }
@receiver @reply static void receive_message(Receiver *from, void *message) { memcpy(message, peek_over(&from->ring, from->link), BYTES); }
@receiver @reply static void send_reply(Receiver *from, const void *reply) { send_over(&from->back, back, reply); }
@receiver static void close_receiver(Receiver *from) {
@receiver     is_done = true;
@receiver     if (ring_is_last(&from->ring)) unlink(from->link); /* else there is more, of the next sender */
@receiver @reply     unlink(back);
@receiver     ring_release(&from->ring); /* and the mark is taken: the sender ends */
@receiver }
