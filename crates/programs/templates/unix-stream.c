#include <sys/socket.h>
#include <sys/un.h>
static int listener, in[2], out[2]; /* what each end reads from, and writes to: here the same */
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void remove_meeting_place(void) {
    if (made) unlink(name);
}
static void make_meeting_place(void) {
    snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address)) err(1, "bind %s", name);
    made = 1;
    if (listen(listener, 8)) err(1, "listen %s", name);
}
/* Each client gets a socket of its own, for both directions. */
static void open_end(int me) {
    int fd = me == {SECOND} ? accept(listener, NULL, NULL) : socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || (me == {FIRST} && connect(fd, (struct sockaddr *)&address, sizeof address))) err(1, "connect %s", name);
    in[me] = out[me] = fd;
}
