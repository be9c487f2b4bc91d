#include <fcntl.h>
#include <sys/stat.h>
@sends #include <poll.h>
#include <sys/ioctl.h>
@receiver @unshared #include <sys/file.h>

/* open(2) waits for the other end. Either end makes the FIFO. */
static int open_fifo(const char *path, int how) {
    struct stat found;
    for (;;) {
        if (mkfifo(path, 0600) != 0 && errno != EEXIST) err(1, "mkfifo %s", path);
        if (stat(path, &found) == 0 && !S_ISFIFO(found.st_mode)) errx(1, "%s is there already, and is no FIFO", path);
        int fd = open(path, how);
        if (fd >= 0) return fd;
        if (errno != ENOENT) err(1, "open %s", path);
    }
}
/* The new one is opened before the old one is closed: what is unread stays in the FIFO only while an end is open. */
static int open_again(const char *path, int how, int old) {
    const char *other = how == O_WRONLY ? "receiver" : "sender";
@onepeer     warnx("the %s has gone: waiting for another", other);
@manypeers     warnx("no %s is there now: waiting for one", other); /* the others may be done, or not there yet */
@large     close(old); /* but a large message may be half read, and must not stay */
    int fd = open_fifo(path, how);
@whole     close(old);
@blocking @onepeer     warnx("another %s has come", other);
    return fd;
}
@reply static char back[4096]; /* the name of the FIFO of replies */
@sends /* False: the other end has gone. Up to 4096 bytes (PIPE_BUF) are written in one piece. */
@sends static bool write_whole(int fd, const void *bytes) {
@sends     for (ssize_t at = 0, n; at < BYTES; at += n)
@sends         if ((n = write(fd, (const char *)bytes + at, BYTES - at)) < 0) return errno == EPIPE ? false : (err(1, "write"), false);
@sends     return true;
@sends }
@receives static bool read_whole(int fd, void *bytes) {
@receives     for (ssize_t at = 0, n; at < BYTES; at += n) {
@receives @receiver @poll         wait_readable(fd);
@receives         if ((n = read(fd, (char *)bytes + at, BYTES - at)) == 0) return false;
@receives @receiver @poll         if (n < 0 && errno == EAGAIN) n = 0; /* another receiver was faster */
@receives         if (n < 0) err(1, "read");
@receives     }
@receives     return true;
@receives }

@sender typedef struct {
@sender     const char *link;
@sender     int fd;
@sender @reply     int back;
@sender } Sender;
@sender static void open_sender(Sender *to, const char *link) {
@sender     to->link = link, to->fd = open_fifo(link, O_WRONLY);
@sender @reply     to->back = -1, snprintf(back, sizeof back, "%s.back", link);
@sender }
@sender /* Waits for so long, and is true as soon as there is no receiver (POLLERR). */
@sender static bool is_alone(const Sender *to, int milliseconds) { return poll(&(struct pollfd){to->fd, 0, 0}, 1, milliseconds) > 0; }
@sender static void reopen_if_gone(Sender *to) {
@sender     if (is_alone(to, 0)) to->fd = open_again(to->link, O_WRONLY, to->fd);
@sender }
@sender static void send_message(Sender *to, const void *message) {
@sender     while (!write_whole(to->fd, message)) to->fd = open_again(to->link, O_WRONLY, to->fd);
@sender }
@sender @reply static bool receive_reply(Sender *to, void *reply) {
@sender @reply     if (to->back < 0) {
@sender @reply         int fd = open_fifo(back, O_RDONLY | O_NONBLOCK);
@sender @reply         /* A server that dies before its first reply never opens it: the request is sent again. */
@sender @reply         if (poll(&(struct pollfd){fd, POLLIN, 0}, 1, 1000) <= 0) return close(fd), false;
@sender @reply         fcntl(fd, F_SETFL, 0);
@sender @reply         to->back = fd;
@sender @reply     }
@sender @reply     if (read_whole(to->back, reply)) return true;
@sender @reply     close(to->back), to->back = -1;
@sender @reply     return false;
@sender @reply }
@sender /* What is unread is lost when this end closes: it waits until the mark is taken. */
@sender static void finish_sender(Sender *to, const void *mark) {
@sender @unshared     send_message(to, mark);
@sender @shared     for (int i = 0; i < {receivers}; i++) send_message(to, mark);
@sender     for (;;) {
@sender         bool has_died = is_alone(to, 10);
@sender         int unread = 0;
@sender         if (access(to->link, F_OK) != 0) break; /* the receiver is done, and has removed it */
@sender         ioctl(to->fd, FIONREAD, &unread);
@sender @shared         if (unread == 0) break;
@sender @unshared @manysenders         if (unread == 0 && !has_died) break;
@sender         if (!has_died) continue;
@sender         to->fd = open_again(to->link, O_WRONLY, to->fd);
@sender         if (unread == 0) send_message(to, mark); /* it died after it took the mark */
@sender     }
@sender @shared @onesender     unlink(to->link);
@sender @reply     unlink(back);
@sender }

@receiver typedef struct {
@receiver     const char *link;
@receiver     int fd, how;
@receiver @reply     int back;
@receiver } Receiver;
@receiver static bool open_receiver(Receiver *from, const char *link) {
@receiver @unshared     int lock = open_fifo(link, O_RDONLY | O_NONBLOCK); /* held to the end: two would share the messages */
@receiver @unshared     if (flock(lock, LOCK_EX | LOCK_NB) != 0) return close(lock), false;
@receiver     from->link = link, from->how = O_RDONLY;
@receiver @poll     from->how |= O_NONBLOCK; /* poll(2) waits for the sender */
@receiver @reply     from->back = -1, snprintf(back, sizeof back, "%s.back", link);
@receiver     from->fd = open_fifo(link, from->how);
@receiver     return true;
@receiver }
@receiver static void receive_message(Receiver *from, void *message) {
@receiver     while (!read_whole(from->fd, message)) {
@receiver @reply         if (from->back >= 0) close(from->back), from->back = -1;
@receiver         from->fd = open_again(from->link, from->how, from->fd);
@receiver     }
@receiver }
@receiver @reply static void send_reply(Receiver *from, const void *reply) {
@receiver @reply     if (from->back < 0) from->back = open_fifo(back, O_WRONLY);
@receiver @reply     if (!write_whole(from->back, reply)) close(from->back), from->back = -1; /* its client has gone */
@receiver @reply }
@receiver static void close_receiver(Receiver *from) {
@receiver @unshared     int unread = 0;
@receiver @unshared     if (ioctl(from->fd, FIONREAD, &unread) == 0 && unread == 0) unlink(from->link); /* else there is more, of the next sender */
@receiver @shared     (void)from; /* the sender removes it */
@receiver }
