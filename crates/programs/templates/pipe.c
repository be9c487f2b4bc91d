#include <fcntl.h>
static int in[2], out[2]; /* what each end reads from, and writes to */

static void make_pipe(int from, int to) {
    int pair[2];
    if (pipe(pair) != 0) err(1, "pipe");
@size     if (fcntl(pair[1], F_SETPIPE_SZ, {size}) < 0) err(1, "fcntl(F_SETPIPE_SZ)");
    in[to] = pair[0], out[from] = pair[1];
}
static void make_meeting_place(void) {
    (void)name; /* a pipe has none: both ends inherit it */
    make_pipe({FIRST}, {SECOND});
@reply     make_pipe({SECOND}, {FIRST});
}
@fork /* The other end's descriptors are closed, so that its end is seen. */
static void open_end(int me) {
@fork @stream     close(me == {FIRST} ? in[{SECOND}] : out[{FIRST}]);
@fork @reply     close(in[!me]), close(out[!me]);
@threads     (void)me;
}
