@binds #include <fcntl.h>
#include <libgen.h>
@binds #include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
@sender @manysenders #include <linux/sockios.h>
@sender @manysenders #include <sys/ioctl.h>

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat found;
    if (strlen(path) >= sizeof address.sun_path) errx(1, "%s: the name of a socket has less than %zu bytes", path, sizeof address.sun_path);
    if (stat(path, &found) == 0 && !S_ISSOCK(found.st_mode)) errx(1, "%s is there already, and is no socket", path);
    if (access(dirname(strcpy(address.sun_path, path)), F_OK) != 0) err(1, "%s", path); /* no end makes the folder */
    strcpy(address.sun_path, path);
    return address;
}
static int new_socket(void) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? err(1, "socket"), fd : fd;
}
/* False: there is no receiver. */
static bool connect_to(int fd, const char *path) {
    struct sockaddr_un address = address_of(path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return true;
    if (errno != ENOENT && errno != ECONNREFUSED) err(1, "connect %s", path);
    return false;
}
@binds /* False: another one is alive there. */
@binds static bool bind_to(int fd, const char *path) {
@binds     struct sockaddr_un address = address_of(path);
@binds     char folder[sizeof address.sun_path];
@binds     int probe = new_socket(), lock = open(dirname(strcpy(folder, path)), O_RDONLY | O_CLOEXEC); /* else two might take a dead one's name */
@binds     if (lock < 0 || flock(lock, LOCK_EX) != 0) err(1, "%s", path);
@binds     bool is_alive = connect_to(probe, path);
@binds     if (!is_alive) unlink(path);
@binds     if (!is_alive && bind(fd, (struct sockaddr *)&address, sizeof address) != 0) err(1, "bind %s", path);
@binds     close(lock), close(probe);
@binds     return !is_alive;
@binds }
@reply static char back[4096]; /* where replies go */

@sender typedef struct {
@sender     const char *link;
@sender     int fd;
@sender @reply     int back;
@sender } Sender;
@sender static void open_sender(Sender *to, const char *link) {
@sender     to->link = link, to->fd = new_socket();
@sender @reply     struct timeval half_second = {0, 500000};
@sender @reply     to->back = new_socket(), snprintf(back, sizeof back, "%s.back", link);
@sender @reply     for (int tries = 0; !bind_to(to->back, back); usleep(10000))
@sender @reply         if (++tries == 100) errx(1, "%s: another client is there", back);
@sender @reply     setsockopt(to->back, SOL_SOCKET, SO_RCVTIMEO, &half_second, sizeof half_second); /* then its server may have gone */
@sender @reply     bound = back, signal(SIGINT, stop), signal(SIGTERM, stop);
@sender     while (!connect_to(to->fd, link)) usleep(10000);
@sender }
@sender static void open_again(Sender *to) {
@sender     warnx("the receiver has gone: waiting for another");
@sender     while (!connect_to(to->fd, to->link)) usleep(10000);
@sender     warnx("another receiver has come");
@sender }
@sender /* A datagram without bytes is no message, and asks whether the receiver is alive. */
@sender static bool has_gone(const Sender *to) { return send(to->fd, "", 0, MSG_DONTWAIT) != 0 && errno != EAGAIN; }
@sender static void reopen_if_gone(Sender *to) {
@sender     if (has_gone(to)) open_again(to);
@sender }
@sender /* Waits while the receiver's queue is full (net.unix.max_dgram_qlen). */
@sender static void send_message(Sender *to, const void *message) {
@sender     while (send(to->fd, message, BYTES, 0) < 0) {
@sender         if (errno != ECONNREFUSED && errno != ECONNRESET && errno != ENOTCONN) err(1, "send");
@sender         open_again(to);
@sender     }
@sender }
@sender @reply static bool receive_reply(Sender *to, void *reply) {
@sender @reply     ssize_t n = recv(to->back, reply, BYTES, 0);
@sender @reply     return n == BYTES || (n < 0 && errno == EAGAIN ? false : (err(1, "recv"), false));
@sender @reply }
@sender /* Until the receiver is done, and has removed its name. */
@sender static void finish_sender(Sender *to, const void *mark) {
@sender     for (send_message(to, mark); access(to->link, F_OK) == 0; usleep(1000)) {
@sender @manysenders         int unread = 1;
@sender @manysenders         ioctl(to->fd, SIOCOUTQ, &unread);
@sender         bool has_died = has_gone(to);
@sender @manysenders         if (!has_died && unread == 0) break;
@sender         if (!has_died || access(to->link, F_OK) != 0) continue;
@sender         open_again(to);
@sender         send_message(to, mark);
@sender     }
@sender @reply     unlink(back);
@sender }

@receiver typedef struct {
@receiver     const char *link;
@receiver     int fd;
@receiver @reply     int back;
@receiver } Receiver;
@receiver static bool open_receiver(Receiver *from, const char *link) {
@receiver     from->link = link, from->fd = new_socket();
@receiver @reply     from->back = new_socket(), snprintf(back, sizeof back, "%s.back", link);
@receiver     if (!bind_to(from->fd, link)) return close(from->fd), false;
@receiver     bound[0] = link;
@receiver     return true;
@receiver }
@receiver static void receive_message(Receiver *from, void *message) {
@receiver     ssize_t n;
@receiver     do {
@receiver @poll         wait_readable(from->fd);
@receiver     } while ((n = recv(from->fd, message, BYTES, MSG_TRUNC)) == 0); /* without bytes it is no message */
@receiver     if (n < 0) err(1, "recv");
@receiver     if (n != BYTES) errx(1, "a message of %zd bytes came", n);
@receiver }
@receiver @reply static void send_reply(Receiver *from, const void *reply) {
@receiver @reply     if (send(from->back, reply, BYTES, 0) == BYTES) return;
@receiver @reply     if (connect_to(from->back, back)) send(from->back, reply, BYTES, 0); /* this is another client; else it has gone */
@receiver @reply }
@receiver static void close_receiver(Receiver *from) { close(from->fd); }
