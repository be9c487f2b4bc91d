#include <sys/socket.h>
static int in[2], out[2]; /* what each end reads from, and writes to: here the same */

static void make_meeting_place(void) {
    int pair[2];
    (void)name; /* it has none: both ends inherit it */
    if (socketpair(AF_UNIX, {type}, 0, pair) != 0) err(1, "socketpair");
    in[{FIRST}] = out[{FIRST}] = pair[0], in[{SECOND}] = out[{SECOND}] = pair[1];
}
@fork /* The other end's descriptor is closed, so that its end is seen. */
static void open_end(int me) {
@fork     close(in[!me]);
@threads     (void)me;
}
