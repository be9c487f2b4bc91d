#include <sys/socket.h>
@unix #include <sys/stat.h>
@unix #include <sys/un.h>
@tcp #include <arpa/inet.h>
@tcp #include <netinet/tcp.h>
@receiver @unix #include <fcntl.h>
@unix #include <libgen.h>
@receiver @unix #include <sys/file.h>
@receiver @manysenders #include <poll.h>

@unix typedef struct sockaddr_un Address;
@unix static Address address_of(const char *path) {
@unix     Address address = {.sun_family = AF_UNIX};
@unix     struct stat found;
@unix     if (strlen(path) >= sizeof address.sun_path) errx(1, "%s: the name of a socket has less than %zu bytes", path, sizeof address.sun_path);
@unix     if (stat(path, &found) == 0 && !S_ISSOCK(found.st_mode)) errx(1, "%s is there already, and is no socket", path);
@unix     if (access(dirname(strcpy(address.sun_path, path)), F_OK) != 0) err(1, "%s", path); /* no end makes the folder */
@unix     strcpy(address.sun_path, path);
@unix     return address;
@unix }
@tcp typedef struct sockaddr_in Address;
@tcp static Address address_of(const char *port) {
@tcp     if (atoi(port) < 1 || atoi(port) > 65535) errx(2, "NAME is a port, a number from 1 to 65535, not %s", port);
@tcp     return (Address){.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr = {htonl(INADDR_LOOPBACK)}}; /* or the other host's */
@tcp }
@unixstream static int new_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
@receives @unixstream enum { CUT = 0 };
@receives @tcp enum { CUT = 0 };
@receives @seqpacket enum { CUT = MSG_TRUNC }; /* recv(2) says how long a packet is that it cuts off */
@seqpacket static int new_socket(void) { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }
@tcp static int new_socket(void) { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

@sends /* False: the other end has gone. */
@sends static bool write_whole(int fd, const void *bytes) {
@sends     for (ssize_t at = 0, n; at < BYTES; at += n)
@sends         if ((n = send(fd, (const char *)bytes + at, BYTES - at, 0)) < 0)
@sends             return errno == EPIPE || errno == ECONNRESET ? false : (err(1, "send"), false);
@sends     return true;
@sends }
@receives @onesender static bool read_whole(int fd, void *bytes) {
@receives @onesender     for (ssize_t at = 0, n; at < BYTES; at += n) {
@receives @onesender @receiver @poll         wait_readable(fd);
@receives @onesender         n = recv(fd, (char *)bytes + at, BYTES - at, CUT);
@receives @onesender         if (n == 0 || (n < 0 && errno == ECONNRESET)) return false;
@receives @onesender         if (n < 0) err(1, "recv");
@receives @onesender @seqpacket         if (n > BYTES - at) errx(1, "a message of %zd bytes came", n);
@receives @onesender     }
@receives @onesender     return true;
@receives @onesender }

@sender typedef struct {
@sender     const char *link;
@sender     int fd;
@sender } Sender;
@sender /* Connects as soon as there is a receiver. */
@sender static void open_sender(Sender *to, const char *link) {
@sender     to->link = link;
@sender     for (;; close(to->fd), usleep(10000)) {
@sender         Address address = address_of(link);
@sender         if ((to->fd = new_socket()) < 0) err(1, "socket");
@sender         if (connect(to->fd, (struct sockaddr *)&address, sizeof address) == 0) {
@sender @tcp             Address own;
@sender @tcp             int on = 1;
@sender @tcp             socklen_t bytes = sizeof own;
@sender @tcp             setsockopt(to->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a message is not held back until the last is acknowledged */
@sender @tcp             if (getsockname(to->fd, (struct sockaddr *)&own, &bytes) == 0 && own.sin_port == address.sin_port) continue; /* it met itself */
@sender             return;
@sender         }
@sender         if (errno != ENOENT && errno != ECONNREFUSED && errno != ECONNRESET) err(1, "connect %s", link);
@sender     }
@sender }
@sender static void open_again(Sender *to) {
@sender     warnx("the receiver has gone: waiting for another");
@sender     close(to->fd);
@sender     open_sender(to, to->link);
@sender     warnx("another receiver has come");
@sender }
@sender /* It sends nothing now: what can be received is its end. */
@sender static void reopen_if_gone(Sender *to) {
@sender     char none;
@sender     if (recv(to->fd, &none, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN) open_again(to);
@sender }
@sender static void send_message(Sender *to, const void *message) {
@sender     while (!write_whole(to->fd, message)) open_again(to); /* the whole message goes to the next one */
@sender }
@sender @reply static bool receive_reply(Sender *to, void *reply) { return read_whole(to->fd, reply); }
@sender /* The receiver answers the mark with a byte: then it has all. */
@sender static void finish_sender(Sender *to, const void *mark) {
@sender     char done;
@sender     for (send_message(to, mark); recv(to->fd, &done, 1, 0) != 1; send_message(to, mark)) open_again(to);
@sender }

@receiver typedef struct {
@receiver     const char *link;
@receiver     int listener;
@receiver @onesender     int fd; /* the connection */
@receiver @onesender     bool is_sender; /* it has sent something: else it may only have looked whether this end is alive */
@receiver @manysenders     struct pollfd polled[SENDERS + 2]; /* the listener, then connections */
@receiver @manysenders     struct { bool is_sender; size_t got; char bytes[BYTES]; } parts[SENDERS + 1]; /* what a connection has sent of a message */
@receiver @manysenders     int at; /* the connection that is looked at */
@receiver } Receiver;
@receiver /* False: another receiver is alive there. */
@receiver static bool listen_at(int fd, const Address *address) {
@receiver     const struct sockaddr *at = (const struct sockaddr *)address;
@receiver     if (bind(fd, at, sizeof *address) != 0) {
@receiver         if (errno != EADDRINUSE) err(1, "bind %s", name);
@receiver @tcp         return false;
@receiver @unix         int probe = new_socket();
@receiver @unix         bool is_alive = connect(probe, at, sizeof *address) == 0 || errno != ECONNREFUSED;
@receiver @unix         close(probe);
@receiver @unix         if (is_alive) return false;
@receiver @unix         unlink(address->sun_path); /* a dead one's */
@receiver @unix         if (bind(fd, at, sizeof *address) != 0) err(1, "bind %s", name);
@receiver     }
@receiver     if (listen(fd, 64) == 0) return true;
@receiver     return errno == EADDRINUSE ? false : (err(1, "listen %s", name), false); /* another one was faster */
@receiver }
@receiver static bool open_receiver(Receiver *from, const char *link) {
@receiver     Address address = address_of(link);
@receiver     if ((from->listener = new_socket()) < 0) err(1, "socket");
@receiver     from->link = link;
@receiver @onesender     from->fd = -1;
@receiver @manysenders     for (int i = 0; i <= SENDERS; i++) from->polled[i] = (struct pollfd){-1, POLLIN, 0};
@receiver @tcp     int on = 1;
@receiver @tcp     setsockopt(from->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* also while old connections are remembered */
@receiver @unix     char folder[sizeof address.sun_path];
@receiver @unix     int lock = open(dirname(strcpy(folder, link)), O_RDONLY | O_CLOEXEC); /* else two might take a dead one's name */
@receiver @unix     if (lock < 0 || flock(lock, LOCK_EX) != 0) err(1, "%s", link);
@receiver     bool is_bound = listen_at(from->listener, &address);
@receiver @unix     close(lock);
@receiver     if (!is_bound) return close(from->listener), false;
@receiver @unix     bound[0] = link;
@receiver     return true;
@receiver }
@receiver static int accept_sender(Receiver *from) {
@receiver     int fd = accept4(from->listener, NULL, NULL, SOCK_CLOEXEC);
@receiver     if (fd < 0 && errno != ECONNABORTED) err(1, "accept");
@receiver @reply @tcp     int on = 1;
@receiver @reply @tcp     setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a reply is not held back until the last is acknowledged */
@receiver     return fd;
@receiver }
@receiver @onesender /* Senders take turns: one more waits until this one has gone. */
@receiver @onesender static void receive_message(Receiver *from, void *message) {
@receiver @onesender     while (from->fd < 0 || !read_whole(from->fd, message)) {
@receiver @onesender         if (from->is_sender) warnx("the sender has gone: waiting for another");
@receiver @onesender         if (from->fd >= 0) close(from->fd);
@receiver @onesender @poll         wait_readable(from->listener);
@receiver @onesender         from->fd = accept_sender(from);
@receiver @onesender         if (from->is_sender) warnx("another sender has come");
@receiver @onesender         from->is_sender = false;
@receiver @onesender     }
@receiver @onesender     from->is_sender = true;
@receiver @onesender }
@receiver @onesender static void acknowledge_end(Receiver *from) {
@receiver @onesender     send(from->fd, "", 1, 0);
@receiver @onesender     close(from->fd), from->fd = -1, from->is_sender = false;
@receiver @onesender }
@receiver @reply static void send_reply(Receiver *from, const void *reply) {
@receiver @reply     write_whole(from->fd, reply); /* where its client has gone the next read says so */
@receiver @reply }
@receiver @manysenders static void close_sender(Receiver *from) {
@receiver @manysenders     close(from->polled[from->at].fd);
@receiver @manysenders     from->polled[from->at].fd = -1, from->parts[from->at].got = 0, from->parts[from->at].is_sender = false;
@receiver @manysenders }
@receiver @manysenders /* Goes round all connections that have sent something, so none waits for more than one message of each other. */
@receiver @manysenders static void receive_message(Receiver *from, void *message) {
@receiver @manysenders     struct pollfd *polled = from->polled;
@receiver @manysenders     for (;;) {
@receiver @manysenders         int empty = 1, at = from->at = (from->at + 1) % (SENDERS + 1);
@receiver @manysenders         if (at == 0) {
@receiver @manysenders             while (empty <= SENDERS && polled[empty].fd >= 0) empty++;
@receiver @manysenders             polled[0].fd = empty <= SENDERS ? from->listener : -1; /* one more waits until one has gone */
@receiver @manysenders @poll             polled[SENDERS + 1] = (struct pollfd){ask, POLLIN, 0};
@receiver @manysenders @poll             if (poll(polled, SENDERS + 2, -1) < 0) err(1, "poll");
@receiver @manysenders @poll             if (polled[SENDERS + 1].revents) answer_question();
@receiver @manysenders @blocking             if (poll(polled, SENDERS + 1, -1) < 0) err(1, "poll");
@receiver @manysenders             if (polled[0].revents) polled[empty] = (struct pollfd){accept_sender(from), POLLIN, 0};
@receiver @manysenders         } else if (polled[at].fd >= 0 && polled[at].revents) {
@receiver @manysenders             size_t *got = &from->parts[at].got;
@receiver @manysenders             char *part = from->parts[at].bytes;
@receiver @manysenders             ssize_t n = recv(polled[at].fd, part + *got, BYTES - *got, MSG_DONTWAIT | CUT);
@receiver @manysenders             if (n < 0 && errno != ECONNRESET) err(1, "recv");
@receiver @manysenders @seqpacket             if (n > (ssize_t)(BYTES - *got)) errx(1, "a message of %zd bytes came", n);
@receiver @manysenders             if (n <= 0) {
@receiver @manysenders                 if (from->parts[at].is_sender) warnx("a sender has gone: waiting for another");
@receiver @manysenders                 close_sender(from);
@receiver @manysenders             } else if ((*got += n) == BYTES) {
@receiver @manysenders                 *got = 0, from->parts[at].is_sender = true;
@receiver @manysenders                 memcpy(message, part, BYTES);
@receiver @manysenders                 return;
@receiver @manysenders             }
@receiver @manysenders         }
@receiver @manysenders     }
@receiver @manysenders }
@receiver @manysenders static void acknowledge_end(Receiver *from) {
@receiver @manysenders     send(from->polled[from->at].fd, "", 1, 0);
@receiver @manysenders     close_sender(from);
@receiver @manysenders }
@receiver static void close_receiver(Receiver *from) { close(from->listener); }
