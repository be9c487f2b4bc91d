@fork #include <fcntl.h>
@library
enum { CAPACITY = {capacity} };
static struct ring_end in[2], out[2];

@fork static const char *path_of(int ring) {
@fork     static char paths[2][300];
@fork     snprintf(paths[ring], sizeof *paths, "/dev/shm%s%s", name, ring == 0 ? "" : ".back");
@fork     return paths[ring];
@fork }
@fork static void remove_meeting_place(void) {
@fork     while (made > 0) unlink(path_of(--made));
@fork }
@fork static void make_meeting_place(void) {
@fork     for (; made < {rings}; made++) { /* the memory outlives its users */
@fork         int fd = open(path_of(made), O_CREAT | O_EXCL | O_RDWR, 0600);
@fork         if (fd < 0 || close(fd)) err(1, "%s", path_of(made));
@fork     }
@fork }
@fork static void open_ring(struct ring_end *end, int ring, enum ring_role role) {
@fork     if (ring_open(end, path_of(ring), CAPACITY, role, RING_{SLEEP})) err(1, "%s", path_of(ring));
@fork     while (!ring_peer_is_there(end)) usleep(100);
@fork }
@threads static _Alignas(4096) char memory[{rings}][RING_HEAD_BYTES + CAPACITY]; /* zeroed: empty rings */
@threads static void make_meeting_place(void) { (void)name; /* both ends see the same memory */ }
@threads static void open_ring(struct ring_end *end, int ring, enum ring_role role) {
@threads     if (ring_attach(end, memory[ring], CAPACITY, role, RING_{SLEEP})) errx(1, "no ring");
@threads }
static void open_end(int me) {
    open_ring(me == {FIRST} ? &out[me] : &in[me], 0, me == {FIRST} ? RING_SENDER : RING_RECEIVER);
@reply     open_ring(me == {FIRST} ? &in[me] : &out[me], 1, me == {FIRST} ? RING_RECEIVER : RING_SENDER);
}
static void send_piece(int me, const char *piece, size_t bytes) {
    if (ring_send(&out[me], piece, bytes) != RING_OK) errx(1, "the other end has gone");
}
static void receive_piece(int me, char *piece, size_t bytes) {
    if (ring_receive(&in[me], piece, bytes, &bytes) != RING_OK) errx(1, "the other end has gone");
}
@whole static void send_message(int me, const char *message) { send_piece(me, message, BYTES); }
@whole static void receive_message(int me, char *message) { receive_piece(me, message, BYTES); }
@pieces /* In pieces: the sender's copy of one overlaps the receiver's copy of the one before. */
@pieces enum { PIECE = {piece} };
@pieces static long piece_after(long at) { return BYTES - at < PIECE ? BYTES - at : PIECE; }
@pieces static void send_message(int me, const char *message) {
@pieces     for (long at = 0; at < BYTES; at += PIECE) send_piece(me, message + at, piece_after(at));
@pieces }
@pieces static void receive_message(int me, char *message) {
@pieces     for (long at = 0; at < BYTES; at += PIECE) receive_piece(me, message + at, piece_after(at));
@pieces }
