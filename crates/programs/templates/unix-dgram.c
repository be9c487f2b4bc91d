#include <sys/un.h>
static int in[2], out[2]; /* what each end reads from, and writes to */
static struct sockaddr_un address[2]; /* where each end receives */

static void remove_meeting_place(void) {
    if (made > 0) unlink(address[{SECOND}].sun_path);
@reply     if (made > 1) unlink(address[{FIRST}].sun_path);
}
static void bind_name(int me, const char *format) {
    address[me].sun_family = AF_UNIX;
    snprintf(address[me].sun_path, sizeof address[me].sun_path, format, name);
    in[me] = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (bind(in[me], (struct sockaddr *)&address[me], sizeof address[me])) err(1, "bind %s", address[me].sun_path);
    made++;
}
static void make_meeting_place(void) {
    bind_name({SECOND}, "%s");
@reply     bind_name({FIRST}, "%s.back");
}
/* A sender waits while the queue is full (net.unix.max_dgram_qlen); nothing is lost. */
static void open_end(int me) {
@stream     if (me == {SECOND}) return;
    out[me] = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (connect(out[me], (struct sockaddr *)&address[!me], sizeof address[!me])) err(1, "connect %s", address[!me].sun_path);
}
