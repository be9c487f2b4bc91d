#include <arpa/inet.h>
@reply #include <netinet/tcp.h>
#include <sys/socket.h>
static int listener, in[2], out[2]; /* what each end reads from, and writes to: here the same */
static struct sockaddr_in address = {.sin_family = AF_INET};

static void make_meeting_place(void) {
    int on = 1;
    address.sin_port = htons(atoi(name));              /* NAME is the port */
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* or the other host's address */
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8)) err(1, "bind port %s", name);
}
static void open_end(int me) {
@reply     int on = 1;
    int fd = me == {SECOND} ? accept(listener, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || (me == {FIRST} && connect(fd, (struct sockaddr *)&address, sizeof address))) err(1, "connect port %s", name);
@reply     setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a message is not held back until the last one is acknowledged */
    in[me] = out[me] = fd;
}
